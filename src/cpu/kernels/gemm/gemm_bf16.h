/* SPDX-License-Identifier: Apache-2.0 */
/* GEMM of float matrices whose operands are rounded to bfloat16: B when it is packed, A during
 * the GEMM. */
#ifndef KELP_CPU_KERNELS_GEMM_GEMM_BF16_H_
#define KELP_CPU_KERNELS_GEMM_GEMM_BF16_H_

#include "base/checked.h"
#include "cpu/kernels/bf16/bf16_kernels.h"
#include "cpu/kernels/elementwise/elementwise_kernels.h"

#include <kelp/op_env.h>

/* C[m,n] = act(A[m,k] · B[k,n] + bias[n] + residual[m,n]), row-major; operands that are NULL are
 * left out. A may have any address. */
typedef struct kelp_bf16_gemm {
    const void *a;
    const kelp_bf16_pair *panels;
    float *c;
    int64_t m, n, k, lda, ldc;
    const float *bias, *residual; /* residual has ldc */
    kelp_act act;
    kelp_bf16_pair *scratch; /* kelp_bf16_gemm_scratch pairs for each worker */
} kelp_bf16_gemm;

/* Packing of B[k,n]: panels of KELP_BF16_COLUMNS columns of pairs of rows, padded with zeros.
 * The size is in pairs; false on overflow. */
bool kelp_bf16_packed_size(int64_t k, int64_t n, size_t *out_pairs);
/* Rows of B are `stride` floats apart, at any address. */
void kelp_bf16_pack(const kelp_bf16_kernels *kernels, const void *b, int64_t stride, int64_t k,
                    int64_t n, kelp_bf16_pair *out);
/* Packs a transposed B, [n,k] with rows `stride` floats apart. */
void kelp_bf16_pack_transposed(const kelp_bf16_kernels *kernels, const void *b, int64_t stride,
                               int64_t k, int64_t n, kelp_bf16_pair *out);

/* Returns the pairs of scratch memory of a worker for up to `m` rows and depth k. */
int64_t kelp_bf16_gemm_scratch(int64_t m, int64_t k);
void kelp_bf16_gemm_run(const kelp_op_env *env, const kelp_bf16_gemm *job);
/* Runs on the calling thread; `scratch` is this thread's. */
void kelp_bf16_gemm_run_serial(const kelp_bf16_gemm *job);

/* From one row of A to the next, for rows of `pairs`: an odd number of cache lines, so that the
 * rows of a tile do not fall into one set of the cache. */
static inline int64_t kelp_bf16_row_step(int64_t pairs) {
    return (pairs + 15) / 32 * 32 + 16;
}

#endif
