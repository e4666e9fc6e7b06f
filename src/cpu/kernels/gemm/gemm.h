/* SPDX-License-Identifier: Apache-2.0 */
/* Products of float matrices, shared among threads, with what follows them done while the result is
 * in cache. */
#ifndef KELP_CPU_KERNELS_GEMM_GEMM_H_
#define KELP_CPU_KERNELS_GEMM_GEMM_H_

#include "base/checked.h"
#include "cpu/kernels/simd/simd.h"

#include <kelp/opset.h>

/* C[m,n] = act(A[m,k] · B[k,n] + bias[n] + row_bias[m] + residual[m,n]), row-major; what is NULL is
 * left out. A and B may lie at any address. */
typedef struct kelp_gemm {
    const void *a, *b;
    float *c;
    int64_t m, n, k, lda, ldb, ldc;
    const float *bias, *row_bias, *residual; /* residual has ldc */
    kelp_act act;
    const float *packed;   /* not NULL: B in panels (kelp_gemm_pack), and `b` is not read */
    const kelp_simd *simd; /* the table that they are laid out for; NULL: the CPU's best */
    float *partial;        /* kelp_gemm_thin_floats to work in where kelp_gemm_is_thin; else NULL */
} kelp_gemm;

/* A few rows times a matrix that no cache holds: what counts is how B is read (thin.c). Where
 * `partial` is given the sums are taken in another order than else, the same for B as it lies and
 * in panels. */
bool kelp_gemm_is_thin(int64_t m, int64_t k, int64_t n);
int64_t kelp_gemm_thin_floats(int64_t m, int64_t n); /* -1: too many */

/* B[k,n] in panels of as many columns as a tile has, each panel row by row without gaps, the last
 * one filled up with zeros: constant weights are laid out so once, and then stream from memory.
 * `simd` is the table that will run. Floats of the result; false when that overflows. */
bool kelp_gemm_packed_size(const kelp_simd *simd, int64_t k, int64_t n, size_t *out_floats);
void kelp_gemm_pack(const kelp_simd *simd, const void *b, int64_t stride, int64_t k, int64_t n,
                    float *out); /* rows `stride` apart */
/* The name of that layout for kelp_op_pack, behind `what`: "what/1/32". The number in the middle
 * goes up when the layout changes. */
void kelp_gemm_layout(const kelp_simd *simd, const char *what, char out[KELP_OP_LAYOUT_MAX + 1]);
/* The same of B as it lies turned, [n,k] with rows `stride` apart. */
void kelp_gemm_pack_turned(const kelp_simd *simd, const void *b, int64_t stride, int64_t k,
                           int64_t n, float *out);

/* `count` products at once: all spread over the threads together. */
void kelp_gemm_run(const kelp_op_env *env, const kelp_gemm *jobs, int64_t count);
/* On the caller's thread alone. */
void kelp_gemm_run_serial(const kelp_simd *simd, const kelp_gemm *job);

#endif
