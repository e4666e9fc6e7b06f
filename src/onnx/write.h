/* SPDX-License-Identifier: Apache-2.0 */
/* Protobuf wire format, written into a buffer. Errors are kept in the buffer. Source:
 * protobuf.dev, "Encoding". */
#ifndef KELP_ONNX_WRITE_H_
#define KELP_ONNX_WRITE_H_

#include "base/buf.h"

void kelp_protobuf_put_varint(kelp_buf *buf, uint64_t value);
/* Appends a VARINT field. Negative numbers take ten bytes, like int64. */
void kelp_protobuf_put_i64(kelp_buf *buf, uint32_t number, int64_t value);
void kelp_protobuf_put_f32(kelp_buf *buf, uint32_t number, float value);
void kelp_protobuf_put_bytes(kelp_buf *buf, uint32_t number, const void *data, size_t length);
void kelp_protobuf_put_text(kelp_buf *buf, uint32_t number, const char *text);
/* Appends a message from its own buffer and clears that buffer. */
void kelp_protobuf_put_message(kelp_buf *buf, uint32_t number, kelp_buf *message);

#endif
