/* SPDX-License-Identifier: Apache-2.0 */
/* 8-bit tensors with a scale and a zero point, the operands of com.microsoft's QLinear operators.
 */
#ifndef KELP_CPU_OPS_QUANTIZE_QLINEAR_H_
#define KELP_CPU_OPS_QUANTIZE_QLINEAR_H_

#include "cpu/kernels/int8/int8_kernels.h"
#include "cpu/ops/kernel.h"

#include <math.h>

/* The quantization of a tensor. `min` and `max` are the limits of its type. */
typedef struct kelp_quant {
    float scale;
    int32_t zero, min, max;
} kelp_quant;

/* Rounds to nearest, ties to even, for magnitudes below 2^22; faster than rintf. */
#define KELP_QUANT_ROUND(x) (((x) + 0x1.8p23f) - 0x1.8p23f)

/* Returns true for the types that the operators support. */
static inline bool kelp_quant_is(kelp_dtype dtype) {
    return dtype == KELP_U8 || dtype == KELP_I8;
}
/* Checks that input `scale` is one float, and input `zero`, if present, one value of type `dtype`.
 */
kelp_status *kelp_quant_check(const kelp_op_args *args, kelp_dtype dtype, int32_t scale,
                              int32_t zero) KELP_MUST_USE;
/* Reads both, which kelp_quant_check has checked; for invoke. */
kelp_quant kelp_quant_read(const kelp_op_args *args, kelp_dtype dtype, int32_t scale, int32_t zero);
/* Returns an element as an integer. */
static inline int32_t kelp_quant_get(const kelp_tensor *tensor, int64_t index) {
    return tensor->dtype == KELP_I8 ? ((const int8_t *)tensor->data)[index]
                                    : ((const uint8_t *)tensor->data)[index];
}
/* Quantizes a value that is divided by the scale, rounding to nearest, ties to even. */
static inline uint8_t kelp_quant_byte(const kelp_quant *q, float scales) {
    scales = scales < -65536.0f ? -65536.0f : scales > 65536.0f ? 65536.0f : scales;
    float value = KELP_QUANT_ROUND(scales) + (float)q->zero;
    value = value < (float)q->min ? (float)q->min : value;
    return (uint8_t)(int32_t)(value > (float)q->max ? (float)q->max : value);
}
/* Quantizes `count` floats to bytes of type `dtype`. */
void kelp_quant_floats(const kelp_quant *q, kelp_dtype dtype, const float *x, uint8_t *y,
                       int64_t count);
/* Computes the real values of the 256 bytes of type `dtype`. */
void kelp_quant_values(const kelp_quant *q, kelp_dtype dtype, float *out);
/* y[i] = table[x[i]], i < count. `table` has 256 bytes; y may be x. */
void kelp_quant_look_up(const uint8_t *table, const uint8_t *x, uint8_t *y, int64_t count);

#endif
