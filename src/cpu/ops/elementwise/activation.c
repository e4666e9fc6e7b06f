/* SPDX-License-Identifier: Apache-2.0 */
/* Activations of fused operators. Source: ONNX Runtime, ContribOperators.md. */
#include "cpu/ops/elementwise/activation.h"

#include "base/assert.h"
#include "cpu/kernels/elementwise/elementwise_kernels.h"

#include <math.h>

kelp_status *kelp_fused_act_read(const kelp_node *node, kelp_fused_act *out) {
    static const struct {
        const char *name;
        kelp_fused_act act;
    } names[] = {{"", {KELP_FUSED_NONE, 0, 0}},
                 {"Relu", {KELP_FUSED_RELU, 0, 0}},
                 {"Tanh", {KELP_FUSED_TANH, 0, 0}},
                 {"Sigmoid", {KELP_FUSED_SIGMOID, 0, 0}},
                 {"LeakyRelu", {KELP_FUSED_LEAKY_RELU, 0.01f, 0}},
                 {"Clip", {KELP_FUSED_CLIP, -INFINITY, INFINITY}},
                 {"HardSigmoid", {KELP_FUSED_HARD_SIGMOID, 0.2f, 0.5f}}};
    const char *name = kelp_node_attr_string(node, "activation", "", NULL);
    const float *params = NULL;
    size_t count = kelp_node_attr_f32s(node, "activation_params", &params);
    for (size_t i = 0; i < KELP_COUNT(names); i++) {
        if (strcmp(name, names[i].name) != 0)
            continue;
        *out = names[i].act;
        out->a = count > 0 ? params[0] : kelp_node_attr_f32(node, "activation_alpha", out->a);
        out->b = count > 1 ? params[1] : kelp_node_attr_f32(node, "activation_beta", out->b);
        return NULL;
    }
    return KELP_ERROR(KELP_UNIMPLEMENTED, "operator '%s': activation '%s' is not supported",
                      kelp_node_op_type(node), name);
}

typedef struct act_job {
    kelp_fused_act act;
    float *y;
} act_job;

static void act_range(void *userp, int64_t begin, int64_t end, int worker) {
    const kelp_elementwise_kernels *elementwise = kelp_elementwise_kernels_get();
    const act_job *job = userp;
    float *y = job->y + begin, a = job->act.a, b = job->act.b;
    int64_t count = end - begin;
    (void)worker;
    switch (job->act.function) {
    case KELP_FUSED_RELU:
        elementwise->act[KELP_ACT_RELU](y, y, count);
        break;
    case KELP_FUSED_TANH:
        elementwise->act[KELP_ACT_TANH](y, y, count);
        break;
    case KELP_FUSED_SIGMOID:
        elementwise->act[KELP_ACT_SIGMOID](y, y, count);
        break;
    case KELP_FUSED_LEAKY_RELU:
        for (int64_t i = 0; i < count; i++)
            y[i] = y[i] >= 0 ? y[i] : a * y[i];
        break;
    case KELP_FUSED_CLIP:
        for (int64_t i = 0; i < count; i++)
            y[i] = y[i] < a ? a : y[i] > b ? b : y[i];
        break;
    case KELP_FUSED_HARD_SIGMOID:
        for (int64_t i = 0; i < count; i++) {
            float v = a * y[i] + b;
            y[i] = v < 0.0f ? 0.0f : v > 1.0f ? 1.0f : v; /* a NaN stays one */
        }
        break;
    case KELP_FUSED_NONE:
        break;
    }
}

void kelp_fused_act_run(const kelp_op_env *env, kelp_fused_act act, float *y, int64_t count) {
    act_job job = {act, y};
    KELP_ASSERT(y != NULL && count >= 0);
    if (act.function != KELP_FUSED_NONE)
        kelp_op_parallel(env, count, KELP_GRAIN_ELEMENTS, act_range, &job);
}
