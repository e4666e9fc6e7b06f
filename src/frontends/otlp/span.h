/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Spans, encoded while they are recorded: attributes and events are appended to the message Span of
 * OTLP. Failures are kept in the buffer. Text that is not valid UTF-8 is corrected, because
 * protobuf requires it. Used by one thread at a time.
 *
 * Source: opentelemetry/proto/trace/v1/trace.proto and common/v1/common.proto, version 1.
 */
#ifndef KELP_FRONTENDS_OTLP_SPAN_H_
#define KELP_FRONTENDS_OTLP_SPAN_H_

#include "base/buf.h"
#include "frontends/otlp/context.h"

/* Further events of a span are counted, but not recorded. */
#define KELP_OTLP_SPAN_MAX_EVENTS 128

typedef enum kelp_otlp_span_kind {
    KELP_OTLP_SPAN_INTERNAL = 1,
    KELP_OTLP_SPAN_SERVER = 2
} kelp_otlp_span_kind;

typedef struct kelp_otlp_span {
    kelp_buf message;
    uint32_t events, dropped_events;
    bool failed; /* the status is ERROR */
} kelp_otlp_span;

/* What a span has from its start on. */
typedef struct kelp_otlp_span_start {
    kelp_trace_context self;
    kelp_span_id parent; /* all zero: the root of its trace */
    bool remote;         /* the parent is a span of another program */
    kelp_str name;
    kelp_otlp_span_kind kind;
    uint64_t time_ns; /* since 1970 */
} kelp_otlp_span_start;

/* Begins a span. kelp_otlp_span_deinit frees its memory. */
void kelp_otlp_span_begin(kelp_otlp_span *span, kelp_allocator allocator,
                          const kelp_otlp_span_start *start);
void kelp_otlp_span_deinit(kelp_otlp_span *span);
void kelp_otlp_span_put_text(kelp_otlp_span *span, const char *key, kelp_str value);
void kelp_otlp_span_put_number(kelp_otlp_span *span, const char *key, int64_t value);
void kelp_otlp_span_add_event(kelp_otlp_span *span, kelp_str name, uint64_t time_ns);
/* Sets the status ERROR with a description. Only the first call has an effect. */
void kelp_otlp_span_fail(kelp_otlp_span *span, kelp_str message);
/* Ends the span: span->message is complete, unless it has failed. */
void kelp_otlp_span_end(kelp_otlp_span *span, uint64_t time_ns);

/* Appends an attribute, the field `number` of a message. */
void kelp_otlp_put_attribute(kelp_buf *out, uint32_t number, kelp_str key, kelp_str value);

#endif
