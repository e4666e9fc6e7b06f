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

/* Lets a request skip the queue delay of dynamic batching, until it is deleted, if it may execute
 * on the thread that submits it. If no instance is idle, it is queued and joins a batch as usual.
 * Without effect with a latency target or a batching strategy. A front end calls it while its
 * threads are busy: batches then form while instances execute, and a thread that waits for larger
 * ones needs more CPU time than they save. INVALID_ARG for NULL. The request is not in flight. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *
KELP_InferenceRequestSkipQueueDelay(TRITONSERVER_InferenceRequest *request);

/* The batches that a thread executes when their queue delay ends. Without it, a thread of the
 * server does, which costs two more wake-ups of threads for each batch. Used by one thread, such as
 * an event loop, which calls KELP_DueBatchesExecute in time; if it is late by more than 2 ms, a
 * thread of the server executes the batch. */
typedef struct KELP_DueBatches KELP_DueBatches;

/* Creates an object without batches; RESOURCE_EXHAUSTED is reported as UNAVAILABLE. The caller
 * deletes it. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *KELP_DueBatchesNew(KELP_DueBatches **due);
/* Deletes the object. Requests in flight may refer to it. NULL is allowed. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *KELP_DueBatchesDelete(KELP_DueBatches *due);
/* Lets the submitting thread execute the batch of a request that waits for its queue delay, if the
 * execution is short enough for this thread (NULL, the default: a thread of the server). Until the
 * request is deleted. INVALID_ARG for a `request` that is NULL. The request is not in flight. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *
KELP_InferenceRequestSetDueBatches(TRITONSERVER_InferenceRequest *request, KELP_DueBatches *due);
/* Executes the batches that are due, and sets `*next_ns` to the time (CLOCK_MONOTONIC) of the next
 * one, UINT64_MAX if none waits. To be called at this time, and after requests were submitted with
 * `due`. Responses arrive during the call. INVALID_ARG for NULL. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *KELP_DueBatchesExecute(KELP_DueBatches *due,
                                                                 uint64_t *next_ns);

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
