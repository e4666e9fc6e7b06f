/* SPDX-License-Identifier: Apache-2.0 */
/* Inputs and attributes that all operators of convolution share: X, W, bias and residual; group and
 * the window's attributes. Source: ONNX operator specification, Conv. */
#ifndef KELP_CPU_OPS_CONV_CONV_ARGS_H_
#define KELP_CPU_OPS_CONV_CONV_ARGS_H_

#include "cpu/kernels/sliding/window.h"
#include "cpu/ops/kernel.h"

/* Checks input 0 and `weights` against each other and the attributes. Sets the shape of the
 * convolution and of output 0. Returns INVALID_ARGUMENT with the shapes that do not fit. */
kelp_status *kelp_conv_read_shape(const kelp_op_args *args, const kelp_tensor *weights,
                                  kelp_conv_shape *out, int32_t *out_rank,
                                  int64_t *out_dims) KELP_MUST_USE;
/* Checks that input 2, if present, has one number of type `dtype` for each output channel. */
kelp_status *kelp_conv_check_bias(const kelp_op_args *args, kelp_dtype dtype) KELP_MUST_USE;
/* Checks that input 3, if present, has the shape of output 0, and type float32, or bfloat16 if
 * `allows_bf16`. */
kelp_status *kelp_conv_check_residual(const kelp_op_args *args, int32_t rank, const int64_t *dims,
                                      bool allows_bf16) KELP_MUST_USE;
/* Returns INVALID_ARGUMENT: a size of scratch memory overflows. */
kelp_status *kelp_conv_too_large(const kelp_op_args *args) KELP_MUST_USE;

#endif
