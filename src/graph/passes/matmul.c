/* SPDX-License-Identifier: Apache-2.0 */
/* Fuses a MatMul with constant weights, its bias and its activation. */
#include "base/assert.h"
#include "graph/passes/passes.h"

#include <string.h>

static bool is_bias_for(const kelp_value *bias, const kelp_value *weights) {
    int32_t rank = bias->rank;
    return bias->constant != NULL && rank >= 1 && weights->rank >= 2 &&
           kelp_tensor_elements(bias->constant) == weights->shape[weights->rank - 1] &&
           bias->shape[rank - 1] == weights->shape[weights->rank - 1];
}

static kelp_status *fuse(kelp_block *block, kelp_node *matmul, kelp_node **out_last) {
    kelp_value *result = matmul->outputs[0], *weights = matmul->inputs[1], *bias = NULL;
    kelp_node *last = matmul;
    const char *activation = "";
    KELP_ASSERT(weights->constant != NULL && weights->rank == 2);
    kelp_node *add = kelp_used_once(result) ? kelp_value_only_user(result) : NULL;
    if (add != NULL && add->opset_version >= 7 &&
        kelp_match_producer(add->outputs[0], KELP_OP(Add)) == add) {
        kelp_value *other = add->inputs[0] == result ? add->inputs[1] : add->inputs[0];
        if (other != result && is_bias_for(other, weights) && other->rank <= result->rank) {
            bias = other;
            last = add;
        }
    }
    kelp_node *next =
        kelp_used_once(last->outputs[0]) ? kelp_value_only_user(last->outputs[0]) : NULL;
    if (next != NULL && kelp_match_activation(next) != NULL) {
        activation = kelp_match_activation(next);
        last = next;
    }
    *out_last = last;
    if (last == matmul)
        return NULL;
    kelp_value *inputs[3] = {matmul->inputs[0], weights, bias};
    kelp_value *outputs[1] = {last->outputs[0]};
    kelp_node *fused = NULL;
    KELP_TRY(kelp_block_insert_node(block, last, KELP_OP_KELP(MatMulBias), 1, matmul->name, inputs,
                                    bias != NULL ? 3 : 2, outputs, 1, NULL, &fused));
    KELP_TRY(kelp_node_set_string(fused, "activation", activation));
    matmul->removed = true;
    if (bias != NULL)
        add->removed = true;
    last->removed = true;
    return NULL;
}

kelp_status *kelp_pass_matmul(kelp_block *block) {
    for (size_t i = 0; i < block->node_count; i++) {
        kelp_node *matmul = block->nodes[i], *last = NULL;
        if (matmul->removed || matmul->output_count == 0 ||
            kelp_match_producer(matmul->outputs[0], KELP_OP(MatMul)) != matmul)
            continue;
        const kelp_value *weights = matmul->inputs[1];
        if (weights->constant == NULL || weights->rank != 2 || weights->dtype != KELP_F32 ||
            matmul->inputs[0]->rank < 2)
            continue;
        KELP_TRY(fuse(block, matmul, &last));
        if (last != matmul) {
            kelp_block_sweep(block);
            kelp_block_count_uses(block);
            i = SIZE_MAX; /* start again */
        }
    }
    return NULL;
}
