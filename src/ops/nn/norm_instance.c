/* SPDX-License-Identifier: Apache-2.0 */
/* InstanceNormalization: each channel of each image by its own mean and variance. Source: ONNX
 * operator specification. */
#include "ops/kernel.h"

#include <math.h>

static void affine(const kelp_op_args *args, int64_t plane, int64_t count, double factor,
                   double shift) {
    if (args->outputs[0]->dtype == KELP_F64) {
        const double *x = (const double *)args->inputs[0]->data + plane * count;
        double *y = (double *)args->outputs[0]->data + plane * count;
        for (int64_t i = 0; i < count; i++)
            y[i] = x[i] * factor + shift;
        return;
    }
    const float *x = (const float *)args->inputs[0]->data + plane * count;
    float *y = (float *)args->outputs[0]->data + plane * count;
    float f = (float)factor, s = (float)shift;
    for (int64_t i = 0; i < count; i++)
        y[i] = x[i] * f + s;
}

static kelp_status *instance_reshape(const void *state, kelp_op_args *args) {
    (void)state;
    KELP_TRY(kelp_ops_check(args, 3));
    const kelp_tensor *x = args->inputs[0];
    if (x->dtype != KELP_F32 && x->dtype != KELP_F64)
        return kelp_ops_bad_type(args, x->dtype);
    if (x->rank < 2)
        return kelp_ops_bad_shapes(args, x, NULL, "needs a batch and channels");
    for (int32_t i = 1; i < 3; i++)
        if (args->inputs[i]->dtype != x->dtype ||
            kelp_tensor_elements(args->inputs[i]) != x->shape[1])
            return kelp_ops_bad_shapes(args, x, args->inputs[i], "needs one value a channel");
    return kelp_ops_set_like(args, 0, x);
}
static void instance_range(void *userp, int64_t begin, int64_t end, int worker) {
    const kelp_op_args *args = userp;
    const kelp_tensor *x = args->inputs[0];
    int64_t channels = x->shape[1], count = kelp_ops_product(x->shape, 2, x->rank);
    double epsilon = (double)kelp_node_attr_f32(args->node, "epsilon", 1e-5f);
    (void)worker;
    for (int64_t plane = begin; plane < end; plane++) {
        double mean = 0, variance = 0;
        for (int64_t i = 0; i < count; i++)
            mean += kelp_ops_read_f64(x, plane * count + i);
        mean /= (double)count;
        for (int64_t i = 0; i < count; i++) {
            double d = kelp_ops_read_f64(x, plane * count + i) - mean;
            variance += d * d;
        }
        double factor = kelp_ops_read_f64(args->inputs[1], plane % channels) /
                        sqrt(variance / (double)count + epsilon);
        affine(args, plane, count, factor,
               kelp_ops_read_f64(args->inputs[2], plane % channels) - mean * factor);
    }
}
static kelp_status *instance_invoke(const void *state, kelp_op_args *args) {
    const kelp_tensor *x = args->inputs[0];
    (void)state;
    if (kelp_tensor_elements(x) > 0)
        kelp_op_parallel(args->env, x->shape[0] * x->shape[1], 1, instance_range, args);
    return NULL;
}
KELP_KERNEL(InstanceNormalization, KELP_OP_INPLACE_0, 0, 0, instance_reshape, instance_invoke);
