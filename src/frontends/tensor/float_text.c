/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The shortest decimal digits of a float, by three multiplications with a power of ten.
 *
 * A float is c * 2^q. The decimals that read back to it are those between the midpoints to its
 * neighbours. With k = floor(log10(2^q)), at most one multiple of 10^(k+1) and at least one
 * multiple of 10^k lie between them. Products with 10^-k, which are rounded to odd, are exact
 * enough to compare with the midpoints.
 *
 * Source: R. Giulietti, "The Schubfach way to render doubles", 2020.
 */
#include "frontends/tensor/float_text.h"

#include "base/assert.h"
#include "base/checked.h"

#include <math.h>

/* IEEE 754 binary32. */
#define MANTISSA_BITS 23
#define EXPONENT_BIAS 127
#define SUBNORMAL_EXPONENT (1 - EXPONENT_BIAS - MANTISSA_BITS)
#define INFINITE_EXPONENT 255u

#define MIN_POWER (-31)
#define MAX_TEXT 32         /* characters of a number, and of stores that write more */
#define MAX_DIGITS 9        /* of a float */
#define FIRST_SCIENTIFIC 16 /* exponents from which on a number is written as "1e+16" */
#define LAST_SCIENTIFIC (-5)
#define CHUNK 64 /* numbers for which memory is reserved at a time */

typedef unsigned __int128 wide;

/* digits * 10^exponent */
typedef struct decimal {
    uint32_t digits;
    int exponent;
} decimal;

static const char pairs[] =
    "00010203040506070809101112131415161718192021222324252627282930313233343"
    "53637383940414243444546474849505152535455565758596061626364656667686970"
    "71727374757677787980818283848586878889909192939495969798990";

/* ---- digits ---- */

/* Returns 10^k as 64 bits, rounded up. */
static inline uint64_t power_of_ten(int k) {
    static const uint64_t powers[] = {
#include "frontends/tensor/powers_of_ten.inc"
    };
    KELP_ASSERT(k >= MIN_POWER && (size_t)(k - MIN_POWER) < KELP_COUNT(powers));
    return powers[k - MIN_POWER];
}

/* Returns floor(log2(10^k)). */
static inline int log2_of_power(int k) {
    return (k * 1741647) >> 19;
}

/* Returns floor(log10(2^q)), or floor(log10(3/4 * 2^q)). */
static inline int log10_of_exponent(int q, bool three_quarters) {
    return (q * 1262611 - (three_quarters ? 524031 : 0)) >> 22;
}

/* Returns the product shifted by 64 bits; a remainder sets the last bit. */
static inline uint32_t round_to_odd(uint64_t power, uint32_t value) {
    wide product = (wide)power * value;
    uint32_t low = (uint32_t)((uint64_t)product >> 32);
    return (uint32_t)(product >> 64) | (low > 1);
}

/* Returns the shortest digits of mantissa * 2^exponent, and of these the nearest. `narrow`: the
 * distance to the neighbour below is half of that above. */
static inline decimal shortest(uint32_t mantissa, int exponent, bool narrow) {
    bool odd = mantissa & 1; /* an even mantissa wins at the midpoints */
    int k = log10_of_exponent(exponent, narrow);
    int shift = exponent + log2_of_power(-k) + 1;
    uint64_t power = power_of_ten(-k);
    /* four times the value and the midpoints, in units of 10^k */
    uint32_t lower = round_to_odd(power, (4 * mantissa - 2 + narrow) << shift) + odd;
    uint32_t value = round_to_odd(power, (4 * mantissa) << shift);
    uint32_t upper = round_to_odd(power, (4 * mantissa + 2) << shift) - odd;
    uint32_t below = value / 4;
    if (below >= 10) {
        uint32_t tens = below / 10;
        bool low_inside = lower <= 40 * tens, high_inside = 40 * tens + 40 <= upper;
        if (low_inside != high_inside)
            return (decimal){tens + high_inside, k + 1};
    }
    bool low_inside = lower <= 4 * below, high_inside = 4 * below + 4 <= upper;
    if (low_inside != high_inside)
        return (decimal){below + high_inside, k};
    uint32_t middle = 4 * below + 2;
    return (decimal){below + (value > middle || (value == middle && (below & 1))), k};
}

/* Converts a positive finite value. */
static inline decimal to_decimal(uint32_t bits) {
    uint32_t fraction = bits & ((1u << MANTISSA_BITS) - 1);
    int biased = (int)(bits >> MANTISSA_BITS);
    uint32_t mantissa = biased != 0 ? fraction | 1u << MANTISSA_BITS : fraction;
    int exponent = biased != 0 ? biased - EXPONENT_BIAS - MANTISSA_BITS : SUBNORMAL_EXPONENT;
    if (exponent <= 0 && exponent > -MANTISSA_BITS - 1 && (mantissa & ((1u << -exponent) - 1)) == 0)
        return (decimal){mantissa >> -exponent, 0}; /* a small integer */
    return shortest(mantissa, exponent, fraction == 0 && biased > 1);
}

/* ---- text ---- */

static inline int count_digits(uint32_t value) {
    return value < 100000      ? (value < 100     ? (value < 10 ? 1 : 2)
                                  : value < 1000  ? 3
                                  : value < 10000 ? 4
                                                  : 5)
           : value < 10000000  ? (value < 1000000 ? 6 : 7)
           : value < 100000000 ? 8
                               : 9;
}

static inline void put_pair(char *to, uint32_t value) {
    memcpy(to, pairs + (size_t)2 * value, 2);
}

/* Writes 9 digits, with leading zeros. */
static inline void put_digits(char *to, uint32_t value) {
    uint32_t high = value / 10000, low = value % 10000; /* 5 and 4 digits */
    to[0] = (char)('0' + high / 10000);
    put_pair(to + 1, high / 100 % 100);
    put_pair(to + 3, high % 100);
    put_pair(to + 5, low / 100);
    put_pair(to + 7, low % 100);
}

static char *put_text(char *to, const char *text) {
    size_t length = strlen(text);
    memcpy(to, text, length);
    return to + length;
}

/* Writes d.ddde+xx. */
static char *put_scientific(char *to, const char *digits, int count, int exponent) {
    *to++ = digits[0];
    if (count > 1) {
        *to++ = '.';
        memcpy(to, digits + 1, (size_t)count - 1);
        to += count - 1;
    }
    *to++ = 'e';
    *to++ = exponent < 0 ? '-' : '+';
    put_pair(to, (uint32_t)(exponent < 0 ? -exponent : exponent)); /* at most 45 */
    return to + 2;
}

/* Writes a number without an exponent. Copies of a fixed size may write past the end. */
static inline char *put_plain(char *to, const char *digits, int count, int exponent) {
    if (exponent < 0) {
        memcpy(to, "0.000000", 8);
        memcpy(to + 1 - exponent, digits, 16);
        return to + 1 - exponent + count;
    }
    int whole = exponent + 1;
    if (count > whole) {
        memcpy(to, digits, 16);
        to[whole] = '.';
        memcpy(to + whole + 1, digits + whole, 16);
        return to + count + 1;
    }
    memcpy(to, digits, 16);
    memset(to + count, '0', (size_t)(whole - count));
    return put_text(to + whole, ".0");
}

/* Writes a value, at most MAX_TEXT bytes, and returns the end. */
static inline char *put_float(char *to, float value) {
    uint32_t bits;
    char buffer[MAX_DIGITS + 24] = {0}; /* the digits, and what copies of a fixed size read */
    memcpy(&bits, &value, sizeof bits);
    uint32_t magnitude = bits & ~(1u << 31);
    if (magnitude >= INFINITE_EXPONENT << MANTISSA_BITS)
        return put_text(to, magnitude > INFINITE_EXPONENT << MANTISSA_BITS ? "NaN"
                            : bits >> 31                                   ? "-Infinity"
                                                                           : "Infinity");
    *to = '-';
    to += bits >> 31;
    if (magnitude == 0)
        return put_text(to, "0.0");
    decimal number = to_decimal(magnitude);
    int count = count_digits(number.digits);
    put_digits(buffer, number.digits);
    const char *digits = buffer + MAX_DIGITS - count;
    int exponent = number.exponent + count - 1; /* of the first digit */
    while (count > 1 && digits[count - 1] == '0')
        count--;
    return exponent >= FIRST_SCIENTIFIC || exponent <= LAST_SCIENTIFIC
               ? put_scientific(to, digits, count, exponent)
               : put_plain(to, digits, count, exponent);
}

void kelp_v2_append_float(kelp_buf *out, float value) {
    char *to = kelp_buf_reserve(out, MAX_TEXT);
    if (to != NULL)
        out->length += (size_t)(put_float(to, value) - to);
}

void kelp_v2_append_floats(kelp_buf *out, const void *bytes, size_t count) {
    const unsigned char *at = bytes;
    for (size_t i = 0; i < count;) {
        size_t n = KELP_MIN(count - i, CHUNK);
        char *begin = kelp_buf_reserve(out, n * MAX_TEXT), *to = begin;
        if (begin == NULL)
            return;
        for (size_t end = i + n; i < end; i++, at += sizeof(float)) {
            float value;
            memcpy(&value, at, sizeof value);
            *to = ',';
            to = put_float(to + (i > 0), value);
        }
        out->length += (size_t)(to - begin);
    }
}
