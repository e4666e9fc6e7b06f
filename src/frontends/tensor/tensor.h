/* SPDX-License-Identifier: Apache-2.0 */
/* Converts tensor data between JSON ("data" arrays, flat or nested, row-major) and bytes. */
#ifndef KELP_FRONTENDS_TENSOR_TENSOR_H_
#define KELP_FRONTENDS_TENSOR_TENSOR_H_

#include "base/arena.h"
#include "base/buf.h"

#include <triton/core/tritonserver.h>

#define KELP_V2_MAX_NESTING 100

/* Computes the number of elements of a shape. Returns false if a dimension is negative or the
 * number overflows. */
bool kelp_v2_element_count(const int64_t *shape, size_t rank, uint64_t *out);
/* Returns "[2,3]" in the arena, for messages. */
const char *kelp_v2_shape_text(kelp_arena *arena, const int64_t *shape, size_t rank);

/* Accepts any number of elements. */
#define KELP_V2_ANY_COUNT UINT64_MAX

/* The bytes of a tensor. */
typedef struct kelp_v2_data {
    void *bytes; /* in the arena */
    size_t size_bytes;
    uint64_t count; /* of elements that kelp_v2_read_data read */
} kelp_v2_data;

/*
 * Reads the array that begins at text[*inout_position] as `count` elements of `type`, or
 * KELP_V2_ANY_COUNT, and moves the
 * position after it. FP16 and BF16 are rounded from FP32. BYTES elements are strings. Fails with
 * INVALID_ARGUMENT; the message contains `input` and `shape_text`. The depth of nested arrays is
 * limited to KELP_V2_MAX_NESTING. The memory is at most proportional to the length of the text.
 */
kelp_status *kelp_v2_read_data(kelp_arena *arena, const char *input, TRITONSERVER_DataType type,
                               uint64_t count, const char *shape_text, const char *text,
                               size_t length, size_t *inout_position,
                               kelp_v2_data *out) KELP_MUST_USE;

/* Appends the elements of a tensor as a flat JSON array. Text that is not UTF-8 is an error, or is
 * replaced by U+FFFD if `replaces`. Fails with INTERNAL if the lengths of BYTES elements do not
 * match the size, and with INVALID_ARGUMENT for such text. */
kelp_status *kelp_v2_write_data(kelp_buf *out, const char *output, TRITONSERVER_DataType type,
                                const void *bytes, size_t size_bytes, bool replaces) KELP_MUST_USE;

#endif
