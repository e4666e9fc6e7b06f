/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Traces of requests. A submission takes the trace from its creator. The release callback returns
 * it after the request is released and its responses are deleted. A trace is created without a
 * server, and uses the process-wide allocator. Reports come from any thread.
 */
#ifndef KELP_SERVER_REQUEST_TRACE_H_
#define KELP_SERVER_REQUEST_TRACE_H_

#include "server/request/response.h"

/* A trace. TRITONSERVER_InferenceTrace is a pointer to it. */
struct kelp_trace {
    uint64_t id;
    uint64_t parent_id;
    TRITONSERVER_InferenceTraceLevel level;
    TRITONSERVER_InferenceTraceActivityFn_t activity_fn;     /* may be NULL */
    TRITONSERVER_InferenceTraceTensorActivityFn_t tensor_fn; /* may be NULL */
    TRITONSERVER_InferenceTraceReleaseFn_t release_fn;
    void *userp;
    kelp_text model_name;
    int64_t model_version;
    kelp_text request_id;
    kelp_text context;
};

/* Creates a trace with the level, parent and callbacks of `options`, and a new id. */
kelp_status *kelp_trace_create(const kelp_trace *options, kelp_trace **out) KELP_MUST_USE;
/* Creates a trace for a request that is a part of a traced one. */
kelp_status *kelp_trace_spawn(const kelp_trace *parent, kelp_trace **out) KELP_MUST_USE;
/* NULL is ignored. */
void kelp_trace_destroy(kelp_trace *trace);
kelp_status *kelp_trace_set_context(kelp_trace *trace, const char *context) KELP_MUST_USE;

/* Records the names of the request and its model in the trace. */
kelp_status *kelp_trace_begin(kelp_trace *trace, const kelp_request *request) KELP_MUST_USE;
void kelp_trace_report(kelp_trace *trace, TRITONSERVER_InferenceTraceActivity activity,
                       uint64_t timestamp_ns);
/* Returns the context; "" if there is none. Valid until it is set, or until the callback returns
 * that reports a custom activity. */
const char *kelp_trace_context(const kelp_trace *trace);
/* Reports an activity of a backend. The callback has no parameter for the name: while it runs, the
 * context of the trace has, on its thread, a member "TIMESTAMP" with the name, as in Triton. */
kelp_status *kelp_trace_report_custom(kelp_trace *trace, uint64_t timestamp_ns,
                                      const char *name) KELP_MUST_USE;
/* Reports the tensors of a request or a response if the trace's level includes them. */
void kelp_trace_inputs(kelp_trace *trace, const kelp_request *request);
void kelp_trace_outputs(kelp_trace *trace, const kelp_response *response);
/* Returns the trace to its creator. */
void kelp_trace_release(kelp_trace *trace);

#endif
