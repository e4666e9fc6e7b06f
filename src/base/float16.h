/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Conversions between binary32 and the 16-bit types binary16 and bfloat16. Rounding is to nearest,
 * ties to even. A NaN stays a NaN.
 * Source: IEEE 754-2019 binary16; bfloat16 is the high half of binary32.
 */
#ifndef KELP_BASE_FLOAT16_H_
#define KELP_BASE_FLOAT16_H_

#include <stdint.h>
#include <string.h>

static inline float kelp_f32_from_bits(uint32_t bits) {
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static inline uint32_t kelp_f32_bits(float value) {
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

static inline float kelp_bf16_to_f32(uint16_t bits) {
    return kelp_f32_from_bits((uint32_t)bits << 16);
}

static inline uint16_t kelp_f32_to_bf16(float value) {
    uint32_t bits = kelp_f32_bits(value);
    if ((bits & 0x7fffffffu) > 0x7f800000u) /* set the quiet bit, so that it stays a NaN */
        return (uint16_t)(bits >> 16 | 0x40u);
    return (uint16_t)((bits + 0x7fffu + (bits >> 16 & 1u)) >> 16);
}

static inline float kelp_f16_to_f32(uint16_t half) {
    uint32_t sign = (uint32_t)(half & 0x8000u) << 16, magnitude = half & 0x7fffu;
    if (magnitude >= 0x7c00u) /* infinity, NaN */
        return kelp_f32_from_bits(sign | 0x7f800000u | (magnitude & 0x3ffu) << 13);
    if (magnitude < 0x0400u) { /* subnormal: an exact product */
        float value = (float)magnitude * 0x1p-24f;
        return kelp_f32_from_bits(sign | kelp_f32_bits(value));
    }
    return kelp_f32_from_bits(sign | ((magnitude << 13) + 0x38000000u));
}

static inline uint16_t kelp_f32_to_f16(float value) {
    uint32_t bits = kelp_f32_bits(value), sign = bits >> 16 & 0x8000u;
    uint32_t magnitude = bits & 0x7fffffffu;
    if (magnitude > 0x7f800000u)
        return (uint16_t)(sign | 0x7e00u);
    if (magnitude >= 0x477ff000u) /* 65520 and more rounds to infinity */
        return (uint16_t)(sign | 0x7c00u);
    if (magnitude < 0x38800000u) { /* below 2^-14: let the FPU round at 2^-24 */
        float scaled = kelp_f32_from_bits(magnitude) + 0.5f;
        return (uint16_t)(sign | (kelp_f32_bits(scaled) - 0x3f000000u));
    }
    return (uint16_t)(sign | ((magnitude - 0x38000000u + 0xfffu + (magnitude >> 13 & 1u)) >> 13));
}

#endif
