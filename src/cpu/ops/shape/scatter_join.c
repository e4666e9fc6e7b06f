/* SPDX-License-Identifier: Apache-2.0 */
/* The reductions of ScatterElements and ScatterND. Source: ONNX operator specification. */
#include "cpu/ops/shape/scatter_join.h"

#include "base/assert.h"
#include "cpu/kernels/elementwise/elementwise_kernels.h"
#include "tensor/real.h"

#include <math.h>

enum { JOIN_SET, JOIN_ADD, JOIN_MUL, JOIN_MIN, JOIN_MAX, JOINS };

/* Defines the functions of one reduction and type. */
#define JOIN(name, type, expression)                                                           \
    static void scatter_##name(const kelp_join *join, char *to, const int64_t *offsets,        \
                               const char *from, const int32_t *sources, int64_t count) {      \
        type *y = (type *)(void *)to;                                                          \
        const type *x = (const type *)(const void *)from;                                      \
        (void)join;                                                                            \
        for (int64_t i = 0; i < count; i++) {                                                  \
            type a = y[offsets[i]], b = x[sources != NULL ? sources[i] : i];                   \
            (void)a;                                                                           \
            y[offsets[i]] = (type)(expression);                                                \
        }                                                                                      \
    }                                                                                          \
    static void row_##name(const kelp_join *join, char *to, const char *from, int64_t count) { \
        type *y = (type *)(void *)to;                                                          \
        const type *x = (const type *)(const void *)from;                                      \
        (void)join;                                                                            \
        for (int64_t i = 0; i < count; i++) {                                                  \
            type a = y[i], b = x[i];                                                           \
            (void)a;                                                                           \
            y[i] = (type)(expression);                                                         \
        }                                                                                      \
    }
#define SUMS(suffix, type)          \
    JOIN(add_##suffix, type, a + b) \
    JOIN(mul_##suffix, type, a *b)
#define LIMITS(suffix, type)                \
    JOIN(min_##suffix, type, a < b ? a : b) \
    JOIN(max_##suffix, type, a > b ? a : b)
SUMS(f32, float)
SUMS(f64, double)
/* signed integers wrap as unsigned ones do */
JOIN(add_8, uint8_t, (uint32_t)a + b)
JOIN(add_16, uint16_t, (uint32_t)a + b)
JOIN(add_32, uint32_t, a + b)
JOIN(add_64, uint64_t, a + b)
JOIN(mul_8, uint8_t, (uint32_t)a *b)
JOIN(mul_16, uint16_t, (uint32_t)a *b)
JOIN(mul_32, uint32_t, a *b)
JOIN(mul_64, uint64_t, a *b)
LIMITS(f32, float)
LIMITS(f64, double)
LIMITS(i8, int8_t)
LIMITS(i16, int16_t)
LIMITS(i32, int32_t)
LIMITS(i64, int64_t)
LIMITS(u8, uint8_t)
LIMITS(u16, uint16_t)
LIMITS(u32, uint32_t)
LIMITS(u64, uint64_t)

/* Sets elements, whose type does not matter. */
static void scatter_set(const kelp_join *join, char *to, const int64_t *offsets, const char *from,
                        const int32_t *sources, int64_t count) {
    switch (join->size) {
#define CASE(bytes)                                                                                \
    case bytes:                                                                                    \
        for (int64_t i = 0; i < count; i++)                                                        \
            memcpy(to + offsets[i] * (bytes), from + (sources != NULL ? sources[i] : i) * (bytes), \
                   (bytes));                                                                       \
        break;
        CASE(1)
        CASE(2)
        CASE(4)
        CASE(8)
#undef CASE
    default:
        for (int64_t i = 0; i < count; i++)
            memcpy(to + (size_t)offsets[i] * join->size,
                   from + (size_t)(sources != NULL ? sources[i] : i) * join->size, join->size);
        break;
    }
}
static void row_set(const kelp_join *join, char *to, const char *from, int64_t count) {
    memcpy(to, from, (size_t)count * join->size);
}

static void row_add_floats(const kelp_join *join, char *to, const char *from, int64_t count) {
    float *y = (float *)(void *)to;
    (void)join;
    kelp_elementwise_kernels_get()->bin[KELP_BIN_ADD](y, y, (const float *)(const void *)from,
                                                      count, 1, 1);
}

/* ---- 16-bit floats and bool ---- */
static void join_rare(const kelp_join *join, char *to, const char *from) {
    float a, b;
    kelp_real_load_f32(join->dtype, to, 0, 1, &a);
    kelp_real_load_f32(join->dtype, from, 0, 1, &b);
    a = join->how == JOIN_ADD   ? a + b
        : join->how == JOIN_MUL ? a * b
        : join->how == JOIN_MIN ? fminf(a, b)
                                : fmaxf(a, b);
    kelp_real_store_f32(join->dtype, to, 0, 1, &a);
}
static void scatter_rare(const kelp_join *join, char *to, const int64_t *offsets, const char *from,
                         const int32_t *sources, int64_t count) {
    for (int64_t i = 0; i < count; i++)
        join_rare(join, to + (size_t)offsets[i] * join->size,
                  from + (size_t)(sources != NULL ? sources[i] : i) * join->size);
}
static void row_rare(const kelp_join *join, char *to, const char *from, int64_t count) {
    for (int64_t i = 0; i < count; i++)
        join_rare(join, to + (size_t)i * join->size, from + (size_t)i * join->size);
}

#define ALL(dtype, add, mul, limits)                                               \
    {                                                                              \
        dtype,                                                                     \
            {NULL, scatter_add_##add, scatter_mul_##mul, scatter_min_##limits,     \
             scatter_max_##limits},                                                \
        {                                                                          \
            NULL, row_add_##add, row_mul_##mul, row_min_##limits, row_max_##limits \
        }                                                                          \
    }

kelp_status *kelp_join_read(const kelp_op_args *args, kelp_join *out) {
    static const struct {
        kelp_dtype dtype;
        void (*scatter[JOINS])(const kelp_join *join, char *to, const int64_t *offsets,
                               const char *from, const int32_t *sources, int64_t count);
        void (*row[JOINS])(const kelp_join *join, char *to, const char *from, int64_t count);
    } types[] = {ALL(KELP_F32, f32, f32, f32), ALL(KELP_F64, f64, f64, f64),
                 ALL(KELP_I8, 8, 8, i8),       ALL(KELP_I16, 16, 16, i16),
                 ALL(KELP_I32, 32, 32, i32),   ALL(KELP_I64, 64, 64, i64),
                 ALL(KELP_U8, 8, 8, u8),       ALL(KELP_U16, 16, 16, u16),
                 ALL(KELP_U32, 32, 32, u32),   ALL(KELP_U64, 64, 64, u64)};
    static const char *const names[JOINS] = {"none", "add", "mul", "min", "max"};
    const char *name = kelp_node_attr_string(args->node, "reduction", "none", NULL);
    kelp_dtype dtype = args->inputs[0]->dtype;
    int how = 0;
    while (how < JOINS && strcmp(name, names[how]) != 0)
        how++;
    if (how == JOINS)
        return KELP_ERROR(
            KELP_INVALID_ARGUMENT,
            "operator '%s': attribute 'reduction' is '%s': expected 'none', 'add', 'mul', "
            "'min' or 'max'",
            kelp_node_op_type(args->node), name);
    if (how > 0 && !kelp_real_takes(dtype))
        return kelp_ops_bad_type(args, dtype);
    *out = (kelp_join){.scatter = how == JOIN_SET ? scatter_set : scatter_rare,
                       .row = how == JOIN_SET ? row_set : row_rare,
                       .dtype = dtype,
                       .size = kelp_ops_element_bytes(dtype),
                       .how = how};
    for (size_t i = 0; how != JOIN_SET && i < KELP_COUNT(types); i++) {
        if (types[i].dtype != dtype)
            continue;
        out->scatter = types[i].scatter[how];
        out->row = types[i].row[how];
    }
    if (how == JOIN_ADD && dtype == KELP_F32)
        out->row = row_add_floats;
    return NULL;
}
