/* SPDX-License-Identifier: Apache-2.0 */
/* The element types of tensors: one table, and typed access to single elements. */
#ifndef KELP_FRONTENDS_TENSOR_ELEMENT_H_
#define KELP_FRONTENDS_TENSOR_ELEMENT_H_

#include "base/assert.h"
#include "base/float16.h"

#include <stdbool.h>
#include <stddef.h>
#include <triton/core/tritonserver.h>

/* The kind of an element type. */
typedef enum kelp_v2_kind {
    KELP_V2_INVALID,
    KELP_V2_BYTES, /* strings, each preceded by its length in 4 bytes */
    KELP_V2_BOOL,
    KELP_V2_UNSIGNED,
    KELP_V2_SIGNED,
    KELP_V2_FLOAT16,
    KELP_V2_BFLOAT16,
    KELP_V2_FLOAT /* 4 or 8 bytes */
} kelp_v2_kind;

/* An element type. */
typedef struct kelp_v2_element {
    kelp_v2_kind kind;
    size_t size_bytes; /* 0 for INVALID and BYTES */
} kelp_v2_element;

/* Returns the element type of a tensor's type. */
kelp_v2_element kelp_v2_element_of(TRITONSERVER_DataType type);

/* Returns true for floating-point types. */
static inline bool kelp_v2_is_float(kelp_v2_element element) {
    return element.kind >= KELP_V2_FLOAT16;
}

/* Stores the low size_bytes of `value`. */
static inline void kelp_v2_store(void *at, size_t size_bytes, uint64_t value) {
    switch (size_bytes) {
    case sizeof(uint8_t):
        memcpy(at, &(uint8_t){(uint8_t)value}, sizeof(uint8_t));
        break;
    case sizeof(uint16_t):
        memcpy(at, &(uint16_t){(uint16_t)value}, sizeof(uint16_t));
        break;
    case sizeof(uint32_t):
        memcpy(at, &(uint32_t){(uint32_t)value}, sizeof(uint32_t));
        break;
    default:
        memcpy(at, &value, sizeof value);
        break;
    }
}

/* Loads an element as an integer or a float. `size_bytes` is 1, 2, 4 or 8. */
static inline uint64_t kelp_v2_load_unsigned(const void *at, size_t size_bytes) {
    uint8_t u8;
    uint16_t u16;
    uint32_t u32;
    uint64_t u64;
    switch (size_bytes) {
    case sizeof u8:
        memcpy(&u8, at, sizeof u8);
        return u8;
    case sizeof u16:
        memcpy(&u16, at, sizeof u16);
        return u16;
    case sizeof u32:
        memcpy(&u32, at, sizeof u32);
        return u32;
    default:
        memcpy(&u64, at, sizeof u64);
        return u64;
    }
}

static inline int64_t kelp_v2_load_signed(const void *at, size_t size_bytes) {
    uint64_t bits = kelp_v2_load_unsigned(at, size_bytes);
    KELP_ASSERT(size_bytes >= 1 && size_bytes <= sizeof bits);
    unsigned unused = 64 - 8 * (unsigned)size_bytes;
    return (int64_t)(bits << unused) >> unused;
}

static inline double kelp_v2_load_float(const void *at, kelp_v2_element element) {
    uint64_t bits = kelp_v2_load_unsigned(at, element.size_bytes);
    double value;
    KELP_ASSERT(kelp_v2_is_float(element));
    if (element.kind == KELP_V2_FLOAT16)
        return (double)kelp_f16_to_f32((uint16_t)bits);
    if (element.kind == KELP_V2_BFLOAT16)
        return (double)kelp_bf16_to_f32((uint16_t)bits);
    if (element.size_bytes == sizeof(float))
        return (double)kelp_f32_from_bits((uint32_t)bits);
    memcpy(&value, &bits, sizeof value);
    return value;
}

#endif
