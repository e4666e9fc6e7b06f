/* SPDX-License-Identifier: Apache-2.0 */
/* The state of a server at one moment, from the endpoints /v2, /v2/repository/index and /metrics.
 */
#ifndef KELP_CLI_TOP_SAMPLE_H_
#define KELP_CLI_TOP_SAMPLE_H_

#include "base/arena.h"
#include "cli/http.h"

/* Counters of a model since it was loaded; times in microseconds. */
typedef enum kelp_top_counter {
    KELP_TOP_SUCCESS,
    KELP_TOP_FAILURE, /* sum over all reasons */
    KELP_TOP_INFERENCES,
    KELP_TOP_EXECUTIONS,
    KELP_TOP_REQUEST_US,
    KELP_TOP_QUEUE_US,
    KELP_TOP_COMPUTE_US,
    KELP_TOP_PENDING, /* a gauge */
    KELP_TOP_COUNTERS
} kelp_top_counter;

typedef struct kelp_top_model {
    const char *name, *version, *state, *reason; /* "" if the server reports none */
    double counters[KELP_TOP_COUNTERS];
} kelp_top_model;

typedef struct kelp_top_sample {
    kelp_arena arena;
    const char *server; /* name and version */
    uint64_t time_ns;
    kelp_top_model *models;
    size_t count;
    bool has_machine;
    double cpu, memory_used, memory_total; /* share in use, and bytes */
} kelp_top_sample;

/* Reads a sample. `url` has no trailing '/'. The caller calls deinit, also after a failure. */
kelp_status *kelp_top_sample_read(kelp_cli_http *client, const char *url,
                                  kelp_top_sample *out) KELP_MUST_USE;
void kelp_top_sample_deinit(kelp_top_sample *sample);
/* Returns the model of the same name and version, or NULL. */
const kelp_top_model *kelp_top_find(const kelp_top_sample *sample, const char *name,
                                    const char *version);

/* Adds the metrics of an exposition in Prometheus's text format 0.0.4 to the sample. Ignores other
 * metrics and models. Source: prometheus.io, "Exposition formats". */
void kelp_top_parse_metrics(kelp_str text, kelp_top_sample *inout);

#endif
