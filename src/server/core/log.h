/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The log of the process, as Triton's API defines it: one sink for all servers of the process,
 * changed at run time through the option setters. Thread-safe; testing a level costs one relaxed
 * load.
 */
#ifndef KELP_SERVER_CORE_LOG_H_
#define KELP_SERVER_CORE_LOG_H_

#include "base/log.h"

#include <triton/core/tritonserver.h>

/* Returns a logger that writes to the process's sink, for code that takes a kelp_logger. */
const kelp_logger *kelp_server_logger(void);
/* Returns true if messages of the level are written. */
bool kelp_server_log_enabled(kelp_log_level level);

/* Writes one message if its level is enabled. */
void kelp_server_log_write(kelp_log_level level, const char *file, int line, const char *text);

/* Enables or disables a level. */
void kelp_server_log_enable(kelp_log_level level, bool enabled);
/* Sets the verbosity; 0 or less disables verbose messages. */
void kelp_server_log_set_verbosity(int verbosity);
/* Sets the format of lines. */
void kelp_server_log_set_format(kelp_log_format format);
/* Redirects the log to the end of a file; "" selects standard output and standard error.
 * INVALID_ARGUMENT, without effect, if the file cannot be opened. */
kelp_status *kelp_server_log_open(const char *path) KELP_MUST_USE;
/* Passes messages to a function instead of the file or the standard streams; NULL ends that. A
 * thread that is logging may still call the previous function. */
void kelp_server_log_set_callback(TRITONSERVER_LogCallbackFn_t callback, void *userp);

/* Formats and writes a message if its level is enabled. */
#define KELP_SERVER_LOG(level, ...)                                                   \
    do {                                                                              \
        if (kelp_server_log_enabled(level))                                           \
            kelp_log(kelp_server_logger(), (level), __FILE__, __LINE__, __VA_ARGS__); \
    } while (0)

/* Logs and frees a failure that cannot be returned to a caller. NULL is ignored. */
void kelp_server_log_status(const char *what, kelp_status *take_status);

#endif
