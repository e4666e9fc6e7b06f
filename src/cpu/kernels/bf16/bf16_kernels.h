/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bfloat16 micro-kernels. Floats are rounded to bfloat16 (to nearest, ties to even; subnormal
 * numbers become zero, NaN stays NaN) and stored in pairs: two neighbours along the summed axis in
 * 32 bits, the first in the low half. Sums are floats. All instruction sets round operands alike
 * and read the same layouts; results differ only in the order of the sums. Operands have any
 * address.
 */
#ifndef KELP_CPU_KERNELS_BF16_BF16_KERNELS_H_
#define KELP_CPU_KERNELS_BF16_BF16_KERNELS_H_

#include "cpu/kernels/unaligned.h"

#include <stdbool.h>
#include <stdint.h>

/* Two bfloat16, the first in the low half. */
typedef uint32_t kelp_bf16_pair;

/* Columns of a panel of B. A panel is stored row by row; a row is one pair for each column. */
#define KELP_BF16_COLUMNS 32
#define KELP_BF16_ROWS 12 /* maximum rows of a tile over all instruction sets */

/* C[m,n] = A · B, or C += A · B with `accumulate`: for row i and column j the sum over steps s and
 * taps t of a[i * lda + s * taps + t] times b[(j / 32) * panel + j % 32 + s * step + tap[t]]. B is
 * read in whole vectors: up to 31 pairs after the last column. */
typedef struct kelp_bf16_block {
    const kelp_bf16_pair *a, *b;
    float *c;
    int64_t lda, ldc, m, n, panel;
    int64_t steps, step, taps;
    const int64_t *tap; /* not read if taps is 1: then it is 0 */
    bool accumulate;
} kelp_bf16_block;

/* NHWC pixels times one panel of weights: for pixel i < m and output channel j < n (at most
 * KELP_BF16_COLUMNS) the sum over taps t and steps s of the pair at a + i * pixel + tap[t] + 2 s
 * times b[(t * steps + s) * KELP_BF16_COLUMNS + j], plus bias[j] and residual[i * residual_step +
 * j] (both may be NULL), and with `relu` at least 0. The result is written to c[i * c_step + j] as
 * a float or, if c is NULL and n is even, rounded to half[i * c_step + j]. */
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

typedef struct kelp_bf16_kernels {
    void (*gemm_block)(const kelp_bf16_block *block);
    void (*pixels)(const kelp_bf16_pixels *pixels);
    /* to[j] = the maximum of from[tap[t] + j], t < taps, j < n; -infinity without taps. n is even.
     */
    void (*max_pool)(const uint16_t *from, const int64_t *tap, int64_t taps, int64_t n,
                     uint16_t *to);
    /* c[i * ldc] = Σ a[i * lda + p] · b[p] over pairs p < count, for i < m */
    void (*dots)(const kelp_bf16_pair *a, int64_t lda, int64_t m, const kelp_bf16_pair *b,
                 int64_t count, float *c, int64_t ldc);
    /* to[i] = {x[2 i], x[2 i + 1]}, 2 i < count. If `count` is odd, the last pair ends with zero.
     */
    void (*narrow)(const void *x, int64_t count, kelp_bf16_pair *to);
    /* to[r * to_step + i] = {even[r * step + i * stride], odd[r * step + i * stride]}, i < count,
     * for `rows` rows. If `odd` is NULL, the second halves are zeros. */
    void (*pairs)(const void *even, const void *odd, int64_t step, int64_t stride, int64_t rows,
                  int64_t count, kelp_bf16_pair *to, int64_t to_step);
} kelp_bf16_kernels;

/* Returns the table of the instruction set in use. Thread-safe. */
const kelp_bf16_kernels *kelp_bf16_kernels_get(void);
/* Returns the table of number `index`, in the order of ranks, regardless of kelp_cpu_isa_limit, or
 * NULL if this CPU has no such table. Thread-safe. */
const kelp_bf16_kernels *kelp_bf16_kernels_at(int index);

#endif
