/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How long the requests of a model take, as distributions: the families nv_inference_*_summary_us,
 * nv_cache_*_summary_per_model and nv_inference_first_response_histogram_ms. Kept only where
 * `--metrics-config` asks for them. A quantile is that of the last minute, its value exact to 2 %.
 *
 * Threads: any. One lock a model, which only its own requests take.
 */
#ifndef KELP_SERVER_METRICS_LATENCY_H_
#define KELP_SERVER_METRICS_LATENCY_H_

#include "server/core/options.h"
#include "server/config/config.h"

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

enum { KELP_LATENCY_MOST_QUANTILES = 16 };

/* What the metrics' configuration says: counter_latencies, histogram_latencies, summary_latencies,
 * summary_quantiles ("0.5:0.05,0.9:0.01": a quantile and the error that is allowed). */
typedef struct kelp_latency_rules {
    bool counters, histograms, summaries;
    double quantiles[KELP_LATENCY_MOST_QUANTILES];
    size_t quantile_count;
} kelp_latency_rules;

/* INVALID_ARGUMENT names the setting. */
kelp_status *kelp_latency_rules_read(const kelp_settings *settings,
                                     kelp_latency_rules *out) KELP_MUST_USE;

typedef struct kelp_latency kelp_latency;

/* *out is NULL when the rules ask for nothing. `cached`: the model's answers may come from a cache,
 * which has families of its own, and a request then has no time that means one thing. The bounds of
 * the histogram are those of `model_metrics` in the configuration; INVALID_ARGUMENT when they do
 * not rise. */
kelp_status *kelp_latency_create(const kelp_latency_rules *rules, const kelp_model_config *config,
                                 bool cached, kelp_latency **out) KELP_MUST_USE;
void kelp_latency_destroy(kelp_latency *latency);

/* NULL is fine. */
void kelp_latency_add(kelp_latency *latency, kelp_latency_kind kind, uint64_t duration_ns);
void kelp_latency_add_first(kelp_latency *latency, uint64_t duration_ns);

/* One family over several models, with its header: nothing when none of them has it. `labels` as
 * "{a=\"b\"}", one for each latency; those may be NULL. */
typedef struct kelp_latency_row {
    kelp_latency *latency;
    const char *labels;
} kelp_latency_row;
void kelp_latency_write(kelp_buf *out, const kelp_latency_row *rows, size_t count);

#endif
