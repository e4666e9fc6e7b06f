/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The page of metrics in other formats than Prometheus' text: OpenMetrics, and protobuf messages
 * io.prometheus.client.MetricFamily, which carry native histograms. Both are made from the text.
 *
 * A native histogram has exponential buckets: bucket i contains the durations of more than
 * B^(i-1) ms and at most B^i ms, with B = 2^(1/8). Durations up to 2^-10 ms are in the zero bucket,
 * those above 2^22 ms (70 minutes) in the last one.
 *
 * Source: the OpenMetrics specification 1.0, and metrics.proto of prometheus/client_model.
 */
#ifndef KELP_SERVER_METRICS_EXPOSITION_H_
#define KELP_SERVER_METRICS_EXPOSITION_H_

#include "base/buf.h"

#include <stdatomic.h>

enum {
    KELP_NATIVE_SCHEMA = 3, /* 2^3 buckets for each power of two */
    KELP_NATIVE_FIRST = -79,
    KELP_NATIVE_BUCKETS = 256
};

/* Zeroed before its first use. Thread-safe. */
typedef struct kelp_native_histogram {
    _Atomic uint64_t zero_count, sum_ns;
    _Atomic uint64_t buckets[KELP_NATIVE_BUCKETS];
} kelp_native_histogram;

void kelp_native_histogram_add(kelp_native_histogram *histogram, uint64_t duration_ns);
/* Appends the histogram as a comment, which follows the lines of its series:
 * "# NATIVE SUM_MS ZERO_COUNT INDEX:COUNT …". */
void kelp_native_histogram_write(const kelp_native_histogram *histogram, kelp_buf *out);

/* Turns a page into OpenMetrics: counters become `unknown`, because the names of Triton's counters
 * do not end with _total. */
void kelp_exposition_to_openmetrics(kelp_buf *inout_text);
/* Appends a page as protobuf messages, each after its length. Comments of native histograms become
 * parts of the message of the series before them. Fails with INTERNAL if the text is malformed. */
kelp_status *kelp_exposition_put_protobuf(kelp_str text, kelp_buf *out) KELP_MUST_USE;

#endif
