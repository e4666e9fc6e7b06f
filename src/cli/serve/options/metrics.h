/* SPDX-License-Identifier: Apache-2.0 */
/* Options of `kelp serve` for metrics. */
#ifndef KELP_CLI_SERVE_OPTIONS_METRICS_H_
#define KELP_CLI_SERVE_OPTIONS_METRICS_H_

#include "cli/args.h"

#include <triton/core/tritonserver.h>

typedef struct kelp_serve_metrics {
    bool allow_metrics, allow_cpu_metrics;
    const char *address; /* NULL: that of HTTP */
    int64_t port;        /* -1: no port of their own */
    bool histograms;     /* enables histogram_latencies, unless metrics_config sets it */
    kelp_arg_list metrics_config;
} kelp_serve_metrics;

extern const kelp_arg_table kelp_serve_metrics_table;
void kelp_serve_metrics_defaults(kelp_serve_metrics *o);
/* Sets the options of the server. INVALID_ARGUMENT names the option. */
kelp_status *kelp_serve_metrics_apply(const kelp_serve_metrics *o,
                                      TRITONSERVER_ServerOptions *options) KELP_MUST_USE;

#endif
