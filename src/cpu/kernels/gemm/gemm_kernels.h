/* SPDX-License-Identifier: Apache-2.0 */
/* Micro-kernels of float GEMMs: a block of C that is large enough to use the registers and small
 * enough for the cache, and GEMMs of few rows. Matrices are row-major. */
#ifndef KELP_CPU_KERNELS_GEMM_GEMM_KERNELS_H_
#define KELP_CPU_KERNELS_GEMM_GEMM_KERNELS_H_

#include "cpu/kernels/elementwise/elementwise_kernels.h"
#include "cpu/kernels/unaligned.h"

#include <stdbool.h>
#include <stdint.h>

#define KELP_GEMM_MAX_TILE_COLUMNS 32 /* maximum of tile_columns over all instruction sets */
#define KELP_SKINNY_ROWS 4            /* maximum rows of a skinny GEMM */

/* One block: C[m,n] = A[m,k] · B[k,n]; with `accumulate` C += A · B. If `finishes` is set, then
 * C = act(C + row_bias[m] + bias[n] + residual[m,n]). The three may be NULL; residual has the
 * layout of C; the activation must be light (kelp_act_is_light). A and B may have any address.
 * Reads and writes nothing outside the matrices, but prefetches after them. */
typedef struct kelp_gemm_block {
    const kelp_float_u *a, *b;
    float *c;
    int64_t lda, ldb, ldc, m, n, k;
    bool accumulate, finishes;
    const float *row_bias, *bias, *residual;
    kelp_act act;
} kelp_gemm_block;

/* C[m,n] = A[m,k] · B[k,n] with 1 to KELP_SKINNY_ROWS rows and k >= 4. Each element is the sum over
 * p < k / 4 of the terms p, p + k / 4, p + k / 2 and p + 3 k / 4, in this order, and then of the
 * remaining terms: the result does not depend on n. */
typedef struct kelp_skinny {
    const kelp_float_u *a, *b;
    float *c;
    int64_t lda, ldb, ldc, m, n, k;
} kelp_skinny;

#define KELP_HALF_COLUMNS 32 /* columns of a panel of 16-bit floats */

/* C[m,n] = A[m,k] · B[k,n] with 1 to KELP_SKINNY_ROWS rows. B is a panel of float16 or bfloat16:
 * its rows have KELP_HALF_COLUMNS elements, of which the first n are used. */
typedef struct kelp_skinny_half {
    const kelp_float_u *a;
    const void *b;
    float *c;
    int64_t lda, ldc, m, n, k;
    bool is_bf16;
} kelp_skinny_half;

typedef struct kelp_gemm_kernels {
    /* Size of the register tile. Blocks of its multiples are the most efficient; a panel of a
     * packed B has tile_columns columns. */
    int32_t tile_rows, tile_columns;
    void (*block)(const kelp_gemm_block *block);
    void (*skinny)(const kelp_skinny *job);
    void (*skinny_half)(const kelp_skinny_half *job);
} kelp_gemm_kernels;

/* Returns the table of the instruction set in use. Thread-safe. */
const kelp_gemm_kernels *kelp_gemm_kernels_get(void);

#endif
