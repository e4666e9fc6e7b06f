/* SPDX-License-Identifier: Apache-2.0 */
/* Protobuf wire format, written into a buffer. Errors are kept in the buffer. Source:
 * protobuf.dev, "Encoding". */
#ifndef KELP_BASE_WIRE_PROTOBUF_WRITE_H_
#define KELP_BASE_WIRE_PROTOBUF_WRITE_H_

#include "base/buf.h"

void kelp_protobuf_put_varint(kelp_buf *buf, uint64_t value);
/* Appends a VARINT field. Negative numbers take ten bytes, like int64. */
void kelp_protobuf_put_i64(kelp_buf *buf, uint32_t number, int64_t value);
void kelp_protobuf_put_f32(kelp_buf *buf, uint32_t number, float value);
void kelp_protobuf_put_f64(kelp_buf *buf, uint32_t number, double value);
/* These functions append an I32 or I64 field, such as fixed32 and fixed64. */
void kelp_protobuf_put_fixed32(kelp_buf *buf, uint32_t number, uint32_t value);
void kelp_protobuf_put_fixed64(kelp_buf *buf, uint32_t number, uint64_t value);
void kelp_protobuf_put_bytes(kelp_buf *buf, uint32_t number, const void *data, size_t length);
/* Appends the key of a BYTES field and its length. The caller appends the bytes. */
void kelp_protobuf_put_length(kelp_buf *buf, uint32_t number, size_t length);
void kelp_protobuf_put_str(kelp_buf *buf, uint32_t number, kelp_str text);
void kelp_protobuf_put_text(kelp_buf *buf, uint32_t number, const char *text);
/* Appends a message from its own buffer and clears that buffer. */
void kelp_protobuf_put_message(kelp_buf *buf, uint32_t number, kelp_buf *message);
/* Turns the bytes from `start` on into a BYTES field: inserts its key and length before them. */
void kelp_protobuf_wrap(kelp_buf *buf, uint32_t number, size_t start);

#endif
