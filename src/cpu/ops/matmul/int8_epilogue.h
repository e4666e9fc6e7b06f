/* SPDX-License-Identifier: Apache-2.0 */
/* Scales, zero points and biases of quantized matrix multiplications and convolutions, and their
 * conversion to a kelp_int8_finish. */
#ifndef KELP_CPU_OPS_MATMUL_INT8_EPILOGUE_H_
#define KELP_CPU_OPS_MATMUL_INT8_EPILOGUE_H_

#include "cpu/kernels/gemm/gemm_int8.h"
#include "cpu/ops/kernel.h"

/* An operand map: indices of the inputs; -1: the operator lacks this input. `a`, `step` and `y`
 * have one scale and zero point; `b` has one, or one for each column; bias and addend have one
 * value for each column.
 *   v = Σ (a - a_zero)(b - b_zero) · a_scale · b_scale + bias
 *   v = (saturate(round(v / step_scale) + step_zero) - step_zero) · step_scale
 *   v = act(v + addend)
 *   y = saturate(round(v / y_scale) + y_zero)
 * Steps whose operands are omitted are skipped; without y_scale the result is float. The unit of
 * an int32 bias is a_scale · b_scale. */
typedef struct kelp_int8_operands {
    int8_t a_scale, a_zero, b, b_scale, b_zero, bias, step_scale, step_zero, addend, y_scale,
        y_zero;
} kelp_int8_operands;

/* Returns input `index`; NULL if it is omitted or the index is -1. */
static inline const kelp_tensor *kelp_int8_operand(const kelp_op_args *args, int index) {
    return index >= 0 ? kelp_ops_in(args, index) : NULL;
}
/* Returns element `index` of a zero point; 0 if `zero` is NULL. */
int32_t kelp_int8_zero(const kelp_tensor *zero, int64_t index);
/* Returns element `index` of a scale of any float type. */
float kelp_int8_scale(const kelp_tensor *scale, int64_t index);

/* Returns INVALID_ARGUMENT if an operand or output 0 is omitted; for reshape. */
kelp_status *kelp_int8_check_operands(const kelp_op_args *args,
                                      const kelp_int8_operands *map) KELP_MUST_USE;
/* Checks all inputs for `columns` columns, reserves scratch memory for the finish and sets the type
 * of the result; for reshape. */
kelp_status *kelp_int8_epilogue_plan(kelp_op_args *args, const kelp_int8_operands *map,
                                     int64_t columns, kelp_dtype *out_dtype,
                                     size_t *out_offset) KELP_MUST_USE;
/* Sets the finish of `product`; for invoke. For a bias of integers, also updates its a_zero and
 * balance, which the caller has set. `a_scale` is the scale of A. */
void kelp_int8_epilogue_make(const kelp_op_args *args, const kelp_int8_operands *map, float a_scale,
                             kelp_act act, size_t offset, kelp_int8_gemm *product);

#endif
