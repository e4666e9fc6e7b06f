/* SPDX-License-Identifier: Apache-2.0 */
#include "frontends/otlp/span.h"

#include "base/text/utf8.h"
#include "base/wire/protobuf_write.h"

/* A span that becomes longer is dropped. */
#define MAX_SPAN_BYTES ((size_t)1024 * 1024)

/* Fields of Span, Event, Status, KeyValue and AnyValue. */
enum {
    SPAN_TRACE_ID = 1,
    SPAN_SPAN_ID = 2,
    SPAN_TRACE_STATE = 3,
    SPAN_PARENT_SPAN_ID = 4,
    SPAN_NAME = 5,
    SPAN_KIND = 6,
    SPAN_START_TIME = 7,
    SPAN_END_TIME = 8,
    SPAN_ATTRIBUTES = 9,
    SPAN_EVENTS = 11,
    SPAN_DROPPED_EVENTS = 12,
    SPAN_STATUS = 15,
    SPAN_FLAGS = 16
};
enum { EVENT_TIME = 1, EVENT_NAME = 2 };
enum { STATUS_MESSAGE = 2, STATUS_CODE = 3 };
enum { STATUS_CODE_ERROR = 2 };
enum { KEY_VALUE_KEY = 1, KEY_VALUE_VALUE = 2 };
enum { ANY_VALUE_STRING = 1, ANY_VALUE_INT = 3 };
/* Flags of a span above those of the W3C. */
enum { FLAG_HAS_IS_REMOTE = 0x100, FLAG_IS_REMOTE = 0x200 };

/* Appends a string field. Each byte that is not part of a valid character becomes '?'. */
static void put_string(kelp_buf *out, uint32_t number, kelp_str text) {
    uint32_t unused;
    if (kelp_utf8_count(text, NULL)) {
        kelp_protobuf_put_str(out, number, text);
        return;
    }
    kelp_protobuf_put_length(out, number, text.length);
    while (text.length > 0) {
        size_t n = kelp_utf8_decode(text, &unused);
        if (n > 0)
            kelp_buf_append(out, text.data, n);
        else
            kelp_buf_append_char(out, '?');
        n = n > 0 ? n : 1;
        text = (kelp_str){text.data + n, text.length - n};
    }
}

void kelp_otlp_put_attribute(kelp_buf *out, uint32_t number, kelp_str key, kelp_str value) {
    size_t start = out->length;
    put_string(out, KEY_VALUE_KEY, key);
    size_t value_start = out->length;
    put_string(out, ANY_VALUE_STRING, value);
    kelp_protobuf_wrap(out, KEY_VALUE_VALUE, value_start);
    kelp_protobuf_wrap(out, number, start);
}

void kelp_otlp_span_begin(kelp_otlp_span *span, kelp_allocator allocator,
                          const kelp_otlp_span_start *start) {
    static const kelp_span_id none;
    const kelp_trace_context *self = &start->self;
    kelp_buf *out = &span->message;
    uint32_t flags = self->flags | FLAG_HAS_IS_REMOTE | (start->remote ? FLAG_IS_REMOTE : 0u);
    *span = (kelp_otlp_span){0};
    kelp_buf_init(out, allocator);
    out->limit_bytes = MAX_SPAN_BYTES;
    kelp_protobuf_put_bytes(out, SPAN_TRACE_ID, self->trace.bytes, sizeof self->trace.bytes);
    kelp_protobuf_put_bytes(out, SPAN_SPAN_ID, self->span.bytes, sizeof self->span.bytes);
    if (self->state.length > 0)
        kelp_protobuf_put_str(out, SPAN_TRACE_STATE, self->state);
    if (memcmp(start->parent.bytes, none.bytes, sizeof none.bytes) != 0)
        kelp_protobuf_put_bytes(out, SPAN_PARENT_SPAN_ID, start->parent.bytes,
                                sizeof start->parent.bytes);
    put_string(out, SPAN_NAME, start->name);
    kelp_protobuf_put_i64(out, SPAN_KIND, start->kind);
    kelp_protobuf_put_fixed64(out, SPAN_START_TIME, start->time_ns);
    kelp_protobuf_put_fixed32(out, SPAN_FLAGS, flags);
}

void kelp_otlp_span_deinit(kelp_otlp_span *span) {
    kelp_buf_deinit(&span->message);
}

void kelp_otlp_span_put_text(kelp_otlp_span *span, const char *key, kelp_str value) {
    kelp_otlp_put_attribute(&span->message, SPAN_ATTRIBUTES, kelp_str_from(key), value);
}

void kelp_otlp_span_put_number(kelp_otlp_span *span, const char *key, int64_t value) {
    kelp_buf *out = &span->message;
    size_t start = out->length;
    kelp_protobuf_put_text(out, KEY_VALUE_KEY, key);
    size_t value_start = out->length;
    kelp_protobuf_put_i64(out, ANY_VALUE_INT, value);
    kelp_protobuf_wrap(out, KEY_VALUE_VALUE, value_start);
    kelp_protobuf_wrap(out, SPAN_ATTRIBUTES, start);
}

void kelp_otlp_span_add_event(kelp_otlp_span *span, kelp_str name, uint64_t time_ns) {
    kelp_buf *out = &span->message;
    size_t start = out->length;
    if (span->events == KELP_OTLP_SPAN_MAX_EVENTS) {
        span->dropped_events++;
        return;
    }
    span->events++;
    kelp_protobuf_put_fixed64(out, EVENT_TIME, time_ns);
    put_string(out, EVENT_NAME, name);
    kelp_protobuf_wrap(out, SPAN_EVENTS, start);
}

void kelp_otlp_span_fail(kelp_otlp_span *span, kelp_str message) {
    kelp_buf *out = &span->message;
    size_t start = out->length;
    if (span->failed)
        return;
    span->failed = true;
    put_string(out, STATUS_MESSAGE, message);
    kelp_protobuf_put_i64(out, STATUS_CODE, STATUS_CODE_ERROR);
    kelp_protobuf_wrap(out, SPAN_STATUS, start);
}

void kelp_otlp_span_end(kelp_otlp_span *span, uint64_t time_ns) {
    if (span->dropped_events > 0)
        kelp_protobuf_put_i64(&span->message, SPAN_DROPPED_EVENTS, span->dropped_events);
    kelp_protobuf_put_fixed64(&span->message, SPAN_END_TIME, time_ns);
}
