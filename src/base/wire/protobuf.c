/* SPDX-License-Identifier: Apache-2.0 */
/* Reads fields of the protobuf wire format. */
#include "base/wire/protobuf.h"

bool kelp_protobuf_varint(kelp_protobuf *wire, uint64_t *out) {
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

static bool read_fixed(kelp_protobuf *wire, size_t size, uint64_t *out) {
    if ((size_t)(wire->end - wire->at) < size)
        return false;
    *out = 0;
    for (size_t i = 0; i < size; i++)
        *out |= (uint64_t)wire->at[i] << (8 * i);
    wire->at += size;
    return true;
}

kelp_protobuf_result kelp_protobuf_next(kelp_protobuf *wire, kelp_protobuf_field *out) {
    uint64_t tag, length;
    if (wire->at == wire->end)
        return KELP_PROTOBUF_END;
    if (!kelp_protobuf_varint(wire, &tag) || tag >> 3 == 0 || tag >> 3 > 0x1fffffff)
        return KELP_PROTOBUF_MALFORMED;
    *out = (kelp_protobuf_field){.number = (uint32_t)(tag >> 3), .type = (uint32_t)(tag & 7)};
    switch (out->type) {
    case KELP_PROTOBUF_VARINT:
        return kelp_protobuf_varint(wire, &out->value) ? KELP_PROTOBUF_FIELD
                                                       : KELP_PROTOBUF_MALFORMED;
    case KELP_PROTOBUF_I64:
        return read_fixed(wire, 8, &out->value) ? KELP_PROTOBUF_FIELD : KELP_PROTOBUF_MALFORMED;
    case KELP_PROTOBUF_I32:
        return read_fixed(wire, 4, &out->value) ? KELP_PROTOBUF_FIELD : KELP_PROTOBUF_MALFORMED;
    case KELP_PROTOBUF_BYTES:
        if (!kelp_protobuf_varint(wire, &length) || length > (uint64_t)(wire->end - wire->at))
            return KELP_PROTOBUF_MALFORMED;
        out->bytes = (kelp_str){(const char *)wire->at, (size_t)length};
        wire->at += length;
        return KELP_PROTOBUF_FIELD;
    default:
        return KELP_PROTOBUF_MALFORMED;
    }
}

size_t kelp_protobuf_count(kelp_str message, uint32_t number) {
    kelp_protobuf wire = kelp_protobuf_of(message);
    kelp_protobuf_field field;
    size_t count = 0;
    while (kelp_protobuf_next(&wire, &field) == KELP_PROTOBUF_FIELD)
        count += field.number == number;
    return count;
}
