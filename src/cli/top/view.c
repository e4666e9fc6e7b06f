/* SPDX-License-Identifier: Apache-2.0 */
/* Formats samples: rates, mean latencies and queues. */
#include "cli/top/view.h"

#include "base/alloc.h"
#include "base/assert.h"
#include "base/checked.h"
#include "cli/cli.h"

#include <stdlib.h>
#include <string.h>

#define HEADER_LINES 4u /* of a live view: server, machine, heads, and the keys below */
#define NS_PER_US 1e3

/* A row of the table. */
typedef struct top_row {
    const kelp_top_model *model;
    double requests, failures, inferences;   /* per second */
    double latency_ns, queue_ns, compute_ns; /* mean of a request */
    double batch;                            /* mean inferences of an execution */
    double pending;
    kelp_top_order order;
} top_row;

const char *kelp_top_order_name(kelp_top_order order) {
    static const char *const names[KELP_TOP_ORDERS] = {"name", "requests", "latency", "pending"};
    KELP_ASSERT(order < KELP_TOP_ORDERS);
    return names[order];
}

/* Returns the growth of a counter. A model that was loaded again starts at zero. */
static double growth(const kelp_top_model *now, const kelp_top_model *before,
                     kelp_top_counter counter) {
    double earlier = before != NULL ? before->counters[counter] : 0;
    return now->counters[counter] >= earlier ? now->counters[counter] - earlier
                                             : now->counters[counter];
}

static double ratio(double dividend, double divisor) {
    return divisor > 0 ? dividend / divisor : 0;
}

static top_row make_row(const kelp_top_view *view, const kelp_top_model *now) {
    const kelp_top_model *before = kelp_top_find(view->before, now->name, now->version);
    double seconds = (double)(view->now->time_ns - view->before->time_ns) / 1e9;
    double success = growth(now, before, KELP_TOP_SUCCESS);
    double inferences = growth(now, before, KELP_TOP_INFERENCES);
    return (top_row){
        .model = now,
        .requests = ratio(success, seconds),
        .failures = ratio(growth(now, before, KELP_TOP_FAILURE), seconds),
        .inferences = ratio(inferences, seconds),
        .latency_ns = ratio(growth(now, before, KELP_TOP_REQUEST_US), success) * NS_PER_US,
        .queue_ns = ratio(growth(now, before, KELP_TOP_QUEUE_US), success) * NS_PER_US,
        .compute_ns = ratio(growth(now, before, KELP_TOP_COMPUTE_US), success) * NS_PER_US,
        .batch = ratio(inferences, growth(now, before, KELP_TOP_EXECUTIONS)),
        .pending = now->counters[KELP_TOP_PENDING],
        .order = view->order};
}

static int by_name(const top_row *a, const top_row *b) {
    int names = strcmp(a->model->name, b->model->name);
    return names != 0 ? names : strcmp(a->model->version, b->model->version);
}

static int compare_rows(const void *first, const void *second) {
    const top_row *a = first, *b = second;
    const double keys[KELP_TOP_ORDERS][2] = {[KELP_TOP_BY_REQUESTS] = {a->requests, b->requests},
                                             [KELP_TOP_BY_LATENCY] = {a->latency_ns, b->latency_ns},
                                             [KELP_TOP_BY_PENDING] = {a->pending, b->pending}};
    const double *pair = keys[a->order];
    if (pair[0] != pair[1])
        return pair[0] < pair[1] ? 1 : -1;
    return by_name(a, b);
}

/* ---- text ---- */
static void put_duration(kelp_table *table, double duration_ns) {
    char text[32];
    kelp_table_cell(table, "%s",
                    duration_ns > 0 ? kelp_cli_duration((uint64_t)duration_ns, text) : "-");
}

static void put_row(kelp_table *table, const top_row *row) {
    kelp_table_cell(table, "%s", row->model->name);
    kelp_table_cell(table, "%s", row->model->version);
    kelp_table_cell(table, "%s", row->model->state);
    kelp_table_cell(table, "%.1f", row->requests);
    kelp_table_cell(table, "%.1f", row->failures);
    kelp_table_cell(table, "%.1f", row->inferences);
    put_duration(table, row->latency_ns);
    put_duration(table, row->queue_ns);
    put_duration(table, row->compute_ns);
    kelp_table_cell(table, "%.1f", row->batch);
    kelp_table_cell(table, "%.0f", row->pending);
    kelp_table_cell(table, "%s", row->model->reason);
}

static void put_head(const kelp_top_view *view, const top_row *rows, kelp_buf *out) {
    char used[32], total[32];
    double requests = 0, pending = 0;
    for (size_t i = 0; i < view->now->count; i++) {
        requests += rows[i].requests;
        pending += rows[i].pending;
    }
    kelp_buf_printf(out, "%s at %s: %zu models, %.1f requests per second, %.0f pending\n",
                    view->now->server, view->url, view->now->count, requests, pending);
    if (view->error != NULL)
        kelp_buf_printf(out, "%s\n", view->error);
    else if (view->now->has_machine)
        kelp_buf_printf(out, "CPU %.0f %%, memory %s of %s\n", view->now->cpu * 100,
                        kelp_cli_bytes((uint64_t)view->now->memory_used, used),
                        kelp_cli_bytes((uint64_t)view->now->memory_total, total));
    else
        kelp_buf_append_char(out, '\n');
}

/* Cuts the lines of `text` to the width and appends them. */
static void put_lines(kelp_buf *text, size_t width, kelp_buf *out) {
    const char *line = kelp_buf_cstr(text);
    while (line != NULL && *line) {
        size_t length = strcspn(line, "\n"), kept = 0;
        for (size_t columns = 0; kept < length; kept++) {
            columns += ((unsigned char)line[kept] & 0xc0) != 0x80;
            if (width > 0 && columns > width)
                break;
        }
        while (kept > 0 && line[kept - 1] == ' ')
            kept--;
        kelp_buf_append(out, line, kept);
        kelp_buf_append_char(out, '\n');
        line += length + (line[length] == '\n');
    }
}

static void put_table(const kelp_top_view *view, const top_row *rows, kelp_buf *out) {
    static const char *const heads[] = {"MODEL",   "VERSION", "STATE",   "REQ/S",
                                        "FAIL/S",  "INF/S",   "LATENCY", "QUEUE",
                                        "COMPUTE", "BATCH",   "PENDING", ""};
    size_t space = view->rows > HEADER_LINES ? view->rows - HEADER_LINES : 0;
    kelp_table table;
    kelp_table_init(&table, KELP_COUNT(heads));
    for (size_t i = 0; i < KELP_COUNT(heads); i++)
        kelp_table_cell(&table, "%s", heads[i]);
    for (size_t i = view->first; i < view->now->count; i++)
        if (view->rows == 0 || i - view->first < space)
            put_row(&table, &rows[i]);
    kelp_table_plain(&table, "", out);
}

kelp_status *kelp_top_put_view(const kelp_top_view *view, kelp_buf *out) {
    size_t count = view->now->count, bytes = count * sizeof(top_row);
    top_row *rows = NULL;
    kelp_buf text;
    KELP_TRY(kelp_alloc(kelp_allocator_system(), bytes, (void **)&rows));
    kelp_buf_init(&text, kelp_allocator_system());
    for (size_t i = 0; i < count; i++)
        rows[i] = make_row(view, &view->now->models[i]);
    if (count > 0)
        qsort(rows, count, sizeof *rows, compare_rows);
    put_head(view, rows, &text);
    put_table(view, rows, &text);
    if (view->rows > 0)
        kelp_buf_printf(&text, "q quit  s sort (%s)  space %s  up/down scroll\n",
                        kelp_top_order_name(view->order), view->paused ? "continue" : "pause");
    put_lines(&text, view->width, out);
    kelp_status *status = kelp_buf_status(&text);
    kelp_buf_deinit(&text);
    kelp_free(kelp_allocator_system(), rows, bytes);
    return status != NULL ? status : kelp_buf_status(out);
}
