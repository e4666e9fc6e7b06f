/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A float has a mantissa of 24 bits. For usual magnitudes, value * 10^k therefore fits exactly into
 * a 128-bit integer, and division yields the decimal digits, without printing and reading back.
 * Large JSON responses consist mostly of such numbers.
 */
#include "frontends/v2/float_text.h"

#include "base/assert.h"

#include <math.h>

/* The general code handles values below SMALLEST, and LARGEST and above. */
#define SMALLEST 1.001e-4f
#define LARGEST 1e15f
#define DIGITS 17    /* enough for any double */
#define MAX_POWER 19 /* of ten in a uint64 */
#define MAX_TEXT 48  /* characters of a number */
#define LOG10_2 0.30102999566398120
/* IEEE 754 binary32 and binary64. */
#define MANTISSA_BITS 23
#define EXPONENT_BIAS 127
#define DOUBLE_PRECISION 53

typedef unsigned __int128 wide;

static const uint64_t powers[] = {
    1u,
    10u,
    100u,
    1000u,
    10000u,
    100000u,
    1000000u,
    10000000u,
    100000000u,
    1000000000u,
    UINT64_C(10000000000),
    UINT64_C(100000000000),
    UINT64_C(1000000000000),
    UINT64_C(10000000000000),
    UINT64_C(100000000000000),
    UINT64_C(1000000000000000),
    UINT64_C(10000000000000000),
    UINT64_C(100000000000000000),
    UINT64_C(1000000000000000000),
    UINT64_C(10000000000000000000),
};

static wide power_of_ten(int k) {
    return k <= MAX_POWER ? (wide)powers[k] : (wide)powers[MAX_POWER] * powers[k - MAX_POWER];
}

/* value = mantissa * 2^-shift, with mantissa < 2^64. */
typedef struct exact {
    uint64_t mantissa;
    int shift;
    int top_bit; /* of the mantissa */
} exact;

static exact decompose(float magnitude) {
    uint32_t bits;
    memcpy(&bits, &magnitude, sizeof bits);
    uint32_t leading = UINT32_C(1) << MANTISSA_BITS;
    exact e = {(bits & (leading - 1)) | leading,
               EXPONENT_BIAS + MANTISSA_BITS - (int)(bits >> MANTISSA_BITS), MANTISSA_BITS};
    if (e.shift < 0) { /* at most 2^50: still exact in 64 bits */
        e.mantissa <<= -e.shift;
        e.top_bit -= e.shift;
        e.shift = 0;
    }
    return e;
}

/* Returns the shortest of 15, 16 and 17 digits that reads back; *out_scale is k in digits = value *
 * 10^k. */
static uint64_t shortest_digits(exact e, int *out_scale) {
    /* 10^k scales the value to [10^16, 10^17). The estimate from the binary exponent is exact or
     * one too large. */
    int exponent = e.top_bit - e.shift;
    int k = DIGITS - 1 - (int)floor((double)exponent * LOG10_2);
    wide scaled = (wide)e.mantissa * power_of_ten(k);
    if ((scaled >> e.shift) >= powers[DIGITS]) {
        k--;
        scaled = (wide)e.mantissa * power_of_ten(k);
    }
    wide ten = power_of_ten(k);
    uint64_t whole = (uint64_t)(scaled >> e.shift);
    for (int dropped = 2; dropped >= 0; dropped--) {
        wide unit = (wide)powers[dropped] << e.shift;
        uint64_t digits = whole / powers[dropped];
        wide rest = scaled - digits * unit;
        if (2 * rest > unit || (2 * rest == unit && (digits & 1))) {
            digits++;
            rest = unit - rest;
        }
        /* The digits read back if they are nearer than half the distance to the next double:
         * 2^(exponent - 53). At a power of two the next double below has half the distance, which
         * is then required in both directions. */
        int half = DOUBLE_PRECISION - e.top_bit + ((e.mantissa & (e.mantissa - 1)) == 0 ? 1 : 0);
        bool near = half >= 0 ? rest << half < ten : rest < ten << -half;
        if (near || dropped == 0) {
            *out_scale = k - dropped;
            return digits;
        }
    }
    return 0; /* unreachable: 17 digits always read back */
}

/* Writes digits * 10^-scale without an exponent. */
static size_t write_decimal(uint64_t digits, int scale, char *text) {
    KELP_ASSERT(digits > 0);
    while (digits % 10 == 0) {
        digits /= 10;
        scale--;
    }
    char reversed[24];
    int count = 0;
    for (; digits; digits /= 10)
        reversed[count++] = (char)('0' + digits % 10);
    size_t n = 0;
    if (scale >= count) { /* 0.000ddd */
        text[n++] = '0';
        text[n++] = '.';
        for (int i = count; i < scale; i++)
            text[n++] = '0';
        while (count > 0)
            text[n++] = reversed[--count];
        return n;
    }
    for (; count > (scale > 0 ? scale : 0);)
        text[n++] = reversed[--count];
    for (int i = scale; i < 0; i++)
        text[n++] = '0';
    text[n++] = '.';
    if (count == 0)
        text[n++] = '0';
    while (count > 0)
        text[n++] = reversed[--count];
    return n;
}

void kelp_v2_append_float(kelp_buf *out, float value) {
    float magnitude = fabsf(value);
    if (!(magnitude >= SMALLEST && magnitude < LARGEST)) {
        kelp_buf_append_f64(out, (double)value);
        return;
    }
    char *text = kelp_buf_reserve(out, MAX_TEXT);
    if (text == NULL)
        return;
    size_t n = 0;
    if (value < 0)
        text[n++] = '-';
    int scale = 0;
    uint64_t digits = shortest_digits(decompose(magnitude), &scale);
    n += write_decimal(digits, scale, text + n);
    KELP_ASSERT(n <= MAX_TEXT);
    out->length += n;
}
