/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Traces of requests. A trace belongs to its maker until a submission takes it, and comes back
 * through its release callback when request and responses are over. Any thread reports to it.
 */
#ifndef KELP_SERVER_REQUEST_TRACE_H_
#define KELP_SERVER_REQUEST_TRACE_H_

#include "server/request/response.h"

/* Names the request and its model in the trace. */
kelp_status *kelp_trace_begin(kelp_trace *trace, const kelp_request *request) KELP_MUST_USE;
void kelp_trace_report(kelp_trace *trace, TRITONSERVER_InferenceTraceActivity activity,
                       uint64_t timestamp_ns);
/* Where the level asks for tensors: those that the request brings, and those of a response. */
void kelp_trace_inputs(kelp_trace *trace, const kelp_request *request);
void kelp_trace_outputs(kelp_trace *trace, const kelp_response *response);
/* Gives the trace back to its maker. */
void kelp_trace_release(kelp_trace *trace);

#endif
