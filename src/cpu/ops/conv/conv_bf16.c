/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kelp::ConvBf16: Conv and ConvAct (X, W, bias[, residual]; Conv's attributes and activation) over
 * one or two axes with constant float weights. Operands are rounded to bfloat16; sums and all other
 * values are floats. Tensors between such nodes may be bfloat16 (NHWC): X, the residual, and with
 * attribute "half" the result, which the next node would round anyway.
 */
#include "base/assert.h"
#include "cpu/ops/activation.h"
#include "cpu/ops/conv/conv_args.h"
#include "cpu/ops/conv/conv_bf16_weights.h"

typedef struct conv_plan {
    kelp_conv_bf16 conv;
    const kelp_conv_bf16_algorithm *algorithm;
    size_t scratch; /* offset */
} conv_plan;

static kelp_status *read_args(kelp_op_args *args, kelp_conv_bf16 *conv) {
    int64_t dims[KELP_MAX_RANK];
    int32_t rank = 0;
    KELP_TRY(kelp_ops_check(args, 2));
    const kelp_tensor *x = args->inputs[0], *residual = kelp_ops_in(args, 3);
    if (x->dtype != KELP_F32 && x->dtype != KELP_BF16)
        return kelp_ops_bad_type(args, x->dtype);
    conv->x_is_bf16 = x->dtype == KELP_BF16;
    conv->y_is_bf16 = kelp_node_attr_i64(args->node, "half", 0) != 0;
    conv->has_residual = residual != NULL;
    conv->residual_is_bf16 = residual != NULL && residual->dtype == KELP_BF16;
    KELP_TRY(kelp_conv_read_shape(args, args->inputs[1], &conv->shape, &rank, dims));
    KELP_TRY(kelp_conv_check_bias(args, KELP_F32));
    KELP_TRY(kelp_conv_check_residual(args, rank, dims, true));
    KELP_TRY(kelp_act_read(args, &conv->act));
    return kelp_ops_set(args, 0, conv->y_is_bf16 ? KELP_BF16 : KELP_F32, rank, dims);
}

/* Tensors of bfloat16 have pairs of channels, of one group. */
static kelp_status *check_pairs(const kelp_op_args *args, const kelp_conv_bf16 *conv) {
    const kelp_conv_shape *s = &conv->shape;
    bool any = conv->x_is_bf16 || conv->y_is_bf16 || conv->residual_is_bf16;
    bool mixed = conv->y_is_bf16 && conv->has_residual && !conv->residual_is_bf16;
    if (any && (s->groups != 1 || (conv->x_is_bf16 && s->in_channels % 2 != 0) ||
                (conv->y_is_bf16 && s->out_channels % 2 != 0) || mixed))
        return kelp_ops_bad_shapes(args, args->inputs[0], args->inputs[1],
                                   "tensors of bfloat16 need one group of an even number of "
                                   "channels, and a residual of bfloat16");
    return NULL;
}

static kelp_status *conv_reshape(const void *state, kelp_op_args *args) {
    conv_plan *p = args->plan;
    kelp_conv_bf16 *conv = &p->conv;
    int64_t bytes = 0;
    KELP_TRY(read_args(args, conv));
    if (kelp_tensor_elements(args->outputs[0]) == 0)
        return NULL;
    KELP_ASSERT(state != NULL); /* create requires constant weights */
    KELP_TRY(check_pairs(args, conv));
    conv->kernels = kelp_bf16_kernels_get();
    conv->threads = kelp_op_env_threads(args->env);
    p->algorithm = kelp_conv_bf16_choose(conv);
    args->algorithm = p->algorithm->name;
    KELP_TRY(kelp_conv_bf16_weights_get(state, p->algorithm->layout, &conv->weights));
    if (!p->algorithm->reserve(conv) || !kelp_i64_mul(conv->worker_bytes, conv->threads, &bytes) ||
        !kelp_i64_add(bytes, conv->shared_bytes, &bytes))
        return kelp_conv_too_large(args);
    return kelp_ops_scratch(args, bytes, 1, &p->scratch);
}

static kelp_status *conv_invoke(const void *state, kelp_op_args *args) {
    conv_plan *p = args->plan;
    const kelp_tensor *bias = kelp_ops_in(args, 2), *residual = kelp_ops_in(args, 3);
    (void)state;
    if (kelp_tensor_elements(args->outputs[0]) == 0)
        return NULL;
    KELP_ASSERT(p->algorithm != NULL && p->conv.weights != NULL);
    p->conv.x = args->inputs[0]->data;
    p->conv.bias = bias != NULL ? bias->data : NULL;
    p->conv.residual = residual != NULL ? residual->data : NULL;
    p->conv.y = args->outputs[0]->data;
    p->conv.scratch = kelp_ops_scratch_at(args, p->scratch);
    p->algorithm->run(args->env, &p->conv);
    return NULL;
}

const kelp_op_kernel kelp_op_ConvBf16 = {.struct_size = sizeof(kelp_op_kernel),
                                         .plan_bytes = sizeof(conv_plan),
                                         .unaligned_inputs = 2,
                                         .create = kelp_conv_bf16_weights_create,
                                         .destroy = kelp_conv_bf16_weights_destroy,
                                         .reshape = conv_reshape,
                                         .invoke = conv_invoke};
