/* SPDX-License-Identifier: Apache-2.0 */
/* Floats to 256 steps between the least and the most of them, zero among them. */
#ifndef KELP_CPU_OPS_QUANTIZE_DYNAMIC_H_
#define KELP_CPU_OPS_QUANTIZE_DYNAMIC_H_

#include "cpu/ops/kernel.h"

/* y = round(x / *out_scale) + *out_zero; on all threads. y may be NULL. Source: ONNX operator
 * specification, DynamicQuantizeLinear. */
void kelp_quantize_dynamic(const kelp_op_env *env, const float *x, int64_t count, uint8_t *y,
                           float *out_scale, uint8_t *out_zero);

#endif
