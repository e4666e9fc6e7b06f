/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The process's log, as Triton's API defines it: one sink for all servers of the process, changed
 * at run time through the option setters. Any thread; asking whether a level is on costs one
 * relaxed load.
 */
#ifndef KELP_SERVER_CORE_LOG_H_
#define KELP_SERVER_CORE_LOG_H_

#include "base/log.h"

/* A logger that writes to the process's sink; for rooms that take a kelp_logger. */
const kelp_logger *kelp_server_logger(void);
bool kelp_server_log_enabled(kelp_log_level level);
/* 0 when verbose messages are off. */
int kelp_server_log_verbosity(void);

#define KELP_SERVER_LOG(level, ...)                                                   \
    do {                                                                              \
        if (kelp_server_log_enabled(level))                                           \
            kelp_log(kelp_server_logger(), (level), __FILE__, __LINE__, __VA_ARGS__); \
    } while (0)

/* Logs a failure that has nobody to be handed to, and frees it; NULL is fine. */
void kelp_server_log_status(const char *what, kelp_status *take_status);

#endif
