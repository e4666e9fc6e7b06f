/* SPDX-License-Identifier: Apache-2.0 */
/* Tensor data between JSON text and bytes, as the inference protocol has it ("data" arrays, flat or
 * nested, row-major). */
#ifndef KELP_FRONTENDS_HTTP_V2_TENSOR_H_
#define KELP_FRONTENDS_HTTP_V2_TENSOR_H_

#include "base/arena.h"
#include "base/buf.h"

#include <triton/core/tritonserver.h>

#define KELP_V2_MAX_NESTING 100

/* The number of elements of a shape; false when an extent is negative or the product overflows. */
bool kelp_v2_element_count(const int64_t *shape, size_t rank, uint64_t *out);
/* "[2,3]" in the arena, for messages. */
const char *kelp_v2_shape_text(kelp_arena *arena, const int64_t *shape, size_t rank);

typedef struct kelp_v2_data {
    void *bytes; /* in the arena */
    size_t size_bytes;
} kelp_v2_data;

/*
 * Reads the array that begins at text[*inout_position] as `count` elements of `type`, and moves the
 * position behind it. FP16 and BF16 are rounded from FP32. BYTES elements are strings.
 * INVALID_ARGUMENT names `input` and says what was expected and found. The depth is bounded; memory
 * is at most proportional to the text.
 */
kelp_status *kelp_v2_read_data(kelp_arena *arena, const char *input, TRITONSERVER_DataType type,
                               uint64_t count, const char *shape_text, const char *text,
                               size_t length, size_t *inout_position,
                               kelp_v2_data *out) KELP_MUST_USE;

/* Appends a flat JSON array of the tensor's elements. BYTES are checked: INTERNAL when their
 * lengths do not add up. */
kelp_status *kelp_v2_write_data(kelp_buf *out, const char *output, TRITONSERVER_DataType type,
                                const void *bytes, size_t size_bytes) KELP_MUST_USE;

/* IEEE 754 binary16 and bfloat16, round to nearest even. */
uint16_t kelp_v2_half_from_float(float value);
float kelp_v2_float_from_half(uint16_t half);
uint16_t kelp_v2_bf16_from_float(float value);

#endif
