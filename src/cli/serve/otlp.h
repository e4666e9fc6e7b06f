/* SPDX-License-Identifier: Apache-2.0 */
/* The variables of the environment for traces of the mode opentelemetry. Source: OpenTelemetry
 * Specification, "Environment Variable Specification" and "OpenTelemetry Protocol Exporter". */
#ifndef KELP_CLI_SERVE_OTLP_H_
#define KELP_CLI_SERVE_OTLP_H_

#include "cli/serve/options/trace.h"

/* Returns true if the environment asks for the export of traces. */
bool kelp_serve_otlp_is_wanted(void);
/* Fills in the sampler. *out_given is false if the environment does not set one. */
kelp_status *kelp_serve_otlp_sampler(kelp_trace_sampler *out, bool *out_given) KELP_MUST_USE;
/* Fills in `otlp` and the shown settings, from `otel` and the environment. */
kelp_status *kelp_serve_otlp_apply(const char *service_name,
                                   kelp_serve_trace_values *inout) KELP_MUST_USE;

#endif
