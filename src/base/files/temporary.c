/* SPDX-License-Identifier: Apache-2.0 */
#include "base/files/temporary.h"

#include "base/alloc.h"
#include "base/checked.h"
#include "base/fs.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#define PREFIX "kelp-"
#define ATTEMPTS 100

/* A directory of this process. */
typedef struct held {
    struct held *next;
    ino_t inode;
    int fd; /* has the lock */
} held;

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static held *first; /* guarded by the mutex */

static const char *base_directory(void) {
    const char *base = getenv("TMPDIR");
    return base != NULL && base[0] ? base : "/tmp";
}

static int remove_one(const char *path, const struct stat *info, int kind, struct FTW *where) {
    (void)info;
    (void)kind;
    (void)where;
    return remove(path);
}

void kelp_directory_remove(const char *path) {
    (void)nftw(path, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

/* Opens and locks a directory of this user. Returns -1 if another process has the lock, or if the
 * path leads to another directory now. */
static int open_locked(const char *path, struct stat *out_info) {
    struct stat now;
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return -1;
    if (fstat(fd, out_info) == 0 && out_info->st_uid == geteuid() &&
        flock(fd, LOCK_EX | LOCK_NB) == 0 && lstat(path, &now) == 0 &&
        now.st_ino == out_info->st_ino && now.st_dev == out_info->st_dev)
        return fd;
    close(fd);
    return -1;
}

/* Creates and locks a directory. A sweep may remove it before it is locked. */
static int create_locked(char *template, ino_t *out_inode) {
    struct stat info;
    size_t length = strlen(template);
    for (int i = 0; i < ATTEMPTS; i++) {
        memset(template + length - 6, 'X', 6);
        if (mkdtemp(template) == NULL)
            return -1;
        int fd = open_locked(template, &info);
        *out_inode = info.st_ino;
        if (fd >= 0)
            return fd;
        (void)rmdir(template);
    }
    errno = EAGAIN;
    return -1;
}

kelp_status *kelp_temporary_create(kelp_allocator allocator, const char *purpose, char **out_path) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    char template[PATH_MAX];
    held *item = NULL;
    ino_t inode = 0;
    (void)pthread_once(&once, kelp_temporary_sweep);
    int length =
        snprintf(template, sizeof template, "%s/" PREFIX "%s-XXXXXX", base_directory(), purpose);
    if (length < 0 || (size_t)length >= sizeof template)
        return kelp_fs_error("cannot create a directory in", base_directory(), ENAMETOOLONG);
    KELP_TRY(KELP_NEW(kelp_allocator_system(), held, &item));
    int fd = create_locked(template, &inode);
    kelp_status *status =
        fd >= 0 ? kelp_strdup(allocator, template, out_path)
                : kelp_fs_error("cannot create a temporary directory", template, errno);
    if (status != NULL) {
        if (fd >= 0) {
            (void)rmdir(template);
            close(fd);
        }
        kelp_free(kelp_allocator_system(), item, sizeof *item);
        return status;
    }
    pthread_mutex_lock(&mutex);
    *item = (held){.next = first, .inode = inode, .fd = fd};
    first = item;
    pthread_mutex_unlock(&mutex);
    return NULL;
}

/* Removes the directory from the list, and returns its descriptor; -1 if it is not in it. */
static int take_held(const char *path) {
    struct stat info;
    int fd = -1;
    if (lstat(path, &info) != 0)
        return -1;
    pthread_mutex_lock(&mutex);
    for (held **at = &first; *at != NULL; at = &(*at)->next) {
        held *item = *at;
        if (item->inode != info.st_ino)
            continue;
        *at = item->next;
        fd = item->fd;
        kelp_free(kelp_allocator_system(), item, sizeof *item);
        break;
    }
    pthread_mutex_unlock(&mutex);
    return fd;
}

void kelp_temporary_remove(kelp_allocator allocator, char *take_path) {
    if (take_path == NULL)
        return;
    int fd = take_held(take_path);
    kelp_directory_remove(take_path);
    if (fd >= 0)
        close(fd);
    kelp_free_string(allocator, take_path);
}

/* Returns true for the names that kelp_temporary_create makes. */
static bool has_purpose(const char *name) {
    static const char *const starts[] = {PREFIX "model-", PREFIX "agent-", PREFIX "serve-"};
    for (size_t i = 0; i < KELP_COUNT(starts); i++)
        if (!strncmp(name, starts[i], strlen(starts[i])))
            return true;
    return false;
}

void kelp_temporary_sweep(void) {
    kelp_allocator allocator = kelp_allocator_system();
    kelp_fs_names names;
    const char *base = base_directory();
    kelp_status *status = kelp_fs_list(allocator, base, &names);
    if (status != NULL) {
        kelp_status_free(status);
        return;
    }
    for (size_t i = 0; i < names.count; i++) {
        char path[PATH_MAX];
        struct stat info;
        const char *name = names.items[i];
        if (!has_purpose(name))
            continue;
        int length = snprintf(path, sizeof path, "%s/%s", base, name);
        int fd = length > 0 && (size_t)length < sizeof path ? open_locked(path, &info) : -1;
        if (fd < 0)
            continue;
        kelp_directory_remove(path);
        close(fd);
    }
    kelp_fs_names_deinit(&names);
}
