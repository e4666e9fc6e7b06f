/* SPDX-License-Identifier: Apache-2.0 */
/* Quantization of floats to 8 bits, from the minimum to the maximum of the values and 0. */
#ifndef KELP_CPU_OPS_QUANTIZE_DYNAMIC_H_
#define KELP_CPU_OPS_QUANTIZE_DYNAMIC_H_

#include "cpu/ops/kernel.h"

/* Computes the scale and zero point, and y = round(x / *out_scale) + *out_zero unless `y` is NULL,
 * on all threads. Source: ONNX operator specification, DynamicQuantizeLinear. */
void kelp_quantize_dynamic(const kelp_op_env *env, const float *x, int64_t count, uint8_t *y,
                           float *out_scale, uint8_t *out_zero);

#endif
