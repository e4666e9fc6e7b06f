/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Metrics that backends and applications create, as defined by Triton's API: one registry for the
 * process. There is one family for each name and one series for each set of labels; several handles
 * may refer to them. Thread-safe: values are atomics, and creation, deletion and printing take the
 * registry's lock. Uses the process-wide allocator.
 */
#ifndef KELP_SERVER_METRICS_METRICS_H_
#define KELP_SERVER_METRICS_METRICS_H_

#include "base/buf.h"
#include "server/core/values.h"

typedef struct kelp_metric_family kelp_metric_family;
typedef struct kelp_metric kelp_metric;

/* Returns a handle to the family of a name. INVALID_ARGUMENT if it exists with a different kind. */
kelp_status *kelp_metric_family_acquire(TRITONSERVER_MetricKind kind, const char *name,
                                        const char *description,
                                        kelp_metric_family **out) KELP_MUST_USE;
/* Releases a handle. INTERNAL, without effect, if it is the last one and the family has metrics. */
kelp_status *kelp_metric_family_release(kelp_metric_family *family) KELP_MUST_USE;
TRITONSERVER_MetricKind kelp_metric_family_kind(const kelp_metric_family *family);

/* The bounds of a histogram. TRITONSERVER_MetricArgs is a pointer to it. */
typedef struct kelp_metric_args {
    double *bounds;
    size_t count;
    bool is_set; /* kelp_metric_args_set_bounds was called */
} kelp_metric_args;
kelp_status *kelp_metric_args_create(kelp_metric_args **out) KELP_MUST_USE;
kelp_status *kelp_metric_args_set_bounds(kelp_metric_args *args, const double *bounds,
                                         size_t count) KELP_MUST_USE;
/* Frees the arguments. NULL is ignored. */
void kelp_metric_args_destroy(kelp_metric_args *args);

/* Returns a handle to the series with these labels (STRING parameters). `bounds`, ascending, are
 * for histograms only. */
kelp_status *kelp_metric_acquire(kelp_metric_family *family, const kelp_parameter *const *labels,
                                 size_t label_count, const double *bounds, size_t bound_count,
                                 kelp_metric **out) KELP_MUST_USE;
void kelp_metric_release(kelp_metric *metric);
TRITONSERVER_MetricKind kelp_metric_kind(const kelp_metric *metric);

/* Reads or changes a value. UNIMPLEMENTED if the kind does not support the operation,
 * INVALID_ARGUMENT if a counter would decrease. */
kelp_status *kelp_metric_value(const kelp_metric *metric, double *out) KELP_MUST_USE;
kelp_status *kelp_metric_increment(kelp_metric *metric, double value) KELP_MUST_USE;
kelp_status *kelp_metric_set(kelp_metric *metric, double value) KELP_MUST_USE;
kelp_status *kelp_metric_observe(kelp_metric *metric, double value) KELP_MUST_USE;

/* Appends all families in the text format of Prometheus. */
void kelp_metrics_write(kelp_buf *out);
/* Appends a separator and name="value", escaped. */
void kelp_metrics_write_label(kelp_buf *out, const char *separator, const char *name,
                              const char *value);
/* Appends the HELP and TYPE lines of a family; the text is escaped. */
void kelp_metrics_write_header(kelp_buf *out, const char *name, const char *help, const char *type);
/* Appends CPU time and memory of the machine. */
void kelp_metrics_write_host(kelp_buf *out);
/* Appends a number; an integer without a fraction. */
void kelp_metrics_write_number(kelp_buf *out, double value);

#endif
