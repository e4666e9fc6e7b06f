/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The loops of bfloat16 products, in one table for each instruction set. Floats are rounded to
 * bfloat16 (to nearest, ties to even; subnormal ones become zero, NaN stays NaN) and lie in pairs
 * of neighbours along the summed axis, the first in the low half of 32 bits; sums are floats. All
 * tables round operands alike and read the same layouts; sums differ in their order alone.
 */
#ifndef KELP_CPU_KERNELS_SIMD_BF16_H_
#define KELP_CPU_KERNELS_SIMD_BF16_H_

#include "cpu/kernels/simd/simd.h"

/* Two bfloat16, the first in the low half. */
typedef uint32_t kelp_bf16_pair;

/* Columns of a panel of B: row after row of so many pairs. */
#define KELP_BF16_COLUMNS 32
#define KELP_BF16_ROWS 12 /* no table has higher tiles */

/* C[m,n] = A · B, or += with `accumulate`; for row i and column j the sum over steps s and taps t
 * of a[i * lda + s * taps + t] times b[(j / 32) * panel + j % 32 + s * step + tap[t]]. B is read in
 * whole vectors: up to 31 pairs behind the last column. */
typedef struct kelp_bf16_block {
    const kelp_bf16_pair *a, *b;
    float *c;
    int64_t lda, ldc, m, n, panel;
    int64_t steps, step, taps;
    const int64_t *tap; /* not read when taps is 1: then it is 0 */
    bool accumulate;
} kelp_bf16_block;

/* Pixels whose channels lie side by side, times one panel of weights: for pixel i below m and
 * output channel j below n (at most KELP_BF16_COLUMNS) the sum over taps t and steps s of the pair
 * at a + i * pixel + tap[t] + 2 s times b[(t * steps + s) * KELP_BF16_COLUMNS + j], plus bias[j]
 * and residual[i * residual_step + j] (both may be NULL), and with `relu` at least 0. It goes to
 * c[i * c_step + j] as a float, or, where c is NULL and n even, to half[…] rounded. */
typedef struct kelp_bf16_pixels {
    const uint16_t *a;
    const kelp_bf16_pair *b;
    int64_t pixel, m, n, steps, taps;
    const int64_t *tap;
    const float *bias;
    const uint16_t *residual;
    int64_t residual_step, c_step;
    bool relu;
    float *c;
    uint16_t *half;
} kelp_bf16_pixels;

typedef struct kelp_bf16 {
    const char *name;
    void (*product)(const kelp_bf16_block *block);
    void (*pixels)(const kelp_bf16_pixels *pixels);
    /* to[j] = the largest of from[tap[t] + j], t below `taps`, j below n, which is even; without
     * taps -infinity */
    void (*most)(const uint16_t *from, const int64_t *tap, int64_t taps, int64_t n, uint16_t *to);
    /* c[i * ldc] = the sum over p below `count` of a[i * lda + p] times b[p], i below m */
    void (*dots)(const kelp_bf16_pair *a, int64_t lda, int64_t m, const kelp_bf16_pair *b,
                 int64_t count, float *c, int64_t ldc);
    /* to[i] = {x[2i], x[2i + 1]}; an odd last one has zero beside it */
    void (*narrow)(const void *x, int64_t count, kelp_bf16_pair *to);
    /* to[r * to_step + i] = {even[r * step + i * stride], odd[…]}, i below `count`; odd NULL:
     * zeros */
    void (*pairs)(const void *even, const void *odd, int64_t step, int64_t stride, int64_t rows,
                  int64_t count, kelp_bf16_pair *to, int64_t to_step);
} kelp_bf16;

/* The best table that the CPU can run, within kelp_cpu_isa_limit. Any thread. */
const kelp_bf16 *kelp_bf16_get(void);
/* Table number `index` of those that this CPU can run, from the plainest; NULL behind the last. */
const kelp_bf16 *kelp_bf16_at(int index);

extern const kelp_bf16 kelp_bf16_portable;
#if defined(__x86_64__)
extern const kelp_bf16 kelp_bf16_avx2;
extern const kelp_bf16 kelp_bf16_avx512;
extern const kelp_bf16 kelp_bf16_native; /* with AVX512_BF16 */
#endif

#endif
