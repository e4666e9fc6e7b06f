/* SPDX-License-Identifier: Apache-2.0 */
/* Implements guarded files with read leases and memfds. */
#include "base/file_guard.h"

#include "base/alloc.h"
#include "base/assert.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

struct kelp_guarded_file {
    kelp_guarded_file *next;
    kelp_file_guard *guard;
    void *data;
    size_t size_bytes;
    int fd; /* with a lease; -1 for a copy */
    char path[];
};

struct kelp_file_guard {
    kelp_allocator allocator;
    pthread_mutex_t lock; /* guards all members below */
    pthread_cond_t started;
    const kelp_logger *logger; /* NULL once the guard is closed */
    kelp_guarded_file *files;
    size_t copies;
    bool open; /* used by its owner */
    bool has_thread, stopping;
    pid_t thread_id; /* 0 until the thread can receive signals */
    pthread_t thread;
};

/* Closing alone would not end the lease if a child process has inherited the descriptor. */
static void end_lease(int fd) {
    (void)fcntl(fd, F_SETLEASE, F_UNLCK);
    (void)close(fd);
}

/* ---- copies ---- */
/* Reads the file from its beginning. Fails with INVALID_ARGUMENT if it is shorter. */
static kelp_status *read_into(int fd, const char *path, char *to, size_t size_bytes) {
    for (size_t at = 0; at < size_bytes;) {
        ssize_t got = pread(fd, to + at, size_bytes - at, (off_t)at);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return kelp_fs_error("cannot read file", path, errno);
        if (got == 0)
            return KELP_ERROR(KELP_INVALID_ARGUMENT,
                              "cannot read file '%s': expected %zu bytes, found %zu: the file was "
                              "truncated while it was read",
                              path, size_bytes, at);
        at += (size_t)got;
    }
    return NULL;
}

/* Maps a copy in memory at `address`, or anywhere if it is NULL. A memfd, unlike anonymous memory,
 * keeps its contents when pages of the mapping are released. */
static kelp_status *map_copy(int fd, const char *path, size_t size_bytes, void *address,
                             void **out) {
    int copy = memfd_create("kelp", MFD_CLOEXEC);
    if (copy < 0)
        return kelp_fs_error("cannot copy file", path, errno);
    kelp_status *status = NULL;
    /* reserves the memory, or writing to it could end in SIGBUS */
    int error = posix_fallocate(copy, 0, (off_t)size_bytes);
    void *writable = error == 0
                         ? mmap(NULL, size_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, copy, 0)
                         : MAP_FAILED;
    if (writable == MAP_FAILED) {
        status = kelp_fs_error("cannot copy file", path, error != 0 ? error : errno);
    } else {
        status = read_into(fd, path, writable, size_bytes);
        (void)munmap(writable, size_bytes);
    }
    if (status == NULL) {
        *out = mmap(address, size_bytes, PROT_READ, MAP_PRIVATE | (address != NULL ? MAP_FIXED : 0),
                    copy, 0);
        if (*out == MAP_FAILED)
            status = kelp_fs_error("cannot copy file", path, errno);
    }
    (void)close(copy);
    return status;
}

/* ---- the thread ---- */
static void log_copy(const kelp_file_guard *guard, const kelp_guarded_file *file,
                     kelp_status *take_error) {
    if (guard->logger != NULL && take_error == NULL)
        KELP_LOGF(guard->logger, KELP_LOG_INFO,
                  "'%s' is about to be modified: copied %zu bytes to memory", file->path,
                  file->size_bytes);
    if (guard->logger != NULL && take_error != NULL)
        KELP_LOGF(guard->logger, KELP_LOG_ERROR,
                  "'%s' is about to be modified, and the model that uses it will fail: %s",
                  file->path, kelp_status_message(take_error));
    kelp_status_free(take_error);
}

/* Replaces the mapping of a file that another process waits to open for writing. After a failure,
 * the lease is kept, which delays the writer for /proc/sys/fs/lease-break-time. */
static void copy_if_awaited(kelp_file_guard *guard, kelp_guarded_file *file) {
    if (file->fd < 0 || fcntl(file->fd, F_GETLEASE) == F_RDLCK)
        return;
    void *data = NULL;
    kelp_status *status = map_copy(file->fd, file->path, file->size_bytes, file->data, &data);
    if (status == NULL) {
        KELP_ASSERT(data == file->data);
        end_lease(file->fd);
        file->fd = -1;
        guard->copies++;
    }
    log_copy(guard, file, status);
}

static void *watch(void *userp) {
    kelp_file_guard *guard = userp;
    sigset_t signals;
    int received;
    sigfillset(&signals);
    (void)pthread_sigmask(SIG_BLOCK, &signals, NULL);
    sigemptyset(&signals);
    sigaddset(&signals, SIGIO);
    pthread_mutex_lock(&guard->lock);
    guard->thread_id = (pid_t)syscall(SYS_gettid);
    pthread_cond_broadcast(&guard->started);
    while (!guard->stopping) {
        pthread_mutex_unlock(&guard->lock);
        (void)sigwait(&signals, &received);
        pthread_mutex_lock(&guard->lock);
        for (kelp_guarded_file *file = guard->files; file != NULL; file = file->next)
            copy_if_awaited(guard, file);
    }
    pthread_mutex_unlock(&guard->lock);
    return NULL;
}

/* Returns true if the thread runs. Without it, files are copied. */
static bool start_thread(kelp_file_guard *guard) {
    if (!guard->has_thread)
        guard->has_thread = pthread_create(&guard->thread, NULL, watch, guard) == 0;
    while (guard->has_thread && guard->thread_id == 0)
        pthread_cond_wait(&guard->started, &guard->lock);
    return guard->has_thread;
}

/* ---- lifetime ---- */
kelp_status *kelp_file_guard_create(kelp_allocator allocator, const kelp_logger *logger,
                                    kelp_file_guard **out) {
    kelp_file_guard *guard = NULL;
    KELP_TRY(KELP_NEW(allocator, kelp_file_guard, &guard));
    guard->allocator = allocator;
    guard->logger = logger;
    guard->open = true;
    pthread_mutex_init(&guard->lock, NULL);
    pthread_cond_init(&guard->started, NULL);
    *out = guard;
    return NULL;
}

/* Destroys the guard, which has no owner and no files. */
static void destroy(kelp_file_guard *guard) {
    pthread_mutex_lock(&guard->lock);
    KELP_ASSERT(guard->files == NULL && !guard->open);
    guard->stopping = true;
    pthread_mutex_unlock(&guard->lock);
    if (guard->has_thread) {
        (void)pthread_kill(guard->thread, SIGIO);
        (void)pthread_join(guard->thread, NULL);
    }
    pthread_cond_destroy(&guard->started);
    pthread_mutex_destroy(&guard->lock);
    kelp_free(guard->allocator, guard, sizeof *guard);
}

void kelp_file_guard_close(kelp_file_guard *guard) {
    if (guard == NULL)
        return;
    pthread_mutex_lock(&guard->lock);
    guard->open = false;
    guard->logger = NULL;
    bool last = guard->files == NULL;
    pthread_mutex_unlock(&guard->lock);
    if (last)
        destroy(guard);
}

size_t kelp_file_guard_copies(kelp_file_guard *guard) {
    pthread_mutex_lock(&guard->lock);
    size_t copies = guard->copies;
    pthread_mutex_unlock(&guard->lock);
    return copies;
}

/* ---- files ---- */
/* Sets a lease whose signal goes to the thread. Returns false if there is none, or if the file
 * changed its size before. */
static bool set_lease(const kelp_file_guard *guard, int fd, size_t size_bytes) {
    struct f_owner_ex owner = {.type = F_OWNER_TID, .pid = guard->thread_id};
    struct stat info;
    return fcntl(fd, F_SETOWN_EX, &owner) == 0 && fcntl(fd, F_SETLEASE, F_RDLCK) == 0 &&
           fstat(fd, &info) == 0 && (uintmax_t)info.st_size == size_bytes;
}

/* Maps the open file under a lease, or a copy of it. The guard is locked. */
static kelp_status *map_locked(kelp_file_guard *guard, int fd, kelp_guarded_file *file) {
    void *data = MAP_FAILED;
    bool leased = start_thread(guard) && set_lease(guard, fd, file->size_bytes);
    if (leased)
        data = mmap(NULL, file->size_bytes, PROT_READ, MAP_PRIVATE, fd, 0);
    if (data != MAP_FAILED) {
        file->data = data;
        file->fd = fd;
        return NULL;
    }
    KELP_TRY(map_copy(fd, file->path, file->size_bytes, NULL, &file->data));
    end_lease(fd);
    file->fd = -1;
    guard->copies++;
    if (guard->logger != NULL)
        KELP_LOGF(guard->logger, KELP_LOG_VERBOSE, "'%s' has no lease: copied %zu bytes to memory",
                  file->path, file->size_bytes);
    return NULL;
}

kelp_status *kelp_file_guard_map(kelp_file_guard *guard, const char *path, kelp_mapping *out) {
    kelp_guarded_file *file = NULL;
    size_t size_bytes = 0, length = strlen(path) + 1;
    int fd = -1;
    if (guard == NULL)
        return kelp_fs_map(path, out);
    *out = (kelp_mapping){0};
    KELP_TRY(kelp_fs_open(path, &fd, &size_bytes));
    if (size_bytes == 0) {
        (void)close(fd);
        return NULL;
    }
    kelp_status *status =
        kelp_alloc_zero(guard->allocator, 1, sizeof *file + length, (void **)&file);
    if (status == NULL) {
        memcpy(file->path, path, length);
        file->guard = guard;
        file->size_bytes = size_bytes;
        pthread_mutex_lock(&guard->lock);
        KELP_ASSERT(guard->open);
        status = map_locked(guard, fd, file);
        if (status == NULL) {
            file->next = guard->files;
            guard->files = file;
        }
        pthread_mutex_unlock(&guard->lock);
    }
    if (status != NULL) {
        (void)close(fd);
        kelp_free(guard->allocator, file, sizeof *file + length);
        return status;
    }
    *out = (kelp_mapping){.data = file->data, .size_bytes = size_bytes, .guarded = file};
    return NULL;
}

void kelp_guarded_file_unmap(kelp_guarded_file *file) {
    kelp_file_guard *guard = file->guard;
    pthread_mutex_lock(&guard->lock);
    kelp_guarded_file **link = &guard->files;
    while (*link != file)
        link = &(*link)->next;
    *link = file->next;
    (void)munmap(file->data, file->size_bytes);
    if (file->fd >= 0)
        end_lease(file->fd);
    else
        guard->copies--;
    bool last = guard->files == NULL && !guard->open;
    pthread_mutex_unlock(&guard->lock);
    kelp_free(guard->allocator, file, sizeof *file + strlen(file->path) + 1);
    if (last)
        destroy(guard);
}
