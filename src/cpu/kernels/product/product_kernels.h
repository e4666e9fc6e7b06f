/* SPDX-License-Identifier: Apache-2.0 */
/* Micro-kernels of sums of products for several element types: matrix multiplications of types
 * other than float, and loops over strided operands. Strides are in elements. Operands may have any
 * address; results are aligned to their type. Integers wrap. */
#ifndef KELP_CPU_KERNELS_PRODUCT_PRODUCT_KERNELS_H_
#define KELP_CPU_KERNELS_PRODUCT_PRODUCT_KERNELS_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Element types; unsigned integers stand for signed ones, whose products have the same bits. */
typedef enum kelp_product_type {
    KELP_PRODUCT_F32 = 0,
    KELP_PRODUCT_F64,
    KELP_PRODUCT_U32,
    KELP_PRODUCT_U64,
    KELP_PRODUCT_TYPES
} kelp_product_type;

/* Returns the bytes of an element. */
static inline size_t kelp_product_bytes(kelp_product_type type) {
    return type == KELP_PRODUCT_F64 || type == KELP_PRODUCT_U64 ? 8 : 4;
}

/* C[m,n] = A[m,k] · B[k,n]. The rows of A are a_row apart, its columns a_column. */
typedef struct kelp_product_block {
    const void *a, *b;
    void *c;
    int64_t a_row, a_column, ldb, ldc, m, n, k;
} kelp_product_block;

/* y[i] = Σ a[s * a_step + i * a_stride] * b[s * b_step + i * b_stride], s < steps, i < count. The
 * strides are 0 or 1 and not both 0. With `accumulate` the sums are added to y. */
typedef struct kelp_product_sums {
    const void *a, *b;
    void *y;
    int64_t a_step, b_step, a_stride, b_stride, steps, count;
    bool accumulate;
} kelp_product_sums;

typedef struct kelp_product_kernels {
    /* NULL for KELP_PRODUCT_F32: see gemm_kernels.h. */
    void (*block[KELP_PRODUCT_TYPES])(const kelp_product_block *block);
    void (*sums[KELP_PRODUCT_TYPES])(const kelp_product_sums *sums);
    /* *y (+)= Σ a[i * a_stride] * b[i * b_stride], i < count. */
    void (*dot[KELP_PRODUCT_TYPES])(const void *a, int64_t a_stride, const void *b,
                                    int64_t b_stride, int64_t count, void *y, bool accumulate);
} kelp_product_kernels;

/* Returns the table of the instruction set in use. Thread-safe. */
const kelp_product_kernels *kelp_product_kernels_get(void);

#endif
