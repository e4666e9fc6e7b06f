/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Makes values that a subgraph reads from outside inputs: of the node that owns the subgraph,
 * after the node's own inputs, and of each of its blocks, after the block's own. The attribute
 * KELP_CAPTURES_ATTRIBUTE is the index of the first. A constant gets a value of its own in each
 * block and shares its data. Afterwards every block is self-contained: lifetimes, folding, fusion
 * and the memory plan treat a body like the main block.
 */
#include "base/assert.h"
#include "graph/ir.h"

#include <string.h>

static bool is_inside(const kelp_block *block, const kelp_block *outer) {
    for (; block != NULL; block = block->parent)
        if (block == outer)
            return true;
    return false;
}

/* ---- ownership of blocks ---- */
static bool owns_blocks(const kelp_node *node) {
    for (const kelp_attr *attr = node->attributes; attr != NULL; attr = attr->next)
        if (attr->blocks != NULL && attr->count > 0)
            return true;
    return false;
}

size_t kelp_node_first_capture(const kelp_node *node) {
    int64_t first = kelp_node_attr_i64(node, KELP_CAPTURES_ATTRIBUTE, (int64_t)node->input_count);
    KELP_ASSERT(first >= 0 && (size_t)first <= node->input_count);
    return (size_t)first;
}

/* The block's own inputs come first. */
static kelp_value *inner_capture(const kelp_node *node, const kelp_block *block, size_t input) {
    KELP_ASSERT(input < node->input_count && node->input_count - input <= block->input_count);
    return block->inputs[block->input_count - (node->input_count - input)];
}

/* ---- capturing ---- */
static kelp_status *add_local(kelp_block *block, kelp_value *outer, kelp_value **out) {
    KELP_TRY(kelp_block_add_value(block, outer->name, out));
    kelp_value *local = *out;
    local->kind = outer->kind;
    local->dtype = outer->dtype;
    local->rank = outer->rank;
    memcpy(local->shape, outer->shape, sizeof local->shape);
    memcpy(local->symbols, outer->symbols, sizeof local->symbols);
    local->constant = outer->constant;
    outer->local = local;
    outer->local_in = block;
    return NULL;
}

static kelp_status *append_value(kelp_arena *arena, kelp_value ***inout_values, size_t *inout_count,
                                 kelp_value *value) {
    kelp_value **values = KELP_ARENA_ARRAY(arena, *inout_count + 1, kelp_value *);
    if (values == NULL)
        return kelp_status_oom();
    if (*inout_count > 0)
        memcpy(values, *inout_values, *inout_count * sizeof *values);
    values[(*inout_count)++] = value;
    *inout_values = values;
    return NULL;
}

/* Makes `value` an input of the node, and of each of its blocks. */
static kelp_status *capture(kelp_node *owner, kelp_value *value) {
    kelp_arena *arena = &owner->block->graph->arena;
    KELP_TRY(append_value(arena, &owner->inputs, &owner->input_count, value));
    for (kelp_attr *attr = owner->attributes; attr != NULL; attr = attr->next)
        for (size_t k = 0; attr->blocks != NULL && k < attr->count; k++) {
            kelp_block *block = attr->blocks[k];
            kelp_value *local = NULL;
            KELP_TRY(add_local(block, value, &local));
            local->is_input = true;
            KELP_TRY(append_value(arena, &block->inputs, &block->input_count, local));
        }
    return NULL;
}

static kelp_value *find_capture(const kelp_node *owner, const kelp_block *block,
                                const kelp_value *value, size_t first) {
    for (size_t i = first; i < owner->input_count; i++)
        if (owner->inputs[i] == value)
            return inner_capture(owner, block, i);
    return NULL;
}

static kelp_status *make_local(kelp_node *owner, kelp_block *block, kelp_value **inout_value,
                               size_t first) {
    kelp_value *value = *inout_value;
    if (value == NULL || is_inside(value->block, block))
        return NULL;
    /* caches the last block that captured the value, so that a weight with many uses is found at
     * once */
    if (value->local_in == block) {
        *inout_value = value->local;
        return NULL;
    }
    if (value->constant != NULL)
        return add_local(block, value, inout_value);
    kelp_value *local = find_capture(owner, block, value, first);
    if (local == NULL) {
        KELP_TRY(capture(owner, value));
        local = find_capture(owner, block, value, first);
    }
    KELP_ASSERT(local != NULL && local->block == block);
    value->local = local;
    value->local_in = block;
    *inout_value = local;
    return NULL;
}

/* Makes the values that a block reads from outside inputs of the block. Starts with nested blocks,
 * whose captures may become captures of this block. */
static kelp_status *close_block(kelp_node *owner, kelp_block *block, size_t first) {
    KELP_TRY(kelp_pass_captures(block));
    for (size_t n = 0; n < block->node_count; n++)
        for (size_t i = 0; i < block->nodes[n]->input_count; i++)
            KELP_TRY(make_local(owner, block, &block->nodes[n]->inputs[i], first));
    for (size_t i = 0; i < block->output_count; i++) {
        KELP_TRY(make_local(owner, block, &block->outputs[i], first));
        block->outputs[i]->is_output = true;
    }
    return NULL;
}

kelp_status *kelp_pass_captures(kelp_block *block) {
    for (size_t n = 0; n < block->node_count; n++) {
        kelp_node *node = block->nodes[n];
        size_t first = node->input_count;
        if (!owns_blocks(node))
            continue;
        for (kelp_attr *attr = node->attributes; attr != NULL; attr = attr->next)
            for (size_t k = 0; attr->blocks != NULL && k < attr->count; k++)
                KELP_TRY(close_block(node, attr->blocks[k], first));
        KELP_TRY(kelp_node_set_i64(node, KELP_CAPTURES_ATTRIBUTE, (int64_t)first));
    }
    return NULL;
}

/* ---- changes after capturing ---- */
static void remove_capture(kelp_node *node, size_t input) {
    KELP_ASSERT(input >= kelp_node_first_capture(node) && input < node->input_count);
    size_t after = node->input_count - input - 1;
    for (kelp_attr *attr = node->attributes; attr != NULL; attr = attr->next)
        for (size_t k = 0; attr->blocks != NULL && k < attr->count; k++) {
            kelp_block *block = attr->blocks[k];
            kelp_value **at = &block->inputs[block->input_count - after - 1];
            (*at)->is_input = false;
            memmove(at, at + 1, after * sizeof *at);
            block->input_count--;
        }
    memmove(&node->inputs[input], &node->inputs[input + 1], after * sizeof *node->inputs);
    node->input_count--;
}

void kelp_node_share_constants(kelp_node *node) {
    for (size_t i = node->input_count; i-- > kelp_node_first_capture(node);) {
        const kelp_value *outer = node->inputs[i];
        if (outer->constant == NULL)
            continue;
        for (kelp_attr *attr = node->attributes; attr != NULL; attr = attr->next)
            for (size_t k = 0; attr->blocks != NULL && k < attr->count; k++) {
                kelp_value *local = inner_capture(node, attr->blocks[k], i);
                local->constant = outer->constant;
                local->kind = outer->kind;
                local->dtype = outer->dtype;
                local->rank = outer->rank;
                memcpy(local->shape, outer->shape, sizeof local->shape);
            }
        remove_capture(node, i);
    }
}

void kelp_node_drop_captures(kelp_node *node) {
    for (size_t i = node->input_count; i-- > kelp_node_first_capture(node);) {
        bool used = false;
        for (kelp_attr *attr = node->attributes; attr != NULL; attr = attr->next)
            for (size_t k = 0; attr->blocks != NULL && k < attr->count; k++)
                used = used || inner_capture(node, attr->blocks[k], i)->use_count > 0;
        if (used)
            continue;
        KELP_ASSERT(node->inputs[i]->use_count > 0);
        node->inputs[i]->use_count--;
        remove_capture(node, i);
    }
}
