/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kelp/server.h: functions that Kelp's libtritonserver.so adds to Triton's in-process API
 * (triton/core/tritonserver.h). NVIDIA's library does not have them; a program that runs with both
 * looks them up with dlsym.
 */
#ifndef KELP_SERVER_H_
#define KELP_SERVER_H_

#include <triton/core/tritonserver.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Returns the error of TRITONSERVER_ServerInferAsync for a full queue (UNAVAILABLE) if the queue of
 * the request's model is full at this moment, and counts the request as rejected. A front end calls
 * it before it decodes a large request, so that rejecting the request costs little. Otherwise
 * returns NULL, also for models that batch sequences, cache responses or are ensembles, and for
 * queues with limits for priority levels: TRITONSERVER_ServerInferAsync then decides. The request
 * needs no inputs, and is not changed. Returns INVALID_ARG for NULL and INTERNAL for a deleted
 * request. Thread-safe for different requests. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *
KELP_InferenceRequestCheckQueue(TRITONSERVER_InferenceRequest *request);

/* The formats of KELP_ServerMetrics. */
typedef enum KELP_metricsformat_enum {
    KELP_METRICS_OPENMETRICS, /* OpenMetrics 1.0, with exemplars; counters have the type `unknown`
                               */
    KELP_METRICS_PROTOBUF /* io.prometheus.client.MetricFamily, each message after its length as a
                             varint; with native histograms */
} KELP_MetricsFormat;

/* Creates a page of metrics as TRITONSERVER_ServerMetrics does, in another format.
 * TRITONSERVER_MetricsFormatted (TRITONSERVER_METRIC_PROMETHEUS) returns its bytes. UNSUPPORTED
 * unless the metrics configuration (TRITONSERVER_ServerOptionsSetMetricsConfig) has
 * exemplars=true or native_histograms=true. INVALID_ARG for NULL and unknown formats.
 * Thread-safe. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *KELP_ServerMetrics(TRITONSERVER_Server *server,
                                                             KELP_MetricsFormat format,
                                                             TRITONSERVER_Metrics **metrics);

#ifdef __cplusplus
}
#endif

#endif
