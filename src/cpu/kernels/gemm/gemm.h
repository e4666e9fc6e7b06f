/* SPDX-License-Identifier: Apache-2.0 */
/* GEMM of float matrices on all threads. Bias, residual and activation are applied while the
 * result is in cache. */
#ifndef KELP_CPU_KERNELS_GEMM_GEMM_H_
#define KELP_CPU_KERNELS_GEMM_GEMM_H_

#include "base/checked.h"
#include "cpu/kernels/gemm/gemm_kernels.h"
#include "cpu/kernels/gemm/gemm_shape.h"

#include <kelp/op_env.h>

/* C[m,n] = act(A[m,k] · B[k,n] + bias[n] + row_bias[m] + residual[m,n]), row-major; operands
 * that are NULL are left out. A and B may have any address. */
typedef struct kelp_gemm {
    const void *a, *b;
    float *c;
    int64_t m, n, k, lda, ldb, ldc;
    const float *bias, *row_bias, *residual; /* residual has ldc */
    kelp_act act;
    const float *packed; /* not NULL: B in panels (kelp_gemm_pack), and `b` is not read */
    const kelp_gemm_kernels
        *kernels;   /* that B is packed for; NULL: those of the instruction set in use */
    float *scratch; /* as the algorithm needs; NULL without scratch memory */
} kelp_gemm;

/* Returns true for a GEMM of few rows whose B does not fit a cache, so that its time is that of
 * reading B. */
bool kelp_gemm_is_skinny(int64_t m, int64_t k, int64_t n);

/* ---- algorithms ---- */
typedef struct kelp_gemm_algorithm {
    const char *name;
    bool (*is_applicable)(const kelp_gemm_shape *shape);
    /* Returns the floats of scratch memory (kelp_gemm.scratch) of a run, or -1 on overflow. NULL:
     * no scratch memory. */
    int64_t (*scratch_floats)(const kelp_gemm_shape *shape);
    /* Runs `count` GEMMs of one shape, distributed over the threads together. */
    void (*run)(const kelp_op_env *env, const kelp_gemm *jobs, int64_t count);
} kelp_gemm_algorithm;

/* Returns the first algorithm that is applicable:
 *   skinny_gemm   one GEMM for which kelp_gemm_is_skinny is true. The order of its sums differs
 * from the other algorithms; it is the same for packed and unpacked B. packed_gemm   blocks of a B
 * in panels gemm          blocks */
const kelp_gemm_algorithm *kelp_gemm_choose(const kelp_gemm_shape *shape);

/* Packing of B[k,n]: panels as wide as a register tile, each row by row without gaps, the last
 * one padded with zeros. Constant weights are packed once for the tile of `kernels`. The
 * size is in floats; false on overflow. */
bool kelp_gemm_packed_size(const kelp_gemm_kernels *kernels, int64_t k, int64_t n,
                           size_t *out_floats);
void kelp_gemm_pack(const kelp_gemm_kernels *kernels, const void *b, int64_t stride, int64_t k,
                    int64_t n, float *out); /* rows of B are `stride` floats apart */
/* Formats the name of that layout, "what/1/32", to `size` bytes at `out`. The number in the middle
 * is the version of the layout. */
void kelp_gemm_layout(const kelp_gemm_kernels *kernels, const char *what, char *out, size_t size);
/* Packs a transposed B, [n,k] with rows `stride` floats apart. */
void kelp_gemm_pack_transposed(const kelp_gemm_kernels *kernels, const void *b, int64_t stride,
                               int64_t k, int64_t n, float *out);

/* ---- runs without scratch memory ---- */
/* Runs `count` GEMMs of one shape in blocks, distributed over the threads together. */
void kelp_gemm_run(const kelp_op_env *env, const kelp_gemm *jobs, int64_t count);
/* Runs one GEMM in blocks on the calling thread. */
void kelp_gemm_run_serial(const kelp_gemm_kernels *kernels, const kelp_gemm *job);

#endif
