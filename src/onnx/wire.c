/* SPDX-License-Identifier: Apache-2.0 */
/* Reads fields of the protobuf wire format. */
#include "onnx/wire.h"

bool kelp_wire_varint(kelp_wire *wire, uint64_t *out) {
    uint64_t value = 0;
    for (unsigned shift = 0; shift < 70 && wire->at < wire->end; shift += 7) {
        uint8_t byte = *wire->at++;
        if (shift < 64)
            value |= (uint64_t)(byte & 0x7f) << shift;
        if ((byte & 0x80) == 0) {
            *out = value;
            return true;
        }
    }
    return false;
}

static bool read_fixed(kelp_wire *wire, size_t size, uint64_t *out) {
    if ((size_t)(wire->end - wire->at) < size)
        return false;
    *out = 0;
    for (size_t i = 0; i < size; i++)
        *out |= (uint64_t)wire->at[i] << (8 * i);
    wire->at += size;
    return true;
}

kelp_wire_result kelp_wire_next(kelp_wire *wire, kelp_field *out) {
    uint64_t tag, length;
    if (wire->at == wire->end)
        return KELP_WIRE_END;
    if (!kelp_wire_varint(wire, &tag) || tag >> 3 == 0 || tag >> 3 > 0x1fffffff)
        return KELP_WIRE_MALFORMED;
    *out = (kelp_field){.number = (uint32_t)(tag >> 3), .type = (uint32_t)(tag & 7)};
    switch (out->type) {
    case KELP_WIRE_VARINT:
        return kelp_wire_varint(wire, &out->value) ? KELP_WIRE_FIELD : KELP_WIRE_MALFORMED;
    case KELP_WIRE_I64:
        return read_fixed(wire, 8, &out->value) ? KELP_WIRE_FIELD : KELP_WIRE_MALFORMED;
    case KELP_WIRE_I32:
        return read_fixed(wire, 4, &out->value) ? KELP_WIRE_FIELD : KELP_WIRE_MALFORMED;
    case KELP_WIRE_BYTES:
        if (!kelp_wire_varint(wire, &length) || length > (uint64_t)(wire->end - wire->at))
            return KELP_WIRE_MALFORMED;
        out->bytes = (kelp_str){(const char *)wire->at, (size_t)length};
        wire->at += length;
        return KELP_WIRE_FIELD;
    default:
        return KELP_WIRE_MALFORMED;
    }
}

size_t kelp_wire_count(kelp_str message, uint32_t number) {
    kelp_wire wire = kelp_wire_of(message);
    kelp_field field;
    size_t count = 0;
    while (kelp_wire_next(&wire, &field) == KELP_WIRE_FIELD)
        count += field.number == number;
    return count;
}
