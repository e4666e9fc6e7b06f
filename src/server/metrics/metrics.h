/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Metrics that backends and applications create, as Triton's API defines them: one registry for the
 * process. A family exists once for each name and a series once for each set of labels, however
 * many handles there are. Thread-safe: values are atomics; the registry's lock is taken only to
 * create, delete and print. Uses the process-wide allocator.
 */
#ifndef KELP_SERVER_METRICS_METRICS_H_
#define KELP_SERVER_METRICS_METRICS_H_

#include "base/buf.h"
#include "server/core/values.h"

typedef struct kelp_metric_family kelp_metric_family;
typedef struct kelp_metric kelp_metric;

/* Returns a handle to the family of that name. INVALID_ARGUMENT if it exists with another kind. */
kelp_status *kelp_metric_family_acquire(TRITONSERVER_MetricKind kind, const char *name,
                                        const char *description,
                                        kelp_metric_family **out) KELP_MUST_USE;
/* INTERNAL, without effect, if it is the last handle and metrics of the family exist. */
kelp_status *kelp_metric_family_release(kelp_metric_family *family) KELP_MUST_USE;
TRITONSERVER_MetricKind kelp_metric_family_kind(const kelp_metric_family *family);

/* The bounds of a histogram, until a metric copies them. What TRITONSERVER_MetricArgs points at. */
typedef struct kelp_metric_args {
    double *bounds;
    size_t count;
} kelp_metric_args;
kelp_status *kelp_metric_args_create(kelp_metric_args **out) KELP_MUST_USE;
kelp_status *kelp_metric_args_set_bounds(kelp_metric_args *args, const double *bounds,
                                         size_t count) KELP_MUST_USE;
/* NULL is ignored. */
void kelp_metric_args_destroy(kelp_metric_args *args);

/* Returns a handle to the series of these labels (STRING parameters). `bounds` ascend; only for
 * histograms.
 */
kelp_status *kelp_metric_acquire(kelp_metric_family *family, const kelp_parameter *const *labels,
                                 size_t label_count, const double *bounds, size_t bound_count,
                                 kelp_metric **out) KELP_MUST_USE;
void kelp_metric_release(kelp_metric *metric);
TRITONSERVER_MetricKind kelp_metric_kind(const kelp_metric *metric);

/* UNIMPLEMENTED if the kind lacks the operation, INVALID_ARGUMENT for a counter that would
 * decrease.
 */
kelp_status *kelp_metric_value(const kelp_metric *metric, double *out) KELP_MUST_USE;
kelp_status *kelp_metric_increment(kelp_metric *metric, double value) KELP_MUST_USE;
kelp_status *kelp_metric_set(kelp_metric *metric, double value) KELP_MUST_USE;
kelp_status *kelp_metric_observe(kelp_metric *metric, double value) KELP_MUST_USE;

/* Appends all families in the text format of Prometheus. */
void kelp_metrics_write(kelp_buf *out);
/* Appends a separator and name="value", escaped. */
void kelp_metrics_write_label(kelp_buf *out, const char *separator, const char *name,
                              const char *value);
void kelp_metrics_write_header(kelp_buf *out, const char *name, const char *help, const char *type);
/* Appends CPU time and memory of the machine. */
void kelp_metrics_write_host(kelp_buf *out);
/* Appends a number; integers without a fraction. */
void kelp_metrics_write_number(kelp_buf *out, double value);

#endif
