/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Logging to a sink. A logger is a value held by a root object; libkelp has no global logger.
 * Thread safety: a line is written with one write(2), so that lines of several threads do not mix.
 */
#ifndef KELP_BASE_LOG_H_
#define KELP_BASE_LOG_H_

#include <kelp/status.h>

typedef enum kelp_log_level {
    KELP_LOG_ERROR = 0,
    KELP_LOG_WARNING = 1,
    KELP_LOG_INFO = 2,
    KELP_LOG_VERBOSE = 3
} kelp_log_level;

typedef enum kelp_log_format {
    KELP_LOG_DEFAULT =
        0, /* "I1121 05:04:01.123456 1234 file.c:12] \"message\"" , Triton's default */
    KELP_LOG_ISO8601 = 1, /* "2026-11-21T05:04:01Z I 1234 file.c:12] \"message\"" */
    KELP_LOG_JSON =
        2 /* {"time":"…","level":"info","file":"…","line":12,"thread":1234,"message":"…"} */
} kelp_log_format;

/* Callback for one message, not terminated by a newline. Called from any thread. */
typedef void (*kelp_log_fn)(void *userp, kelp_log_level level, const char *file, int line,
                            const char *text, size_t length);

typedef struct kelp_logger {
    kelp_log_fn fn; /* NULL drops everything */
    void *userp;
    kelp_log_level level; /* highest level passed on */
    int verbosity;        /* verbosity for KELP_LOG_VERBOSE */
} kelp_logger;

void kelp_log(const kelp_logger *logger, kelp_log_level level, const char *file, int line,
              const char *format, ...) KELP_PRINTF(5, 6);
/* Formats one line with a newline. The text is escaped in JSON, and in the other formats if
 * `escape` is true and it is not a table, which starts with a newline. Returns the length of the
 * whole line, as snprintf does. */
size_t kelp_log_format_line(kelp_log_format format, bool escape, kelp_log_level level,
                            const char *file, int line, const char *text, size_t length,
                            char *buffer, size_t capacity);

#define KELP_LOGF(logger, level, ...) kelp_log((logger), (level), __FILE__, __LINE__, __VA_ARGS__)

#endif
