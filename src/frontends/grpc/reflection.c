/* SPDX-License-Identifier: Apache-2.0 */
/* gRPC's server reflection, versions v1 and v1alpha, whose messages are the same. */
#include "base/wire/protobuf_write.h"
#include "frontends/grpc/codec/decode.h"
#include "frontends/grpc/codec/descriptor.h"
#include "frontends/grpc/exchange.h"

enum { REQUEST_FILE = 3, REQUEST_SYMBOL, REQUEST_EXTENSION, REQUEST_EXTENSIONS, REQUEST_SERVICES };
enum { RESPONSE_REQUEST = 2, RESPONSE_FILES = 4 };
enum { RESPONSE_SERVICES = 6, RESPONSE_ERROR };
enum { FILES_FILE = 1, SERVICES_SERVICE = 1, SERVICE_NAME = 1, ERROR_CODE = 1, ERROR_MESSAGE };

static void put_error(kelp_buf *out, kelp_code code, const char *what, kelp_str name) {
    size_t start = out->length;
    kelp_protobuf_put_i64(out, ERROR_CODE, code);
    size_t text = out->length;
    kelp_buf_printf(out, "%s '%.*s' is unknown", what, KELP_STR_ARG(name));
    kelp_protobuf_wrap(out, ERROR_MESSAGE, text);
    kelp_protobuf_wrap(out, RESPONSE_ERROR, start);
}

/* Appends a file, and the file that it imports. */
static void put_files(kelp_buf *out, const kelp_grpc_row *file) {
    size_t start = out->length;
    while (file != NULL) {
        size_t bytes = out->length;
        kelp_grpc_put_file(out, file);
        kelp_protobuf_wrap(out, FILES_FILE, bytes);
        file = kelp_grpc_find_file(kelp_str_from(file->other));
    }
    kelp_protobuf_wrap(out, RESPONSE_FILES, start);
}

static void put_services(kelp_buf *out) {
    const kelp_grpc_row *file = NULL;
    size_t start = out->length;
    for (const kelp_grpc_row *row = kelp_grpc_schema; row < kelp_grpc_schema_end(); row++) {
        if (row->kind == KELP_GRPC_FILE)
            file = row;
        if (row->kind != KELP_GRPC_SERVICE || file == NULL)
            continue;
        size_t service = out->length;
        kelp_buf_printf(out, "%s.%s", file->type_name, row->name);
        kelp_protobuf_wrap(out, SERVICE_NAME, service);
        kelp_protobuf_wrap(out, SERVICES_SERVICE, service);
    }
    kelp_protobuf_wrap(out, RESPONSE_SERVICES, start);
}

static void put_answer(kelp_buf *out, const kelp_protobuf_field *question) {
    const kelp_grpc_row *file;
    switch (question->number) {
    case REQUEST_FILE:
        file = kelp_grpc_find_file(question->bytes);
        if (file != NULL)
            put_files(out, file);
        else
            put_error(out, KELP_NOT_FOUND, "file", question->bytes);
        return;
    case REQUEST_SYMBOL:
        file = kelp_grpc_find_symbol(question->bytes);
        if (file != NULL)
            put_files(out, file);
        else
            put_error(out, KELP_NOT_FOUND, "symbol", question->bytes);
        return;
    case REQUEST_SERVICES:
        put_services(out);
        return;
    case REQUEST_EXTENSIONS: /* proto3 messages have no extensions */
        put_error(out, KELP_NOT_FOUND, "extended type", question->bytes);
        return;
    default:
        put_error(out, KELP_NOT_FOUND, "extension", KELP_STR(""));
        return;
    }
}

void kelp_grpc_reflect(kelp_grpc_exchange *exchange, kelp_grpc_request *request) {
    kelp_str message = kelp_grpc_message_of(request);
    kelp_protobuf wire = kelp_protobuf_of(message);
    kelp_protobuf_field field, question = {0};
    bool more;
    kelp_status *status = kelp_grpc_next(&wire, "ServerReflectionRequest", &field, &more);
    while (status == NULL && more) {
        if (field.number >= REQUEST_FILE && field.number <= REQUEST_SERVICES &&
            field.type == KELP_PROTOBUF_BYTES)
            question = field;
        status = kelp_grpc_next(&wire, "ServerReflectionRequest", &field, &more);
    }
    if (status == NULL) {
        kelp_buf *out = kelp_grpc_begin(exchange);
        kelp_protobuf_put_str(out, RESPONSE_REQUEST, message);
        put_answer(out, &question);
        kelp_grpc_end(exchange);
        status = kelp_buf_status(out);
    }
    if (status != NULL) {
        kelp_grpc_finish(exchange, status);
        return;
    }
    exchange->sending = exchange->has_sent = true;
    kelp_http_exchange_send_part(&exchange->base);
}
