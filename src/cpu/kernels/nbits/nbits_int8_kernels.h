/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Micro-kernels of GEMMs whose weights are unsigned integers of 4 or 8 bits with a scale and a zero
 * point for each block of a column, and whose other operand is quantized to 8 bits by the same
 * blocks. Results are the same bits for every instruction set.
 */
#ifndef KELP_CPU_KERNELS_NBITS_NBITS_INT8_KERNELS_H_
#define KELP_CPU_KERNELS_NBITS_NBITS_INT8_KERNELS_H_

#include <stdbool.h>
#include <stdint.h>

/* Columns of a panel of weights. */
#define KELP_NBITS_COLUMNS 16
/* Sizes of a block of K: a power of 2. The sums of a block are exact in float32. */
#define KELP_NBITS_MIN_BLOCK 16
#define KELP_NBITS_MAX_BLOCK 256

/* Weights: panels of 16 columns, block after block. For each 8 (4 bits) or 4 (8 bits) rows a block
 * has 64 bytes, four for each column. Of 4-bit weights, the low halves of these are rows 0 to 3,
 * the high halves rows 4 to 7. `scales` and `zeros` have 16 elements for each block. */
typedef struct kelp_nbits_panel {
    const uint8_t *weights, *zeros;
    const float *scales;
} kelp_nbits_panel;

/* c[i][j] = bias[j] + Σ over blocks of a_scale[i] * scale[j] * Σ a[i][p] * (b[p][j] - zero[j]) */
typedef struct kelp_nbits_block {
    const int8_t *a;                /* quantized rows of blocks * block elements */
    const float *a_scales, *a_sums; /* of each block of each row: its scale and the sum of a */
    kelp_nbits_panel b;
    const float *bias; /* of the panel's columns; NULL: 0 */
    float *c;
    int64_t ldc, rows, columns; /* columns: at most 16 */
    int64_t blocks, block;
    int bits; /* 4 or 8 */
} kelp_nbits_block;

typedef struct kelp_nbits_int8_kernels {
    void (*multiply)(const kelp_nbits_block *block);
    /* Quantizes k floats to `to`, which has blocks * block elements: a scale of max |x| / 127 for
     * each block, rounding to even. Writes the scales, and the sums of the integers. */
    void (*quantize)(const float *x, int64_t k, int64_t block, int8_t *to, float *scales,
                     float *sums);
} kelp_nbits_int8_kernels;

/* Returns the table of the instruction set in use. Thread-safe. */
const kelp_nbits_int8_kernels *kelp_nbits_int8_kernels_get(void);

#endif
