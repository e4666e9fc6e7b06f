/* SPDX-License-Identifier: Apache-2.0 */
/* A closed loop: each of several workers starts its next operation when the last one has ended. */
#ifndef KELP_CLI_BENCH_LOAD_H_
#define KELP_CLI_BENCH_LOAD_H_

#include <kelp/status.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define KELP_BENCH_LOAD_MAX_WORKERS 1024
/* The minimum, each percent and the maximum. */
#define KELP_BENCH_LOAD_POINTS 101

typedef struct kelp_bench_load_options {
    size_t workers;    /* 1 to KELP_BENCH_LOAD_MAX_WORKERS */
    double seconds;    /* duration; at least ten operations run in all */
    const char *label; /* for the progress bar; NULL: none */
    /* Runs an operation of a worker, on the thread of the worker. Sets `*out_failed` for an
     * operation that counts as a failure; a status ends the measurement. */
    kelp_status *(*invoke)(void *userp, size_t worker, bool *out_failed);
    void *userp;
} kelp_bench_load_options;

typedef struct kelp_bench_load_result {
    uint64_t runs; /* that succeeded */
    uint64_t failures;
    uint64_t elapsed_ns;
    uint64_t mean_ns;
    uint64_t quantiles_ns[KELP_BENCH_LOAD_POINTS];
    uint64_t p99_9_ns;
} kelp_bench_load_result;

/* Runs the workers; the first one on the calling thread. Percentiles are of all operations that
 * succeeded, or of a random sample of a million. */
kelp_status *kelp_bench_load_run(const kelp_bench_load_options *options,
                                 kelp_bench_load_result *out) KELP_MUST_USE;

#endif
