/* SPDX-License-Identifier: Apache-2.0 */
/* Implements the pull reader: a state machine over the text without recursion, one bit per level
 * of depth. */
#include "base/text/json.h"
#include "base/text/json_scan.h"

#include "base/assert.h"
#include "base/str.h"

#include <math.h>

/* State of the grammar: which token may come next. */
enum { EXPECT_VALUE, EXPECT_FIRST, EXPECT_KEY, EXPECT_FIRST_KEY, EXPECT_COMMA, EXPECT_END };

const char *kelp_json_type_name(kelp_json_type type) {
    static const char *const names[] = {"null",     "a bool",   "a number", "a number",
                                        "a number", "a string", "an array", "an object",
                                        "a key",    "']'",      "'}'",      "the end"};
    return (unsigned)type < sizeof names / sizeof names[0] ? names[type] : "nothing";
}

void kelp_json_reader_init(kelp_json_reader *reader, kelp_arena *arena, const char *text,
                           size_t length) {
    *reader =
        (kelp_json_reader){.text = text, .length = length, .arena = arena, .expect = EXPECT_VALUE};
}

void kelp_json_where(const char *text, size_t length, size_t offset, size_t *out_line,
                     size_t *out_column) {
    *out_line = 1;
    *out_column = 1;
    for (size_t i = 0; i < offset && i < length; i++) {
        (*out_column)++;
        if (text[i] == '\n') {
            (*out_line)++;
            *out_column = 1;
        }
    }
}

static kelp_status *fail(const kelp_json_reader *reader, size_t offset, const char *expected) {
    size_t line, column;
    kelp_json_where(reader->text, reader->length, offset, &line, &column);
    if (offset >= reader->length)
        return KELP_ERROR(KELP_INVALID_ARGUMENT, "line %zu column %zu: expected %s, found the end",
                          line, column, expected);
    unsigned char c = (unsigned char)reader->text[offset];
    if (c < 0x20 || c >= 0x7f)
        return KELP_ERROR(KELP_INVALID_ARGUMENT,
                          "line %zu column %zu: expected %s, found byte 0x%02x", line, column,
                          expected, c);
    return KELP_ERROR(KELP_INVALID_ARGUMENT, "line %zu column %zu: expected %s, found '%c'", line,
                      column, expected, c);
}

static bool in_object(const kelp_json_reader *reader) {
    KELP_ASSERT(reader->depth > 0);
    uint32_t at = reader->depth - 1;
    return (reader->object_bits[at / 64] >> (at % 64) & 1) != 0;
}

static kelp_status *push(kelp_json_reader *reader, bool object) {
    if (reader->depth == KELP_JSON_MAX_DEPTH) {
        size_t line, column, at = reader->position;
        kelp_json_where(reader->text, reader->length, at, &line, &column);
        return KELP_ERROR(KELP_INVALID_ARGUMENT,
                          "line %zu column %zu: expected arrays and objects at most %d deep, "
                          "found '%c' below that",
                          line, column, KELP_JSON_MAX_DEPTH, reader->text[at]);
    }
    uint32_t at = reader->depth++;
    uint64_t bit = (uint64_t)1 << (at % 64);
    if (object)
        reader->object_bits[at / 64] |= bit;
    else
        reader->object_bits[at / 64] &= ~bit;
    reader->expect = object ? EXPECT_FIRST_KEY : EXPECT_FIRST;
    return NULL;
}

static void after_value(kelp_json_reader *reader) {
    reader->expect = reader->depth > 0 ? EXPECT_COMMA : EXPECT_END;
}

/* ---- strings ---- */
static bool read_hex4(const kelp_json_reader *reader, size_t at, uint32_t *out) {
    *out = 0;
    if (reader->length - at < 4)
        return false;
    for (size_t i = 0; i < 4; i++) {
        int digit = kelp_hex_value(reader->text[at + i]);
        if (digit < 0)
            return false;
        *out = *out << 4 | (uint32_t)digit;
    }
    return true;
}

static char *put_utf8(char *to, uint32_t code) {
    if (code < 0x80) {
        *to++ = (char)code;
    } else if (code < 0x800) {
        *to++ = (char)(0xc0 | code >> 6);
        *to++ = (char)(0x80 | (code & 0x3f));
    } else if (code < 0x10000) {
        *to++ = (char)(0xe0 | code >> 12);
        *to++ = (char)(0x80 | (code >> 6 & 0x3f));
        *to++ = (char)(0x80 | (code & 0x3f));
    } else {
        *to++ = (char)(0xf0 | code >> 18);
        *to++ = (char)(0x80 | (code >> 12 & 0x3f));
        *to++ = (char)(0x80 | (code >> 6 & 0x3f));
        *to++ = (char)(0x80 | (code & 0x3f));
    }
    return to;
}

/* Reads an escape; `at` is after the 'u'. A high surrogate includes the low one that follows. */
static kelp_status *read_unicode(const kelp_json_reader *reader, size_t *inout_at, char **to) {
    uint32_t code, low;
    size_t at = *inout_at;
    if (!read_hex4(reader, at, &code))
        return fail(reader, at, "four hexadecimal digits");
    at += 4;
    if (code >= 0xd800 && code < 0xdc00) {
        if (reader->length - at < 6 || reader->text[at] != '\\' || reader->text[at + 1] != 'u' ||
            !read_hex4(reader, at + 2, &low) || low < 0xdc00 || low > 0xdfff)
            return fail(reader, at, "the low half of a surrogate pair");
        code = 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00);
        at += 6;
    } else if (code >= 0xdc00 && code < 0xe000) {
        return fail(reader, at - 4, "no lone low surrogate");
    }
    *to = put_utf8(*to, code);
    *inout_at = at;
    return NULL;
}

static kelp_status *decode_string(const kelp_json_reader *reader, size_t begin, size_t end,
                                  kelp_str *out) {
    /* escapes only shrink */
    char *data = kelp_arena_alloc(reader->arena, end - begin + 1, 1), *to = data;
    if (data == NULL)
        return kelp_status_oom();
    for (size_t at = begin; at < end;) {
        char c = reader->text[at++];
        if (c != '\\') {
            *to++ = c;
            continue;
        }
        static const char escapes[] = "\"\\/bfnrt", values[] = "\"\\/\b\f\n\r\t";
        c = reader->text[at++];
        const char *found = c != '\0' ? strchr(escapes, c) : NULL;
        if (c == 'u')
            KELP_TRY(read_unicode(reader, &at, &to));
        else if (found != NULL)
            *to++ = values[found - escapes];
        else
            return fail(reader, at - 1, "an escape (one of \" \\ / b f n r t u)");
    }
    KELP_ASSERT((size_t)(to - data) <= end - begin);
    *out = (kelp_str){data, (size_t)(to - data)};
    return NULL;
}

static kelp_status *read_string(kelp_json_reader *reader, kelp_str *out) {
    size_t begin = reader->position + 1, at = begin;
    bool escaped = false;
    for (; at < reader->length; at += 2) { /* after an escape */
        kelp_str rest = {reader->text + at, reader->length - at};
        at += kelp_json_plain_length(rest, false);
        if (at >= reader->length || reader->text[at] == '"')
            break;
        if (reader->text[at] != '\\')
            return fail(reader, at, "no control character in a string");
        escaped = true;
    }
    if (at >= reader->length)
        return fail(reader, reader->length, "the closing quote of a string");
    reader->position = at + 1;
    if (escaped)
        return decode_string(reader, begin, at, out);
    *out = (kelp_str){reader->text + begin, at - begin};
    return NULL;
}

/* ---- numbers ---- */
static bool is_digit(char c) {
    return c >= '0' && c <= '9';
}

/* Powers of ten that are exact as doubles. */
static const double powers[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
                                1e8,  1e9,  1e10, 1e11, 1e12, 1e13, 1e14, 1e15,
                                1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};
#define LAST_POWER ((int64_t)(sizeof powers / sizeof powers[0]) - 1)
#define DIGITS_THAT_FIT 19 /* any such digits fit in a uint64 */

/* Appends digits to a number; wraps beyond DIGITS_THAT_FIT digits. */
static inline size_t scan_digits(const kelp_json_reader *reader, size_t at, uint64_t *inout_value) {
    uint64_t value = *inout_value;
    for (; at < reader->length && is_digit(reader->text[at]); at++)
        value = value * 10 + (uint64_t)(reader->text[at] - '0');
    *inout_value = value;
    return at;
}

static kelp_status *set_integer(kelp_json_token *out, bool negative, uint64_t value) {
    out->f64 = negative ? -(double)value : (double)value;
    out->u64 = value;
    if (negative) {
        out->type = value <= (uint64_t)1 << 63 ? KELP_JSON_INT : KELP_JSON_DOUBLE;
        out->i64 = (int64_t)(0 - value);
        out->u64 = (uint64_t)out->i64;
    } else {
        out->type = value <= INT64_MAX ? KELP_JSON_INT : KELP_JSON_UINT;
        out->i64 = (int64_t)value;
    }
    return NULL;
}

/* Reads the power of ten after the 'e'; values that do not fit become far larger than any
 * double's. */
static kelp_status *read_exponent(const kelp_json_reader *reader, size_t *inout_at, int64_t *out) {
    size_t at = *inout_at;
    bool negative = at < reader->length && reader->text[at] == '-';
    if (negative || (at < reader->length && reader->text[at] == '+'))
        at++;
    size_t first = at;
    uint64_t value = 0;
    at = scan_digits(reader, at, &value);
    if (at == first)
        return fail(reader, at, "a digit in the exponent");
    if (at - first > DIGITS_THAT_FIT || value > INT32_MAX)
        value = INT32_MAX;
    *out = negative ? -(int64_t)value : (int64_t)value;
    *inout_at = at;
    return NULL;
}

/* Reads a number with a point, an exponent or more than 64 bits. If digits and power of ten are
 * exact doubles, one rounding gives the correct result (Clinger, 1990), which covers most numbers.
 */
static kelp_status *set_decimal(const kelp_json_reader *reader, size_t begin, bool exact,
                                uint64_t digits, int64_t scale, kelp_json_token *out) {
    out->type = KELP_JSON_DOUBLE;
    if (exact && digits <= (uint64_t)1 << 53 && scale >= -LAST_POWER && scale <= LAST_POWER) {
        double value = (double)digits;
        value = scale < 0 ? value / powers[-scale] : value * powers[scale];
        out->f64 = reader->text[begin] == '-' ? -value : value;
        return NULL;
    }
    kelp_str text = {reader->text + begin, reader->position - begin};
    return kelp_parse_f64(text, &out->f64) ? NULL : fail(reader, begin, "a number");
}

static kelp_status *read_number(kelp_json_reader *reader, kelp_json_token *out) {
    size_t begin = reader->position;
    bool negative = reader->text[begin] == '-', integral = true;
    uint64_t value = 0;
    int64_t scale = 0;
    size_t digits = begin + negative;
    size_t at = scan_digits(reader, digits, &value), count = at - digits;
    if (count == 0)
        return fail(reader, at, "a digit");
    if (reader->text[digits] == '0' && count > 1)
        return fail(reader, digits + 1, "no digit after a leading zero");
    kelp_str whole = {reader->text + digits, count};
    if (at < reader->length && reader->text[at] == '.') {
        integral = false;
        size_t first = ++at;
        at = scan_digits(reader, at, &value);
        if (at == first)
            return fail(reader, at, "a digit after the point");
        count += at - first;
        scale = -(int64_t)(at - first);
    }
    if (at < reader->length && (reader->text[at] | 0x20) == 'e') {
        integral = false;
        int64_t exponent = 0;
        at++;
        KELP_TRY(read_exponent(reader, &at, &exponent));
        scale += exponent;
    }
    reader->position = at;
    bool exact = count <= DIGITS_THAT_FIT;
    if (integral && (exact || kelp_parse_u64(whole, &value)) &&
        !(negative && value > (uint64_t)1 << 63))
        return set_integer(out, negative, value);
    return set_decimal(reader, begin, exact, value, scale, out);
}

/* ---- words ---- */
static bool take_word(kelp_json_reader *reader, const char *word) {
    size_t length = strlen(word);
    if (reader->length - reader->position < length ||
        memcmp(reader->text + reader->position, word, length) != 0)
        return false;
    reader->position += length;
    return true;
}

static kelp_status *set_double(kelp_json_token *out, double value) {
    out->type = KELP_JSON_DOUBLE;
    out->f64 = value;
    return NULL;
}

static kelp_status *read_word(kelp_json_reader *reader, kelp_json_token *out) {
    if (take_word(reader, "true") || take_word(reader, "false")) {
        out->type = KELP_JSON_BOOL;
        out->boolean = reader->text[reader->position - 2] == 'u';
        return NULL;
    }
    if (take_word(reader, "null")) {
        out->type = KELP_JSON_NULL;
        return NULL;
    }
    if (take_word(reader, "NaN"))
        return set_double(out, (double)NAN);
    if (take_word(reader, "Infinity"))
        return set_double(out, (double)INFINITY);
    if (take_word(reader, "-Infinity"))
        return set_double(out, -(double)INFINITY);
    return fail(reader, reader->position, "a value");
}

static kelp_status *read_value(kelp_json_reader *reader, kelp_json_token *out) {
    char c = reader->text[reader->position];
    kelp_status *status = NULL;
    if (c == '{' || c == '[') {
        out->type = c == '{' ? KELP_JSON_OBJECT : KELP_JSON_ARRAY;
        KELP_TRY(push(reader, c == '{'));
        reader->position++;
        return NULL;
    }
    bool infinite = c == '-' && reader->length - reader->position > 1 &&
                    reader->text[reader->position + 1] == 'I';
    if (c == '"') {
        out->type = KELP_JSON_STRING;
        status = read_string(reader, &out->string);
    } else if (is_digit(c) || (c == '-' && !infinite)) {
        status = read_number(reader, out);
    } else {
        status = read_word(reader, out);
    }
    after_value(reader);
    return status;
}

/* ---- structure ---- */
size_t kelp_json_value_offset(const kelp_json_reader *reader) {
    const char *text = reader->text;
    size_t at = reader->position, length = reader->length;
    while (at < length && (unsigned char)text[at] <= ' ' &&
           (text[at] == ' ' || text[at] == '\n' || text[at] == '\t' || text[at] == '\r'))
        at++;
    return at;
}

static void skip_blanks(kelp_json_reader *reader) {
    reader->position = kelp_json_value_offset(reader);
}

static kelp_status *close(kelp_json_reader *reader, kelp_json_token *out) {
    out->type = in_object(reader) ? KELP_JSON_OBJECT_END : KELP_JSON_ARRAY_END;
    out->offset = reader->position++;
    reader->depth--;
    after_value(reader);
    return NULL;
}

static kelp_status *read_key(kelp_json_reader *reader, kelp_json_token *out) {
    if (reader->position >= reader->length || reader->text[reader->position] != '"')
        return fail(reader, reader->position,
                    reader->expect == EXPECT_FIRST_KEY ? "a key or '}'" : "a key");
    out->type = KELP_JSON_KEY;
    KELP_TRY(read_string(reader, &out->string));
    skip_blanks(reader);
    if (reader->position >= reader->length || reader->text[reader->position] != ':')
        return fail(reader, reader->position, "':' after a key");
    reader->position++;
    reader->expect = EXPECT_VALUE;
    return NULL;
}

kelp_status *kelp_json_next(kelp_json_reader *reader, kelp_json_token *out) {
    skip_blanks(reader);
    bool at_end = reader->position >= reader->length;
    char c = at_end ? '\0' : reader->text[reader->position];
    *out = (kelp_json_token){.offset = reader->position};
    if (reader->expect == EXPECT_END) {
        out->type = KELP_JSON_END;
        return at_end ? NULL : fail(reader, reader->position, "the end");
    }
    if (reader->expect == EXPECT_COMMA) {
        char closing = in_object(reader) ? '}' : ']';
        if (!at_end && c == closing)
            return close(reader, out);
        if (at_end || c != ',')
            return fail(reader, reader->position,
                        closing == '}' ? "',' or '}' in an object" : "',' or ']' in an array");
        reader->expect = in_object(reader) ? EXPECT_KEY : EXPECT_VALUE;
        reader->position++;
        skip_blanks(reader);
        at_end = reader->position >= reader->length;
        out->offset = reader->position;
    } else if ((reader->expect == EXPECT_FIRST && c == ']' && !at_end) ||
               (reader->expect == EXPECT_FIRST_KEY && c == '}' && !at_end)) {
        return close(reader, out);
    }
    if (reader->expect == EXPECT_KEY || reader->expect == EXPECT_FIRST_KEY)
        return read_key(reader, out);
    if (at_end)
        return fail(reader, reader->position, "a value");
    return read_value(reader, out);
}

kelp_status *kelp_json_skip(kelp_json_reader *reader) {
    uint32_t depth = reader->depth;
    kelp_json_token token;
    do
        KELP_TRY(kelp_json_next(reader, &token));
    while (reader->depth > depth || token.type == KELP_JSON_KEY);
    return NULL;
}

void kelp_json_skip_to(kelp_json_reader *reader, size_t end) {
    KELP_ASSERT(reader->expect == EXPECT_VALUE);
    KELP_ASSERT(end >= reader->position && end <= reader->length);
    reader->position = end;
    after_value(reader);
}
