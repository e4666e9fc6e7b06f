/* SPDX-License-Identifier: Apache-2.0 */
/* Options of `kelp serve` for tracing. */
#ifndef KELP_CLI_SERVE_OPTIONS_TRACE_H_
#define KELP_CLI_SERVE_OPTIONS_TRACE_H_

#include "cli/args.h"

#include <kelp/status.h>
#include <triton/core/tritonserver.h>

typedef struct kelp_serve_trace {
    kelp_arg_list config; /* "[MODE,]SETTING=VALUE" */
    const char *file;
    kelp_arg_list levels;
    int64_t rate, count, log_frequency;
} kelp_serve_trace;

/* The settings that the options select. */
typedef struct kelp_serve_trace_values {
    const char *file; /* "" for none */
    unsigned level;   /* bits of TRITONSERVER_TRACE_LEVEL_* */
    int64_t rate, count, log_frequency;
} kelp_serve_trace_values;

extern const kelp_arg_table kelp_serve_trace_table;
void kelp_serve_trace_defaults(kelp_serve_trace *o);
/* Parses the settings. INVALID_ARGUMENT names the option. */
kelp_status *kelp_serve_trace_parse(const kelp_serve_trace *o,
                                    kelp_serve_trace_values *out) KELP_MUST_USE;

#endif
