/* SPDX-License-Identifier: Apache-2.0 */
/* The variables of the environment for traces of the mode opentelemetry. Source: OpenTelemetry
 * Specification, "Environment Variable Specification" and "OpenTelemetry Protocol Exporter". */
#ifndef KELP_CLI_SERVE_OTEL_ENVIRONMENT_H_
#define KELP_CLI_SERVE_OTEL_ENVIRONMENT_H_

#include "base/arena.h"
#include "frontends/trace/tracing.h"

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

/* Returns true if the environment selects the mode opentelemetry. */
bool kelp_serve_otlp_is_wanted(void);
/* Fills in the sampler. *out_given is false if the environment does not set one. */
kelp_status *kelp_serve_otlp_sampler(kelp_trace_sampler *out, bool *out_given) KELP_MUST_USE;
/* Fills in `otlp` and the shown settings, from `otel` and the environment. */
kelp_status *kelp_serve_otlp_apply(const char *service_name,
                                   kelp_serve_trace_values *inout) KELP_MUST_USE;

#endif
