/* SPDX-License-Identifier: Apache-2.0 */
#include "frontends/otlp/counters.h"

#include "frontends/common/status.h"

static const char *const reasons[KELP_OTLP_DROP_COUNT] = {"queue_full", "rejected", "unreachable",
                                                          "no_memory"};

static kelp_status *create_dropped(kelp_otlp_counters *counters, kelp_otlp_drop reason) {
    TRITONSERVER_Parameter *label =
        TRITONSERVER_ParameterNew("reason", TRITONSERVER_PARAMETER_STRING, reasons[reason]);
    if (label == NULL)
        return kelp_status_oom();
    const TRITONSERVER_Parameter *labels[] = {label};
    TRITONSERVER_Error *error =
        TRITONSERVER_MetricNew(&counters->dropped[reason], counters->dropped_family, labels, 1);
    TRITONSERVER_ParameterDelete(label);
    return kelp_v2_status(error);
}

kelp_status *kelp_otlp_counters_init(kelp_otlp_counters *counters) {
    KELP_TRY(kelp_v2_status(TRITONSERVER_MetricFamilyNew(
        &counters->exported_family, TRITONSERVER_METRIC_KIND_COUNTER,
        "kelp_trace_spans_exported_total", "Number of spans that the collector accepted")));
    KELP_TRY(kelp_v2_status(TRITONSERVER_MetricFamilyNew(
        &counters->dropped_family, TRITONSERVER_METRIC_KIND_COUNTER,
        "kelp_trace_spans_dropped_total", "Number of spans that were not exported, per reason")));
    KELP_TRY(kelp_v2_status(
        TRITONSERVER_MetricNew(&counters->exported, counters->exported_family, NULL, 0)));
    for (unsigned i = 0; i < KELP_OTLP_DROP_COUNT; i++)
        KELP_TRY(create_dropped(counters, (kelp_otlp_drop)i));
    return NULL;
}

void kelp_otlp_counters_deinit(kelp_otlp_counters *counters) {
    for (unsigned i = 0; i < KELP_OTLP_DROP_COUNT; i++)
        kelp_v2_ignore(TRITONSERVER_MetricDelete(counters->dropped[i]));
    kelp_v2_ignore(TRITONSERVER_MetricDelete(counters->exported));
    kelp_v2_ignore(TRITONSERVER_MetricFamilyDelete(counters->dropped_family));
    kelp_v2_ignore(TRITONSERVER_MetricFamilyDelete(counters->exported_family));
}

void kelp_otlp_count_exported(kelp_otlp_counters *counters, uint64_t spans) {
    kelp_v2_ignore(TRITONSERVER_MetricIncrement(counters->exported, (double)spans));
}

void kelp_otlp_count_dropped(kelp_otlp_counters *counters, kelp_otlp_drop reason, uint64_t spans) {
    kelp_v2_ignore(TRITONSERVER_MetricIncrement(counters->dropped[reason], (double)spans));
}
