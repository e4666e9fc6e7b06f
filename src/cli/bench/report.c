/* SPDX-License-Identifier: Apache-2.0 */
/* The report of kelp bench as a table, as CSV and as JSON. */
#include "cli/bench/bench.h"

#include "base/assert.h"
#include "base/checked.h"
#include "base/text/json.h"
#include "cli/cli.h"

#include <stdio.h>

enum { P50 = 50, P90 = 90, P95 = 95, P99 = 99, MAXIMUM = 100 };

/* A number of a row: the key of JSON and of the first line of CSV. */
typedef struct field {
    const char *key;
    uint64_t value;
} field;
#define FIELDS_MAX 20

double kelp_bench_per_second(uint64_t runs, uint64_t elapsed_ns) {
    return elapsed_ns > 0 ? (double)runs * 1e9 / (double)elapsed_ns : 0;
}

static double per_second(const kelp_bench_options *o, const kelp_bench_row *row) {
    if (o->in_flight > 0)
        return kelp_bench_per_second(row->in_flight.runs, row->in_flight.elapsed_ns);
    return kelp_bench_per_second(row->load.runs, row->load.elapsed_ns);
}

static size_t in_flight_fields(const kelp_bench_options *o, const kelp_bench_row *row, field *out) {
    const kelp_in_flight_result *r = &row->in_flight;
    const field fields[] = {{"threads", (uint64_t)row->threads},
                            {"in_flight", (uint64_t)o->in_flight},
                            {"load_ns", r->load_ns},
                            {"runs", r->runs},
                            {"elapsed_ns", r->elapsed_ns},
                            {"copied_inputs", r->copies.inputs},
                            {"copied_input_bytes", r->copies.input_bytes},
                            {"peak_rss_bytes", row->peak_bytes}};
    memcpy(out, fields, sizeof fields);
    return KELP_COUNT(fields);
}

/* Lists the numbers of a row. A server has no threads, load time and memory. */
static size_t row_fields(const kelp_bench_options *o, const kelp_bench_row *row, field *out) {
    if (o->in_flight > 0)
        return in_flight_fields(o, row, out);
    const kelp_bench_load_result *r = &row->load;
    bool is_remote = kelp_bench_is_remote(o);
    const field fields[] = {{is_remote ? NULL : "threads", (uint64_t)row->threads},
                            {"concurrency", (uint64_t)row->concurrency},
                            {is_remote ? NULL : "load_ns", row->load_ns},
                            {"first_ns", row->first_ns},
                            {"mean_ns", r->mean_ns},
                            {"min_ns", r->quantiles_ns[0]},
                            {"median_ns", r->quantiles_ns[P50]},
                            {"p90_ns", r->quantiles_ns[P90]},
                            {"p95_ns", r->quantiles_ns[P95]},
                            {"p99_ns", r->quantiles_ns[P99]},
                            {"p99_9_ns", r->p99_9_ns},
                            {"max_ns", r->quantiles_ns[MAXIMUM]},
                            {"runs", r->runs},
                            {is_remote ? "failures" : NULL, r->failures},
                            {"elapsed_ns", r->elapsed_ns},
                            {is_remote ? NULL : "peak_rss_bytes", row->peak_bytes}};
    size_t count = 0;
    _Static_assert(KELP_COUNT(fields) <= FIELDS_MAX, "room for all fields");
    for (size_t i = 0; i < KELP_COUNT(fields); i++)
        if (fields[i].key != NULL)
            out[count++] = fields[i];
    return count;
}

/* ---- CSV and JSON ---- */
void kelp_bench_put_csv(const kelp_bench_report *report, kelp_buf *out) {
    field fields[FIELDS_MAX];
    KELP_ASSERT(report->count > 0);
    size_t count = row_fields(report->options, &report->rows[0], fields);
    for (size_t i = 0; i < count; i++)
        kelp_buf_printf(out, "%s,", fields[i].key);
    kelp_buf_append_cstr(out, "per_second\n");
    for (size_t r = 0; r < report->count; r++) {
        count = row_fields(report->options, &report->rows[r], fields);
        for (size_t i = 0; i < count; i++)
            kelp_buf_printf(out, "%llu,", (unsigned long long)fields[i].value);
        kelp_buf_printf(out, "%.3f\n", per_second(report->options, &report->rows[r]));
    }
}

void kelp_bench_put_json(const kelp_bench_report *report, kelp_buf *out) {
    kelp_json_writer w;
    kelp_json_writer_init(&w, out);
    kelp_json_begin_object(&w);
    kelp_json_key(&w, "model");
    kelp_json_put_cstr(&w, report->options->positionals.items[0]);
    kelp_json_key(&w, "results");
    kelp_json_begin_array(&w);
    for (size_t r = 0; r < report->count; r++) {
        field fields[FIELDS_MAX];
        size_t count = row_fields(report->options, &report->rows[r], fields);
        kelp_json_begin_object(&w);
        for (size_t i = 0; i < count; i++) {
            kelp_json_key(&w, fields[i].key);
            kelp_json_put_u64(&w, fields[i].value);
        }
        kelp_json_key(&w, "per_second");
        kelp_json_put_f64(&w, per_second(report->options, &report->rows[r]));
        kelp_json_end_object(&w);
    }
    kelp_json_end_array(&w);
    if (report->profile->runs > 0) {
        kelp_json_key(&w, "profile");
        kelp_profile_put_json(report->profile, &w);
    }
    kelp_json_end_object(&w);
    kelp_buf_append_char(out, '\n');
}

/* ---- tables ---- */
void kelp_bench_label(const kelp_bench_report *report, size_t row, char *out, size_t capacity) {
    const kelp_bench_row *r = &report->rows[row];
    KELP_ASSERT(row < report->count);
    if (kelp_bench_is_remote(report->options))
        snprintf(out, capacity, "concurrency %lld", (long long)r->concurrency);
    else
        snprintf(out, capacity, "%lld thread%s, concurrency %lld", (long long)r->threads,
                 r->threads == 1 ? "" : "s", (long long)r->concurrency);
}

static void put_heads(kelp_table *table, const char *const *heads, size_t count) {
    kelp_table_init(table, count);
    for (size_t i = 0; i < count; i++)
        kelp_table_cell(table, "%s", heads[i]);
}

static void put_durations(kelp_table *table, const uint64_t *durations, size_t count) {
    char text[32];
    for (size_t i = 0; i < count; i++)
        kelp_table_cell(table, "%s", kelp_cli_duration(durations[i], text));
}

static void put_in_flight(const kelp_bench_report *report, kelp_buf *out) {
    static const char *const heads[] = {"threads",    "in flight", "load",       "runs",
                                        "per second", "copied",    "peak memory"};
    kelp_table table;
    put_heads(&table, heads, KELP_COUNT(heads));
    for (size_t i = 0; i < report->count; i++) {
        const kelp_bench_row *row = &report->rows[i];
        const kelp_in_flight_result *r = &row->in_flight;
        char text[32];
        kelp_table_cell(&table, "%lld", (long long)row->threads);
        kelp_table_cell(&table, "%lld", (long long)report->options->in_flight);
        kelp_table_cell(&table, "%s", kelp_cli_duration(r->load_ns, text));
        kelp_table_cell(&table, "%llu", (unsigned long long)r->runs);
        kelp_table_cell(&table, "%.1f", per_second(report->options, row));
        kelp_table_cell(&table, "%llu inputs", (unsigned long long)r->copies.inputs);
        kelp_table_cell(&table, "%s", kelp_cli_bytes(row->peak_bytes, text));
    }
    kelp_table_plain(&table, "", out);
}

static void put_server(const kelp_bench_report *report, kelp_buf *out) {
    static const char *const heads[] = {"concurrency", "median",   "p90",    "p99",
                                        "max",         "requests", "failed", "per second"};
    kelp_table table;
    put_heads(&table, heads, KELP_COUNT(heads));
    for (size_t i = 0; i < report->count; i++) {
        const kelp_bench_load_result *r = &report->rows[i].load;
        const uint64_t durations[] = {r->quantiles_ns[P50], r->quantiles_ns[P90],
                                      r->quantiles_ns[P99], r->quantiles_ns[MAXIMUM]};
        kelp_table_cell(&table, "%lld", (long long)report->rows[i].concurrency);
        put_durations(&table, durations, KELP_COUNT(durations));
        kelp_table_cell(&table, "%llu", (unsigned long long)r->runs);
        kelp_table_cell(&table, "%llu", (unsigned long long)r->failures);
        kelp_table_cell(&table, "%.1f", per_second(report->options, &report->rows[i]));
    }
    kelp_table_plain(&table, "", out);
}

static void put_models(const kelp_bench_report *report, kelp_buf *out) {
    static const char *const heads[] = {"threads",    "concurrency", "load", "first",
                                        "median",     "p90",         "p99",  "runs",
                                        "per second", "peak memory"};
    kelp_table table;
    put_heads(&table, heads, KELP_COUNT(heads));
    for (size_t i = 0; i < report->count; i++) {
        const kelp_bench_row *row = &report->rows[i];
        const uint64_t *q = row->load.quantiles_ns;
        const uint64_t durations[] = {row->load_ns, row->first_ns, q[P50], q[P90], q[P99]};
        char text[32];
        kelp_table_cell(&table, "%lld", (long long)row->threads);
        kelp_table_cell(&table, "%lld", (long long)row->concurrency);
        put_durations(&table, durations, KELP_COUNT(durations));
        kelp_table_cell(&table, "%llu", (unsigned long long)row->load.runs);
        kelp_table_cell(&table, "%.1f", per_second(report->options, row));
        kelp_table_cell(&table, "%s", kelp_cli_bytes(row->peak_bytes, text));
    }
    kelp_table_plain(&table, "", out);
}

void kelp_bench_put_table(const kelp_bench_report *report, kelp_buf *out) {
    if (report->options->in_flight > 0)
        put_in_flight(report, out);
    else if (kelp_bench_is_remote(report->options))
        put_server(report, out);
    else
        put_models(report, out);
}
