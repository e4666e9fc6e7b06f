/* SPDX-License-Identifier: Apache-2.0 */
/* Cast and CastLike between number types, and from and to strings. Source: ONNX operator
 * specification, Cast-25. */
#include "base/assert.h"
#include "base/str.h"
#include "cpu/kernels/math/math_kernels.h"
#include "cpu/ops/kernel.h"
#include "tensor/convert.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

typedef void (*cast_fn)(const void *from, void *to, int64_t count);

typedef struct cast_job {
    const char *from;
    char *to;
    size_t from_size, to_size;
    cast_fn fn;
} cast_job;

/* Converts as x86-64 does if the value is outside the range of int64, where C is undefined.
 * Narrower integers wrap. */
static int64_t to_integer(double x) {
    return x >= -0x1p63 && x < 0x1p63 ? (int64_t)x : INT64_MIN;
}
static uint64_t to_unsigned(double x) {
    return x >= 0x1p63 && x < 0x1p64 ? (uint64_t)x : (uint64_t)to_integer(x);
}

#define READ_f32(p, i) ((const float *)(p))[i]
#define READ_f64(p, i) ((const double *)(p))[i]
#define READ_i8(p, i) ((const int8_t *)(p))[i]
#define READ_i16(p, i) ((const int16_t *)(p))[i]
#define READ_i32(p, i) ((const int32_t *)(p))[i]
#define READ_i64(p, i) ((const int64_t *)(p))[i]
#define READ_u8(p, i) ((const uint8_t *)(p))[i]
#define READ_u16(p, i) ((const uint16_t *)(p))[i]
#define READ_u32(p, i) ((const uint32_t *)(p))[i]
#define READ_u64(p, i) ((const uint64_t *)(p))[i]
/* a minimum, since a comparison keeps the compiler from vectorizing the conversion to floats */
#define READ_b8(p, i) (int8_t) KELP_MIN(((const uint8_t *)(p))[i], (uint8_t)1)
#define READ_f16(p, i) kelp_f16_to_f32(((const uint16_t *)(p))[i])
#define READ_bf16(p, i) kelp_bf16_to_f32(((const uint16_t *)(p))[i])

/* Rounds to odd, to a float whose rounding to 16 bits equals that of the original value. */
#define CUT_f32(x) (x)
#define CUT_f16(x) (x)
#define CUT_bf16(x) (x)
#define CUT_f64(x) kelp_f64_to_f32_odd(x)
#define CUT_b8(x) (float)(x)
#define CUT_i8(x) (float)(x)
#define CUT_u8(x) (float)(x)
#define CUT_i16(x) (float)(x)
#define CUT_u16(x) (float)(x)
#define CUT_i32(x) kelp_f64_to_f32_odd((double)(x))
#define CUT_u32(x) kelp_f64_to_f32_odd((double)(x))
#define CUT_i64(x) \
    kelp_f64_to_f32_odd(cut_whole((x) < 0 ? 0 - (uint64_t)(x) : (uint64_t)(x), (x) < 0))
#define CUT_u64(x) kelp_f64_to_f32_odd(cut_whole(x, false))
static double cut_whole(uint64_t magnitude, bool negative) {
    if (magnitude >> 53 != 0) /* bits that a double lacks set the last bit that it has */
        magnitude = (magnitude & ~(uint64_t)0x7ff) | ((magnitude & 0x7ff) != 0 ? 0x800 : 0);
    return negative ? -(double)magnitude : (double)magnitude;
}

#define FLOAT_SOURCES(X) X(f32, float) X(f64, double) X(f16, float) X(bf16, float)
/* clang-format changes this list each time it runs */
/* clang-format off */
#define INT_SOURCES(X)                                                              \
    X(i8, int8_t)                                                                   \
    X(i16, int16_t) X(i32, int32_t) X(i64, int64_t) X(u8, uint8_t) X(u16, uint16_t) \
        X(u32, uint32_t) X(u64, uint64_t) X(b8, int8_t)
/* clang-format on */

#define CAST(source, type, target, to_type, expression)                           \
    static void source##_to_##target(const void *from, void *to, int64_t count) { \
        for (int64_t i = 0; i < count; i++) {                                     \
            type x = READ_##source(from, i);                                      \
            ((to_type *)to)[i] = (to_type)(expression);                           \
        }                                                                         \
    }
#define TO_ALL(source, type, integer)                                     \
    CAST(source, type, f32, float, x)                                     \
    CAST(source, type, f64, double, x)                                    \
    CAST(source, type, b8, uint8_t, x != 0)                               \
    CAST(source, type, f16, uint16_t, kelp_f32_to_f16(CUT_##source(x)))   \
    CAST(source, type, bf16, uint16_t, kelp_f32_to_bf16(CUT_##source(x))) \
    CAST(source, type, i8, int8_t, integer(x))                            \
    CAST(source, type, i16, int16_t, integer(x))                          \
    CAST(source, type, i32, int32_t, integer(x))                          \
    CAST(source, type, i64, int64_t, integer(x))                          \
    CAST(source, type, u8, uint8_t, integer(x))                           \
    CAST(source, type, u16, uint16_t, integer(x))                         \
    CAST(source, type, u32, uint32_t, integer(x))
#define FROM_FLOAT(source, type) \
    TO_ALL(source, type, to_integer) CAST(source, type, u64, uint64_t, to_unsigned((double)x))
#define FROM_INT(source, type) TO_ALL(source, type, ) CAST(source, type, u64, uint64_t, x)
FLOAT_SOURCES(FROM_FLOAT)
INT_SOURCES(FROM_INT)

/* ---- vectorized ---- */
/* Floats that are truncated to int32 at a time, before they become narrower. */
#define BLOCK 1024

#define NARROWED(target, to_type)                                                 \
    static void narrowed_to_##target(const void *from, void *to, int64_t count) { \
        const kelp_math_kernels *kernels = kelp_math_kernels_get();               \
        int32_t block[BLOCK];                                                     \
        for (int64_t i = 0; i < count; i += BLOCK) {                              \
            int64_t n = KELP_MIN((int64_t)BLOCK, count - i);                      \
            kernels->to_i32((const float *)from + i, block, n);                   \
            for (int64_t k = 0; k < n; k++)                                       \
                ((to_type *)to)[i + k] = (to_type)block[k];                       \
        }                                                                         \
    }
NARROWED(i8, int8_t)
NARROWED(i16, int16_t)
static void whole_to_i32(const void *from, void *to, int64_t count) {
    kelp_math_kernels_get()->to_i32(from, to, count);
}
static void f16_widened(const void *from, void *to, int64_t count) {
    kelp_math_kernels_get()->from_f16(from, to, count);
}
static void bf16_widened(const void *from, void *to, int64_t count) {
    kelp_math_kernels_get()->from_bf16(from, to, count);
}
static void f16_rounded(const void *from, void *to, int64_t count) {
    kelp_math_kernels_get()->to_f16(from, to, count);
}
static void bf16_rounded(const void *from, void *to, int64_t count) {
    kelp_math_kernels_get()->to_bf16(from, to, count);
}

/* Returns the vectorized conversion, or NULL. Signs of the same width have the same bits. */
static cast_fn find_vectorized(kelp_dtype from, kelp_dtype to) {
    if (from == KELP_F16 && to == KELP_F32)
        return f16_widened;
    if (from == KELP_BF16 && to == KELP_F32)
        return bf16_widened;
    if (from != KELP_F32)
        return NULL;
    switch (to) {
    case KELP_I8:
    case KELP_U8:
        return narrowed_to_i8;
    case KELP_I16:
    case KELP_U16:
        return narrowed_to_i16;
    case KELP_I32:
    case KELP_U32:
        return whole_to_i32;
    case KELP_F16:
        return f16_rounded;
    case KELP_BF16:
        return bf16_rounded;
    default:
        return NULL;
    }
}

static cast_fn find_cast(kelp_dtype from, kelp_dtype to) {
#define ROW(source)                                                                               \
    {                                                                                             \
        [KELP_F32] = source##_to_f32, [KELP_F64] = source##_to_f64, [KELP_BOOL] = source##_to_b8, \
        [KELP_F16] = source##_to_f16, [KELP_BF16] = source##_to_bf16, [KELP_I8] = source##_to_i8, \
        [KELP_I16] = source##_to_i16, [KELP_I32] = source##_to_i32, [KELP_I64] = source##_to_i64, \
        [KELP_U8] = source##_to_u8, [KELP_U16] = source##_to_u16, [KELP_U32] = source##_to_u32,   \
        [KELP_U64] = source##_to_u64                                                              \
    }
    static const cast_fn table[KELP_BF16 + 1][KELP_BF16 + 1] = {
        [KELP_F32] = ROW(f32),   [KELP_F64] = ROW(f64), [KELP_F16] = ROW(f16),
        [KELP_BF16] = ROW(bf16), [KELP_BOOL] = ROW(b8), [KELP_I8] = ROW(i8),
        [KELP_I16] = ROW(i16),   [KELP_I32] = ROW(i32), [KELP_I64] = ROW(i64),
        [KELP_U8] = ROW(u8),     [KELP_U16] = ROW(u16), [KELP_U32] = ROW(u32),
        [KELP_U64] = ROW(u64)};
    return (int)from <= KELP_BF16 && (int)to <= KELP_BF16 ? table[from][to] : NULL;
}

/* ---- pairs of types that the table lacks, element by element ---- */
typedef struct element_rule { /* conversion to narrow floats */
    bool saturate;
    char round_mode; /* to F8E8M0: 'u'p, 'd'own, 'n'earest */
} element_rule;

static bool is_narrow(kelp_dtype dtype) {
    return dtype >= KELP_F8E4M3FN && dtype <= KELP_F6E3M2;
}
static bool is_packed_int(kelp_dtype dtype) {
    return dtype == KELP_U4 || dtype == KELP_I4 || dtype == KELP_U2 || dtype == KELP_I2;
}
static bool is_castable(kelp_dtype dtype) {
    return is_narrow(dtype) || find_cast(dtype, KELP_F64) != NULL;
}
static bool is_real(kelp_dtype dtype) {
    return kelp_ops_is_float(dtype) || (is_narrow(dtype) && !is_packed_int(dtype));
}

static double read_narrow(const kelp_tensor *x, int64_t index) {
    uint32_t bits = kelp_dtype_bits(x->dtype), per_byte = 8 / bits;
    KELP_ASSERT(is_narrow(x->dtype) && index >= 0);
    uint32_t shift = (uint32_t)(index % per_byte) * bits;
    int code = ((const uint8_t *)x->data)[index / per_byte] >> shift & ((1 << bits) - 1);
    if (!is_packed_int(x->dtype))
        return (double)kelp_narrow_to_f32(x->dtype, (uint8_t)code);
    bool negative = (x->dtype == KELP_I4 || x->dtype == KELP_I2) && code >> (bits - 1) != 0;
    return negative ? code - (1 << bits) : code;
}

static double read_real(const kelp_tensor *x, int64_t index) {
    return is_narrow(x->dtype) ? read_narrow(x, index) : kelp_ops_read_f64(x, index);
}
static int64_t read_whole(const kelp_tensor *x, int64_t index) {
    return is_narrow(x->dtype) ? (int64_t)read_narrow(x, index) : kelp_ops_read_i64(x, index);
}

static void write_code(kelp_tensor *y, int64_t index, uint32_t code) {
    uint32_t bits = kelp_dtype_bits(y->dtype), per_byte = 8 / bits, mask = (1u << bits) - 1;
    uint32_t shift = (uint32_t)(index % per_byte) * bits;
    uint8_t *byte = (uint8_t *)y->data + index / per_byte;
    /* the first element of a byte clears the others */
    uint32_t kept = shift == 0 ? 0 : *byte & ~(mask << shift);
    *byte = (uint8_t)(kept | (code & mask) << shift);
}

static void write_real(kelp_tensor *y, int64_t index, double value, const element_rule *rule) {
    if (!is_narrow(y->dtype))
        find_cast(KELP_F64, y->dtype)(
            &value, (char *)y->data + (size_t)index * kelp_ops_element_bytes(y->dtype), 1);
    else if (is_packed_int(y->dtype))
        write_code(y, index, (uint32_t)to_integer(value));
    else if (y->dtype == KELP_F8E8M0)
        write_code(y, index,
                   kelp_f32_to_e8m0(kelp_f64_to_f32_odd(value), rule->saturate, rule->round_mode));
    else
        write_code(y, index,
                   kelp_f32_to_narrow(y->dtype, kelp_f64_to_f32_odd(value), rule->saturate));
}
static void write_whole(kelp_tensor *y, int64_t index, int64_t value, const element_rule *rule) {
    if (is_packed_int(y->dtype))
        write_code(y, index, (uint32_t)value);
    else if (is_narrow(y->dtype))
        write_real(y, index, (double)value, rule);
    else
        find_cast(KELP_I64, y->dtype)(
            &value, (char *)y->data + (size_t)index * kelp_ops_element_bytes(y->dtype), 1);
}

/* Converts on one thread, because adjacent elements share bytes. */
static void cast_elements(const kelp_tensor *x, kelp_tensor *y, const element_rule *rule) {
    int64_t count = kelp_tensor_elements(x);
    for (int64_t i = 0; i < count; i++) {
        if (is_real(x->dtype) || x->dtype == KELP_U64)
            write_real(y, i, read_real(x, i), rule);
        else
            write_whole(y, i, read_whole(x, i), rule);
    }
}

static kelp_status *rule_of(const kelp_op_args *args, element_rule *out) {
    const char *mode = kelp_node_attr_string(args->node, "round_mode", "up", NULL);
    out->saturate = kelp_node_attr_i64(args->node, "saturate", 1) != 0;
    out->round_mode = mode[0];
    if (strcmp(mode, "up") != 0 && strcmp(mode, "down") != 0 && strcmp(mode, "nearest") != 0)
        return KELP_ERROR(KELP_INVALID_ARGUMENT,
                          "operator '%s': round_mode is '%s', expected up, down or nearest",
                          kelp_node_op_type(args->node), mode);
    return NULL;
}

static kelp_status *cast_reshape(kelp_op_args *args, kelp_dtype to) {
    const kelp_tensor *x = args->inputs[0];
    bool text = x->dtype == KELP_STRING || to == KELP_STRING;
    kelp_dtype other = x->dtype == KELP_STRING ? to : x->dtype;
    element_rule rule;
    KELP_TRY(rule_of(args, &rule));
    if (x->dtype != to && !(is_castable(other) && (text || is_castable(to))))
        return KELP_ERROR(
            KELP_UNIMPLEMENTED, "operator '%s' does not support the cast from %s to %s (type %d)",
            kelp_node_op_type(args->node), kelp_dtype_name(x->dtype), kelp_dtype_name(to), (int)to);
    if (to == KELP_STRING && x->dtype != to) { /* strings need memory of the run */
        args->deferred = x->data == NULL && kelp_tensor_elements(x) > 0;
        if (args->deferred)
            return NULL;
    }
    return kelp_ops_set(args, 0, to, x->rank, x->shape);
}

/* ---- strings ---- */
/* Formats a double with the fewest digits that identify it, other floats with 8 digits as ONNX
 * Runtime does. */
static size_t format_float(double value, kelp_dtype dtype, char *out) {
    if (dtype != KELP_F64) {
        (void)snprintf(out, 64, "%.8g", value);
        return kelp_plain_radix(out);
    }
    size_t length = kelp_format_f64(value, out);
    return length > 2 && memcmp(out + length - 2, ".0", 2) == 0 ? length - 2 : length;
}

static kelp_status *format_all(kelp_op_args *args) {
    const kelp_tensor *x = args->inputs[0];
    kelp_string *out = args->outputs[0]->data;
    int64_t count = kelp_tensor_elements(x);
    for (int64_t i = 0; i < count; i++) {
        char text[64];
        int length;
        if (is_real(x->dtype)) {
            double value = read_real(x, i);
            if (isinf(value))
                length = snprintf(text, sizeof text, value < 0 ? "-INF" : "INF");
            else if (isnan(value))
                length = snprintf(text, sizeof text, "NaN");
            else
                length = (int)format_float(value, x->dtype, text);
        } else if (x->dtype == KELP_U64) {
            length =
                snprintf(text, sizeof text, "%llu", (unsigned long long)kelp_ops_read_i64(x, i));
        } else {
            length = snprintf(text, sizeof text, "%lld", (long long)read_whole(x, i));
        }
        char *copy = kelp_op_env_alloc(args->env, (size_t)length + 1);
        if (copy == NULL)
            return kelp_status_oom();
        memcpy(copy, text, (size_t)length + 1);
        out[i] = (kelp_string){copy, (size_t)length};
    }
    return NULL;
}

/* Parses a number; accepts surrounding blanks, a sign, and infinity and NaN in any case. */
static bool parse_one(kelp_str s, double *out) {
    s = kelp_str_trim(s);
    bool negative = s.length > 0 && s.data[0] == '-';
    kelp_str rest =
        s.length > 0 && (negative || s.data[0] == '+') ? (kelp_str){s.data + 1, s.length - 1} : s;
    bool infinite = kelp_str_equal_nocase(rest, kelp_str_from("inf")) ||
                    kelp_str_equal_nocase(rest, kelp_str_from("infinity"));
    if (infinite || kelp_str_equal_nocase(rest, kelp_str_from("nan"))) {
        *out = !infinite ? (double)NAN : negative ? -(double)INFINITY : (double)INFINITY;
        return true;
    }
    return kelp_parse_f64(s, out);
}

static bool parse_whole(kelp_str s, int64_t *out) {
    uint64_t large = 0;
    s = kelp_str_trim(s);
    if (s.length > 1 && s.data[0] == '+')
        s = (kelp_str){s.data + 1, s.length - 1};
    if (kelp_parse_i64(s, out))
        return true;
    bool fits = kelp_parse_u64(s, &large);
    *out = (int64_t)large;
    return fits;
}

static kelp_status *parse_all(kelp_op_args *args, const element_rule *rule) {
    const kelp_string *in = args->inputs[0]->data;
    kelp_tensor *out = args->outputs[0];
    int64_t count = kelp_tensor_elements(out);
    for (int64_t i = 0; i < count; i++) {
        kelp_str text = {in[i].data, in[i].length};
        double value = 0;
        int64_t whole = 0;
        if (!is_real(out->dtype) && parse_whole(text, &whole))
            write_whole(out, i, whole, rule);
        else if (parse_one(text, &value))
            write_real(out, i, value, rule);
        else
            return KELP_ERROR(KELP_INVALID_ARGUMENT,
                              "operator '%s': element %lld is not a number: '%.*s'",
                              kelp_node_op_type(args->node), (long long)i,
                              (int)KELP_MIN(in[i].length, (size_t)100), in[i].data);
    }
    return NULL;
}

static void cast_range(void *userp, int64_t begin, int64_t end, int worker) {
    const cast_job *job = userp;
    (void)worker;
    job->fn(job->from + (size_t)begin * job->from_size, job->to + (size_t)begin * job->to_size,
            end - begin);
}

static kelp_status *cast_invoke(const void *state, kelp_op_args *args) {
    const kelp_tensor *x = args->inputs[0];
    kelp_tensor *y = args->outputs[0];
    element_rule rule;
    (void)state;
    KELP_ASSERT(kelp_tensor_elements(x) == kelp_tensor_elements(y));
    KELP_TRY(rule_of(args, &rule));
    if (x->dtype == y->dtype) {
        kelp_ops_memcpy(args->env, y->data, x->data, kelp_tensor_bytes(x));
        return NULL;
    }
    if (y->dtype == KELP_STRING)
        return format_all(args);
    if (x->dtype == KELP_STRING)
        return parse_all(args, &rule);
    if (find_cast(x->dtype, y->dtype) == NULL) {
        cast_elements(x, y, &rule);
        return NULL;
    }
    cast_fn vectorized = find_vectorized(x->dtype, y->dtype);
    cast_job job = {x->data, y->data, kelp_ops_element_bytes(x->dtype),
                    kelp_ops_element_bytes(y->dtype),
                    vectorized != NULL ? vectorized : find_cast(x->dtype, y->dtype)};
    kelp_op_parallel(args->env, kelp_tensor_elements(x),
                     (vectorized != NULL ? 2 : 1) * KELP_GRAIN_ELEMENTS, cast_range, &job);
    return NULL;
}

static kelp_status *reshape_Cast(const void *state, kelp_op_args *args) {
    (void)state;
    KELP_TRY(kelp_ops_check(args, 1));
    kelp_dtype to = kelp_ops_attr_dtype(args->node, "to", 0);
    if (kelp_ops_version(args) < 6) /* the name of a type */
        to = kelp_dtype_parse(kelp_node_attr_string(args->node, "to", "", NULL));
    return cast_reshape(args, to);
}
static kelp_status *reshape_CastLike(const void *state, kelp_op_args *args) {
    (void)state;
    KELP_TRY(kelp_ops_check(args, 2));
    return cast_reshape(args, args->inputs[1]->dtype);
}
KELP_KERNEL(Cast, 0, 0, 0, reshape_Cast, cast_invoke);
KELP_KERNEL(CastLike, 0, 0, 0, reshape_CastLike, cast_invoke);
