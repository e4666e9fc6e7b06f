/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kelp::Attention and kelp::AttentionBf16, which passes create: q, k, v as [batch, sequence, heads
 * * size], an optional additive mask [batch or 1, 1, query or 1, key or 1]; attributes num_heads
 * and scale; y = softmax(scale * q·kᵀ + mask)·v as [batch, query, heads * size]. AttentionBf16
 * rounds the operands of both matrix multiplications to bfloat16.
 */
#include "base/assert.h"
#include "cpu/ops/attention/heads.h"

typedef struct fused_plan {
    kelp_sdpa s;
    size_t scratch;
} fused_plan;

static kelp_status *read_mask(const kelp_op_args *args, kelp_sdpa *s) {
    const kelp_tensor *q = args->inputs[0], *mask = kelp_ops_in(args, 3);
    if (mask == NULL)
        return NULL;
    if (mask->rank != 4 || mask->dtype != KELP_F32 || mask->shape[1] != 1 ||
        (mask->shape[3] != 1 && mask->shape[3] != s->keys) ||
        (mask->shape[0] != 1 && mask->shape[0] != s->batch) ||
        (mask->shape[2] != 1 && mask->shape[2] != s->queries))
        return kelp_ops_bad_shapes(args, q, mask, "the mask does not broadcast to the scores");
    s->masks[0] = (kelp_sdpa_mask){
        .dtype = KELP_F32,
        .batch = mask->shape[0] == 1 ? 0 : mask->shape[3] * mask->shape[2],
        .row = mask->shape[2] == 1 ? 0 : mask->shape[3],
        .column = mask->shape[3] == s->keys ? 1 : 0,
        .keys = s->keys,
    };
    return NULL;
}

static kelp_status *fused_reshape(kelp_op_args *args, kelp_dtype compute) {
    fused_plan *p = args->plan;
    kelp_sdpa *s = &p->s;
    KELP_TRY(kelp_ops_check(args, 3));
    const kelp_tensor *q = args->inputs[0], *k = args->inputs[1], *v = args->inputs[2];
    if (q->dtype != KELP_F32 || k->dtype != KELP_F32 || v->dtype != KELP_F32)
        return kelp_ops_bad_type(args, q->dtype);
    s->heads = kelp_node_attr_i64(args->node, "num_heads", 1);
    s->scale = (double)kelp_node_attr_f32(args->node, "scale", 1.0f);
    if (q->rank != 3 || k->rank != 3 || v->rank != 3 || s->heads < 1 ||
        q->shape[2] % s->heads != 0 || k->shape[2] != q->shape[2] || v->shape[2] != q->shape[2] ||
        k->shape[1] != v->shape[1] || k->shape[0] != q->shape[0] || v->shape[0] != q->shape[0])
        return kelp_ops_bad_shapes(args, q, k,
                                   "the shapes of queries, keys and values do not match");
    s->compute = compute;
    s->q_dtype = s->y_dtype = s->round = s->softmax_round = KELP_F32;
    s->q_scale = 1.0f;
    s->batch = q->shape[0];
    s->group = 1;
    s->size = s->v_size = q->shape[2] / s->heads;
    s->queries = q->shape[1];
    s->keys = k->shape[1];
    s->left = s->right = -1;
    s->empty_is_nan = true; /* as in the operators that were fused */
    KELP_TRY(read_mask(args, s));
    KELP_TRY(kelp_ops_set_like(args, 0, q));
    return kelp_sdpa_reserve(args, s, &p->scratch);
}

static kelp_status *fused_invoke(const void *state, kelp_op_args *args) {
    const fused_plan *p = args->plan;
    kelp_sdpa s = p->s;
    int64_t width = s.heads * s.size;
    (void)state;
    KELP_ASSERT(width == args->inputs[0]->shape[2] && s.keys == args->inputs[1]->shape[1]);
    s.q = (kelp_sdpa_view){args->inputs[0]->data, s.queries * width, s.size, width};
    s.k = (kelp_sdpa_view){args->inputs[1]->data, s.keys * width, s.size, width};
    s.v = (kelp_sdpa_view){args->inputs[2]->data, s.keys * width, s.size, width};
    s.y = (kelp_sdpa_view){args->outputs[0]->data, s.queries * width, s.size, width};
    s.masks[0].data = kelp_ops_in(args, 3) != NULL ? args->inputs[3]->data : NULL;
    s.scratch = kelp_ops_scratch_at(args, p->scratch);
    kelp_sdpa_run(args->env, &s);
    return NULL;
}

static kelp_status *f32_reshape(const void *state, kelp_op_args *args) {
    (void)state;
    return fused_reshape(args, KELP_F32);
}
static kelp_status *bf16_reshape(const void *state, kelp_op_args *args) {
    (void)state;
    return fused_reshape(args, KELP_BF16);
}
KELP_KERNEL(Attention, 0, sizeof(fused_plan), 0, f32_reshape, fused_invoke);
KELP_KERNEL(AttentionBf16, 0, sizeof(fused_plan), 0, bf16_reshape, fused_invoke);
