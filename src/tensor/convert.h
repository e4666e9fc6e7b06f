/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Converts narrow floating-point types to and from float. Rounds to nearest, ties to even.
 * Source: IEEE 754-2019 binary16; bfloat16 as the upper half of binary32; 8-bit types:
 * onnx/docs/technical/float8.md and the OCP 8-bit Floating Point and Microscaling Formats
 * specifications.
 */
#ifndef KELP_TENSOR_CONVERT_H_
#define KELP_TENSOR_CONVERT_H_

#include <kelp/tensor.h>

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
    if ((bits & 0x7fffffffu) > 0x7f800000u) /* a NaN remains a NaN */
        return (uint16_t)(bits >> 16 | 0x40u);
    return (uint16_t)((bits + 0x7fffu + (bits >> 16 & 1u)) >> 16);
}

static inline float kelp_f16_to_f32(uint16_t half) {
    uint32_t sign = (uint32_t)(half & 0x8000u) << 16, magnitude = half & 0x7fffu;
    if (magnitude >= 0x7c00u) /* infinity, NaN */
        return kelp_f32_from_bits(sign | 0x7f800000u | (magnitude & 0x3ffu) << 13);
    if (magnitude < 0x0400u) { /* subnormal: the multiplication is exact */
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
    if (magnitude >= 0x477ff000u) /* 65520 and above rounds to infinity */
        return (uint16_t)(sign | 0x7c00u);
    if (magnitude < 0x38800000u) { /* below 2^-14: let the FPU round at 2^-24 */
        float scaled = kelp_f32_from_bits(magnitude) + 0.5f;
        return (uint16_t)(sign | (kelp_f32_bits(scaled) - 0x3f000000u));
    }
    return (uint16_t)(sign | ((magnitude - 0x38000000u + 0xfffu + (magnitude >> 13 & 1u)) >> 13));
}

/* Converts a double to float so that further rounding, to a type of at most 22 bits, gives the
 * same result as rounding the double directly (rounding to odd). Source: Boldo and Melquiond,
 * "Emulation of a FMA and correctly rounded sums", 2008. */
static inline float kelp_f64_to_f32_odd(double value) {
    float near = (float)value;
    double back = (double)near;
    if (back == value || value != value)
        return near;
    uint32_t bits = kelp_f32_bits(near);
    if ((back < 0 ? -back : back) > (value < 0 ? -value : value))
        bits--; /* rounds toward zero; infinity becomes the largest number */
    return kelp_f32_from_bits(bits | 1u);
}
static inline uint16_t kelp_f64_to_f16(double value) {
    return kelp_f32_to_f16(kelp_f64_to_f32_odd(value));
}
static inline uint16_t kelp_f64_to_bf16(double value) {
    return kelp_f32_to_bf16(kelp_f64_to_f32_odd(value));
}

/* Converts an element of KELP_F8E4M3FN … KELP_F8E8M0, KELP_F6E2M3, KELP_F6E3M2 or KELP_F4E2M1, in
 * the low bits of `code`, exactly. Returns NaN for another type. */
float kelp_narrow_to_f32(kelp_dtype dtype, uint8_t code);

/* Converts a float to a narrow type. An overflow becomes the largest number if `saturate` is set
 * or the type has neither infinity nor NaN; otherwise infinity, or NaN if the type has no
 * infinity. A NaN becomes a zero of the opposite sign if the type has no NaN, as in the tests of
 * the standard. F8E8M0, which has only powers of two, rounds up. Returns 0 for another type. */
uint8_t kelp_f32_to_narrow(kelp_dtype dtype, float value, bool saturate);

/* Converts the magnitude to F8E8M0, rounding 'u'p, 'd'own or to the 'n'earest (ties up). Infinity
 * and NaN become NaN, and so does an overflow unless `saturate` is set. */
uint8_t kelp_f32_to_e8m0(float value, bool saturate, char round_mode);

#endif
