/* SPDX-License-Identifier: Apache-2.0 */
/* InstanceNormalization and GroupNormalization: normalization of each channel, or group of
 * channels, of each image. Source: ONNX operator specification; Wu and He, "Group Normalization",
 * 2018. */
#include "base/assert.h"
#include "cpu/kernels/elementwise/elementwise_kernels.h"
#include "cpu/kernels/math/load.h"
#include "cpu/kernels/norm/norm_kernels.h"
#include "cpu/ops/kernel.h"

#include <math.h>

typedef struct group_plan {
    int64_t groups, channels, inner; /* groups of an image, channels of a group */
    bool of_group;                   /* scale and bias have one value for each group */
    double epsilon;
    size_t floats; /* in scratch memory: a group of 16-bit floats as float32, for each worker */
    const kelp_op_args *args;
} group_plan;

/* Computes the mean and variance of `count` elements, in double. */
static void moments(const kelp_tensor *x, int64_t first, int64_t count, double *out_mean,
                    double *out_variance) {
    double mean = 0, variance = 0;
    KELP_ASSERT(count > 0);
    for (int64_t i = first; i < first + count; i++)
        mean += kelp_ops_read_f64(x, i);
    mean /= (double)count;
    for (int64_t i = first; i < first + count; i++) {
        double d = kelp_ops_read_f64(x, i) - mean;
        variance += d * d;
    }
    *out_mean = mean;
    *out_variance = variance / (double)count;
}

static void affine(const kelp_op_args *args, int64_t first, int64_t count, double factor,
                   double shift) {
    for (int64_t i = first; i < first + count; i++)
        kelp_tensor_set_f64(args->outputs[0], i,
                            kelp_ops_read_f64(args->inputs[0], i) * factor + shift);
}

static kelp_status *group_reshape(kelp_op_args *args, int64_t groups, bool of_group) {
    group_plan *p = args->plan;
    KELP_TRY(kelp_ops_check(args, 3));
    const kelp_tensor *x = args->inputs[0];
    if (!kelp_ops_is_float(x->dtype))
        return kelp_ops_bad_type(args, x->dtype);
    if (x->rank < 2)
        return kelp_ops_bad_shapes(args, x, NULL, "expected a batch and channels");
    p->groups = groups == 0 ? x->shape[1] : groups;
    if (p->groups < 0 || (p->groups > 0 && x->shape[1] % p->groups != 0))
        return kelp_ops_bad_shapes(args, x, NULL, "the channels must be a multiple of num_groups");
    p->channels = p->groups > 0 ? x->shape[1] / p->groups : 0;
    p->inner = kelp_ops_product(x->shape, 2, x->rank);
    p->of_group = of_group;
    p->epsilon = (double)kelp_node_attr_f32(args->node, "epsilon", 1e-5f);
    for (int32_t i = 1; i < 3; i++)
        if (!kelp_ops_is_float(args->inputs[i]->dtype) ||
            kelp_tensor_elements(args->inputs[i]) != (of_group ? p->groups : x->shape[1]))
            return kelp_ops_bad_shapes(args, x, args->inputs[i],
                                       of_group ? "expected one value for each group"
                                                : "expected one value for each channel");
    if (kelp_math_is_half(x->dtype))
        KELP_TRY(kelp_ops_scratch(args, kelp_round_up(p->channels * p->inner, 16),
                                  sizeof(float) * (size_t)kelp_op_env_threads(args->env),
                                  &p->floats));
    return kelp_ops_set_like(args, 0, x);
}

/* Normalizes a group with the kernel of layer norms, then scales each channel. `y` may be `x`. */
static void group_floats(const group_plan *p, int64_t group, const float *x, float *y) {
    const kelp_elementwise_kernels *elementwise = kelp_elementwise_kernels_get();
    const kelp_norm_kernels *norm = kelp_norm_kernels_get();
    const kelp_op_args *args = p->args;
    int64_t count = p->channels * p->inner;
    float mean, inverse;
    norm->layer_norm(x, NULL, NULL, NULL, (float)p->epsilon, false, NULL, y, count, &mean,
                     &inverse);
    for (int64_t c = 0; c < p->channels; c++, y += p->inner) {
        int64_t index = p->of_group ? group % p->groups : group % p->groups * p->channels + c;
        float scale = (float)kelp_ops_read_f64(args->inputs[1], index);
        float shift = (float)kelp_ops_read_f64(args->inputs[2], index);
        elementwise->bin[KELP_BIN_MUL](y, y, &scale, p->inner, 1, 0);
        elementwise->bin[KELP_BIN_ADD](y, y, &shift, p->inner, 1, 0);
    }
}

static void group_doubles(const group_plan *p, int64_t group) {
    const kelp_op_args *args = p->args;
    int64_t count = p->channels * p->inner;
    double mean, variance;
    moments(args->inputs[0], group * count, count, &mean, &variance);
    for (int64_t c = 0; c < p->channels; c++) {
        int64_t index = p->of_group ? group % p->groups : group % p->groups * p->channels + c;
        double factor = kelp_ops_read_f64(args->inputs[1], index) / sqrt(variance + p->epsilon);
        affine(args, group * count + c * p->inner, p->inner, factor,
               kelp_ops_read_f64(args->inputs[2], index) - mean * factor);
    }
}

static void group_range(void *userp, int64_t begin, int64_t end, int worker) {
    const group_plan *p = userp;
    const kelp_op_args *args = p->args;
    const kelp_tensor *x = args->inputs[0], *y = args->outputs[0];
    int64_t count = p->channels * p->inner;
    float *floats = kelp_ops_scratch_at(args, p->floats);
    floats += worker * kelp_round_up(count, 16);
    for (int64_t at = begin; at < end; at++) {
        if (x->dtype == KELP_F64) {
            group_doubles(p, at);
        } else if (x->dtype == KELP_F32) {
            group_floats(p, at, (const float *)x->data + at * count, (float *)y->data + at * count);
        } else {
            kelp_math_load_tensor(x, at * count, count, floats);
            group_floats(p, at, floats, floats);
            kelp_math_store_tensor(y, at * count, count, floats);
        }
    }
}

static kelp_status *group_invoke(const void *state, kelp_op_args *args) {
    group_plan *p = args->plan;
    (void)state;
    KELP_ASSERT(p->groups * p->channels == args->inputs[0]->shape[1]);
    p->args = args;
    int64_t grain = kelp_cpu_grain(KELP_GRAIN_ELEMENTS, p->channels * p->inner);
    if (kelp_tensor_elements(args->inputs[0]) > 0)
        kelp_op_parallel(args->env, args->inputs[0]->shape[0] * p->groups, grain, group_range, p);
    return NULL;
}

static kelp_status *instance_reshape(const void *state, kelp_op_args *args) {
    (void)state;
    return group_reshape(args, 0, false);
}

/* Version 18 has a scale for each group, version 21 for each channel. */
static kelp_status *group_norm_reshape(const void *state, kelp_op_args *args) {
    int64_t groups = kelp_node_attr_i64(args->node, "num_groups", 0);
    (void)state;
    if (groups < 1)
        return KELP_ERROR(
            KELP_INVALID_ARGUMENT,
            "operator 'GroupNormalization': num_groups must be at least 1: found %lld",
            (long long)groups);
    return group_reshape(args, groups, kelp_ops_version(args) < 21);
}
KELP_KERNEL(InstanceNormalization, KELP_OP_INPLACE_0, sizeof(group_plan), 0, instance_reshape,
            group_invoke);
KELP_KERNEL(GroupNormalization, KELP_OP_INPLACE_0, sizeof(group_plan), 0, group_norm_reshape,
            group_invoke);
