/* SPDX-License-Identifier: Apache-2.0 */
/* GEMM of float matrices whose operands are rounded to bfloat16: B when it is packed, A during
 * the GEMM. */
#ifndef KELP_CPU_KERNELS_GEMM_GEMM_BF16_H_
#define KELP_CPU_KERNELS_GEMM_GEMM_BF16_H_

#include "base/checked.h"
#include "cpu/kernels/bf16/bf16_kernels.h"
#include "cpu/kernels/gemm/gemm_shape.h"

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
    kelp_bf16_pair *scratch; /* as the algorithm needs, for each worker */
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

/* ---- algorithms ---- */
typedef struct kelp_bf16_gemm_algorithm {
    const char *name;
    bool (*is_applicable)(const kelp_gemm_shape *shape);
    /* Returns the pairs of scratch memory (kelp_bf16_gemm.scratch) of each worker. */
    int64_t (*scratch_pairs)(const kelp_gemm_shape *shape);
    void (*run)(const kelp_op_env *env, const kelp_bf16_gemm *job);
} kelp_bf16_gemm_algorithm;

/* Returns the first algorithm that is applicable:
 *   bf16_gemm_few_rows    at most 3 rows: several panels of B at a time
 *   bf16_gemm_one_slice   a depth of one slice, without residual: finished in the registers
 *   bf16_gemm             slices of the depth */
const kelp_bf16_gemm_algorithm *kelp_bf16_gemm_choose(const kelp_gemm_shape *shape);

/* Chooses an algorithm for `job` and runs it, on all threads or on the calling thread. The scratch
 * memory has kelp_bf16_gemm_scratch pairs for each worker. */
void kelp_bf16_gemm_run(const kelp_op_env *env, const kelp_bf16_gemm *job);
void kelp_bf16_gemm_run_serial(const kelp_bf16_gemm *job);
/* Returns the pairs of scratch memory of a worker for up to `m` rows and depth k, whatever the
 * algorithm. */
int64_t kelp_bf16_gemm_scratch(int64_t m, int64_t k);

/* From one row of A to the next, for rows of `pairs`: an odd number of cache lines, so that the
 * rows of a tile do not fall into one set of the cache. */
static inline int64_t kelp_bf16_row_step(int64_t pairs) {
    return (pairs + 15) / 32 * 32 + 16;
}

#endif
