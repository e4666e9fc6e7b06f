/* SPDX-License-Identifier: Apache-2.0 */
/* Fuses a convolution, the residual that is added to its result, and the activation that follows.
 */
#include "base/assert.h"
#include "graph/passes/passes.h"

#include <string.h>

static bool same_shape(const kelp_value *a, const kelp_value *b) {
    if (a->rank < 0 || a->rank != b->rank || a->dtype != b->dtype)
        return false;
    for (int32_t i = 0; i < a->rank; i++)
        if (a->shape[i] < 0 || a->shape[i] != b->shape[i])
            return false;
    return true;
}

/* Returns the node that adds another operand to `value`, or NULL. */
static kelp_node *addition(const kelp_value *value, kelp_value **out_other) {
    kelp_node *node = kelp_used_once(value) ? kelp_value_only_user(value) : NULL;
    if (node == NULL || node->input_count != 2 || node->inputs[0] == NULL ||
        node->inputs[1] == NULL ||
        (kelp_match_producer(node->outputs[0], KELP_OP(Add)) != node &&
         kelp_match_producer(node->outputs[0], KELP_OP(Sum)) != node))
        return NULL;
    KELP_ASSERT(node->inputs[0] == value || node->inputs[1] == value);
    *out_other = node->inputs[0] == value ? node->inputs[1] : node->inputs[0];
    return *out_other != value && same_shape(value, *out_other) ? node : NULL;
}

static kelp_status *fuse(kelp_block *block, kelp_node *conv, kelp_node *add, kelp_value *other) {
    const char *activation = "";
    kelp_node *last = add, *fused = NULL;
    kelp_node *next =
        kelp_used_once(add->outputs[0]) ? kelp_value_only_user(add->outputs[0]) : NULL;
    if (next != NULL && kelp_match_activation(next) != NULL) {
        activation = kelp_match_activation(next);
        last = next;
    }
    kelp_value *inputs[4] = {conv->inputs[0], conv->inputs[1],
                             conv->input_count > 2 ? conv->inputs[2] : NULL, other};
    KELP_TRY(kelp_block_insert_node(block, last, KELP_OP_KELP(ConvAct), 1, conv->name, inputs, 4,
                                    last->outputs, 1, conv->attributes, &fused));
    KELP_TRY(kelp_node_set_string(fused, "activation", activation));
    conv->removed = add->removed = last->removed = true;
    kelp_block_sweep(block);
    kelp_block_count_uses(block);
    return NULL;
}

kelp_status *kelp_pass_residual(kelp_block *block) {
    for (size_t i = 0; i < block->node_count; i++) {
        kelp_node *conv = block->nodes[i];
        kelp_value *other = NULL;
        if (conv->removed || conv->output_count == 0 || conv->outputs[0] == NULL ||
            kelp_match_producer(conv->outputs[0], KELP_OP(Conv)) != conv ||
            conv->inputs[0]->dtype != KELP_F32)
            continue;
        kelp_node *add = addition(conv->outputs[0], &other);
        if (add == NULL)
            continue;
        KELP_TRY(fuse(block, conv, add, other));
        i = SIZE_MAX; /* start again */
    }
    return NULL;
}
