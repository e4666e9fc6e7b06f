/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Protobuf wire format, read in place. Nothing is copied; every length is checked against the
 * remaining bytes.
 * Source: protobuf.dev, "Encoding".
 */
#ifndef KELP_BASE_WIRE_PROTOBUF_H_
#define KELP_BASE_WIRE_PROTOBUF_H_

#include "base/str.h"

/* A message, and the position of its next field. */
typedef struct kelp_protobuf {
    const uint8_t *at, *end;
} kelp_protobuf;

/* Wire types. */
enum {
    KELP_PROTOBUF_VARINT = 0,
    KELP_PROTOBUF_I64 = 1,
    KELP_PROTOBUF_BYTES = 2,
    KELP_PROTOBUF_I32 = 5
};

typedef struct kelp_protobuf_field {
    uint32_t number;
    uint32_t type;  /* KELP_PROTOBUF_* */
    uint64_t value; /* VARINT, I64, I32 */
    kelp_str bytes; /* BYTES */
} kelp_protobuf_field;

static inline kelp_protobuf kelp_protobuf_of(kelp_str bytes) {
    const uint8_t *data = (const uint8_t *)bytes.data;
    return (kelp_protobuf){data, bytes.length ? data + bytes.length : data};
}

typedef enum kelp_protobuf_result {
    KELP_PROTOBUF_FIELD,
    KELP_PROTOBUF_END,
    KELP_PROTOBUF_MALFORMED
} kelp_protobuf_result;

/* Reads the next field. Groups, which proto3 lacks, are MALFORMED. */
kelp_protobuf_result kelp_protobuf_next(kelp_protobuf *wire, kelp_protobuf_field *out);
bool kelp_protobuf_varint(kelp_protobuf *wire, uint64_t *out);
/* Counts the occurrences of a field. Stops at malformed bytes, which the reader reports later. */
size_t kelp_protobuf_count(kelp_str message, uint32_t number);

#endif
