/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Conv in one to three dimensions, the fused ConvAct (X, W, bias[, residual]; Conv's attributes and
 * activation), and com.microsoft's FusedConv. Source: ONNX operator specification.
 */
#include "base/assert.h"
#include "cpu/kernels/conv/conv.h"
#include "cpu/ops/kernel.h"
#include "cpu/ops/activation.h"
#include "cpu/ops/conv/conv_args.h"
#include "cpu/ops/conv/conv_f32_weights.h"
#include "cpu/ops/conv/window.h"
#include "cpu/ops/converted.h"
#include "cpu/ops/elementwise/activation.h"
#include "cpu/ops/variant.h"

typedef struct conv_plan {
    kelp_conv conv;
    const kelp_conv_algorithm *algorithm;
    size_t scratch; /* offset */
} conv_plan;

static kelp_status *read_args(kelp_op_args *args, kelp_conv *conv) {
    int64_t dims[KELP_MAX_RANK];
    int32_t rank = 0;
    KELP_TRY(kelp_ops_check(args, 2));
    const kelp_tensor *x = args->inputs[0], *weights = args->inputs[1];
    bool fused = kelp_op_variant_of(args->node) != KELP_VARIANT_NONE;
    conv->is_f64 = x->dtype == KELP_F64;
    if ((x->dtype != KELP_F32 && (!conv->is_f64 || fused)) || weights->dtype != x->dtype)
        return kelp_ops_bad_type(args, x->dtype);
    KELP_TRY(kelp_conv_read_shape(args, weights, &conv->shape, &rank, dims));
    KELP_TRY(kelp_conv_check_bias(args, x->dtype));
    KELP_TRY(kelp_conv_check_residual(args, rank, dims, false));
    conv->has_residual = kelp_ops_in(args, 3) != NULL;
    kelp_window_make_row(&conv->shape.window);
    return kelp_ops_set(args, 0, x->dtype, rank, dims);
}

static kelp_status *choose_algorithm(const kelp_conv_weights *weights, conv_plan *p) {
    kelp_conv *conv = &p->conv;
    for (size_t i = 0; i < KELP_CONV_ALGORITHMS; i++) {
        const kelp_conv_algorithm *a = kelp_conv_algorithms[i];
        if (!a->is_applicable(conv) || (a->is_profitable != NULL && !a->is_profitable(conv)))
            continue;
        if (a->layout != KELP_CONV_UNPACKED) {
            KELP_TRY(kelp_conv_weights_get(weights, conv->gemm, a->layout, &conv->packed_weights));
            if (conv->packed_weights == NULL) /* weights are not constant */
                continue;
        }
        p->algorithm = a;
        return NULL;
    }
    return KELP_ERROR(KELP_INTERNAL, "no algorithm is applicable to the convolution");
}

static kelp_status *conv_reshape(const void *state, kelp_op_args *args) {
    conv_plan *p = args->plan;
    kelp_conv *conv = &p->conv;
    int64_t floats = 0;
    KELP_TRY(read_args(args, conv));
    if (kelp_op_variant_of(args->node) == KELP_VARIANT_FUSED_ACT)
        KELP_TRY(kelp_act_read(args, &conv->act));
    kelp_conv_select_kernels(conv);
    conv->threads = kelp_op_env_threads(args->env);
    KELP_TRY(choose_algorithm(state, p));
    args->algorithm = p->algorithm->name;
    if (p->algorithm->reserve != NULL && !p->algorithm->reserve(conv))
        return kelp_conv_too_large(args);
    if (!kelp_i64_mul(conv->worker_floats, conv->threads, &floats) ||
        !kelp_i64_add(floats, conv->shared_floats, &floats))
        return kelp_conv_too_large(args);
    return floats > 0 ? kelp_ops_scratch(args, floats, sizeof(float), &p->scratch) : NULL;
}

static kelp_status *conv_invoke(const void *state, kelp_op_args *args) {
    conv_plan *p = args->plan;
    const kelp_tensor *bias = kelp_ops_in(args, 2), *residual = kelp_ops_in(args, 3);
    (void)state;
    if (kelp_tensor_elements(args->outputs[0]) == 0)
        return NULL;
    KELP_ASSERT(p->algorithm != NULL && args->inputs[0]->data != NULL);
    KELP_ASSERT(p->algorithm->layout == KELP_CONV_UNPACKED || p->conv.packed_weights != NULL);
    p->conv.x = args->inputs[0]->data;
    p->conv.weights = args->inputs[1]->data;
    p->conv.bias = bias != NULL ? bias->data : NULL;
    p->conv.residual = residual != NULL ? residual->data : NULL;
    p->conv.y = args->outputs[0]->data;
    p->conv.scratch = kelp_ops_scratch_at(args, p->scratch);
    p->algorithm->run(args->env, &p->conv);
    return NULL;
}
KELP_CONVERTED_PHASES(conv, kelp_widened, sizeof(conv_plan), conv_reshape, conv_invoke)
#define CONV_KERNEL(name)                                                                        \
    const kelp_op_kernel kelp_op_##name = {.struct_size = sizeof(kelp_op_kernel),                \
                                           .flags = KELP_OP_STATE_OPTIONAL,                      \
                                           .plan_bytes = KELP_CONVERTED_PLAN(sizeof(conv_plan)), \
                                           .unaligned_inputs = 2,                                \
                                           .create = kelp_conv_weights_create,                   \
                                           .destroy = kelp_conv_weights_destroy,                 \
                                           .reshape = conv_reshape_any,                          \
                                           .invoke = conv_invoke_any}
CONV_KERNEL(Conv);
CONV_KERNEL(ConvAct);

/* com.microsoft FusedConv has other names of activations, and adds a residual Z before them. */
static kelp_status *fused_reshape(const void *state, kelp_op_args *args) {
    kelp_fused_act act;
    KELP_TRY(kelp_fused_act_read(args->node, &act));
    return conv_reshape(state, args);
}
static kelp_status *fused_invoke(const void *state, kelp_op_args *args) {
    kelp_fused_act act;
    KELP_TRY(kelp_fused_act_read(args->node, &act));
    KELP_TRY(conv_invoke(state, args));
    kelp_fused_act_run(args->env, act, args->outputs[0]->data,
                       kelp_tensor_elements(args->outputs[0]));
    return NULL;
}
KELP_CONVERTED_PHASES(fused, kelp_widened, sizeof(conv_plan), fused_reshape, fused_invoke)
KELP_KERNEL(MsFusedConv, 0, KELP_CONVERTED_PLAN(sizeof(conv_plan)), 2, fused_reshape_any,
            fused_invoke_any);
