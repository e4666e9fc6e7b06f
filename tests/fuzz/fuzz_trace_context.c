/* SPDX-License-Identifier: Apache-2.0 */
/* Fuzzes the trace context of requests. The first line is a traceparent, the others are tracestate
 * headers. What is accepted is written and read again without a difference. */
#include "frontends/otlp/context.h"

#include <stdint.h>
#include <stdlib.h>

#define MAX_HEADERS 64

/* Checks that a list that was accepted is its own normal form. */
static void check_state(kelp_arena *arena, kelp_str state) {
    const kelp_http_header header = {KELP_STR("tracestate"), state};
    kelp_str again = kelp_tracestate_parse(arena, &header, 1);
    if (!kelp_str_equal(state, again))
        abort();
}

/* Checks that the written form of a context is read as the same context. */
static void check_parent(const kelp_trace_context *context) {
    char text[KELP_TRACEPARENT_SIZE];
    kelp_trace_context again;
    kelp_traceparent_format(context, text);
    if (!kelp_traceparent_parse(kelp_str_from(text), &again) ||
        memcmp(again.trace.bytes, context->trace.bytes, sizeof again.trace.bytes) != 0 ||
        memcmp(again.span.bytes, context->span.bytes, sizeof again.span.bytes) != 0 ||
        again.flags != context->flags)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    kelp_http_header headers[MAX_HEADERS];
    const char *at = (const char *)data, *end = at + size;
    kelp_http_request request = {.headers = headers};
    kelp_trace_context context;
    kelp_arena arena;
    while (request.header_count < MAX_HEADERS && (at < end || request.header_count == 0)) {
        const char *line = size > 0 ? memchr(at, '\n', (size_t)(end - at)) : NULL;
        size_t length = (size_t)((line != NULL ? line : end) - at);
        headers[request.header_count] = (kelp_http_header){
            request.header_count == 0 ? KELP_STR("traceparent") : KELP_STR("tracestate"),
            {at, length}};
        request.header_count++;
        at = line != NULL ? line + 1 : end;
    }
    kelp_arena_init(&arena, kelp_allocator_system(), 0);
    kelp_trace_context_read(&arena, &request, &context);
    if (kelp_trace_context_is_valid(&context))
        check_parent(&context);
    check_state(&arena, kelp_tracestate_parse(&arena, headers, request.header_count));
    kelp_arena_deinit(&arena);
    return 0;
}
