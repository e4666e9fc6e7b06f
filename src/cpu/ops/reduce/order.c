/* SPDX-License-Identifier: Apache-2.0 */
/* Operators along one axis: CumSum, CumProd, Hardmax. Source: ONNX operator specification. */
#include "base/assert.h"
#include "cpu/kernels/vector/vector_kernels.h"
#include "cpu/ops/converted.h"

typedef struct axis_plan {
    int64_t outer, length, inner; /* sizes before, of and after the axis */
    bool exclusive, reverse;
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
/* Finds the first maximum of adjacent floats; NaN is no maximum unless it is the first element. */
static int64_t first_maximum(const float *x, int64_t count) {
    float max = kelp_vector_kernels_get()->max(x, count);
    int64_t best = 0;
    if (max == max) {
        while (x[best] != max)
            best++;
        return best;
    }
    for (int64_t i = 1; i < count; i++)
        best = x[i] > x[best] ? i : best;
    return best;
}
static void hardmax_range(void *userp, int64_t begin, int64_t end, int worker) {
    const kelp_op_args *args = userp;
    const axis_plan *p = args->plan;
    const kelp_tensor *x = args->inputs[0], *y = args->outputs[0];
    (void)worker;
    for (int64_t line = begin; line < end; line++) {
        int64_t first = line / p->inner * p->length * p->inner + line % p->inner, best = first;
        if (x->dtype == KELP_F32 && p->inner == 1)
            best += first_maximum((const float *)x->data + first, p->length);
        else
            for (int64_t i = 1; i < p->length; i++)
                if (kelp_ops_read_f64(x, first + i * p->inner) > kelp_ops_read_f64(x, best))
                    best = first + i * p->inner;
        if (x->dtype == KELP_F64)
            ((double *)y->data)[best] = 1;
        else
            ((float *)y->data)[best] = 1;
    }
}
static kelp_status *hardmax_invoke(const void *state, kelp_op_args *args) {
    const axis_plan *p = args->plan;
    const kelp_tensor *y = args->outputs[0];
    (void)state;
    if (kelp_tensor_elements(y) == 0)
        return NULL;
    memset(y->data, 0, kelp_tensor_bytes(y));
    kelp_op_parallel(args->env, p->outer * p->inner, kelp_cpu_grain(KELP_GRAIN_ELEMENTS, p->length),
                     hardmax_range, args);
    return NULL;
}
KELP_CONVERTED_PHASES(hardmax, kelp_widened, sizeof(axis_plan), hardmax_reshape, hardmax_invoke)
KELP_KERNEL(Hardmax, 0, KELP_CONVERTED_PLAN(sizeof(axis_plan)), 0, hardmax_reshape_any,
            hardmax_invoke_any);
