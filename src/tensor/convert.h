/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Narrow floating-point types to and from float. Rounding is to nearest, ties to even.
 * Source: IEEE 754-2019 binary16; bfloat16 as the high half of binary32; the 8-bit kinds:
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
    if ((bits & 0x7fffffffu) > 0x7f800000u) /* a NaN stays one */
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

/* A double cut to binary32 so that a further rounding, to a type of at most 22 bits, gives what one
 * rounding of the double would: what is lost leaves its mark in the last bit (rounding to odd).
 * Source: Boldo and Melquiond, "Emulation of a FMA and correctly rounded sums", 2008. */
static inline float kelp_f64_to_f32_odd(double value) {
    float near = (float)value;
    double back = (double)near;
    if (back == value || value != value)
        return near;
    uint32_t bits = kelp_f32_bits(near);
    if ((back < 0 ? -back : back) > (value < 0 ? -value : value))
        bits--; /* toward zero; infinity becomes the largest number */
    return kelp_f32_from_bits(bits | 1u);
}
static inline uint16_t kelp_f64_to_f16(double value) {
    return kelp_f32_to_f16(kelp_f64_to_f32_odd(value));
}
static inline uint16_t kelp_f64_to_bf16(double value) {
    return kelp_f32_to_bf16(kelp_f64_to_f32_odd(value));
}

/* One element of KELP_F8E4M3FN … KELP_F8E8M0, KELP_F6E2M3, KELP_F6E3M2 or KELP_F4E2M1, in the low
 * bits of `code`. Exact. NaN for another type. */
float kelp_narrow_to_f32(kelp_dtype dtype, uint8_t code);

/* The reverse. What is too large becomes the largest number when `saturate`, or when the type has
 * neither infinity nor NaN; else infinity, or NaN where there is none. A NaN becomes a zero of the
 * other sign where the type has none, as the standard's tests have it. F8E8M0, which has powers of
 * two alone, rounds up. 0 for another type. */
uint8_t kelp_f32_to_narrow(kelp_dtype dtype, float value, bool saturate);

/* To F8E8M0, 'u'p, 'd'own or to the 'n'earest, ties up: the power of two of the magnitude. Infinity
 * and NaN are NaN; so is what rounds beyond the largest, unless `saturate`. */
uint8_t kelp_f32_to_e8m0(float value, bool saturate, char round_mode);

#endif
