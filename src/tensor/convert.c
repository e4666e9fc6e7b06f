/* SPDX-License-Identifier: Apache-2.0 */
/* Converts floating-point types of 4 to 8 bits: one description per type, and one algorithm for
 * all. */
#include "tensor/convert.h"

#include "base/assert.h"

#include <math.h>

typedef enum special {
    FINITE,           /* neither infinity nor NaN */
    IEEE,             /* the highest exponent is infinity and NaN */
    ONES_ARE_NAN,     /* all bits but the sign set: NaN; no infinity */
    MINUS_ZERO_IS_NAN /* the code of -0 is NaN; no infinity */
} special;

typedef struct format {
    int exponent_bits, mantissa_bits, bias;
    special special;
} format;

static bool format_of(kelp_dtype dtype, format *out) {
    switch (dtype) {
    case KELP_F8E4M3FN:
        *out = (format){4, 3, 7, ONES_ARE_NAN};
        return true;
    case KELP_F8E4M3FNUZ:
        *out = (format){4, 3, 8, MINUS_ZERO_IS_NAN};
        return true;
    case KELP_F8E5M2:
        *out = (format){5, 2, 15, IEEE};
        return true;
    case KELP_F8E5M2FNUZ:
        *out = (format){5, 2, 16, MINUS_ZERO_IS_NAN};
        return true;
    case KELP_F6E2M3:
        *out = (format){2, 3, 1, FINITE};
        return true;
    case KELP_F6E3M2:
        *out = (format){3, 2, 3, FINITE};
        return true;
    case KELP_F4E2M1:
        *out = (format){2, 1, 1, FINITE};
        return true;
    default:
        return false;
    }
}

float kelp_narrow_to_f32(kelp_dtype dtype, uint8_t code) {
    format f;
    if (dtype == KELP_F8E8M0)
        return code == 0xff ? NAN : ldexpf(1.0f, code - 127);
    if (!format_of(dtype, &f))
        return NAN;
    int width = f.exponent_bits + f.mantissa_bits, mantissa = code & ((1 << f.mantissa_bits) - 1);
    int exponent = code >> f.mantissa_bits & ((1 << f.exponent_bits) - 1);
    int magnitude = code & ((1 << width) - 1), highest = (1 << f.exponent_bits) - 1;
    bool negative = code >> width & 1;
    if ((f.special == ONES_ARE_NAN && magnitude == (1 << width) - 1) ||
        (f.special == MINUS_ZERO_IS_NAN && negative && magnitude == 0) ||
        (f.special == IEEE && exponent == highest && mantissa != 0))
        return NAN;
    if (f.special == IEEE && exponent == highest)
        return negative ? -INFINITY : INFINITY;
    int significand = exponent == 0 ? mantissa : mantissa + (1 << f.mantissa_bits);
    float value =
        ldexpf((float)significand, (exponent == 0 ? 1 : exponent) - f.bias - f.mantissa_bits);
    return negative ? -value : value;
}

/* Converts to F8E8M0. The code is the exponent of binary32; the sign is dropped. Below the normal
 * numbers of binary32 there is one more power, 2^-127, with code 0. */
uint8_t kelp_f32_to_e8m0(float value, bool saturate, char round_mode) {
    uint32_t bits = kelp_f32_bits(value), code = bits >> 23 & 0xffu, rest = bits & 0x7fffffu;
    KELP_ASSERT(round_mode == 'u' || round_mode == 'd' || round_mode == 'n');
    if (code == 0xff)
        return 0xff;
    uint32_t exact = code > 0 ? 0 : 0x400000u; /* mantissa at which the value equals the code's */
    bool half = code > 0 ? rest >= 0x400000u : rest > 0x600000u;
    if ((round_mode == 'u' && rest > exact) || (round_mode == 'n' && half))
        code += code == 0xfe && saturate ? 0 : 1;
    return (uint8_t)code;
}

uint8_t kelp_f32_to_narrow(kelp_dtype dtype, float value, bool saturate) {
    format f;
    if (dtype == KELP_F8E8M0)
        return kelp_f32_to_e8m0(value, saturate, 'u');
    if (!format_of(dtype, &f))
        return 0;
    int width = f.exponent_bits + f.mantissa_bits, ones = (1 << width) - 1, exponent = 0;
    int sign = signbit(value) ? 1 << width : 0;
    int infinity = ((1 << f.exponent_bits) - 1) << f.mantissa_bits;
    int largest = f.special == IEEE ? infinity - 1 : f.special == ONES_ARE_NAN ? ones - 1 : ones;
    int nan_code = f.special == IEEE           ? sign | infinity | 1 << (f.mantissa_bits - 1)
                   : f.special == ONES_ARE_NAN ? sign | ones
                   : f.special == MINUS_ZERO_IS_NAN
                       ? 1 << width
                       : sign ^ 1 << width; /* zero of the opposite sign */
    if (isnan(value))
        return (uint8_t)nan_code;
    int code = ones + 1; /* larger than any code */
    if (!isinf(value)) {
        float magnitude = fabsf(value);
        frexpf(magnitude, &exponent);
        exponent = magnitude == 0 || exponent - 1 < 1 - f.bias ? 1 - f.bias : exponent - 1;
        /* rintf rounds ties to even */
        float steps = rintf(ldexpf(magnitude, f.mantissa_bits - exponent));
        if (exponent + f.bias <= 1 << f.exponent_bits)
            code = ((exponent + f.bias - 1) << f.mantissa_bits) + (int)steps;
    }
    if (code > largest)
        return (uint8_t)(saturate || f.special == FINITE ? sign | largest
                         : f.special == IEEE             ? sign | infinity
                                                         : nan_code);
    KELP_ASSERT(code >= 0 && code <= ones);
    return (uint8_t)(code == 0 && f.special == MINUS_ZERO_IS_NAN ? 0 : sign | code);
}
