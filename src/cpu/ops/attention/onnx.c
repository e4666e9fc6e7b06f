/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ai.onnx Attention (versions 23 to 25) with grouped heads, windows, and caches that are
 * concatenated here or kept outside. float16 and bfloat16 are computed as floats. Source: ONNX
 * operator specification.
 */
#include "base/assert.h"
#include "cpu/ops/attention/heads.h"
#include "cpu/ops/converted.h"
#include "cpu/ops/variant.h"
#include "tensor/real.h"

#include <math.h>
#include <string.h>

typedef struct cache_part {
    size_t joined, wide; /* offsets in scratch memory */
    bool joins, widens;
} cache_part;

typedef struct attention_plan {
    kelp_sdpa s; /* pointers are set by invoke */
    int64_t kv_heads, past;
    bool packed; /* rank 3: [batch, sequence, heads * size] */
    cache_part k, v;
    size_t scratch;
} attention_plan;

static kelp_status *read_shapes(kelp_op_args *args, attention_plan *p) {
    const kelp_tensor *q = args->inputs[0], *k = args->inputs[1], *v = args->inputs[2];
    kelp_sdpa *s = &p->s;
    p->packed = q->rank == 3;
    if ((q->rank != 3 && q->rank != 4) || k->rank != q->rank || v->rank != q->rank)
        return kelp_ops_bad_shapes(args, q, k, "queries, keys and values must have rank 3 or 4");
    s->heads = p->packed ? kelp_node_attr_i64(args->node, "q_num_heads", 0) : q->shape[1];
    p->kv_heads = p->packed ? kelp_node_attr_i64(args->node, "kv_num_heads", 0) : k->shape[1];
    if (s->heads < 1 || p->kv_heads < 1 || s->heads % p->kv_heads != 0)
        return kelp_ops_bad_shapes(args, q, k,
                                   "the heads of queries must be a multiple of the heads of keys");
    int32_t row = p->packed ? 1 : 2;
    int64_t kv = p->packed ? p->kv_heads : 1;
    if (p->packed && (q->shape[2] % s->heads != 0 || k->shape[2] % kv != 0 || v->shape[2] % kv))
        return kelp_ops_bad_shapes(args, q, k,
                                   "the last dimension must be a multiple of the heads");
    s->batch = q->shape[0];
    s->group = s->heads / p->kv_heads;
    s->queries = q->shape[row];
    s->size = q->shape[row + 1] / (p->packed ? s->heads : 1);
    s->v_size = v->shape[row + 1] / kv;
    s->keys = k->shape[row];
    if (k->shape[0] != s->batch || v->shape[0] != s->batch || v->shape[row] != s->keys ||
        k->shape[row + 1] / kv != s->size || (!p->packed && v->shape[1] != p->kv_heads))
        return kelp_ops_bad_shapes(args, k, v,
                                   "the shapes of queries, keys and values do not match");
    return NULL;
}

static kelp_status *read_past(kelp_op_args *args, attention_plan *p) {
    const kelp_tensor *k = kelp_ops_in(args, 4), *v = kelp_ops_in(args, 5);
    kelp_sdpa *s = &p->s;
    if (k == NULL && v == NULL)
        return NULL;
    if (k == NULL || v == NULL || k->rank != 4 || v->rank != 4 || k->shape[0] != s->batch ||
        v->shape[0] != s->batch || k->shape[1] != p->kv_heads || v->shape[1] != p->kv_heads ||
        k->shape[2] != v->shape[2] || k->shape[3] != s->size || v->shape[3] != s->v_size ||
        k->dtype != args->inputs[1]->dtype || v->dtype != args->inputs[2]->dtype)
        return kelp_ops_bad_shapes(args, k, v, "the shapes of past keys and values do not match");
    p->past = k->shape[2];
    s->keys += p->past;
    return NULL;
}

static kelp_status *read_mask(kelp_op_args *args, const kelp_sdpa *s, const kelp_tensor *mask,
                              kelp_sdpa_mask *out) {
    int64_t dims[4] = {s->batch, s->heads, s->queries, s->keys}, strides[4] = {0};
    if (mask == NULL)
        return NULL;
    if (mask->rank < 1 || mask->rank > 4)
        return kelp_ops_bad_shapes(args, mask, NULL, "the mask must have rank 1 to 4");
    out->keys = mask->shape[mask->rank - 1];
    if (out->keys == 1 && s->keys > 1 && kelp_op_variant_of(args->node) == KELP_VARIANT_FUSED_HEADS)
        return NULL; /* adding one value to all keys does not change the softmax */
    for (int32_t i = mask->rank - 2, at = 2; i >= 0; i--, at--) {
        if (mask->shape[i] != 1 && mask->shape[i] != dims[at])
            return kelp_ops_bad_shapes(args, args->inputs[0], mask,
                                       "the mask does not broadcast to the scores");
        if (mask->shape[i] != 1)
            strides[at] = kelp_ops_product(mask->shape, i + 1, mask->rank);
    }
    if (out->keys > s->keys)
        return kelp_ops_bad_shapes(args, args->inputs[1], mask, "the mask has too many keys");
    if (!kelp_real_takes(mask->dtype))
        return kelp_ops_bad_type(args, mask->dtype);
    out->dtype = mask->dtype;
    out->column = 1;
    out->batch = strides[0];
    out->head = strides[1];
    out->row = strides[2];
    out->is_flags = mask->dtype == KELP_BOOL;
    out->dropped = -INFINITY;
    return NULL;
}

static kelp_status *read_attributes(kelp_op_args *args, attention_plan *p) {
    kelp_sdpa *s = &p->s;
    const kelp_node *node = args->node;
    kelp_dtype dtype = args->inputs[0]->dtype;
    s->scale = (double)kelp_node_attr_f32(node, "scale", 0.0f);
    if (kelp_node_attr_type(node, "scale") == KELP_ATTR_NONE)
        s->scale = 1.0 / sqrt((double)s->size);
    s->softcap = (double)kelp_node_attr_f32(node, "softcap", 0.0f);
    s->q_dtype = s->y_dtype = s->scores_dtype = dtype;
    s->compute = s->round = dtype == KELP_F64 ? KELP_F64 : KELP_F32;
    s->softmax_round = kelp_ops_attr_dtype(node, "softmax_precision", s->round);
    if (!kelp_ops_is_float(s->softmax_round))
        return kelp_ops_bad_type(args, s->softmax_round);
    if (kelp_math_is_half(s->softmax_round)) /* a higher precision is allowed */
        s->softmax_round = s->round;
    s->left = kelp_node_attr_i64(node, "left_window_size", -1);
    s->right = kelp_node_attr_i64(node, "right_window_size", -1);
    if (kelp_node_attr_i64(node, "is_causal", 0) != 0)
        s->right = 0;
    s->offset = p->past;
    s->from_end = true;
    s->scores_stage = (int32_t)kelp_node_attr_i64(node, "qk_matmul_output_mode", 0);
    s->q_scale = 1.0f;
    const kelp_tensor *counts = kelp_ops_in(args, 6);
    if (counts != NULL && (counts->dtype != KELP_I64 || kelp_tensor_elements(counts) != s->batch))
        return kelp_ops_bad_shapes(args, counts, NULL, "expected a count of keys for each image");
    return NULL;
}

/* Reserves memory for keys or values joined with the past, and as floats. */
static kelp_status *plan_part(kelp_op_args *args, const attention_plan *p, int32_t input,
                              int64_t size, cache_part *part) {
    const kelp_tensor *x = args->inputs[input];
    kelp_tensor *present = kelp_ops_out(args, input);
    int64_t shape[4] = {p->s.batch, p->kv_heads, p->s.keys, size};
    int64_t count = kelp_ops_product(shape, 0, 4);
    KELP_TRY(kelp_ops_set(args, input, x->dtype, 4, shape));
    part->joins = kelp_ops_in(args, input + 3) != NULL || present != NULL;
    part->widens = x->dtype != KELP_F32 && x->dtype != KELP_F64;
    if (part->joins && present == NULL)
        KELP_TRY(kelp_ops_scratch(args, count, kelp_ops_element_bytes(x->dtype), &part->joined));
    if (part->widens)
        KELP_TRY(kelp_ops_scratch(args, count, sizeof(float), &part->wide));
    return NULL;
}

static kelp_status *attention_reshape(const void *state, kelp_op_args *args) {
    attention_plan *p = args->plan;
    kelp_sdpa *s = &p->s;
    (void)state;
    KELP_TRY(kelp_ops_check(args, 3));
    const kelp_tensor *q = args->inputs[0];
    for (int32_t i = 0; i < 3; i++)
        if (!kelp_ops_is_float(args->inputs[i]->dtype) ||
            (args->inputs[i]->dtype == KELP_F64) != (q->dtype == KELP_F64))
            return kelp_ops_bad_type(args, args->inputs[i]->dtype);
    KELP_TRY(read_shapes(args, p));
    KELP_TRY(read_past(args, p));
    KELP_TRY(read_mask(args, s, kelp_ops_in(args, 3), &s->masks[0]));
    KELP_TRY(read_attributes(args, p));
    int64_t shape[4] = {s->batch, s->heads, s->queries, s->v_size};
    int64_t scores[4] = {s->batch, s->heads, s->queries, s->keys};
    if (p->packed) {
        shape[1] = s->queries;
        shape[2] = s->heads * s->v_size;
    }
    KELP_TRY(kelp_ops_set(args, 0, q->dtype, p->packed ? 3 : 4, shape));
    KELP_TRY(kelp_ops_set(args, 3, q->dtype, 4, scores));
    KELP_TRY(plan_part(args, p, 1, s->size, &p->k));
    KELP_TRY(plan_part(args, p, 2, s->v_size, &p->v));
    return kelp_sdpa_reserve(args, s, &p->scratch);
}

/* Concatenates past and new keys or values to [batch, heads, keys, size]. */
static void join(const kelp_op_args *args, const attention_plan *p, int32_t input, int64_t size,
                 char *to) {
    const kelp_tensor *x = args->inputs[input], *past = kelp_ops_in(args, input + 3);
    size_t bytes = kelp_ops_element_bytes(x->dtype);
    int64_t fresh = p->s.keys - p->past;
    int64_t shape[4] = {p->s.batch, p->kv_heads, fresh, size};
    int64_t out[4] = {p->kv_heads * p->s.keys * size, p->s.keys * size, size, 1};
    int64_t from[4] = {p->kv_heads * fresh * size, fresh * size, size, 1};
    if (p->packed) {
        from[1] = size;
        from[2] = p->kv_heads * size;
    }
    kelp_ops_copy(args->env, bytes, 4, shape, to + (size_t)(p->past * size) * bytes, out, x->data,
                  from);
    if (past != NULL) {
        shape[2] = p->past;
        kelp_ops_strides(4, shape, from);
        kelp_ops_copy(args->env, bytes, 4, shape, to, out, past->data, from);
    }
}

static void make_part(const kelp_op_args *args, const attention_plan *p, int32_t input,
                      int64_t size, const cache_part *part, kelp_sdpa_view *out) {
    kelp_tensor now = *args->inputs[input];
    const kelp_tensor *present = kelp_ops_out(args, input);
    int64_t keys = p->s.keys;
    KELP_ASSERT(input == 1 || input == 2);
    *out = (kelp_sdpa_view){NULL, p->kv_heads * keys * size, keys * size, size};
    if (p->packed && !part->joins) {
        out->head = size;
        out->row = p->kv_heads * size;
    }
    if (part->joins) {
        now.data = present != NULL ? present->data : kelp_ops_scratch_at(args, part->joined);
        join(args, p, input, size, now.data);
        now.rank = 4;
        memcpy(now.shape, (int64_t[4]){p->s.batch, p->kv_heads, keys, size}, 4 * sizeof(int64_t));
    }
    if (part->widens) {
        float *wide = kelp_ops_scratch_at(args, part->wide);
        kelp_ops_load_f32(args->env, &now, wide);
        now.data = wide;
    }
    out->data = now.data;
}

static kelp_status *attention_invoke(const void *state, kelp_op_args *args) {
    const attention_plan *p = args->plan;
    kelp_sdpa s = p->s;
    const kelp_tensor *q = args->inputs[0];
    (void)state;
    KELP_ASSERT(s.batch == q->shape[0] && s.heads == s.group * p->kv_heads);
    KELP_ASSERT(s.masks[0].column == 0 || kelp_ops_in(args, 3) != NULL);
    s.masks[0].data = s.masks[0].column == 1 ? args->inputs[3]->data : NULL;
    s.key_counts = kelp_ops_in(args, 6) != NULL ? args->inputs[6]->data : NULL;
    s.scratch = kelp_ops_scratch_at(args, p->scratch);
    s.scores = kelp_ops_out(args, 3) != NULL ? args->outputs[3]->data : NULL;
    make_part(args, p, 1, s.size, &p->k, &s.k);
    make_part(args, p, 2, s.v_size, &p->v, &s.v);
    s.q = (kelp_sdpa_view){q->data, s.heads * s.queries * s.size, s.queries * s.size, s.size};
    s.y = (kelp_sdpa_view){args->outputs[0]->data, s.heads * s.queries * s.v_size,
                           s.queries * s.v_size, s.v_size};
    if (p->packed) {
        s.q.head = s.size;
        s.q.row = s.heads * s.size;
        s.y.head = s.v_size;
        s.y.row = s.heads * s.v_size;
    }
    kelp_sdpa_run(args->env, &s);
    return NULL;
}
KELP_KERNEL(OnnxAttention, 0, sizeof(attention_plan), 0, attention_reshape, attention_invoke);
