/* SPDX-License-Identifier: Apache-2.0 */
/* What quantized products and convolutions take beside their operands, and how it becomes a
 * kelp_int8_finish. */
#ifndef KELP_CPU_OPS_MATMUL_INT8_EPILOGUE_H_
#define KELP_CPU_OPS_MATMUL_INT8_EPILOGUE_H_

#include "cpu/kernels/gemm/gemm_int8.h"
#include "cpu/ops/kernel.h"

/* Where the inputs stand; -1: there is none. Scales and zero points of `a`, `step` and `y` are
 * single, those of `b` single or one a column; bias and addend have one number a column.
 *   v = Σ (a - a_zero)(b - b_zero) · a_scale · b_scale + bias
 *   v = (saturate(round(v / step_scale) + step_zero) - step_zero) · step_scale
 *   v = act(v + addend)
 *   y = saturate(round(v / y_scale) + y_zero)
 * What is left out is skipped; without y_scale the result is float. A bias of int32 counts
 * a_scale · b_scale. */
typedef struct kelp_int8_places {
    int8_t a_scale, a_zero, b, b_scale, b_zero, bias, step_scale, step_zero, addend, y_scale,
        y_zero;
} kelp_int8_places;

static inline const kelp_tensor *kelp_int8_place(const kelp_op_args *args, int place) {
    return place >= 0 ? kelp_ops_in(args, place) : NULL;
}
/* One integer of a zero point; 0 without one. */
int32_t kelp_int8_zero(const kelp_tensor *zero, int64_t index);
/* A scale of float, float16 or bfloat16. */
float kelp_int8_scale(const kelp_tensor *scale, int64_t index);

/* reshape: both operands and output 0 must be there. */
kelp_status *kelp_int8_check_operands(const kelp_op_args *args,
                                      const kelp_int8_places *places) KELP_MUST_USE;
/* reshape: checks all of them for `columns` columns, reserves scratch for the finish and tells the
 * type of the result. */
kelp_status *kelp_int8_epilogue_plan(kelp_op_args *args, const kelp_int8_places *places,
                                     int64_t columns, kelp_dtype *out_dtype,
                                     size_t *out_offset) KELP_MUST_USE;
/* invoke: sets the product's finish, and, for a bias of integers, its a_zero and balance, which are
 * to be there already. `a_scale` is the scale of A. */
void kelp_int8_epilogue_make(const kelp_op_args *args, const kelp_int8_places *places,
                             float a_scale, kelp_act act, size_t offset, kelp_int8_gemm *product);

#endif
