/* SPDX-License-Identifier: Apache-2.0 */
/* Distributions of durations. A summary counts durations in buckets of exponential size, separately
 * for each slice of time. The oldest slice is cleared when a new one begins. */
#include "server/metrics/latency.h"

#include "base/alloc.h"
#include "base/assert.h"
#include "base/clock.h"
#include "base/str.h"
#include "server/core/log.h"
#include "server/metrics/exposition.h"
#include "server/metrics/metrics.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

/* Each power of two of nanoseconds has 32 buckets, up to 2^42 ns (73 minutes). */
enum { STEPS_LOG2 = 5, STEPS = 1 << STEPS_LOG2, LARGEST_LOG2 = 42 };
enum { BUCKETS = (LARGEST_LOG2 - STEPS_LOG2 + 1) * STEPS };
enum {
    SLICES = 5,
    SLICE_S = 12,
};

enum { TRACE_ID_BYTES = 32 };

typedef struct summary {
    uint64_t count, sum_us; /* since the model was loaded */
    uint32_t slices[SLICES][BUCKETS];
} summary;

/* The latest traced request of a bucket of the histogram. */
typedef struct exemplar {
    char trace_id[TRACE_ID_BYTES + 1]; /* "": none */
    double value_ms;
    uint64_t wall_ms;
} exemplar;

struct kelp_latency {
    kelp_allocator allocator;
    pthread_mutex_t lock;
    kelp_latency_rules rules;
    summary *summaries[KELP_LATENCY_KINDS]; /* NULL where there is none */
    uint64_t slice;                         /* the number of the current slice */
    double bounds_ms[KELP_LATENCY_MAX_BOUNDS];
    size_t bound_count;
    /* Responses by bucket; the last has no bound. Not guarded by the lock. */
    _Atomic uint64_t first[KELP_LATENCY_MAX_BOUNDS + 1];
    _Atomic uint64_t first_sum_ms;
    kelp_native_histogram *native; /* or NULL */
    exemplar *exemplars;           /* bound_count + 1, or NULL; guarded by the lock */
};

/* ---- rules ---- */

static kelp_status *read_switch(const kelp_settings *settings, const char *name, bool otherwise,
                                bool *out) {
    const char *value = kelp_settings_get(settings, "", name);
    *out = value != NULL ? strcmp(value, "true") == 0 : otherwise;
    if (value == NULL || *out || strcmp(value, "false") == 0)
        return NULL;
    return KELP_ERROR(KELP_INVALID_ARGUMENT,
                      "metrics configuration '%s': expected true or false, found '%s'", name,
                      value);
}

/* Reads the permitted error of a quantile. Triton reads the number at the start of "0.0.1", so that
 * the rest is ignored, with a warning. */
static bool read_error(kelp_str text) {
    double error = -1;
    kelp_str number = text;
    while (number.length > 0 && !kelp_parse_f64(number, &error))
        number.length--;
    if (number.length == 0 || error < 0 || error > 1)
        return false;
    if (number.length < text.length)
        KELP_SERVER_LOG(KELP_LOG_WARNING,
                        "metrics configuration 'summary_quantiles': '%.*s' is read as %.*s",
                        KELP_STR_ARG(text), KELP_STR_ARG(number));
    return true;
}

static kelp_status *read_quantiles(const char *text, kelp_latency_rules *out) {
    const char *at = text;
    out->quantile_count = 0;
    while (out->quantile_count < KELP_LATENCY_MAX_QUANTILES) {
        size_t quantile_length = strcspn(at, ":,");
        const char *error_at = at + quantile_length + (at[quantile_length] == ':');
        kelp_str error_text = {error_at, strcspn(error_at, ",")};
        double quantile = -1;
        bool good = at[quantile_length] == ':' &&
                    kelp_parse_f64((kelp_str){at, quantile_length}, &quantile) && quantile >= 0 &&
                    quantile <= 1 && read_error(error_text);
        if (!good)
            break;
        out->quantiles[out->quantile_count++] = quantile;
        at = error_text.data + error_text.length;
        if (*at++ == '\0')
            return NULL;
    }
    return KELP_ERROR(KELP_INVALID_ARGUMENT,
                      "metrics configuration 'summary_quantiles': expected at most %d pairs "
                      "QUANTILE:ERROR separated by commas, such as 0.5:0.05,0.9:0.01, found '%s'",
                      KELP_LATENCY_MAX_QUANTILES, text);
}

kelp_status *kelp_latency_rules_read(const kelp_settings *settings, kelp_latency_rules *out) {
    const char *quantiles = kelp_settings_get(settings, "", "summary_quantiles");
    *out = (kelp_latency_rules){.quantiles = {0.5, 0.9, 0.95, 0.99, 0.999}, .quantile_count = 5};
    KELP_TRY(read_switch(settings, "counter_latencies", true, &out->counters));
    KELP_TRY(read_switch(settings, "histogram_latencies", false, &out->histograms));
    KELP_TRY(read_switch(settings, "summary_latencies", false, &out->summaries));
    KELP_TRY(read_switch(settings, "native_histograms", false, &out->native));
    KELP_TRY(read_switch(settings, "exemplars", false, &out->exemplars));
    return quantiles != NULL ? read_quantiles(quantiles, out) : NULL;
}

/* ---- creation ---- */

static const char first_family[] = "nv_inference_first_response_histogram_ms";

static kelp_status *make_summaries(kelp_latency *latency, bool cached) {
    for (int kind = 0; kind < KELP_LATENCY_KINDS; kind++) {
        bool of_cache = kind == KELP_LATENCY_CACHE_HIT || kind == KELP_LATENCY_CACHE_MISS;
        if (cached ? kind != KELP_LATENCY_REQUEST : !of_cache)
            KELP_TRY(KELP_NEW(latency->allocator, summary, &latency->summaries[kind]));
    }
    return NULL;
}

static kelp_status *make_histogram(kelp_latency *latency) {
    if (latency->rules.native)
        KELP_TRY(KELP_NEW(latency->allocator, kelp_native_histogram, &latency->native));
    if (!latency->rules.exemplars)
        return NULL;
    return kelp_alloc_zero(latency->allocator, latency->bound_count + 1, sizeof(exemplar),
                           (void **)&latency->exemplars);
}

kelp_status *kelp_latency_create(kelp_allocator allocator, const kelp_latency_rules *rules,
                                 const kelp_latency_options *options, kelp_latency **out) {
    KELP_ASSERT(options->bound_count <= KELP_LATENCY_MAX_BOUNDS);
    kelp_latency *latency = NULL;
    *out = NULL;
    if (!rules->histograms && !rules->summaries)
        return NULL;
    KELP_TRY(KELP_NEW(allocator, kelp_latency, &latency));
    latency->allocator = allocator;
    pthread_mutex_init(&latency->lock, NULL);
    latency->rules = *rules;
    latency->bound_count = options->bound_count;
    memcpy(latency->bounds_ms, options->bounds_ms,
           options->bound_count * sizeof *options->bounds_ms);
    kelp_status *status = rules->summaries ? make_summaries(latency, options->cached) : NULL;
    if (status == NULL && rules->histograms)
        status = make_histogram(latency);
    if (status != NULL)
        kelp_latency_destroy(latency);
    else
        *out = latency;
    return status;
}

void kelp_latency_destroy(kelp_latency *latency) {
    if (latency == NULL)
        return;
    kelp_allocator heap = latency->allocator;
    for (int kind = 0; kind < KELP_LATENCY_KINDS; kind++)
        kelp_free(heap, latency->summaries[kind], sizeof(summary));
    kelp_free(heap, latency->native, sizeof *latency->native);
    kelp_free(heap, latency->exemplars, (latency->bound_count + 1) * sizeof *latency->exemplars);
    pthread_mutex_destroy(&latency->lock);
    kelp_free(heap, latency, sizeof *latency);
}

/* ---- counting ---- */

static size_t bucket_of(uint64_t duration_ns) {
    if (duration_ns < STEPS)
        return (size_t)duration_ns;
    int log2 = 63 - __builtin_clzll(duration_ns);
    if (log2 >= LARGEST_LOG2)
        return BUCKETS - 1;
    int shift = log2 - STEPS_LOG2;
    return (size_t)(shift + 1) * STEPS + (size_t)(duration_ns >> shift) - STEPS;
}

/* Returns the middle of a bucket. */
static double bucket_us(size_t bucket) {
    KELP_ASSERT(bucket < BUCKETS);
    if (bucket < STEPS)
        return (double)bucket / 1000;
    int shift = (int)(bucket / STEPS) - 1;
    return ((double)(bucket % STEPS + STEPS) + 0.5) * (double)(UINT64_C(1) << shift) / 1000;
}

/* Clears the slices whose time has passed; the lock is held. */
static void advance(kelp_latency *latency) {
    KELP_ASSERT_HELD(&latency->lock);
    uint64_t now = kelp_now_ns() / (SLICE_S * UINT64_C(1000000000));
    uint64_t passed = now - latency->slice;
    for (uint64_t i = 1; i <= passed && i <= SLICES; i++)
        for (int kind = 0; kind < KELP_LATENCY_KINDS; kind++)
            if (latency->summaries[kind] != NULL)
                memset(latency->summaries[kind]->slices[(latency->slice + i) % SLICES], 0,
                       sizeof latency->summaries[kind]->slices[0]);
    latency->slice = now;
}

void kelp_latency_add(kelp_latency *latency, kelp_latency_kind kind, uint64_t duration_ns) {
    KELP_ASSERT(kind < KELP_LATENCY_KINDS);
    if (latency == NULL || latency->summaries[kind] == NULL)
        return;
    pthread_mutex_lock(&latency->lock);
    advance(latency);
    summary *s = latency->summaries[kind];
    s->count++;
    s->sum_us += duration_ns / 1000;
    s->slices[latency->slice % SLICES][bucket_of(duration_ns)]++;
    pthread_mutex_unlock(&latency->lock);
}

/* Returns the trace ID of a context, or NULL. */
static const char *find_trace_id(const char *context) {
    static const char key[] = "\"traceparent\":\"00-";
    const char *found = context != NULL ? strstr(context, key) : NULL;
    const char *id = found != NULL ? found + sizeof key - 1 : "";
    return strspn(id, "0123456789abcdef") == TRACE_ID_BYTES ? id : NULL;
}

static void set_exemplar(kelp_latency *latency, size_t bucket, const char *trace_id,
                         uint64_t duration_ns) {
    exemplar *e = &latency->exemplars[bucket];
    pthread_mutex_lock(&latency->lock);
    memcpy(e->trace_id, trace_id, TRACE_ID_BYTES);
    e->value_ms = (double)(duration_ns / 1000000);
    e->wall_ms = kelp_wall_now_ns() / 1000000;
    pthread_mutex_unlock(&latency->lock);
}

void kelp_latency_add_first(kelp_latency *latency, uint64_t duration_ns,
                            const char *trace_context) {
    if (latency == NULL || !latency->rules.histograms)
        return;
    uint64_t ms = duration_ns / 1000000;
    size_t at = 0;
    while (at < latency->bound_count && (double)ms > latency->bounds_ms[at])
        at++;
    atomic_fetch_add_explicit(&latency->first[at], 1, memory_order_relaxed);
    if (ms > 0)
        atomic_fetch_add_explicit(&latency->first_sum_ms, ms, memory_order_relaxed);
    if (latency->native != NULL)
        kelp_native_histogram_add(latency->native, duration_ns);
    const char *trace_id = latency->exemplars != NULL ? find_trace_id(trace_context) : NULL;
    if (trace_id != NULL)
        set_exemplar(latency, at, trace_id, duration_ns);
}

/* ---- text ---- */

static const struct family {
    const char *name, *help;
} families[KELP_LATENCY_KINDS] = {
    {"nv_inference_request_summary_us", "Total time of requests, in microseconds"},
    {"nv_inference_queue_summary_us", "Time of requests in queues, in microseconds"},
    {"nv_inference_compute_input_summary_us", "Time spent on inputs, in microseconds"},
    {"nv_inference_compute_infer_summary_us", "Time spent on inference, in microseconds"},
    {"nv_inference_compute_output_summary_us", "Time spent on outputs, in microseconds"},
    {"nv_cache_hit_summary_per_model", "Time of lookups that found a response, in microseconds"},
    {"nv_cache_miss_summary_per_model",
     "Time of lookups that found no response and of storing it, in microseconds"},
};

/* Returns the quantile of the last minute's durations. */
static double quantile_us(const summary *s, double quantile) {
    uint64_t total = 0, below = 0;
    for (int slice = 0; slice < SLICES; slice++)
        for (size_t i = 0; i < BUCKETS; i++)
            total += s->slices[slice][i];
    if (total == 0)
        return strtod("nan", NULL);
    double rank = quantile * (double)total;
    for (size_t i = 0; i < BUCKETS; i++) {
        for (int slice = 0; slice < SLICES; slice++)
            below += s->slices[slice][i];
        if (below > 0 && (double)below >= rank)
            return bucket_us(i);
    }
    return bucket_us(BUCKETS - 1);
}

/* Writes "{a="b"" without the closing brace, so that another label can follow. */
static void write_labels(kelp_buf *out, const char *name, const char *suffix, const char *labels) {
    KELP_ASSERT(labels[0] == '{' && labels[strlen(labels) - 1] == '}');
    kelp_buf_printf(out, "%s%s%.*s", name, suffix, (int)strlen(labels) - 1, labels);
}

static void write_summary(kelp_buf *out, kelp_latency *latency, int kind, const char *labels) {
    const char *name = families[kind].name;
    pthread_mutex_lock(&latency->lock);
    advance(latency);
    const summary *s = latency->summaries[kind];
    kelp_buf_printf(out, "%s_count%s %" PRIu64 "\n%s_sum%s %" PRIu64 "\n", name, labels, s->count,
                    name, labels, s->sum_us);
    for (size_t i = 0; i < latency->rules.quantile_count; i++) {
        write_labels(out, name, "", labels);
        kelp_buf_append_cstr(out, ",quantile=\"");
        kelp_metrics_write_number(out, latency->rules.quantiles[i]);
        kelp_buf_append_cstr(out, "\"} ");
        kelp_metrics_write_number(out, quantile_us(s, latency->rules.quantiles[i]));
        kelp_buf_append_char(out, '\n');
    }
    pthread_mutex_unlock(&latency->lock);
}

/* Ends the line of a bucket with its exemplar, if it has one. */
static void write_exemplar(kelp_buf *out, kelp_latency *latency, size_t bucket) {
    pthread_mutex_lock(&latency->lock);
    const exemplar e = latency->exemplars[bucket];
    pthread_mutex_unlock(&latency->lock);
    if (e.trace_id[0] == 0)
        return;
    kelp_buf_printf(out, " # {trace_id=\"%s\"} ", e.trace_id);
    kelp_metrics_write_number(out, e.value_ms);
    kelp_buf_printf(out, " %" PRIu64 ".%03u", e.wall_ms / 1000, (unsigned)(e.wall_ms % 1000));
}

static void write_first(kelp_buf *out, kelp_metrics_format format, kelp_latency *latency,
                        const char *labels) {
    uint64_t total = 0, sum_ms = latency->first_sum_ms;
    for (size_t i = 0; i <= latency->bound_count; i++) {
        total += latency->first[i];
        write_labels(out, first_family, "_bucket", labels);
        kelp_buf_append_cstr(out, ",le=\"");
        if (i < latency->bound_count)
            kelp_metrics_write_number(out, latency->bounds_ms[i]);
        else
            kelp_buf_append_cstr(out, "+Inf");
        kelp_buf_printf(out, "\"} %" PRIu64, total);
        if (format == KELP_FORMAT_OPENMETRICS && latency->exemplars != NULL)
            write_exemplar(out, latency, i);
        kelp_buf_append_char(out, '\n');
    }
    kelp_buf_printf(out, "%s_sum%s %" PRIu64 "\n%s_count%s %" PRIu64 "\n", first_family, labels,
                    sum_ms, first_family, labels, total);
    if (format == KELP_FORMAT_PROTOBUF && latency->native != NULL)
        kelp_native_histogram_write(latency->native, out);
}

void kelp_latency_write(kelp_buf *out, kelp_metrics_format format, const kelp_latency_row *rows,
                        size_t count) {
    for (int kind = 0; kind <= KELP_LATENCY_KINDS; kind++) {
        bool begun = false, is_first = kind == KELP_LATENCY_KINDS;
        for (size_t i = 0; i < count; i++) {
            kelp_latency *latency = rows[i].latency;
            if (latency == NULL ||
                !(is_first ? latency->rules.histograms : latency->summaries[kind] != NULL))
                continue;
            if (!begun && is_first)
                kelp_metrics_write_header(out, first_family,
                                          "Time from a request to its first response, in "
                                          "milliseconds",
                                          "histogram");
            else if (!begun)
                kelp_metrics_write_header(out, families[kind].name, families[kind].help, "summary");
            begun = true;
            if (is_first)
                write_first(out, format, latency, rows[i].labels);
            else
                write_summary(out, latency, kind, rows[i].labels);
        }
    }
}
