/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fuses attention over separate heads as exporters of language models write it:
 *
 *   y = MatMul(Softmax(MatMul(q, Transpose(K, [0, 1, 3, 2])) * scale + mask), V)
 *   K = k, or Reshape(Expand(Unsqueeze(k, 2), …), …): one head for a group of queries; V likewise
 *
 * with q [batch, heads, queries, size] and k, v [batch, kv heads, keys, size] to
 * kelp::AttentionHeads. It is ai.onnx's Attention, which reads keys and values in place, also from
 * a cache; but a mask with one key is broadcast along keys as Add does. Source: Ainslie et al.,
 * "GQA", 2023; ONNX operator specification.
 */
#include "base/assert.h"
#include "graph/passes/passes.h"

#include <string.h>

typedef struct heads {
    kelp_value *q, *k, *v, *mask;
    double scale;
} heads;

static bool is_rank4(const kelp_value *value) {
    return value->rank == 4 && value->dtype == KELP_F32 && value->shape[1] > 0 &&
           value->shape[3] > 0;
}

static bool same_dim(const kelp_value *a, const kelp_value *b, int32_t axis) {
    if (a->shape[axis] >= 0 || b->shape[axis] >= 0)
        return a->shape[axis] == b->shape[axis];
    return a->symbols[axis] != NULL && b->symbols[axis] != NULL &&
           strcmp(a->symbols[axis], b->symbols[axis]) == 0;
}

static bool adds_axis_2(const kelp_node *node) {
    int64_t axes[1];
    const int64_t *list = NULL;
    size_t count = 0;
    if (node->input_count == 2)
        return kelp_match_i64s(node->inputs[1], axes, 1, &count) && count == 1 && axes[0] == 2;
    return kelp_node_attr_i64s(node, "axes", &list) == 1 && list[0] == 2;
}

/* Returns the heads before they were repeated for groups of queries, or `value` if they were not.
 */
static kelp_value *before_repeat(kelp_value *value) {
    kelp_node *reshape = kelp_match_producer(value, KELP_OP(Reshape));
    kelp_node *expand =
        reshape != NULL ? kelp_match_producer(reshape->inputs[0], KELP_OP(Expand)) : NULL;
    kelp_node *unsqueeze =
        expand != NULL ? kelp_match_producer(expand->inputs[0], KELP_OP(Unsqueeze)) : NULL;
    if (unsqueeze == NULL || !adds_axis_2(unsqueeze))
        return value;
    kelp_value *kv = unsqueeze->inputs[0];
    const kelp_value *expanded = expand->outputs[0];
    bool repeats = is_rank4(kv) && is_rank4(value) && expanded->rank == 5 &&
                   expanded->shape[1] == kv->shape[1] && expanded->shape[4] == kv->shape[3] &&
                   value->shape[3] == kv->shape[3] && expanded->shape[2] > 0 &&
                   value->shape[1] == kv->shape[1] * expanded->shape[2];
    return repeats ? kv : value;
}

/* Matches MatMul(q, transposed keys), optionally scaled. */
static bool match_scores(kelp_value *value, void *userp) {
    heads *out = userp;
    kelp_node *matmul = kelp_match_scaled_matmul(value, &out->scale);
    kelp_node *transpose =
        matmul != NULL ? kelp_match_producer(matmul->inputs[1], KELP_OP(Transpose)) : NULL;
    const int64_t *perm = NULL;
    if (transpose == NULL || kelp_node_attr_i64s(transpose, "perm", &perm) != 4 || perm[0] != 0 ||
        perm[1] != 1 || perm[2] != 3 || perm[3] != 2)
        return false;
    out->q = matmul->inputs[0];
    out->k = before_repeat(transpose->inputs[0]);
    return is_rank4(out->q) && is_rank4(out->k) && out->q->shape[3] == out->k->shape[3] &&
           out->q->shape[1] % out->k->shape[1] == 0 && same_dim(out->q, out->k, 0) &&
           (transpose->inputs[0] != out->k || out->q->shape[1] == out->k->shape[1]);
}

/* Rejects masks with one key, which have another meaning in the fused operator. */
static bool is_mask(const kelp_value *mask) {
    return mask->dtype == KELP_F32 && mask->rank >= 2 && mask->rank <= 4 &&
           mask->shape[mask->rank - 1] != 1;
}

static kelp_status *fuse(kelp_block *block, kelp_node *matmul, bool *out_done) {
    kelp_node *fused = NULL;
    heads found = {0};
    if (matmul->output_count != 1 ||
        kelp_match_producer(matmul->outputs[0], KELP_OP(MatMul)) != matmul ||
        !kelp_match_attention_weights(matmul->inputs[0], is_mask, match_scores, &found,
                                      &found.mask))
        return NULL;
    KELP_ASSERT(is_rank4(found.q) && is_rank4(found.k));
    found.v = before_repeat(matmul->inputs[1]);
    if (!is_rank4(found.v) || found.v->shape[1] != found.k->shape[1] ||
        !same_dim(found.v, found.k, 0))
        return NULL;
    kelp_value *inputs[4] = {found.q, found.k, found.v, found.mask};
    kelp_value *outputs[1] = {matmul->outputs[0]};
    KELP_TRY(kelp_block_insert_node(block, matmul, KELP_OP_KELP(AttentionHeads), 1, matmul->name,
                                    inputs, found.mask != NULL ? 4 : 3, outputs, 1, NULL, &fused));
    KELP_TRY(kelp_node_set_f32(fused, "scale", (float)found.scale));
    matmul->removed = true;
    *out_done = true;
    return NULL;
}

kelp_status *kelp_pass_attention_heads(kelp_block *block) {
    return kelp_pass_each(block, fuse);
}
