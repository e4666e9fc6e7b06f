/* SPDX-License-Identifier: Apache-2.0 */
/* Writes fields of the protobuf wire format. */
#include "base/wire/protobuf_write.h"

#include "base/assert.h"
#include "base/wire/protobuf.h"

#include <string.h>

#define MAX_VARINT_BYTES 10

/* Writes a varint of at most MAX_VARINT_BYTES, and returns its size. */
static size_t encode_varint(uint64_t value, char *out) {
    size_t count = 0;
    do {
        out[count++] = (char)((value & 0x7fu) | (value > 0x7fu ? 0x80u : 0u));
        value >>= 7;
    } while (value != 0);
    return count;
}

void kelp_protobuf_put_varint(kelp_buf *buf, uint64_t value) {
    char bytes[MAX_VARINT_BYTES];
    kelp_buf_append(buf, bytes, encode_varint(value, bytes));
}

static void put_key(kelp_buf *buf, uint32_t number, uint32_t type) {
    KELP_ASSERT(number > 0 && type <= KELP_PROTOBUF_I32);
    kelp_protobuf_put_varint(buf, (uint64_t)number << 3 | type);
}

void kelp_protobuf_put_i64(kelp_buf *buf, uint32_t number, int64_t value) {
    put_key(buf, number, KELP_PROTOBUF_VARINT);
    kelp_protobuf_put_varint(buf, (uint64_t)value);
}

void kelp_protobuf_put_fixed32(kelp_buf *buf, uint32_t number, uint32_t value) {
    unsigned char bytes[4];
    for (int i = 0; i < 4; i++)
        bytes[i] = (unsigned char)(value >> 8 * i);
    put_key(buf, number, KELP_PROTOBUF_I32);
    kelp_buf_append(buf, bytes, sizeof bytes);
}

void kelp_protobuf_put_fixed64(kelp_buf *buf, uint32_t number, uint64_t value) {
    unsigned char bytes[8];
    for (int i = 0; i < 8; i++)
        bytes[i] = (unsigned char)(value >> 8 * i);
    put_key(buf, number, KELP_PROTOBUF_I64);
    kelp_buf_append(buf, bytes, sizeof bytes);
}

void kelp_protobuf_put_f32(kelp_buf *buf, uint32_t number, float value) {
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    kelp_protobuf_put_fixed32(buf, number, bits);
}

void kelp_protobuf_put_f64(kelp_buf *buf, uint32_t number, double value) {
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    kelp_protobuf_put_fixed64(buf, number, bits);
}

void kelp_protobuf_put_length(kelp_buf *buf, uint32_t number, size_t length) {
    put_key(buf, number, KELP_PROTOBUF_BYTES);
    kelp_protobuf_put_varint(buf, length);
}

void kelp_protobuf_put_bytes(kelp_buf *buf, uint32_t number, const void *data, size_t length) {
    kelp_protobuf_put_length(buf, number, length);
    kelp_buf_append(buf, data, length);
}

void kelp_protobuf_put_str(kelp_buf *buf, uint32_t number, kelp_str text) {
    kelp_protobuf_put_bytes(buf, number, text.data, text.length);
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

void kelp_protobuf_wrap(kelp_buf *buf, uint32_t number, size_t start) {
    char head[2 * MAX_VARINT_BYTES];
    if (buf->failed)
        return;
    KELP_ASSERT(start <= buf->length);
    size_t length = buf->length - start;
    size_t n = encode_varint((uint64_t)number << 3 | KELP_PROTOBUF_BYTES, head);
    n += encode_varint(length, head + n);
    if (kelp_buf_reserve(buf, n) == NULL)
        return;
    if (length > 0)
        memmove(buf->data + start + n, buf->data + start, length);
    memcpy(buf->data + start, head, n);
    buf->length += n;
}
