/* SPDX-License-Identifier: Apache-2.0 */
/* The activation of com.microsoft's FusedConv and FusedGemm, from their attributes. */
#ifndef KELP_CPU_OPS_ELEMENTWISE_ACTIVATION_H_
#define KELP_CPU_OPS_ELEMENTWISE_ACTIVATION_H_

#include "cpu/ops/kernel.h"

/* An activation function. */
typedef enum kelp_fused_function {
    KELP_FUSED_NONE,
    KELP_FUSED_RELU,
    KELP_FUSED_TANH,
    KELP_FUSED_SIGMOID,
    KELP_FUSED_LEAKY_RELU,
    KELP_FUSED_CLIP,
    KELP_FUSED_HARD_SIGMOID
} kelp_fused_function;

/* An activation with its parameters. */
typedef struct kelp_fused_act {
    kelp_fused_function function;
    float a, b; /* LeakyRelu: slope, unused; Clip: minimum, maximum; HardSigmoid: alpha, beta */
} kelp_fused_act;

/* Reads attributes activation and activation_params, or activation_alpha and activation_beta.
 * UNIMPLEMENTED: the activation is not supported. */
kelp_status *kelp_fused_act_read(const kelp_node *node, kelp_fused_act *out) KELP_MUST_USE;
/* Applies the activation to `count` floats in place, on all threads. */
void kelp_fused_act_run(const kelp_op_env *env, kelp_fused_act act, float *y, int64_t count);

#endif
