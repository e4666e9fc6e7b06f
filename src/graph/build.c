/* SPDX-License-Identifier: Apache-2.0 */
/* Creates and modifies graphs. Everything is allocated in the graph's arena and stays there, also
 * after its removal, until the graph is destroyed. */
#include "base/alloc.h"
#include "base/assert.h"
#include "graph/ir.h"

#include <stdatomic.h>
#include <string.h>

kelp_status *kelp_graph_new(kelp_allocator allocator, kelp_graph **out) {
    kelp_graph *graph = NULL;
    KELP_TRY(KELP_NEW(allocator, kelp_graph, &graph));
    atomic_init(&graph->references, 1);
    graph->allocator = allocator;
    graph->info = (kelp_graph_info){.label = "",
                                    .producer_name = "",
                                    .producer_version = "",
                                    .domain = "",
                                    .doc = "",
                                    .graph_name = ""};
    kelp_arena_init(&graph->arena, allocator, 16 << 10);
    kelp_status *status = kelp_block_new(graph, NULL, "", &graph->main);
    if (status != NULL) {
        kelp_graph_release(graph);
        return status;
    }
    *out = graph;
    return NULL;
}

void kelp_graph_release(kelp_graph *graph) {
    while (graph != NULL &&
           atomic_fetch_sub_explicit(&graph->references, 1, memory_order_acq_rel) == 1) {
        kelp_graph *origin = graph->origin;
        if (graph->release_source != NULL)
            graph->release_source(graph);
        kelp_arena_deinit(&graph->arena);
        kelp_free(graph->allocator, graph, sizeof *graph);
        graph = origin;
    }
}

kelp_status *kelp_block_new(kelp_graph *graph, kelp_block *parent, const char *name,
                            kelp_block **out) {
    kelp_block *block = KELP_ARENA_NEW(&graph->arena, kelp_block);
    if (block == NULL)
        return kelp_status_oom();
    block->graph = graph;
    block->parent = parent;
    block->name = name;
    *out = block;
    return NULL;
}

/* Grows an arena array for one more item; doubles its capacity. */
static kelp_status *grow(kelp_arena *arena, void ***items, size_t count, size_t *capacity) {
    if (count < *capacity)
        return NULL;
    KELP_ASSERT(count == *capacity);
    size_t grown = *capacity ? *capacity * 2 : 16;
    void **larger = KELP_ARENA_ARRAY(arena, grown, void *);
    if (larger == NULL)
        return kelp_status_oom();
    if (count > 0)
        memcpy(larger, *items, count * sizeof *larger);
    *items = larger;
    *capacity = grown;
    return NULL;
}

kelp_status *kelp_block_add_value(kelp_block *block, const char *name, kelp_value **out) {
    kelp_arena *arena = &block->graph->arena;
    kelp_value *value = KELP_ARENA_NEW(arena, kelp_value);
    if (value == NULL)
        return kelp_status_oom();
    KELP_TRY(grow(arena, (void ***)&block->values, block->value_count, &block->value_capacity));
    KELP_ASSERT(block->value_count < UINT32_MAX);
    value->name = name;
    value->rank = -1;
    value->block = block;
    value->id = (uint32_t)block->value_count;
    block->values[block->value_count++] = value;
    *out = value;
    return NULL;
}

static kelp_status *copy_values(kelp_arena *arena, kelp_value *const *from, size_t count,
                                kelp_value ***out) {
    *out = count > 0 ? KELP_ARENA_ARRAY(arena, count, kelp_value *) : NULL;
    if (count > 0 && *out == NULL)
        return kelp_status_oom();
    if (count > 0)
        memcpy(*out, from, count * sizeof *from);
    return NULL;
}

static kelp_status *make_node(kelp_block *block, const kelp_operator *op, int64_t opset_version,
                              const char *name, kelp_value *const *inputs, size_t input_count,
                              kelp_value *const *outputs, size_t output_count,
                              kelp_attr *attributes, kelp_node **out) {
    kelp_arena *arena = &block->graph->arena;
    KELP_ASSERT(op != NULL && op->id <= KELP_OPERATOR_COUNT);
    kelp_node *node = KELP_ARENA_NEW(arena, kelp_node);
    if (node == NULL)
        return kelp_status_oom();
    KELP_TRY(grow(arena, (void ***)&block->nodes, block->node_count, &block->node_capacity));
    KELP_TRY(copy_values(arena, inputs, input_count, &node->inputs));
    KELP_TRY(copy_values(arena, outputs, output_count, &node->outputs));
    node->name = name;
    node->op = op;
    node->opset_version = opset_version;
    node->input_count = input_count;
    node->output_count = output_count;
    node->attributes = attributes;
    node->block = block;
    for (size_t i = 0; i < output_count; i++)
        if (outputs[i] != NULL) {
            KELP_ASSERT(outputs[i]->block == block && !outputs[i]->is_input);
            outputs[i]->producer = node;
        }
    for (kelp_attr *attr = attributes; attr != NULL; attr = attr->next)
        for (size_t k = 0; attr->blocks != NULL && k < attr->count; k++)
            attr->blocks[k]->owner = node;
    *out = node;
    return NULL;
}

kelp_status *kelp_block_add_node(kelp_block *block, const kelp_operator *op, int64_t opset_version,
                                 const char *name, kelp_value *const *inputs, size_t input_count,
                                 kelp_value *const *outputs, size_t output_count,
                                 kelp_attr *attributes, kelp_node **out) {
    kelp_node *node = NULL;
    KELP_TRY(make_node(block, op, opset_version, name, inputs, input_count, outputs, output_count,
                       attributes, &node));
    node->index = block->node_count;
    block->nodes[block->node_count++] = node;
    if (out != NULL)
        *out = node;
    return NULL;
}

kelp_status *kelp_block_insert_node(kelp_block *block, kelp_node *before, const kelp_operator *op,
                                    int64_t opset_version, const char *name,
                                    kelp_value *const *inputs, size_t input_count,
                                    kelp_value *const *outputs, size_t output_count,
                                    kelp_attr *attributes, kelp_node **out) {
    kelp_node *node = NULL;
    KELP_TRY(make_node(block, op, opset_version, name, inputs, input_count, outputs, output_count,
                       attributes, &node));
    size_t at = before->index;
    KELP_ASSERT(at < block->node_count && block->nodes[at] == before);
    memmove(&block->nodes[at + 1], &block->nodes[at],
            (block->node_count - at) * sizeof *block->nodes);
    block->nodes[at] = node;
    block->node_count++;
    for (size_t i = at; i < block->node_count; i++)
        block->nodes[i]->index = i;
    *out = node;
    return NULL;
}

kelp_status *kelp_block_insert_nodes(kelp_block *block, size_t at, kelp_node *const *nodes,
                                     size_t count) {
    KELP_ASSERT(at <= block->node_count);
    size_t moved = block->node_count - at, total = block->node_count + count;
    kelp_node **grown = KELP_ARENA_ARRAY(&block->graph->arena, total + 8, kelp_node *);
    if (grown == NULL)
        return kelp_status_oom();
    if (at > 0)
        memcpy(grown, block->nodes, at * sizeof *grown);
    if (count > 0)
        memcpy(grown + at, nodes, count * sizeof *grown);
    if (moved > 0)
        memcpy(grown + at + count, block->nodes + at, moved * sizeof *grown);
    block->nodes = grown;
    block->node_count = total;
    block->node_capacity = total + 8;
    for (size_t i = at; i < total; i++)
        grown[i]->index = i;
    return NULL;
}

kelp_status *kelp_block_adopt_value(kelp_block *block, kelp_value *value) {
    KELP_ASSERT(value->block != block && value->block->graph == block->graph);
    KELP_TRY(grow(&block->graph->arena, (void ***)&block->values, block->value_count,
                  &block->value_capacity));
    value->block = block;
    value->id = (uint32_t)block->value_count;
    block->values[block->value_count++] = value;
    return NULL;
}

/* ---- attributes ---- */
static kelp_status *set_attr(kelp_node *node, const char *name, kelp_attr value) {
    kelp_arena *arena = &node->block->graph->arena;
    kelp_attr **link = &node->attributes;
    while (*link != NULL && strcmp((*link)->name, name) != 0)
        link = &(*link)->next;
    kelp_attr *attr = KELP_ARENA_NEW(arena, kelp_attr);
    if (attr == NULL)
        return kelp_status_oom();
    *attr = value;
    attr->name = name;
    attr->next = *link != NULL ? (*link)->next : NULL;
    *link = attr;
    return NULL;
}

kelp_status *kelp_node_set_i64(kelp_node *node, const char *name, int64_t value) {
    return set_attr(node, name, (kelp_attr){.type = KELP_ATTR_INT, .i = value});
}

kelp_status *kelp_node_set_f32(kelp_node *node, const char *name, float value) {
    return set_attr(node, name, (kelp_attr){.type = KELP_ATTR_FLOAT, .f = value});
}

kelp_status *kelp_node_set_i64s(kelp_node *node, const char *name, const int64_t *values,
                                size_t count) {
    int64_t *copy = KELP_ARENA_ARRAY(&node->block->graph->arena, count + 1, int64_t);
    if (copy == NULL)
        return kelp_status_oom();
    if (count > 0)
        memcpy(copy, values, count * sizeof *values);
    return set_attr(node, name, (kelp_attr){.type = KELP_ATTR_INTS, .ints = copy, .count = count});
}

kelp_status *kelp_node_set_string(kelp_node *node, const char *name, const char *value) {
    kelp_attr attr = {.type = KELP_ATTR_STRING, .s = {value, strlen(value)}};
    return set_attr(node, name, attr);
}

/* ---- uses ---- */
static void replace_in_block(kelp_block *block, const kelp_value *from, kelp_value *to) {
    for (size_t n = 0; n < block->node_count; n++) {
        kelp_node *node = block->nodes[n];
        for (size_t i = 0; i < node->input_count; i++)
            if (node->inputs[i] == from)
                node->inputs[i] = to;
        for (kelp_attr *attr = node->attributes; attr != NULL; attr = attr->next)
            for (size_t k = 0; attr->blocks != NULL && k < attr->count; k++)
                replace_in_block(attr->blocks[k], from, to);
    }
    for (size_t i = 0; i < block->output_count; i++)
        if (block->outputs[i] == from)
            block->outputs[i] = to;
}

void kelp_block_replace_uses(kelp_block *block, kelp_value *from, kelp_value *to) {
    KELP_ASSERT(from != to);
    if (from->is_output) {
        to->name = from->name;
        to->is_output = true;
        from->is_output = false;
    }
    replace_in_block(block, from, to);
    to->use_count += from->use_count;
    from->use_count = 0;
}

static void clear_uses(kelp_block *block) {
    for (size_t i = 0; i < block->value_count; i++)
        block->values[i]->use_count = 0;
    for (size_t n = 0; n < block->node_count; n++)
        for (kelp_attr *attr = block->nodes[n]->attributes; attr != NULL; attr = attr->next)
            for (size_t k = 0; attr->blocks != NULL && k < attr->count; k++)
                clear_uses(attr->blocks[k]);
}

static void add_uses(kelp_block *block) {
    for (size_t n = 0; n < block->node_count; n++) {
        const kelp_node *node = block->nodes[n];
        if (node->removed)
            continue;
        for (size_t i = 0; i < node->input_count; i++)
            if (node->inputs[i] != NULL)
                node->inputs[i]->use_count++;
        for (kelp_attr *attr = node->attributes; attr != NULL; attr = attr->next)
            for (size_t k = 0; attr->blocks != NULL && k < attr->count; k++)
                add_uses(attr->blocks[k]);
    }
    for (size_t i = 0; i < block->output_count; i++)
        block->outputs[i]->use_count++;
}

void kelp_block_count_uses(kelp_block *block) {
    clear_uses(block);
    add_uses(block);
}

void kelp_block_sweep(kelp_block *block) {
    size_t kept = 0;
    for (size_t n = 0; n < block->node_count; n++)
        if (!block->nodes[n]->removed) {
            KELP_ASSERT(block->nodes[n]->block == block);
            block->nodes[kept] = block->nodes[n];
            block->nodes[kept]->index = kept;
            kept++;
        }
    block->node_count = kept;
}

static bool is_used(const kelp_node *node) {
    for (size_t i = 0; i < node->output_count; i++)
        if (node->outputs[i] != NULL && node->outputs[i]->use_count > 0)
            return true;
    return false;
}

static void drop_uses(const kelp_node *node) {
    for (size_t i = 0; i < node->input_count; i++)
        if (node->inputs[i] != NULL) {
            KELP_ASSERT(node->inputs[i]->use_count > 0);
            node->inputs[i]->use_count--;
        }
    if (kelp_node_find_attr(node, KELP_CAPTURES_ATTRIBUTE) != NULL)
        return; /* its blocks use their own values */
    for (kelp_attr *attr = node->attributes; attr != NULL; attr = attr->next)
        for (size_t k = 0; attr->blocks != NULL && k < attr->count; k++) {
            const kelp_block *inner = attr->blocks[k];
            for (size_t n = 0; n < inner->node_count; n++)
                drop_uses(inner->nodes[n]);
            for (size_t i = 0; i < inner->output_count; i++)
                inner->outputs[i]->use_count--;
        }
}

/* Removes dead nodes of nested blocks. Works only once captures are inputs: before that, values
 * are used across blocks. */
static void remove_dead_inside(kelp_node *node) {
    if (kelp_node_find_attr(node, KELP_CAPTURES_ATTRIBUTE) == NULL)
        return;
    for (kelp_attr *attr = node->attributes; attr != NULL; attr = attr->next)
        for (size_t k = 0; attr->blocks != NULL && k < attr->count; k++)
            kelp_block_remove_dead(attr->blocks[k]);
    kelp_node_drop_captures(node);
}

size_t kelp_block_remove_dead(kelp_block *block) {
    size_t removed = 0;
    kelp_block_count_uses(block);
    /* in reverse: the users of a node come after it */
    for (size_t n = block->node_count; n-- > 0;) {
        kelp_node *node = block->nodes[n];
        if (!node->removed && is_used(node))
            remove_dead_inside(node);
        if (node->removed || is_used(node))
            continue;
        node->removed = true;
        drop_uses(node);
        removed++;
    }
    kelp_block_sweep(block);
    return removed;
}

kelp_node *kelp_value_only_user(const kelp_value *value) {
    if (value->use_count != 1 || value->is_output)
        return NULL;
    const kelp_block *block = value->block;
    size_t first = value->producer != NULL ? value->producer->index + 1 : 0;
    for (size_t n = first; n < block->node_count; n++) {
        kelp_node *node = block->nodes[n];
        for (size_t i = 0; !node->removed && i < node->input_count; i++)
            if (node->inputs[i] == value)
                return node;
    }
    return NULL;
}
