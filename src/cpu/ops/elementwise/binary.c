/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Elementwise operators of two tensors, and Min, Max, Sum, Mean of several, with NumPy's
 * broadcasting. Integers wrap; integer division by zero returns zero. 16-bit floats are converted
 * to float32 in blocks. Source: ONNX operator specification, Broadcasting in ONNX.
 */
#include "base/assert.h"
#include "cpu/ops/kernel.h"
#include "cpu/kernels/elementwise/elementwise_kernels.h"
#include "cpu/kernels/math/math_kernels.h"
#include "cpu/ops/converted.h"
#include "cpu/ops/variant.h"

#include <math.h>

/* Computes one row. Strides are 0 or 1. `y` may be `a` or `b`. */
typedef void (*binary_fn)(void *y, const void *a, const void *b, int64_t count, int a_stride,
                          int b_stride);
typedef struct binary_entry {
    kelp_dtype dtype;
    binary_fn fn;
} binary_entry;

/* Elements of 16-bit floats that are converted at a time. */
#define BLOCK 512

/* An operand of a row. */
typedef struct binary_side {
    kelp_dtype dtype; /* 16-bit floats are computed as float32 */
    size_t size;      /* bytes of an element */
    char *data;
} binary_side;

typedef struct binary_plan {
    kelp_bcast walk;
    binary_fn fn;
    void (*simd)(float *y, const float *a, const float *b, int64_t count, int a_stride,
                 int b_stride);
    binary_side a, b, y;
    bool rounds_once; /* intermediate results are float32 in scratch memory, */
    size_t sums;      /* at this offset */
    double divisor;   /* of Mean, after its last operand; 0: none */
} binary_plan;

static void set_side(binary_side *side, kelp_dtype dtype, void *data) {
    side->dtype = dtype;
    side->size = kelp_ops_element_bytes(dtype);
    side->data = data;
}

static bool is_converted(const binary_side *side) {
    return kelp_math_is_half(side->dtype);
}

static void divide_all(const binary_plan *p, void *y, int64_t count) {
    float divisor = (float)p->divisor;
    if (p->y.dtype != KELP_F64)
        kelp_elementwise_kernels_get()->bin[KELP_BIN_DIV](y, y, &divisor, count, 1, 0);
    else
        for (int64_t i = 0; i < count; i++)
            ((double *)y)[i] /= p->divisor;
}

static void run_typed(const binary_plan *p, void *y, const void *a, const void *b, int64_t count,
                      int64_t a_stride, int64_t b_stride) {
    if (p->simd != NULL)
        p->simd(y, a, b, count, (int)a_stride, (int)b_stride);
    else
        p->fn(y, a, b, count, (int)a_stride, (int)b_stride);
    if (p->divisor != 0)
        divide_all(p, y, count);
}

/* Returns `count` elements from `data` on, converted to `block` if they have 16 bits. */
static const void *load_block(const binary_side *side, const char *data, int64_t stride,
                              int64_t count, float *block) {
    if (!is_converted(side))
        return data;
    kelp_math_load(side->dtype, data, 0, stride == 0 ? 1 : count, block);
    return block;
}

static void run_blocks(const binary_plan *p, char *y, const char *a, const char *b, int64_t count,
                       int64_t a_stride, int64_t b_stride) {
    float left[BLOCK], right[BLOCK], sums[BLOCK];
    for (int64_t i = 0; i < count; i += BLOCK) {
        int64_t n = KELP_MIN((int64_t)BLOCK, count - i);
        const void *x =
            load_block(&p->a, a + (size_t)(i * a_stride) * p->a.size, a_stride, n, left);
        const void *z =
            load_block(&p->b, b + (size_t)(i * b_stride) * p->b.size, b_stride, n, right);
        char *to = y + (size_t)i * p->y.size;
        run_typed(p, is_converted(&p->y) ? (char *)sums : to, x, z, n, a_stride, b_stride);
        if (is_converted(&p->y))
            kelp_math_store(p->y.dtype, to, 0, n, sums);
    }
}

static void run_row(const binary_plan *p, int64_t row, int64_t first, int64_t count) {
    int64_t at[KELP_BCAST_MAX];
    kelp_bcast_row(&p->walk, row, at);
    int32_t last = p->walk.rank - 1;
    KELP_ASSERT(first >= 0 && first + count <= p->walk.inner);
    int64_t sa = p->walk.strides[0][last], sb = p->walk.strides[1][last];
    const char *a = p->a.data + (size_t)(at[0] + first * sa) * p->a.size;
    const char *b = p->b.data + (size_t)(at[1] + first * sb) * p->b.size;
    char *y = p->y.data + (size_t)(row * p->walk.inner + first) * p->y.size;
    if (is_converted(&p->a) || is_converted(&p->b) || is_converted(&p->y))
        run_blocks(p, y, a, b, count, sa, sb);
    else
        run_typed(p, y, a, b, count, sa, sb);
}

static void binary_rows(void *userp, int64_t begin, int64_t end, int worker) {
    const binary_plan *p = userp;
    (void)worker;
    for (int64_t row = begin; row < end; row++)
        run_row(p, row, 0, p->walk.inner);
}

static void binary_range(void *userp, int64_t begin, int64_t end, int worker) {
    const binary_plan *p = userp;
    (void)worker;
    run_row(p, 0, begin, end - begin);
}

static void binary_run(binary_plan *p, const kelp_op_env *env) {
    if (p->walk.outer == 1)
        kelp_op_parallel(env, p->walk.inner, KELP_GRAIN_ELEMENTS, binary_range, p);
    else if (p->walk.inner > 0)
        kelp_op_parallel(env, p->walk.outer, kelp_cpu_grain(KELP_GRAIN_ELEMENTS, p->walk.inner),
                         binary_rows, p);
}

static kelp_status *binary_invoke(const void *state, kelp_op_args *args) {
    binary_plan *p = args->plan;
    (void)state;
    KELP_ASSERT(p->fn != NULL && p->walk.operands == 2);
    KELP_ASSERT(p->walk.outer * p->walk.inner == kelp_tensor_elements(args->outputs[0]));
    set_side(&p->a, args->inputs[0]->dtype, args->inputs[0]->data);
    set_side(&p->b, args->inputs[1]->dtype, args->inputs[1]->data);
    set_side(&p->y, args->outputs[0]->dtype, args->outputs[0]->data);
    binary_run(p, args->env);
    return NULL;
}

/* Returns the function for the type; 16-bit floats are computed by that of float32. */
static binary_fn find_entry(const binary_entry *table, kelp_dtype dtype) {
    dtype = kelp_math_is_half(dtype) ? KELP_F32 : dtype;
    for (; table->fn != NULL; table++)
        if (table->dtype == dtype)
            return table->fn;
    return NULL;
}

/* Aligns the axes of the second operand to the first as before opset 7: from attribute "axis" on,
 * by default to the last axes; PRelu's slope to the channels. */
static void align_second(const kelp_op_args *args, const kelp_tensor *a, kelp_tensor *inout_b) {
    bool slope = kelp_op_variant_of(args->node) == KELP_VARIANT_CHANNEL_SLOPE;
    int64_t axis = a->rank - inout_b->rank;
    if (slope && inout_b->rank == 1 && a->rank > 2 && inout_b->shape[0] != 1)
        axis = 1;
    else if (kelp_node_attr_type(args->node, "axis") == KELP_ATTR_INT)
        axis = kelp_node_attr_i64(args->node, "axis", axis);
    if (axis < 0)
        axis += a->rank;
    int64_t trailing = axis >= 0 ? a->rank - axis - inout_b->rank : 0;
    for (; trailing > 0; trailing--)
        inout_b->shape[inout_b->rank++] = 1;
    kelp_ops_strides(inout_b->rank, inout_b->shape, inout_b->strides);
}

/* Implements reshape. `out_dtype` INVALID: the type of the inputs. */
static kelp_status *binary_reshape(kelp_op_args *args, const binary_entry *table, int simd,
                                   kelp_dtype out_dtype) {
    const kelp_elementwise_kernels *elementwise = kelp_elementwise_kernels_get();
    binary_plan *p = args->plan;
    KELP_TRY(kelp_ops_check(args, 2));
    kelp_tensor aligned = *args->inputs[1];
    const kelp_tensor *a = args->inputs[0], *b = &aligned;
    if (kelp_ops_version(args) < 7 && *kelp_node_domain(args->node) == '\0')
        align_second(args, a, &aligned);
    if (a->dtype != b->dtype)
        return KELP_ERROR(
            KELP_INVALID_ARGUMENT, "operator '%s' expects two tensors of one type: found %s and %s",
            kelp_node_op_type(args->node), kelp_dtype_name(a->dtype), kelp_dtype_name(b->dtype));
    p->divisor = 0;
    p->fn = find_entry(table, a->dtype);
    p->simd = simd >= 0 && p->fn == find_entry(table, KELP_F32) ? elementwise->bin[simd] : NULL;
    if (p->fn == NULL)
        return kelp_ops_bad_type(args, a->dtype);
    int32_t rank = a->rank;
    int64_t shape[KELP_MAX_RANK];
    memcpy(shape, a->shape, sizeof shape);
    if (!kelp_ops_broadcast_shape(&rank, shape, b->rank, b->shape))
        return kelp_ops_bad_shapes(args, a, b, "the shapes do not broadcast");
    if (out_dtype == KELP_DTYPE_INVALID)
        out_dtype = a->dtype;
    KELP_TRY(kelp_ops_set(args, 0, out_dtype, rank, shape));
    kelp_bcast_init(&p->walk, rank, shape, (const kelp_tensor *const[]){a, b}, 2);
    return NULL;
}

/* The loop is instantiated for each combination of strides, so that they are constants. */
#define LOOP_OVER(type, out_type, expression, a_step, b_step) \
    for (int64_t i = 0; i < count; i++) {                     \
        type a = pa[i * (a_step)], b = pb[i * (b_step)];      \
        (void)a, (void)b;                                     \
        out[i] = (out_type)(expression);                      \
    }
#define LOOP(op, suffix, type, out_type, expression)                                        \
    static void op##_##suffix(void *to, const void *left, const void *right, int64_t count, \
                              int a_stride, int b_stride) {                                 \
        const type *pa = left, *pb = right;                                                 \
        out_type *out = to;                                                                 \
        if (a_stride != 0 && b_stride != 0)                                                 \
            LOOP_OVER(type, out_type, expression, 1, 1)                                     \
        else if (a_stride != 0)                                                             \
            LOOP_OVER(type, out_type, expression, 1, 0)                                     \
        else                                                                                \
            LOOP_OVER(type, out_type, expression, 0, b_stride)                              \
    }
#define FLOATS(op, single, wide)        \
    LOOP(op, f32, float, float, single) \
    LOOP(op, f64, double, double, wide)
#define FLOAT_ROWS(op)      \
    {KELP_F32, op##_f32}, { \
        KELP_F64, op##_f64  \
    }
#define SIGNED(op, e)                  \
    LOOP(op, i8, int8_t, int8_t, e)    \
    LOOP(op, i16, int16_t, int16_t, e) \
    LOOP(op, i32, int32_t, int32_t, e) \
    LOOP(op, i64, int64_t, int64_t, e)
#define UNSIGNED(op, e)                  \
    LOOP(op, u8, uint8_t, uint8_t, e)    \
    LOOP(op, u16, uint16_t, uint16_t, e) \
    LOOP(op, u32, uint32_t, uint32_t, e) \
    LOOP(op, u64, uint64_t, uint64_t, e)
#define SIGNED_ROWS(op)                                               \
    {KELP_I8, op##_i8}, {KELP_I16, op##_i16}, {KELP_I32, op##_i32}, { \
        KELP_I64, op##_i64                                            \
    }
#define UNSIGNED_ROWS(op)                                             \
    {KELP_U8, op##_u8}, {KELP_U16, op##_u16}, {KELP_U32, op##_u32}, { \
        KELP_U64, op##_u64                                            \
    }
#define NUMBER_ROWS(op) FLOAT_ROWS(op), SIGNED_ROWS(op), UNSIGNED_ROWS(op)

#define BINARY(name, flags, reshape_fn, invoke_fn) \
    KELP_KERNEL(name, flags, sizeof(binary_plan), 0, reshape_fn, invoke_fn);
#define OPERATOR(name, simd, out_dtype, flags, ...)                                       \
    static const binary_entry name##_table[] = {__VA_ARGS__, {KELP_DTYPE_INVALID, NULL}}; \
    static kelp_status *reshape_##name(const void *state, kelp_op_args *args) {           \
        (void)state;                                                                      \
        return binary_reshape(args, name##_table, simd, out_dtype);                       \
    }                                                                                     \
    BINARY(name, flags, reshape_##name, binary_invoke)
#define INPLACE (KELP_OP_INPLACE_0 | KELP_OP_INPLACE_1)
/* Rows of unsigned integers whose results have the bits of the signed ones. */
#define SAME_BITS_ROWS(op)                                            \
    {KELP_U8, op##_i8}, {KELP_U16, op##_i16}, {KELP_U32, op##_i32}, { \
        KELP_U64, op##_i64                                            \
    }
#define ARITHMETIC(name, simd)                                                             \
    OPERATOR(name, simd, KELP_DTYPE_INVALID, INPLACE, FLOAT_ROWS(name), SIGNED_ROWS(name), \
             SAME_BITS_ROWS(name))

FLOATS(Add, a + b, a + b)
SIGNED(Add, (uint64_t)a + (uint64_t)b)
ARITHMETIC(Add, KELP_BIN_ADD)
FLOATS(Sub, a - b, a - b)
SIGNED(Sub, (uint64_t)a - (uint64_t)b)
ARITHMETIC(Sub, KELP_BIN_SUB)
FLOATS(Mul, a *b, a *b)
SIGNED(Mul, (uint64_t)a *(uint64_t)b)
ARITHMETIC(Mul, KELP_BIN_MUL)
FLOATS(Div, a / b, a / b)
/* the minimum divided by -1 overflows and wraps to itself */
SIGNED(Div, (b == 0 ? 0 : b == -1 ? (int64_t)(0 - (uint64_t)a) : (int64_t)(a / b)))
UNSIGNED(Div, b == 0 ? 0 : a / b)
static void divide_i32(void *to, const void *left, const void *right, int64_t count, int a_stride,
                       int b_stride) {
    kelp_math_kernels_get()->divide_i32(to, left, right, count, a_stride, b_stride);
}
OPERATOR(Div, KELP_BIN_DIV, KELP_DTYPE_INVALID, INPLACE, {KELP_I32, divide_i32}, NUMBER_ROWS(Div))

LOOP(And, bool, uint8_t, uint8_t, (a != 0) & (b != 0))
OPERATOR(And, -1, KELP_BOOL, INPLACE, {KELP_BOOL, And_bool})
LOOP(Or, bool, uint8_t, uint8_t, (a != 0) | (b != 0))
OPERATOR(Or, -1, KELP_BOOL, INPLACE, {KELP_BOOL, Or_bool})
LOOP(Xor, bool, uint8_t, uint8_t, (a != 0) ^ (b != 0))
OPERATOR(Xor, -1, KELP_BOOL, INPLACE, {KELP_BOOL, Xor_bool})
SIGNED(BitwiseAnd, a &b)
OPERATOR(BitwiseAnd, -1, KELP_DTYPE_INVALID, INPLACE, SIGNED_ROWS(BitwiseAnd),
         SAME_BITS_ROWS(BitwiseAnd))
SIGNED(BitwiseOr, a | b)
OPERATOR(BitwiseOr, -1, KELP_DTYPE_INVALID, INPLACE, SIGNED_ROWS(BitwiseOr),
         SAME_BITS_ROWS(BitwiseOr))
SIGNED(BitwiseXor, a ^ b)
OPERATOR(BitwiseXor, -1, KELP_DTYPE_INVALID, INPLACE, SIGNED_ROWS(BitwiseXor),
         SAME_BITS_ROWS(BitwiseXor))

#define COMPARE(name, op)                      \
    LOOP(name, f32, float, uint8_t, a op b)    \
    LOOP(name, f64, double, uint8_t, a op b)   \
    LOOP(name, i8, int8_t, uint8_t, a op b)    \
    LOOP(name, i16, int16_t, uint8_t, a op b)  \
    LOOP(name, i32, int32_t, uint8_t, a op b)  \
    LOOP(name, i64, int64_t, uint8_t, a op b)  \
    LOOP(name, u8, uint8_t, uint8_t, a op b)   \
    LOOP(name, u16, uint16_t, uint8_t, a op b) \
    LOOP(name, u32, uint32_t, uint8_t, a op b) \
    LOOP(name, u64, uint64_t, uint8_t, a op b)
COMPARE(Greater, >)
OPERATOR(Greater, -1, KELP_BOOL, 0, NUMBER_ROWS(Greater))
COMPARE(GreaterOrEqual, >=)
OPERATOR(GreaterOrEqual, -1, KELP_BOOL, 0, NUMBER_ROWS(GreaterOrEqual))
COMPARE(Less, <)
OPERATOR(Less, -1, KELP_BOOL, 0, NUMBER_ROWS(Less))
COMPARE(LessOrEqual, <=)
OPERATOR(LessOrEqual, -1, KELP_BOOL, 0, NUMBER_ROWS(LessOrEqual))
COMPARE(Equal, ==)
static void Equal_string(void *to, const void *left, const void *right, int64_t count, int a_stride,
                         int b_stride) {
    const kelp_string *a = left, *b = right;
    uint8_t *out = to;
    for (int64_t i = 0; i < count; i++, a += a_stride, b += b_stride)
        out[i] =
            a->length == b->length && (a->length == 0 || memcmp(a->data, b->data, a->length) == 0);
}
OPERATOR(Equal, -1, KELP_BOOL, 0, NUMBER_ROWS(Equal), {KELP_BOOL, Equal_u8},
         {KELP_STRING, Equal_string})

FLOATS(PRelu, (a < 0 ? a * b : a), (a < 0 ? a * b : a))
LOOP(PRelu, i32, int32_t, int32_t, (a < 0 ? (uint32_t)a * (uint32_t)b : (uint32_t)a))
LOOP(PRelu, i64, int64_t, int64_t, (a < 0 ? (uint64_t)a * (uint64_t)b : (uint64_t)a))
LOOP(PRelu, u32, uint32_t, uint32_t, a)
LOOP(PRelu, u64, uint64_t, uint64_t, a)
OPERATOR(PRelu, KELP_BIN_PRELU, KELP_DTYPE_INVALID, KELP_OP_INPLACE_0, FLOAT_ROWS(PRelu),
         {KELP_I32, PRelu_i32}, {KELP_I64, PRelu_i64}, {KELP_U32, PRelu_u32}, {KELP_U64, PRelu_u64})

/* ---- Mod: the sign of the divisor, also of a zero; with fmod that of the dividend ---- */
static void Mod_f32(void *to, const void *left, const void *right, int64_t count, int a_stride,
                    int b_stride) {
    kelp_math_kernels_get()->fmod(to, left, right, count, a_stride, b_stride, true);
}
static void FMod_f32(void *to, const void *left, const void *right, int64_t count, int a_stride,
                     int b_stride) {
    kelp_math_kernels_get()->fmod(to, left, right, count, a_stride, b_stride, false);
}
static void modulo_i32(void *to, const void *left, const void *right, int64_t count, int a_stride,
                       int b_stride) {
    kelp_math_kernels_get()->remainder_i32(to, left, right, count, a_stride, b_stride, true);
}
static void remainder_i32(void *to, const void *left, const void *right, int64_t count,
                          int a_stride, int b_stride) {
    kelp_math_kernels_get()->remainder_i32(to, left, right, count, a_stride, b_stride, false);
}
static void Mod_f64(void *to, const void *left, const void *right, int64_t count, int a_stride,
                    int b_stride) {
    const double *pa = left, *pb = right;
    for (int64_t i = 0; i < count; i++) {
        double a = pa[i * a_stride], b = pb[i * b_stride], x;
        x = fmod(a, b);
        ((double *)to)[i] = b == 0 ? NAN : x == 0 ? copysign(x, b) : (x < 0) != (b < 0) ? x + b : x;
    }
}
static int64_t floor_mod(int64_t a, int64_t b) {
    int64_t x = b == 0 || b == -1 ? 0 : a % b;
    return x != 0 && (x < 0) != (b < 0) ? x + b : x;
}
SIGNED(Mod, floor_mod(a, b))
UNSIGNED(Mod, (b == 0 ? 0 : a % b))
LOOP(FMod, f64, double, double, fmod(a, b))
SIGNED(FMod, (b == 0 || b == -1 ? 0 : a % b))
static kelp_status *reshape_Mod(const void *state, kelp_op_args *args) {
    static const binary_entry floored[] = {
        {KELP_I32, modulo_i32}, NUMBER_ROWS(Mod), {KELP_DTYPE_INVALID, NULL}};
    static const binary_entry truncated[] = {{KELP_I32, remainder_i32},
                                             FLOAT_ROWS(FMod),
                                             SIGNED_ROWS(FMod),
                                             UNSIGNED_ROWS(Mod),
                                             {KELP_DTYPE_INVALID, NULL}};
    bool fmod_form = kelp_node_attr_i64(args->node, "fmod", 0) != 0;
    (void)state;
    return binary_reshape(args, fmod_form ? truncated : floored, -1, KELP_DTYPE_INVALID);
}
BINARY(Mod, INPLACE, reshape_Mod, binary_invoke)

/* ---- BitShift ---- */
UNSIGNED(ShiftLeft, (b >= 8 * sizeof a ? 0 : (uint64_t)a << b))
UNSIGNED(ShiftRight, (b >= 8 * sizeof a ? 0 : (uint64_t)a >> b))
/* Signed integers are shifted right arithmetically; bits shifted out to the left are lost. */
SIGNED(ShiftLeft, (b < 0 || b >= 8 * (int64_t)sizeof a ? 0 : (uint64_t)a << b))
SIGNED(ShiftRight, (b < 0 || b >= 8 * (int64_t)sizeof a ? (a < 0 ? -1 : 0) : a >> b))
static kelp_status *reshape_BitShift(const void *state, kelp_op_args *args) {
    static const binary_entry left[] = {
        UNSIGNED_ROWS(ShiftLeft), SIGNED_ROWS(ShiftLeft), {KELP_DTYPE_INVALID, NULL}};
    static const binary_entry right[] = {
        UNSIGNED_ROWS(ShiftRight), SIGNED_ROWS(ShiftRight), {KELP_DTYPE_INVALID, NULL}};
    const char *direction = kelp_node_attr_string(args->node, "direction", "", NULL);
    (void)state;
    if (strcmp(direction, "LEFT") != 0 && strcmp(direction, "RIGHT") != 0)
        return KELP_ERROR(KELP_INVALID_ARGUMENT,
                          "operator 'BitShift': attribute 'direction' is '%s': expected 'LEFT' or "
                          "'RIGHT'",
                          direction);
    return binary_reshape(args, *direction == 'L' ? left : right, -1, KELP_DTYPE_INVALID);
}
KELP_KERNEL(BitShift, INPLACE, sizeof(binary_plan), 0, reshape_BitShift, binary_invoke);

/* ---- Min, Max, Sum, Mean: of any number of tensors ---- */
FLOATS(Min, (a < b || a != a ? a : b), (a < b || a != a ? a : b))
SIGNED(Min, KELP_MIN(a, b))
UNSIGNED(Min, KELP_MIN(a, b))
FLOATS(Max, (a > b || a != a ? a : b), (a > b || a != a ? a : b))
SIGNED(Max, KELP_MAX(a, b))
UNSIGNED(Max, KELP_MAX(a, b))
static const binary_entry Min_table[] = {NUMBER_ROWS(Min), {KELP_DTYPE_INVALID, NULL}};
static const binary_entry Max_table[] = {NUMBER_ROWS(Max), {KELP_DTYPE_INVALID, NULL}};
static const binary_entry float_add[] = {FLOAT_ROWS(Add), {KELP_DTYPE_INVALID, NULL}};

static kelp_status *variadic_reshape(kelp_op_args *args, const binary_entry *table, int simd) {
    const kelp_elementwise_kernels *elementwise = kelp_elementwise_kernels_get();
    binary_plan *p = args->plan;
    KELP_TRY(kelp_ops_check(args, args->input_count));
    KELP_TRY(kelp_ops_check(args, 1));
    const kelp_tensor *first = args->inputs[0];
    int32_t rank = first->rank;
    int64_t shape[KELP_MAX_RANK];
    memcpy(shape, first->shape, sizeof shape);
    p->divisor = 0;
    p->fn = find_entry(table, first->dtype);
    p->simd = simd >= 0 && p->fn == find_entry(table, KELP_F32) ? elementwise->bin[simd] : NULL;
    if (p->fn == NULL)
        return kelp_ops_bad_type(args, first->dtype);
    for (int32_t i = 1; i < args->input_count; i++) {
        const kelp_tensor *next = args->inputs[i];
        if (next->dtype != first->dtype ||
            !kelp_ops_broadcast_shape(&rank, shape, next->rank, next->shape))
            return kelp_ops_bad_shapes(args, first, next,
                                       "types differ or shapes do not broadcast");
    }
    KELP_TRY(kelp_ops_set(args, 0, first->dtype, rank, shape));
    p->rounds_once = kelp_math_is_half(first->dtype) && args->input_count > 2;
    return p->rounds_once ? kelp_ops_scratch(args, kelp_tensor_elements(args->outputs[0]),
                                             sizeof(float), &p->sums)
                          : NULL;
}

/* Combines all inputs and divides the result by `divisor`, if it is not 0. */
static void combine(kelp_op_args *args, double divisor) {
    binary_plan *p = args->plan;
    const kelp_tensor *out = args->outputs[0], *pair[2] = {args->inputs[0], NULL};
    kelp_tensor sums = *out;
    KELP_ASSERT(args->input_count > 0);
    if (args->input_count == 1) {
        kelp_ops_memcpy(args->env, out->data, pair[0]->data, kelp_tensor_bytes(out));
        return;
    }
    if (p->rounds_once) {
        sums.dtype = KELP_F32;
        sums.data = kelp_ops_scratch_at(args, p->sums);
    }
    for (int32_t i = 1; i < args->input_count; i++) {
        bool is_last = i + 1 == args->input_count;
        const kelp_tensor *result = is_last ? out : &sums;
        pair[1] = args->inputs[i];
        kelp_bcast_init(&p->walk, out->rank, out->shape, pair, 2);
        set_side(&p->a, pair[0]->dtype, pair[0]->data);
        set_side(&p->b, pair[1]->dtype, pair[1]->data);
        set_side(&p->y, result->dtype, result->data);
        p->divisor = is_last ? divisor : 0;
        binary_run(p, args->env);
        pair[0] = result;
    }
}

static kelp_status *variadic_invoke(const void *state, kelp_op_args *args) {
    (void)state;
    combine(args, 0);
    return NULL;
}

static kelp_status *mean_invoke(const void *state, kelp_op_args *args) {
    (void)state;
    combine(args, (double)args->input_count);
    return NULL;
}

#define VARIADIC(name, table, simd, invoke)                                     \
    static kelp_status *reshape_##name(const void *state, kelp_op_args *args) { \
        (void)state;                                                            \
        return variadic_reshape(args, table, simd);                             \
    }                                                                           \
    BINARY(name, 0, reshape_##name, invoke)
VARIADIC(Min, Min_table, KELP_BIN_MIN, variadic_invoke)
VARIADIC(Max, Max_table, KELP_BIN_MAX, variadic_invoke)
VARIADIC(Sum, float_add, KELP_BIN_ADD, variadic_invoke)
VARIADIC(Mean, float_add, KELP_BIN_ADD, mean_invoke)

/* ---- Pow: the exponent has a type of its own ---- */
/* Floats whose exponents are converted at a time. */
#define POW_BLOCK 256

static kelp_status *pow_reshape(const void *state, kelp_op_args *args) {
    binary_plan *p = args->plan;
    (void)state;
    KELP_TRY(kelp_ops_check(args, 2));
    const kelp_tensor *a = args->inputs[0], *b = args->inputs[1];
    int32_t rank = a->rank;
    int64_t shape[KELP_MAX_RANK];
    memcpy(shape, a->shape, sizeof shape);
    if (!kelp_ops_broadcast_shape(&rank, shape, b->rank, b->shape))
        return kelp_ops_bad_shapes(args, a, b, "the shapes do not broadcast");
    if (a->dtype != KELP_F32 && a->dtype != KELP_F64 && a->dtype != KELP_I32 &&
        a->dtype != KELP_I64 && !kelp_math_is_half(a->dtype))
        return kelp_ops_bad_type(args, a->dtype);
    if (kelp_ops_element_bytes(b->dtype) == 0 || b->dtype == KELP_STRING)
        return kelp_ops_bad_type(args, b->dtype);
    KELP_TRY(kelp_ops_set(args, 0, a->dtype, rank, shape));
    kelp_bcast_init(&p->walk, rank, shape, args->inputs, 2);
    return NULL;
}

static int64_t integer_power(int64_t base, int64_t exponent) {
    uint64_t result = 1, factor = (uint64_t)base;
    if (exponent < 0)
        return base == 1 ? 1 : base == -1 ? (exponent % 2 == 0 ? 1 : -1) : 0;
    for (; exponent > 0; exponent >>= 1, factor *= factor)
        if (exponent & 1)
            result *= factor;
    return (int64_t)result;
}

/* Converts as x86-64 does if the value is out of range, where C is undefined. */
static int64_t to_integer(double x) {
    return x >= -0x1p63 && x < 0x1p63 ? (int64_t)x : INT64_MIN;
}

static void pow_one(const kelp_tensor *a, int64_t i, const kelp_tensor *b, int64_t j, void *to,
                    int64_t k) {
    double exponent = kelp_ops_read_f64(b, j);
    switch (a->dtype) {
    case KELP_F64:
        ((double *)to)[k] = pow(((const double *)a->data)[i], exponent);
        break;
    default: {
        int64_t x = kelp_ops_read_i64(a, i);
        int64_t y = kelp_ops_is_float(b->dtype) ? to_integer(pow((double)x, exponent))
                                                : integer_power(x, kelp_ops_read_i64(b, j));
        if (a->dtype == KELP_I32)
            ((int32_t *)to)[k] = (int32_t)y;
        else
            ((int64_t *)to)[k] = y;
        break;
    }
    }
}

/* Computes floats whose exponent is one of those that need no logarithm; returns false for others.
 */
static bool pow_special(const float *x, double exponent, float *y, int64_t count) {
    const kelp_elementwise_kernels *elementwise = kelp_elementwise_kernels_get();
    if (exponent == 0.5) {
        elementwise->act[KELP_ACT_SQRT](x, y, count);
    } else if (exponent == 2) {
        elementwise->bin[KELP_BIN_MUL](y, x, x, count, 1, 1);
    } else if (exponent == 3) {
        float squares[POW_BLOCK];
        KELP_ASSERT(count <= POW_BLOCK);
        elementwise->bin[KELP_BIN_MUL](squares, x, x, count, 1, 1);
        elementwise->bin[KELP_BIN_MUL](y, squares, x, count, 1, 1);
    } else if (exponent == -1) {
        kelp_math_kernels_get()->fn[KELP_MATH_RECIPROCAL](x, y, count, 0, 0);
    } else {
        return false;
    }
    return true;
}

/* Computes elements [index, index + count) of the output, at most POW_BLOCK, of type float, float16
 * or bfloat16. `a` and `b` are indices of the operands; strides are 0 or 1. */
static void pow_floats(const kelp_op_args *args, int64_t a, int64_t a_stride, int64_t b,
                       int64_t b_stride, int64_t index, int64_t count) {
    const kelp_tensor *bases = args->inputs[0], *exponents = args->inputs[1];
    kelp_tensor *out = args->outputs[0];
    bool half = kelp_math_is_half(bases->dtype);
    float left[POW_BLOCK], right[POW_BLOCK], powers[POW_BLOCK];
    const float *x = half ? left : (const float *)bases->data + a;
    float *y = half ? powers : (float *)out->data + index;
    if (half)
        kelp_math_load_tensor(bases, a, a_stride == 0 ? 1 : count, left);
    if (a_stride != 1 || b_stride != 0 ||
        !pow_special(x, kelp_ops_read_f64(exponents, b), y, count)) {
        if (exponents->dtype == KELP_F32 || kelp_math_is_half(exponents->dtype))
            kelp_math_load_tensor(exponents, b, b_stride == 0 ? 1 : count, right);
        else
            for (int64_t i = 0; i < (b_stride == 0 ? 1 : count); i++)
                right[i] = (float)kelp_ops_read_f64(exponents, b + i);
        kelp_math_kernels_get()->pow(y, x, right, count, (int)a_stride, (int)b_stride);
    }
    if (half)
        kelp_math_store_tensor(out, index, count, powers);
}

/* Returns true for types that pow_floats computes. */
static bool is_float32(kelp_dtype dtype) {
    return dtype == KELP_F32 || kelp_math_is_half(dtype);
}

/* Computes elements [first, first + count) of a row. */
static void pow_row(const kelp_op_args *args, int64_t row, int64_t first, int64_t count) {
    const binary_plan *p = args->plan;
    int32_t last = p->walk.rank - 1;
    int64_t at[KELP_BCAST_MAX], sa = p->walk.strides[0][last], sb = p->walk.strides[1][last];
    kelp_bcast_row(&p->walk, row, at);
    if (is_float32(args->inputs[0]->dtype)) {
        for (int64_t i = first; i < first + count; i += POW_BLOCK)
            pow_floats(args, at[0] + i * sa, sa, at[1] + i * sb, sb, row * p->walk.inner + i,
                       KELP_MIN((int64_t)POW_BLOCK, first + count - i));
        return;
    }
    for (int64_t i = first; i < first + count; i++)
        pow_one(args->inputs[0], at[0] + i * sa, args->inputs[1], at[1] + i * sb,
                args->outputs[0]->data, row * p->walk.inner + i);
}

static void pow_rows(void *userp, int64_t begin, int64_t end, int worker) {
    const kelp_op_args *args = userp;
    const binary_plan *p = args->plan;
    (void)worker;
    for (int64_t row = begin; row < end; row++)
        pow_row(args, row, 0, p->walk.inner);
}

static void pow_range(void *userp, int64_t begin, int64_t end, int worker) {
    (void)worker;
    pow_row(userp, 0, begin, end - begin);
}

static kelp_status *pow_invoke(const void *state, kelp_op_args *args) {
    const binary_plan *p = args->plan;
    (void)state;
    int64_t grain = is_float32(args->inputs[0]->dtype) ? 2 * KELP_GRAIN_LIBM : KELP_GRAIN_LIBM;
    if (p->walk.outer == 1)
        kelp_op_parallel(args->env, p->walk.inner, grain, pow_range, args);
    else if (p->walk.inner > 0)
        kelp_op_parallel(args->env, p->walk.outer, kelp_cpu_grain(grain, p->walk.inner), pow_rows,
                         args);
    return NULL;
}
BINARY(Pow, KELP_OP_INPLACE_0, pow_reshape, pow_invoke)
