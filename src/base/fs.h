/* SPDX-License-Identifier: Apache-2.0 */
/* Files: mapping, reading, listing directories, joining paths. Errors contain the path and the
 * system's message. */
#ifndef KELP_BASE_FS_H_
#define KELP_BASE_FS_H_

#include "base/buf.h"

typedef struct kelp_guarded_file kelp_guarded_file; /* base/file_guard.h */

typedef struct kelp_mapping {
    const void *data; /* NULL if the file is empty */
    size_t size_bytes;
    kelp_guarded_file *guarded; /* NULL for a plain mapping */
} kelp_mapping;

/* Opens a regular file for reading. Fails like kelp_fs_map. */
kelp_status *kelp_fs_open(const char *path, int *out_fd, size_t *out_size_bytes) KELP_MUST_USE;
/* Returns an error with the path and the message of `error`, an errno. */
kelp_status *kelp_fs_error(const char *failure, const char *path, int error) KELP_MUST_USE;

/* Maps a file privately and read-only. Fails with NOT_FOUND, PERMISSION_DENIED, INVALID_ARGUMENT
 * (a directory) or INTERNAL. */
kelp_status *kelp_fs_map(const char *path, kelp_mapping *out) KELP_MUST_USE;
void kelp_fs_unmap(kelp_mapping *mapping);
/* Unmaps a file of base/file_guard.h. Called by kelp_fs_unmap. */
void kelp_guarded_file_unmap(kelp_guarded_file *file);
/* Releases the resident pages of a mapping; they are read again on access. */
void kelp_fs_release_pages(const kelp_mapping *mapping);

/* Appends a whole file. Fails with RESOURCE_EXHAUSTED if it is longer than limit_bytes (0:
 * unlimited). */
kelp_status *kelp_fs_read(const char *path, size_t limit_bytes, kelp_buf *out) KELP_MUST_USE;
/* Writes a file atomically: writes to a temporary file in the same directory and renames it.
 * Writes into a device or pipe directly. */
kelp_status *kelp_fs_write(const char *path, const void *data, size_t length) KELP_MUST_USE;

typedef enum kelp_fs_kind {
    KELP_FS_NONE,
    KELP_FS_FILE,
    KELP_FS_DIRECTORY,
    KELP_FS_OTHER
} kelp_fs_kind;
kelp_fs_kind kelp_fs_kind_of(const char *path); /* follows links; NONE if it cannot be inspected */
/* Removes a Unix socket on which no process listens, because its process was killed. Removes no
 * other file, and ignores failures. */
void kelp_fs_remove_stale_socket(const char *path);

/* Names in a directory without . and .., hidden ones included, sorted by bytes. Free with
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

/* Joins "a" and "b" to "a/b"; an absolute "b" is copied. The caller frees the result
 * (kelp_free_string). */
kelp_status *kelp_fs_join(kelp_allocator allocator, const char *a, const char *b,
                          char **out) KELP_MUST_USE;
/* Returns true if a relative path, after resolving . and .., stays inside its directory. Returns
 * false for absolute paths. */
bool kelp_fs_is_inside(const char *relative);

#endif
