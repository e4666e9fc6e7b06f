/* SPDX-License-Identifier: Apache-2.0 */
/* Implements files with system calls. */
#include "base/fs.h"

#include "base/alloc.h"
#include "base/assert.h"
#include "base/checked.h"
#include "base/clock.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

static kelp_code code_of(int error) {
    switch (error) {
    case ENOENT:
    case ENOTDIR:
        return KELP_NOT_FOUND;
    case EACCES:
    case EPERM:
    case EROFS:
        return KELP_PERMISSION_DENIED;
    case EISDIR:
    case ENAMETOOLONG:
    case ELOOP:
    case EINVAL:
        return KELP_INVALID_ARGUMENT;
    case EEXIST:
        return KELP_ALREADY_EXISTS;
    case ENOMEM:
    case EMFILE:
    case ENFILE:
    case ENOSPC:
    case EDQUOT:
        return KELP_RESOURCE_EXHAUSTED;
    default:
        return KELP_INTERNAL;
    }
}

kelp_status *kelp_fs_error(const char *failure, const char *path, int error) {
    char text[128];
    const char *reason = strerror_r(error, text, sizeof text);
    return KELP_ERROR(code_of(error), "%s '%s': %s", failure, path, reason);
}

/* Opens a regular file. Uses O_NONBLOCK, or a pipe without a writer would block the caller. */
static kelp_status *open_file(const char *path, int *out_fd, struct stat *out_stat) {
    int fd;
    do {
        fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    } while (fd < 0 && errno == EINTR);
    if (fd < 0)
        return kelp_fs_error("cannot open file", path, errno);
    if (fstat(fd, out_stat) != 0) {
        int error = errno;
        (void)close(fd);
        return kelp_fs_error("cannot inspect file", path, error);
    }
    if (!S_ISREG(out_stat->st_mode)) {
        (void)close(fd);
        return KELP_ERROR(KELP_INVALID_ARGUMENT, "cannot read '%s': expected a file, found %s",
                          path,
                          S_ISDIR(out_stat->st_mode) ? "a directory" : "a device, pipe or socket");
    }
    *out_fd = fd;
    return NULL;
}

kelp_status *kelp_fs_open(const char *path, int *out_fd, size_t *out_size_bytes) {
    struct stat info;
    KELP_TRY(open_file(path, out_fd, &info));
    if ((uintmax_t)info.st_size > SIZE_MAX) {
        (void)close(*out_fd);
        return KELP_ERROR(KELP_RESOURCE_EXHAUSTED, "cannot map file '%s': %jd bytes are too many",
                          path, (intmax_t)info.st_size);
    }
    *out_size_bytes = (size_t)info.st_size;
    return NULL;
}

kelp_status *kelp_fs_map(const char *path, kelp_mapping *out) {
    int fd = -1;
    size_t size_bytes = 0;
    *out = (kelp_mapping){0};
    KELP_TRY(kelp_fs_open(path, &fd, &size_bytes));
    kelp_status *status = NULL;
    if (size_bytes > 0) {
        void *data = mmap(NULL, size_bytes, PROT_READ, MAP_PRIVATE, fd, 0);
        if (data == MAP_FAILED)
            status = kelp_fs_error("cannot map file", path, errno);
        else
            *out = (kelp_mapping){.data = data, .size_bytes = size_bytes};
    }
    (void)close(fd);
    return status;
}

void kelp_fs_unmap(kelp_mapping *mapping) {
    KELP_ASSERT((mapping->data == NULL) == (mapping->size_bytes == 0));
    if (mapping->guarded != NULL)
        kelp_guarded_file_unmap(mapping->guarded);
    else if (mapping->data != NULL)
        (void)munmap((void *)(uintptr_t)mapping->data, mapping->size_bytes);
    *mapping = (kelp_mapping){0};
}

void kelp_fs_release_pages(const kelp_mapping *mapping) {
    if (mapping->data != NULL)
        (void)madvise((void *)(uintptr_t)mapping->data, mapping->size_bytes, MADV_DONTNEED);
}

static kelp_status *too_long(const char *path, size_t limit_bytes) {
    return KELP_ERROR(KELP_RESOURCE_EXHAUSTED,
                      "cannot read file '%s': it is longer than the limit of %zu bytes", path,
                      limit_bytes);
}

/* Reads to the end of the file whatever fstat reported: files in /proc report 0, and a file may
 * grow. Bytes beyond the expected length are read into `extra` first, so that `out` does not grow
 * just to detect the end. */
static kelp_status *read_all(int fd, const char *path, size_t limit_bytes, size_t expected_bytes,
                             kelp_buf *out) {
    char extra[4096];
    size_t before = out->length;
    size_t left = expected_bytes;
    for (;;) {
        char *to = left ? kelp_buf_reserve(out, left) : extra;
        if (to == NULL)
            return kelp_buf_status(out);
        ssize_t got = read(fd, to, left ? left : sizeof extra);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return kelp_fs_error("cannot read file", path, errno);
        if (got == 0)
            return NULL;
        if (limit_bytes && out->length - before + (size_t)got > limit_bytes)
            return too_long(path, limit_bytes);
        if (left) {
            out->length += (size_t)got;
            left -= (size_t)got;
        } else {
            kelp_buf_append(out, extra, (size_t)got);
            if (out->failed)
                return kelp_buf_status(out);
        }
    }
}

kelp_status *kelp_fs_read(const char *path, size_t limit_bytes, kelp_buf *out) {
    int fd = -1;
    struct stat info;
    if (out->failed)
        return kelp_buf_status(out);
    KELP_TRY(open_file(path, &fd, &info));
    size_t before = out->length;
    kelp_status *status = NULL;
    if (limit_bytes && (uintmax_t)info.st_size > limit_bytes)
        status = too_long(path, limit_bytes);
    else if ((uintmax_t)info.st_size >= SIZE_MAX / 2)
        status = kelp_status_oom();
    else
        status = read_all(fd, path, limit_bytes, (size_t)info.st_size, out);
    (void)close(fd);
    if (status != NULL)
        out->length = before;
    return status;
}

static kelp_status *write_all(int fd, const char *path, const void *data, size_t length) {
    const char *at = data;
    while (length) {
        ssize_t done = write(fd, at, length);
        if (done < 0 && errno == EINTR)
            continue;
        if (done < 0)
            return kelp_fs_error("cannot write file", path, errno);
        at += done;
        length -= (size_t)done;
    }
    /* before the rename, or a crash could leave an empty file under the new name */
    if (fsync(fd) != 0 && errno != EINVAL && errno != ENOTSUP)
        return kelp_fs_error("cannot write file", path, errno);
    return NULL;
}

/* Creates a temporary file in the directory of `path`; its name is written to `out_name`. */
static kelp_status *open_temporary(const char *path, char *out_name, size_t capacity, int *out_fd) {
    for (int attempt = 0; attempt < 100; attempt++) {
        int length = snprintf(out_name, capacity, "%s.%d.%llx.tmp", path, (int)getpid(),
                              (unsigned long long)kelp_now_ns());
        if (length < 0 || (size_t)length >= capacity)
            return kelp_fs_error("cannot create file", path, ENAMETOOLONG);
        *out_fd = open(out_name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
        if (*out_fd >= 0)
            return NULL;
        if (errno != EEXIST && errno != EINTR)
            break;
    }
    return kelp_fs_error("cannot create file", out_name, errno);
}

/* Writes into an existing device or pipe, which must not be replaced by a file. */
static kelp_status *write_into(const char *path, const void *data, size_t length) {
    int fd = open(path, O_WRONLY | O_CLOEXEC);
    if (fd < 0)
        return kelp_fs_error("cannot open file", path, errno);
    kelp_status *status = write_all(fd, path, data, length);
    if (close(fd) != 0 && status == NULL && errno != EINTR)
        status = kelp_fs_error("cannot write file", path, errno);
    return status;
}

kelp_status *kelp_fs_write(const char *path, const void *data, size_t length) {
    char name[PATH_MAX];
    int fd = -1;
    if (kelp_fs_kind_of(path) == KELP_FS_OTHER)
        return write_into(path, data, length);
    KELP_TRY(open_temporary(path, name, sizeof(name), &fd));
    kelp_status *status = write_all(fd, name, data, length);
    if (close(fd) != 0 && status == NULL && errno != EINTR)
        status = kelp_fs_error("cannot write file", name, errno);
    if (status == NULL && rename(name, path) != 0)
        status = kelp_fs_error("cannot replace file", path, errno);
    if (status != NULL)
        (void)unlink(name);
    return status;
}

kelp_fs_kind kelp_fs_kind_of(const char *path) {
    struct stat info;
    if (stat(path, &info) != 0)
        return KELP_FS_NONE;
    if (S_ISREG(info.st_mode))
        return KELP_FS_FILE;
    return S_ISDIR(info.st_mode) ? KELP_FS_DIRECTORY : KELP_FS_OTHER;
}

static int compare_names(const void *a, const void *b) {
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static kelp_status *list_into(DIR *dir, const char *path, kelp_fs_names *names) {
    for (;;) {
        errno = 0;
        const struct dirent *entry = readdir(dir);
        if (entry == NULL)
            return errno ? kelp_fs_error("cannot list directory", path, errno) : NULL;
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
            continue;
        void *items = names->items;
        KELP_TRY(kelp_grow(names->allocator, &items, &names->capacity, names->count + 1,
                           sizeof(*names->items)));
        names->items = items;
        KELP_TRY(kelp_strdup(names->allocator, entry->d_name, &names->items[names->count]));
        names->count++;
    }
}

kelp_status *kelp_fs_list(kelp_allocator allocator, const char *path, kelp_fs_names *out) {
    *out = (kelp_fs_names){.allocator = allocator};
    DIR *dir = opendir(path);
    if (dir == NULL)
        return kelp_fs_error("cannot list directory", path, errno);
    kelp_status *status = list_into(dir, path, out);
    (void)closedir(dir);
    if (status != NULL) {
        kelp_fs_names_deinit(out);
        return status;
    }
    if (out->count > 1)
        qsort(out->items, out->count, sizeof *out->items, compare_names);
    return NULL;
}

void kelp_fs_names_deinit(kelp_fs_names *names) {
    KELP_ASSERT(names->count <= names->capacity);
    for (size_t i = 0; i < names->count; i++)
        kelp_free_string(names->allocator, names->items[i]);
    kelp_free(names->allocator, names->items, names->capacity * sizeof *names->items);
    names->items = NULL;
    names->count = 0;
    names->capacity = 0;
}

kelp_status *kelp_fs_join(kelp_allocator allocator, const char *a, const char *b, char **out) {
    size_t a_length = strlen(a);
    *out = NULL;
    if (b[0] == '/' || a_length == 0)
        return kelp_strdup(allocator, b, out);
    bool slash = a[a_length - 1] != '/';
    size_t b_bytes = strlen(b) + 1;
    size_t size_bytes;
    void *text = NULL;
    if (!kelp_size_add(a_length, b_bytes, &size_bytes) ||
        !kelp_size_add(size_bytes, slash ? 1 : 0, &size_bytes))
        return kelp_status_oom();
    KELP_TRY(kelp_alloc(allocator, size_bytes, &text));
    char *path = text;
    memcpy(path, a, a_length);
    if (slash)
        path[a_length++] = '/';
    memcpy(path + a_length, b, b_bytes);
    *out = path;
    return NULL;
}

void kelp_fs_remove_stale_socket(const char *path) {
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    struct stat about;
    /* A connection to a file of another kind is refused, too. */
    if (strlen(path) >= sizeof address.sun_path || lstat(path, &about) != 0 ||
        !S_ISSOCK(about.st_mode))
        return;
    memcpy(address.sun_path, path, strlen(path));
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return;
    if (connect(fd, (const struct sockaddr *)&address, sizeof address) != 0 &&
        errno == ECONNREFUSED)
        unlink(path);
    close(fd);
}

bool kelp_fs_is_inside(const char *relative) {
    size_t depth = 0;
    if (relative[0] == '/')
        return false;
    for (const char *at = relative; *at;) {
        size_t length = strcspn(at, "/");
        if (length == 2 && at[0] == '.' && at[1] == '.') {
            if (depth == 0)
                return false;
            depth--;
        } else if (length != 0 && !(length == 1 && at[0] == '.')) {
            depth++;
        }
        at += length;
        if (*at == '/')
            at++;
    }
    return true;
}
