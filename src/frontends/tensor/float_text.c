/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The shortest decimal digits of a float, by one multiplication with a power of ten.
 *
 * A float is m * 2^q. The decimals that read back to it are those between the midpoints to its
 * neighbours. With k = floor(log10(2^q)), the midpoints are 1 to 10 units of 10^k apart: at least
 * one multiple of 10^k lies between them, and at most one multiple of 10^(k+1), which has fewer
 * digits. The value and the midpoints are computed in units of 10^k, with FRACTION_BITS binary
 * digits after the point. Their error is below TOLERANCE. A midpoint that is no multiple of 10^k is
 * further away from the next multiple than that; a comparison of all floats with exact arithmetic
 * has shown it.
 *
 * Source of the interval and of k: R. Giulietti, "The Schubfach way to render doubles", 2020.
 */
#include "frontends/tensor/float_text.h"

#include "base/assert.h"
#include "base/checked.h"

#include <math.h>

/* IEEE 754 binary32. */
#define MANTISSA_BITS 23
#define EXPONENT_BIAS 127
#define SUBNORMAL_EXPONENT (1 - EXPONENT_BIAS - MANTISSA_BITS)
#define FRACTION_MASK ((1u << MANTISSA_BITS) - 1)
#define INFINITE_EXPONENT 255u

#define SCALE_BITS 60                               /* binary digits after the point of a scale */
#define FRACTION_BITS 36                            /* of a decimal */
#define HALF_SHIFT (SCALE_BITS - FRACTION_BITS + 1) /* from a scale to half a unit of m */
#define TOLERANCE 2u                                /* in units of 2^-FRACTION_BITS */

#define MAX_TEXT 32  /* characters of a number, and of stores that write more */
#define MAX_DIGITS 9 /* of a float */
#define FRACTION_DIGITS (MAX_DIGITS - 1)
#define LAST_DIGITS 100000000u /* 10^FRACTION_DIGITS */
#define FIRST_SCIENTIFIC 16    /* exponents from which on a number is written as "1e+16" */
#define LAST_SCIENTIFIC (-5)
#define TYPICAL_TEXT 12 /* characters of a number with its comma */
#define CHUNK 64        /* numbers for which memory is reserved at a time */

typedef unsigned __int128 wide;

static const uint32_t powers_of_ten[MAX_DIGITS] = {1,      10,      100,      1000,     10000,
                                                   100000, 1000000, 10000000, 100000000};

/* ---- digits ---- */

/* Returns floor(log10(2^q)). */
static inline int log10_of_exponent(int q) {
    return (q * 1262611) >> 22;
}

/* Returns 2^q / 10^k, at least 1 and less than 10, with SCALE_BITS binary digits after the point.
 */
static inline uint64_t scale_of(int q) {
    static const uint64_t scales[] = {
#include "frontends/tensor/float_scales.inc"
    };
    KELP_ASSERT(q >= SUBNORMAL_EXPONENT && (size_t)(q - SUBNORMAL_EXPONENT) < KELP_COUNT(scales));
    return scales[q - SUBNORMAL_EXPONENT];
}

/* Returns the shortest decimal in units of 10^k, as digits that may end in zeros, and of these the
 * nearest to the value. `below` is the distance from the value to the midpoint below. `regular`:
 * the number is normal, and no power of two. Without branches, because those on random digits
 * cannot be predicted. */
static inline uint32_t shortest(uint32_t mantissa, uint64_t scale, uint64_t below, bool regular) {
    uint64_t odd = mantissa & 1; /* an even mantissa wins at the midpoints */
    uint64_t margin = TOLERANCE - 2 * TOLERANCE * odd;
    uint64_t value = (uint64_t)(((wide)scale * mantissa) >> (SCALE_BITS - FRACTION_BITS));
    uint64_t lower = value - below - margin;
    uint64_t upper = value + (scale >> HALF_SHIFT) + margin;
    uint32_t tens = (uint32_t)(upper >> FRACTION_BITS) / 10 * 10;
    bool is_tens = ((uint64_t)tens << FRACTION_BITS) >= lower;
    uint64_t is_odd = value >> FRACTION_BITS & 1; /* half a unit is rounded to an even number */
    uint64_t half = (UINT64_C(1) << (FRACTION_BITS - 1)) - TOLERANCE + TOLERANCE * is_odd;
    uint32_t nearest = (uint32_t)((value + half) >> FRACTION_BITS);
    if (!regular) {
        is_tens = is_tens && tens > 0;
        nearest += ((uint64_t)nearest << FRACTION_BITS) < lower;
    }
    return nearest ^ ((nearest ^ tens) & (0 - (uint32_t)is_tens));
}

static int count_digits(uint32_t value) {
    int count = 1;
    while (count < MAX_DIGITS && value >= powers_of_ten[count])
        count++;
    return count;
}

/* A positive decimal: `digits` has MAX_DIGITS digits, the first one has the weight 10^exponent. */
typedef struct decimal {
    uint32_t digits;
    int exponent;
} decimal;

/* Converts a power of two or a subnormal number. */
static __attribute__((noinline)) decimal convert_special(uint32_t biased, uint32_t fraction) {
    uint32_t mantissa = biased > 0 ? 1u << MANTISSA_BITS | fraction : fraction;
    int q = KELP_MAX((int)biased, 1) - EXPONENT_BIAS - MANTISSA_BITS, k = log10_of_exponent(q);
    uint64_t scale = scale_of(q);
    /* The distance to the neighbour below a power of two is half of that above. If the midpoints
     * are then less than a unit apart, smaller units are used. */
    bool narrow = fraction == 0 && biased > 1;
    if (narrow && scale / 4 * 3 < UINT64_C(1) << SCALE_BITS) {
        scale *= 10;
        k--;
    }
    uint32_t digits = shortest(mantissa, scale, scale >> (HALF_SHIFT + narrow), false);
    int count = count_digits(digits);
    return (decimal){digits * powers_of_ten[MAX_DIGITS - count], k + count - 1};
}

/* Converts the magnitude of a value that is finite and not 0. */
static inline decimal convert(uint32_t bits) {
    uint32_t biased = bits >> MANTISSA_BITS & INFINITE_EXPONENT, fraction = bits & FRACTION_MASK;
    if (fraction == 0 || biased == 0)
        return convert_special(biased, fraction);
    int q = (int)biased - EXPONENT_BIAS - MANTISSA_BITS;
    uint64_t scale = scale_of(q);
    uint32_t mantissa = 1u << MANTISSA_BITS | fraction;
    uint32_t digits = shortest(mantissa, scale, scale >> HALF_SHIFT, true);
    int more = (digits >= powers_of_ten[7]) + (digits >= powers_of_ten[8]); /* than 7 digits */
    return (decimal){digits * powers_of_ten[2 - more], log10_of_exponent(q) + 6 + more};
}

/* Returns true for a value that is finite and not 0. */
static inline bool is_decimal(uint32_t bits) {
    return (bits & ~(1u << 31)) - 1 < (INFINITE_EXPONENT << MANTISSA_BITS) - 1;
}

/* ---- text ---- */

/* Returns 8 digits as bytes with the values 0 to 9, the first one in the lowest byte: splits the
 * number into halves of four digits, these into pairs, and pairs into digits. */
static inline uint64_t split_digits(uint32_t value) {
    uint64_t halves = value / 10000 | (uint64_t)(value % 10000) << 32;
    uint64_t hundreds = (halves * 10486 >> 20) & UINT64_C(0x0000007f0000007f);
    uint64_t two = hundreds | (halves - 100 * hundreds) << 16;
    uint64_t tens = (two * 103 >> 10) & UINT64_C(0x000f000f000f000f);
    return tens | (two - 10 * tens) << 8;
}

static inline void put_bytes(char *to, uint64_t bytes) {
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    bytes = __builtin_bswap64(bytes);
#endif
    memcpy(to, &bytes, sizeof bytes);
}

static char *put_text(char *to, const char *text) {
    size_t length = strlen(text);
    memcpy(to, text, length);
    return to + length;
}

/* Writes d.ddde+xx. `rest` are the digits after the first one. */
static char *put_scientific(char *to, char first, uint64_t rest, int count, int exponent) {
    *to++ = first;
    if (count > 1) {
        *to++ = '.';
        put_bytes(to, rest);
        to += count - 1;
    }
    *to++ = 'e';
    *to++ = exponent < 0 ? '-' : '+';
    unsigned magnitude = (unsigned)(exponent < 0 ? -exponent : exponent); /* at most 45 */
    *to++ = (char)('0' + magnitude / 10);
    *to++ = (char)('0' + magnitude % 10);
    return to;
}

/* Writes a number with an exponent of FRACTION_DIGITS or more, which has no fraction. */
static char *put_integer(char *to, char first, uint64_t rest, int exponent) {
    *to++ = first;
    put_bytes(to, rest);
    memset(to + FRACTION_DIGITS, '0', (size_t)(exponent - FRACTION_DIGITS));
    return put_text(to + exponent, ".0");
}

/* Writes a positive decimal. Stores of a fixed size may write past the end. */
static inline char *put_decimal(char *to, decimal number) {
    int exponent = number.exponent;
    char first = (char)('0' + number.digits / LAST_DIGITS);
    uint64_t rest = split_digits(number.digits % LAST_DIGITS);
    /* without zeros at the end */
    int count = rest != 0 ? MAX_DIGITS - __builtin_clzll(rest) / 8 : 1;
    rest |= UINT64_C(0x3030303030303030);
    if (exponent < 0 && exponent > LAST_SCIENTIFIC) {
        memcpy(to, "0.000000", 8);
        to += 1 - exponent;
        to[0] = first;
        put_bytes(to + 1, rest);
        return to + count;
    }
    if (exponent >= 0 && exponent < FRACTION_DIGITS) {
        to[0] = first;
        put_bytes(to + 1, rest);
        to[exponent + 1] = '.';
        put_bytes(to + exponent + 2, rest >> (8 * exponent));
        return to + KELP_MAX(count, exponent + 2) + 1;
    }
    return exponent >= FIRST_SCIENTIFIC || exponent < 0
               ? put_scientific(to, first, rest, count, exponent)
               : put_integer(to, first, rest, exponent);
}

/* Writes 0, infinity or NaN. */
static char *put_special(char *to, uint32_t bits) {
    if (bits << 1 > INFINITE_EXPONENT << (MANTISSA_BITS + 1))
        return put_text(to, "NaN");
    *to = '-';
    return put_text(to + (bits >> 31), bits << 1 == 0 ? "0.0" : "Infinity");
}

/* Writes a value, at most MAX_TEXT bytes, and returns the end. `number` is its decimal if it is
 * finite and not 0. */
static inline char *put_value(char *to, uint32_t bits, decimal number) {
    if (!is_decimal(bits))
        return put_special(to, bits);
    *to = '-';
    return put_decimal(to + (bits >> 31), number);
}

void kelp_v2_append_float(kelp_buf *out, float value) {
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    char *to = kelp_buf_reserve(out, MAX_TEXT);
    if (to != NULL)
        out->length +=
            (size_t)(put_value(to, bits, is_decimal(bits) ? convert(bits) : (decimal){0, 0}) - to);
}

/* Writes at most CHUNK values, each after a comma. Converts all of them first: the processor
 * executes instructions of several values at a time, of the more the shorter the loop is. */
static char *put_chunk(char *to, const void *bytes, size_t count) {
    uint32_t bits[CHUNK];
    decimal numbers[CHUNK];
    memcpy(bits, bytes, count * sizeof *bits);
    for (size_t i = 0; i < count; i++)
        numbers[i] = is_decimal(bits[i]) ? convert(bits[i]) : (decimal){0, 0};
    for (size_t i = 0; i < count; i++) {
        *to = ',';
        to = put_value(to + 1, bits[i], numbers[i]);
    }
    return to;
}

void kelp_v2_append_floats(kelp_buf *out, const void *bytes, size_t count) {
    const unsigned char *at = bytes;
    if (count <= SIZE_MAX / TYPICAL_TEXT) /* avoids copies while the buffer grows */
        (void)kelp_buf_reserve(out, count * TYPICAL_TEXT);
    for (size_t done = 0; done < count;) {
        size_t n = KELP_MIN(count - done, CHUNK);
        char *begin = kelp_buf_reserve(out, n * MAX_TEXT);
        if (begin == NULL)
            return;
        size_t length = (size_t)(put_chunk(begin, at + done * sizeof(float), n) - begin);
        if (done == 0) /* no comma before the first one */
            memmove(begin, begin + 1, --length);
        out->length += length;
        done += n;
    }
}
