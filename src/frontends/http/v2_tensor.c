/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tensor data between JSON text and bytes. Reading is one pass over the text without tokens: most
 * JSON requests are a large array of numbers.
 */
#include "frontends/http/v2_tensor.h"

#include "base/checked.h"
#include "base/json.h"
#include "frontends/http/float_text.h"

#include <math.h>
#include <stdio.h>

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
    for (size_t i = 0; i < rank && n < sizeof(text) - 32; i++)
        n += (size_t)snprintf(text + n, sizeof(text) - n, "%s%lld", i ? "," : "",
                              (long long)shape[i]);
    text[n++] = ']';
    const char *copy = kelp_arena_strndup(arena, text, n);
    return copy ? copy : "";
}

/* ---- 16-bit floats ---- */

uint16_t kelp_v2_half_from_float(float value) {
    uint32_t bits;
    memcpy(&bits, &value, sizeof(bits));
    uint32_t sign = bits >> 16 & 0x8000u;
    uint32_t exponent = bits >> 23 & 0xffu;
    uint32_t mantissa = bits & 0x7fffffu;
    if (exponent == 0xff)
        return (uint16_t)(sign | 0x7c00u | (mantissa ? 0x200u | mantissa >> 13 : 0));
    int e = (int)exponent - 127 + 15;
    if (e >= 31)
        return (uint16_t)(sign | 0x7c00u);
    uint32_t shift = 13;
    if (e <= 0) { /* subnormal */
        if (e < -10)
            return (uint16_t)sign;
        mantissa |= 0x800000u;
        shift = (uint32_t)(14 - e);
        e = 0;
    }
    uint32_t half = (uint32_t)e << 10 | mantissa >> shift;
    uint32_t rest = mantissa & ((1u << shift) - 1u);
    uint32_t middle = 1u << (shift - 1);
    if (rest > middle || (rest == middle && (half & 1u)))
        half++; /* carries into the exponent as it should */
    return (uint16_t)(sign | half);
}

float kelp_v2_float_from_half(uint16_t half) {
    uint32_t exponent = half >> 10 & 0x1fu;
    uint32_t mantissa = half & 0x3ffu;
    float value;
    if (exponent == 31)
        value = mantissa ? NAN : INFINITY;
    else if (exponent == 0)
        value = ldexpf((float)mantissa, -24);
    else
        value = ldexpf((float)(mantissa | 0x400u), (int)exponent - 25);
    return half & 0x8000u ? -value : value;
}

uint16_t kelp_v2_bf16_from_float(float value) {
    uint32_t bits;
    memcpy(&bits, &value, sizeof(bits));
    if ((bits & 0x7fffffffu) > 0x7f800000u)
        return (uint16_t)(bits >> 16 | 0x40u); /* stays a NaN */
    return (uint16_t)((bits + 0x7fffu + (bits >> 16 & 1u)) >> 16);
}

/* ---- reading ---- */

typedef struct reader {
    kelp_arena *arena;
    const char *input; /* name, for messages */
    const char *text;
    size_t length;
    size_t position;
    TRITONSERVER_DataType type;
    size_t element_bytes;
    uint64_t capacity; /* elements that fit into `bytes` */
    uint64_t found;
    unsigned char *bytes;
    kelp_buf strings; /* of BYTES; memory of the arena's allocator */
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

/* A number as it stands in the text. */
typedef struct number {
    bool negative;
    bool integral; /* only digits: `magnitude` is the value */
    bool overflow; /* magnitude did not fit */
    uint64_t magnitude;
    double value;
} number;

static kelp_status *slow_number(const reader *r, kelp_str token, number *out) {
    if (!kelp_parse_f64(token, &out->value))
        return wrong(r, "is not a number");
    return NULL;
}

static bool is_word_char(char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '+' ||
           c == '-' || c == '.' || c == '_';
}

/* NaN, Infinity, -Infinity; `out` is otherwise untouched. */
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

/* RFC 8259 section 6. Decimal digits are collected as an integer and a power of ten; when both are
 * small the quotient or product of two exact doubles is correctly rounded (Clinger 1990, the fast
 * path), else the careful parser does it. */
static kelp_status *read_number(reader *r, number *out) {
    const char *start = r->text + r->position;
    const char *end = r->text + r->length;
    const char *p = start;
    *out = (number){0};
    if (p < end && *p == '-') {
        out->negative = true;
        p++;
    }
    const char *first_digit = p;
    uint64_t mantissa = 0;
    int digits = 0;
    while (p < end && *p >= '0' && *p <= '9') {
        if (__builtin_mul_overflow(mantissa, (uint64_t)10, &mantissa) ||
            __builtin_add_overflow(mantissa, (uint64_t)(*p - '0'), &mantissa))
            out->overflow = true;
        p++;
    }
    digits = (int)KELP_MIN(p - first_digit, 1000);
    if (digits == 0 || (digits > 1 && *first_digit == '0')) {
        while (p < end && is_word_char(*p))
            p++;
        kelp_str token = {start, (size_t)(p - start)};
        if (!read_literal(token, &out->value))
            return wrong(r, digits ? "has a leading zero" : "is not a number");
        r->position += token.length;
        return NULL;
    }
    int scale = 0;
    out->integral = true;
    if (p < end && *p == '.') {
        const char *fraction = ++p;
        out->integral = false;
        while (p < end && *p >= '0' && *p <= '9') {
            if (__builtin_mul_overflow(mantissa, (uint64_t)10, &mantissa) ||
                __builtin_add_overflow(mantissa, (uint64_t)(*p - '0'), &mantissa))
                out->overflow = true;
            p++;
        }
        if (p == fraction)
            return wrong(r, "has no digits after the point");
        scale = (int)KELP_MIN(p - fraction, 1000);
    }
    bool exponent = p < end && (*p == 'e' || *p == 'E');
    if (exponent) {
        out->integral = false;
        while (p < end && is_word_char(*p))
            p++;
    }
    out->magnitude = mantissa;
    kelp_status *status = NULL;
    if (!exponent && !out->overflow && mantissa <= (uint64_t)1 << 53 && scale <= 22) {
        double value = (double)mantissa / powers[scale];
        out->value = out->negative ? -value : value;
    } else {
        status = slow_number(r, (kelp_str){start, (size_t)(p - start)}, out);
    }
    r->position = (size_t)(p - r->text);
    return status;
}

#define STORE(type_, value_)                                                   \
    do {                                                                       \
        type_ store_ = (type_)(value_);                                        \
        memcpy(r->bytes + r->found * sizeof(store_), &store_, sizeof(store_)); \
    } while (0)

static kelp_status *store_float(reader *r, double value) {
    switch (r->type) {
    case TRITONSERVER_TYPE_FP16:
        STORE(uint16_t, kelp_v2_half_from_float((float)value));
        break;
    case TRITONSERVER_TYPE_BF16:
        STORE(uint16_t, kelp_v2_bf16_from_float((float)value));
        break;
    case TRITONSERVER_TYPE_FP32:
        STORE(float, value);
        break;
    default:
        STORE(double, value);
        break;
    }
    return NULL;
}

static kelp_status *store_signed(reader *r, const number *n, unsigned bits) {
    uint64_t most = ((uint64_t)1 << (bits - 1)) - (n->negative ? 0 : 1);
    if (n->overflow || n->magnitude > most)
        return wrong(r, "does not fit into the input's integer type");
    int64_t value = n->negative ? (int64_t)(0 - n->magnitude) : (int64_t)n->magnitude;
    switch (bits) {
    case 8:
        STORE(int8_t, value);
        break;
    case 16:
        STORE(int16_t, value);
        break;
    case 32:
        STORE(int32_t, value);
        break;
    default:
        STORE(int64_t, value);
        break;
    }
    return NULL;
}

static kelp_status *store_unsigned(reader *r, const number *n, unsigned bits) {
    uint64_t most = bits == 64 ? UINT64_MAX : ((uint64_t)1 << bits) - 1;
    if (n->overflow || n->magnitude > most || (n->negative && n->magnitude))
        return wrong(r, "does not fit into the input's unsigned integer type");
    switch (bits) {
    case 8:
        STORE(uint8_t, n->magnitude);
        break;
    case 16:
        STORE(uint16_t, n->magnitude);
        break;
    case 32:
        STORE(uint32_t, n->magnitude);
        break;
    default:
        STORE(uint64_t, n->magnitude);
        break;
    }
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
        KELP_TRY(read_number(r, &n));
        if (!n.integral || n.overflow || n.magnitude > 1) {
            r->position = start;
            return wrong(r, "is not true or false");
        }
        value = n.magnitude == 1;
    }
    if (r->found < r->capacity)
        STORE(uint8_t, value);
    return NULL;
}

static kelp_status *store_integer(reader *r, const number *n) {
    if (!n->integral)
        return wrong(r, "is not an integer");
    switch (r->type) {
    case TRITONSERVER_TYPE_INT8:
        return store_signed(r, n, 8);
    case TRITONSERVER_TYPE_INT16:
        return store_signed(r, n, 16);
    case TRITONSERVER_TYPE_INT32:
        return store_signed(r, n, 32);
    case TRITONSERVER_TYPE_INT64:
        return store_signed(r, n, 64);
    case TRITONSERVER_TYPE_UINT8:
        return store_unsigned(r, n, 8);
    case TRITONSERVER_TYPE_UINT16:
        return store_unsigned(r, n, 16);
    case TRITONSERVER_TYPE_UINT32:
        return store_unsigned(r, n, 32);
    default:
        return store_unsigned(r, n, 64);
    }
}

static kelp_status *read_numeric(reader *r) {
    size_t start = r->position;
    number n;
    KELP_TRY(read_number(r, &n));
    if (r->found >= r->capacity)
        return NULL; /* counted, for the message */
    size_t end = r->position;
    r->position = start; /* where a message points */
    bool is_float = r->type == TRITONSERVER_TYPE_FP16 || r->type == TRITONSERVER_TYPE_BF16 ||
                    r->type == TRITONSERVER_TYPE_FP32 || r->type == TRITONSERVER_TYPE_FP64;
    kelp_status *status = is_float ? store_float(r, n.value) : store_integer(r, &n);
    r->position = end;
    return status;
}

/* One string, decoded by the JSON reader and appended with its 4-byte little-endian length. */
static kelp_status *read_string(reader *r) {
    if (r->text[r->position] != '"')
        return wrong(r, "is not a string, which BYTES needs");
    size_t end = r->position + 1;
    while (end < r->length && r->text[end] != '"')
        end += r->text[end] == '\\' ? 2 : 1;
    if (end >= r->length)
        return wrong(r, "is a string without an end");
    kelp_json_reader json;
    kelp_json_token token;
    kelp_json_reader_init(&json, r->arena, r->text + r->position, end + 1 - r->position);
    kelp_status *status = kelp_json_next(&json, &token);
    if (status) {
        kelp_status_free(status);
        return wrong(r, "is not a valid JSON string");
    }
    if (token.string.length > UINT32_MAX)
        return wrong(r, "is longer than 4 GiB");
    uint32_t n = (uint32_t)token.string.length;
    unsigned char prefix[4] = {(unsigned char)n, (unsigned char)(n >> 8), (unsigned char)(n >> 16),
                               (unsigned char)(n >> 24)};
    kelp_buf_append(&r->strings, prefix, sizeof(prefix));
    kelp_buf_append_str(&r->strings, token.string);
    r->position = end + 1;
    return NULL;
}

static kelp_status *read_element(reader *r) {
    kelp_status *status = r->type == TRITONSERVER_TYPE_BYTES  ? read_string(r)
                          : r->type == TRITONSERVER_TYPE_BOOL ? read_bool(r)
                                                              : read_numeric(r);
    if (!status)
        r->found++;
    return status;
}

/* Walks the arrays with a depth instead of recursion. */
static kelp_status *read_arrays(reader *r) {
    unsigned depth = 0;
    bool need_value = true; /* after '[' or ',' */
    bool may_close = false; /* "[]" */
    do {
        skip_space(r);
        if (r->position >= r->length)
            return wrong(r, "the data array has no end");
        char c = r->text[r->position];
        if (need_value && c == '[') {
            if (++depth > KELP_V2_MAX_NESTING)
                return wrong(r, "the data arrays are nested more than 100 deep");
            r->position++;
            may_close = true;
        } else if (c == ']' && depth > 0 && (!need_value || may_close)) {
            depth--;
            r->position++;
            need_value = may_close = false;
        } else if (need_value) {
            if (depth == 0)
                return wrong(r, "data is not an array");
            KELP_TRY(read_element(r));
            need_value = may_close = false;
        } else if (c == ',') {
            r->position++;
            need_value = true;
            may_close = false;
        } else {
            return wrong(r, "expected ',' or ']'");
        }
    } while (depth > 0);
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
                .type = type};
    kelp_buf_init(&r.strings, arena->allocator);
    r.element_bytes = TRITONSERVER_DataTypeByteSize(type);
    if (type != TRITONSERVER_TYPE_BYTES) {
        /* A claimed shape costs no more memory than the text could fill: an element takes two bytes
         * at least. */
        r.capacity = KELP_MIN(count, (uint64_t)(length - r.position) / 2 + 1);
        size_t size;
        if (!kelp_size_mul((size_t)r.capacity, r.element_bytes, &size))
            return kelp_status_oom();
        r.bytes = kelp_arena_alloc(arena, size, 64);
        if (!r.bytes)
            return kelp_status_oom();
    }
    kelp_status *status = read_arrays(&r);
    if (!status && r.found != count)
        status =
            KELP_ERROR(KELP_INVALID_ARGUMENT,
                       "input '%s': expected %llu data elements for shape %s, found %llu", input,
                       (unsigned long long)count, shape_text, (unsigned long long)r.found);
    if (!status && type == TRITONSERVER_TYPE_BYTES) {
        status = kelp_buf_status(&r.strings);
        out->size_bytes = r.strings.length;
        out->bytes = status ? NULL : kelp_arena_alloc(arena, r.strings.length, 8);
        if (!status && !out->bytes)
            status = kelp_status_oom();
        if (!status && r.strings.length)
            memcpy(out->bytes, r.strings.data, r.strings.length);
    } else if (!status) {
        out->bytes = r.bytes;
        out->size_bytes = (size_t)count * r.element_bytes;
    }
    kelp_buf_deinit(&r.strings);
    *inout_position = r.position;
    return status;
}

/* ---- writing ---- */

static kelp_status *write_strings(kelp_buf *out, const char *output, const unsigned char *bytes,
                                  size_t size_bytes) {
    size_t at = 0;
    while (at < size_bytes) {
        if (size_bytes - at < 4)
            return KELP_ERROR(KELP_INTERNAL,
                              "output '%s': %zu bytes are left where a length of 4 is due", output,
                              size_bytes - at);
        uint32_t n = (uint32_t)bytes[at] | (uint32_t)bytes[at + 1] << 8 |
                     (uint32_t)bytes[at + 2] << 16 | (uint32_t)bytes[at + 3] << 24;
        if (at)
            kelp_buf_append_char(out, ',');
        at += 4;
        if (n > size_bytes - at)
            return KELP_ERROR(KELP_INTERNAL,
                              "output '%s': an element of %u bytes has only %zu left", output, n,
                              size_bytes - at);
        kelp_json_escape(out, (kelp_str){(const char *)bytes + at, n});
        at += n;
    }
    return NULL;
}

static void write_element(kelp_buf *out, TRITONSERVER_DataType type, const unsigned char *p) {
    union {
        uint16_t u16;
        uint32_t u32;
        uint64_t u64;
        float f32;
        double f64;
    } v = {0};
    size_t bytes = TRITONSERVER_DataTypeByteSize(type);
    memcpy(&v, p, bytes <= sizeof(v) ? bytes : sizeof(v));
    switch (type) {
    case TRITONSERVER_TYPE_BOOL:
        kelp_buf_append_cstr(out, *p ? "true" : "false");
        break;
    case TRITONSERVER_TYPE_UINT8:
        kelp_buf_append_u64(out, *p);
        break;
    case TRITONSERVER_TYPE_UINT16:
        kelp_buf_append_u64(out, v.u16);
        break;
    case TRITONSERVER_TYPE_UINT32:
        kelp_buf_append_u64(out, v.u32);
        break;
    case TRITONSERVER_TYPE_UINT64:
        kelp_buf_append_u64(out, v.u64);
        break;
    case TRITONSERVER_TYPE_INT8:
        kelp_buf_append_i64(out, (int8_t)*p);
        break;
    case TRITONSERVER_TYPE_INT16:
        kelp_buf_append_i64(out, (int16_t)v.u16);
        break;
    case TRITONSERVER_TYPE_INT32:
        kelp_buf_append_i64(out, (int32_t)v.u32);
        break;
    case TRITONSERVER_TYPE_INT64:
        kelp_buf_append_i64(out, (int64_t)v.u64);
        break;
    case TRITONSERVER_TYPE_FP16:
        kelp_http_append_float(out, kelp_v2_float_from_half(v.u16));
        break;
    case TRITONSERVER_TYPE_BF16:
        v.u32 = (uint32_t)v.u16 << 16;
        kelp_http_append_float(out, v.f32);
        break;
    case TRITONSERVER_TYPE_FP32:
        kelp_http_append_float(out, v.f32);
        break;
    default:
        kelp_buf_append_f64(out, v.f64);
        break;
    }
}

kelp_status *kelp_v2_write_data(kelp_buf *out, const char *output, TRITONSERVER_DataType type,
                                const void *bytes, size_t size_bytes) {
    kelp_status *status = NULL;
    const unsigned char *p = bytes;
    kelp_buf_append_char(out, '[');
    if (type == TRITONSERVER_TYPE_BYTES) {
        status = write_strings(out, output, p, size_bytes);
    } else {
        size_t element = TRITONSERVER_DataTypeByteSize(type);
        if (element == 0)
            return KELP_ERROR(KELP_INTERNAL, "output '%s' has no data type", output);
        for (size_t at = 0; size_bytes - at >= element; at += element) {
            if (at)
                kelp_buf_append_char(out, ',');
            write_element(out, type, p + at);
        }
    }
    kelp_buf_append_char(out, ']');
    return status;
}
