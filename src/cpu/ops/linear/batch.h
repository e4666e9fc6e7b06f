/* SPDX-License-Identifier: Apache-2.0 */
/* Products of batches of matrices: numpy's rules for their shapes. Source: ONNX operator
 * specification, MatMul. */
#ifndef KELP_CPU_OPS_LINEAR_BATCH_H_
#define KELP_CPU_OPS_LINEAR_BATCH_H_

#include "cpu/ops/kernel.h"

typedef struct kelp_batch {
    int64_t m, n, k, batch;
    int64_t batch_shape[KELP_MAX_RANK];
    int32_t batch_rank;
    int64_t a_strides[KELP_MAX_RANK], b_strides[KELP_MAX_RANK]; /* matrices; 0 where broadcast */
} kelp_batch;

/* Shapes of A · B and of its result. When there is one B for all of A, its batch is one large
 * matrix. INVALID_ARGUMENT when they do not fit. */
kelp_status *kelp_batch_init(kelp_batch *batch, const kelp_op_args *args, const kelp_tensor *a,
                             const kelp_tensor *b, int32_t *out_rank,
                             int64_t *out_shape) KELP_MUST_USE;
/* Where matrix number `index` of the batch begins in an operand, in matrices; `strides` are the
 * operand's. */
int64_t kelp_batch_offset(const kelp_batch *batch, const int64_t *strides, int64_t index);

#endif
