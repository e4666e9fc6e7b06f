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
#include "frontends/tensor/vectors.h"

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

/* 2^q / 10^k from SUBNORMAL_EXPONENT on, at least 1 and less than 10, with SCALE_BITS binary digits
 * after the point. */
static const uint64_t scales[] = {
#include "frontends/tensor/float_scales.inc"
};

static inline uint64_t scale_of(int q) {
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

/* Returns 8 digits as bytes with the values 0 to 9, the first one in the lowest byte: splits the
 * number into halves of four digits, these into pairs, and pairs into digits. */
static inline uint64_t split_digits(uint32_t value) {
    uint64_t halves = value / 10000 | (uint64_t)(value % 10000) << 32;
    uint64_t hundreds = (halves * 10486 >> 20) & UINT64_C(0x0000007f0000007f);
    uint64_t two = hundreds | (halves - 100 * hundreds) << 16;
    uint64_t tens = (two * 103 >> 10) & UINT64_C(0x000f000f000f000f);
    return tens | (two - 10 * tens) << 8;
}

/* A positive decimal of MAX_DIGITS digits: the first one has the weight 10^exponent, `rest` has the
 * others as bytes. */
typedef struct decimal {
    uint64_t rest;
    int32_t first, exponent;
} decimal;

static inline decimal split(uint32_t digits, int exponent) {
    return (decimal){split_digits(digits % LAST_DIGITS), (int32_t)(digits / LAST_DIGITS), exponent};
}

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
    return split(digits * powers_of_ten[MAX_DIGITS - count], k + count - 1);
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
    return split(digits * powers_of_ten[2 - more], log10_of_exponent(q) + 6 + more);
}

/* Returns true for a value that is finite and not 0. */
static inline bool is_decimal(uint32_t bits) {
    return (bits & ~(1u << 31)) - 1 < (INFINITE_EXPONENT << MANTISSA_BITS) - 1;
}

/* ---- text ---- */

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
    char first = (char)('0' + number.first);
    uint64_t rest = number.rest;
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
            (size_t)(put_value(to, bits, is_decimal(bits) ? convert(bits) : (decimal){0}) - to);
}

/* ---- arrays ---- */

/* Converts values; those that are no decimals become 0. */
static void convert_all(const uint32_t *bits, size_t count, decimal *out) {
    for (size_t i = 0; i < count; i++)
        out[i] = is_decimal(bits[i]) ? convert(bits[i]) : (decimal){0};
}

#if defined(__x86_64__)
/* Returns four times 8 digits as bytes, like split_digits. */
KELP_V2_AVX2 static inline __m256i split_digits_4(__m256i values) {
    const __m256i hundred = _mm256_set1_epi16(100), ten = _mm256_set1_epi16(10);
    /* / 10000; exact below LAST_DIGITS */
    __m256i high = _mm256_srli_epi64(_mm256_mul_epu32(values, _mm256_set1_epi64x(3518437209)), 45);
    __m256i low = _mm256_sub_epi32(values, _mm256_mul_epu32(high, _mm256_set1_epi64x(10000)));
    __m256i halves = _mm256_or_si256(high, _mm256_slli_epi64(low, 32));
    __m256i hundreds = _mm256_srli_epi16(_mm256_mulhi_epu16(halves, _mm256_set1_epi16(10486)), 4);
    __m256i rest = _mm256_sub_epi16(halves, _mm256_mullo_epi16(hundreds, hundred));
    __m256i two = _mm256_or_si256(hundreds, _mm256_slli_epi32(rest, 16));
    __m256i tens = _mm256_srli_epi16(_mm256_mullo_epi16(two, _mm256_set1_epi16(103)), 10);
    rest = _mm256_sub_epi16(two, _mm256_mullo_epi16(tens, ten));
    return _mm256_or_si256(tens, _mm256_slli_epi16(rest, 8));
}

/* Returns four times the shortest digits, like shortest. */
KELP_V2_AVX2 static inline __m256i shortest_4(__m256i mantissa, __m256i scale) {
    const __m256i one = _mm256_set1_epi64x(1), tolerance = _mm256_set1_epi64x(TOLERANCE);
    /* the product of 64 and 32 bits, without its last SCALE_BITS - FRACTION_BITS bits */
    __m256i low = _mm256_mul_epu32(mantissa, scale);
    __m256i high = _mm256_mul_epu32(mantissa, _mm256_srli_epi64(scale, 32));
    __m256i value = _mm256_add_epi64(_mm256_srli_epi64(low, SCALE_BITS - FRACTION_BITS),
                                     _mm256_slli_epi64(high, 32 - (SCALE_BITS - FRACTION_BITS)));
    __m256i odd = _mm256_and_si256(mantissa, one);
    __m256i margin = _mm256_sub_epi64(tolerance, _mm256_slli_epi64(odd, 2)); /* 2 * TOLERANCE */
    __m256i width = _mm256_add_epi64(_mm256_srli_epi64(scale, HALF_SHIFT), margin);
    __m256i lower = _mm256_sub_epi64(value, width);
    __m256i upper = _mm256_srli_epi64(_mm256_add_epi64(value, width), FRACTION_BITS);
    __m256i tens =
        _mm256_srli_epi64(_mm256_mul_epu32(upper, _mm256_set1_epi64x(0xCCCCCCCD)), 35); /* / 10 */
    tens = _mm256_mul_epu32(tens, _mm256_set1_epi64x(10));
    __m256i above = _mm256_sub_epi64(_mm256_slli_epi64(tens, FRACTION_BITS), lower);
    __m256i is_odd = _mm256_and_si256(_mm256_srli_epi64(value, FRACTION_BITS), one);
    __m256i half =
        _mm256_add_epi64(_mm256_set1_epi64x((INT64_C(1) << (FRACTION_BITS - 1)) - TOLERANCE),
                         _mm256_slli_epi64(is_odd, 1)); /* TOLERANCE * is_odd */
    __m256i nearest = _mm256_srli_epi64(_mm256_add_epi64(value, half), FRACTION_BITS);
    /* selects by the sign of `above` */
    return _mm256_castpd_si256(_mm256_blendv_pd(
        _mm256_castsi256_pd(tens), _mm256_castsi256_pd(nearest), _mm256_castsi256_pd(above)));
}

/* Converts four values. Returns false if some of them are special: their results are invalid. */
KELP_V2_AVX2 static inline bool convert_4(const uint32_t *bits, decimal *out) {
    __m256i word = _mm256_cvtepu32_epi64(_mm_loadu_si128((const __m128i *)bits));
    __m256i biased = _mm256_and_si256(_mm256_srli_epi64(word, MANTISSA_BITS),
                                      _mm256_set1_epi64x(INFINITE_EXPONENT));
    __m256i fraction = _mm256_and_si256(word, _mm256_set1_epi64x(FRACTION_MASK));
    __m256i mantissa = _mm256_or_si256(fraction, _mm256_set1_epi64x(1u << MANTISSA_BITS));
    __m256i is_special =
        _mm256_cmpeq_epi64(_mm256_min_epu32(fraction, biased), _mm256_setzero_si256());
    __m256i index = _mm256_min_epu32(_mm256_max_epu32(biased, _mm256_set1_epi64x(1)),
                                     _mm256_set1_epi64x(INFINITE_EXPONENT - 1));
    index = _mm256_sub_epi64(index, _mm256_set1_epi64x(1));
    __m256i scale = _mm256_i64gather_epi64((const long long *)scales, index, sizeof *scales);
    __m256i digits = shortest_4(mantissa, scale);
    __m256i above_7 = _mm256_cmpgt_epi64(digits, _mm256_set1_epi64x(9999999));
    __m256i above_8 = _mm256_cmpgt_epi64(digits, _mm256_set1_epi64x(99999999));
    __m256i factor = _mm256_blendv_epi8(_mm256_set1_epi64x(100), _mm256_set1_epi64x(10), above_7);
    factor = _mm256_blendv_epi8(factor, _mm256_set1_epi64x(1), above_8);
    digits = _mm256_mul_epu32(digits, factor);
    __m256i q = _mm256_sub_epi32(biased, _mm256_set1_epi64x(EXPONENT_BIAS + MANTISSA_BITS));
    __m256i exponent = _mm256_srai_epi32(_mm256_mullo_epi32(q, _mm256_set1_epi64x(1262611)), 22);
    exponent = _mm256_add_epi32(exponent, _mm256_set1_epi64x(6));
    exponent = _mm256_sub_epi32(_mm256_sub_epi32(exponent, above_7), above_8);
    __m256i first = /* / LAST_DIGITS */
        _mm256_srli_epi64(_mm256_mul_epu32(digits, _mm256_set1_epi64x(2882303762)), 58);
    __m256i rest = split_digits_4(
        _mm256_sub_epi64(digits, _mm256_mul_epu32(first, _mm256_set1_epi64x(LAST_DIGITS))));
    __m256i head = _mm256_blend_epi32(first, _mm256_slli_epi64(exponent, 32), 0xAA);
    __m256i even = _mm256_unpacklo_epi64(rest, head), odd = _mm256_unpackhi_epi64(rest, head);
    _mm256_storeu_si256((__m256i *)out, _mm256_permute2x128_si256(even, odd, 0x20));
    _mm256_storeu_si256((__m256i *)(out + 2), _mm256_permute2x128_si256(even, odd, 0x31));
    return _mm256_testz_si256(is_special, is_special) != 0;
}

/* Converts values like convert_all. Reads and writes up to three more. */
KELP_V2_AVX2 static void convert_all_avx2(const uint32_t *bits, size_t count, decimal *out) {
    for (size_t i = 0; i < count; i += 4)
        if (!convert_4(bits + i, out + i))
            convert_all(bits + i, KELP_MIN(count - i, (size_t)4), out + i);
}
#endif

/* Writes at most CHUNK values, each after a comma. Converts all of them first: the processor
 * executes instructions of several values at a time, of the more the shorter the loop is. */
static char *put_chunk(char *to, const void *bytes, size_t count) {
    uint32_t bits[CHUNK];
    decimal numbers[CHUNK];
    memcpy(bits, bytes, count * sizeof *bits);
#if defined(__x86_64__)
    if (kelp_v2_has_avx2()) {
        memset(bits + count, 0, (CHUNK - count) % 4 * sizeof *bits);
        convert_all_avx2(bits, count, numbers);
    } else
#endif
        convert_all(bits, count, numbers);
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
