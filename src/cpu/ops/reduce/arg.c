/* SPDX-License-Identifier: Apache-2.0 */
/* ArgMax, ArgMin. Source: ONNX operator specification. */
#include "base/assert.h"
#include "cpu/kernels/reduce/reduce_kernels.h"
#include "cpu/ops/converted.h"

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

/* Returns true if element `next` replaces `best`. NaN is chosen before any number, as in NumPy. */
static bool wins(const kelp_tensor *x, int64_t next, int64_t best, bool max, bool last) {
    double a = kelp_ops_read_f64(x, next), b = kelp_ops_read_f64(x, best);
    int order = (a > b) - (a < b);
    if (a != a || b != b)
        return a != a && (b == b || last);
    return (max ? order > 0 : order < 0) || (last && order == 0);
}

typedef struct arg_job {
    const arg_plan *p;
    const kelp_tensor *x;
    int64_t *y;
    bool max, last;
} arg_job;

static void choose_any(const arg_job *job, int64_t base, int64_t *y, int64_t count) {
    for (int64_t i = 0; i < count; i++, base++) {
        y[i] = 0;
        for (int64_t k = 1; k < job->p->length; k++)
            if (wins(job->x, base + k * job->p->inner, base + y[i] * job->p->inner, job->max,
                     job->last))
                y[i] = k;
    }
}

/* Results that are computed at a time, from elements that are adjacent. */
#define ARG_COLUMNS 64

/* Defines the function for one type: for `count` adjacent results, at most ARG_COLUMNS, visits the
 * rows in order. NaN differs from itself. */
#define CHOOSE(suffix, type)                                                                   \
    static void choose_##suffix(const arg_job *job, int64_t base, int64_t *y, int64_t count) { \
        const type *x = (const type *)job->x->data + base;                                     \
        type best[ARG_COLUMNS];                                                                \
        bool max = job->max, last = job->last;                                                 \
        for (int64_t i = 0; i < count; i++) {                                                  \
            best[i] = x[i];                                                                    \
            y[i] = 0;                                                                          \
        }                                                                                      \
        for (int64_t k = 1; k < job->p->length; k++) {                                         \
            x += job->p->inner;                                                                \
            for (int64_t i = 0; i < count; i++) {                                              \
                bool is_nan = best[i] != best[i];                                              \
                bool takes = max ? x[i] > best[i] : x[i] < best[i];                            \
                takes = (takes && !is_nan) || (x[i] != x[i] && !is_nan) ||                     \
                        (last && (x[i] == best[i] || (x[i] != x[i] && is_nan)));               \
                best[i] = takes ? x[i] : best[i];                                              \
                y[i] = takes ? k : y[i];                                                       \
            }                                                                                  \
        }                                                                                      \
    }
CHOOSE(f32, float)
CHOOSE(f64, double)
CHOOSE(i32, int32_t)
CHOOSE(i64, int64_t)
CHOOSE(u64, uint64_t)
CHOOSE(i8, int8_t)
CHOOSE(u8, uint8_t)

/* Computes one result of contiguous floats: the maximum, then its position. Returns false if it is
 * NaN. */
static bool choose_row(const arg_job *job, int64_t base, int64_t *y) {
    const float *x = (const float *)job->x->data + base;
    int64_t length = job->p->length, i = 0;
    float best =
        (float)kelp_reduce_kernels_get()->row[job->max ? KELP_FOLD_MAX : KELP_FOLD_MIN](x, length);
    if (best != best)
        return false;
    if (job->last)
        for (i = length - 1; x[i] != best; i--)
            ;
    else
        for (; x[i] != best; i++)
            ;
    *y = i;
    return true;
}

static void choose_range(void *userp, int64_t begin, int64_t end, int worker) {
    const arg_job *job = userp;
    const arg_plan *p = job->p;
    kelp_dtype dtype = job->x->dtype;
    void (*choose)(const arg_job *job, int64_t base, int64_t *y, int64_t count) =
        dtype == KELP_F32                        ? choose_f32
        : dtype == KELP_F64                      ? choose_f64
        : dtype == KELP_I32                      ? choose_i32
        : dtype == KELP_I64                      ? choose_i64
        : dtype == KELP_U64                      ? choose_u64
        : dtype == KELP_I8                       ? choose_i8
        : dtype == KELP_U8 || dtype == KELP_BOOL ? choose_u8
                                                 : choose_any;
    (void)worker;
    for (int64_t at = begin; at < end;) {
        int64_t o = at / p->inner, i = at % p->inner, base = o * p->length * p->inner + i;
        int64_t count = KELP_MIN(KELP_MIN((int64_t)ARG_COLUMNS, p->inner - i), end - at);
        if (p->inner > 1 || dtype != KELP_F32 || !choose_row(job, base, job->y + at))
            choose(job, base, job->y + at, count);
        at += count;
    }
}

static void choose(const arg_plan *p, const kelp_op_args *args, bool max) {
    arg_job job = {.p = p,
                   .x = args->inputs[0],
                   .y = args->outputs[0]->data,
                   .max = max,
                   .last = kelp_node_attr_i64(args->node, "select_last_index", 0) != 0};
    KELP_ASSERT(p->length > 0);
    if (p->inner > 0)
        kelp_op_parallel(args->env, p->outer * p->inner,
                         kelp_cpu_grain(KELP_GRAIN_ELEMENTS, p->length), choose_range, &job);
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
KELP_CONVERTED_PHASES(argmax, kelp_widened, sizeof(arg_plan), arg_reshape, argmax_invoke)
KELP_CONVERTED_PHASES(argmin, kelp_widened, sizeof(arg_plan), arg_reshape, argmin_invoke)
KELP_KERNEL(ArgMax, 0, KELP_CONVERTED_PLAN(sizeof(arg_plan)), 0, argmax_reshape_any,
            argmax_invoke_any);
KELP_KERNEL(ArgMin, 0, KELP_CONVERTED_PLAN(sizeof(arg_plan)), 0, argmin_reshape_any,
            argmin_invoke_any);
