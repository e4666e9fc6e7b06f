/* SPDX-License-Identifier: Apache-2.0 */
/*
 * LinearAttention: each head of keys has a state of [key size, value size]. Each token decays,
 * corrects and updates it; queries read it. Tokens run in sequence, heads in parallel.
 * Source: ONNX operator specification; Yang et al., "Gated Delta Networks", 2024.
 */
#include "base/assert.h"
#include "cpu/kernels/gemm/gemm.h"
#include "cpu/kernels/vector/vector_kernels.h"
#include "cpu/ops/converted.h"
#include "cpu/ops/kernel.h"
#include "tensor/real.h"

#include <math.h>

#define PAST 3 /* the input that holds the past state */

typedef struct linear_plan {
    int64_t batch, tokens, q_heads, kv_heads, size, v_size, decay_size, beta_heads;
    bool gated, delta;
    float scale;
    size_t in_at[6], state_at, rows; /* in scratch memory; rows: two of values for each worker */
    const kelp_op_args *args;
    const float *in[6]; /* query, key, value, past state (not read), decay, beta */
    float *state;
} linear_plan;

static kelp_status *read_rule(kelp_op_args *args, linear_plan *p) {
    const char *rule = kelp_node_attr_string(args->node, "update_rule", "gated_delta", NULL);
    p->gated = strcmp(rule, "gated") == 0 || strcmp(rule, "gated_delta") == 0;
    p->delta = strcmp(rule, "delta") == 0 || strcmp(rule, "gated_delta") == 0;
    if (!p->gated && !p->delta && strcmp(rule, "linear") != 0)
        return KELP_ERROR(KELP_INVALID_ARGUMENT,
                          "operator 'LinearAttention': attribute 'update_rule' is '%s': expected "
                          "'linear', 'gated', 'delta' or 'gated_delta'",
                          rule);
    if ((kelp_ops_in(args, 4) != NULL) != p->gated || (kelp_ops_in(args, 5) != NULL) != p->delta)
        return KELP_ERROR(KELP_INVALID_ARGUMENT,
                          "operator 'LinearAttention': decay requires a gated rule, and beta "
                          "a delta rule: found rule '%s' %s decay, %s beta",
                          rule, kelp_ops_in(args, 4) ? "with" : "without",
                          kelp_ops_in(args, 5) ? "with" : "without");
    return NULL;
}

static bool is_tokens(const linear_plan *p, const kelp_tensor *x, int64_t width) {
    return x == NULL || (x->rank == 3 && x->shape[0] == p->batch && x->shape[1] == p->tokens &&
                         x->shape[2] == width);
}

static kelp_status *read_sizes(kelp_op_args *args, linear_plan *p) {
    const kelp_tensor *q = args->inputs[0], *k = args->inputs[1], *v = args->inputs[2];
    const kelp_tensor *past = kelp_ops_in(args, 3), *decay = kelp_ops_in(args, 4);
    const kelp_tensor *beta = kelp_ops_in(args, 5);
    p->q_heads = kelp_node_attr_i64(args->node, "q_num_heads", 0);
    p->kv_heads = kelp_node_attr_i64(args->node, "kv_num_heads", 0);
    if (q->rank != 3 || v->rank != 3 || p->q_heads < 1 || p->kv_heads < 1 ||
        p->q_heads % p->kv_heads != 0 || q->shape[2] % p->q_heads != 0 ||
        v->shape[2] % p->kv_heads != 0)
        return kelp_ops_bad_shapes(args, q, v,
                                   "q_num_heads and kv_num_heads do not match the inputs");
    p->batch = q->shape[0];
    p->tokens = q->shape[1];
    p->size = q->shape[2] / p->q_heads;
    p->v_size = v->shape[2] / p->kv_heads;
    p->decay_size =
        decay != NULL && decay->rank == 3 && decay->shape[2] != p->kv_heads ? p->size : 1;
    p->beta_heads = beta != NULL && beta->rank == 3 && beta->shape[2] == 1 ? 1 : p->kv_heads;
    if (!is_tokens(p, k, p->kv_heads * p->size) || !is_tokens(p, v, p->kv_heads * p->v_size) ||
        !is_tokens(p, decay, p->kv_heads * p->decay_size) || !is_tokens(p, beta, p->beta_heads))
        return kelp_ops_bad_shapes(args, k, v,
                                   "the shape of keys, values, decay or beta does not match");
    if (past != NULL &&
        (past->rank != 4 || past->shape[0] != p->batch || past->shape[1] != p->kv_heads ||
         past->shape[2] != p->size || past->shape[3] != p->v_size))
        return kelp_ops_bad_shapes(args, q, past, "the past state does not match the heads");
    return NULL;
}

/* Returns the floats of one row of values in scratch memory. */
static int64_t row_stride(const linear_plan *p) {
    return kelp_round_up(p->v_size, 16);
}

static kelp_status *linear_reshape(const void *state, kelp_op_args *args) {
    linear_plan *p = args->plan;
    (void)state;
    KELP_TRY(kelp_ops_check(args, 3));
    for (int32_t i = 0; i < args->input_count && i < 6; i++) {
        const kelp_tensor *x = args->inputs[i];
        if (x != NULL && (!kelp_ops_is_float(x->dtype) || x->dtype == KELP_F64))
            return kelp_ops_bad_type(args, x->dtype);
        if (i != PAST)
            KELP_TRY(kelp_ops_plan_f32(args, x, &p->in_at[i]));
    }
    KELP_TRY(read_rule(args, p));
    KELP_TRY(read_sizes(args, p));
    p->scale = kelp_node_attr_f32(args->node, "scale", 0.0f);
    if (p->scale == 0.0f)
        p->scale = 1.0f / sqrtf((float)p->size);
    const kelp_tensor *q = args->inputs[0], *past = kelp_ops_in(args, 3);
    int64_t out[3] = {p->batch, p->tokens, p->q_heads * p->v_size};
    int64_t states[4] = {p->batch, p->kv_heads, p->size, p->v_size}, count = 0;
    if (!kelp_shape_elements(4, states, &count)) /* the state may exceed all inputs */
        return kelp_ops_bad_shapes(args, q, args->inputs[2], "the state would be too large");
    KELP_TRY(kelp_ops_set(args, 0, q->dtype, 3, out));
    KELP_TRY(kelp_ops_set(args, 1, past != NULL ? past->dtype : q->dtype, 4, states));
    KELP_TRY(kelp_ops_scratch(args, count, sizeof(float), &p->state_at));
    return kelp_ops_scratch(args, 2 * row_stride(p),
                            sizeof(float) * (size_t)kelp_op_env_threads(args->env), &p->rows);
}

/* Updates the state of one head by one token: decay, correction, sum. */
static void update(const linear_plan *p, const kelp_vector_kernels *vector, int64_t token,
                   int64_t head, float *s, float *fresh) {
    int64_t at = token * p->kv_heads + head;
    const float *k = p->in[1] + at * p->size, *v = p->in[2] + at * p->v_size;
    for (int64_t d = 0; d < p->size && p->gated; d++) {
        float keep = expf(p->in[4][at * p->decay_size + (p->decay_size > 1 ? d : 0)]);
        for (int64_t j = 0; j < p->v_size; j++)
            s[d * p->v_size + j] *= keep;
    }
    memcpy(fresh, v, (size_t)p->v_size * sizeof *fresh);
    if (p->delta) {
        float rate = p->in[5][p->beta_heads == 1 ? token : at];
        for (int64_t d = 0; d < p->size; d++)
            vector->axpy(fresh, s + d * p->v_size, -k[d], 1, p->v_size);
        for (int64_t j = 0; j < p->v_size; j++)
            fresh[j] *= rate;
    }
    for (int64_t d = 0; d < p->size; d++)
        vector->axpy(s + d * p->v_size, fresh, k[d], 1, p->v_size);
}

static void linear_range(void *userp, int64_t begin, int64_t end, int worker) {
    const kelp_vector_kernels *vector = kelp_vector_kernels_get();
    const linear_plan *p = userp;
    const kelp_tensor *past = kelp_ops_in(p->args, PAST);
    kelp_tensor *out = p->args->outputs[0];
    float *fresh = (float *)kelp_ops_scratch_at(p->args, p->rows) + worker * 2 * row_stride(p);
    int64_t group = p->q_heads / p->kv_heads, each = p->size * p->v_size;
    for (int64_t unit = begin; unit < end; unit++) {
        int64_t image = unit / p->kv_heads, head = unit % p->kv_heads;
        float *s = p->state + unit * each;
        if (past != NULL)
            kelp_math_load_tensor(past, unit * each, each, s);
        else
            memset(s, 0, (size_t)each * sizeof *s);
        for (int64_t t = image * p->tokens; t < (image + 1) * p->tokens; t++) {
            if (kelp_op_env_cancelled(p->args->env))
                return;
            update(p, vector, t, head, s, fresh);
            for (int64_t h = head * group; h < (head + 1) * group; h++) {
                const float *q = p->in[0] + (t * p->q_heads + h) * p->size;
                int64_t at = (t * p->q_heads + h) * p->v_size;
                bool in_place = out->dtype == KELP_F32;
                float *y = in_place ? (float *)out->data + at : fresh + row_stride(p);
                memset(y, 0, (size_t)p->v_size * sizeof *y);
                for (int64_t d = 0; d < p->size; d++)
                    vector->axpy(y, s + d * p->v_size, q[d] * p->scale, 1, p->v_size);
                if (!in_place)
                    kelp_math_store_tensor(out, at, p->v_size, y);
            }
        }
    }
}

static kelp_status *linear_invoke(const void *state, kelp_op_args *args) {
    linear_plan *p = args->plan;
    kelp_tensor *out_state = kelp_ops_out(args, 1);
    (void)state;
    KELP_ASSERT(p->kv_heads > 0 && p->q_heads % p->kv_heads == 0);
    KELP_ASSERT(p->gated == (kelp_ops_in(args, 4) != NULL));
    p->args = args;
    for (int32_t i = 0; i < 6; i++)
        if (i != PAST)
            p->in[i] = kelp_ops_get_f32(args, kelp_ops_in(args, i), p->in_at[i]);
    p->state = kelp_ops_scratch_at(args, p->state_at);
    kelp_op_parallel(args->env, p->batch * p->kv_heads, 1, linear_range, p);
    if (out_state != NULL)
        kelp_ops_store_f32(args->env, p->state, out_state);
    return NULL;
}
KELP_KERNEL(LinearAttention, 0, sizeof(linear_plan), 0, linear_reshape, linear_invoke);
