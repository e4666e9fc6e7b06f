/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The ring: a record is a header, the length of its line, and the line, in units of 8 bytes.
 * A thread reserves a record by advancing `head`, copies the line, and stores the header last. The
 * writer takes records whose header is not 0, and clears their bytes before it advances `tail`,
 * because any unit may become a header.
 */
#include "frontends/request_log/log.h"

#include "base/alloc.h"
#include "base/assert.h"
#include "base/checked.h"
#include "base/clock.h"
#include "base/sync/thread.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdatomic.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define DEFAULT_CAPACITY_BYTES ((size_t)4 * 1024 * 1024)
#define UNIT_BYTES 8
#define BATCH_BYTES ((size_t)64 * 1024)
#define PIPE_STEP_BYTES ((size_t)4096) /* does not block if the pipe is writable */
#define NAP_NS 10000000                /* lines that arrive together are written together */
#define CHECK_NS UINT64_C(1000000000)
#define MESSAGE_NS UINT64_C(10000000000)
#define END_MS 1000

struct kelp_request_log {
    kelp_allocator allocator;
    const char *path;
    const kelp_logger *logger;
    void (*on_dropped)(void *userp, uint64_t lines);
    void *userp;
    char *ring;
    size_t capacity_bytes;
    _Atomic uint64_t head; /* the end of the reserved records */
    _Atomic uint64_t tail; /* the begin of the first record */
    _Atomic uint64_t dropped;
    atomic_bool sleeping; /* the writer waits for `wake` */
    atomic_bool stopping;
    sem_t wake;
    pthread_t thread;
    /* of the thread */
    int fd;
    bool is_pipe;   /* or a terminal or socket, which may block */
    bool gave_up;   /* the log is stopping, and nothing reads the pipe */
    bool is_broken; /* the last line of the file is incomplete */
    uint64_t checked_ns, message_ns;
    uint64_t unreported; /* dropped lines since the last message */
    char *batch;
    size_t batch_bytes;
};

/* ---- the ring ---- */

static _Atomic uint32_t *header_at(const kelp_request_log *log, uint64_t position) {
    return (_Atomic uint32_t *)(void *)(log->ring + (position & (log->capacity_bytes - 1)));
}

static uint64_t record_bytes(size_t length) {
    return UNIT_BYTES + ((uint64_t)length + UNIT_BYTES - 1) / UNIT_BYTES * UNIT_BYTES;
}

/* Reserves a record. Returns false if the ring is full. */
static bool reserve(kelp_request_log *log, uint64_t bytes, uint64_t *out_position) {
    uint64_t head = atomic_load_explicit(&log->head, memory_order_relaxed);
    do {
        uint64_t tail = atomic_load_explicit(&log->tail, memory_order_acquire);
        /* If other threads and the writer have passed `head`, the exchange loads it again. */
        if (head >= tail && head + bytes - tail > log->capacity_bytes)
            return false;
    } while (!atomic_compare_exchange_weak_explicit(&log->head, &head, head + bytes,
                                                    memory_order_relaxed, memory_order_relaxed));
    *out_position = head;
    return true;
}

void kelp_request_log_put(kelp_request_log *log, kelp_str line) {
    uint64_t position;
    if (line.length == 0 || line.length > BATCH_BYTES ||
        !reserve(log, record_bytes(line.length), &position)) {
        atomic_fetch_add_explicit(&log->dropped, 1, memory_order_relaxed);
        return;
    }
    size_t begin = (size_t)((position + UNIT_BYTES) & (log->capacity_bytes - 1));
    size_t first = KELP_MIN(line.length, log->capacity_bytes - begin);
    memcpy(log->ring + begin, line.data, first);
    memcpy(log->ring, line.data + first, line.length - first);
    /* The writer sees the header, or this thread sees that it sleeps. */
    atomic_store(header_at(log, position), (uint32_t)line.length);
    if (atomic_load(&log->sleeping) && atomic_exchange(&log->sleeping, false))
        sem_post(&log->wake);
}

/* Moves the next line to the batch. Returns false if there is none, or no space for it. */
static bool take_line(kelp_request_log *log) {
    uint64_t tail = atomic_load_explicit(&log->tail, memory_order_relaxed);
    size_t length = atomic_load(header_at(log, tail));
    if (length == 0 || length > BATCH_BYTES - log->batch_bytes)
        return false;
    uint64_t bytes = record_bytes(length);
    size_t begin = (size_t)((tail + UNIT_BYTES) & (log->capacity_bytes - 1));
    size_t first = KELP_MIN(length, log->capacity_bytes - begin);
    memcpy(log->batch + log->batch_bytes, log->ring + begin, first);
    memcpy(log->batch + log->batch_bytes + first, log->ring, length - first);
    log->batch_bytes += length;
    size_t record = (size_t)(tail & (log->capacity_bytes - 1));
    size_t before_end = (size_t)KELP_MIN(bytes, log->capacity_bytes - record);
    memset(log->ring + record, 0, before_end);
    memset(log->ring, 0, (size_t)bytes - before_end);
    atomic_store_explicit(&log->tail, tail + bytes, memory_order_release);
    return true;
}

/* ---- the file ---- */

static kelp_status *open_file(const char *path, int *out) {
    char text[128] = "";
    if (!strcmp(path, "-")) {
        *out = STDOUT_FILENO;
        return NULL;
    }
    /* A pipe without a reader must not block. */
    *out = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NONBLOCK, 0644);
    if (*out >= 0)
        return NULL;
    const char *reason = strerror_r(errno, text, sizeof text);
    return KELP_ERROR(KELP_INVALID_ARGUMENT, "cannot open access log '%s': %s", path, reason);
}

static void set_file(kelp_request_log *log, int take_fd) {
    struct stat info;
    if (log->fd > STDERR_FILENO)
        close(log->fd);
    log->fd = take_fd;
    log->is_pipe = fstat(take_fd, &info) != 0 || !S_ISREG(info.st_mode);
    log->is_broken = false;
}

/* Opens the file again if another one, or none, has its path. */
static kelp_status *check_file(kelp_request_log *log, uint64_t now_ns) {
    struct stat open_info, info;
    if (log->fd <= STDERR_FILENO || log->is_pipe || now_ns - log->checked_ns < CHECK_NS)
        return NULL;
    log->checked_ns = now_ns;
    if (fstat(log->fd, &open_info) == 0 && stat(log->path, &info) == 0 &&
        info.st_ino == open_info.st_ino && info.st_dev == open_info.st_dev)
        return NULL;
    int fd;
    KELP_TRY(open_file(log->path, &fd));
    set_file(log, fd);
    return NULL;
}

/* Waits until the file is writable. Returns false if the log is stopping and it is not. */
static bool wait_writable(kelp_request_log *log) {
    struct pollfd file = {.fd = log->fd, .events = POLLOUT};
    while (log->is_pipe && !log->gave_up) {
        bool stopping = atomic_load(&log->stopping);
        if (poll(&file, 1, END_MS) > 0)
            return true;
        log->gave_up = stopping;
    }
    return !log->gave_up;
}

/* Writes bytes, and returns the number of those that were written, with errno. */
static size_t write_bytes(kelp_request_log *log, const char *data, size_t length) {
    size_t done = 0;
    errno = 0;
    while (done < length && wait_writable(log)) {
        size_t step = log->is_pipe ? KELP_MIN(length - done, PIPE_STEP_BYTES) : length - done;
        ssize_t n = write(log->fd, data + done, step);
        if (n < 0 && errno != EINTR && errno != EAGAIN)
            break;
        done += n > 0 ? (size_t)n : 0;
    }
    return done;
}

static uint64_t count_lines(const char *data, size_t length) {
    uint64_t count = 0;
    for (size_t i = 0; i < length; i++)
        count += data[i] == '\n';
    return count;
}

/* ---- the thread ---- */

/* Returns true if the latest message is old enough for another one, which the caller writes. */
static bool may_log(kelp_request_log *log) {
    uint64_t now_ns = kelp_now_ns();
    if (log->message_ns != 0 && now_ns - log->message_ns < MESSAGE_NS)
        return false;
    log->message_ns = now_ns;
    return true;
}

/* Reports dropped lines, to the callback at once, in the log sometimes. */
static void report(kelp_request_log *log, uint64_t lost, const char *reason) {
    char text[160];
    uint64_t dropped = lost + atomic_exchange_explicit(&log->dropped, 0, memory_order_relaxed);
    if (dropped > 0 && log->on_dropped != NULL)
        log->on_dropped(log->userp, dropped);
    log->unreported += dropped;
    if (log->unreported == 0 || !may_log(log))
        return;
    snprintf(text, sizeof text, "%s", reason != NULL ? reason : "it is written too slowly");
    KELP_LOGF(log->logger, KELP_LOG_WARNING, "access log '%s': dropped %llu lines: %s", log->path,
              (unsigned long long)log->unreported, text);
    log->unreported = 0;
}

/* Writes the batch. */
static void write_batch(kelp_request_log *log) {
    char text[128] = "";
    const char *reason = NULL;
    uint64_t lost = 0;
    kelp_status *status = check_file(log, kelp_now_ns());
    if (status != NULL && may_log(log)) /* the previous file remains */
        KELP_LOGF(log->logger, KELP_LOG_WARNING, "%s", kelp_status_message(status));
    kelp_status_free(status);
    bool begins = !log->is_broken || write_bytes(log, "\n", 1) == 1;
    size_t written = begins ? write_bytes(log, log->batch, log->batch_bytes) : 0;
    if (written < log->batch_bytes) {
        reason = strerror_r(errno != 0 ? errno : EAGAIN, text, sizeof text);
        lost = count_lines(log->batch + written, log->batch_bytes - written);
    }
    if (begins)
        log->is_broken = written > 0 ? log->batch[written - 1] != '\n' : false;
    log->batch_bytes = 0;
    report(log, lost, reason);
}

/* Waits for lines. Those that come soon after the first one are written with it. */
static void wait_for_lines(kelp_request_log *log) {
    const struct timespec nap = {.tv_nsec = NAP_NS};
    atomic_store(&log->sleeping, true);
    uint64_t tail = atomic_load_explicit(&log->tail, memory_order_relaxed);
    if (atomic_load(header_at(log, tail)) != 0 || atomic_load(&log->stopping))
        return;
    while (sem_wait(&log->wake) != 0 && errno == EINTR) {
    }
    if (!atomic_load(&log->stopping))
        nanosleep(&nap, NULL);
}

static void *write_main(void *userp) {
    kelp_request_log *log = userp;
    for (;;) {
        bool stopping = atomic_load(&log->stopping);
        while (take_line(log)) {
        }
        if (log->batch_bytes > 0)
            write_batch(log);
        else if (stopping)
            break;
        else
            wait_for_lines(log);
    }
    report(log, 0, NULL);
    return NULL;
}

/* ---- creation ---- */

static void log_free(kelp_request_log *log) {
    if (log->fd > STDERR_FILENO)
        close(log->fd);
    sem_destroy(&log->wake);
    kelp_free(log->allocator, log->ring, log->capacity_bytes);
    kelp_free(log->allocator, log->batch, BATCH_BYTES);
    kelp_free(log->allocator, log, sizeof *log);
}

static kelp_status *start(kelp_request_log *log) {
    int fd;
    KELP_TRY(kelp_alloc_zero(log->allocator, log->capacity_bytes, 1, (void **)&log->ring));
    KELP_TRY(kelp_alloc(log->allocator, BATCH_BYTES, (void **)&log->batch));
    KELP_TRY(open_file(log->path, &fd));
    set_file(log, fd);
    return kelp_thread_start(&log->thread, "kelp-access-log", write_main, log);
}

kelp_status *kelp_request_log_check(const char *path) {
    int fd;
    KELP_TRY(open_file(path, &fd));
    if (fd > STDERR_FILENO)
        close(fd);
    return NULL;
}

kelp_status *kelp_request_log_create(const kelp_request_log_options *options,
                                     kelp_request_log **out) {
    kelp_allocator allocator =
        options->allocator.realloc != NULL ? options->allocator : kelp_allocator_system();
    size_t capacity =
        options->capacity_bytes != 0 ? options->capacity_bytes : DEFAULT_CAPACITY_BYTES;
    kelp_request_log *log;
    KELP_ASSERT(capacity >= 4096 && (capacity & (capacity - 1)) == 0);
    KELP_TRY(KELP_NEW(allocator, kelp_request_log, &log));
    log->allocator = allocator;
    log->path = options->path;
    log->logger = options->logger;
    log->on_dropped = options->on_dropped;
    log->userp = options->userp;
    log->capacity_bytes = capacity;
    log->fd = -1;
    sem_init(&log->wake, 0, 0);
    kelp_status *status = start(log);
    if (status != NULL) {
        log_free(log);
        return status;
    }
    *out = log;
    return NULL;
}

void kelp_request_log_stop(kelp_request_log *log) {
    KELP_ASSERT(!log->stopping);
    atomic_store(&log->stopping, true);
    sem_post(&log->wake);
    (void)pthread_join(log->thread, NULL);
}

void kelp_request_log_destroy(kelp_request_log *log) {
    if (log == NULL)
        return;
    if (!log->stopping)
        kelp_request_log_stop(log);
    log_free(log);
}
