/* SPDX-License-Identifier: Apache-2.0 */
/* Matrix multiplications of double and of integers, on all threads. */
#ifndef KELP_CPU_OPS_MATMUL_PRODUCT_H_
#define KELP_CPU_OPS_MATMUL_PRODUCT_H_

#include "cpu/kernels/product/product_kernels.h"
#include "cpu/ops/kernel.h"

/* Multiplications of matrices of one shape. */
typedef struct kelp_products {
    kelp_product_type type;
    int64_t count;
    kelp_product_block shape; /* without the matrices */
    /* Sets the matrices of multiplication `index`. */
    void (*matrices)(const void *userp, int64_t index, kelp_product_block *inout_block);
    const void *userp;
} kelp_products;

/* Returns the type whose arithmetic is that of `dtype`: F64, I32, U32, I64 or U64. */
static inline kelp_product_type kelp_product_type_of(kelp_dtype dtype) {
    return dtype == KELP_F64                        ? KELP_PRODUCT_F64
           : dtype == KELP_I64 || dtype == KELP_U64 ? KELP_PRODUCT_U64
                                                    : KELP_PRODUCT_U32;
}

/* Computes all of them. */
void kelp_products_run(const kelp_op_env *env, const kelp_products *products);

#endif
