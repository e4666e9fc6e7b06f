/* SPDX-License-Identifier: Apache-2.0 */
/* CausalConvWithState: a causal depthwise convolution whose state is the end of the last input.
 * Source: ONNX operator specification. */
#include "base/assert.h"
#include "cpu/kernels/gemm/gemm.h"
#include "cpu/kernels/vector/vector_kernels.h"
#include "cpu/ops/converted.h"
#include "cpu/ops/kernel.h"
#include "tensor/real.h"

#include <math.h>

typedef struct causal_plan {
    int64_t batch, channels, length, taps;
    int64_t row_size; /* past and new elements of one channel */
    bool silu;
    size_t weight_at, bias_at, rows; /* in scratch memory; rows: two for each worker */
    const float *weight, *bias;
    const kelp_op_args *args;
} causal_plan;

static kelp_status *causal_reshape(const void *state, kelp_op_args *args) {
    causal_plan *p = args->plan;
    (void)state;
    KELP_TRY(kelp_ops_check(args, 2));
    const kelp_tensor *x = args->inputs[0], *w = args->inputs[1], *past = kelp_ops_in(args, 3);
    const kelp_tensor *bias = kelp_ops_in(args, 2);
    for (int32_t i = 0; i < args->input_count && i < 4; i++) {
        const kelp_tensor *in = args->inputs[i];
        if (in != NULL &&
            (!kelp_ops_is_float(x->dtype) || x->dtype == KELP_F64 || in->dtype != x->dtype))
            return kelp_ops_bad_type(args, in->dtype);
    }
    if (x->rank != 3 || w->rank != 3 || w->shape[0] != x->shape[1] || w->shape[1] != 1 ||
        w->shape[2] < 1 || (bias != NULL && kelp_tensor_elements(bias) != x->shape[1]))
        return kelp_ops_bad_shapes(args, x, w,
                                   "expected [batch, channels, length] and "
                                   "[channels, 1, taps]");
    p->batch = x->shape[0];
    p->channels = x->shape[1];
    p->length = x->shape[2];
    p->taps = w->shape[2];
    int64_t states[3] = {p->batch, p->channels, p->taps - 1};
    if (past != NULL && (past->rank != 3 || memcmp(past->shape, states, sizeof states) != 0))
        return kelp_ops_bad_shapes(args, x, past,
                                   "the past state does not match input and weights");
    const char *act = kelp_node_attr_string(args->node, "activation", "none", NULL);
    p->silu = strcmp(act, "silu") == 0 || strcmp(act, "swish") == 0;
    if (!p->silu && strcmp(act, "none") != 0)
        return KELP_ERROR(
            KELP_INVALID_ARGUMENT,
            "operator 'CausalConvWithState': attribute 'activation' is '%s': expected "
            "'none', 'silu' or 'swish'",
            act);
    KELP_TRY(kelp_ops_set_like(args, 0, x));
    KELP_TRY(kelp_ops_set(args, 1, x->dtype, 3, states));
    KELP_TRY(kelp_ops_plan_f32(args, w, &p->weight_at));
    KELP_TRY(kelp_ops_plan_f32(args, bias, &p->bias_at));
    p->row_size = p->length + p->taps - 1;
    return kelp_ops_scratch(args, 2 * p->row_size,
                            sizeof(float) * (size_t)kelp_op_env_threads(args->env), &p->rows);
}

static void causal_range(void *userp, int64_t begin, int64_t end, int worker) {
    const kelp_elementwise_kernels *elementwise = kelp_elementwise_kernels_get();
    const kelp_vector_kernels *vector = kelp_vector_kernels_get();
    const causal_plan *p = userp;
    const kelp_tensor *x = p->args->inputs[0], *past = kelp_ops_in(p->args, 3);
    kelp_tensor *out = p->args->outputs[0], *present = kelp_ops_out(p->args, 1);
    float *row = (float *)kelp_ops_scratch_at(p->args, p->rows) + worker * 2 * p->row_size;
    int64_t kept = p->taps - 1;
    for (int64_t at = begin; at < end; at++) {
        int64_t c = at % p->channels;
        if (past != NULL)
            kelp_math_load_tensor(past, at * kept, kept, row);
        else
            memset(row, 0, (size_t)kept * sizeof *row);
        kelp_math_load_tensor(x, at * p->length, p->length, row + kept);
        float *y = out->dtype == KELP_F32 ? (float *)out->data + at * p->length : row + p->row_size;
        for (int64_t i = 0; i < p->length; i++)
            y[i] = p->bias != NULL ? p->bias[c] : 0.0f;
        for (int64_t k = 0; k < p->taps; k++)
            vector->axpy(y, row + k, p->weight[c * p->taps + k], 1, p->length);
        for (int64_t i = 0; i < p->length && x->dtype != KELP_F32; i++)
            y[i] = kelp_real_round(x->dtype, y[i]);
        if (p->silu)
            elementwise->act[KELP_ACT_SILU](y, y, p->length);
        if (out->dtype != KELP_F32)
            kelp_math_store_tensor(out, at * p->length, p->length, y);
        if (present != NULL)
            kelp_math_store_tensor(present, at * kept, kept, row + p->length);
    }
}

static kelp_status *causal_invoke(const void *state, kelp_op_args *args) {
    causal_plan *p = args->plan;
    (void)state;
    KELP_ASSERT(p->taps > 0 && p->row_size == p->length + p->taps - 1);
    KELP_ASSERT(args->outputs[0]->dtype == args->inputs[0]->dtype);
    p->args = args;
    p->weight = kelp_ops_get_f32(args, args->inputs[1], p->weight_at);
    p->bias = kelp_ops_get_f32(args, kelp_ops_in(args, 2), p->bias_at);
    int64_t grain = kelp_cpu_grain(KELP_GRAIN_ELEMENTS, p->length * p->taps);
    kelp_op_parallel(args->env, p->batch * p->channels, grain, causal_range, p);
    return NULL;
}
KELP_KERNEL(CausalConvWithState, 0, sizeof(causal_plan), 0, causal_reshape, causal_invoke);
