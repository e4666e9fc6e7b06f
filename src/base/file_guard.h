/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Mapped files that keep their contents, even if a process overwrites or truncates them in place.
 *
 * A file is mapped under a read lease (fcntl F_SETLEASE): the kernel delays a process that opens
 * the file for writing until the guard's thread has replaced the mapping by a copy in memory, at
 * the same address. Until then, the mapping costs no memory. The kernel grants leases to the owner
 * of the file and to privileged processes, on local file systems, and only if no process has the
 * file open for writing. Otherwise, the file is copied when it is opened.
 *
 * The thread starts with the first file. It is the only thread that receives SIGIO for the leases,
 * and it blocks the signal, so that the application's signal handlers are not involved.
 * Thread-safe. Not valid in the child after fork: its mappings are those of the plain files.
 */
#ifndef KELP_BASE_FILE_GUARD_H_
#define KELP_BASE_FILE_GUARD_H_

#include "base/fs.h"
#include "base/log.h"

typedef struct kelp_file_guard kelp_file_guard;

/* Creates a guard without files. `logger` (may be NULL) must be valid until the guard is closed. */
kelp_status *kelp_file_guard_create(kelp_allocator allocator, const kelp_logger *logger,
                                    kelp_file_guard **out) KELP_MUST_USE;

/* Ends the use of the guard by its owner. The guard exists until its last file is unmapped. NULL is
 * allowed. */
void kelp_file_guard_close(kelp_file_guard *guard);

/* Maps a file. Unmap it with kelp_fs_unmap. Without a guard (NULL), the same as kelp_fs_map. Fails
 * like kelp_fs_map, and with RESOURCE_EXHAUSTED if there is no memory for a copy. */
kelp_status *kelp_file_guard_map(kelp_file_guard *guard, const char *path,
                                 kelp_mapping *out) KELP_MUST_USE;

/* Returns the number of files that are copies. */
size_t kelp_file_guard_copies(kelp_file_guard *guard);

#endif
