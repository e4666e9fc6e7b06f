/* SPDX-License-Identifier: Apache-2.0 */
/* Files: mapped and read whole, directories listed, paths joined. Errors name the path and what the
 * system said. */
#ifndef KELP_BASE_FS_H_
#define KELP_BASE_FS_H_

#include "base/buf.h"

typedef struct kelp_mapping {
    const void *data; /* NULL for an empty file */
    size_t size_bytes;
} kelp_mapping;

/* Private, read-only. NOT_FOUND, PERMISSION_DENIED, INVALID_ARGUMENT (a directory) or INTERNAL. */
kelp_status *kelp_fs_map(const char *path, kelp_mapping *out) KELP_MUST_USE;
void kelp_fs_unmap(kelp_mapping *mapping);
/* Its pages leave the process's memory; what is read again comes back from the system's cache. */
void kelp_fs_relax(const kelp_mapping *mapping);

/* Appends the whole file; RESOURCE_EXHAUSTED when longer than limit_bytes (0 is none). */
kelp_status *kelp_fs_read(const char *path, size_t limit_bytes, kelp_buf *out) KELP_MUST_USE;
/* Writes to a temporary name beside it, then renames: readers see the old file or the new one. A
 * device or pipe is written into. */
kelp_status *kelp_fs_write(const char *path, const void *data, size_t length) KELP_MUST_USE;

typedef enum kelp_fs_kind {
    KELP_FS_NONE,
    KELP_FS_FILE,
    KELP_FS_DIRECTORY,
    KELP_FS_OTHER
} kelp_fs_kind;
kelp_fs_kind
kelp_fs_kind_of(const char *path); /* follows links; NONE when it cannot be looked at */
kelp_status *kelp_fs_mtime_ns(const char *path, int64_t *out) KELP_MUST_USE;

/* Names in `path` without . and .., sorted by bytes; hidden ones too. Free with
 * kelp_fs_names_deinit. */
typedef struct kelp_fs_names {
    kelp_allocator allocator;
    char **items;
    size_t count;
    size_t capacity;
} kelp_fs_names;
kelp_status *kelp_fs_list(kelp_allocator allocator, const char *path,
                          kelp_fs_names *out) KELP_MUST_USE;
void kelp_fs_names_deinit(kelp_fs_names *names);

/* "a/b" from "a" and "b"; b as it is when absolute. The result is the caller's (kelp_free_string).
 */
kelp_status *kelp_fs_join(kelp_allocator allocator, const char *a, const char *b,
                          char **out) KELP_MUST_USE;
/* true when the relative path, once its . and .. are taken, stays inside its folder. Absolute
 * paths: false. */
bool kelp_fs_is_inside(const char *relative);

#endif
