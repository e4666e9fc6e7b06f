/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Protobuf wire format, read in place. Nothing is copied; every length is checked against the
 * remaining bytes.
 * Source: protobuf.dev, "Encoding".
 */
#ifndef KELP_ONNX_WIRE_H_
#define KELP_ONNX_WIRE_H_

#include "base/str.h"

typedef struct kelp_wire {
    const uint8_t *at, *end;
} kelp_wire;

enum { KELP_WIRE_VARINT = 0, KELP_WIRE_I64 = 1, KELP_WIRE_BYTES = 2, KELP_WIRE_I32 = 5 };

typedef struct kelp_field {
    uint32_t number;
    uint32_t type;  /* KELP_WIRE_* */
    uint64_t value; /* VARINT, I64, I32 */
    kelp_str bytes; /* BYTES */
} kelp_field;

static inline kelp_wire kelp_wire_of(kelp_str bytes) {
    const uint8_t *data = (const uint8_t *)bytes.data;
    return (kelp_wire){data, bytes.length ? data + bytes.length : data};
}

typedef enum kelp_wire_result {
    KELP_WIRE_FIELD,
    KELP_WIRE_END,
    KELP_WIRE_MALFORMED
} kelp_wire_result;

/* Reads the next field. Groups are MALFORMED, because ONNX has none. */
kelp_wire_result kelp_wire_next(kelp_wire *wire, kelp_field *out);
bool kelp_wire_varint(kelp_wire *wire, uint64_t *out);
/* Counts the occurrences of a field. Stops at malformed bytes, which the reader reports later. */
size_t kelp_wire_count(kelp_str message, uint32_t number);

#endif
