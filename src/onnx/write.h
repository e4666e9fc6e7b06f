/* SPDX-License-Identifier: Apache-2.0 */
/* Protocol buffers' wire format, written into a buffer (protobuf.dev, "Encoding"). Errors stick to
 * the buffer. */
#ifndef KELP_ONNX_WRITE_H_
#define KELP_ONNX_WRITE_H_

#include "base/buf.h"

void kelp_wire_put_varint(kelp_buf *buf, uint64_t value);
/* A field of type VARINT; negative numbers take ten bytes, as int64 does. */
void kelp_wire_put_i64(kelp_buf *buf, uint32_t number, int64_t value);
void kelp_wire_put_f32(kelp_buf *buf, uint32_t number, float value);
void kelp_wire_put_bytes(kelp_buf *buf, uint32_t number, const void *data, size_t length);
void kelp_wire_put_text(kelp_buf *buf, uint32_t number, const char *text);
/* A message that was written into a buffer of its own, which is cleared. */
void kelp_wire_put_message(kelp_buf *buf, uint32_t number, kelp_buf *message);

#endif
