/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The loops of 8-bit integers, in one table for each instruction set: products that are exact on
 * all of them, and the ways between floats and bytes. Everything gives the same bits in every
 * table.
 */
#ifndef KELP_CPU_KERNELS_SIMD_INT8_H_
#define KELP_CPU_KERNELS_SIMD_INT8_H_

#include "cpu/kernels/simd/simd.h"

#include <kelp/tensor.h>

/* B is laid out in panels of 16 columns; a panel holds, for each four rows of B, four bytes of each
 * column. Both are filled up with zeros. All tables read this layout. */
#define KELP_INT8_COLUMNS 16
#define KELP_INT8_DEPTH 4
/* Columns of panels whose bytes become floats. */
#define KELP_INT8_WIDE_COLUMNS 32

/* c[i][j] = the sum of a[i][p] * b[p][j], a unsigned, b signed; c has panels * 16 columns. */
typedef struct kelp_int8_block {
    const uint8_t *a;
    const int8_t *b; /* the first panel */
    int32_t *c;
    int64_t lda, ldc, m, panels, k;
} kelp_int8_block;

/* What becomes of a row of sums, each of a column: less what the zero points add, to
 *   y = (sum - offset - shift - b_zero * row_sum) * scale + bias
 *   y = max(least, min(most, round(y))) * step        when step is not 0
 *   y = y + addend
 * Pointers may be NULL: nothing is added, and without scale the sum stays an integer. */
typedef struct kelp_int8_row {
    const int32_t *sums;
    int64_t count;
    const int32_t *offset;
    int32_t shift, row_sum;
    const int32_t *b_zero;
    const float *scale, *bias, *addend;
    float step, least, most;
} kelp_int8_row;

/* Bytes (or 16 bits) for floats: y = max(low, min(high, round(x / scale) + zero)), ties to even.
 * NaN becomes low. `stride` 0: one scale and zero point for all, 1: one for each element. */
typedef struct kelp_quantize_run {
    const float *x;
    void *y;
    int64_t count;
    kelp_dtype dtype; /* U8, I8, U16, I16 */
    const float *scale;
    const int32_t *zero; /* NULL: 0 */
    int stride;
} kelp_quantize_run;

/* y = (x - zero) * scale; dtype may be I32 as well. */
typedef struct kelp_dequantize_run {
    const void *x;
    float *y;
    int64_t count;
    kelp_dtype dtype;
    const float *scale;
    const int32_t *zero;
    int stride;
} kelp_dequantize_run;

typedef struct kelp_int8 {
    const char *name;
    int32_t tile_rows, tile_panels;
    void (*product)(const kelp_int8_block *block);
    /* One panel of `columns` <= 16 columns of B[k, …], whose rows are `stride` apart; `flip` (0 or
     * 0x80) is taken off every byte. Adds to sums[j] the columns' sums. */
    void (*pack)(const uint8_t *b, int64_t stride, int64_t k, int64_t columns, uint8_t flip,
                 int8_t *panel, int32_t *sums);
    /* The sums of rows of unsigned bytes. */
    void (*row_sums)(const uint8_t *a, int64_t lda, int64_t m, int64_t k, int32_t *out);
    void (*to_ints)(const kelp_int8_row *row, int32_t *y);
    void (*to_floats)(const kelp_int8_row *row, float *y);
    /* y = the rounded value of to_floats, step and addend left out, plus `zero`: I8 or U8 */
    void (*to_bytes)(const kelp_int8_row *row, int32_t zero, uint8_t *y);
    void (*quantize)(const kelp_quantize_run *run);
    void (*dequantize)(const kelp_dequantize_run *run);
    /* to[r][j] = (from[r][j] - zero[j]) * scale[j], rows of KELP_INT8_WIDE_COLUMNS; zero may be
     * NULL
     */
    void (*widen)(const int8_t *from, int64_t rows, const float *scale, const float *zero,
                  float *to);
    /* The least and the most of `count` floats and of what *inout_… hold; NaN is left out. */
    void (*range)(const float *x, int64_t count, float *inout_least, float *inout_most);
    /* to[c * to_step + r] = from[r * from_step + c] ^ flip, of bytes */
    void (*turn)(uint8_t *to, int64_t to_step, const uint8_t *from, int64_t from_step, int64_t rows,
                 int64_t columns, uint8_t flip);
    /* sums[c] = the sum over taps t of x[at[t] + c] * w[t * w_step + c] */
    void (*taps)(int32_t *sums, const uint8_t *x, const int64_t *at, int64_t taps, const int16_t *w,
                 int64_t w_step, int64_t count);
} kelp_int8;

/* The best table that the CPU can run, within kelp_cpu_isa_limit. Any thread. */
const kelp_int8 *kelp_int8_get(void);
/* Table number `index` of those that this CPU can run, from the plainest; NULL behind the last. */
const kelp_int8 *kelp_int8_at(int index);

extern const kelp_int8 kelp_int8_portable;
#if defined(__x86_64__)
extern const kelp_int8 kelp_int8_avx2;
extern const kelp_int8 kelp_int8_avx512;
extern const kelp_int8 kelp_int8_vnni;
#elif defined(__aarch64__)
extern const kelp_int8 kelp_int8_neon;
extern const kelp_int8 kelp_int8_dotprod;
extern const kelp_int8 kelp_int8_i8mm;
#endif

#endif
