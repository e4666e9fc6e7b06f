/* SPDX-License-Identifier: Apache-2.0 */
/* Shapes of batched matrix multiplications, with NumPy's rules. Source: ONNX operator
 * specification, MatMul. */
#ifndef KELP_CPU_OPS_MATMUL_BATCH_H_
#define KELP_CPU_OPS_MATMUL_BATCH_H_

#include "cpu/ops/kernel.h"

/* A batch of multiplications of [m, k] by [k, n]. */
typedef struct kelp_batch {
    int64_t m, n, k, batch;
    int64_t batch_shape[KELP_MAX_RANK];
    int32_t batch_rank;
    int64_t a_strides[KELP_MAX_RANK], b_strides[KELP_MAX_RANK]; /* in matrices; 0: broadcast */
} kelp_batch;

/* Computes the shapes of A · B. If all matrices of A are multiplied by the same B, the batch is one
 * large matrix. Returns INVALID_ARGUMENT for shapes that do not match. */
kelp_status *kelp_batch_init(kelp_batch *batch, const kelp_op_args *args, const kelp_tensor *a,
                             const kelp_tensor *b, int32_t *out_rank,
                             int64_t *out_shape) KELP_MUST_USE;
/* Returns the offset of matrix `index` of the batch in an operand, in matrices; `strides` are
 * the operand's. */
int64_t kelp_batch_offset(const kelp_batch *batch, const int64_t *strides, int64_t index);

#endif
