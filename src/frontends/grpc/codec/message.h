/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Messages of gRPC: a prefix (1 byte: compressed or not, 4 bytes: length), and the bytes of a
 * protobuf message. Source: "gRPC over HTTP2" (PROTOCOL-HTTP2.md).
 *
 * An outgoing message consists of text and of tensors, which are sent in place.
 */
#ifndef KELP_FRONTENDS_GRPC_CODEC_MESSAGE_H_
#define KELP_FRONTENDS_GRPC_CODEC_MESSAGE_H_

#include "base/arena.h"
#include "base/buf.h"
#include "frontends/http/exchange.h"

#define KELP_GRPC_PREFIX_BYTES 5

/* A tensor of an outgoing message. */
typedef struct kelp_grpc_tensor {
    size_t text_end; /* the tensor follows these bytes of the text */
    const void *data;
    size_t size_bytes;
} kelp_grpc_tensor;

/* An outgoing message. */
typedef struct kelp_grpc_message {
    kelp_allocator allocator;
    kelp_buf text; /* with space for prefixes at its start */
    size_t start;  /* of the first byte in `text` */
    kelp_grpc_tensor *tensors;
    size_t tensor_count, tensor_capacity;
} kelp_grpc_message;

void kelp_grpc_message_init(kelp_grpc_message *message, kelp_allocator allocator);
void kelp_grpc_message_deinit(kelp_grpc_message *message);
/* Empties the message. Frees its memory if it has more than KELP_HTTP_KEEP_BYTES. */
void kelp_grpc_message_clear(kelp_grpc_message *message);
/* Begins a message; the caller appends to message->text. */
void kelp_grpc_message_begin(kelp_grpc_message *message);
/* Appends a tensor after the text. The data must live until the message is sent. */
kelp_status *kelp_grpc_message_add_tensor(kelp_grpc_message *message, const void *data,
                                          size_t size_bytes) KELP_MUST_USE;
/* Makes the message the field `number` of a message without other fields. */
void kelp_grpc_message_wrap(kelp_grpc_message *message, uint32_t number);
/* Ends the message: compresses it, and adds the prefix. Fails with RESOURCE_EXHAUSTED if it is
 * longer than a prefix can express. */
kelp_status *kelp_grpc_message_end(kelp_grpc_message *message,
                                   kelp_http_coding coding) KELP_MUST_USE;
/* Appends the complete message to the response. It must live until the response is sent. */
kelp_status *kelp_grpc_message_add(const kelp_grpc_message *message,
                                   kelp_http_exchange *exchange) KELP_MUST_USE;

#endif
