/* SPDX-License-Identifier: Apache-2.0 */
/* The parts of kelp bench: a measurement is a row of its report. */
#ifndef KELP_CLI_BENCH_BENCH_H_
#define KELP_CLI_BENCH_BENCH_H_

#include "cli/bench/load.h"
#include "cli/http.h"
#include "cli/bench/in_flight.h"
#include "cli/profile.h"

typedef struct kelp_bench_options {
    kelp_arg_list positionals;
    const char *threads, *concurrency;
    double seconds;
    int64_t warmup;
    kelp_model_options model;
    int64_t in_flight; /* 0: measure latencies */
    const char *models;
    kelp_cli_http_options http;
    bool profile, json, csv, plot;
    const char *svg, *trace;
} kelp_bench_options;

#define KELP_BENCH_ROWS_MAX 64

/* A measurement. */
typedef struct kelp_bench_row {
    int64_t threads;     /* of an operator; 0 for a server */
    int64_t concurrency; /* contexts, or connections to a server */
    uint64_t load_ns;    /* from file to ready; 0 for a server */
    uint64_t first_ns;
    uint64_t peak_bytes; /* 0 for a server */
    kelp_bench_load_result load;
    kelp_in_flight_result in_flight;
} kelp_bench_row;

typedef struct kelp_bench_report {
    const kelp_bench_options *options;
    const kelp_bench_row *rows;
    size_t count;
    const kelp_profile *profile; /* empty without --profile */
} kelp_bench_report;

/* Returns true if a server is measured. */
bool kelp_bench_is_remote(const kelp_bench_options *options);

/* measure.c: measures a row in a child process, so that peak memory belongs to that row. Sets
 * *out_failed if the child has failed and printed the reason. */
kelp_status *kelp_bench_measure(const kelp_bench_options *options, kelp_bench_row *inout,
                                bool *out_failed) KELP_MUST_USE;
/* Profiles ten runs, after one that is not counted. */
kelp_status *kelp_bench_profile(const kelp_bench_options *options, int64_t threads,
                                kelp_profile *out) KELP_MUST_USE;
/* remote.c: measures a row against a server. */
kelp_status *kelp_bench_measure_server(const kelp_bench_options *options,
                                       kelp_bench_row *inout) KELP_MUST_USE;

/* report.c: append the report. */
void kelp_bench_put_table(const kelp_bench_report *report, kelp_buf *out);
void kelp_bench_put_csv(const kelp_bench_report *report, kelp_buf *out);
void kelp_bench_put_json(const kelp_bench_report *report, kelp_buf *out);
/* Returns inferences per second. */
double kelp_bench_per_second(uint64_t runs, uint64_t elapsed_ns);
/* Writes a label such as "2 threads, concurrency 4". */
void kelp_bench_label(const kelp_bench_report *report, size_t row, char *out, size_t capacity);

/* plot.c: append the latencies as bars, and as a drawing in SVG. */
void kelp_bench_put_plot(const kelp_bench_report *report, kelp_buf *out);
void kelp_bench_put_svg(const kelp_bench_report *report, kelp_buf *out);

#endif
