/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Temporary directories that a later process removes if their own process crashed. A process holds
 * a lock (flock) on each of its directories; a directory without a lock is stale.
 */
#ifndef KELP_BASE_FILES_TEMPORARY_H_
#define KELP_BASE_FILES_TEMPORARY_H_

#include <kelp/allocator.h>

/* Creates the directory "kelp-PURPOSE-…" below TMPDIR, or /tmp, for this user only. The purposes
 * are "model", "agent" and "serve". The caller passes `*out_path` to kelp_temporary_remove. */
kelp_status *kelp_temporary_create(kelp_allocator allocator, const char *purpose,
                                   char **out_path) KELP_MUST_USE;
/* Removes the directory without following links, and frees the path. NULL is allowed. */
void kelp_temporary_remove(kelp_allocator allocator, char *take_path);
/* Removes the stale directories of this user. */
void kelp_temporary_sweep(void);
/* Removes any directory without following links. Ignores failures. */
void kelp_directory_remove(const char *path);

#endif
