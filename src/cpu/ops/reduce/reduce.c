/* SPDX-License-Identifier: Apache-2.0 */
/* Reductions over axes, and ArgMax, ArgMin. Sums of floats are computed in double. Source: ONNX
 * operator specification. */
#include "base/assert.h"
#include "cpu/ops/converted.h"
#include "tensor/real.h"

#include <float.h>
#include <math.h>

typedef enum reduction {
    RED_SUM,
    RED_MEAN,
    RED_MAX,
    RED_MIN,
    RED_PROD,
    RED_L1,
    RED_L2,
    RED_SQUARES,
    RED_LOG_SUM,
    RED_LOG_SUM_EXP
} reduction;

typedef struct reduce_plan {
    int32_t kept_rank, folded_rank; /* axes of the result; axes that are reduced */
    int64_t kept[KELP_MAX_RANK], kept_strides[KELP_MAX_RANK];
    int64_t folded[KELP_MAX_RANK], folded_strides[KELP_MAX_RANK];
    int64_t results, each; /* number of results; elements of each */
    const void *x;
    void *y;
    kelp_dtype dtype;
    reduction kind;
} reduce_plan;

static int64_t offset_of(int32_t rank, const int64_t *shape, const int64_t *strides,
                         int64_t index) {
    int64_t offset = 0;
    for (int32_t i = rank; i-- > 0;) {
        offset += index % shape[i] * strides[i];
        index /= shape[i];
    }
    return offset;
}

static kelp_status *reduce_shapes(kelp_op_args *args) {
    reduce_plan *p = args->plan;
    uint32_t mask = 0;
    bool found = false;
    KELP_TRY(kelp_ops_check(args, 1));
    const kelp_tensor *x = args->inputs[0];
    KELP_TRY(kelp_ops_axes(args, 1, x->rank, &mask, &found));
    if (args->deferred)
        return NULL;
    /* with noop_with_empty_axes, each element is reduced alone: squares and logarithms apply */
    if (!found && kelp_node_attr_i64(args->node, "noop_with_empty_axes", 0) == 0)
        mask = UINT32_MAX;
    bool keep = kelp_node_attr_i64(args->node, "keepdims", 1) != 0;
    int64_t shape[KELP_MAX_RANK], strides[KELP_MAX_RANK];
    int32_t rank = 0;
    kelp_ops_strides(x->rank, x->shape, strides);
    p->results = p->each = 1;
    for (int32_t i = 0; i < x->rank; i++) {
        if ((mask >> i & 1) != 0) {
            p->folded[p->folded_rank] = x->shape[i];
            p->folded_strides[p->folded_rank++] = strides[i];
            p->each *= x->shape[i];
            if (keep)
                shape[rank++] = 1;
        } else {
            p->kept[p->kept_rank] = x->shape[i];
            p->kept_strides[p->kept_rank++] = strides[i];
            p->results *= x->shape[i];
            shape[rank++] = x->shape[i];
        }
    }
    return kelp_ops_set(args, 0, x->dtype, rank, shape);
}

/* Return the size and the stride of the innermost reduced axis, and the offset of its row `row`. */
static int64_t inner_count(const reduce_plan *p) {
    return p->folded_rank > 0 ? p->folded[p->folded_rank - 1] : 1;
}
static int64_t inner_step(const reduce_plan *p) {
    return p->folded_rank > 0 ? p->folded_strides[p->folded_rank - 1] : 1;
}
static int64_t row_offset(const reduce_plan *p, int64_t row) {
    return offset_of(p->folded_rank - 1, p->folded, p->folded_strides, row);
}

#define TYPE float
#define WIDE double
#define MODULAR double
#define FOLD_NAME f32
#define LOWEST -(double)INFINITY
#define HIGHEST (double)INFINITY
#include "cpu/ops/reduce/fold.inc"

#define TYPE double
#define WIDE double
#define MODULAR double
#define FOLD_NAME f64
#define LOWEST -(double)INFINITY
#define HIGHEST (double)INFINITY
#include "cpu/ops/reduce/fold.inc"

#define TYPE int32_t
#define WIDE int64_t
#define MODULAR uint64_t
#define FOLD_NAME i32
#define LOWEST INT32_MIN
#define HIGHEST INT32_MAX
#include "cpu/ops/reduce/fold.inc"

#define TYPE int64_t
#define WIDE int64_t
#define MODULAR uint64_t
#define FOLD_NAME i64
#define LOWEST INT64_MIN
#define HIGHEST INT64_MAX
#include "cpu/ops/reduce/fold.inc"

#define TYPE uint32_t
#define WIDE uint64_t
#define MODULAR uint64_t
#define FOLD_NAME u32
#define LOWEST 0
#define HIGHEST UINT32_MAX
#include "cpu/ops/reduce/fold.inc"

#define TYPE uint64_t
#define WIDE uint64_t
#define MODULAR uint64_t
#define FOLD_NAME u64
#define LOWEST 0
#define HIGHEST UINT64_MAX
#include "cpu/ops/reduce/fold.inc"

#define TYPE int8_t
#define WIDE int64_t
#define MODULAR uint64_t
#define FOLD_NAME i8
#define LOWEST INT8_MIN
#define HIGHEST INT8_MAX
#include "cpu/ops/reduce/fold.inc"

#define TYPE uint8_t
#define WIDE int64_t
#define MODULAR uint64_t
#define FOLD_NAME u8
#define LOWEST 0
#define HIGHEST UINT8_MAX
#include "cpu/ops/reduce/fold.inc"

#define TYPE uint8_t
#define WIDE int64_t
#define MODULAR uint64_t
#define FOLD_NAME flag
#define LOWEST 0
#define HIGHEST 1
#include "cpu/ops/reduce/fold.inc"

/* Computes log(sum(exp(x))) relative to the maximum, so that it does not overflow. */
static double fold_exp(const reduce_plan *p, int64_t offset) {
    double max = -(double)INFINITY, sum = 0;
    for (int pass = 0; pass < 2; pass++)
        for (int64_t i = 0; i < p->each; i++) {
            int64_t at = offset + offset_of(p->folded_rank, p->folded, p->folded_strides, i);
            double value;
            kelp_real_load_f64(p->dtype, p->x, at, 1, &value);
            if (pass == 0)
                max = value > max ? value : max;
            else
                sum += value == max ? 1 : exp(value - max); /* inf - inf would be NaN */
        }
    return max + log(sum);
}

static double finish(const reduce_plan *p, double sum) {
    if (p->kind == RED_MEAN)
        return sum / (double)p->each;
    if (p->kind == RED_L2)
        return sqrt(sum);
    return p->kind == RED_LOG_SUM ? log(sum) : sum;
}

static uint64_t finish_whole(const reduce_plan *p, uint64_t sum) {
    if (p->kind == RED_MEAN)
        return sum / (uint64_t)KELP_MAX((int64_t)1, p->each);
    return p->kind == RED_L2 || p->kind == RED_LOG_SUM ? (uint64_t)finish(p, (double)sum) : sum;
}

/* ---- vectorized sums of floats ---- */
#define COLUMNS 32 /* results that are computed at a time if their elements are adjacent */

static bool adds_up(reduction kind) {
    return kind == RED_SUM || kind == RED_MEAN || kind == RED_SQUARES || kind == RED_L2 ||
           kind == RED_LOG_SUM;
}

static double add_row(const float *x, int64_t count, bool squares) {
    double part[8] = {0}, sum = 0;
    int64_t i = 0;
    if (squares)
        for (; i + 8 <= count; i += 8)
            for (int k = 0; k < 8; k++)
                part[k] += (double)x[i + k] * (double)x[i + k];
    else
        for (; i + 8 <= count; i += 8)
            for (int k = 0; k < 8; k++)
                part[k] += (double)x[i + k];
    for (; i < count; i++)
        sum += squares ? (double)x[i] * (double)x[i] : (double)x[i];
    for (int k = 0; k < 8; k++)
        sum += part[k];
    return sum;
}

/* Computes the sums of `count` adjacent columns. */
static void add_columns(const reduce_plan *p, const float *x, int64_t count, bool squares,
                        double *sum) {
    for (int64_t i = 0; i < count; i++)
        sum[i] = 0;
    for (int64_t row = 0; row < p->each; row++) {
        const float *at = x + offset_of(p->folded_rank, p->folded, p->folded_strides, row);
        if (squares)
            for (int64_t i = 0; i < count; i++)
                sum[i] += (double)at[i] * (double)at[i];
        else
            for (int64_t i = 0; i < count; i++)
                sum[i] += (double)at[i];
    }
}

/* Return true if the elements of a result, or the results themselves, are contiguous. */
static bool is_rows(const reduce_plan *p) {
    return p->folded_rank > 0 && p->folded_strides[p->folded_rank - 1] == 1;
}
static bool is_columns(const reduce_plan *p) {
    return p->kept_rank > 0 && p->kept_strides[p->kept_rank - 1] == 1;
}

static void add_range(const reduce_plan *p, int64_t begin, int64_t end) {
    const float *x = p->x;
    float *y = p->y;
    bool squares = p->kind == RED_SQUARES || p->kind == RED_L2, rows = is_rows(p);
    int64_t inner = rows ? p->folded[p->folded_rank - 1] : p->kept[p->kept_rank - 1];
    for (int64_t i = begin, count = 1; i < end; i += count) {
        double sum[COLUMNS] = {0};
        int64_t at = offset_of(p->kept_rank, p->kept, p->kept_strides, i);
        if (rows) {
            for (int64_t row = 0; inner > 0 && row < p->each / inner; row++)
                sum[0] += add_row(
                    x + at + offset_of(p->folded_rank - 1, p->folded, p->folded_strides, row),
                    inner, squares);
        } else {
            count = KELP_MIN(KELP_MIN(end - i, inner - i % inner), (int64_t)COLUMNS);
            add_columns(p, x + at, count, squares, sum);
        }
        for (int64_t k = 0; k < count; k++)
            y[i + k] = (float)finish(p, sum[k]);
    }
}

static void reduce_range(void *userp, int64_t begin, int64_t end, int worker) {
    const reduce_plan *p = userp;
    (void)worker;
    if (p->dtype == KELP_F32 && adds_up(p->kind) && (is_rows(p) || is_columns(p))) {
        add_range(p, begin, end);
        return;
    }
    for (int64_t i = begin; i < end; i++) {
        int64_t at = offset_of(p->kept_rank, p->kept, p->kept_strides, i);
        if (p->kind == RED_LOG_SUM_EXP) {
            double value = fold_exp(p, at);
            if (!kelp_ops_is_float(p->dtype)) /* truncated like other integer results */
                value = trunc(value);
            kelp_real_store_f64(p->dtype, p->y, i, 1, &value);
        } else if (p->dtype == KELP_F32)
            ((float *)p->y)[i] = (float)finish(p, fold_f32(p, (const float *)p->x + at));
        else if (p->dtype == KELP_F64)
            ((double *)p->y)[i] = finish(p, fold_f64(p, (const double *)p->x + at));
        else if (p->dtype == KELP_I64) {
            int64_t sum = fold_i64(p, (const int64_t *)p->x + at);
            ((int64_t *)p->y)[i] =
                p->kind == RED_MEAN ? sum / KELP_MAX((int64_t)1, p->each)
                : p->kind == RED_SUM
                    ? sum
                    : (p->kind == RED_L2 || p->kind == RED_LOG_SUM ? (int64_t)finish(p, (double)sum)
                                                                   : sum);
        } else if (p->dtype == KELP_I32) {
            int64_t sum = fold_i32(p, (const int32_t *)p->x + at);
            ((int32_t *)p->y)[i] =
                (int32_t)(p->kind == RED_MEAN ? sum / KELP_MAX((int64_t)1, p->each)
                          : p->kind == RED_L2 || p->kind == RED_LOG_SUM
                              ? (int64_t)finish(p, (double)sum)
                              : sum);
        } else if (p->dtype == KELP_U32) {
            ((uint32_t *)p->y)[i] =
                (uint32_t)finish_whole(p, fold_u32(p, (const uint32_t *)p->x + at));
        } else if (p->dtype == KELP_U64) {
            ((uint64_t *)p->y)[i] = finish_whole(p, fold_u64(p, (const uint64_t *)p->x + at));
        } else if (p->dtype == KELP_I8) {
            ((int8_t *)p->y)[i] = (int8_t)fold_i8(p, (const int8_t *)p->x + at);
        } else if (p->dtype == KELP_BOOL) {
            ((uint8_t *)p->y)[i] = (uint8_t)fold_flag(p, (const uint8_t *)p->x + at);
        } else {
            ((uint8_t *)p->y)[i] = (uint8_t)fold_u8(p, (const uint8_t *)p->x + at);
        }
    }
}

static kelp_status *reduce_reshape(kelp_op_args *args, reduction kind) {
    reduce_plan *p = args->plan;
    KELP_TRY(reduce_shapes(args));
    if (args->deferred)
        return NULL;
    p->kind = kind;
    p->dtype = args->inputs[0]->dtype;
    bool narrow = p->dtype == KELP_I8 || p->dtype == KELP_U8 || p->dtype == KELP_BOOL;
    bool order = kind == RED_MAX || kind == RED_MIN;
    bool number = p->dtype == KELP_F32 || p->dtype == KELP_F64 || p->dtype == KELP_I32 ||
                  p->dtype == KELP_I64 || p->dtype == KELP_U32 || p->dtype == KELP_U64;
    if (!number && !(narrow && order))
        return kelp_ops_bad_type(args, p->dtype);
    return NULL;
}

static kelp_status *reduce_invoke(const void *state, kelp_op_args *args) {
    reduce_plan *p = args->plan;
    (void)state;
    KELP_ASSERT(p->kept_rank + p->folded_rank == args->inputs[0]->rank);
    KELP_ASSERT(p->results == kelp_tensor_elements(args->outputs[0]));
    KELP_ASSERT(p->dtype == args->inputs[0]->dtype);
    p->x = args->inputs[0]->data;
    p->y = args->outputs[0]->data;
    int64_t grain = kelp_cpu_grain(KELP_GRAIN_ELEMENTS, p->each);
    kelp_op_parallel(args->env, p->results, grain, reduce_range, p);
    return NULL;
}

#define REDUCE(name, kind)                                                                        \
    static kelp_status *reshape_##name(const void *state, kelp_op_args *args) {                   \
        (void)state;                                                                              \
        return reduce_reshape(args, kind);                                                        \
    }                                                                                             \
    KELP_CONVERTED_PHASES(name, kelp_widened, sizeof(reduce_plan), reshape_##name, reduce_invoke) \
    KELP_KERNEL(name, 0, KELP_CONVERTED_PLAN(sizeof(reduce_plan)), 0, name##_reshape_any,         \
                name##_invoke_any);
REDUCE(ReduceSum, RED_SUM)
REDUCE(ReduceMean, RED_MEAN)
REDUCE(ReduceMax, RED_MAX)
REDUCE(ReduceMin, RED_MIN)
REDUCE(ReduceProd, RED_PROD)
REDUCE(ReduceL1, RED_L1)
REDUCE(ReduceL2, RED_L2)
REDUCE(ReduceSumSquare, RED_SQUARES)
REDUCE(ReduceLogSum, RED_LOG_SUM)
REDUCE(ReduceLogSumExp, RED_LOG_SUM_EXP)

/* ---- ArgMax, ArgMin ---- */
typedef struct arg_plan {
    int64_t outer, length, inner;
} arg_plan;

static kelp_status *arg_reshape(const void *state, kelp_op_args *args) {
    arg_plan *p = args->plan;
    int64_t shape[KELP_MAX_RANK];
    int32_t axis = 0, rank = 0;
    (void)state;
    KELP_TRY(kelp_ops_check(args, 1));
    const kelp_tensor *x = args->inputs[0];
    KELP_TRY(kelp_ops_axis(args, kelp_node_attr_i64(args->node, "axis", 0), x->rank, &axis));
    if (kelp_ops_element_bytes(x->dtype) == 0 || x->dtype == KELP_STRING)
        return kelp_ops_bad_type(args, x->dtype);
    if (x->shape[axis] == 0)
        return kelp_ops_bad_shapes(args, x, NULL, "the dimension of the axis is 0");
    p->outer = kelp_ops_product(x->shape, 0, axis);
    p->length = x->shape[axis];
    p->inner = kelp_ops_product(x->shape, axis + 1, x->rank);
    for (int32_t i = 0; i < x->rank; i++) {
        if (i != axis)
            shape[rank++] = x->shape[i];
        else if (kelp_node_attr_i64(args->node, "keepdims", 1) != 0)
            shape[rank++] = 1;
    }
    return kelp_ops_set(args, 0, KELP_I64, rank, shape);
}

/* Returns true if element `next` replaces `best`. 64-bit integers are compared exactly; NaN is
 * chosen before any number, as in NumPy. */
static bool wins(const kelp_tensor *x, int64_t next, int64_t best, bool max, bool last) {
    double a = kelp_ops_read_f64(x, next), b = kelp_ops_read_f64(x, best);
    int order = (a > b) - (a < b);
    if (a != a || b != b)
        return a != a && (b == b || last);
    if (order == 0 && x->dtype == KELP_I64) {
        int64_t p = kelp_ops_read_i64(x, next), q = kelp_ops_read_i64(x, best);
        order = (p > q) - (p < q);
    } else if (order == 0 && x->dtype == KELP_U64) {
        uint64_t p = (uint64_t)kelp_ops_read_i64(x, next), q = (uint64_t)kelp_ops_read_i64(x, best);
        order = (p > q) - (p < q);
    }
    return (max ? order > 0 : order < 0) || (last && order == 0);
}

static void choose(const arg_plan *p, const kelp_op_args *args, bool max) {
    const kelp_tensor *x = args->inputs[0];
    int64_t *y = args->outputs[0]->data;
    bool last = kelp_node_attr_i64(args->node, "select_last_index", 0) != 0;
    KELP_ASSERT(p->length > 0);
    for (int64_t o = 0; o < p->outer; o++)
        for (int64_t i = 0; i < p->inner; i++) {
            int64_t base = o * p->length * p->inner + i, best = 0;
            for (int64_t k = 1; k < p->length; k++) {
                if (wins(x, base + k * p->inner, base + best * p->inner, max, last))
                    best = k;
            }
            y[o * p->inner + i] = best;
        }
}

static kelp_status *argmax_invoke(const void *state, kelp_op_args *args) {
    (void)state;
    choose(args->plan, args, true);
    return NULL;
}

static kelp_status *argmin_invoke(const void *state, kelp_op_args *args) {
    (void)state;
    choose(args->plan, args, false);
    return NULL;
}
KELP_KERNEL(ArgMax, 0, sizeof(arg_plan), 0, arg_reshape, argmax_invoke);
KELP_KERNEL(ArgMin, 0, sizeof(arg_plan), 0, arg_reshape, argmin_invoke);
