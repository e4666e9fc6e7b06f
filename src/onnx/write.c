/* SPDX-License-Identifier: Apache-2.0 */
/* Writes fields of the protobuf wire format. */
#include "onnx/write.h"

#include "base/assert.h"
#include "onnx/protobuf.h"

#include <string.h>

void kelp_protobuf_put_varint(kelp_buf *buf, uint64_t value) {
    char bytes[10];
    size_t count = 0;
    do {
        bytes[count++] = (char)((value & 0x7fu) | (value > 0x7fu ? 0x80u : 0u));
        value >>= 7;
    } while (value != 0);
    kelp_buf_append(buf, bytes, count);
}

static void put_key(kelp_buf *buf, uint32_t number, uint32_t type) {
    KELP_ASSERT(number > 0 && type <= KELP_PROTOBUF_I32);
    kelp_protobuf_put_varint(buf, (uint64_t)number << 3 | type);
}

void kelp_protobuf_put_i64(kelp_buf *buf, uint32_t number, int64_t value) {
    put_key(buf, number, KELP_PROTOBUF_VARINT);
    kelp_protobuf_put_varint(buf, (uint64_t)value);
}

void kelp_protobuf_put_f32(kelp_buf *buf, uint32_t number, float value) {
    uint32_t bits;
    unsigned char bytes[4];
    memcpy(&bits, &value, sizeof bits);
    for (int i = 0; i < 4; i++)
        bytes[i] = (unsigned char)(bits >> 8 * i);
    put_key(buf, number, KELP_PROTOBUF_I32);
    kelp_buf_append(buf, bytes, sizeof bytes);
}

void kelp_protobuf_put_bytes(kelp_buf *buf, uint32_t number, const void *data, size_t length) {
    put_key(buf, number, KELP_PROTOBUF_BYTES);
    kelp_protobuf_put_varint(buf, length);
    kelp_buf_append(buf, data, length);
}

void kelp_protobuf_put_text(kelp_buf *buf, uint32_t number, const char *text) {
    kelp_protobuf_put_bytes(buf, number, text, strlen(text));
}

void kelp_protobuf_put_message(kelp_buf *buf, uint32_t number, kelp_buf *message) {
    KELP_ASSERT(buf != message);
    buf->failed = buf->failed || message->failed;
    kelp_protobuf_put_bytes(buf, number, message->data, message->length);
    kelp_buf_clear(message);
}
