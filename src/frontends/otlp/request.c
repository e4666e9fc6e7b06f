/* SPDX-License-Identifier: Apache-2.0 */
#include "frontends/otlp/request.h"

#include "base/wire/protobuf.h"
#include "base/wire/protobuf_write.h"
#include "frontends/otlp/span.h"

#include <stdio.h>

/* A body that has become larger is freed. */
#define KEEP_BYTES ((size_t)1024 * 1024)

/* Fields of ExportTraceServiceRequest, ResourceSpans, ScopeSpans, Resource, InstrumentationScope,
 * and of the response. */
enum { REQUEST_RESOURCE_SPANS = 1 };
enum { RESOURCE_SPANS_RESOURCE = 1, RESOURCE_SPANS_SCOPE_SPANS = 2 };
enum { SCOPE_SPANS_SCOPE = 1, SCOPE_SPANS_SPANS = 2 };
enum { RESOURCE_ATTRIBUTES = 1 };
enum { SCOPE_NAME = 1, SCOPE_VERSION = 2 };
enum { RESPONSE_PARTIAL_SUCCESS = 1 };
enum { PARTIAL_REJECTED_SPANS = 1, PARTIAL_ERROR_MESSAGE = 2 };

#define SCOPE "kelp"

kelp_status *kelp_otlp_request_init(kelp_otlp_request *request, kelp_allocator allocator,
                                    const kelp_otlp_options *options) {
    kelp_buf *head = &request->head;
    kelp_buf_init(head, allocator);
    kelp_buf_init(&request->body, allocator);
    kelp_protobuf_put_text(head, SCOPE_NAME, SCOPE);
    kelp_protobuf_put_text(head, SCOPE_VERSION, options->client.version);
    kelp_protobuf_wrap(head, SCOPE_SPANS_SCOPE, 0);
    request->scope_bytes = head->length;
    for (size_t i = 0; i < options->resource_count; i++)
        kelp_otlp_put_attribute(head, RESOURCE_ATTRIBUTES, kelp_str_from(options->resource[i].key),
                                kelp_str_from(options->resource[i].value));
    kelp_protobuf_wrap(head, RESOURCE_SPANS_RESOURCE, request->scope_bytes);
    return kelp_buf_status(head);
}

void kelp_otlp_request_deinit(kelp_otlp_request *request) {
    kelp_buf_deinit(&request->head);
    kelp_buf_deinit(&request->body);
}

void kelp_otlp_request_begin(kelp_otlp_request *request) {
    if (request->body.capacity > KEEP_BYTES)
        kelp_buf_deinit(&request->body);
    kelp_buf_clear(&request->body);
    kelp_buf_append(&request->body, request->head.data, request->scope_bytes);
}

void kelp_otlp_request_add(kelp_otlp_request *request, kelp_str span) {
    kelp_protobuf_put_str(&request->body, SCOPE_SPANS_SPANS, span);
}

kelp_status *kelp_otlp_request_end(kelp_otlp_request *request, kelp_str *out) {
    kelp_buf *body = &request->body;
    kelp_protobuf_wrap(body, RESOURCE_SPANS_SCOPE_SPANS, 0);
    kelp_buf_append(body, request->head.data + request->scope_bytes,
                    request->head.length - request->scope_bytes);
    kelp_protobuf_wrap(body, REQUEST_RESOURCE_SPANS, 0);
    *out = (kelp_str){body->data, body->length};
    return kelp_buf_status(body);
}

/* Returns the field `number` of a message, or one with the number 0. */
static kelp_protobuf_field find(kelp_str message, uint32_t number) {
    kelp_protobuf wire = kelp_protobuf_of(message);
    kelp_protobuf_field field;
    while (kelp_protobuf_next(&wire, &field) == KELP_PROTOBUF_FIELD)
        if (field.number == number)
            return field;
    return (kelp_protobuf_field){0};
}

uint64_t kelp_otlp_rejected(kelp_str response, char *out_message, size_t size) {
    kelp_str partial = find(response, RESPONSE_PARTIAL_SUCCESS).bytes;
    kelp_protobuf_field rejected = find(partial, PARTIAL_REJECTED_SPANS);
    kelp_str message = find(partial, PARTIAL_ERROR_MESSAGE).bytes;
    if (rejected.number == 0 || rejected.type != KELP_PROTOBUF_VARINT || rejected.value > INT64_MAX)
        return 0;
    snprintf(out_message, size, "the collector rejected them: %.*s", KELP_STR_ARG(message));
    return rejected.value;
}
