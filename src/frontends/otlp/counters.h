/* SPDX-License-Identifier: Apache-2.0 */
/* The metrics of an exporter: kelp_trace_spans_exported_total, and kelp_trace_spans_dropped_total
 * with a reason. */
#ifndef KELP_FRONTENDS_OTLP_COUNTERS_H_
#define KELP_FRONTENDS_OTLP_COUNTERS_H_

#include <kelp/status.h>
#include <triton/core/tritonserver.h>

/* Why spans were dropped. */
typedef enum kelp_otlp_drop {
    KELP_OTLP_QUEUE_FULL,
    KELP_OTLP_REJECTED,    /* by the collector */
    KELP_OTLP_UNREACHABLE, /* the collector did not accept them in time */
    KELP_OTLP_NO_MEMORY,
    KELP_OTLP_DROP_COUNT
} kelp_otlp_drop;

typedef struct kelp_otlp_counters {
    TRITONSERVER_MetricFamily *exported_family, *dropped_family;
    TRITONSERVER_Metric *exported;
    TRITONSERVER_Metric *dropped[KELP_OTLP_DROP_COUNT];
} kelp_otlp_counters;

/* Initializes zeroed counters. On failure, deinit applies. */
kelp_status *kelp_otlp_counters_init(kelp_otlp_counters *counters) KELP_MUST_USE;
void kelp_otlp_counters_deinit(kelp_otlp_counters *counters);
/* These functions are thread-safe. */
void kelp_otlp_count_exported(kelp_otlp_counters *counters, uint64_t spans);
void kelp_otlp_count_dropped(kelp_otlp_counters *counters, kelp_otlp_drop reason, uint64_t spans);

#endif
