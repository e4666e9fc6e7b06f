/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The log of the process. Without a callback or a file, INFO is written to standard output and
 * other levels to standard error. A line is one write(2). The levels are atomics; a lock guards the
 * file's descriptor and serializes lines.
 */
#include "server/core/log.h"

#include "base/alloc.h"
#include "base/assert.h"
#include "base/clock.h"
#include "server/core/heap.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static struct {
    atomic_bool info, warning, error;
    atomic_int verbosity;
    atomic_int format;
    atomic_bool unescaped;
    pthread_mutex_t file_lock;
    int file; /* -1: standard output and error */
    pthread_mutex_t callback_lock;
    TRITONSERVER_LogCallbackFn_t callback; /* NULL: lines are written */
    void *userp;
} sink = {.info = true,
          .warning = true,
          .error = true,
          .format = KELP_LOG_DEFAULT,
          .file_lock = PTHREAD_MUTEX_INITIALIZER,
          .file = -1,
          .callback_lock = PTHREAD_MUTEX_INITIALIZER};

bool kelp_server_log_enabled(kelp_log_level level) {
    switch (level) {
    case KELP_LOG_ERROR:
        return atomic_load_explicit(&sink.error, memory_order_relaxed);
    case KELP_LOG_WARNING:
        return atomic_load_explicit(&sink.warning, memory_order_relaxed);
    case KELP_LOG_INFO:
        return atomic_load_explicit(&sink.info, memory_order_relaxed);
    case KELP_LOG_VERBOSE:
        return atomic_load_explicit(&sink.verbosity, memory_order_relaxed) > 0;
    }
    return false;
}

static void write_all(int fd, const char *data, size_t length) {
    while (length > 0) {
        ssize_t written = write(fd, data, length);
        if (written < 0 && errno == EINTR)
            continue;
        if (written <= 0)
            return; /* a failure of the log cannot be reported */
        data += written;
        length -= (size_t)written;
    }
}

static pthread_once_t environment_once = PTHREAD_ONCE_INIT;

/* Triton's variable: "0" writes messages as they are, also line breaks that clients sent. */
static void read_environment(void) {
    const char *value = getenv("TRITON_SERVER_ESCAPE_LOG_MESSAGES");
    atomic_store(&sink.unescaped, value != NULL && strcmp(value, "0") == 0);
}

static TRITONSERVER_LogLevel to_triton(kelp_log_level level) {
    switch (level) {
    case KELP_LOG_ERROR:
        return TRITONSERVER_LOG_ERROR;
    case KELP_LOG_WARNING:
        return TRITONSERVER_LOG_WARN;
    case KELP_LOG_INFO:
        return TRITONSERVER_LOG_INFO;
    case KELP_LOG_VERBOSE:
        break;
    }
    return TRITONSERVER_LOG_VERBOSE;
}

/* Passes a message to the callback. Returns false if there is none. The lock is released before the
 * call, which takes as long as the application wants. */
static bool call_back(kelp_log_level level, const char *file, int line, const char *text) {
    pthread_mutex_lock(&sink.callback_lock);
    TRITONSERVER_LogCallbackFn_t callback = sink.callback;
    void *userp = sink.userp;
    pthread_mutex_unlock(&sink.callback_lock);
    if (callback == NULL)
        return false;
    const char *slash = strrchr(file, '/');
    callback(to_triton(level), slash != NULL ? slash + 1 : file, line, kelp_wall_now_ns() / 1000,
             text, userp);
    return true;
}

/* Writes a message, whose text is terminated. */
static void write_line(void *userp, kelp_log_level level, const char *file, int line,
                       const char *text, size_t length) {
    (void)userp;
    if (call_back(level, file, line, text))
        return;
    char small[1024];
    char *buffer = small;
    kelp_log_format format = (kelp_log_format)atomic_load(&sink.format);
    pthread_once(&environment_once, read_environment);
    bool escape = !atomic_load_explicit(&sink.unescaped, memory_order_relaxed);
    size_t needed =
        kelp_log_format_line(format, escape, level, file, line, text, length, small, sizeof small);
    kelp_allocator heap = kelp_process_allocator();
    if (needed >= sizeof small) {
        void *large = NULL;
        kelp_status *status = kelp_alloc(heap, needed + 1, &large);
        if (status != NULL) {
            kelp_status_free(status);
            needed = sizeof small - 1;
        } else {
            buffer = large;
            kelp_log_format_line(format, escape, level, file, line, text, length, buffer,
                                 needed + 1);
        }
    }
    pthread_mutex_lock(&sink.file_lock);
    int fd = sink.file >= 0 ? sink.file : level == KELP_LOG_INFO ? STDOUT_FILENO : STDERR_FILENO;
    write_all(fd, buffer, needed);
    pthread_mutex_unlock(&sink.file_lock);
    if (buffer != small)
        kelp_free(heap, buffer, needed + 1);
}

const kelp_logger *kelp_server_logger(void) {
    /* Callers have checked the sink's levels, so that the logger accepts every level. */
    static const kelp_logger logger = {
        .fn = write_line, .level = KELP_LOG_VERBOSE, .verbosity = 1 << 30};
    return &logger;
}

void kelp_server_log_write(kelp_log_level level, const char *file, int line, const char *text) {
    if (kelp_server_log_enabled(level))
        write_line(NULL, level, file, line, text, strlen(text));
}

void kelp_server_log_enable(kelp_log_level level, bool enabled) {
    switch (level) {
    case KELP_LOG_ERROR:
        atomic_store(&sink.error, enabled);
        break;
    case KELP_LOG_WARNING:
        atomic_store(&sink.warning, enabled);
        break;
    case KELP_LOG_INFO:
        atomic_store(&sink.info, enabled);
        break;
    case KELP_LOG_VERBOSE:
        atomic_store(&sink.verbosity, enabled);
        break;
    }
}

void kelp_server_log_set_verbosity(int verbosity) {
    atomic_store(&sink.verbosity, verbosity < 0 ? 0 : verbosity);
}

void kelp_server_log_set_format(kelp_log_format format) {
    KELP_ASSERT((unsigned)format <= KELP_LOG_JSON);
    atomic_store(&sink.format, (int)format);
}

kelp_status *kelp_server_log_open(const char *path) {
    int fd = -1;
    if (path[0]) {
        fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
        if (fd < 0) {
            char text[128] = "";
            const char *reason = strerror_r(errno, text, sizeof text);
            return KELP_ERROR(KELP_INVALID_ARGUMENT, "cannot open log file '%s': %s", path, reason);
        }
    }
    pthread_mutex_lock(&sink.file_lock);
    int old = sink.file;
    sink.file = fd;
    pthread_mutex_unlock(&sink.file_lock);
    if (old >= 0)
        close(old);
    return NULL;
}

void kelp_server_log_set_callback(TRITONSERVER_LogCallbackFn_t callback, void *userp) {
    pthread_mutex_lock(&sink.callback_lock);
    sink.callback = callback;
    sink.userp = userp;
    pthread_mutex_unlock(&sink.callback_lock);
}

void kelp_server_log_status(const char *what, kelp_status *take_status) {
    KELP_ASSERT(what != NULL);
    if (take_status == NULL)
        return;
    char text[1024];
    kelp_status_format(take_status, text, sizeof text);
    KELP_SERVER_LOG(KELP_LOG_ERROR, "%s: %s", what, text);
    kelp_status_free(take_status);
}
