/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The trace contexts of requests: the headers traceparent (see frontends/http/traceparent.h) and
 * tracestate; and generated identifiers of traces and spans. Source: W3C Recommendation "Trace
 * Context", Level 1.
 */
#ifndef KELP_FRONTENDS_OTLP_CONTEXT_H_
#define KELP_FRONTENDS_OTLP_CONTEXT_H_

#include "base/arena.h"
#include "frontends/http/message.h"
#include "frontends/http/traceparent.h"

#include <stdatomic.h>

/* Parses the tracestate headers of a request, in their order, as one list. Stores the list without
 * spaces and empty members, in the arena; "" if it is malformed or there is no memory for it. */
kelp_str kelp_tracestate_parse(kelp_arena *arena, const kelp_http_header *headers, size_t count);
/* Reads the context of a request. Stores a zeroed context if the request has no traceparent, a
 * malformed one, or several. `out->state` is in the arena. */
void kelp_trace_context_read(kelp_arena *arena, const kelp_http_request *request,
                             kelp_trace_context *out);

/* ---- identifiers ---- */
/* A generator of random identifiers. Thread-safe, without locks. */
typedef struct kelp_trace_ids {
    uint64_t seeds[3];
    atomic_uint_fast64_t next;
} kelp_trace_ids;

/* Seeds the generator with random bytes of the system. */
void kelp_trace_ids_init(kelp_trace_ids *ids);
kelp_trace_id kelp_trace_ids_trace(kelp_trace_ids *ids);
kelp_span_id kelp_trace_ids_span(kelp_trace_ids *ids);

#endif
