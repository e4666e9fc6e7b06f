/* SPDX-License-Identifier: Apache-2.0 */
/* Implements the accessors of kelp/graph.h. */
#include "base/assert.h"
#include "graph/ir.h"

#include <stdatomic.h>
#include <string.h>

kelp_graph *kelp_graph_retain(kelp_graph *graph) {
    atomic_fetch_add_explicit(&graph->references, 1, memory_order_relaxed);
    return graph;
}

kelp_graph_info kelp_graph_get_info(const kelp_graph *graph) {
    return graph->info;
}

void kelp_graph_metadata(const kelp_graph *graph, size_t index, const char **out_key,
                         const char **out_value) {
    *out_key = graph->metadata[2 * index];
    *out_value = graph->metadata[2 * index + 1];
}

size_t kelp_graph_opset_count(const kelp_graph *graph) {
    return graph->import_count;
}

void kelp_graph_opset(const kelp_graph *graph, size_t index, const char **out_domain,
                      int64_t *out_version) {
    *out_domain = graph->imports[index].domain;
    *out_version = graph->imports[index].version;
}

int64_t kelp_graph_opset_version(const kelp_graph *graph, const char *domain) {
    if (strcmp(domain, "ai.onnx") == 0)
        domain = "";
    for (size_t i = 0; i < graph->import_count; i++)
        if (strcmp(graph->imports[i].domain, domain) == 0)
            return graph->imports[i].version;
    return 0;
}

const kelp_block *kelp_graph_main(const kelp_graph *graph) {
    return graph->main;
}

size_t kelp_graph_function_count(const kelp_graph *graph) {
    return graph->function_count;
}

const kelp_block *kelp_graph_function(const kelp_graph *graph, size_t index) {
    return index < graph->function_count ? graph->functions[index] : NULL;
}

/* ---- blocks ---- */
const char *kelp_block_name(const kelp_block *block) {
    return block->name;
}

size_t kelp_block_node_count(const kelp_block *block) {
    return block->node_count;
}

const kelp_node *kelp_block_node(const kelp_block *block, size_t index) {
    return index < block->node_count ? block->nodes[index] : NULL;
}

size_t kelp_block_input_count(const kelp_block *block) {
    return block->input_count;
}

const kelp_value *kelp_block_input(const kelp_block *block, size_t index) {
    return index < block->input_count ? block->inputs[index] : NULL;
}

size_t kelp_block_output_count(const kelp_block *block) {
    return block->output_count;
}

const kelp_value *kelp_block_output(const kelp_block *block, size_t index) {
    return index < block->output_count ? block->outputs[index] : NULL;
}

/* ---- values ---- */
const char *kelp_value_name(const kelp_value *value) {
    return value->name;
}

kelp_value_kind kelp_value_kind_of(const kelp_value *value) {
    return value->kind;
}

kelp_dtype kelp_value_dtype(const kelp_value *value) {
    return value->dtype;
}

int32_t kelp_value_rank(const kelp_value *value) {
    return value->rank;
}

int64_t kelp_value_dim(const kelp_value *value, int32_t axis, const char **out_symbol) {
    bool known = axis >= 0 && axis < value->rank;
    if (out_symbol != NULL)
        *out_symbol = known ? value->symbols[axis] : NULL;
    return known ? value->shape[axis] : -1;
}

const kelp_tensor *kelp_value_constant(const kelp_value *value) {
    return value->constant;
}

/* ---- nodes ---- */
const char *kelp_node_name(const kelp_node *node) {
    return node->name;
}

const char *kelp_node_op_type(const kelp_node *node) {
    KELP_ASSERT(node->op != NULL);
    return node->op->name;
}

const char *kelp_node_domain(const kelp_node *node) {
    return node->op->domain;
}

int64_t kelp_node_opset_version(const kelp_node *node) {
    return node->opset_version;
}

size_t kelp_node_input_count(const kelp_node *node) {
    return node->input_count;
}

const kelp_value *kelp_node_input(const kelp_node *node, size_t index) {
    return index < node->input_count ? node->inputs[index] : NULL;
}

size_t kelp_node_output_count(const kelp_node *node) {
    return node->output_count;
}

const kelp_value *kelp_node_output(const kelp_node *node, size_t index) {
    return index < node->output_count ? node->outputs[index] : NULL;
}

/* ---- attributes ---- */
const kelp_attr *kelp_node_find_attr(const kelp_node *node, const char *name) {
    for (const kelp_attr *attr = node->attributes; attr != NULL; attr = attr->next)
        if (strcmp(attr->name, name) == 0)
            return attr;
    return NULL;
}

static const kelp_attr *find_typed(const kelp_node *node, const char *name, kelp_attr_type type) {
    const kelp_attr *attr = kelp_node_find_attr(node, name);
    return attr != NULL && attr->type == type ? attr : NULL;
}

kelp_attr_type kelp_node_attr_type(const kelp_node *node, const char *name) {
    const kelp_attr *attr = kelp_node_find_attr(node, name);
    return attr != NULL ? attr->type : KELP_ATTR_NONE;
}

size_t kelp_node_attr_count(const kelp_node *node) {
    size_t count = 0;
    for (const kelp_attr *attr = node->attributes; attr != NULL; attr = attr->next)
        count++;
    return count;
}

const char *kelp_node_attr_name(const kelp_node *node, size_t index) {
    for (const kelp_attr *attr = node->attributes; attr != NULL; attr = attr->next)
        if (index-- == 0)
            return attr->name;
    return NULL;
}

int64_t kelp_node_attr_i64(const kelp_node *node, const char *name, int64_t fallback) {
    const kelp_attr *attr = find_typed(node, name, KELP_ATTR_INT);
    return attr != NULL ? attr->i : fallback;
}

float kelp_node_attr_f32(const kelp_node *node, const char *name, float fallback) {
    const kelp_attr *attr = find_typed(node, name, KELP_ATTR_FLOAT);
    return attr != NULL ? attr->f : fallback;
}

const char *kelp_node_attr_string(const kelp_node *node, const char *name, const char *fallback,
                                  size_t *out_length) {
    const kelp_attr *attr = find_typed(node, name, KELP_ATTR_STRING);
    if (out_length != NULL)
        *out_length = attr != NULL ? attr->s.length : fallback != NULL ? strlen(fallback) : 0;
    return attr != NULL ? attr->s.data : fallback;
}

size_t kelp_node_attr_i64s(const kelp_node *node, const char *name, const int64_t **out) {
    const kelp_attr *attr = find_typed(node, name, KELP_ATTR_INTS);
    *out = attr != NULL ? attr->ints : NULL;
    return attr != NULL ? attr->count : 0;
}

size_t kelp_node_attr_f32s(const kelp_node *node, const char *name, const float **out) {
    const kelp_attr *attr = find_typed(node, name, KELP_ATTR_FLOATS);
    *out = attr != NULL ? attr->floats : NULL;
    return attr != NULL ? attr->count : 0;
}

size_t kelp_node_attr_strings(const kelp_node *node, const char *name, const kelp_string **out) {
    const kelp_attr *attr = find_typed(node, name, KELP_ATTR_STRINGS);
    *out = attr != NULL ? attr->strings : NULL;
    return attr != NULL ? attr->count : 0;
}

const kelp_tensor *kelp_node_attr_tensor(const kelp_node *node, const char *name) {
    const kelp_attr *attr = find_typed(node, name, KELP_ATTR_TENSOR);
    return attr != NULL ? attr->tensor : NULL;
}

const kelp_block *kelp_node_attr_block(const kelp_node *node, const char *name) {
    const kelp_attr *attr = find_typed(node, name, KELP_ATTR_GRAPH);
    return attr != NULL && attr->count > 0 ? attr->blocks[0] : NULL;
}
