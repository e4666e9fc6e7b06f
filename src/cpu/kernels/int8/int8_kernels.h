/* SPDX-License-Identifier: Apache-2.0 */
/*
 * 8-bit micro-kernels: blocks of GEMMs with sums of 32 bits, and conversions between floats and
 * integers. Results are the same bits for every instruction set. Operands have any address unless
 * their type states otherwise; nothing is read or written outside them.
 */
#ifndef KELP_CPU_KERNELS_INT8_INT8_KERNELS_H_
#define KELP_CPU_KERNELS_INT8_INT8_KERNELS_H_

#include <kelp/tensor.h>

/* B is packed in panels of 16 columns. For each four rows of B a panel holds four bytes of each
 * column. Rows and columns are padded with zeros. All instruction sets read this layout. */
#define KELP_INT8_COLUMNS 16
#define KELP_INT8_DEPTH 4
/* Columns of panels that `widen` dequantizes. */
#define KELP_INT8_WIDE_COLUMNS 32

/* c[i][j] = Σ a[i][p] * b[p][j] with unsigned a and signed b; c has 16 columns for each panel. */
typedef struct kelp_int8_block {
    const uint8_t *a;
    const int8_t *b; /* the first panel */
    int32_t *c;
    int64_t lda, ldc, m, panels, k;
} kelp_int8_block;

/* The last steps for a row of sums:
 *   y = (sum - offset - shift - b_zero * row_sum) * scale + bias
 *   y = max(low, min(high, round(y))) * step        if step is not 0
 *   y = y + addend
 * offset, b_zero, scale, bias and addend have one element for each column; NULL: not applied.
 * Without `scale` the sum stays an integer. */
typedef struct kelp_int8_row {
    const int32_t *sums;
    int64_t count;
    const int32_t *offset;
    int32_t shift, row_sum;
    const int32_t *b_zero;
    const float *scale, *bias, *addend;
    float step, low, high;
} kelp_int8_row;

/* y = max(lowest, min(highest, round(x / scale) + zero)) of the dtype, ties to even; NaN becomes
 * the lowest value. `stride` 0: one scale and zero point for all elements, 1: one for each. */
typedef struct kelp_quantize_run {
    const float *x;
    void *y;
    int64_t count;
    kelp_dtype dtype; /* U8, I8, U16, I16 */
    const float *scale;
    const int32_t *zero; /* NULL: 0 */
    int stride;
} kelp_quantize_run;

/* y = (x - zero) * scale; the dtype may also be I32. */
typedef struct kelp_dequantize_run {
    const void *x;
    float *y;
    int64_t count;
    kelp_dtype dtype;
    const float *scale;
    const int32_t *zero;
    int stride;
} kelp_dequantize_run;

/* y = max(lowest, min(highest, round(r) + zero)) of the dtype, ties to even, where r is the sum
 * a * a_scale + shift + b * b_scale or the product (a - a_zero) * (b - b_zero) * scale. */
typedef struct kelp_byte_pairs {
    const void *a, *b;
    void *y; /* may be a or b */
    int64_t count;
    kelp_dtype dtype;       /* U8 or I8, of all three */
    int a_stride, b_stride; /* 0 or 1 */
    float a_scale, b_scale, shift;
    float scale;
    int32_t a_zero, b_zero, zero;
} kelp_byte_pairs;

typedef struct kelp_int8_kernels {
    int32_t tile_rows, tile_panels; /* size of the register tile */
    void (*gemm_block)(const kelp_int8_block *block);
    /* Packs one panel of `columns` (at most 16) columns of B[k, …], whose rows are `stride` bytes
     * apart. `flip` (0 or 0x80) is subtracted from every byte. Adds the sums of the columns to
     * `sums`. */
    void (*pack)(const uint8_t *b, int64_t stride, int64_t k, int64_t columns, uint8_t flip,
                 int8_t *panel, int32_t *sums);
    /* out[i] = Σ a[i][p], i < m, p < k */
    void (*row_sums)(const uint8_t *a, int64_t lda, int64_t m, int64_t k, int32_t *out);
    void (*to_ints)(const kelp_int8_row *row, int32_t *y);
    void (*to_floats)(const kelp_int8_row *row, float *y);
    /* y = round(…) of kelp_int8_row without step and addend, plus `zero`, as I8 or U8 */
    void (*to_bytes)(const kelp_int8_row *row, int32_t zero, uint8_t *y);
    void (*quantize)(const kelp_quantize_run *run);
    void (*dequantize)(const kelp_dequantize_run *run);
    /* to[r][j] = (from[r][j] - zero[j]) * scale[j] for rows of KELP_INT8_WIDE_COLUMNS; `zero` may
     * be NULL. */
    void (*widen)(const int8_t *from, int64_t rows, const float *scale, const float *zero,
                  float *to);
    /* Updates the minimum and the maximum with `count` floats. NaN is ignored. */
    void (*range)(const float *x, int64_t count, float *inout_min, float *inout_max);
    /* to[c * to_step + r] = from[r * from_step + c] ^ flip */
    void (*transpose)(uint8_t *to, int64_t to_step, const uint8_t *from, int64_t from_step,
                      int64_t rows, int64_t columns, uint8_t flip);
    /* sums[c] = Σ x[at[t] + c] * w[t * w_step + c] over taps t, c < count */
    void (*taps)(int32_t *sums, const uint8_t *x, const int64_t *at, int64_t taps, const int16_t *w,
                 int64_t w_step, int64_t count);
    void (*add_pairs)(const kelp_byte_pairs *pairs);
    void (*multiply_pairs)(const kelp_byte_pairs *pairs);
    /* y[c] = max x[at[t] + c] over taps t, c < count; taps >= 1. Bytes are compared after `flip` (0
     * or 0x80) is added to each. */
    void (*max_taps)(uint8_t *y, const uint8_t *x, const int64_t *at, int64_t taps, uint8_t flip,
                     int64_t count);
} kelp_int8_kernels;

/* Returns the table of the instruction set in use. Thread-safe. */
const kelp_int8_kernels *kelp_int8_kernels_get(void);
/* Returns the table of number `index`, in the order of ranks, regardless of kelp_cpu_isa_limit, or
 * NULL if this CPU has no such table. Thread-safe. */
const kelp_int8_kernels *kelp_int8_kernels_at(int index);

#endif
