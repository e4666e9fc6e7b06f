/* SPDX-License-Identifier: Apache-2.0 */
#include "frontends/grpc/codec/message.h"

#include "base/alloc.h"
#include "base/assert.h"
#include "base/checked.h"

/* The space for prefixes: that of gRPC, and key and length of one field. */
#define SPACE_BYTES 32
#define MAX_VARINT_BYTES 10
#define WIRE_BYTES 2

void kelp_grpc_message_init(kelp_grpc_message *message, kelp_allocator allocator) {
    *message = (kelp_grpc_message){.allocator = allocator};
    kelp_buf_init(&message->text, allocator);
}

void kelp_grpc_message_deinit(kelp_grpc_message *message) {
    kelp_buf_deinit(&message->text);
    kelp_free(message->allocator, message->tensors,
              message->tensor_capacity * sizeof *message->tensors);
    message->tensors = NULL;
    message->tensor_count = message->tensor_capacity = 0;
}

void kelp_grpc_message_clear(kelp_grpc_message *message) {
    if (message->text.capacity > KELP_HTTP_KEEP_BYTES)
        kelp_buf_deinit(&message->text);
    kelp_buf_clear(&message->text);
    message->tensor_count = 0;
    message->start = 0;
}

void kelp_grpc_message_begin(kelp_grpc_message *message) {
    static const char space[SPACE_BYTES];
    kelp_buf_clear(&message->text);
    kelp_buf_append(&message->text, space, sizeof space);
    message->start = sizeof space;
    message->tensor_count = 0;
}

kelp_status *kelp_grpc_message_add_tensor(kelp_grpc_message *message, const void *data,
                                          size_t size_bytes) {
    if (size_bytes == 0)
        return NULL;
    KELP_TRY(kelp_grow(message->allocator, (void **)&message->tensors, &message->tensor_capacity,
                       message->tensor_count + 1, sizeof *message->tensors));
    message->tensors[message->tensor_count++] =
        (kelp_grpc_tensor){message->text.length, data, size_bytes};
    return NULL;
}

static uint64_t length_of(const kelp_grpc_message *message) {
    uint64_t length = message->text.length - message->start;
    for (size_t i = 0; i < message->tensor_count; i++)
        length += message->tensors[i].size_bytes;
    return length;
}

/* Inserts bytes before the first byte. */
static void prepend(kelp_grpc_message *message, const void *bytes, size_t length) {
    KELP_ASSERT(message->start >= length);
    message->start -= length;
    if (!message->text.failed)
        memcpy(message->text.data + message->start, bytes, length);
}

void kelp_grpc_message_wrap(kelp_grpc_message *message, uint32_t number) {
    unsigned char head[1 + MAX_VARINT_BYTES];
    size_t n = 0;
    KELP_ASSERT(number < 16); /* the key is one byte */
    head[n++] = (unsigned char)(number << 3 | WIRE_BYTES);
    uint64_t length = length_of(message);
    for (; length > 0x7f; length >>= 7)
        head[n++] = (unsigned char)((length & 0x7f) | 0x80);
    head[n++] = (unsigned char)length;
    prepend(message, head, n);
}

/* Passes text and tensors to the encoder. */
static kelp_status *encode(const kelp_grpc_message *message, kelp_http_encoder *encoder) {
    size_t at = message->start;
    for (size_t i = 0; i < message->tensor_count; i++) {
        const kelp_grpc_tensor *tensor = &message->tensors[i];
        KELP_TRY(kelp_http_encoder_put(encoder, message->text.data + at, tensor->text_end - at));
        KELP_TRY(kelp_http_encoder_put(encoder, tensor->data, tensor->size_bytes));
        at = tensor->text_end;
    }
    KELP_TRY(kelp_http_encoder_put(encoder, message->text.data + at, message->text.length - at));
    return kelp_http_encoder_end(encoder);
}

static kelp_status *compress(kelp_grpc_message *message, kelp_http_coding coding) {
    static const char space[SPACE_BYTES];
    kelp_http_encoder *encoder = NULL;
    kelp_buf packed;
    kelp_buf_init(&packed, message->allocator);
    kelp_buf_append(&packed, space, sizeof space);
    kelp_status *status = kelp_http_encoder_create(message->allocator, coding, &packed, &encoder);
    if (status == NULL)
        status = encode(message, encoder);
    kelp_http_encoder_destroy(encoder);
    if (status == NULL)
        status = kelp_buf_status(&packed);
    if (status != NULL) {
        kelp_buf_deinit(&packed);
        return status;
    }
    kelp_buf_deinit(&message->text);
    message->text = packed;
    message->start = sizeof space;
    message->tensor_count = 0;
    return NULL;
}

kelp_status *kelp_grpc_message_end(kelp_grpc_message *message, kelp_http_coding coding) {
    KELP_TRY(kelp_buf_status(&message->text));
    if (coding != KELP_HTTP_IDENTITY)
        KELP_TRY(compress(message, coding));
    uint64_t length = length_of(message);
    if (length > UINT32_MAX)
        return KELP_ERROR(KELP_RESOURCE_EXHAUSTED,
                          "the response is too long for gRPC: expected at most %u bytes, found "
                          "%llu",
                          UINT32_MAX, (unsigned long long)length);
    unsigned char prefix[KELP_GRPC_PREFIX_BYTES] = {
        coding != KELP_HTTP_IDENTITY, (unsigned char)(length >> 24), (unsigned char)(length >> 16),
        (unsigned char)(length >> 8), (unsigned char)length};
    prepend(message, prefix, sizeof prefix);
    return NULL;
}

kelp_status *kelp_grpc_message_add(const kelp_grpc_message *message, kelp_http_exchange *exchange) {
    size_t at = message->start;
    for (size_t i = 0; i < message->tensor_count; i++) {
        const kelp_grpc_tensor *tensor = &message->tensors[i];
        KELP_TRY(
            kelp_http_exchange_add_piece(exchange, message->text.data + at, tensor->text_end - at));
        KELP_TRY(kelp_http_exchange_add_piece(exchange, tensor->data, tensor->size_bytes));
        at = tensor->text_end;
    }
    return kelp_http_exchange_add_piece(exchange, message->text.data + at,
                                        message->text.length - at);
}
