/* SPDX-License-Identifier: Apache-2.0 */
/* Reads and writes tensor data. Data is read in one pass over the text, without a tokenizer,
 * because most JSON requests consist of a large array of numbers. */
#include "frontends/tensor/tensor.h"

#include "base/assert.h"
#include "base/checked.h"
#include "base/text/json.h"
#include "base/text/utf8.h"
#include "frontends/tensor/element.h"
#include "frontends/tensor/float_read.h"
#include "frontends/tensor/float_text.h"

#include <math.h>

#define LONGEST_DIMENSION 32 /* characters of a dimension with its comma */
#define STRING_LENGTH_BYTES 4
#define MAX_EXACT_MANTISSA ((uint64_t)1 << 53) /* a larger integer may not be an exact double */
#define EXACT_DIGITS 19                        /* any number of so many digits fits into uint64 */
#define DATA_ALIGNMENT 64

bool kelp_v2_element_count(const int64_t *shape, size_t rank, uint64_t *out) {
    uint64_t count = 1;
    bool empty = false;
    for (size_t i = 0; i < rank; i++) {
        if (shape[i] < 0)
            return false;
        if (shape[i] == 0)
            empty = true;
        else if (__builtin_mul_overflow(count, (uint64_t)shape[i], &count))
            return false;
    }
    *out = empty ? 0 : count;
    return *out <= INT64_MAX;
}

const char *kelp_v2_shape_text(kelp_arena *arena, const int64_t *shape, size_t rank) {
    char text[256];
    size_t n = 0;
    text[n++] = '[';
    for (size_t i = 0; i < rank && n < sizeof text - LONGEST_DIMENSION; i++) {
        uint64_t magnitude = (uint64_t)shape[i];
        if (i > 0)
            text[n++] = ',';
        if (shape[i] < 0) {
            text[n++] = '-';
            magnitude = 0 - magnitude;
        }
        n += kelp_format_u64(magnitude, text + n);
    }
    text[n++] = ']';
    const char *copy = kelp_arena_strndup(arena, text, n);
    return copy != NULL ? copy : "";
}

/* ---- reading ---- */

/* The state of reading an array. */
typedef struct reader {
    kelp_arena *arena;
    const char *input; /* name, for messages */
    const char *text;
    size_t length;
    size_t position;
    kelp_v2_element element;
    uint64_t capacity; /* of `bytes`, in elements */
    uint64_t found;
    unsigned char *bytes;
    kelp_buf strings; /* the elements of BYTES, in memory of the arena's allocator */
} reader;

static kelp_status *wrong(const reader *r, const char *what) {
    size_t line, column;
    kelp_json_where(r->text, r->length, r->position, &line, &column);
    return KELP_ERROR(KELP_INVALID_ARGUMENT,
                      "input '%s': data element %llu (line %zu, column %zu): %s", r->input,
                      (unsigned long long)r->found, line, column, what);
}

static inline bool is_space(char c) {
    return c == ' ' || c == '\n' || c == '\r' || c == '\t';
}

static inline void skip_space(reader *r) {
    while (r->position < r->length && is_space(r->text[r->position]))
        r->position++;
}

static const double powers[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
                                1e8,  1e9,  1e10, 1e11, 1e12, 1e13, 1e14, 1e15,
                                1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};

/* A number as written in the text. */
typedef struct number {
    bool negative;
    bool integral; /* has neither point nor exponent; `magnitude` is the value */
    bool overflow; /* magnitude did not fit */
    uint64_t magnitude;
    double value;
} number;

static bool is_word_char(char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '+' ||
           c == '-' || c == '.' || c == '_';
}

/* Reads NaN, Infinity or -Infinity. */
static bool read_literal(kelp_str token, double *out) {
    if (kelp_str_is(token, "NaN"))
        *out = (double)NAN;
    else if (kelp_str_is(token, "Infinity"))
        *out = (double)INFINITY;
    else if (kelp_str_is(token, "-Infinity"))
        *out = -(double)INFINITY;
    else
        return false;
    return true;
}

/* Reads a literal, if the text does not begin with a number; fails if it is not a literal either.
 */
static kelp_status *read_word(reader *r, const char *start, bool leading_zero, number *out) {
    size_t length = r->length - r->position, n = 0;
    while (n < length && is_word_char(start[n]))
        n++;
    out->integral = false;
    if (!read_literal((kelp_str){start, n}, &out->value))
        return wrong(r, leading_zero ? "has a leading zero" : "is not a number");
    r->position += n;
    return NULL;
}

/* Reads a number that the fast path cannot; the reader's position is at its end. */
static kelp_status *slow_number(reader *r, const char *start, number *out) {
    size_t begin = (size_t)(start - r->text), end = r->position;
    if (kelp_parse_f64((kelp_str){start, end - begin}, &out->value))
        return NULL;
    r->position = begin; /* for the message */
    return wrong(r, "is not a number");
}

/* Appends digits to the mantissa, which overflows after a total of EXACT_DIGITS. */
static inline const char *read_digits(const char *p, const char *end, uint64_t *inout_mantissa) {
    uint64_t mantissa = *inout_mantissa;
    for (; p < end && *p >= '0' && *p <= '9'; p++)
        mantissa = mantissa * 10 + (uint64_t)(*p - '0');
    *inout_mantissa = mantissa;
    return p;
}

/* Reads a number (RFC 8259 section 6). Decimal digits are collected as an integer and a power of
 * ten. When both are small, the quotient of two exact doubles is correctly rounded (Clinger 1990,
 * the fast path); otherwise kelp_parse_f64 reads the text. */
static kelp_status *read_number(reader *r, number *out) {
    const char *start = r->text + r->position;
    const char *end = r->text + r->length;
    const char *p = start;
    *out = (number){.integral = true};
    if (p < end && *p == '-') {
        out->negative = true;
        p++;
    }
    kelp_str whole = {p, 0};
    uint64_t mantissa = 0;
    p = read_digits(p, end, &mantissa);
    whole.length = (size_t)(p - whole.data);
    if (whole.length == 0 || (whole.length > 1 && *whole.data == '0'))
        return read_word(r, start, whole.length > 0, out);
    size_t scale = 0;
    if (p < end && *p == '.') {
        const char *fraction = ++p;
        out->integral = false;
        p = read_digits(p, end, &mantissa);
        scale = (size_t)(p - fraction);
        if (scale == 0)
            return wrong(r, "has no digits after the point");
    }
    bool exponent = p < end && (*p == 'e' || *p == 'E');
    if (exponent) {
        out->integral = false;
        while (p < end && is_word_char(*p))
            p++;
    }
    bool exact = whole.length + scale <= EXACT_DIGITS;
    if (!exact && out->integral)
        out->overflow = !kelp_parse_u64(whole, &mantissa);
    out->magnitude = mantissa;
    r->position = (size_t)(p - r->text);
    if (exponent || !exact || mantissa > MAX_EXACT_MANTISSA)
        return slow_number(r, start, out);
    double value = (double)mantissa / powers[scale];
    out->value = out->negative ? -value : value;
    return NULL;
}

static void store_bits(reader *r, uint64_t bits) {
    size_t size = r->element.size_bytes;
    KELP_ASSERT(size > 0 && r->found < r->capacity);
    kelp_v2_store(r->bytes + r->found * size, size, bits);
}

static void store_float(reader *r, double value) {
    float single = (float)value;
    KELP_ASSERT(kelp_v2_is_float(r->element) && r->found < r->capacity);
    if (r->element.kind == KELP_V2_FLOAT16)
        store_bits(r, kelp_f32_to_f16(single));
    else if (r->element.kind == KELP_V2_BFLOAT16)
        store_bits(r, kelp_f32_to_bf16(single));
    else if (r->element.size_bytes == sizeof(float))
        memcpy(r->bytes + r->found * sizeof single, &single, sizeof single);
    else
        memcpy(r->bytes + r->found * sizeof value, &value, sizeof value);
}

static kelp_status *store_integer(reader *r, const number *n) {
    if (!n->integral)
        return wrong(r, "is not an integer");
    bool is_signed = r->element.kind == KELP_V2_SIGNED;
    uint64_t all_ones = UINT64_MAX >> (64 - 8 * r->element.size_bytes);
    uint64_t limit = !is_signed ? (n->negative ? 0 : all_ones) : all_ones / 2 + n->negative;
    if (n->overflow || n->magnitude > limit)
        return wrong(r, is_signed ? "does not fit into the input's integer type"
                                  : "does not fit into the input's unsigned integer type");
    store_bits(r, n->negative ? 0 - n->magnitude : n->magnitude);
    return NULL;
}

static bool take_word(reader *r, const char *word) {
    size_t n = strlen(word);
    if (r->length - r->position < n || memcmp(r->text + r->position, word, n) != 0)
        return false;
    r->position += n;
    return true;
}

static kelp_status *read_bool(reader *r) {
    size_t start = r->position;
    bool value = take_word(r, "true");
    if (!value && !take_word(r, "false")) {
        number n;
        kelp_status *status = read_number(r, &n);
        if (status != NULL || !n.integral || n.overflow || n.magnitude > 1) {
            kelp_status_free(status);
            r->position = start;
            return wrong(r, "is not true or false (attempt to access JSON non-boolean as boolean)");
        }
        value = n.magnitude == 1;
    }
    if (r->found < r->capacity)
        store_bits(r, value);
    return NULL;
}

static kelp_status *read_numeric(reader *r) {
    size_t start = r->position;
    number n;
    KELP_TRY(read_number(r, &n));
    if (r->found >= r->capacity)
        return NULL; /* not stored, only counted for the message */
    size_t end = r->position;
    r->position = start; /* for messages */
    kelp_status *status = NULL;
    if (kelp_v2_is_float(r->element))
        store_float(r, n.value);
    else
        status = store_integer(r, &n);
    r->position = end;
    return status;
}

/* Reads a string, and appends its length as 4 bytes, little-endian, and its bytes. */
static kelp_status *read_string(reader *r) {
    KELP_ASSERT(r->position < r->length);
    if (r->text[r->position] != '"')
        return wrong(r,
                     "is not a string, as required by BYTES (attempt to access JSON non-string as "
                     "string)");
    size_t end = r->position + 1;
    while (end < r->length && r->text[end] != '"')
        end += r->text[end] == '\\' ? 2 : 1;
    if (end >= r->length)
        return wrong(r, "is an unterminated string");
    kelp_json_reader json;
    kelp_json_token token;
    kelp_json_reader_init(&json, r->arena, r->text + r->position, end + 1 - r->position);
    kelp_status *status = kelp_json_next(&json, &token);
    if (status != NULL) {
        kelp_status_free(status);
        return wrong(r, "is not a valid JSON string");
    }
    if (token.string.length > UINT32_MAX)
        return wrong(r, "is longer than 4 GiB");
    unsigned char prefix[STRING_LENGTH_BYTES];
    kelp_v2_store(prefix, sizeof prefix, token.string.length);
    kelp_buf_append(&r->strings, prefix, sizeof prefix);
    kelp_buf_append_str(&r->strings, token.string);
    r->position = end + 1;
    return NULL;
}

static kelp_status *read_element(reader *r) {
    kelp_status *status = r->element.kind == KELP_V2_BYTES  ? read_string(r)
                          : r->element.kind == KELP_V2_BOOL ? read_bool(r)
                                                            : read_numeric(r);
    if (status == NULL)
        r->found++;
    return status;
}

/* Reads elements of an array: as many as the fast path can, or one. */
static kelp_status *read_elements(reader *r) {
    bool floats = r->element.kind == KELP_V2_FLOAT && r->element.size_bytes == sizeof(float);
    size_t count = 0;
    if (floats && r->found < r->capacity)
        count = kelp_v2_read_floats(r->text, r->length, &r->position,
                                    (float *)(void *)r->bytes + r->found,
                                    (size_t)(r->capacity - r->found));
    r->found += count;
    return count > 0 ? NULL : read_element(r);
}

/* The arrays that contain the position, and the lengths that all arrays of a depth have. */
typedef struct nesting {
    unsigned depth;
    unsigned max_depth;  /* so far; deeper levels are not initialized */
    unsigned leaf_depth; /* of the arrays that contain the elements; 0: not known yet */
    struct {
        uint64_t first;     /* elements before the array */
        uint64_t in_arrays; /* elements of the arrays in it */
        uint64_t arrays;
        uint64_t length; /* of all arrays of this depth */
        bool has_length;
    } levels[KELP_V2_MAX_NESTING + 1];
} nesting;

static kelp_status *open_array(reader *r, nesting *n) {
    if (n->depth == KELP_V2_MAX_NESTING)
        return wrong(r, "the data arrays are nested more than 100 deep");
    if (++n->depth > n->max_depth) {
        n->max_depth = n->depth;
        n->levels[n->depth].has_length = false;
    }
    n->levels[n->depth].first = r->found;
    n->levels[n->depth].in_arrays = n->levels[n->depth].arrays = 0;
    r->position++;
    return NULL;
}

/* Checks that the array has the length of the others of its depth, and elements or arrays. */
static kelp_status *close_array(reader *r, nesting *n) {
    uint64_t elements = r->found - n->levels[n->depth].first;
    uint64_t arrays = n->levels[n->depth].arrays;
    uint64_t length = arrays ? arrays : elements;
    bool mixed = arrays && elements != n->levels[n->depth].in_arrays;
    if (!arrays && n->leaf_depth == 0)
        n->leaf_depth = n->depth;
    if (mixed || (!arrays && n->leaf_depth != n->depth) ||
        (n->levels[n->depth].has_length && n->levels[n->depth].length != length))
        return wrong(r, "the data arrays differ in length or depth");
    n->levels[n->depth].length = length;
    n->levels[n->depth].has_length = true;
    n->depth--;
    n->levels[n->depth].in_arrays += elements;
    n->levels[n->depth].arrays++;
    r->position++;
    return NULL;
}

/* Reads nested arrays without recursion. */
static kelp_status *read_arrays(reader *r) {
    nesting n;
    n.depth = n.max_depth = n.leaf_depth = 0;
    n.levels[0].in_arrays = n.levels[0].arrays = 0;
    bool need_value = true; /* after '[' or ',' */
    bool may_close = false; /* "[]" */
    do {
        skip_space(r);
        if (r->position >= r->length)
            return wrong(r, "the data array is not closed");
        char c = r->text[r->position];
        if (need_value && c == '[') {
            KELP_TRY(open_array(r, &n));
            may_close = true;
        } else if (c == ']' && n.depth > 0 && (!need_value || may_close)) {
            KELP_TRY(close_array(r, &n));
            need_value = may_close = false;
        } else if (need_value) {
            if (n.depth == 0)
                return wrong(r, "data is not an array");
            KELP_TRY(read_elements(r));
            need_value = may_close = false;
        } else if (c == ',') {
            r->position++;
            need_value = true;
            may_close = false;
        } else {
            return wrong(r, "expected ',' or ']'");
        }
    } while (n.depth > 0);
    return NULL;
}

kelp_status *kelp_v2_read_data(kelp_arena *arena, const char *input, TRITONSERVER_DataType type,
                               uint64_t count, const char *shape_text, const char *text,
                               size_t length, size_t *inout_position, kelp_v2_data *out) {
    reader r = {.arena = arena,
                .input = input,
                .text = text,
                .length = length,
                .position = *inout_position,
                .element = kelp_v2_element_of(type)};
    kelp_buf_init(&r.strings, arena->allocator);
    size_t element_bytes = r.element.size_bytes;
    if (r.element.kind != KELP_V2_BYTES) {
        /* The text limits the memory, because a client can claim any shape: an element has at least
         * two characters. */
        r.capacity = KELP_MIN(count, (uint64_t)(length - r.position) / 2 + 1);
        size_t size;
        if (!kelp_size_mul((size_t)r.capacity, element_bytes, &size))
            return kelp_status_oom();
        r.bytes = kelp_arena_alloc(arena, size, DATA_ALIGNMENT);
        if (r.bytes == NULL)
            return kelp_status_oom();
    }
    kelp_status *status = read_arrays(&r);
    if (status == NULL && r.found != count && count != KELP_V2_ANY_COUNT)
        status =
            KELP_ERROR(KELP_INVALID_ARGUMENT,
                       "input '%s': expected %llu data elements for shape %s, found %llu", input,
                       (unsigned long long)count, shape_text, (unsigned long long)r.found);
    if (status == NULL && r.element.kind == KELP_V2_BYTES) {
        status = kelp_buf_status(&r.strings);
        out->size_bytes = r.strings.length;
        out->bytes = status != NULL ? NULL : kelp_arena_alloc(arena, r.strings.length, 8);
        if (status == NULL && out->bytes == NULL)
            status = kelp_status_oom();
        if (status == NULL && r.strings.length)
            memcpy(out->bytes, r.strings.data, r.strings.length);
    } else if (status == NULL) {
        out->bytes = r.bytes;
        out->size_bytes = (size_t)r.found * element_bytes;
    }
    kelp_buf_deinit(&r.strings);
    out->count = r.found;
    *inout_position = r.position;
    return status;
}

/* ---- writing ---- */

static kelp_status *write_strings(kelp_buf *out, const char *output, const unsigned char *bytes,
                                  size_t size_bytes, bool replaces) {
    size_t at = 0;
    uint64_t index = 0;
    while (at < size_bytes) {
        if (size_bytes - at < STRING_LENGTH_BYTES)
            return KELP_ERROR(KELP_INTERNAL,
                              "output '%s': expected the %d bytes of a string's length, found %zu",
                              output, STRING_LENGTH_BYTES, size_bytes - at);
        uint32_t n = (uint32_t)kelp_v2_load_unsigned(bytes + at, STRING_LENGTH_BYTES);
        if (at)
            kelp_buf_append_char(out, ',');
        at += STRING_LENGTH_BYTES;
        if (n > size_bytes - at)
            return KELP_ERROR(KELP_INTERNAL,
                              "output '%s': expected a string of %u bytes, found %zu", output, n,
                              size_bytes - at);
        kelp_str text = {(const char *)bytes + at, n};
        if (!replaces && !kelp_utf8_count(text, NULL))
            return KELP_ERROR(KELP_INVALID_ARGUMENT,
                              "output '%s': element %llu is not UTF-8, which JSON requires: set "
                              "'binary_data' to true",
                              output, (unsigned long long)index);
        kelp_json_escape(out, text);
        at += n;
        index++;
    }
    return NULL;
}

static void write_element(kelp_buf *out, kelp_v2_element element, const unsigned char *p) {
    size_t size = element.size_bytes;
    switch (element.kind) {
    case KELP_V2_BOOL:
        kelp_buf_append_cstr(out, *p ? "true" : "false");
        break;
    case KELP_V2_UNSIGNED:
        kelp_buf_append_u64(out, kelp_v2_load_unsigned(p, size));
        break;
    case KELP_V2_SIGNED:
        kelp_buf_append_i64(out, kelp_v2_load_signed(p, size));
        break;
    default:
        if (size == sizeof(double))
            kelp_buf_append_f64(out, kelp_v2_load_float(p, element));
        else
            kelp_v2_append_float(out, (float)kelp_v2_load_float(p, element));
        break;
    }
}

static void write_elements(kelp_buf *out, kelp_v2_element element, const unsigned char *bytes,
                           size_t size_bytes) {
    for (size_t at = 0; size_bytes - at >= element.size_bytes; at += element.size_bytes) {
        if (at)
            kelp_buf_append_char(out, ',');
        write_element(out, element, bytes + at);
    }
}

kelp_status *kelp_v2_write_data(kelp_buf *out, const char *output, TRITONSERVER_DataType type,
                                const void *bytes, size_t size_bytes, bool replaces) {
    kelp_status *status = NULL;
    const unsigned char *p = bytes;
    kelp_v2_element element = kelp_v2_element_of(type);
    if (element.kind == KELP_V2_INVALID)
        return KELP_ERROR(KELP_INTERNAL, "output '%s' has no data type", output);
    kelp_buf_append_char(out, '[');
    if (element.kind == KELP_V2_BYTES)
        status = write_strings(out, output, p, size_bytes, replaces);
    else if (element.kind == KELP_V2_FLOAT && element.size_bytes == sizeof(float))
        kelp_v2_append_floats(out, p, size_bytes / sizeof(float));
    else
        write_elements(out, element, p, size_bytes);
    kelp_buf_append_char(out, ']');
    return status;
}
