/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The spans of a traced request, named as in Triton: the span "InferRequest" of the front end, a
 * span for each model that runs for the request, and the span "compute" of its execution. A custom
 * activity NAME_START begins a span NAME, NAME_END ends it. All other activities are events.
 *
 * The functions are not thread-safe: the lock of the record guards them.
 */
#ifndef KELP_FRONTENDS_TRACE_SPANS_H_
#define KELP_FRONTENDS_TRACE_SPANS_H_

#include "frontends/otlp/exporter.h"
#include "frontends/otlp/span.h"
#include "frontends/trace/tracing.h"

typedef struct kelp_trace_spans kelp_trace_spans;

/* Begins the span "InferRequest" in the trace `trace_id`. The exporter and the generator are
 * borrowed. */
kelp_status *kelp_trace_spans_create(kelp_allocator allocator, kelp_otlp_exporter *exporter,
                                     kelp_trace_ids *ids, const kelp_trace_origin *origin,
                                     const kelp_trace_id *trace_id,
                                     kelp_trace_spans **out) KELP_MUST_USE;
/* Ends all spans and frees the object. */
void kelp_trace_spans_destroy(kelp_trace_spans *spans);
/* Adds an activity of the front end. */
void kelp_trace_spans_stamp(kelp_trace_spans *spans, const char *activity, uint64_t time_ns);
/* Adds an activity of the server. A span of a model becomes the context of the trace. */
void kelp_trace_spans_report(kelp_trace_spans *spans, TRITONSERVER_InferenceTrace *trace,
                             uint64_t id, TRITONSERVER_InferenceTraceActivity activity,
                             const char *name, uint64_t time_ns);
/* Ends the spans of a trace that the server releases. */
void kelp_trace_spans_release(kelp_trace_spans *spans, uint64_t id);
/* Sets the status of the request. `code` is that of gRPC or, for HTTP, the status; 0: unknown.
 * `message` is NULL for a success. */
void kelp_trace_spans_finish(kelp_trace_spans *spans, unsigned code, const char *message);

#endif
