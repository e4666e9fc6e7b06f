/* SPDX-License-Identifier: Apache-2.0 */
/* Measures the throughput of a model of a compute provider with several inferences in flight. */
#ifndef KELP_CLI_BENCH_IN_FLIGHT_H_
#define KELP_CLI_BENCH_IN_FLIGHT_H_

#include "cli/model.h"

#include <kelp/compute.h>

typedef struct kelp_in_flight_options {
    const kelp_model_options *model;
    const char *path;     /* of the artifact */
    const char *provider; /* of models */
    int threads;          /* of the runtime */
    size_t count;         /* of inferences in flight; at least 1 */
    double seconds;       /* duration; at least ten inferences run */
} kelp_in_flight_options;

typedef struct kelp_in_flight_result {
    uint64_t load_ns; /* from file to ready */
    uint64_t runs;
    uint64_t elapsed_ns;        /* from the first submission to the last result */
    kelp_compute_copies copies; /* of all runs */
} kelp_in_flight_result;

/* Loads the model and measures. A provider with submit runs all inferences on one model; otherwise,
 * each inference in flight has a fork of the model. */
kelp_status *kelp_in_flight_measure(const kelp_in_flight_options *options,
                                    kelp_in_flight_result *out) KELP_MUST_USE;

#endif
