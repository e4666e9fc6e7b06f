/* SPDX-License-Identifier: Apache-2.0 */
/* QLinearMatMul off the beaten track: scales of rows and of batches, scales of 16 bits, operands of
 * 8-bit floats. */
#ifndef KELP_CPU_OPS_MATMUL_INT8_ROWS_H_
#define KELP_CPU_OPS_MATMUL_INT8_ROWS_H_

#include "cpu/ops/matmul/batch.h"

/* Whether `count` numbers are single, one for each row of a matrix of `of`, or one for each row of
 * all its matrices; with `rows` false of columns. */
bool kelp_rows_fit(int64_t count, const kelp_tensor *of, bool rows);
/* Which of `count` numbers belongs to row (or column) `at` of `extent` in matrix `job` of the
 * batch; `strides` are the operand's. */
int64_t kelp_rows_index(const kelp_batch *batch, const int64_t *strides, int64_t job,
                        int64_t extent, int64_t at, int64_t count);

/* Scales and zero points of QLinearMatMul, whatever their layout. */
kelp_status *kelp_rows_check(const kelp_op_args *args) KELP_MUST_USE;
/* The result, of sums of either kind (the other is NULL). */
void kelp_rows_finish(const kelp_op_args *args, const kelp_batch *batch, const int32_t *sums,
                      const float *float_sums);

typedef struct kelp_rows_floats {
    kelp_batch b;
    size_t a_wide, b_wide, sums, jobs;
} kelp_rows_floats;
/* Whether one of the operands is of 8-bit floats. */
bool kelp_rows_are_floats(const kelp_op_args *args);
kelp_status *kelp_rows_floats_plan(kelp_op_args *args, kelp_rows_floats *plan) KELP_MUST_USE;
void kelp_rows_floats_run(const kelp_op_args *args, const kelp_rows_floats *plan);

#endif
