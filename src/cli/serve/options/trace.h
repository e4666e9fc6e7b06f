/* SPDX-License-Identifier: Apache-2.0 */
/* Options of `kelp serve` for tracing. */
#ifndef KELP_CLI_SERVE_OPTIONS_TRACE_H_
#define KELP_CLI_SERVE_OPTIONS_TRACE_H_

#include "base/arena.h"
#include "cli/args.h"
#include "frontends/trace/tracing.h"

typedef struct kelp_serve_trace {
    kelp_arg_list config; /* "[MODE,]SETTING=VALUE" */
    const char *file;
    kelp_arg_list levels;
    int64_t rate; /* -1: not given */
    int64_t count, log_frequency;
    bool from_environment;    /* variables OTEL_* can turn tracing on */
    const char *service_name; /* service.name, unless the user sets it */
} kelp_serve_trace;

/* Settings of the mode opentelemetry on the command line. Numbers are -1 if they are not given. */
typedef struct kelp_serve_otel_settings {
    const char *url;        /* or NULL */
    const char **resources; /* "KEY=VALUE" */
    size_t resource_count;
    int64_t max_queue, delay_ms, max_batch;
} kelp_serve_otel_settings;

/* The settings that the options select. */
typedef struct kelp_serve_trace_values {
    kelp_arena arena; /* of all text */
    kelp_tracing_options options;
    kelp_otlp_options otlp;        /* of the mode opentelemetry */
    kelp_serve_otel_settings otel; /* as given */
} kelp_serve_trace_values;

extern const kelp_arg_table kelp_serve_trace_table;
void kelp_serve_trace_defaults(kelp_serve_trace *o);
/* Parses the settings and the environment. INVALID_ARGUMENT names the option or the variable. Warns
 * on standard error about options that have no effect. `out` must not be moved; deinit applies also
 * after a failure. */
kelp_status *kelp_serve_trace_parse(const kelp_serve_trace *o,
                                    kelp_serve_trace_values *out) KELP_MUST_USE;
void kelp_serve_trace_deinit(kelp_serve_trace_values *values); /* zeroed values are allowed */

#endif
