/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The log of the process. INFO goes to standard output and the rest to standard error, unless a
 * file is set. A line is one write(2). The switches are atomics; the file's descriptor changes
 * under a lock that writers to a file share.
 */
#include "base/checked.h"
#include "server/core/values.h"
#include "server/core/log.h"
#include "server/core/options.h"

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
    pthread_mutex_t file_lock;
    int file; /* -1: standard output and error */
} sink = {.info = true,
          .warning = true,
          .error = true,
          .format = KELP_LOG_DEFAULT,
          .file_lock = PTHREAD_MUTEX_INITIALIZER,
          .file = -1};

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

int kelp_server_log_verbosity(void) {
    return atomic_load_explicit(&sink.verbosity, memory_order_relaxed);
}

static void write_all(int fd, const char *data, size_t length) {
    while (length > 0) {
        ssize_t written = write(fd, data, length);
        if (written < 0 && errno == EINTR)
            continue;
        if (written <= 0)
            return; /* a log that cannot be written has nowhere to say so */
        data += written;
        length -= (size_t)written;
    }
}

static void write_line(void *userp, kelp_log_level level, const char *file, int line,
                       const char *text, size_t length) {
    (void)userp;
    char small[1024];
    char *buffer = small;
    kelp_log_format format = (kelp_log_format)atomic_load(&sink.format);
    size_t needed =
        kelp_log_format_line(format, level, file, line, text, length, small, sizeof small);
    kelp_allocator heap = kelp_allocator_system();
    if (needed >= sizeof small) {
        void *large = NULL;
        kelp_status *status = kelp_alloc(heap, needed + 1, &large);
        if (status) {
            kelp_status_free(status);
            needed = sizeof small - 1;
        } else {
            buffer = large;
            kelp_log_format_line(format, level, file, line, text, length, buffer, needed + 1);
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
    /* The switches above decide, so the logger itself lets everything through. */
    static const kelp_logger logger = {
        .fn = write_line, .level = KELP_LOG_VERBOSE, .verbosity = 1 << 30};
    return &logger;
}

void kelp_server_log_status(const char *what, kelp_status *take_status) {
    if (!take_status)
        return;
    char text[1024];
    kelp_status_format(take_status, text, sizeof text);
    KELP_SERVER_LOG(KELP_LOG_ERROR, "%s: %s", what, text);
    kelp_status_free(take_status);
}

static bool from_triton(TRITONSERVER_LogLevel level, kelp_log_level *out) {
    switch (level) {
    case TRITONSERVER_LOG_INFO:
        *out = KELP_LOG_INFO;
        return true;
    case TRITONSERVER_LOG_WARN:
        *out = KELP_LOG_WARNING;
        return true;
    case TRITONSERVER_LOG_ERROR:
        *out = KELP_LOG_ERROR;
        return true;
    case TRITONSERVER_LOG_VERBOSE:
        *out = KELP_LOG_VERBOSE;
        return true;
    }
    return false;
}

bool TRITONSERVER_LogIsEnabled(TRITONSERVER_LogLevel level) {
    kelp_log_level ours;
    return from_triton(level, &ours) && kelp_server_log_enabled(ours);
}

TRITONSERVER_Error *TRITONSERVER_LogMessage(TRITONSERVER_LogLevel level, const char *filename,
                                            const int line, const char *msg) {
    kelp_log_level ours;
    if (!msg)
        return kelp_abi_null(__func__, "msg");
    if (!from_triton(level, &ours))
        return kelp_to_error(
            KELP_ERROR(KELP_INVALID_ARGUMENT, "unknown log level '%d'", (int)level));
    if (kelp_server_log_enabled(ours))
        write_line(NULL, ours, filename ? filename : "", line, msg, strlen(msg));
    return NULL;
}

/* ---- setters; `options` may be NULL in all of them, because the log is the process's ---- */

static void set_text_option(TRITONSERVER_ServerOptions *options, const char *value) {
    if (options)
        ((kelp_server_options *)options)->log_to_file = value[0] != '\0';
}

TRITONSERVER_Error *TRITONSERVER_ServerOptionsSetLogFile(TRITONSERVER_ServerOptions *options,
                                                         const char *file) {
    if (!file)
        return kelp_abi_null(__func__, "file");
    int fd = -1;
    if (file[0]) {
        fd = open(file, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
        if (fd < 0) {
            char text[128] = "";
            const char *reason = strerror_r(errno, text, sizeof text);
            return kelp_to_error(
                KELP_ERROR(KELP_INVALID_ARGUMENT, "cannot open log file '%s': %s", file, reason));
        }
    }
    pthread_mutex_lock(&sink.file_lock);
    int old = sink.file;
    sink.file = fd;
    pthread_mutex_unlock(&sink.file_lock);
    if (old >= 0)
        close(old);
    set_text_option(options, file);
    return NULL;
}

TRITONSERVER_Error *TRITONSERVER_ServerOptionsSetLogInfo(TRITONSERVER_ServerOptions *options,
                                                         bool log) {
    (void)options;
    atomic_store(&sink.info, log);
    return NULL;
}

TRITONSERVER_Error *TRITONSERVER_ServerOptionsSetLogWarn(TRITONSERVER_ServerOptions *options,
                                                         bool log) {
    (void)options;
    atomic_store(&sink.warning, log);
    return NULL;
}

TRITONSERVER_Error *TRITONSERVER_ServerOptionsSetLogError(TRITONSERVER_ServerOptions *options,
                                                          bool log) {
    (void)options;
    atomic_store(&sink.error, log);
    return NULL;
}

TRITONSERVER_Error *TRITONSERVER_ServerOptionsSetLogFormat(TRITONSERVER_ServerOptions *options,
                                                           const TRITONSERVER_LogFormat format) {
    (void)options;
    /* 2, lines of JSON, is Kelp's own. */
    if ((unsigned)format > KELP_LOG_JSON)
        return kelp_to_error(KELP_ERROR(KELP_INVALID_ARGUMENT,
                                        "unknown log format '%d': expected 0 (default), 1 "
                                        "(ISO8601) or 2 (JSON lines)",
                                        (int)format));
    atomic_store(&sink.format, (int)format);
    return NULL;
}

TRITONSERVER_Error *TRITONSERVER_ServerOptionsSetLogVerbose(TRITONSERVER_ServerOptions *options,
                                                            int level) {
    (void)options;
    atomic_store(&sink.verbosity, level < 0 ? 0 : level);
    return NULL;
}
