/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Trace contexts: the headers traceparent and tracestate, which connect the spans of several
 * programs, and the identifiers of traces and spans. Source: W3C Recommendation "Trace Context",
 * Level 1; the flag RANDOM is of Level 2.
 */
#ifndef KELP_FRONTENDS_OTLP_CONTEXT_H_
#define KELP_FRONTENDS_OTLP_CONTEXT_H_

#include "base/arena.h"
#include "frontends/http/message.h"

#include <stdatomic.h>

/* Flags of a context. */
#define KELP_TRACE_SAMPLED 0x01u
#define KELP_TRACE_RANDOM 0x02u

/* The size of a traceparent with its NUL. */
#define KELP_TRACEPARENT_SIZE 56

typedef struct kelp_trace_id {
    unsigned char bytes[16]; /* all zero: none */
} kelp_trace_id;

typedef struct kelp_span_id {
    unsigned char bytes[8]; /* all zero: none */
} kelp_span_id;

/* The span that a program passes on. Zeroed: none. */
typedef struct kelp_trace_context {
    kelp_trace_id trace;
    kelp_span_id span;
    unsigned flags;
    kelp_str state; /* tracestate: members separated by commas, or "" */
} kelp_trace_context;

static inline bool kelp_trace_context_is_valid(const kelp_trace_context *context) {
    static const kelp_trace_id none;
    return memcmp(context->trace.bytes, none.bytes, sizeof none.bytes) != 0;
}

/* Parses a traceparent. Returns false if it is malformed; *out is then undefined. */
bool kelp_traceparent_parse(kelp_str text, kelp_trace_context *out);
/* Writes the traceparent of version 00. */
void kelp_traceparent_format(const kelp_trace_context *context, char out[KELP_TRACEPARENT_SIZE]);
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
