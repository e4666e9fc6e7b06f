/* SPDX-License-Identifier: Apache-2.0 */
/* Tensors of 8 bits with a scale and a zero point, as com.microsoft's QLinear operators take them.
 */
#ifndef KELP_CPU_OPS_QUANTIZE_QLINEAR_H_
#define KELP_CPU_OPS_QUANTIZE_QLINEAR_H_

#include "cpu/ops/kernel.h"

#include <math.h>

typedef struct kelp_quant {
    float scale;
    int32_t zero, least, most;
} kelp_quant;

/* To the nearest whole number, ties to even, below 2^22: in place of a call of rintf. */
#define KELP_QUANT_ROUND(x) (((x) + 0x1.8p23f) - 0x1.8p23f)

static inline bool kelp_quant_is(kelp_dtype dtype) {
    return dtype == KELP_U8 || dtype == KELP_I8;
}
/* The scale must be one float, the zero point (which may be left out) one of type `dtype`. */
kelp_status *kelp_quant_check(const kelp_op_args *args, kelp_dtype dtype, int32_t scale,
                              int32_t zero) KELP_MUST_USE;
kelp_quant kelp_quant_read(const kelp_op_args *args, kelp_dtype dtype, int32_t scale, int32_t zero);
/* An element as an integer. */
static inline int32_t kelp_quant_get(const kelp_tensor *tensor, int64_t index) {
    return tensor->dtype == KELP_I8 ? ((const int8_t *)tensor->data)[index]
                                    : ((const uint8_t *)tensor->data)[index];
}
/* The byte of a number that counts scales: to nearest, ties to even. */
static inline uint8_t kelp_quant_byte(const kelp_quant *q, float scales) {
    scales = scales < -65536.0f ? -65536.0f : scales > 65536.0f ? 65536.0f : scales;
    float value = KELP_QUANT_ROUND(scales) + (float)q->zero;
    value = value < (float)q->least ? (float)q->least : value;
    return (uint8_t)(int32_t)(value > (float)q->most ? (float)q->most : value);
}
/* For each of the 256 bytes of type `dtype` the number that it stands for. */
void kelp_quant_numbers(const kelp_quant *q, kelp_dtype dtype, float *out);

#endif
