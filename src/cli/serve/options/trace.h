/* SPDX-License-Identifier: Apache-2.0 */
/* Options of `kelp serve` for tracing. */
#ifndef KELP_CLI_SERVE_OPTIONS_TRACE_H_
#define KELP_CLI_SERVE_OPTIONS_TRACE_H_

#include "cli/args.h"
#include "cli/serve/otel/environment.h"

typedef struct kelp_serve_trace {
    kelp_arg_list config; /* "[MODE,]SETTING=VALUE" */
    const char *file;
    kelp_arg_list levels;
    int64_t rate; /* -1: not given */
    int64_t count, log_frequency;
    bool from_environment;    /* variables OTEL_* can turn tracing on */
    const char *service_name; /* service.name, unless the user sets it */
} kelp_serve_trace;

extern const kelp_arg_table kelp_serve_trace_table;
void kelp_serve_trace_defaults(kelp_serve_trace *o);
/* Parses the settings and the environment. INVALID_ARGUMENT names the option or the variable. Warns
 * on standard error about options that have no effect. `out` must not be moved; deinit applies also
 * after a failure. */
kelp_status *kelp_serve_trace_parse(const kelp_serve_trace *o,
                                    kelp_serve_trace_values *out) KELP_MUST_USE;
void kelp_serve_trace_deinit(kelp_serve_trace_values *values); /* zeroed values are allowed */

#endif
