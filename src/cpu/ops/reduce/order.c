/* SPDX-License-Identifier: Apache-2.0 */
/* Operators along one axis: TopK, CumSum, CumProd, Hardmax. Source: ONNX operator specification. */
#include "base/assert.h"
#include "cpu/ops/converted.h"

#include <math.h>

typedef struct axis_plan {
    int64_t outer, length, inner, k; /* before, of and after the axis; results of TopK */
    bool largest, exclusive, reverse;
    size_t offset;
} axis_plan;

static kelp_status *split_axis(axis_plan *p, const kelp_op_args *args, int64_t signed_axis) {
    const kelp_tensor *x = args->inputs[0];
    int32_t axis = 0;
    KELP_TRY(kelp_ops_axis(args, signed_axis, x->rank, &axis));
    p->outer = kelp_ops_product(x->shape, 0, axis);
    p->length = x->shape[axis];
    p->inner = kelp_ops_product(x->shape, axis + 1, x->rank);
    return NULL;
}

/* ---- TopK ---- */
typedef struct ranked {
    double value;
    int64_t whole; /* integers are compared exactly */
    int64_t index;
} ranked;

/* Orders by value; NaN is the largest. */
static int ascending(const void *left, const void *right) {
    const ranked *a = left, *b = right;
    bool a_nan = isnan(a->value), b_nan = isnan(b->value);
    if (a_nan != b_nan)
        return a_nan ? 1 : -1;
    if (!a_nan && a->value != b->value)
        return a->value < b->value ? -1 : 1;
    if (a->whole != b->whole)
        return a->whole < b->whole ? -1 : 1;
    return 0;
}
/* The orders of results. Among equal values, earlier elements are first. */
static int by_smallest(const void *left, const void *right) {
    const ranked *a = left, *b = right;
    int order = ascending(a, b);
    return order != 0 ? order : a->index < b->index ? -1 : a->index > b->index;
}
static int by_largest(const void *left, const void *right) {
    const ranked *a = left, *b = right;
    int order = ascending(b, a);
    return order != 0 ? order : a->index < b->index ? -1 : a->index > b->index;
}

static kelp_status *topk_reshape(const void *state, kelp_op_args *args) {
    axis_plan *p = args->plan;
    int64_t shape[KELP_MAX_RANK];
    int32_t axis = 0;
    (void)state;
    KELP_TRY(kelp_ops_check_inputs(args, 1));
    const kelp_tensor *x = args->inputs[0], *k = kelp_ops_in(args, 1);
    int64_t signed_axis = kelp_node_attr_i64(args->node, "axis", -1);
    KELP_TRY(split_axis(p, args, signed_axis));
    KELP_TRY(kelp_ops_axis(args, signed_axis, x->rank, &axis));
    if (x->dtype == KELP_STRING || x->dtype == KELP_BOOL || kelp_ops_element_bytes(x->dtype) == 0 ||
        kelp_ops_element_bytes(x->dtype) > 8 || x->dtype == KELP_C64)
        return kelp_ops_bad_type(args, x->dtype);
    if (k != NULL && kelp_ops_defer(args, 1))
        return NULL;
    if (k != NULL && (kelp_tensor_elements(k) != 1 || k->dtype != KELP_I64))
        return kelp_ops_bad_shapes(args, x, k, "K must be one int64");
    p->k = k != NULL ? kelp_ops_read_i64(k, 0) : kelp_node_attr_i64(args->node, "k", -1);
    if (p->k < 0 || p->k > p->length)
        return KELP_ERROR(KELP_INVALID_ARGUMENT,
                          "operator 'TopK': K is %lld, but the dimension is %lld", (long long)p->k,
                          (long long)p->length);
    p->largest = kelp_node_attr_i64(args->node, "largest", 1) != 0;
    KELP_TRY(kelp_ops_scratch(args, p->length, sizeof(ranked), &p->offset));
    memcpy(shape, x->shape, sizeof shape);
    shape[axis] = p->k;
    KELP_TRY(kelp_ops_set(args, 0, x->dtype, x->rank, shape));
    return kelp_ops_set(args, 1, KELP_I64, x->rank, shape);
}

/* Moves an element down in a heap whose root is the last element in the order. */
static void sift(ranked *heap, int64_t count, int64_t at,
                 int (*order)(const void *, const void *)) {
    for (int64_t child; (child = 2 * at + 1) < count; at = child) {
        if (child + 1 < count && order(&heap[child + 1], &heap[child]) > 0)
            child++;
        if (order(&heap[at], &heap[child]) >= 0)
            return;
        ranked moved = heap[at];
        heap[at] = heap[child];
        heap[child] = moved;
    }
}

/* Moves the first `k` items of the order to the front and sorts them, in place, by a heap of k. */
static void select_first(ranked *items, int64_t count, int64_t k,
                         int (*order)(const void *, const void *)) {
    KELP_ASSERT(k > 0 && k <= count);
    for (int64_t i = k / 2; i-- > 0;)
        sift(items, k, i, order);
    for (int64_t i = k; k > 0 && i < count; i++)
        if (order(&items[i], &items[0]) < 0) {
            items[0] = items[i];
            sift(items, k, 0, order);
        }
    for (int64_t last = k; last-- > 1;) {
        ranked moved = items[0];
        items[0] = items[last];
        items[last] = moved;
        sift(items, last, 0, order);
    }
}

static kelp_status *topk_invoke(const void *state, kelp_op_args *args) {
    const axis_plan *p = args->plan;
    const kelp_tensor *x = args->inputs[0], *values = kelp_ops_out(args, 0);
    const kelp_tensor *indices = kelp_ops_out(args, 1);
    ranked *items = kelp_ops_scratch_at(args, p->offset);
    size_t size = kelp_ops_element_bytes(x->dtype);
    bool is_float = kelp_ops_is_float(x->dtype);
    (void)state;
    KELP_ASSERT(p->outer * p->length * p->inner == kelp_tensor_elements(x));
    for (int64_t line = 0; p->k > 0 && line < p->outer * p->inner; line++) {
        int64_t outer = line / p->inner, inner = line % p->inner;
        int64_t from = outer * p->length * p->inner + inner, to = outer * p->k * p->inner + inner;
        for (int64_t i = 0; i < p->length; i++) {
            int64_t at = from + i * p->inner;
            items[i] = (ranked){.index = i};
            if (is_float)
                items[i].value = kelp_ops_read_f64(x, at);
            else /* flipping the sign bit maps the order of unsigned integers to signed ones */
                items[i].whole =
                    x->dtype == KELP_U64
                        ? (int64_t)((uint64_t)kelp_ops_read_i64(x, at) ^ ((uint64_t)1 << 63))
                        : kelp_ops_read_i64(x, at);
        }
        select_first(items, p->length, p->k, p->largest ? by_largest : by_smallest);
        for (int64_t i = 0; i < p->k; i++) {
            int64_t at = to + i * p->inner;
            if (values != NULL)
                memcpy((char *)values->data + (size_t)at * size,
                       (const char *)x->data + (size_t)(from + items[i].index * p->inner) * size,
                       size);
            if (indices != NULL)
                ((int64_t *)indices->data)[at] = items[i].index;
        }
    }
    return NULL;
}
KELP_KERNEL(TopK, 0, sizeof(axis_plan), 0, topk_reshape, topk_invoke);

/* ---- CumSum ---- */
static kelp_status *cumsum_reshape(const void *state, kelp_op_args *args) {
    axis_plan *p = args->plan;
    (void)state;
    KELP_TRY(kelp_ops_check(args, 2));
    const kelp_tensor *x = args->inputs[0], *axis = args->inputs[1];
    if (x->dtype != KELP_F32 && x->dtype != KELP_F64 && x->dtype != KELP_I32 &&
        x->dtype != KELP_I64 && x->dtype != KELP_U32 && x->dtype != KELP_U64)
        return kelp_ops_bad_type(args, x->dtype);
    if (kelp_ops_defer(args, 1))
        return NULL;
    if (kelp_tensor_elements(axis) != 1 || (axis->dtype != KELP_I32 && axis->dtype != KELP_I64))
        return kelp_ops_bad_shapes(args, x, axis, "the axis must be one integer");
    KELP_TRY(split_axis(p, args, kelp_ops_read_i64(axis, 0)));
    p->exclusive = kelp_node_attr_i64(args->node, "exclusive", 0) != 0;
    p->reverse = kelp_node_attr_i64(args->node, "reverse", 0) != 0;
    return kelp_ops_set_like(args, 0, x);
}

#define CUMULATE(name, suffix, type, wide, start, step)                                \
    static void name##_##suffix(void *userp, int64_t begin, int64_t end, int worker) { \
        const kelp_op_args *args = userp;                                              \
        const axis_plan *p = args->plan;                                               \
        (void)worker;                                                                  \
        for (int64_t line = begin; line < end; line++) {                               \
            int64_t first = line / p->inner * p->length * p->inner + line % p->inner;  \
            const type *x = (const type *)args->inputs[0]->data + first;               \
            type *y = (type *)args->outputs[0]->data + first;                          \
            wide sum = start;                                                          \
            for (int64_t i = 0; i < p->length; i++) {                                  \
                int64_t at = (p->reverse ? p->length - 1 - i : i) * p->inner;          \
                wide value = (wide)x[at];                                              \
                y[at] = (type)(p->exclusive ? sum : sum step value);                   \
                sum = sum step value;                                                  \
            }                                                                          \
        }                                                                              \
    }
CUMULATE(cumsum, f32, float, double, 0, +)
CUMULATE(cumsum, f64, double, double, 0, +)
CUMULATE(cumsum, u32, uint32_t, uint32_t, 0, +) /* also for signed integers, which wrap */
CUMULATE(cumsum, u64, uint64_t, uint64_t, 0, +)
CUMULATE(cumprod, f32, float, double, 1, *)
CUMULATE(cumprod, f64, double, double, 1, *)
CUMULATE(cumprod, u32, uint32_t, uint32_t, 1, *)
CUMULATE(cumprod, u64, uint64_t, uint64_t, 1, *)

static kelp_status *cumsum_invoke(const void *state, kelp_op_args *args) {
    const axis_plan *p = args->plan;
    kelp_dtype dtype = args->inputs[0]->dtype;
    (void)state;
    KELP_ASSERT(p->outer * p->length * p->inner == kelp_tensor_elements(args->inputs[0]));
    if (p->length > 0)
        kelp_op_parallel(args->env, p->outer * p->inner,
                         kelp_cpu_grain(KELP_GRAIN_ELEMENTS, p->length),
                         dtype == KELP_F32                        ? cumsum_f32
                         : dtype == KELP_F64                      ? cumsum_f64
                         : dtype == KELP_I32 || dtype == KELP_U32 ? cumsum_u32
                                                                  : cumsum_u64,
                         args);
    return NULL;
}
KELP_CONVERTED_PHASES(cumsum, kelp_widened, sizeof(axis_plan), cumsum_reshape, cumsum_invoke)
KELP_KERNEL(CumSum, KELP_OP_INPLACE_0, KELP_CONVERTED_PLAN(sizeof(axis_plan)), 0,
            cumsum_reshape_any, cumsum_invoke_any);

static kelp_status *cumprod_invoke(const void *state, kelp_op_args *args) {
    const axis_plan *p = args->plan;
    kelp_dtype dtype = args->inputs[0]->dtype;
    (void)state;
    if (p->length > 0)
        kelp_op_parallel(args->env, p->outer * p->inner,
                         kelp_cpu_grain(KELP_GRAIN_ELEMENTS, p->length),
                         dtype == KELP_F32                        ? cumprod_f32
                         : dtype == KELP_F64                      ? cumprod_f64
                         : dtype == KELP_I32 || dtype == KELP_U32 ? cumprod_u32
                                                                  : cumprod_u64,
                         args);
    return NULL;
}
KELP_CONVERTED_PHASES(cumprod, kelp_widened, sizeof(axis_plan), cumsum_reshape, cumprod_invoke)
KELP_KERNEL(CumProd, KELP_OP_INPLACE_0, KELP_CONVERTED_PLAN(sizeof(axis_plan)), 0,
            cumprod_reshape_any, cumprod_invoke_any);

/* ---- Hardmax: 1 for the first maximum along the axis, 0 elsewhere ---- */
static kelp_status *hardmax_reshape(const void *state, kelp_op_args *args) {
    axis_plan *p = args->plan;
    (void)state;
    KELP_TRY(kelp_ops_check(args, 1));
    const kelp_tensor *x = args->inputs[0];
    bool old = kelp_ops_version(args) < 13;
    if (x->dtype != KELP_F32 && x->dtype != KELP_F64)
        return kelp_ops_bad_type(args, x->dtype);
    KELP_TRY(split_axis(p, args, kelp_node_attr_i64(args->node, "axis", old ? 1 : -1)));
    if (old) { /* before version 13, over all axes from `axis` on */
        p->length *= p->inner;
        p->inner = 1;
    }
    return kelp_ops_set_like(args, 0, x);
}
static kelp_status *hardmax_invoke(const void *state, kelp_op_args *args) {
    const axis_plan *p = args->plan;
    const kelp_tensor *x = args->inputs[0], *y = args->outputs[0];
    (void)state;
    if (kelp_tensor_elements(y) == 0)
        return NULL;
    memset(y->data, 0, kelp_tensor_bytes(y));
    for (int64_t line = 0; line < p->outer * p->inner; line++) {
        int64_t first = line / p->inner * p->length * p->inner + line % p->inner, best = first;
        for (int64_t i = 1; i < p->length; i++)
            if (kelp_ops_read_f64(x, first + i * p->inner) > kelp_ops_read_f64(x, best))
                best = first + i * p->inner;
        if (x->dtype == KELP_F64)
            ((double *)y->data)[best] = 1;
        else
            ((float *)y->data)[best] = 1;
    }
    return NULL;
}
KELP_CONVERTED_PHASES(hardmax, kelp_widened, sizeof(axis_plan), hardmax_reshape, hardmax_invoke)
KELP_KERNEL(Hardmax, 0, KELP_CONVERTED_PLAN(sizeof(axis_plan)), 0, hardmax_reshape_any,
            hardmax_invoke_any);
