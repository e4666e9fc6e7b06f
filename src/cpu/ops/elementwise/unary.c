/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Elementwise operators of one tensor. Common float operators use vectorized kernels, the others
 * plain loops. Source: ONNX operator specification.
 */
#include "base/assert.h"
#include "cpu/ops/kernel.h"
#include "cpu/kernels/elementwise/elementwise_kernels.h"
#include "cpu/kernels/math/math_kernels.h"

#include <math.h>

/* Elements of 16-bit floats that are converted at a time. */
#define BLOCK 1024

typedef struct unary_plan {
    void (*fn)(const struct unary_plan *p, const void *x, void *y, int64_t count);
    void (*act)(const float *x, float *y, int64_t count);
    void (*math)(const float *x, float *y, int64_t count, float a, float b);
    float alpha, beta;
    const char *x;
    char *y;
    size_t size;
    int64_t grain;
    kelp_dtype half; /* the type of 16-bit floats, which are computed as float32 */
} unary_plan;

typedef void (*unary_fn)(const unary_plan *p, const void *x, void *y, int64_t count);
typedef struct unary_entry {
    kelp_dtype dtype;
    unary_fn fn;
} unary_entry;

static void unary_act(const unary_plan *p, const void *x, void *y, int64_t count) {
    p->act(x, y, count);
}

static void unary_math(const unary_plan *p, const void *x, void *y, int64_t count) {
    p->math(x, y, count, p->alpha, p->beta);
}

/* Computes 16-bit floats in blocks of float32. */
static void unary_halves(const unary_plan *p, const char *x, char *y, int64_t count) {
    const kelp_math_kernels *kernels = kelp_math_kernels_get();
    bool is_f16 = p->half == KELP_F16;
    float block[BLOCK];
    for (int64_t i = 0; i < count; i += BLOCK) {
        int64_t n = KELP_MIN((int64_t)BLOCK, count - i);
        (is_f16 ? kernels->from_f16 : kernels->from_bf16)(x + i * 2, block, n);
        p->fn(p, block, block, n);
        (is_f16 ? kernels->to_f16 : kernels->to_bf16)(block, y + i * 2, n);
    }
}

static void unary_range(void *userp, int64_t begin, int64_t end, int worker) {
    const unary_plan *p = userp;
    const char *x = p->x + (size_t)begin * p->size;
    char *y = p->y + (size_t)begin * p->size;
    (void)worker;
    if (p->half != KELP_DTYPE_INVALID)
        unary_halves(p, x, y, end - begin);
    else
        p->fn(p, x, y, end - begin);
}

static kelp_status *unary_invoke(const void *state, kelp_op_args *args) {
    unary_plan *p = args->plan;
    (void)state;
    KELP_ASSERT(p->fn != NULL && args->inputs[0]->dtype == args->outputs[0]->dtype);
    p->x = args->inputs[0]->data;
    p->y = args->outputs[0]->data;
    p->size = kelp_ops_element_bytes(args->outputs[0]->dtype);
    kelp_op_parallel(args->env, kelp_tensor_elements(args->outputs[0]), p->grain, unary_range, p);
    return NULL;
}

/* The vectorized function of an operator: an activation, or one of the mathematical functions. */
#define BY_MATH(name) (KELP_ACT_COUNT + KELP_MATH_##name)
#define NOT_VECTORIZED (-1)

static kelp_status *unary_reshape(kelp_op_args *args, const unary_entry *table, int function) {
    unary_plan *p = args->plan;
    KELP_TRY(kelp_ops_check(args, 1));
    kelp_dtype dtype = args->inputs[0]->dtype;
    p->fn = NULL;
    p->half = dtype == KELP_F16 || dtype == KELP_BF16 ? dtype : KELP_DTYPE_INVALID;
    if (p->half != KELP_DTYPE_INVALID)
        dtype = KELP_F32;
    for (; table->fn != NULL && p->fn == NULL; table++)
        if (table->dtype == dtype)
            p->fn = table->fn;
    /* double uses the C library for the functions that are vectorized for float */
    p->grain = dtype == KELP_F64 && function >= 0 ? KELP_GRAIN_LIBM : KELP_GRAIN_ELEMENTS;
    if (dtype == KELP_F32 && function >= KELP_ACT_COUNT) {
        p->fn = unary_math;
        p->math = kelp_math_kernels_get()->fn[function - KELP_ACT_COUNT];
    } else if (dtype == KELP_F32 && function >= 0) {
        p->fn = unary_act;
        p->act = kelp_elementwise_kernels_get()->act[function];
    }
    if (p->fn == NULL)
        return kelp_ops_bad_type(args, args->inputs[0]->dtype);
    return kelp_ops_set_like(args, 0, args->inputs[0]);
}

/* A loop over elements of `type`; a and b are the plan's alpha and beta. */
#define LOOP(op, suffix, type, expression)                                                      \
    static void op##_##suffix(const unary_plan *p, const void *from, void *to, int64_t count) { \
        const type a = (type)p->alpha, b = (type)p->beta;                                       \
        const type *in = from;                                                                  \
        type *out = to;                                                                         \
        (void)a;                                                                                \
        (void)b;                                                                                \
        for (int64_t i = 0; i < count; i++) {                                                   \
            type x = in[i];                                                                     \
            out[i] = (type)(expression);                                                        \
        }                                                                                       \
    }
#define FLOATS(op, f32_expression, f64_expression) \
    LOOP(op, f32, float, f32_expression)           \
    LOOP(op, f64, double, f64_expression)
#define FLOAT_ROWS(op)      \
    {KELP_F32, op##_f32}, { \
        KELP_F64, op##_f64  \
    }
#define SIGNED(op, e)       \
    LOOP(op, i8, int8_t, e) \
    LOOP(op, i16, int16_t, e) LOOP(op, i32, int32_t, e) LOOP(op, i64, int64_t, e)
#define SIGNED_ROWS(op)                                               \
    {KELP_I8, op##_i8}, {KELP_I16, op##_i16}, {KELP_I32, op##_i32}, { \
        KELP_I64, op##_i64                                            \
    }
#define UNSIGNED(op, e)      \
    LOOP(op, u8, uint8_t, e) \
    LOOP(op, u16, uint16_t, e) LOOP(op, u32, uint32_t, e) LOOP(op, u64, uint64_t, e)
#define UNSIGNED_ROWS(op)                                             \
    {KELP_U8, op##_u8}, {KELP_U16, op##_u16}, {KELP_U32, op##_u32}, { \
        KELP_U64, op##_u64                                            \
    }

#define UNARY_KERNEL(name) \
    KELP_KERNEL(name, KELP_OP_INPLACE_0, sizeof(unary_plan), 0, reshape_##name, unary_invoke);
/* Defines an operator: its vectorized function or NOT_VECTORIZED, its attributes, its loops. 16-bit
 * floats are computed as float32. */
#define OPERATOR(name, function, attributes, ...)                                     \
    static kelp_status *reshape_##name(const void *state, kelp_op_args *args) {       \
        static const unary_entry table[] = {__VA_ARGS__, {KELP_DTYPE_INVALID, NULL}}; \
        unary_plan *p = args->plan;                                                   \
        const kelp_node *node = args->node;                                           \
        (void)state;                                                                  \
        (void)node;                                                                   \
        (void)p;                                                                      \
        attributes;                                                                   \
        return unary_reshape(args, table, function);                                  \
    }                                                                                 \
    UNARY_KERNEL(name)
#define NOTHING (void)0
#define ALPHA(value) p->alpha = kelp_node_attr_f32(node, "alpha", value)
#define ALPHA_BETA(one, two) \
    ALPHA(one);              \
    p->beta = kelp_node_attr_f32(node, "beta", two)
/* An operator of floats; those of 32 bits are vectorized. */
#define FLOAT_OPERATOR(name, function, attributes, f64_expression) \
    LOOP(name, f64, double, f64_expression)                        \
    OPERATOR(name, function, attributes, {KELP_F64, name##_f64})

LOOP(Neg, f64, double, -x)
SIGNED(Neg, (0 - (uint64_t)x))
OPERATOR(Neg, BY_MATH(NEG), NOTHING, {KELP_F64, Neg_f64}, SIGNED_ROWS(Neg))
LOOP(Abs, f64, double, fabs(x))
/* without a condition, which random signs make slow */
SIGNED(Abs, ((uint64_t)x ^ (0 - (uint64_t)(x < 0))) + (uint64_t)(x < 0))
UNSIGNED(Abs, x)
OPERATOR(Abs, BY_MATH(ABS), NOTHING, {KELP_F64, Abs_f64}, SIGNED_ROWS(Abs), UNSIGNED_ROWS(Abs))
FLOATS(Sign, (x > 0 ? 1 : x < 0 ? -1 : x), (x > 0 ? 1 : x < 0 ? -1 : x))
SIGNED(Sign, (x > 0) - (x < 0))
UNSIGNED(Sign, x > 0)
OPERATOR(Sign, NOT_VECTORIZED, NOTHING, FLOAT_ROWS(Sign), SIGNED_ROWS(Sign), UNSIGNED_ROWS(Sign))
LOOP(Relu, f64, double, (x < 0 ? 0 : x))
SIGNED(Relu, x < 0 ? 0 : x)
OPERATOR(Relu, KELP_ACT_RELU, NOTHING, {KELP_F64, Relu_f64}, SIGNED_ROWS(Relu))
LOOP(Not, bool, uint8_t, x == 0)
OPERATOR(Not, NOT_VECTORIZED, NOTHING, {KELP_BOOL, Not_bool})
SIGNED(BitwiseNot, ~x)
UNSIGNED(BitwiseNot, ~x)
OPERATOR(BitwiseNot, NOT_VECTORIZED, NOTHING, SIGNED_ROWS(BitwiseNot), UNSIGNED_ROWS(BitwiseNot))

LOOP(Erf, f64, double, erf(x))
SIGNED(Erf, (float)erf((double)x)) /* truncated: 1 from x = 4 on */
UNSIGNED(Erf, (float)erf((double)x))
OPERATOR(Erf, KELP_ACT_ERF, NOTHING, {KELP_F64, Erf_f64}, SIGNED_ROWS(Erf), UNSIGNED_ROWS(Erf))
FLOAT_OPERATOR(Exp, KELP_ACT_EXP, NOTHING, exp(x))
FLOAT_OPERATOR(Tanh, KELP_ACT_TANH, NOTHING, tanh(x))
FLOAT_OPERATOR(Sigmoid, KELP_ACT_SIGMOID, NOTHING, 1 / (1 + exp(-x)))
FLOAT_OPERATOR(Sqrt, KELP_ACT_SQRT, NOTHING, sqrt(x))
FLOAT_OPERATOR(HardSwish, KELP_ACT_HARD_SWISH, NOTHING, x *fmin(fmax(x / 6 + 0.5, 0), 1))
FLOAT_OPERATOR(Log, BY_MATH(LOG), NOTHING, log(x))
FLOAT_OPERATOR(Floor, BY_MATH(FLOOR), NOTHING, floor(x))
FLOAT_OPERATOR(Ceil, BY_MATH(CEIL), NOTHING, ceil(x))
FLOAT_OPERATOR(Round, BY_MATH(ROUND), NOTHING, rint(x))
FLOAT_OPERATOR(Reciprocal, BY_MATH(RECIPROCAL), NOTHING, 1 / x)
FLOAT_OPERATOR(Sin, BY_MATH(SIN), NOTHING, sin(x))
FLOAT_OPERATOR(Cos, BY_MATH(COS), NOTHING, cos(x))
FLOAT_OPERATOR(Tan, BY_MATH(TAN), NOTHING, tan(x))
FLOAT_OPERATOR(Asin, BY_MATH(ASIN), NOTHING, asin(x))
FLOAT_OPERATOR(Acos, BY_MATH(ACOS), NOTHING, acos(x))
FLOAT_OPERATOR(Atan, BY_MATH(ATAN), NOTHING, atan(x))
FLOAT_OPERATOR(Sinh, BY_MATH(SINH), NOTHING, sinh(x))
FLOAT_OPERATOR(Cosh, BY_MATH(COSH), NOTHING, cosh(x))
FLOAT_OPERATOR(Asinh, BY_MATH(ASINH), NOTHING, asinh(x))
FLOAT_OPERATOR(Acosh, BY_MATH(ACOSH), NOTHING, acosh(x))
FLOAT_OPERATOR(Atanh, BY_MATH(ATANH), NOTHING, atanh(x))
FLOAT_OPERATOR(Softplus, BY_MATH(SOFTPLUS), NOTHING, fmax(x, 0) + log1p(exp(-fabs(x))))
FLOAT_OPERATOR(Softsign, BY_MATH(SOFTSIGN), NOTHING, x / (1 + fabs(x)))
FLOAT_OPERATOR(Mish, BY_MATH(MISH), NOTHING, x *tanh(fmax(x, 0) + log1p(exp(-fabs(x)))))

FLOAT_OPERATOR(LeakyRelu, BY_MATH(LEAKY_RELU), ALPHA(0.01f), (x < 0 ? a * x : x))
FLOAT_OPERATOR(Elu, BY_MATH(ELU), ALPHA(1.0f), (x < 0 ? a * expm1(x) : x))
FLOATS(Celu, (x > 0 ? x : a * expm1f(x / a)), (x > 0 ? x : a * expm1(x / a)))
/* the vectorized function does not support the positive exponents of a negative alpha */
OPERATOR(Celu, kelp_node_attr_f32(node, "alpha", 1.0f) > 0 ? BY_MATH(CELU) : NOT_VECTORIZED,
         ALPHA(1.0f), FLOAT_ROWS(Celu))
#define SELU_ATTRIBUTES                \
    ALPHA(1.67326319217681884765625f); \
    p->beta = kelp_node_attr_f32(node, "gamma", 1.05070102214813232421875f)
FLOAT_OPERATOR(Selu, BY_MATH(SELU), SELU_ATTRIBUTES, (x > 0 ? b * x : b * a * expm1(x)))
FLOAT_OPERATOR(ThresholdedRelu, BY_MATH(THRESHOLD), ALPHA(1.0f), (x > a ? x : 0))
/* comparisons, since fmin and fmax lose a NaN */
#define CLAMPED(v) ((v) < 0 ? 0 : (v) > 1 ? 1 : (v))
FLOAT_OPERATOR(HardSigmoid, BY_MATH(HARD_SIGMOID), ALPHA_BETA(0.2f, 0.5f), CLAMPED(a *x + b))
FLOAT_OPERATOR(Swish, BY_MATH(SWISH), ALPHA(1.0f), x / (1 + exp(-a * x)))
FLOATS(Shrink, (x < -b ? x + a : x > b ? x - a : 0), (x < -b ? x + a : x > b ? x - a : 0))
/* integers are computed in double and truncated */
#define SHRINK_WHOLE(suffix, type)                                     \
    LOOP(Shrink, suffix, type,                                         \
         ((double)x < -(double)p->beta  ? (double)x + (double)p->alpha \
          : (double)x > (double)p->beta ? (double)x - (double)p->alpha \
                                        : 0))
SHRINK_WHOLE(i8, int8_t)
SHRINK_WHOLE(i16, int16_t)
SHRINK_WHOLE(i32, int32_t)
SHRINK_WHOLE(i64, int64_t)
SHRINK_WHOLE(u8, uint8_t)
SHRINK_WHOLE(u16, uint16_t)
SHRINK_WHOLE(u32, uint32_t)
SHRINK_WHOLE(u64, uint64_t)
OPERATOR(Shrink, NOT_VECTORIZED, p->alpha = kelp_node_attr_f32(node, "bias", 0.0f);
         p->beta = kelp_node_attr_f32(node, "lambd", 0.5f), FLOAT_ROWS(Shrink),
         {KELP_I8, Shrink_i8}, {KELP_I16, Shrink_i16}, {KELP_I32, Shrink_i32},
         {KELP_I64, Shrink_i64}, {KELP_U8, Shrink_u8}, {KELP_U16, Shrink_u16},
         {KELP_U32, Shrink_u32}, {KELP_U64, Shrink_u64})

/* ---- Gelu: two forms ---- */
LOOP(Gelu, f64, double, 0.5 * x * (1 + erf(x * M_SQRT1_2)))
LOOP(GeluTanh, f64, double, 0.5 * x * (1 + tanh(0.7978845608028654 * (x + 0.044715 * x * x * x))))
static kelp_status *reshape_Gelu(const void *state, kelp_op_args *args) {
    static const unary_entry none[] = {{KELP_F64, Gelu_f64}, {KELP_DTYPE_INVALID, NULL}};
    static const unary_entry tanh_form[] = {{KELP_F64, GeluTanh_f64}, {KELP_DTYPE_INVALID, NULL}};
    const char *form = kelp_node_attr_string(args->node, "approximate", "none", NULL);
    (void)state;
    if (strcmp(form, "tanh") == 0)
        return unary_reshape(args, tanh_form, KELP_ACT_GELU_TANH);
    if (strcmp(form, "none") != 0)
        return KELP_ERROR(KELP_INVALID_ARGUMENT,
                          "operator 'Gelu': attribute 'approximate' is '%s': expected 'none' or "
                          "'tanh'",
                          form);
    return unary_reshape(args, none, KELP_ACT_GELU);
}
UNARY_KERNEL(Gelu)

/* ---- IsNaN, IsInf: bool results ---- */
static kelp_status *test_reshape(const void *state, kelp_op_args *args) {
    (void)state;
    KELP_TRY(kelp_ops_check(args, 1));
    kelp_dtype dtype = args->inputs[0]->dtype;
    if (!kelp_ops_is_float(dtype) && !(dtype >= KELP_F8E4M3FN && dtype <= KELP_F8E5M2FNUZ))
        return kelp_ops_bad_type(args, dtype);
    return kelp_ops_set(args, 0, KELP_BOOL, args->inputs[0]->rank, args->inputs[0]->shape);
}
/* The bits of infinities. `above`: NaN, larger bits than those of infinity without the sign. */
typedef struct test_job {
    const kelp_tensor *x;
    uint8_t *y;
    bool above, positive, negative;
} test_job;

#define TEST_BITS(type, infinity)                                                      \
    do {                                                                               \
        const type sign = (type)((type)1 << (8 * sizeof(type) - 1)), top = (infinity); \
        const type plus = job->positive ? top : (type)(top | sign);                    \
        const type minus = job->negative ? (type)(top | sign) : plus;                  \
        const type *x = (const type *)job->x->data;                                    \
        const uint8_t any = job->positive || job->negative;                            \
        if (job->above)                                                                \
            for (int64_t i = begin; i < end; i++)                                      \
                y[i] = (type)(x[i] & (type)~sign) > top;                               \
        else                                                                           \
            for (int64_t i = begin; i < end; i++)                                      \
                y[i] = any & ((x[i] == plus) | (x[i] == minus));                       \
    } while (0)

static void test_range(void *userp, int64_t begin, int64_t end, int worker) {
    const test_job *job = userp;
    uint8_t *restrict y = job->y;
    (void)worker;
    switch (job->x->dtype) {
    case KELP_F32:
        TEST_BITS(uint32_t, 0x7f800000);
        break;
    case KELP_F64:
        TEST_BITS(uint64_t, 0x7ff0000000000000);
        break;
    case KELP_F16:
        TEST_BITS(uint16_t, 0x7c00);
        break;
    case KELP_BF16:
        TEST_BITS(uint16_t, 0x7f80);
        break;
    default:
        for (int64_t i = begin; i < end; i++) {
            double x = kelp_ops_read_f64(job->x, i);
            y[i] = job->above ? isnan(x) != 0 : isinf(x) && (x < 0 ? job->negative : job->positive);
        }
        break;
    }
}

static kelp_status *test_invoke(kelp_op_args *args, test_job job) {
    job.x = args->inputs[0];
    job.y = args->outputs[0]->data;
    kelp_op_parallel(args->env, kelp_tensor_elements(job.x), 2 * KELP_GRAIN_ELEMENTS, test_range,
                     &job);
    return NULL;
}
static kelp_status *isnan_invoke(const void *state, kelp_op_args *args) {
    (void)state;
    return test_invoke(args, (test_job){.above = true});
}
static kelp_status *isinf_invoke(const void *state, kelp_op_args *args) {
    (void)state;
    return test_invoke(
        args, (test_job){.positive = kelp_node_attr_i64(args->node, "detect_positive", 1),
                         .negative = kelp_node_attr_i64(args->node, "detect_negative", 1)});
}
KELP_KERNEL(IsNaN, 0, 0, 0, test_reshape, isnan_invoke);
KELP_KERNEL(IsInf, 0, 0, 0, test_reshape, isinf_invoke);
