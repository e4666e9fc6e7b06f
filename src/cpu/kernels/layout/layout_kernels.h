/* SPDX-License-Identifier: Apache-2.0 */
/* Micro-kernels that copy floats to another layout. Steps are in floats; source and destination do
 * not overlap. */
#ifndef KELP_CPU_KERNELS_LAYOUT_LAYOUT_KERNELS_H_
#define KELP_CPU_KERNELS_LAYOUT_LAYOUT_KERNELS_H_

#include "cpu/kernels/unaligned.h"

#include <stdint.h>

typedef struct kelp_layout_kernels {
    /* to[c * to_step + r] = from[r * from_step + c]. Reads and writes nothing else. */
    void (*transpose)(float *to, int64_t to_step, const kelp_float_u *from, int64_t from_step,
                      int64_t rows, int64_t columns);
    /* Copies `rows` rows of `width` floats. Reads and writes nothing else. */
    void (*copy_rows)(float *to, int64_t to_step, const float *from, int64_t from_step,
                      int64_t rows, int64_t width);
    /* Splits rows: even[i] = from[2 i], i < evens, and odd[i] = from[2 i + 1], i < odds. */
    void (*split_rows)(float *even, float *odd, int64_t to_step, const float *from,
                       int64_t from_step, int64_t rows, int64_t evens, int64_t odds);
    /* Writes every stride-th float of `rows` rows of each of `images`, `width` floats per row,
     * contiguously to `to`. Reads up to 31 floats after the last one and writes up to 15. */
    void (*gather_rows)(float *to, const float *from, int64_t images, int64_t image_step,
                        int64_t rows, int64_t row_step, int64_t width, int64_t stride);
} kelp_layout_kernels;

/* Returns the table of the instruction set in use. Thread-safe. */
const kelp_layout_kernels *kelp_layout_kernels_get(void);

#endif
