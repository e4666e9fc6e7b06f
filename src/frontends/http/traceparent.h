/* SPDX-License-Identifier: Apache-2.0 */
/* The header traceparent, which connects the spans of several programs. Source: W3C Recommendation
 * "Trace Context", Level 1; the flag RANDOM is of Level 2. */
#ifndef KELP_FRONTENDS_HTTP_TRACEPARENT_H_
#define KELP_FRONTENDS_HTTP_TRACEPARENT_H_

#include "base/str.h"

#include <stdbool.h>

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
/* Returns the trace ID in a traceparent, 32 digits; "" if it is malformed. */
kelp_str kelp_traceparent_trace_id(kelp_str text);

#endif
