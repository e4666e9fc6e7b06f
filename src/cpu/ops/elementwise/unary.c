/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Elementwise operators of one tensor. Common float operators use vectorized kernels, the others
 * plain loops. Source: ONNX operator specification.
 */
#include "base/assert.h"
#include "cpu/ops/kernel.h"
#include "cpu/kernels/elementwise/elementwise_kernels.h"
#include "cpu/ops/converted.h"

#include <math.h>

typedef struct unary_plan {
    void (*fn)(const struct unary_plan *p, const void *x, void *y, int64_t count);
    void (*act)(const float *x, float *y, int64_t count);
    float alpha, beta;
    const char *x;
    char *y;
    size_t size;
} unary_plan;

typedef void (*unary_fn)(const unary_plan *p, const void *x, void *y, int64_t count);
typedef struct unary_entry {
    kelp_dtype dtype;
    unary_fn fn;
} unary_entry;

static void unary_act(const unary_plan *p, const void *x, void *y, int64_t count) {
    p->act(x, y, count);
}

static void unary_range(void *userp, int64_t begin, int64_t end, int worker) {
    const unary_plan *p = userp;
    (void)worker;
    p->fn(p, p->x + (size_t)begin * p->size, p->y + (size_t)begin * p->size, end - begin);
}

static kelp_status *unary_invoke(const void *state, kelp_op_args *args) {
    unary_plan *p = args->plan;
    (void)state;
    KELP_ASSERT(p->fn != NULL && args->inputs[0]->dtype == args->outputs[0]->dtype);
    p->x = args->inputs[0]->data;
    p->y = args->outputs[0]->data;
    p->size = kelp_ops_element_bytes(args->outputs[0]->dtype);
    kelp_op_parallel(args->env, kelp_tensor_elements(args->outputs[0]), KELP_GRAIN_ELEMENTS,
                     unary_range, p);
    return NULL;
}

static kelp_status *unary_reshape(kelp_op_args *args, const unary_entry *table, int act) {
    const kelp_elementwise_kernels *elementwise = kelp_elementwise_kernels_get();
    unary_plan *p = args->plan;
    KELP_TRY(kelp_ops_check(args, 1));
    kelp_dtype dtype = args->inputs[0]->dtype;
    p->fn = NULL;
    for (; table->fn != NULL && p->fn == NULL; table++)
        if (table->dtype == dtype)
            p->fn = table->fn;
    if (act >= 0 && dtype == KELP_F32) {
        p->fn = unary_act;
        p->act = elementwise->act[act];
    }
    if (p->fn == NULL)
        return kelp_ops_bad_type(args, dtype);
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

/* Defines an operator that also supports float16 and bfloat16, computed as float32. */
#define WIDENED(name)                                                                           \
    KELP_CONVERTED_PHASES(name, kelp_widened, sizeof(unary_plan), reshape_##name, unary_invoke) \
    KELP_KERNEL(name, KELP_OP_INPLACE_0, KELP_CONVERTED_PLAN(sizeof(unary_plan)), 0,            \
                name##_reshape_any, name##_invoke_any);
/* Defines an operator: its vectorized function or -1, its attributes, its loops. */
#define OPERATOR(name, act, attributes, ...)                                          \
    static kelp_status *reshape_##name(const void *state, kelp_op_args *args) {       \
        static const unary_entry table[] = {__VA_ARGS__, {KELP_DTYPE_INVALID, NULL}}; \
        unary_plan *p = args->plan;                                                   \
        const kelp_node *node = args->node;                                           \
        (void)state;                                                                  \
        (void)node;                                                                   \
        (void)p;                                                                      \
        attributes;                                                                   \
        return unary_reshape(args, table, act);                                       \
    }                                                                                 \
    WIDENED(name)
#define NOTHING (void)0
#define ALPHA(value) p->alpha = kelp_node_attr_f32(node, "alpha", value)
#define ALPHA_BETA(one, two) \
    ALPHA(one);              \
    p->beta = kelp_node_attr_f32(node, "beta", two)
#define FLOAT_OPERATOR(name, f32_expression, f64_expression) \
    FLOATS(name, f32_expression, f64_expression)             \
    OPERATOR(name, -1, NOTHING, FLOAT_ROWS(name))
#define SIMD_OPERATOR(name, act, f32_expression, f64_expression) \
    FLOATS(name, f32_expression, f64_expression)                 \
    OPERATOR(name, act, NOTHING, FLOAT_ROWS(name))

FLOATS(Neg, -x, -x)
SIGNED(Neg, (0 - (uint64_t)x))
OPERATOR(Neg, -1, NOTHING, FLOAT_ROWS(Neg), SIGNED_ROWS(Neg))
FLOATS(Abs, fabsf(x), fabs(x))
SIGNED(Abs, (x < 0 ? 0 - (uint64_t)x : (uint64_t)x))
UNSIGNED(Abs, x)
OPERATOR(Abs, -1, NOTHING, FLOAT_ROWS(Abs), SIGNED_ROWS(Abs), UNSIGNED_ROWS(Abs))
FLOATS(Sign, (x > 0 ? 1 : x < 0 ? -1 : x), (x > 0 ? 1 : x < 0 ? -1 : x))
SIGNED(Sign, (x > 0) - (x < 0))
UNSIGNED(Sign, x > 0)
OPERATOR(Sign, -1, NOTHING, FLOAT_ROWS(Sign), SIGNED_ROWS(Sign), UNSIGNED_ROWS(Sign))
FLOATS(Relu, (x < 0 ? 0 : x), (x < 0 ? 0 : x))
SIGNED(Relu, x < 0 ? 0 : x)
OPERATOR(Relu, KELP_ACT_RELU, NOTHING, FLOAT_ROWS(Relu), SIGNED_ROWS(Relu))
LOOP(Not, bool, uint8_t, x == 0)
OPERATOR(Not, -1, NOTHING, {KELP_BOOL, Not_bool})
SIGNED(BitwiseNot, ~x)
UNSIGNED(BitwiseNot, ~x)
OPERATOR(BitwiseNot, -1, NOTHING, SIGNED_ROWS(BitwiseNot), UNSIGNED_ROWS(BitwiseNot))

SIMD_OPERATOR(Exp, KELP_ACT_EXP, expf(x), exp(x))
FLOATS(Erf, erff(x), erf(x))
SIGNED(Erf, (float)erf((double)x)) /* truncated: 1 from x = 4 on */
UNSIGNED(Erf, (float)erf((double)x))
OPERATOR(Erf, KELP_ACT_ERF, NOTHING, FLOAT_ROWS(Erf), SIGNED_ROWS(Erf), UNSIGNED_ROWS(Erf))
SIMD_OPERATOR(Tanh, KELP_ACT_TANH, tanhf(x), tanh(x))
SIMD_OPERATOR(Sigmoid, KELP_ACT_SIGMOID, 1 / (1 + expf(-x)), 1 / (1 + exp(-x)))
SIMD_OPERATOR(Sqrt, KELP_ACT_SQRT, sqrtf(x), sqrt(x))
FLOAT_OPERATOR(Log, logf(x), log(x))
FLOAT_OPERATOR(Floor, floorf(x), floor(x))
FLOAT_OPERATOR(Ceil, ceilf(x), ceil(x))
FLOAT_OPERATOR(Round, rintf(x), rint(x))
FLOAT_OPERATOR(Reciprocal, 1 / x, 1 / x)
FLOAT_OPERATOR(Sin, sinf(x), sin(x))
FLOAT_OPERATOR(Cos, cosf(x), cos(x))
FLOAT_OPERATOR(Tan, tanf(x), tan(x))
FLOAT_OPERATOR(Asin, asinf(x), asin(x))
FLOAT_OPERATOR(Acos, acosf(x), acos(x))
FLOAT_OPERATOR(Atan, atanf(x), atan(x))
FLOAT_OPERATOR(Sinh, sinhf(x), sinh(x))
FLOAT_OPERATOR(Cosh, coshf(x), cosh(x))
FLOAT_OPERATOR(Asinh, asinhf(x), asinh(x))
FLOAT_OPERATOR(Acosh, acoshf(x), acosh(x))
FLOAT_OPERATOR(Atanh, atanhf(x), atanh(x))
FLOAT_OPERATOR(Softplus, fmaxf(x, 0) + log1pf(expf(-fabsf(x))), fmax(x, 0) + log1p(exp(-fabs(x))))
FLOAT_OPERATOR(Softsign, x / (1 + fabsf(x)), x / (1 + fabs(x)))
SIMD_OPERATOR(HardSwish, KELP_ACT_HARD_SWISH, x *fminf(fmaxf(x / 6 + 0.5f, 0), 1),
              x *fmin(fmax(x / 6 + 0.5, 0), 1))
FLOAT_OPERATOR(Mish, x *tanhf(fmaxf(x, 0) + log1pf(expf(-fabsf(x)))),
               x *tanh(fmax(x, 0) + log1p(exp(-fabs(x)))))

FLOATS(LeakyRelu, (x < 0 ? a * x : x), (x < 0 ? a * x : x))
OPERATOR(LeakyRelu, -1, ALPHA(0.01f), FLOAT_ROWS(LeakyRelu))
FLOATS(Elu, (x < 0 ? a * expm1f(x) : x), (x < 0 ? a * expm1(x) : x))
OPERATOR(Elu, -1, ALPHA(1.0f), FLOAT_ROWS(Elu))
FLOATS(Celu, (x > 0 ? x : a * expm1f(x / a)), (x > 0 ? x : a * expm1(x / a)))
OPERATOR(Celu, -1, ALPHA(1.0f), FLOAT_ROWS(Celu))
FLOATS(Selu, (x > 0 ? b * x : b * a * expm1f(x)), (x > 0 ? b * x : b * a * expm1(x)))
OPERATOR(Selu, -1, ALPHA(1.67326319217681884765625f);
         p->beta = kelp_node_attr_f32(node, "gamma", 1.05070102214813232421875f), FLOAT_ROWS(Selu))
FLOATS(ThresholdedRelu, (x > a ? x : 0), (x > a ? x : 0))
OPERATOR(ThresholdedRelu, -1, ALPHA(1.0f), FLOAT_ROWS(ThresholdedRelu))
/* comparisons, since fmin and fmax lose a NaN */
#define CLAMPED(v) ((v) < 0 ? 0 : (v) > 1 ? 1 : (v))
FLOATS(HardSigmoid, CLAMPED(a *x + b), CLAMPED(a *x + b))
OPERATOR(HardSigmoid, -1, ALPHA_BETA(0.2f, 0.5f), FLOAT_ROWS(HardSigmoid))
FLOATS(Swish, x / (1 + expf(-a * x)), x / (1 + exp(-a * x)))
OPERATOR(Swish, -1, ALPHA(1.0f), FLOAT_ROWS(Swish))
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
OPERATOR(Shrink, -1, p->alpha = kelp_node_attr_f32(node, "bias", 0.0f);
         p->beta = kelp_node_attr_f32(node, "lambd", 0.5f), FLOAT_ROWS(Shrink),
         {KELP_I8, Shrink_i8}, {KELP_I16, Shrink_i16}, {KELP_I32, Shrink_i32},
         {KELP_I64, Shrink_i64}, {KELP_U8, Shrink_u8}, {KELP_U16, Shrink_u16},
         {KELP_U32, Shrink_u32}, {KELP_U64, Shrink_u64})

/* ---- Gelu: two forms ---- */
FLOATS(Gelu, 0.5f * x * (1 + erff(x * 0.70710678f)), 0.5 * x * (1 + erf(x * M_SQRT1_2)))
LOOP(GeluTanh, f64, double, 0.5 * x * (1 + tanh(0.7978845608028654 * (x + 0.044715 * x * x * x))))
static kelp_status *reshape_Gelu(const void *state, kelp_op_args *args) {
    static const unary_entry none[] = {FLOAT_ROWS(Gelu), {KELP_DTYPE_INVALID, NULL}};
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
WIDENED(Gelu)

/* ---- IsNaN, IsInf: bool results ---- */
static kelp_status *test_reshape(const void *state, kelp_op_args *args) {
    (void)state;
    KELP_TRY(kelp_ops_check(args, 1));
    kelp_dtype dtype = args->inputs[0]->dtype;
    if (!kelp_ops_is_float(dtype) && !(dtype >= KELP_F8E4M3FN && dtype <= KELP_F8E5M2FNUZ))
        return kelp_ops_bad_type(args, dtype);
    return kelp_ops_set(args, 0, KELP_BOOL, args->inputs[0]->rank, args->inputs[0]->shape);
}
static kelp_status *isnan_invoke(const void *state, kelp_op_args *args) {
    uint8_t *out = args->outputs[0]->data;
    int64_t count = kelp_tensor_elements(args->outputs[0]);
    (void)state;
    for (int64_t i = 0; i < count; i++)
        out[i] = isnan(kelp_ops_read_f64(args->inputs[0], i)) != 0;
    return NULL;
}
static kelp_status *isinf_invoke(const void *state, kelp_op_args *args) {
    uint8_t *out = args->outputs[0]->data;
    int64_t count = kelp_tensor_elements(args->outputs[0]);
    bool negative = kelp_node_attr_i64(args->node, "detect_negative", 1) != 0;
    bool positive = kelp_node_attr_i64(args->node, "detect_positive", 1) != 0;
    (void)state;
    for (int64_t i = 0; i < count; i++) {
        double x = kelp_ops_read_f64(args->inputs[0], i);
        out[i] = isinf(x) && (x < 0 ? negative : positive);
    }
    return NULL;
}
KELP_KERNEL(IsNaN, 0, 0, 1, test_reshape, isnan_invoke);
KELP_KERNEL(IsInf, 0, 0, 1, test_reshape, isinf_invoke);
