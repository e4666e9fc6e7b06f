/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A number is an integer of up to 19 digits and a power of ten. Up to 8 digits are converted at a
 * time. The quotient of two doubles is correctly rounded if both are exact (Clinger 1990), and its
 * rounding to a float is, too, unless it is a midpoint between two floats. Otherwise, the quotient
 * is computed with integers.
 */
#include "frontends/tensor/float_read.h"

#include "base/assert.h"
#include "frontends/tensor/vectors.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#define STEP 8        /* digits converted at a time */
#define MAX_DIGITS 19 /* of an integer that fits into 64 bits */
#define MAX_EXACT ((uint64_t)1 << 53)
#define FLOAT_PRECISION 24
#define DOUBLE_BIAS 1023
#define DOUBLE_MANTISSA_BITS 52
#define COMMON_BYTES (3 * STEP) /* characters of a number of the most common form, and a comma */
#define ONES UINT64_C(0x0101010101010101)
#define ZEROS (ONES * '0')
#define COMMAS (ONES * ',')
#define HIGH_BITS (ONES * 0x80)
#define NOT_DIGITS (ONES * 0x76) /* added to a byte, sets the high bit unless it is 0 to 9 */
/* Selects the last `count` of STEP bytes. */
#define KEPT(count) ((count) == 0 ? 0 : ~UINT64_C(0) << (64 - 8 * (count)) % 64)

typedef unsigned __int128 wide;

static const uint64_t integer_powers[MAX_DIGITS + 1] = {1u,
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
                                                        UINT64_C(10000000000000000000)};

static const double double_powers[MAX_DIGITS + 1] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,
                                                     1e7,  1e8,  1e9,  1e10, 1e11, 1e12, 1e13,
                                                     1e14, 1e15, 1e16, 1e17, 1e18, 1e19};

/* ---- digits ---- */

/* Loads fewer than 8 characters. */
static __attribute__((noinline)) uint64_t load_last(const char *at, const char *end) {
    uint64_t value = 0;
    memcpy(&value, at, (size_t)(end - at));
    return value;
}

/* Loads 8 characters, the first one in the lowest byte; beyond the end, they are no digits. */
static inline uint64_t load(const char *at, const char *end) {
    uint64_t value;
    if (end - at >= STEP)
        memcpy(&value, at, sizeof value);
    else
        value = load_last(at, end);
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    value = __builtin_bswap64(value);
#endif
    return value;
}

/* Converts 8 digits with the values 0 to 9, the first one in the lowest byte: neighbours are
 * combined to pairs, pairs to four digits, and these to eight. */
static inline uint64_t combine(uint64_t digits) {
    digits = digits * 10 + (digits >> 8);
    uint64_t low = (digits & UINT64_C(0x000000ff000000ff)) * UINT64_C(0x000f424000000064);
    uint64_t high = (digits >> 16 & UINT64_C(0x000000ff000000ff)) * UINT64_C(0x0000271000000001);
    return (low + high) >> 32;
}

/* Appends digits to the mantissa, which overflows after a total of MAX_DIGITS. */
static inline const char *read_digits(const char *at, const char *end, uint64_t *inout_mantissa) {
    for (;;) {
        uint64_t digits = load(at, end) ^ ZEROS;
        /* The lowest byte with a set high bit is the first that is no digit. */
        uint64_t others = (digits | (digits + NOT_DIGITS)) & HIGH_BITS;
        if (others == 0) {
            *inout_mantissa = *inout_mantissa * integer_powers[STEP] + combine(digits);
            at += STEP;
            continue;
        }
        unsigned count = (unsigned)__builtin_ctzll(others) / 8;
        if (count > 0)
            *inout_mantissa =
                *inout_mantissa * integer_powers[count] + combine(digits << (64 - 8 * count));
        return at + count;
    }
}

/* ---- values ---- */

/* Returns the float nearest to mantissa / 10^scale. */
static float divide(uint64_t mantissa, size_t scale) {
    uint64_t divisor = integer_powers[scale];
    int mantissa_shift = __builtin_clzll(mantissa), divisor_shift = __builtin_clzll(divisor);
    wide dividend = (wide)(mantissa << mantissa_shift) << 63;
    uint64_t quotient = (uint64_t)(dividend / (divisor << divisor_shift)); /* 63 or 64 bits */
    bool rest = dividend != (wide)quotient * (divisor << divisor_shift);
    int shift = 64 - FLOAT_PRECISION - __builtin_clzll(quotient);
    uint64_t kept = quotient >> shift, dropped = quotient & ((UINT64_C(1) << shift) - 1);
    uint64_t half = UINT64_C(1) << (shift - 1);
    kept += dropped > half || (dropped == half && (rest || (kept & 1)));
    int exponent = shift - 63 - mantissa_shift + divisor_shift;
    uint64_t bits = (uint64_t)(exponent + DOUBLE_BIAS) << DOUBLE_MANTISSA_BITS;
    double power;
    memcpy(&power, &bits, sizeof power);
    return (float)((double)kept * power); /* exact */
}

/* Returns the float nearest to mantissa / 10^scale. */
static inline float to_float(uint64_t mantissa, size_t scale) {
    const uint64_t below_float = (UINT64_C(1) << (DOUBLE_MANTISSA_BITS + 1 - FLOAT_PRECISION)) - 1;
    const uint64_t midpoint = UINT64_C(1) << (DOUBLE_MANTISSA_BITS - FLOAT_PRECISION);
    uint64_t bits;
    KELP_ASSERT(scale <= MAX_DIGITS);
    if (mantissa > MAX_EXACT)
        return divide(mantissa, scale);
    double value = (double)mantissa / double_powers[scale];
    memcpy(&bits, &value, sizeof bits);
    return (bits & below_float) == midpoint ? divide(mantissa, scale) : (float)value;
}

/* Reads a number, and returns its end, or NULL if it has another form. */
static inline const char *read_float(const char *at, const char *end, float *out) {
    uint64_t mantissa = 0;
    bool negative = at < end && *at == '-';
    at += negative;
    const char *whole = at;
    if (end - at > 1 && at[1] == '.' && *at >= '0' && *at <= '9')
        mantissa = (uint64_t)(*at++ - '0'); /* the most common form */
    else
        at = read_digits(at, end, &mantissa);
    size_t digits = (size_t)(at - whole), scale = 0;
    if (digits == 0 || (digits > 1 && *whole == '0'))
        return NULL;
    if (at < end && *at == '.') {
        const char *fraction = ++at;
        at = read_digits(at, end, &mantissa);
        scale = (size_t)(at - fraction);
        if (scale == 0)
            return NULL;
    }
    digits -= *whole == '0'; /* the only one */
    if (digits + scale > MAX_DIGITS || (at < end && (*at == 'e' || *at == 'E')))
        return NULL;
    float value = to_float(mantissa, scale);
    *out = negative ? -value : value;
    return at;
}

/* ---- the most common form ---- */

/* Returns the first comma of the next COMMON_BYTES characters, or NULL. */
static inline const char *find_comma(const char *at) {
    for (const char *stop = at + COMMON_BYTES; at < stop; at += STEP) {
        uint64_t others = load(at, at + STEP) ^ COMMAS; /* a comma becomes 0 */
        uint64_t found = (others - ONES) & ~others & HIGH_BITS;
        if (found != 0)
            return at + __builtin_ctzll(found) / 8;
    }
    return NULL;
}

/* Reads a number with one digit before the point and up to 2 * STEP after it, which ends before
 * `comma`. Returns false if it has another form. The 2 * STEP characters before it are readable.
 * Since the end is known first, the processor reads several numbers at a time. */
static inline bool read_common(const char *at, const char *comma, float *out) {
    static const uint64_t last_bytes[2 * STEP + 1] = {
        /* of STEP characters, by their number */
        KEPT(0), KEPT(1), KEPT(2), KEPT(3), KEPT(4), KEPT(5), KEPT(6), KEPT(7), KEPT(8),
        KEPT(8), KEPT(8), KEPT(8), KEPT(8), KEPT(8), KEPT(8), KEPT(8), KEPT(8)};
    uint32_t negative = *at == '-', bits;
    at += negative;
    size_t scale = (size_t)(comma - at) - 2;
    uint64_t whole = (uint64_t)(unsigned char)at[0] - '0';
    if (scale - 1 >= 2 * STEP || at[1] != '.' || whole > 9)
        return false;
    size_t first = scale > STEP ? scale - STEP : 0; /* digits before the last STEP ones */
    uint64_t low = (load(comma - STEP, comma) ^ ZEROS) & last_bytes[scale];
    uint64_t high = (load(comma - 2 * STEP, comma) ^ ZEROS) & last_bytes[first];
    if (((low | (low + NOT_DIGITS)) | (high | (high + NOT_DIGITS))) & HIGH_BITS)
        return false;
    uint64_t mantissa =
        whole * integer_powers[scale] + combine(high) * integer_powers[STEP] + combine(low);
    float value = to_float(mantissa, scale);
    memcpy(&bits, &value, sizeof bits);
    bits |= negative << 31;
    memcpy(out, &bits, sizeof bits);
    return true;
}

static inline const char *skip_space(const char *at, const char *end) {
    while (at < end && (*at == ' ' || *at == '\n' || *at == '\r' || *at == '\t'))
        at++;
    return at;
}

/* Reads numbers of the most common form with commas between them; returns the end of the last one,
 * or NULL if there is none. */
typedef const char *(*read_many_fn)(const char *text, const char *at, const char *end, float *out,
                                    size_t capacity, size_t *out_count);

static const char *read_many(const char *text, const char *at, const char *end, float *out,
                             size_t capacity, size_t *out_count) {
    const char *last = NULL;
    size_t count = 0;
    while (count < capacity && end - at >= COMMON_BYTES && at - text >= 2 * STEP) {
        const char *comma = find_comma(at);
        if (comma == NULL || !read_common(at, comma, &out[count]))
            break;
        count++;
        last = comma;
        at = skip_space(comma + 1, end);
    }
    *out_count = count;
    return last;
}

#if defined(__x86_64__)
/* Returns an integer of 2 * STEP digits with the values 0 to 9. Neighbours are combined to pairs,
 * pairs to four digits, and these to eight. */
KELP_V2_AVX2 static inline uint64_t combine_16(__m128i digits) {
    __m128i sums = _mm_maddubs_epi16(digits, _mm_set1_epi16(0x010A));
    sums = _mm_madd_epi16(sums, _mm_set1_epi32(0x00010064));
    sums = _mm_packus_epi32(sums, sums);
    sums = _mm_madd_epi16(sums, _mm_set1_epi32(0x00012710));
    uint64_t halves = (uint64_t)_mm_cvtsi128_si64(sums);
    return (halves & UINT32_MAX) * integer_powers[STEP] + (halves >> 32);
}

/* Like read_common, with one step for all digits. */
KELP_V2_AVX2 static inline bool read_common_avx2(const char *at, const char *comma, float *out) {
    static const unsigned char kept[4 * STEP] = {[2 * STEP] = 0xFF,
                                                 0xFF,
                                                 0xFF,
                                                 0xFF,
                                                 0xFF,
                                                 0xFF,
                                                 0xFF,
                                                 0xFF,
                                                 0xFF,
                                                 0xFF,
                                                 0xFF,
                                                 0xFF,
                                                 0xFF,
                                                 0xFF,
                                                 0xFF,
                                                 0xFF};
    uint32_t negative = *at == '-', bits;
    at += negative;
    size_t scale = (size_t)(comma - at) - 2;
    uint64_t whole = (uint64_t)(unsigned char)at[0] - '0';
    if (scale - 1 >= 2 * STEP || at[1] != '.' || whole > 9)
        return false;
    __m128i digits =
        _mm_sub_epi8(_mm_loadu_si128((const __m128i *)(comma - 2 * STEP)), _mm_set1_epi8('0'));
    digits = _mm_and_si128(digits, _mm_loadu_si128((const __m128i *)(kept + scale)));
    __m128i are_digits = _mm_cmpeq_epi8(_mm_min_epu8(digits, _mm_set1_epi8(9)), digits);
    if (_mm_movemask_epi8(are_digits) != 0xFFFF)
        return false;
    float value = to_float(whole * integer_powers[scale] + combine_16(digits), scale);
    memcpy(&bits, &value, sizeof bits);
    bits |= negative << 31;
    memcpy(out, &bits, sizeof bits);
    return true;
}

/* Finds the commas of several numbers at a time. */
KELP_V2_AVX2 static const char *read_many_avx2(const char *text, const char *at, const char *end,
                                               float *out, size_t capacity, size_t *out_count) {
    const char *last = NULL;
    size_t count = 0;
    unsigned found = 1;
    while (found != 0 && end - at >= (ptrdiff_t)sizeof(__m256i) && at - text >= 2 * STEP) {
        const char *begin = at;
        __m256i commas =
            _mm256_cmpeq_epi8(_mm256_loadu_si256((const __m256i *)begin), _mm256_set1_epi8(','));
        found = (unsigned)_mm256_movemask_epi8(commas);
        for (unsigned left = found; left != 0; left &= left - 1) {
            const char *comma = begin + __builtin_ctz(left);
            if (count == capacity || !read_common_avx2(at, comma, &out[count])) {
                found = 0;
                break;
            }
            count++;
            last = comma;
            at = skip_space(comma + 1, end);
        }
    }
    *out_count = count;
    return last;
}
#endif

static read_many_fn choose_read_many(void) {
#if defined(__x86_64__)
    if (kelp_v2_has_avx2())
        return read_many_avx2;
#endif
    return read_many;
}

size_t kelp_v2_read_floats(const char *text, size_t length, size_t *inout_position, float *out,
                           size_t capacity) {
    const char *at = text + *inout_position, *end = text + length;
    read_many_fn many = choose_read_many();
    size_t count = 0;
    while (count < capacity) {
        size_t common;
        const char *last = many(text, at, end, out + count, capacity - count, &common);
        if (last == NULL) {
            last = read_float(at, end, out + count);
            common = 1;
        }
        if (last == NULL)
            break;
        count += common;
        *inout_position = (size_t)(last - text);
        at = skip_space(last, end);
        if (at == end || *at != ',')
            break;
        at = skip_space(at + 1, end);
    }
    return count;
}
