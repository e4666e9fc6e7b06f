/* SPDX-License-Identifier: Apache-2.0 */
/* Replaces an If whose condition is constant by the nodes of the branch taken. */
#include "base/assert.h"
#include "graph/ir.h"

#include <string.h>

/* Copies the declared shape of an output of the block. */
static void take_declaration(kelp_value *to, const kelp_value *from) {
    if (from->rank < 0)
        return;
    to->rank = from->rank;
    memcpy(to->shape, from->shape, sizeof to->shape);
    memcpy(to->symbols, from->symbols, sizeof to->symbols);
}

static kelp_status *move_values(kelp_block *from, kelp_block *to) {
    for (size_t i = 0; i < from->value_count; i++)
        KELP_TRY(kelp_block_adopt_value(to, from->values[i]));
    return NULL;
}

static kelp_status *connect_outputs(kelp_node *node, kelp_block *branch) {
    kelp_block *block = node->block;
    for (size_t i = 0; i < node->output_count; i++) {
        kelp_value *outer = node->outputs[i], *inner = branch->outputs[i];
        if (outer == NULL)
            continue;
        bool own = inner->producer != NULL && inner->producer->block == branch && !inner->is_output;
        if (!outer->is_output || own) {
            if (outer->is_output)
                take_declaration(inner, outer);
            kelp_block_replace_uses(block, outer, inner);
            continue;
        }
        /* an output of the block has a producer of its own */
        kelp_node *identity = NULL;
        KELP_TRY(kelp_block_insert_node(block, node, KELP_OP(Identity), 13, node->name, &inner, 1,
                                        &outer, 1, NULL, &identity));
    }
    return NULL;
}

kelp_status *kelp_node_take_branch(kelp_node *node, kelp_block *branch) {
    kelp_block *block = node->block;
    KELP_ASSERT(node->op == KELP_OP(If) && branch->owner == node);
    size_t first = kelp_node_first_capture(node), captures = node->input_count - first;
    if (branch->output_count < node->output_count || branch->input_count != captures)
        return KELP_ERROR(KELP_INVALID_ARGUMENT,
                          "node '%s' (%s): branch '%s' has fewer outputs than the node", node->name,
                          node->op->name, branch->name);
    for (size_t i = 0; i < branch->value_count; i++)
        branch->values[i]->is_output = branch->values[i]->is_input = false;
    for (size_t i = 0; i < captures; i++)
        kelp_block_replace_uses(branch, branch->inputs[i], node->inputs[first + i]);
    branch->input_count = 0;
    for (size_t i = 0; i < branch->node_count; i++) {
        kelp_node *inner = branch->nodes[i];
        for (kelp_attr *attr = inner->attributes; attr != NULL; attr = attr->next)
            for (size_t k = 0; attr->blocks != NULL && k < attr->count; k++)
                attr->blocks[k]->parent = block;
    }
    size_t at = node->index;
    KELP_ASSERT(block->nodes[at] == node && !node->removed);
    KELP_TRY(kelp_block_insert_nodes(block, at, branch->nodes, branch->node_count));
    KELP_TRY(connect_outputs(node, branch));
    for (size_t i = 0; i < branch->node_count; i++)
        branch->nodes[i]->block = block;
    KELP_TRY(move_values(branch, block));
    node->removed = true;
    return NULL;
}
