/* SPDX-License-Identifier: Apache-2.0 */
/*
 * com.microsoft MultiHeadAttention: separate or packed queries, keys and values, with bias, padding
 * mask, additive bias and cache. Source: ONNX Runtime, ContribOperators.md.
 */
#include "base/assert.h"
#include "cpu/ops/attention/heads.h"
#include "cpu/ops/converted.h"
#include "tensor/real.h"

#include <math.h>

enum { QUERY, KEY, VALUE, BIAS, PADDING, ADDED, PAST_KEY, PAST_VALUE };

typedef struct multi_plan {
    kelp_sdpa s;
    kelp_heads part[3]; /* queries, keys, values */
    kelp_heads_mask mask;
    bool gathers[3];
    size_t bias, copies[3], scratch;
} multi_plan;

/* Reads the layout of the inputs, of rank 3, 4 (heads first) or 5 (packed: queries, keys and values
 * in input 0, or keys and values in input 1). */
static kelp_status *layout(kelp_op_args *args, multi_plan *p) {
    const kelp_tensor *q = args->inputs[QUERY], *k = kelp_ops_in(args, KEY);
    const kelp_tensor *v = kelp_ops_in(args, VALUE);
    kelp_sdpa *s = &p->s;
    kelp_heads *hq = &p->part[0], *hk = &p->part[1], *hv = &p->part[2];
    int64_t n = kelp_node_attr_i64(args->node, "num_heads", 0);
    if (n < 1 || (q->rank != 3 && q->rank != 5) || (q->rank == 3 && q->shape[2] % n != 0))
        return kelp_ops_bad_shapes(args, q, k, "num_heads does not match the queries");
    s->heads = n;
    s->group = 1;
    s->batch = q->shape[0];
    s->queries = q->shape[1];
    if (q->rank == 5 && q->shape[2] == n && q->shape[3] == 3 && k == NULL && v == NULL) {
        s->size = s->v_size = q->shape[4];
        hk->fresh = hv->fresh = s->queries;
        hq->from = hk->from = hv->from =
            (kelp_sdpa_view){NULL, s->queries * n * 3 * s->size, 3 * s->size, n * 3 * s->size};
        return NULL;
    }
    s->size = q->rank == 3 ? q->shape[2] / n : 0;
    hq->from = (kelp_sdpa_view){NULL, s->queries * n * s->size, s->size, n * s->size};
    if (k != NULL && k->rank == 5 && v == NULL && k->shape[0] == s->batch && k->shape[2] == n &&
        k->shape[3] == 2 && k->shape[4] == s->size) {
        s->v_size = s->size;
        hk->fresh = hv->fresh = k->shape[1];
        hk->from = hv->from =
            (kelp_sdpa_view){NULL, hk->fresh * n * 2 * s->size, 2 * s->size, n * 2 * s->size};
        return NULL;
    }
    if (k == NULL || v == NULL || k->rank != v->rank || k->shape[0] != s->batch ||
        v->shape[0] != s->batch)
        return kelp_ops_bad_shapes(args, q, k,
                                   "the shapes of keys and values do not match the queries");
    if (k->rank == 3 && k->shape[2] == n * s->size && v->shape[2] % n == 0 &&
        v->shape[1] == k->shape[1]) {
        s->v_size = v->shape[2] / n;
        hk->fresh = hv->fresh = k->shape[1];
        hk->from = (kelp_sdpa_view){NULL, hk->fresh * n * s->size, s->size, n * s->size};
        hv->from = (kelp_sdpa_view){NULL, hk->fresh * n * s->v_size, s->v_size, n * s->v_size};
        return NULL;
    }
    if (k->rank == 4 && k->shape[1] == n && v->shape[1] == n && k->shape[3] == s->size &&
        k->shape[2] == v->shape[2]) {
        s->v_size = v->shape[3];
        hk->fresh = hv->fresh = k->shape[2];
        hk->from = (kelp_sdpa_view){NULL, n * hk->fresh * s->size, hk->fresh * s->size, s->size};
        hv->from =
            (kelp_sdpa_view){NULL, n * hk->fresh * s->v_size, hk->fresh * s->v_size, s->v_size};
        return NULL;
    }
    return kelp_ops_bad_shapes(args, k, v,
                               "the shapes of keys and values do not match the queries");
}

static kelp_status *read_past(kelp_op_args *args, multi_plan *p) {
    const kelp_tensor *k = kelp_ops_in(args, PAST_KEY), *v = kelp_ops_in(args, PAST_VALUE);
    kelp_sdpa *s = &p->s;
    int64_t past = k != NULL && k->rank == 4 ? k->shape[2] : 0;
    if ((k == NULL) != (v == NULL) ||
        (k != NULL &&
         (k->rank != 4 || v->rank != 4 || k->shape[0] != s->batch || k->shape[1] != s->heads ||
          k->shape[3] != s->size || v->shape[0] != s->batch || v->shape[1] != s->heads ||
          v->shape[3] != s->v_size || v->shape[2] != past)))
        return kelp_ops_bad_shapes(args, k, v, "the shapes of past keys and values do not match");
    s->keys = p->part[1].fresh + past;
    for (int i = 1; i < 3; i++) {
        p->part[i].past = p->part[i].old_rows = past;
        p->part[i].rows = s->keys;
        p->part[i].size = i == 1 ? s->size : s->v_size;
    }
    p->part[0].fresh = p->part[0].rows = s->queries;
    p->part[0].size = s->size;
    return NULL;
}

static kelp_status *reserve(kelp_op_args *args, multi_plan *p) {
    kelp_sdpa *s = &p->s;
    const kelp_tensor *bias = kelp_ops_in(args, BIAS);
    kelp_dtype dtype = args->inputs[QUERY]->dtype;
    if (bias != NULL && kelp_tensor_elements(bias) != s->heads * (2 * s->size + s->v_size))
        return kelp_ops_bad_shapes(args, args->inputs[QUERY], bias,
                                   "the bias does not match the heads");
    for (int i = 0; i < 3; i++) {
        kelp_heads *h = &p->part[i];
        h->batch = s->batch;
        h->heads = s->heads;
        h->from_dtype = dtype;
        p->gathers[i] = bias != NULL || h->past > 0 ||
                        (i > 0 && (dtype != KELP_F32 || kelp_ops_out(args, i) != NULL));
        if (p->gathers[i] && !(i > 0 && dtype == KELP_F32 && kelp_ops_out(args, i) != NULL))
            KELP_TRY(
                kelp_ops_scratch(args, s->batch * s->heads * h->rows * h->size, 4, &p->copies[i]));
    }
    if (bias != NULL)
        KELP_TRY(kelp_ops_scratch(args, kelp_tensor_elements(bias), sizeof(float), &p->bias));
    s->q_dtype = p->gathers[0] ? KELP_F32 : dtype;
    s->y_dtype = dtype;
    return kelp_sdpa_reserve(args, s, &p->scratch);
}

static kelp_status *multi_reshape(const void *state, kelp_op_args *args) {
    multi_plan *p = args->plan;
    kelp_sdpa *s = &p->s;
    (void)state;
    KELP_TRY(kelp_ops_check(args, 1));
    kelp_dtype dtype = args->inputs[QUERY]->dtype;
    for (int32_t i = 0; i < args->input_count && i < 8; i++)
        if (i != PADDING && args->inputs[i] != NULL &&
            (args->inputs[i]->dtype != dtype || !kelp_ops_is_float(dtype) || dtype == KELP_F64))
            return kelp_ops_bad_type(args, args->inputs[i]->dtype);
    if (kelp_ops_in(args, 8) != NULL || kelp_ops_in(args, 9) != NULL)
        return KELP_ERROR(KELP_UNIMPLEMENTED,
                          "operator 'MultiHeadAttention': a buffer shared by past and "
                          "present is not supported");
    KELP_TRY(layout(args, p));
    KELP_TRY(read_past(args, p));
    s->scale = (double)kelp_node_attr_f32(args->node, "scale", 0.0f);
    if (s->scale == 0)
        s->scale = 1.0 / sqrt((double)s->size);
    s->compute = s->round = s->softmax_round = KELP_F32;
    s->q_scale = 1.0f;
    s->left = -1;
    s->right = kelp_node_attr_i64(args->node, "unidirectional", 0) != 0 ? 0 : -1;
    s->offset = s->keys - s->queries;
    s->scores_stage = 2;
    KELP_TRY(kelp_heads_mask_plan(args, PADDING, s, &p->mask));
    KELP_TRY(kelp_heads_bias_check(args, ADDED, s));
    int64_t y[3] = {s->batch, s->queries, s->heads * s->v_size};
    KELP_TRY(kelp_ops_set(args, 0, dtype, 3, y));
    for (int32_t i = 1; i < 3; i++) {
        int64_t shape[4] = {s->batch, s->heads, s->keys, p->part[i].size};
        KELP_TRY(kelp_ops_set(args, i, dtype, 4, shape));
    }
    KELP_TRY(
        kelp_ops_set(args, 3, dtype, 4, (int64_t[4]){s->batch, s->heads, s->queries, s->keys}));
    return reserve(args, p);
}

/* Makes the view of queries (index 0), keys (1) or values (2). */
static void make_part(const kelp_op_args *args, const multi_plan *p, int index, const void *data,
                      const float *bias, kelp_sdpa_view *out) {
    kelp_heads h = p->part[index];
    kelp_tensor *present = index > 0 ? kelp_ops_out(args, index) : NULL;
    h.from.data = data;
    *out = h.from;
    if (!p->gathers[index])
        return;
    h.bias = bias;
    h.old = index > 0 ? kelp_ops_in(args, index == 1 ? PAST_KEY : PAST_VALUE) : NULL;
    bool straight = present != NULL && present->dtype == KELP_F32;
    h.to = straight ? present->data : kelp_ops_scratch_at(args, p->copies[index]);
    kelp_heads_gather(args->env, &h, out);
    if (present != NULL && !straight)
        kelp_ops_store_f32(args->env, h.to, present);
}

static const float *load_bias(const kelp_op_args *args, const multi_plan *p) {
    const kelp_tensor *bias = kelp_ops_in(args, BIAS);
    if (bias == NULL)
        return NULL;
    float *to = kelp_ops_scratch_at(args, p->bias);
    kelp_math_load_tensor(bias, 0, kelp_tensor_elements(bias), to);
    return to;
}

static kelp_status *multi_invoke(const void *state, kelp_op_args *args) {
    multi_plan *p = args->plan;
    kelp_sdpa s = p->s;
    int64_t width = s.heads * s.size;
    (void)state;
    KELP_ASSERT(s.batch == args->inputs[QUERY]->shape[0] && s.queries == p->part[0].fresh);
    KELP_ASSERT(s.keys == p->part[1].fresh + p->part[1].past);
    const float *bias = load_bias(args, p);
    size_t head_bytes = (size_t)s.size * kelp_ops_element_bytes(s.y_dtype);
    const char *in[3];
    for (int i = 0; i < 3; i++)
        in[i] = kelp_ops_in(args, i) != NULL ? args->inputs[i]->data : NULL;
    if (in[VALUE] == NULL && in[KEY] != NULL) /* packed keys and values */
        in[VALUE] = in[KEY] + head_bytes;
    if (in[KEY] == NULL) { /* packed queries, keys and values */
        in[KEY] = in[QUERY] + head_bytes;
        in[VALUE] = in[QUERY] + 2 * head_bytes;
    }
    make_part(args, p, 0, in[QUERY], bias, &s.q);
    make_part(args, p, 1, in[KEY], bias != NULL ? bias + width : NULL, &s.k);
    make_part(args, p, 2, in[VALUE], bias != NULL ? bias + 2 * width : NULL, &s.v);
    kelp_heads_mask_set(args, &p->mask,
                        kelp_node_attr_f32(args->node, "mask_filter_value", -10000.0f), &s);
    kelp_heads_bias_set(args, ADDED, &s);
    s.scores = kelp_ops_out(args, 3) != NULL ? args->outputs[3]->data : NULL;
    s.scores_dtype = s.y_dtype;
    s.scratch = kelp_ops_scratch_at(args, p->scratch);
    s.y = (kelp_sdpa_view){args->outputs[0]->data, s.queries * s.heads * s.v_size, s.v_size,
                           s.heads * s.v_size};
    kelp_sdpa_run(args->env, &s);
    return NULL;
}
KELP_KERNEL(MsMultiHeadAttention, 0, sizeof(multi_plan), 0, multi_reshape, multi_invoke);
