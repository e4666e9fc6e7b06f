/* SPDX-License-Identifier: Apache-2.0 */
/*
 * float16 and bfloat16 operands as floats: kernels that compute in float take them through copies.
 */
#ifndef KELP_CPU_OPS_WIDE_H_
#define KELP_CPU_OPS_WIDE_H_

#include "cpu/ops/kernel.h"

#include "tensor/convert.h"

/* The value as an element of `dtype` would hold it; float32 and all other types leave it. */
static inline float kelp_ops_round(kelp_dtype dtype, float value) {
    if (dtype == KELP_F16)
        return kelp_f16_to_f32(kelp_f32_to_f16(value));
    return dtype == KELP_BF16 ? kelp_bf16_to_f32(kelp_f32_to_bf16(value)) : value;
}

/* `count` elements from element `first` on: of float32, float16, bfloat16, float64 or (reading
 * only) any number type. No threads. */
void kelp_ops_read_f32s(const kelp_tensor *tensor, int64_t first, int64_t count, float *out);
void kelp_ops_write_f32s(kelp_tensor *tensor, int64_t first, int64_t count, const float *from);

/* Element `index` of a floating-point tensor, rounded once. */
void kelp_ops_write_f64(kelp_tensor *tensor, int64_t index, double value);

/* Whole tensors, shared among the threads. */
void kelp_ops_widen(const kelp_op_env *env, const kelp_tensor *from, float *to);
void kelp_ops_narrow(const kelp_op_env *env, const float *from, kelp_tensor *to);

/* An input of a kernel that computes in float: where it lies when it is float32 (or left out:
 * NULL), else a copy. `plan` in reshape reserves the copy's scratch, `get` in invoke makes it. The
 * types are checked by the caller. */
kelp_status *kelp_ops_wide_plan(kelp_op_args *args, const kelp_tensor *tensor,
                                size_t *out_offset) KELP_MUST_USE;
const float *kelp_ops_wide_get(const kelp_op_args *args, const kelp_tensor *tensor, size_t offset);
/* An output of one: where to write floats, and the rounding of what was written. */
float *kelp_ops_wide_put(const kelp_op_args *args, kelp_tensor *tensor, size_t offset);
void kelp_ops_wide_finish(const kelp_op_args *args, kelp_tensor *tensor, size_t offset);

#endif
