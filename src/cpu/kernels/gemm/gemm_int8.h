/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Products of 8-bit matrices with sums of 32 bits, shared among threads, and what follows them done
 * while the sums are in cache: zero points, scales, bias, activation, the way back to 8 bits.
 */
#ifndef KELP_CPU_KERNELS_GEMM_GEMM_INT8_H_
#define KELP_CPU_KERNELS_GEMM_GEMM_INT8_H_

#include "base/checked.h"
#include "cpu/kernels/simd/int8.h"

#include <kelp/opset.h>

/* ---- B ---- */
/* A matrix of 8-bit integers as it lies; strides in elements. `zero`: of one element, of one a
 * column, or NULL. */
typedef struct kelp_int8_matrix {
    const void *data;
    kelp_dtype dtype; /* U8 or I8 */
    int64_t k, n, row_stride, column_stride;
    const kelp_tensor *zero;
    int64_t zero_first; /* element of `zero` that belongs to the first column */
} kelp_int8_matrix;

/* B in panels, as signed bytes, with what its zero points ask for. Works with every table. */
typedef struct kelp_int8_weights {
    int64_t k, n;
    const int8_t *panels;
    const int32_t *balance; /* of a column: the sum of its elements less their zero points */
    const int32_t *zeros;   /* of a column; NULL when all are `zero` */
    int32_t zero;
} kelp_int8_weights;

/* Bytes that the laid out matrix takes; false when that overflows. */
bool kelp_int8_weights_size(int64_t k, int64_t n, size_t *out_bytes);
#define KELP_INT8_LAYOUT "int8/1" /* for kelp_op_pack; with every table */
/* Lays it out in `memory`, which is 64-byte aligned and outlives it. */
void kelp_int8_weights_lay(const kelp_int8 *loops, const kelp_int8_matrix *b, void *memory,
                           kelp_int8_weights *out);
/* Where things are in `memory`, which was laid out for k and n. */
void kelp_int8_weights_view(int64_t k, int64_t n, const void *memory, kelp_int8_weights *out);

/* ---- the product ---- */
/* y = round((sum · scale + bias) less what is below) and so on, see kelp_int8_row; then the
 * activation, then to bytes: max(low, min(high, round(y / out_scale) + out_zero)). */
typedef struct kelp_int8_finish {
    kelp_dtype dtype;                   /* I32: the sums; F32; U8 or I8 */
    const float *scale, *bias, *addend; /* of a column; bias and addend may be NULL */
    float step, least, most;
    bool direct; /* bytes are the rounded values before `step`, plus out_zero */
    kelp_act act;
    float out_scale;
    int32_t out_zero;
} kelp_int8_finish;

typedef struct kelp_int8_product {
    const uint8_t *a; /* unsigned; a_zero is its zero point */
    int64_t m, lda;
    int32_t a_zero;
    const int32_t *a_zeros; /* of a row, or NULL */
    kelp_int8_weights b;
    kelp_int8_finish finish;
    void *y;
    int64_t ldy;
    bool turned; /* y[column][row]: rows of y are ldy apart all the same */
} kelp_int8_product;

/* Columns that one call of kelp_int8_product_block takes at most, and rows. */
#define KELP_INT8_BLOCK_COLUMNS 256
#define KELP_INT8_TURNED_COLUMNS 64
#define KELP_INT8_BLOCK_ROWS 64

/* `count` products of one shape, spread over the threads together. */
void kelp_int8_products_run(const kelp_op_env *env, const kelp_int8_product *jobs, int64_t count);
/* A block on the caller's thread; `column` is a multiple of 16. */
void kelp_int8_product_block(const kelp_int8 *loops, const kelp_int8_product *g, int64_t row,
                             int64_t column, int64_t rows, int64_t columns);
/* What becomes of sums [rows][columns] that were made elsewhere, of a turned product without zero
 * points of B. */
void kelp_int8_product_finish(const kelp_int8 *loops, const kelp_int8_product *g, int64_t row,
                              int64_t column, int64_t rows, int64_t columns, const int32_t *sums);

/* Bytes from `from` (U8 or I8) as unsigned ones: a copy with the top bit turned, on all threads. */
void kelp_int8_flip(const kelp_op_env *env, const void *from, uint8_t *to, int64_t count);

#endif
