/* SPDX-License-Identifier: Apache-2.0 */
/* The C API: metrics that backends and applications create. */
#include "server/core/error.h"
#include "server/metrics/metrics.h"

TRITONSERVER_Error *TRITONSERVER_MetricFamilyNew(TRITONSERVER_MetricFamily **family,
                                                 const TRITONSERVER_MetricKind kind,
                                                 const char *name, const char *description) {
    if (family == NULL || name == NULL || description == NULL)
        return kelp_null_error(__func__, family == NULL ? "family"
                                         : name == NULL ? "name"
                                                        : "description");
    if ((unsigned)kind > TRITONSERVER_METRIC_KIND_HISTOGRAM)
        return kelp_to_error(
            KELP_ERROR(KELP_INVALID_ARGUMENT, "unknown metric kind '%d'", (int)kind));
    return kelp_to_error(
        kelp_metric_family_acquire(kind, name, description, (kelp_metric_family **)family));
}

TRITONSERVER_Error *TRITONSERVER_MetricFamilyDelete(TRITONSERVER_MetricFamily *family) {
    return family != NULL ? kelp_to_error(kelp_metric_family_release((kelp_metric_family *)family))
                          : NULL;
}

TRITONSERVER_Error *TRITONSERVER_GetMetricFamilyKind(TRITONSERVER_MetricFamily *family,
                                                     TRITONSERVER_MetricKind *kind) {
    if (family == NULL || kind == NULL)
        return kelp_null_error(__func__, family != NULL ? "kind" : "family");
    *kind = kelp_metric_family_kind((const kelp_metric_family *)family);
    return NULL;
}

TRITONSERVER_Error *TRITONSERVER_MetricArgsNew(TRITONSERVER_MetricArgs **args) {
    if (args == NULL)
        return kelp_null_error(__func__, "args");
    return kelp_to_error(kelp_metric_args_create((kelp_metric_args **)args));
}

TRITONSERVER_Error *TRITONSERVER_MetricArgsSetHistogram(TRITONSERVER_MetricArgs *args,
                                                        const double *buckets,
                                                        const uint64_t buckets_count) {
    if (args == NULL || (buckets == NULL && buckets_count))
        return kelp_null_error(__func__, args != NULL ? "buckets" : "args");
    return kelp_to_error(
        kelp_metric_args_set_bounds((kelp_metric_args *)args, buckets, buckets_count));
}

TRITONSERVER_Error *TRITONSERVER_MetricArgsDelete(TRITONSERVER_MetricArgs *args) {
    kelp_metric_args_destroy((kelp_metric_args *)args);
    return NULL;
}

TRITONSERVER_Error *TRITONSERVER_MetricNew(TRITONSERVER_Metric **metric,
                                           TRITONSERVER_MetricFamily *family,
                                           const TRITONSERVER_Parameter **labels,
                                           const uint64_t label_count) {
    return TRITONSERVER_MetricNewWithArgs(metric, family, labels, label_count, NULL);
}

TRITONSERVER_Error *TRITONSERVER_MetricNewWithArgs(TRITONSERVER_Metric **metric,
                                                   TRITONSERVER_MetricFamily *family,
                                                   const TRITONSERVER_Parameter **labels,
                                                   const uint64_t label_count,
                                                   const TRITONSERVER_MetricArgs *args) {
    if (metric == NULL || family == NULL || (labels == NULL && label_count))
        return kelp_null_error(__func__, metric == NULL   ? "metric"
                                         : family == NULL ? "family"
                                                          : "labels");
    kelp_metric_family *parent = (kelp_metric_family *)family;
    const kelp_metric_args *bounds = (const kelp_metric_args *)args;
    if ((bounds == NULL || !bounds->is_set) &&
        kelp_metric_family_kind(parent) == TRITONSERVER_METRIC_KIND_HISTOGRAM)
        return kelp_to_error(
            KELP_ERROR(KELP_INVALID_ARGUMENT, "a histogram needs arguments with its buckets"));
    return kelp_to_error(
        kelp_metric_acquire(parent, (const kelp_parameter *const *)(const void *)labels,
                            label_count, bounds != NULL ? bounds->bounds : NULL,
                            bounds != NULL ? bounds->count : 0, (kelp_metric **)metric));
}

TRITONSERVER_Error *TRITONSERVER_MetricDelete(TRITONSERVER_Metric *metric) {
    if (metric != NULL)
        kelp_metric_release((kelp_metric *)metric);
    return NULL;
}

TRITONSERVER_Error *TRITONSERVER_MetricValue(TRITONSERVER_Metric *metric, double *value) {
    if (metric == NULL || value == NULL)
        return kelp_null_error(__func__, metric != NULL ? "value" : "metric");
    return kelp_to_error(kelp_metric_value((const kelp_metric *)metric, value));
}

TRITONSERVER_Error *TRITONSERVER_MetricIncrement(TRITONSERVER_Metric *metric, double value) {
    if (metric == NULL)
        return kelp_null_error(__func__, "metric");
    return kelp_to_error(kelp_metric_increment((kelp_metric *)metric, value));
}

TRITONSERVER_Error *TRITONSERVER_MetricSet(TRITONSERVER_Metric *metric, double value) {
    if (metric == NULL)
        return kelp_null_error(__func__, "metric");
    return kelp_to_error(kelp_metric_set((kelp_metric *)metric, value));
}

TRITONSERVER_Error *TRITONSERVER_MetricObserve(TRITONSERVER_Metric *metric, double value) {
    if (metric == NULL)
        return kelp_null_error(__func__, "metric");
    return kelp_to_error(kelp_metric_observe((kelp_metric *)metric, value));
}

TRITONSERVER_Error *TRITONSERVER_GetMetricKind(TRITONSERVER_Metric *metric,
                                               TRITONSERVER_MetricKind *kind) {
    if (metric == NULL || kind == NULL)
        return kelp_null_error(__func__, metric != NULL ? "kind" : "metric");
    *kind = kelp_metric_kind((const kelp_metric *)metric);
    return NULL;
}
