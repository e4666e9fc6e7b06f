/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Metrics that backends and applications make, as Triton's API defines them: one registry for the
 * process, where a family of a name exists once however many handles there are, and so does a
 * series of labels within it. Any thread; values are atomics, the registry's lock is taken only to
 * make, delete and print.
 */
#ifndef KELP_SERVER_METRICS_METRICS_H_
#define KELP_SERVER_METRICS_METRICS_H_

#include "base/buf.h"
#include "server/core/values.h"

#include <stdatomic.h>

typedef struct kelp_metric_family kelp_metric_family;
typedef struct kelp_metric kelp_metric;

/* A handle to the family of that name. INVALID_ARGUMENT when there is one of another kind. */
kelp_status *kelp_metric_family_acquire(TRITONSERVER_MetricKind kind, const char *name,
                                        const char *description,
                                        kelp_metric_family **out) KELP_MUST_USE;
/* INTERNAL, and nothing happens, while it is the last handle and metrics of the family exist. */
kelp_status *kelp_metric_family_release(kelp_metric_family *family) KELP_MUST_USE;
TRITONSERVER_MetricKind kelp_metric_family_kind(const kelp_metric_family *family);

/* A handle to the series of these labels (STRING parameters). `bounds` rise; only for histograms.
 */
kelp_status *kelp_metric_acquire(kelp_metric_family *family, const kelp_parameter *const *labels,
                                 size_t label_count, const double *bounds, size_t bound_count,
                                 kelp_metric **out) KELP_MUST_USE;
void kelp_metric_release(kelp_metric *metric);
TRITONSERVER_MetricKind kelp_metric_kind(const kelp_metric *metric);

/* UNIMPLEMENTED where the kind does not have it, INVALID_ARGUMENT for a counter that would fall. */
kelp_status *kelp_metric_value(const kelp_metric *metric, double *out) KELP_MUST_USE;
kelp_status *kelp_metric_increment(kelp_metric *metric, double value) KELP_MUST_USE;
kelp_status *kelp_metric_set(kelp_metric *metric, double value) KELP_MUST_USE;
kelp_status *kelp_metric_observe(kelp_metric *metric, double value) KELP_MUST_USE;

/* Appends all families in the text format of Prometheus. */
void kelp_metrics_write(kelp_buf *out);
/* name="value", escaped; `separator` before it. */
void kelp_metrics_write_label(kelp_buf *out, const char *separator, const char *name,
                              const char *value);
void kelp_metrics_write_header(kelp_buf *out, const char *name, const char *help, const char *type);
/* CPU time and memory of the machine. */
void kelp_metrics_write_host(kelp_buf *out);
/* A whole number without a fraction. */
void kelp_metrics_write_number(kelp_buf *out, double value);

#endif
