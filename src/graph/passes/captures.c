/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a subgraph reads from outside becomes an input of the node that owns it, after the node's
 * own inputs. The attribute "kelp.captures" says where they begin. So lifetimes, folding and memory
 * planning see every use.
 */
#include "graph/passes/passes.h"

static bool is_inside(const kelp_block *block, const kelp_block *outer) {
    for (; block != NULL; block = block->parent)
        if (block == outer)
            return true;
    return false;
}

static kelp_status *add_capture(kelp_node *node, kelp_value *value, size_t first) {
    for (size_t i = first; i < node->input_count; i++)
        if (node->inputs[i] == value)
            return NULL;
    kelp_value **inputs =
        KELP_ARENA_ARRAY(&node->block->graph->arena, node->input_count + 1, kelp_value *);
    if (inputs == NULL)
        return kelp_status_oom();
    for (size_t i = 0; i < node->input_count; i++)
        inputs[i] = node->inputs[i];
    inputs[node->input_count++] = value;
    node->inputs = inputs;
    return NULL;
}

static kelp_status *capture(kelp_node *owner, const kelp_block *block, kelp_value *value,
                            size_t first) {
    if (value == NULL || value->constant != NULL || is_inside(value->block, block))
        return NULL;
    return add_capture(owner, value, first);
}

/* Innermost first: what an inner node captures from far outside, the nodes around it capture as
 * well. */
static kelp_status *capture_block(kelp_node *owner, kelp_block *block, size_t first) {
    KELP_TRY(kelp_pass_captures(block));
    for (size_t n = 0; n < block->node_count; n++)
        for (size_t i = 0; i < block->nodes[n]->input_count; i++)
            KELP_TRY(capture(owner, block, block->nodes[n]->inputs[i], first));
    for (size_t i = 0; i < block->output_count; i++)
        KELP_TRY(capture(owner, block, block->outputs[i], first));
    return NULL;
}

kelp_status *kelp_pass_captures(kelp_block *block) {
    for (size_t n = 0; n < block->node_count; n++) {
        kelp_node *node = block->nodes[n];
        size_t first = node->input_count;
        bool has_blocks = false;
        for (kelp_attr *attr = node->attributes; attr != NULL; attr = attr->next)
            for (size_t k = 0; attr->blocks != NULL && k < attr->count; k++) {
                KELP_TRY(capture_block(node, attr->blocks[k], first));
                has_blocks = true;
            }
        if (has_blocks)
            KELP_TRY(kelp_node_set_i64(node, "kelp.captures", (int64_t)first));
    }
    return NULL;
}
