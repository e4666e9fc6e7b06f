/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Implements slices, numbers and hashes, independent of the locale: text passed to strtod contains
 * no radix character (the decimal point is folded into the exponent), and output of printf is read
 * digit by digit.
 */
#include "base/str.h"

#include "base/assert.h"
#include "base/checked.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

static char lower(char c) {
    return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

bool kelp_str_equal_nocase(kelp_str a, kelp_str b) {
    if (a.length != b.length)
        return false;
    for (size_t i = 0; i < a.length; i++) {
        if (a.data[i] != b.data[i] && lower(a.data[i]) != lower(b.data[i]))
            return false;
    }
    return true;
}

int kelp_hex_value(char c) {
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

static bool is_blank(char c) {
    return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

kelp_str kelp_str_trim(kelp_str s) {
    while (s.length && is_blank(s.data[0])) {
        s.data++;
        s.length--;
    }
    while (s.length && is_blank(s.data[s.length - 1]))
        s.length--;
    return s;
}

static bool is_digit(char c) {
    return c >= '0' && c <= '9';
}

bool kelp_parse_u64(kelp_str s, uint64_t *out) {
    uint64_t value = 0;
    if (s.length == 0)
        return false;
    for (size_t i = 0; i < s.length; i++) {
        if (!is_digit(s.data[i]) || __builtin_mul_overflow(value, UINT64_C(10), &value) ||
            __builtin_add_overflow(value, (uint64_t)(s.data[i] - '0'), &value))
            return false;
    }
    *out = value;
    return true;
}

bool kelp_parse_i64(kelp_str s, int64_t *out) {
    uint64_t magnitude;
    bool negative = s.length && s.data[0] == '-';
    if (!kelp_parse_u64(negative ? (kelp_str){s.data + 1, s.length - 1} : s, &magnitude))
        return false;
    if (magnitude > (uint64_t)INT64_MAX + (negative ? 1 : 0))
        return false;
    *out = negative ? (int64_t)(0 - magnitude) : (int64_t)magnitude;
    return true;
}

/* No double depends on more than 767 significant digits, except on whether a non-zero digit
 * follows. */
#define KEPT_DIGITS 800
#define EXPONENT_LIMIT 1000000

/* A decimal number as digits * 10^exponent. */
typedef struct decimal {
    bool negative;
    uint64_t mantissa;  /* first significant digits, at most 19 */
    int64_t exponent;   /* exponent of the digits as an integer */
    size_t digit_count; /* number of significant digits */
    kelp_str whole;     /* digits before the point */
    kelp_str fraction;  /* digits after the point */
} decimal;

static kelp_str take_digits(kelp_str *inout_rest) {
    kelp_str digits = {inout_rest->data, 0};
    while (digits.length < inout_rest->length && is_digit(inout_rest->data[digits.length]))
        digits.length++;
    inout_rest->data += digits.length;
    inout_rest->length -= digits.length;
    return digits;
}

static bool take_char(kelp_str *inout_rest, char c) {
    if (inout_rest->length == 0 || inout_rest->data[0] != c)
        return false;
    inout_rest->data++;
    inout_rest->length--;
    return true;
}

static void add_digits(decimal *number, kelp_str digits) {
    for (size_t i = 0; i < digits.length; i++) {
        if (number->digit_count == 0 && digits.data[i] == '0')
            continue;
        if (number->digit_count < 19)
            number->mantissa = number->mantissa * 10 + (uint64_t)(digits.data[i] - '0');
        number->digit_count++;
    }
}

static bool take_exponent(kelp_str *inout_rest, int64_t *out) {
    *out = 0;
    if (!take_char(inout_rest, 'e') && !take_char(inout_rest, 'E'))
        return true;
    bool negative = take_char(inout_rest, '-');
    if (!negative)
        (void)take_char(inout_rest, '+');
    kelp_str digits = take_digits(inout_rest);
    if (digits.length == 0)
        return false;
    int64_t value = 0;
    /* limited well above any length of text, so that 0.000…1e400000 is still correct */
    for (size_t i = 0; i < digits.length && value < INT64_MAX / 16; i++)
        value = value * 10 + (digits.data[i] - '0');
    *out = negative ? -value : value;
    return true;
}

static bool split_decimal(kelp_str s, decimal *out) {
    *out = (decimal){.negative = take_char(&s, '-')};
    if (!out->negative)
        (void)take_char(&s, '+');
    out->whole = take_digits(&s);
    if (take_char(&s, '.'))
        out->fraction = take_digits(&s);
    if (out->whole.length + out->fraction.length == 0 || !take_exponent(&s, &out->exponent) ||
        s.length != 0)
        return false;
    out->exponent -= (int64_t)out->fraction.length;
    add_digits(out, out->whole);
    add_digits(out, out->fraction);
    return true;
}

/* Converts with strtod: writes the integer, 'e' and the exponent; digits that no longer matter are
 * represented by a non-zero digit. */
static double parse_slowly(const decimal *number) {
    char text[KEPT_DIGITS + 32];
    size_t length = 0;
    size_t seen = 0;
    bool more = false;
    const kelp_str parts[] = {number->whole, number->fraction};
    for (size_t p = 0; p < KELP_COUNT(parts); p++) {
        for (size_t i = 0; i < parts[p].length; i++) {
            char c = parts[p].data[i];
            if (seen == 0 && c == '0')
                continue;
            seen++;
            if (length < KEPT_DIGITS)
                text[length++] = c;
            else
                more = more || c != '0';
        }
    }
    int64_t exponent = number->exponent + (int64_t)(seen - length);
    if (more) {
        text[length++] = '1';
        exponent--;
    }
    exponent = KELP_MAX(KELP_MIN(exponent, EXPONENT_LIMIT), -EXPONENT_LIMIT);
    (void)snprintf(text + length, sizeof text - length, "e%d", (int)exponent);
    return strtod(text, NULL);
}

static double decimal_value(const decimal *number) {
    static const double powers[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
                                    1e8,  1e9,  1e10, 1e11, 1e12, 1e13, 1e14, 1e15,
                                    1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};
    const int64_t last = (int64_t)KELP_COUNT(powers) - 1;
    if (number->digit_count == 0)
        return 0.0;
    /* both operands are exact, so that one rounding gives the correct result (Clinger, 1990) */
    if (number->digit_count <= 19 && number->mantissa <= (UINT64_C(1) << 53) &&
        number->exponent >= -last && number->exponent <= last) {
        double mantissa = (double)number->mantissa;
        return number->exponent < 0 ? mantissa / powers[-number->exponent]
                                    : mantissa * powers[number->exponent];
    }
    return parse_slowly(number);
}

bool kelp_parse_f64(kelp_str s, double *out) {
    static const struct {
        const char *name;
        double value;
    } words[] = {
        {"inf", INFINITY},      {"-inf", -INFINITY},      {"nan", NAN},
        {"Infinity", INFINITY}, {"-Infinity", -INFINITY}, {"NaN", NAN},
    };
    if (s.length == 0)
        return false;
    if (!is_digit(s.data[s.length - 1]) && s.data[s.length - 1] != '.') {
        for (size_t i = 0; i < KELP_COUNT(words); i++) {
            if (kelp_str_is(s, words[i].name)) {
                *out = words[i].value;
                return true;
            }
        }
        return false;
    }
    decimal number;
    if (!split_decimal(s, &number))
        return false;
    double value = decimal_value(&number);
    *out = number.negative ? -value : value;
    return true;
}

static size_t put_cstr(char *buffer, const char *text) {
    size_t length = strlen(text);
    memcpy(buffer, text, length + 1);
    return length;
}

size_t kelp_format_u64(uint64_t value, char *buffer) {
    char digits[20];
    size_t at = sizeof digits;
    do {
        digits[--at] = (char)('0' + value % 10);
        value /= 10;
    } while (value);
    memcpy(buffer, digits + at, sizeof digits - at);
    return sizeof digits - at;
}

/* Formats integers that are exact as doubles, the most common case. */
static size_t format_integer(double value, char *buffer) {
    int64_t whole = (int64_t)value;
    size_t length = 0;
    if (signbit(value))
        buffer[length++] = '-';
    length += kelp_format_u64(whole < 0 ? 0 - (uint64_t)whole : (uint64_t)whole, buffer + length);
    return length + put_cstr(buffer + length, ".0");
}

/* Computes the `precision` digits nearest to a positive value, without trailing zeros, and the
 * power of ten of the first one. */
static size_t nearest_digits(double value, int precision, char *out_digits, int *out_exponent) {
    KELP_ASSERT(value > 0 && precision >= 1 && precision <= 17);
    char text[40];
    (void)snprintf(text, sizeof text, "%.*e", precision - 1, value);
    size_t count = 0;
    const char *at = text;
    for (; *at && *at != 'e'; at++) {
        if (is_digit(*at)) /* anything else is the locale's radix */
            out_digits[count++] = *at;
    }
    *out_exponent = (int)strtol(*at ? at + 1 : at, NULL, 10);
    while (count > 1 && out_digits[count - 1] == '0')
        count--;
    return count;
}

static bool reads_back(const char *digits, size_t count, int exponent, double value) {
    decimal number = {.whole = {digits, count}, .exponent = exponent - (int64_t)count + 1};
    add_digits(&number, number.whole);
    return decimal_value(&number) == value;
}

static size_t put_digits(const char *digits, size_t count, int exponent, char *buffer) {
    KELP_ASSERT(count > 0);
    size_t length = 0;
    if (exponent < -4 || exponent >= 16) {
        buffer[length++] = digits[0];
        if (count > 1) {
            buffer[length++] = '.';
            memcpy(buffer + length, digits + 1, count - 1);
            length += count - 1;
        }
        return length + (size_t)snprintf(buffer + length, 8, "e%+03d", exponent);
    }
    if (exponent < 0) {
        length += put_cstr(buffer, "0.");
        for (int i = -1; i > exponent; i--)
            buffer[length++] = '0';
        memcpy(buffer + length, digits, count);
        length += count;
        buffer[length] = '\0';
        return length;
    }
    for (size_t i = 0; i <= (size_t)exponent; i++)
        buffer[length++] = i < count ? digits[i] : '0';
    buffer[length++] = '.';
    if (count <= (size_t)exponent + 1)
        buffer[length++] = '0';
    for (size_t i = (size_t)exponent + 1; i < count; i++)
        buffer[length++] = digits[i];
    buffer[length] = '\0';
    return length;
}

size_t kelp_format_f64(double value, char *buffer) {
    if (isnan(value))
        return put_cstr(buffer, "NaN");
    if (isinf(value))
        return put_cstr(buffer, value < 0 ? "-Infinity" : "Infinity");
    if (fabs(value) <= 9007199254740992.0 && value == (double)(int64_t)value)
        return format_integer(value, buffer);
    double magnitude = fabs(value);
    char digits[40];
    size_t count = 0;
    int exponent = 0;
    /* precision 15 finds any text of up to 15 digits of a normal number; subnormal ones may need
     * less */
    for (int precision = magnitude < 0x1p-1022 ? 1 : 15; precision <= 17; precision++) {
        count = nearest_digits(magnitude, precision, digits, &exponent);
        if (reads_back(digits, count, exponent, magnitude))
            break;
    }
    size_t sign = value < 0 ? 1 : 0;
    if (sign)
        buffer[0] = '-';
    return sign + put_digits(digits, count, exponent, buffer + sign);
}

size_t kelp_plain_radix(char *inout_text) {
    size_t length = 0;
    for (const char *at = inout_text; *at != '\0'; at++) {
        bool letter = lower(*at) >= 'a' && lower(*at) <= 'z'; /* 1e+9, inf, nan */
        if (letter || is_digit(*at) || strchr("+-.", *at) != NULL)
            inout_text[length++] = *at;
        else if (length == 0 || inout_text[length - 1] != '.') /* a radix may have several bytes */
            inout_text[length++] = '.';
    }
    inout_text[length] = '\0';
    return length;
}

uint64_t kelp_hash_bytes(const void *data, size_t length) {
    const unsigned char *bytes = data;
    uint64_t hash = UINT64_C(0xcbf29ce484222325);
    for (size_t i = 0; i < length; i++)
        hash = (hash ^ bytes[i]) * UINT64_C(0x100000001b3);
    return hash;
}

uint64_t kelp_hash_str(kelp_str s) {
    return kelp_hash_bytes(s.data, s.length);
}
