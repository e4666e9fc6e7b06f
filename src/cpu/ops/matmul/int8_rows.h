/* SPDX-License-Identifier: Apache-2.0 */
/* Unusual forms of QLinearMatMul: scales of rows and of batches, 16-bit scales, operands of 8-bit
 * floats. */
#ifndef KELP_CPU_OPS_MATMUL_INT8_ROWS_H_
#define KELP_CPU_OPS_MATMUL_INT8_ROWS_H_

#include "cpu/ops/matmul/batch.h"

/* Returns true if `count` is 1, the rows of one matrix of `of`, or the rows of all its matrices;
 * columns instead of rows if `rows` is false. `of` is not a scalar. */
bool kelp_rows_fit(int64_t count, const kelp_tensor *of, bool rows);
/* Returns the index, below `count`, of the scale or zero point of row (or column) `at` of `dim` in
 * matrix `job` of the batch; `strides` are the operand's. */
int64_t kelp_rows_index(const kelp_batch *batch, const int64_t *strides, int64_t job, int64_t dim,
                        int64_t at, int64_t count);

/* Checks the types and numbers of scales and zero points of QLinearMatMul. */
kelp_status *kelp_rows_check(const kelp_op_args *args) KELP_MUST_USE;
/* Computes the result from integer or float sums; the other pointer is NULL. */
void kelp_rows_finish(const kelp_op_args *args, const kelp_batch *batch, const int32_t *sums,
                      const float *float_sums);

/* The plan of a QLinearMatMul of 8-bit floats. */
typedef struct kelp_rows_floats {
    kelp_batch b;
    size_t a_wide, b_wide, sums, jobs; /* offsets in scratch memory */
} kelp_rows_floats;
/* Returns true if an operand has 8-bit floats. */
bool kelp_rows_are_floats(const kelp_op_args *args);
/* Implements reshape and invoke for 8-bit floats. */
kelp_status *kelp_rows_floats_plan(kelp_op_args *args, kelp_rows_floats *plan) KELP_MUST_USE;
void kelp_rows_floats_run(const kelp_op_args *args, const kelp_rows_floats *plan);

#endif
