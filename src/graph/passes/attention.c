/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fuses multi-head attention as exporters write it:
 *
 *   q = Transpose(Reshape(Q, [0, 0, heads, size]), [0, 2, 1, 3]); v likewise
 *   k = the same, transposed by [0, 2, 3, 1]
 *   heads = MatMul(Softmax(MatMul(q, k) * scale + mask), v)
 *   y = Reshape(Transpose(heads, [0, 2, 1, 3]), [0, 0, heads * size])
 *
 * to kelp::Attention of Q, K and V [batch, sequence, heads * size].
 * Source: Vaswani et al., "Attention Is All You Need", 2017.
 */
#include "base/assert.h"
#include "graph/passes/passes.h"

#include <string.h>

static bool has_perm(const kelp_node *node, int64_t a, int64_t b, int64_t c, int64_t d) {
    const int64_t *perm = NULL;
    return kelp_node_attr_i64s(node, "perm", &perm) == 4 && perm[0] == a && perm[1] == b &&
           perm[2] == c && perm[3] == d;
}

/* Returns the tensor whose heads a Reshape split, or NULL if `value` is not such a Reshape. */
static kelp_value *match_split(const kelp_value *value, int64_t *out_heads, int64_t *out_size) {
    kelp_node *reshape = kelp_match_producer(value, KELP_OP(Reshape));
    int64_t shape[4];
    size_t count = 0;
    if (reshape == NULL || reshape->input_count < 2 ||
        !kelp_match_i64s(reshape->inputs[1], shape, 4, &count) || count != 4 || shape[2] <= 0 ||
        shape[3] <= 0)
        return NULL;
    kelp_value *input = reshape->inputs[0];
    if (input->rank != 3 || input->shape[2] != shape[2] * shape[3] || input->dtype != KELP_F32 ||
        (shape[1] != 0 && shape[1] != -1 && shape[1] != input->shape[1]))
        return NULL;
    *out_heads = shape[2];
    *out_size = shape[3];
    return input;
}

static kelp_value *match_heads(const kelp_value *value, bool transposed, int64_t *out_heads,
                               int64_t *out_size) {
    kelp_node *transpose = kelp_match_producer(value, KELP_OP(Transpose));
    if (transpose == NULL)
        return NULL;
    if (transposed && has_perm(transpose, 0, 2, 3, 1))
        return match_split(transpose->inputs[0], out_heads, out_size);
    if (transposed) {
        if (!has_perm(transpose, 0, 1, 3, 2))
            return NULL;
        transpose = kelp_match_producer(transpose->inputs[0], KELP_OP(Transpose));
    }
    if (transpose == NULL || !has_perm(transpose, 0, 2, 1, 3))
        return NULL;
    return match_split(transpose->inputs[0], out_heads, out_size);
}

typedef struct attention {
    kelp_value *q, *k, *v, *mask;
    int64_t heads, size;
    double scale;
} attention;

/* Matches MatMul(q, k), optionally scaled before the mask is added. */
static bool match_scores(kelp_value *value, void *userp) {
    attention *out = userp;
    kelp_node *matmul = kelp_match_scaled_matmul(value, &out->scale);
    if (matmul == NULL)
        return false;
    int64_t heads = 0, size = 0;
    out->q = match_heads(matmul->inputs[0], false, &out->heads, &out->size);
    out->k = match_heads(matmul->inputs[1], true, &heads, &size);
    return out->q != NULL && out->k != NULL && heads == out->heads && size == out->size;
}

static bool is_plain_mask(const kelp_value *mask) {
    return mask->rank == 4 && mask->shape[1] == 1 && mask->dtype == KELP_F32;
}

/* Checks known dimensions: a mask must not broadcast the scores to a larger shape. */
static bool mask_fits(const attention *found) {
    const int64_t scores[4] = {found->q->shape[0], 1, found->q->shape[1], found->k->shape[1]};
    for (int i = 0; found->mask != NULL && i < 4; i++) {
        int64_t dim = found->mask->shape[i];
        if (dim >= 0 && dim != 1 && scores[i] >= 0 && dim != scores[i])
            return false;
    }
    return true;
}

/* Returns the Reshape that merges the heads, or NULL. */
static kelp_node *match_join(kelp_value *context, const attention *found) {
    kelp_node *transpose = kelp_value_only_user(context);
    if (transpose == NULL ||
        kelp_match_producer(transpose->outputs[0], KELP_OP(Transpose)) == NULL ||
        !has_perm(transpose, 0, 2, 1, 3))
        return NULL;
    kelp_node *reshape = kelp_value_only_user(transpose->outputs[0]);
    int64_t shape[3];
    size_t count = 0;
    if (reshape == NULL || kelp_match_producer(reshape->outputs[0], KELP_OP(Reshape)) == NULL ||
        reshape->inputs[0] != transpose->outputs[0] || reshape->input_count < 2 ||
        !kelp_match_i64s(reshape->inputs[1], shape, 3, &count) || count != 3)
        return NULL;
    bool joins = shape[2] == found->heads * found->size ||
                 (shape[2] == -1 && shape[0] == 0 && shape[1] == 0);
    return joins ? reshape : NULL;
}

static kelp_status *fuse(kelp_block *block, kelp_node *matmul, bool *out_done) {
    attention found = {0};
    int64_t heads = 0, size = 0;
    if (kelp_match_producer(matmul->outputs[0], KELP_OP(MatMul)) != matmul ||
        !kelp_match_attention_weights(matmul->inputs[0], is_plain_mask, match_scores, &found,
                                      &found.mask) ||
        !mask_fits(&found))
        return NULL;
    found.v = match_heads(matmul->inputs[1], false, &heads, &size);
    if (found.v == NULL || heads != found.heads || size != found.size)
        return NULL;
    kelp_node *join = match_join(matmul->outputs[0], &found), *fused = NULL;
    if (join == NULL)
        return NULL;
    KELP_ASSERT(found.heads > 0 && found.size > 0);
    kelp_value *inputs[4] = {found.q, found.k, found.v, found.mask};
    kelp_value *outputs[1] = {join->outputs[0]};
    KELP_TRY(kelp_block_insert_node(block, join, KELP_OP_KELP(Attention), 1, join->name, inputs,
                                    found.mask != NULL ? 4 : 3, outputs, 1, NULL, &fused));
    KELP_TRY(kelp_node_set_i64(fused, "num_heads", found.heads));
    KELP_TRY(kelp_node_set_f32(fused, "scale", (float)found.scale));
    join->removed = true;
    *out_done = true;
    return NULL;
}

kelp_status *kelp_pass_attention(kelp_block *block) {
    return kelp_pass_each(block, fuse);
}
