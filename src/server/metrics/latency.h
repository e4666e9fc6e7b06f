/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Distributions of the durations of a model's requests: the families nv_inference_*_summary_us,
 * nv_cache_*_summary_per_model and nv_inference_first_response_histogram_ms. `--metrics-config`
 * enables them. Quantiles are of the last minute; their relative error is at most 2 %. With
 * native_histograms, the histogram also has exponential buckets, whose bounds differ by 9 %; with
 * exemplars, each of its other buckets has the trace ID of the latest traced request.
 *
 * Thread-safe. The histogram uses atomic counters, summaries a lock for each model.
 */
#ifndef KELP_SERVER_METRICS_LATENCY_H_
#define KELP_SERVER_METRICS_LATENCY_H_

#include "base/buf.h"
#include "server/core/settings.h"

/* The durations that a summary describes. */
typedef enum kelp_latency_kind {
    KELP_LATENCY_REQUEST,
    KELP_LATENCY_QUEUE,
    KELP_LATENCY_COMPUTE_INPUT,
    KELP_LATENCY_COMPUTE_INFER,
    KELP_LATENCY_COMPUTE_OUTPUT,
    KELP_LATENCY_CACHE_HIT,
    KELP_LATENCY_CACHE_MISS,
    KELP_LATENCY_KINDS
} kelp_latency_kind;

enum { KELP_LATENCY_MAX_QUANTILES = 16 };

/* The formats of the page of metrics. */
typedef enum kelp_metrics_format {
    KELP_FORMAT_TEXT,        /* Prometheus' text format */
    KELP_FORMAT_OPENMETRICS, /* with exemplars */
    KELP_FORMAT_PROTOBUF     /* with native histograms */
} kelp_metrics_format;

/* The configuration of the metrics: native_histograms, exemplars, counter_latencies,
 * histogram_latencies, summary_latencies, summary_quantiles ("0.5:0.05,0.9:0.01": a quantile and
 * the permitted error of its rank, which is always met because ranks are exact). */
typedef struct kelp_latency_rules {
    bool counters, histograms, summaries, native, exemplars;
    double quantiles[KELP_LATENCY_MAX_QUANTILES];
    size_t quantile_count;
} kelp_latency_rules;

/* Reads the rules from `--metrics-config`; INVALID_ARGUMENT names the setting. */
kelp_status *kelp_latency_rules_read(const kelp_settings *settings,
                                     kelp_latency_rules *out) KELP_MUST_USE;

typedef struct kelp_latency kelp_latency;

enum { KELP_LATENCY_MAX_BOUNDS = 64 };

/* The configuration of a model's distributions. */
typedef struct kelp_latency_options {
    bool cached; /* the model uses the response cache: summaries of the cache in place of
                    KELP_LATENCY_REQUEST */
    double bounds_ms[KELP_LATENCY_MAX_BOUNDS]; /* of the histogram, ascending */
    size_t bound_count;
} kelp_latency_options;

/* Creates the distributions that the rules enable; *out is NULL if they enable none. */
kelp_status *kelp_latency_create(kelp_allocator allocator, const kelp_latency_rules *rules,
                                 const kelp_latency_options *options,
                                 kelp_latency **out) KELP_MUST_USE;
void kelp_latency_destroy(kelp_latency *latency);

/* Adds a duration to a summary. NULL is ignored. */
void kelp_latency_add(kelp_latency *latency, kelp_latency_kind kind, uint64_t duration_ns);
/* Adds a duration to the histogram of first responses. `trace_context` is that of a traced request,
 * a JSON object with the member traceparent (W3C Trace Context); otherwise NULL. */
void kelp_latency_add_first(kelp_latency *latency, uint64_t duration_ns, const char *trace_context);

/* The distributions of one model, which may be NULL, and its labels as "{a=\"b\"}". */
typedef struct kelp_latency_row {
    kelp_latency *latency;
    const char *labels;
} kelp_latency_row;
/* Appends all families of several models with their headers; omits families that no model has. For
 * KELP_FORMAT_PROTOBUF, the text has comments for kelp_exposition_put_protobuf. */
void kelp_latency_write(kelp_buf *out, kelp_metrics_format format, const kelp_latency_row *rows,
                        size_t count);

#endif
