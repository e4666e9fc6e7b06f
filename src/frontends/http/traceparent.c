/* SPDX-License-Identifier: Apache-2.0 */
#include "frontends/http/traceparent.h"

#define KNOWN_FLAGS (KELP_TRACE_SAMPLED | KELP_TRACE_RANDOM)

/* Offsets in a traceparent, and its length. */
enum { TRACE = 3, SPAN = 36, FLAGS = 53, LENGTH = 55 };

/* Returns the value of a lower-case hexadecimal digit, or -1. */
static int digit(char c) {
    if (c >= '0' && c <= '9')
        return c - '0';
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* Parses 2 * `count` digits. */
static bool parse_bytes(const char *text, unsigned char *out, size_t count) {
    for (size_t i = 0; i < count; i++) {
        int high = digit(text[2 * i]), low = digit(text[2 * i + 1]);
        if (high < 0 || low < 0)
            return false;
        out[i] = (unsigned char)(high << 4 | low);
    }
    return true;
}

static bool is_zero(const unsigned char *bytes, size_t count) {
    unsigned sum = 0;
    for (size_t i = 0; i < count; i++)
        sum |= bytes[i];
    return sum == 0;
}

bool kelp_traceparent_parse(kelp_str text, kelp_trace_context *out) {
    unsigned char version, flags;
    if (text.length < LENGTH || !parse_bytes(text.data, &version, 1) || version == 0xff)
        return false;
    /* A later version may append fields. */
    if (text.length > LENGTH && (version == 0 || text.data[LENGTH] != '-'))
        return false;
    if (text.data[TRACE - 1] != '-' || text.data[SPAN - 1] != '-' || text.data[FLAGS - 1] != '-')
        return false;
    *out = (kelp_trace_context){0};
    if (!parse_bytes(text.data + TRACE, out->trace.bytes, sizeof out->trace.bytes) ||
        !parse_bytes(text.data + SPAN, out->span.bytes, sizeof out->span.bytes) ||
        !parse_bytes(text.data + FLAGS, &flags, 1))
        return false;
    out->flags = flags & KNOWN_FLAGS;
    return !is_zero(out->trace.bytes, sizeof out->trace.bytes) &&
           !is_zero(out->span.bytes, sizeof out->span.bytes);
}

static char *format_bytes(const unsigned char *bytes, size_t count, char *out) {
    static const char digits[] = "0123456789abcdef";
    for (size_t i = 0; i < count; i++) {
        *out++ = digits[bytes[i] >> 4];
        *out++ = digits[bytes[i] & 15];
    }
    return out;
}

void kelp_traceparent_format(const kelp_trace_context *context, char out[KELP_TRACEPARENT_SIZE]) {
    const unsigned char version = 0, flags = (unsigned char)context->flags;
    char *at = format_bytes(&version, 1, out);
    *at++ = '-';
    at = format_bytes(context->trace.bytes, sizeof context->trace.bytes, at);
    *at++ = '-';
    at = format_bytes(context->span.bytes, sizeof context->span.bytes, at);
    *at++ = '-';
    at = format_bytes(&flags, 1, at);
    *at = 0;
}

kelp_str kelp_traceparent_trace_id(kelp_str text) {
    kelp_trace_context context;
    if (!kelp_traceparent_parse(text, &context))
        return (kelp_str){0};
    return (kelp_str){text.data + TRACE, 2 * sizeof context.trace.bytes};
}
