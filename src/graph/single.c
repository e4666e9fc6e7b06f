/* SPDX-License-Identifier: Apache-2.0 */
/* Creates graphs of one node from a description. The node is serialized and loaded again, so that
 * the loader checks it. */
#include "base/alloc.h"
#include "base/buf.h"
#include "graph/intern.h"
#include "graph/save.h"

#include <string.h>

typedef struct maker {
    kelp_graph *graph;
    const kelp_node_desc *desc;
    kelp_interner interner;
    kelp_value **inputs, **outputs;
} maker;

static bool has_value(const kelp_node_attribute *a) {
    switch (a->type) {
    case KELP_ATTR_INT:
    case KELP_ATTR_FLOAT:
        return true;
    case KELP_ATTR_STRING:
        return a->s.data != NULL || a->s.length == 0;
    case KELP_ATTR_INTS:
        return a->ints != NULL || a->count == 0;
    case KELP_ATTR_FLOATS:
        return a->floats != NULL || a->count == 0;
    case KELP_ATTR_STRINGS:
        return a->strings != NULL || a->count == 0;
    case KELP_ATTR_TENSOR:
        return a->tensor != NULL;
    default:
        return false;
    }
}

/* Reads only the fields of the type. */
static void set_value(kelp_attr *attr, const kelp_node_attribute *from) {
    attr->count = from->type == KELP_ATTR_TENSOR ? 1 : from->count;
    attr->i = from->type == KELP_ATTR_INT ? from->i : 0;
    attr->f = from->type == KELP_ATTR_FLOAT ? from->f : 0;
    attr->ints = from->type == KELP_ATTR_INTS ? from->ints : NULL;
    attr->floats = from->type == KELP_ATTR_FLOATS ? from->floats : NULL;
    attr->strings = from->type == KELP_ATTR_STRINGS ? from->strings : NULL;
    attr->tensor = from->type == KELP_ATTR_TENSOR ? from->tensor : NULL;
    if (from->type == KELP_ATTR_STRING)
        attr->s = from->s;
}

static kelp_status *make_attributes(maker *m, kelp_attr **out) {
    kelp_attr **link = out;
    for (size_t i = 0; i < m->desc->attribute_count; i++) {
        const kelp_node_attribute *from = &m->desc->attributes[i];
        if (from->name == NULL || *from->name == '\0' || !has_value(from))
            return KELP_ERROR(KELP_INVALID_ARGUMENT,
                              "attribute %zu ('%s') has no name or no value: expected a name and "
                              "an int, float, string, a list of these, or a tensor",
                              i, from->name != NULL ? from->name : "");
        kelp_attr *attr = KELP_ARENA_NEW(&m->graph->arena, kelp_attr);
        if (attr == NULL)
            return kelp_status_oom();
        *attr = (kelp_attr){.name = from->name, .type = from->type};
        set_value(attr, from);
        *link = attr;
        link = &attr->next;
    }
    return NULL;
}

/* Adds the inputs or outputs of the node, which are those of the block. */
static kelp_status *make_values(maker *m, const char *prefix, size_t count,
                                const kelp_tensor *const *tensors, kelp_value ***out_values,
                                kelp_value ***out_block, size_t *out_block_count) {
    kelp_arena *arena = &m->graph->arena;
    kelp_value **values = KELP_ARENA_ARRAY(arena, count + 1, kelp_value *);
    kelp_value **listed = KELP_ARENA_ARRAY(arena, count + 1, kelp_value *);
    if (values == NULL || listed == NULL)
        return kelp_status_oom();
    for (size_t i = 0; i < count; i++) {
        if (tensors != NULL && tensors[i] == NULL)
            continue;
        const char *name = kelp_arena_printf(arena, "%s%zu", prefix, i);
        if (name == NULL)
            return kelp_status_oom();
        KELP_TRY(kelp_block_add_value(m->graph->main, name, &values[i]));
        listed[(*out_block_count)++] = values[i];
        values[i]->is_input = tensors != NULL;
        values[i]->is_output = tensors == NULL;
        if (tensors == NULL)
            continue;
        if (tensors[i]->dtype == KELP_LIST || tensors[i]->dtype == KELP_DTYPE_INVALID ||
            tensors[i]->rank < 0 || tensors[i]->rank > KELP_MAX_RANK)
            return KELP_ERROR(KELP_INVALID_ARGUMENT, "input %zu is not a tensor", i);
        values[i]->kind = KELP_VALUE_TENSOR;
        values[i]->dtype = tensors[i]->dtype;
        values[i]->rank = tensors[i]->rank;
        memcpy(values[i]->shape, tensors[i]->shape, sizeof values[i]->shape);
    }
    *out_values = values;
    *out_block = listed;
    return NULL;
}

static kelp_status *make_node(maker *m) {
    const kelp_node_desc *desc = m->desc;
    kelp_block *block = m->graph->main;
    const kelp_operator *op = NULL;
    kelp_attr *attributes = NULL;
    kelp_node *node = NULL;
    kelp_opset_import *import = KELP_ARENA_NEW(&m->graph->arena, kelp_opset_import);
    if (import == NULL)
        return kelp_status_oom();
    KELP_TRY(kelp_intern_operator(&m->interner,
                                  kelp_str_from(desc->domain != NULL ? desc->domain : ""),
                                  kelp_str_from(desc->name), &op));
    *import = (kelp_opset_import){op->domain, desc->version};
    m->graph->imports = import;
    m->graph->import_count = 1;
    KELP_TRY(make_attributes(m, &attributes));
    KELP_TRY(make_values(m, "input", desc->input_count, desc->inputs, &m->inputs, &block->inputs,
                         &block->input_count));
    KELP_TRY(make_values(m, "output", desc->output_count, NULL, &m->outputs, &block->outputs,
                         &block->output_count));
    return kelp_block_add_node(block, op, desc->version, desc->name, m->inputs, desc->input_count,
                               m->outputs, desc->output_count, attributes, &node);
}

static void free_model(void *userp) {
    kelp_buf *model = userp;
    kelp_allocator allocator = model->allocator;
    kelp_buf_deinit(model);
    kelp_free(allocator, model, sizeof *model);
}

static kelp_status *load_saved(kelp_allocator allocator, const maker *m,
                               const kelp_graph_limits *limits, kelp_graph **out) {
    kelp_buf *model = NULL;
    KELP_TRY(KELP_NEW(allocator, kelp_buf, &model));
    kelp_buf_init(model, allocator);
    kelp_status *status = kelp_graph_save(m->graph, NULL, model);
    if (status != NULL) {
        free_model(model);
        return status;
    }
    return kelp_graph_load_bytes(allocator, model->data, model->length, m->desc->name, NULL,
                                 free_model, model, limits, out);
}

kelp_status *kelp_graph_create_node(kelp_allocator allocator, const kelp_node_desc *desc,
                                    const kelp_graph_limits *limits, kelp_graph **out) {
    kelp_graph *graph = NULL;
    if (desc->struct_size < sizeof *desc || desc->name == NULL || *desc->name == '\0' ||
        desc->version < 1 || (desc->input_count > 0 && desc->inputs == NULL) ||
        (desc->attribute_count > 0 && desc->attributes == NULL))
        return KELP_ERROR(KELP_INVALID_ARGUMENT,
                          "the description of a node is incomplete: expected %zu bytes, a name, a "
                          "version and all arrays; found %u bytes, name '%s', version %lld",
                          sizeof *desc, desc->struct_size,
                          desc->struct_size >= sizeof *desc && desc->name != NULL ? desc->name : "",
                          desc->struct_size >= sizeof *desc ? (long long)desc->version : 0);
    KELP_TRY(kelp_graph_new(allocator, &graph));
    static const kelp_tensor *const none[1] = {NULL};
    kelp_node_desc copy = *desc;
    if (copy.inputs == NULL)
        copy.inputs = none; /* make_values distinguishes inputs from outputs */
    maker m = {.graph = graph, .desc = &copy};
    kelp_interner_init(&m.interner, allocator, &graph->arena);
    kelp_status *status = make_node(&m);
    kelp_interner_deinit(&m.interner);
    if (status == NULL)
        status = load_saved(allocator, &m, limits, out);
    kelp_graph_release(graph);
    return KELP_ANNOTATE(status, "cannot create a node of '%s'", desc->name);
}
