/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Converts narrow floating-point types to and from float. Rounds to nearest, ties to even.
 * Source: base/float16.h for the 16-bit types; 8-bit types: onnx/docs/technical/float8.md and the
 * OCP 8-bit Floating Point and Microscaling Formats specifications.
 */
#ifndef KELP_TENSOR_CONVERT_H_
#define KELP_TENSOR_CONVERT_H_

#include "base/float16.h"

#include <kelp/tensor.h>

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
