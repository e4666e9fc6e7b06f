/* SPDX-License-Identifier: Apache-2.0 */
/* com.microsoft Gelu, FastGelu, QuickGelu, BiasGelu, BiasSplitGelu, BiasAdd. Source: ONNX Runtime,
 * ContribOperators.md. */
#include "base/assert.h"
#include "cpu/kernels/elementwise/elementwise_kernels.h"
#include "cpu/kernels/math/math_kernels.h"
#include "cpu/ops/converted.h"
#include "tensor/real.h"

#define CHUNK 1024

typedef struct gelu_plan {
    int64_t row; /* elements of the bias; without it, of the input */
    float alpha; /* of QuickGelu; 0: another activation */
    kelp_act act;
    bool split;
    size_t bias_at;
    const float *bias;
    const kelp_op_args *args;
} gelu_plan;

static kelp_status *gelu_reshape(kelp_op_args *args, kelp_act act, int32_t needed) {
    gelu_plan *p = args->plan;
    KELP_TRY(kelp_ops_check(args, needed));
    const kelp_tensor *x = args->inputs[0], *bias = kelp_ops_in(args, 1);
    if (x->dtype != KELP_F32 && x->dtype != KELP_F16 && x->dtype != KELP_BF16)
        return kelp_ops_bad_type(args, x->dtype);
    p->act = act;
    p->row = kelp_tensor_elements(x);
    if (bias != NULL) {
        p->row = kelp_tensor_elements(bias);
        if (bias->dtype != x->dtype || x->rank < 1 || x->shape[x->rank - 1] != p->row)
            return kelp_ops_bad_shapes(args, x, bias,
                                       "the bias must have the size of the last dimension");
        KELP_TRY(kelp_ops_plan_f32(args, bias, &p->bias_at));
    }
    return kelp_ops_set_like(args, 0, x);
}

/* Returns elements of an input as floats: in place, or converted to `block`. */
static const float *floats_of(const kelp_tensor *x, int64_t first, int64_t count, float *block) {
    if (x->dtype == KELP_F32)
        return (const float *)x->data + first;
    kelp_math_load_tensor(x, first, count, block);
    return block;
}

/* Computes `count` elements of one row, at most CHUNK. */
static void one_chunk(const gelu_plan *p, int64_t first, int64_t count) {
    const kelp_elementwise_kernels *elementwise = kelp_elementwise_kernels_get();
    const kelp_tensor *skip = kelp_ops_in(p->args, 2), *y = p->args->outputs[0];
    float block[CHUNK], more[CHUNK], *to = block;
    KELP_ASSERT(count > 0 && count <= CHUNK);
    const float *x = floats_of(p->args->inputs[0], first, count, block);
    if (y->dtype == KELP_F32)
        to = (float *)y->data + first;
    if (p->bias != NULL) {
        elementwise->bin[KELP_BIN_ADD](to, x, p->bias + first % p->row, count, 1, 1);
        x = to;
    }
    if (skip != NULL) {
        elementwise->bin[KELP_BIN_ADD](to, x, floats_of(skip, first, count, more), count, 1, 1);
        x = to;
    }
    if (p->alpha != 0) /* x * sigmoid(alpha * x) */
        kelp_math_kernels_get()->fn[KELP_MATH_SWISH](x, to, count, p->alpha, 0);
    else if (p->act != KELP_ACT_NONE || x != to)
        elementwise->act[p->act](x, to, count);
    if (y->dtype != KELP_F32)
        kelp_math_store_tensor(y, first, count, to);
}

static void gelu_range(void *userp, int64_t begin, int64_t end, int worker) {
    const gelu_plan *p = userp;
    (void)worker;
    while (begin < end) { /* no chunk crosses a row */
        int64_t count = KELP_MIN(end - begin, p->row - begin % p->row);
        count = KELP_MIN(count, (int64_t)CHUNK);
        one_chunk(p, begin, count);
        begin += count;
    }
}

static kelp_status *gelu_invoke(const void *state, kelp_op_args *args) {
    gelu_plan *p = args->plan;
    (void)state;
    KELP_ASSERT(args->outputs[0]->dtype == args->inputs[0]->dtype);
    p->args = args;
    p->bias = kelp_ops_get_f32(args, kelp_ops_in(args, 1), p->bias_at);
    kelp_op_parallel(args->env, kelp_tensor_elements(args->inputs[0]), KELP_GRAIN_ELEMENTS,
                     gelu_range, p);
    return NULL;
}

static kelp_status *exact_reshape(const void *state, kelp_op_args *args) {
    (void)state;
    return gelu_reshape(args, KELP_ACT_GELU, 1);
}
static kelp_status *fast_reshape(const void *state, kelp_op_args *args) {
    (void)state;
    return gelu_reshape(args, KELP_ACT_GELU_TANH, 1);
}
static kelp_status *bias_reshape(const void *state, kelp_op_args *args) {
    (void)state;
    return gelu_reshape(args, KELP_ACT_GELU, 2);
}
static kelp_status *quick_reshape(const void *state, kelp_op_args *args) {
    gelu_plan *p = args->plan;
    (void)state;
    p->alpha = kelp_node_attr_f32(args->node, "alpha", 1.702f);
    return gelu_reshape(args, KELP_ACT_SILU, 1);
}
static kelp_status *bias_add_reshape(const void *state, kelp_op_args *args) {
    (void)state;
    KELP_TRY(kelp_ops_check(args, 3));
    if (args->inputs[2]->dtype != args->inputs[0]->dtype ||
        kelp_tensor_elements(args->inputs[2]) != kelp_tensor_elements(args->inputs[0]))
        return kelp_ops_bad_shapes(args, args->inputs[0], args->inputs[2],
                                   "the residual must have the type and size of the input");
    return gelu_reshape(args, KELP_ACT_NONE, 3);
}
KELP_KERNEL(MsGelu, KELP_OP_INPLACE_0, sizeof(gelu_plan), 0, exact_reshape, gelu_invoke);
KELP_KERNEL(MsFastGelu, KELP_OP_INPLACE_0, sizeof(gelu_plan), 0, fast_reshape, gelu_invoke);
KELP_KERNEL(MsBiasGelu, KELP_OP_INPLACE_0, sizeof(gelu_plan), 0, bias_reshape, gelu_invoke);
KELP_KERNEL(MsQuickGelu, KELP_OP_INPLACE_0, sizeof(gelu_plan), 0, quick_reshape, gelu_invoke);
KELP_KERNEL(MsBiasAdd, KELP_OP_INPLACE_0, sizeof(gelu_plan), 0, bias_add_reshape, gelu_invoke);

/* ---- BiasSplitGelu: splits x + bias into a and b, and computes a * gelu(b) ---- */
static kelp_status *split_reshape(const void *state, kelp_op_args *args) {
    gelu_plan *p = args->plan;
    int64_t shape[KELP_MAX_RANK];
    (void)state;
    KELP_TRY(gelu_reshape(args, KELP_ACT_GELU, 2));
    const kelp_tensor *x = args->inputs[0];
    if (p->row % 2 != 0)
        return kelp_ops_bad_shapes(args, x, NULL, "the last dimension must be even");
    memcpy(shape, x->shape, sizeof shape);
    shape[x->rank - 1] /= 2;
    return kelp_ops_set(args, 0, x->dtype, x->rank, shape);
}

static void split_range(void *userp, int64_t begin, int64_t end, int worker) {
    const kelp_elementwise_kernels *elementwise = kelp_elementwise_kernels_get();
    const gelu_plan *p = userp;
    const kelp_tensor *x = p->args->inputs[0];
    int64_t half = p->row / 2;
    float a[CHUNK], b[CHUNK];
    (void)worker;
    for (int64_t row = begin; row < end; row++)
        for (int64_t i = 0; i < half; i += CHUNK) {
            int64_t count = KELP_MIN((int64_t)CHUNK, half - i);
            kelp_math_load_tensor(x, row * p->row + i, count, a);
            kelp_math_load_tensor(x, row * p->row + half + i, count, b);
            elementwise->bin[KELP_BIN_ADD](a, a, p->bias + i, count, 1, 1);
            elementwise->bin[KELP_BIN_ADD](b, b, p->bias + half + i, count, 1, 1);
            elementwise->act[KELP_ACT_GELU](b, b, count);
            elementwise->bin[KELP_BIN_MUL](a, a, b, count, 1, 1);
            kelp_math_store_tensor(p->args->outputs[0], row * half + i, count, a);
        }
}

static kelp_status *split_invoke(const void *state, kelp_op_args *args) {
    gelu_plan *p = args->plan;
    (void)state;
    p->args = args;
    p->bias = kelp_ops_get_f32(args, args->inputs[1], p->bias_at);
    int64_t rows = kelp_tensor_elements(args->inputs[0]) / KELP_MAX((int64_t)1, p->row);
    kelp_op_parallel(args->env, rows, kelp_cpu_grain(KELP_GRAIN_ELEMENTS, p->row), split_range, p);
    return NULL;
}
KELP_KERNEL(MsBiasSplitGelu, 0, sizeof(gelu_plan), 0, split_reshape, split_invoke);
