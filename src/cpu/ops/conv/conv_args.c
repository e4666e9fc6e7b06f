/* SPDX-License-Identifier: Apache-2.0 */
/* Inputs and attributes of convolutions. */
#include "cpu/ops/conv/conv_args.h"

#include "base/assert.h"
#include "cpu/ops/conv/window.h"

kelp_status *kelp_conv_read_shape(const kelp_op_args *args, const kelp_tensor *weights,
                                  kelp_conv_shape *out, int32_t *out_rank, int64_t *out_dims) {
    const kelp_tensor *x = args->inputs[0];
    KELP_ASSERT(x != NULL && weights != NULL);
    if (weights->rank != x->rank || x->rank < 3)
        return kelp_ops_bad_shapes(args, x, weights,
                                   "expected input and weights of the same rank, 3 or more");
    KELP_TRY(kelp_window_init(&out->window, args, x, weights->shape + 2, x->rank - 2));
    out->groups = kelp_node_attr_i64(args->node, "group", 1);
    if (out->groups < 1 || x->shape[1] % out->groups != 0 || weights->shape[0] % out->groups != 0 ||
        weights->shape[1] != x->shape[1] / out->groups)
        return kelp_ops_bad_shapes(args, x, weights, "the channels do not match attribute 'group'");
    out->batch = x->shape[0];
    out->in_channels = x->shape[1] / out->groups;
    out->out_channels = weights->shape[0] / out->groups;
    *out_rank = kelp_window_shape(&out->window, out->batch, weights->shape[0], out_dims);
    return NULL;
}

kelp_status *kelp_conv_check_bias(const kelp_op_args *args, kelp_dtype dtype) {
    const kelp_tensor *weights = args->inputs[1], *bias = kelp_ops_in(args, 2);
    if (bias != NULL && (kelp_tensor_elements(bias) != weights->shape[0] || bias->dtype != dtype))
        return kelp_ops_bad_shapes(args, weights, bias,
                                   "expected one bias for each output channel");
    return NULL;
}

kelp_status *kelp_conv_check_residual(const kelp_op_args *args, int32_t rank, const int64_t *dims,
                                      bool allows_bf16) {
    const kelp_tensor *residual = kelp_ops_in(args, 3);
    if (residual == NULL)
        return NULL;
    bool typed = residual->dtype == KELP_F32 || (allows_bf16 && residual->dtype == KELP_BF16);
    if (!typed || residual->rank != rank ||
        memcmp(residual->shape, dims, (size_t)rank * sizeof *dims) != 0)
        return kelp_ops_bad_shapes(args, args->inputs[0], residual,
                                   "the residual does not have the shape of the result");
    return NULL;
}

kelp_status *kelp_conv_too_large(const kelp_op_args *args) {
    return kelp_ops_bad_shapes(args, args->inputs[0], args->inputs[1],
                               "the scratch memory would be too large");
}
