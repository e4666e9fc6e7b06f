/* SPDX-License-Identifier: Apache-2.0 */
/* The access log of a serving process, and the metric of the lines that it dropped. */
#ifndef KELP_CLI_SERVE_ACCESS_LOG_H_
#define KELP_CLI_SERVE_ACCESS_LOG_H_

#include "frontends/request_log/log.h"

#include <triton/core/tritonserver.h>

typedef struct kelp_serve_access_log {
    kelp_request_log *log; /* NULL: none */
    TRITONSERVER_MetricFamily *family;
    TRITONSERVER_Metric *dropped;
} kelp_serve_access_log;

/* Opens the log. On failure, deinit applies. `inout` is zeroed; the strings are borrowed. */
kelp_status *kelp_serve_access_log_init(kelp_serve_access_log *inout, const char *path,
                                        const kelp_logger *logger) KELP_MUST_USE;
/* Writes the remaining lines. If models still hold requests (`held`), the log is not freed. */
void kelp_serve_access_log_deinit(kelp_serve_access_log *access_log, bool held);

#endif
