/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Narrow floating-point types to and from float. Rounding is to nearest, ties to even.
 * Source: base/float16.h for the 16-bit types; the 8-bit types: onnx/docs/technical/float8.md and
 * the OCP 8-bit Floating Point and Microscaling Formats specifications.
 */
#ifndef KELP_TENSOR_CONVERT_H_
#define KELP_TENSOR_CONVERT_H_

#include "base/float16.h"

#include <kelp/tensor.h>

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
