/* SPDX-License-Identifier: Apache-2.0 */
/* Converts ONNX structs to the IR: resolves names to pointers and reports unresolved ones as
 * errors. */
#include "graph/load.h"
#include "graph/intern.h"
#include "graph/save.h"

#include "base/alloc.h"
#include "base/assert.h"
#include "base/fs.h"
#include "onnx/model.h"
#include "onnx/schema.h"

#include <string.h>

typedef struct source {
    kelp_mapping mapping;
    kelp_onnx_file *files;
    void (*release)(void *userp);
    void *userp;
} source;

static void release_source(kelp_graph *graph) {
    source *s = graph->source;
    for (kelp_onnx_file *file = s->files; file != NULL; file = file->next)
        kelp_fs_unmap(&file->mapping);
    kelp_fs_unmap(&s->mapping);
    if (s->release != NULL)
        s->release(s->userp);
}

void kelp_graph_release_pages(kelp_graph *graph) {
    if (graph->release_source != release_source)
        return;
    const source *s = graph->source;
    for (const kelp_onnx_file *file = s->files; file != NULL; file = file->next)
        kelp_fs_release_pages(&file->mapping);
    kelp_fs_release_pages(&s->mapping);
}

/* Names visible at a point of a graph: those of the block, then those of the enclosing blocks. */
typedef struct scope {
    const struct scope *parent;
    kelp_block *block;
    kelp_map names;
    kelp_opset_import *imports;
    size_t import_count;
} scope;

typedef struct loader {
    kelp_graph *graph;
    kelp_interner operators;
    const char *label;
    const kelp_onnx_model *model;
    uint32_t depth;      /* maximum nesting of calls */
    bool in_parts;       /* written by kelp_graph_save */
    int64_t newest_onnx; /* as in kelp_graph_limits */
} loader;

static const char *copy(loader *l, kelp_str text) {
    return kelp_arena_strndup(&l->graph->arena, text.data != NULL ? text.data : "", text.length);
}

/* Imports are compared pairwise, so their number is limited. A handful is usual. */
#define IMPORTS_MAX 1024

#define LOAD_ERROR(...) KELP_ERROR(KELP_INVALID_ARGUMENT, __VA_ARGS__)

/* ---- values ---- */
static kelp_status *define(loader *l, scope *s, kelp_str name, kelp_value **out) {
    const char *owned = copy(l, name);
    if (owned == NULL)
        return kelp_status_oom();
    if (name.length > 0 && memchr(name.data, '\0', name.length) != NULL)
        return LOAD_ERROR("%s: the name of value '%s' of graph '%s' contains a NUL byte", l->label,
                          owned, s->block->name);
    if (kelp_map_find(&s->names, name, NULL))
        return LOAD_ERROR("%s: value '%s' of graph '%s' is defined twice", l->label, owned,
                          s->block->name);
    KELP_TRY(kelp_block_add_value(s->block, owned, out));
    return kelp_map_put(&s->names, kelp_str_from((*out)->name), *out);
}

static kelp_value *resolve(const scope *s, kelp_str name) {
    for (; s != NULL; s = s->parent) {
        kelp_value *value = kelp_map_get(&s->names, name);
        if (value != NULL)
            return value;
    }
    return NULL;
}

static kelp_status *set_type(loader *l, kelp_value *value, const kelp_onnx_type *type) {
    if (type->kind == KELP_VALUE_UNKNOWN || value->constant != NULL)
        return NULL;
    value->kind = type->kind;
    value->dtype = type->dtype;
    value->rank = type->rank;
    for (int32_t i = 0; i < type->rank; i++) {
        value->shape[i] = type->shape[i];
        if (type->symbols[i].length > 0) {
            value->symbols[i] = copy(l, type->symbols[i]);
            if (value->symbols[i] == NULL)
                return kelp_status_oom();
        }
    }
    return NULL;
}

static kelp_status *set_constant(loader *l, kelp_value *value, const kelp_tensor *tensor) {
    kelp_tensor *owned = KELP_ARENA_NEW(&l->graph->arena, kelp_tensor);
    if (owned == NULL)
        return kelp_status_oom();
    KELP_ASSERT(value->constant == NULL && value->producer == NULL);
    *owned = *tensor;
    value->constant = owned;
    value->kind = KELP_VALUE_TENSOR;
    value->dtype = tensor->dtype;
    value->rank = tensor->rank;
    memcpy(value->shape, tensor->shape, sizeof value->shape);
    return NULL;
}

/* ---- attributes ---- */
static kelp_status *load_graph(loader *l, const scope *outer, const kelp_onnx_graph *from,
                               kelp_block *block);

static kelp_status *load_strings(loader *l, const kelp_onnx_attr *from, kelp_attr *to) {
    kelp_string *strings = KELP_ARENA_ARRAY(&l->graph->arena, from->count + 1, kelp_string);
    if (strings == NULL)
        return kelp_status_oom();
    for (size_t i = 0; i < from->count; i++) {
        kelp_str text = {from->strings[i].data, from->strings[i].length};
        strings[i] = (kelp_string){copy(l, text), text.length};
        if (strings[i].data == NULL)
            return kelp_status_oom();
    }
    to->strings = strings;
    return NULL;
}

static kelp_status *load_blocks(loader *l, const scope *s, const kelp_onnx_attr *from,
                                kelp_attr *to) {
    to->blocks = KELP_ARENA_ARRAY(&l->graph->arena, from->count + 1, kelp_block *);
    if (to->blocks == NULL)
        return kelp_status_oom();
    for (size_t i = 0; i < from->count; i++) {
        const char *name = copy(l, from->graphs[i].name);
        if (name == NULL)
            return kelp_status_oom();
        KELP_TRY(kelp_block_new(l->graph, s->block, name, &to->blocks[i]));
        KELP_TRY(load_graph(l, s, &from->graphs[i], to->blocks[i]));
    }
    return NULL;
}

static kelp_status *load_attr(loader *l, const scope *s, const kelp_onnx_attr *from,
                              kelp_attr *to) {
    kelp_arena *arena = &l->graph->arena;
    to->name = copy(l, from->name);
    to->ref = from->ref.length > 0 ? copy(l, from->ref) : NULL;
    to->type = from->type;
    to->i = from->i;
    to->f = from->f;
    to->s = (kelp_string){copy(l, from->s), from->s.length};
    to->count = from->count;
    if (to->name == NULL || to->s.data == NULL || (from->ref.length > 0 && to->ref == NULL))
        return kelp_status_oom();
    size_t bytes = from->ints != NULL ? from->count * 8 : from->count * 4;
    void *numbers = NULL;
    if (from->ints != NULL || from->floats != NULL) {
        numbers = kelp_arena_alloc(arena, bytes + 8, 8);
        if (numbers == NULL)
            return kelp_status_oom();
        if (bytes > 0)
            memcpy(numbers, from->ints != NULL ? (const void *)from->ints : from->floats, bytes);
    }
    to->ints = from->ints != NULL ? numbers : NULL;
    to->floats = from->floats != NULL ? numbers : NULL;
    if (from->type == KELP_ATTR_STRINGS)
        KELP_TRY(load_strings(l, from, to));
    if (from->tensors != NULL) {
        kelp_tensor *tensors = KELP_ARENA_ARRAY(arena, from->count + 1, kelp_tensor);
        if (tensors == NULL)
            return kelp_status_oom();
        for (size_t i = 0; i < from->count; i++)
            tensors[i] = from->tensors[i].tensor;
        to->tensor = tensors;
    }
    return from->graphs != NULL ? load_blocks(l, s, from, to) : NULL;
}

static kelp_status *load_attrs(loader *l, const scope *s, const kelp_onnx_attr *from, size_t count,
                               kelp_attr **out) {
    kelp_attr **link = out;
    *out = NULL;
    for (size_t i = 0; i < count; i++) {
        for (const kelp_attr *other = *out; other != NULL; other = other->next)
            if (kelp_str_is(from[i].name, other->name))
                return LOAD_ERROR("%s: attribute '%s' appears twice in graph '%s'", l->label,
                                  other->name, s->block->name);
        if (kelp_str_is(from[i].name, KELP_CAPTURES_ATTRIBUTE))
            return LOAD_ERROR("%s: attribute '%s' in graph '%s' is reserved", l->label,
                              KELP_CAPTURES_ATTRIBUTE, s->block->name);
        kelp_attr *attr = KELP_ARENA_NEW(&l->graph->arena, kelp_attr);
        if (attr == NULL)
            return kelp_status_oom();
        KELP_TRY(load_attr(l, s, &from[i], attr));
        *link = attr;
        link = &attr->next;
    }
    return NULL;
}

/* ---- nodes ---- */
static kelp_status *find_version(loader *l, const scope *s, const kelp_onnx_node *node,
                                 const char *domain, int64_t *out) {
    for (const scope *at = s; at != NULL; at = at->parent)
        for (size_t i = 0; i < at->import_count; i++)
            if (strcmp(at->imports[i].domain, domain) == 0) {
                *out = at->imports[i].version;
                return NULL;
            }
    return LOAD_ERROR("%s: node '%.*s' (%.*s) is of domain '%s', which the model does not import",
                      l->label, KELP_STR_ARG(node->name), KELP_STR_ARG(node->op_type), domain);
}

/* Reads the version of a node of a model in parts, which may differ from the imported version. */
static void take_version(const loader *l, kelp_onnx_node *node, int64_t *inout_version) {
    for (size_t i = 0; l->in_parts && i < node->attr_count; i++)
        if (kelp_str_is(node->attrs[i].name, KELP_OPSET_ATTRIBUTE)) {
            *inout_version = node->attrs[i].i;
            node->attrs[i] = node->attrs[--node->attr_count];
            return;
        }
}

static bool is_function(const loader *l, kelp_str op_type, kelp_str domain) {
    for (size_t i = 0; i < l->model->function_count; i++)
        if (kelp_str_equal(l->model->functions[i].name, op_type) &&
            kelp_str_equal(l->model->functions[i].domain, domain))
            return true;
    return false;
}

/* Checks a node against its schema. The readiness check handles operators without one (other
 * domains, other versions). */
static kelp_status *check_schema(loader *l, const scope *s, const kelp_onnx_node *node,
                                 const kelp_operator *op, int64_t version) {
    const kelp_onnx_schema *schema = kelp_operator_schema(op, version);
    if (schema == NULL || is_function(l, node->op_type, kelp_str_from(op->domain)))
        return NULL;
    return kelp_onnx_check_node(l->label, s->block->name, node, schema);
}

static kelp_status *define_outputs(loader *l, scope *s, const kelp_onnx_node *nodes, size_t count) {
    for (size_t n = 0; n < count; n++)
        for (size_t i = 0; i < nodes[n].output_count; i++) {
            kelp_value *value = NULL;
            if (nodes[n].outputs[i].length > 0)
                KELP_TRY(define(l, s, nodes[n].outputs[i], &value));
        }
    return NULL;
}

static kelp_status *load_node(loader *l, const scope *s, kelp_onnx_node *from) {
    kelp_arena *arena = &l->graph->arena;
    const char *name = copy(l, from->name);
    const kelp_operator *op = NULL;
    kelp_value **inputs = KELP_ARENA_ARRAY(arena, from->input_count + 1, kelp_value *);
    kelp_value **outputs = KELP_ARENA_ARRAY(arena, from->output_count + 1, kelp_value *);
    int64_t version = 0;
    kelp_attr *attributes = NULL;
    if (name == NULL || inputs == NULL || outputs == NULL)
        return kelp_status_oom();
    KELP_TRY(kelp_intern_operator(&l->operators, from->domain, from->op_type, &op));
    KELP_TRY(find_version(l, s, from, op->domain, &version));
    take_version(l, from, &version);
    KELP_TRY(check_schema(l, s, from, op, version));
    for (size_t i = 0; i < from->input_count; i++) {
        if (from->inputs[i].length == 0)
            continue;
        inputs[i] = resolve(s, from->inputs[i]);
        if (inputs[i] == NULL)
            return LOAD_ERROR(
                "%s: input '%.*s' of node '%s' (%s) in graph '%s' is not produced by any "
                "node, input or initializer",
                l->label, KELP_STR_ARG(from->inputs[i]), name, op->name, s->block->name);
    }
    for (size_t i = 0; i < from->output_count; i++)
        if (from->outputs[i].length > 0) {
            outputs[i] = kelp_map_get(&s->names, from->outputs[i]);
            KELP_ASSERT(outputs[i] != NULL && outputs[i]->block == s->block);
        }
    KELP_TRY(load_attrs(l, s, from->attrs, from->attr_count, &attributes));
    l->graph->info.node_count++;
    return kelp_block_add_node(s->block, op, version, name, inputs, from->input_count, outputs,
                               from->output_count, attributes, NULL);
}

/* ---- graphs ---- */
static kelp_status *load_initializers(loader *l, scope *s, const kelp_onnx_graph *from) {
    for (size_t i = 0; i < from->initializer_count; i++) {
        kelp_value *value = NULL;
        if (from->initializers[i].name.length == 0)
            return LOAD_ERROR("%s: graph.initializer[%zu] has no name", l->label, i);
        KELP_TRY(define(l, s, from->initializers[i].name, &value));
        KELP_TRY(set_constant(l, value, &from->initializers[i].tensor));
        l->graph->info.parameter_count +=
            (size_t)kelp_tensor_elements(&from->initializers[i].tensor);
        l->graph->info.parameter_bytes += kelp_tensor_bytes(&from->initializers[i].tensor);
    }
    return NULL;
}

/* Loads the inputs. An input with an initializer of the same name is a constant and not an input.
 */
static kelp_status *load_inputs(loader *l, scope *s, const kelp_onnx_graph *from) {
    kelp_block *block = s->block;
    block->inputs = KELP_ARENA_ARRAY(&l->graph->arena, from->input_count + 1, kelp_value *);
    if (block->inputs == NULL)
        return kelp_status_oom();
    for (size_t i = 0; i < from->input_count; i++) {
        kelp_value *value = kelp_map_get(&s->names, from->inputs[i].name);
        if (value != NULL && value->constant != NULL)
            continue;
        if (from->inputs[i].name.length == 0)
            return LOAD_ERROR("%s: graph.input[%zu] has no name", l->label, i);
        KELP_TRY(define(l, s, from->inputs[i].name, &value));
        KELP_TRY(set_type(l, value, &from->inputs[i].type));
        value->is_input = true;
        block->inputs[block->input_count++] = value;
    }
    return NULL;
}

static kelp_status *load_outputs(loader *l, scope *s, const kelp_onnx_graph *from) {
    kelp_block *block = s->block;
    block->outputs = KELP_ARENA_ARRAY(&l->graph->arena, from->output_count + 1, kelp_value *);
    if (block->outputs == NULL)
        return kelp_status_oom();
    for (size_t i = 0; i < from->value_count; i++) {
        kelp_value *value = kelp_map_get(&s->names, from->values[i].name);
        if (value != NULL)
            KELP_TRY(set_type(l, value, &from->values[i].type));
    }
    for (size_t i = 0; i < from->output_count; i++) {
        kelp_value *value = resolve(s, from->outputs[i].name);
        if (value == NULL)
            return LOAD_ERROR(
                "%s: output '%.*s' of graph '%s' is not produced by any node, input or initializer",
                l->label, KELP_STR_ARG(from->outputs[i].name), block->name);
        if (value->block == block) {
            value->is_output = true;
            if (!value->is_input)
                KELP_TRY(set_type(l, value, &from->outputs[i].type));
        }
        block->outputs[block->output_count++] = value;
    }
    return NULL;
}

static kelp_status *load_into(loader *l, scope *s, const kelp_onnx_graph *from) {
    KELP_TRY(load_initializers(l, s, from));
    KELP_TRY(load_inputs(l, s, from));
    KELP_TRY(define_outputs(l, s, from->nodes, from->node_count));
    for (size_t n = 0; n < from->node_count; n++)
        KELP_TRY(load_node(l, s, &from->nodes[n]));
    KELP_TRY(load_outputs(l, s, from));
    return kelp_block_sort(s->block);
}

static kelp_status *load_graph(loader *l, const scope *outer, const kelp_onnx_graph *from,
                               kelp_block *block) {
    scope s = {.parent = outer, .block = block};
    KELP_ASSERT(block->node_count == 0 && block->value_count == 0);
    if (outer == NULL) {
        s.imports = l->graph->imports;
        s.import_count = l->graph->import_count;
    }
    kelp_map_init(&s.names, l->graph->allocator);
    kelp_status *status = load_into(l, &s, from);
    kelp_map_deinit(&s.names);
    return status;
}

/* ---- functions ---- */
static kelp_status *load_imports(loader *l, const kelp_onnx_import *from, size_t count,
                                 kelp_opset_import **out) {
    if (count > IMPORTS_MAX)
        return LOAD_ERROR("%s: opset_import: expected at most %d, found %zu", l->label, IMPORTS_MAX,
                          count);
    *out = KELP_ARENA_ARRAY(&l->graph->arena, count + 1, kelp_opset_import);
    if (*out == NULL)
        return kelp_status_oom();
    for (size_t i = 0; i < count; i++) {
        (*out)[i] = (kelp_opset_import){copy(l, from[i].domain), from[i].version};
        if ((*out)[i].domain == NULL)
            return kelp_status_oom();
        for (size_t k = 0; k < i; k++)
            if (strcmp((*out)[k].domain, (*out)[i].domain) == 0 &&
                from[k].version != from[i].version)
                return LOAD_ERROR(
                    "%s: opset_import[%zu]: domain '%s' version %lld: expected version %lld as in "
                    "opset_import[%zu]",
                    l->label, i, (*out)[i].domain, (long long)from[i].version,
                    (long long)from[k].version, k);
        int64_t newest = kelp_onnx_newest((*out)[i].domain);
        if (*(*out)[i].domain == '\0' && l->newest_onnx > newest)
            newest = l->newest_onnx;
        if (newest > 0 && from[i].version > newest)
            return KELP_ERROR(KELP_UNIMPLEMENTED,
                              "%s: opset_import[%zu]: domain '%s' version %lld: the newest "
                              "supported version is %lld",
                              l->label, i, *(*out)[i].domain ? (*out)[i].domain : "ai.onnx",
                              (long long)from[i].version, (long long)newest);
    }
    return NULL;
}

static kelp_status *load_function_body(loader *l, scope *s, const kelp_onnx_function *from) {
    kelp_block *block = s->block;
    kelp_arena *arena = &l->graph->arena;
    block->inputs = KELP_ARENA_ARRAY(arena, from->input_count + 1, kelp_value *);
    block->outputs = KELP_ARENA_ARRAY(arena, from->output_count + 1, kelp_value *);
    if (block->inputs == NULL || block->outputs == NULL)
        return kelp_status_oom();
    for (size_t i = 0; i < from->input_count; i++) {
        KELP_TRY(define(l, s, from->inputs[i], &block->inputs[i]));
        block->inputs[i]->is_input = true;
        block->input_count++;
    }
    KELP_TRY(define_outputs(l, s, from->nodes, from->node_count));
    for (size_t n = 0; n < from->node_count; n++)
        KELP_TRY(load_node(l, s, &from->nodes[n]));
    for (size_t i = 0; i < from->output_count; i++) {
        block->outputs[i] = kelp_map_get(&s->names, from->outputs[i]);
        if (block->outputs[i] == NULL)
            return LOAD_ERROR(
                "%s: output '%.*s' of function '%s' is not produced by any node or input", l->label,
                KELP_STR_ARG(from->outputs[i]), block->name);
        block->outputs[i]->is_output = true;
        block->output_count++;
    }
    KELP_TRY(load_attrs(l, s, from->defaults, from->default_count, &block->defaults));
    return kelp_block_sort(block);
}

static kelp_status *load_function(loader *l, const kelp_onnx_function *from, kelp_block **out) {
    scope s = {0};
    const kelp_operator *op = NULL;
    KELP_TRY(kelp_intern_operator(&l->operators, from->domain, from->name, &op));
    const char *full = kelp_arena_printf(&l->graph->arena, "%s::%s", op->domain, op->name);
    if (full == NULL)
        return kelp_status_oom();
    KELP_TRY(kelp_block_new(l->graph, NULL, full, &s.block));
    s.block->function = op;
    KELP_TRY(load_imports(l, from->imports, from->import_count, &s.imports));
    s.import_count = from->import_count;
    kelp_map_init(&s.names, l->graph->allocator);
    kelp_status *status = load_function_body(l, &s, from);
    kelp_map_deinit(&s.names);
    *out = s.block;
    return status;
}

/* ---- calls ---- */
static const kelp_block *called_function(const kelp_graph *graph, const kelp_operator *op,
                                         size_t *out_index) {
    for (size_t i = 0; i < graph->function_count; i++)
        if (graph->functions[i]->function == op) {
            *out_index = i;
            return graph->functions[i];
        }
    return NULL;
}

/* Checks calls for recursion, depth first. `states` by function: 0 new, 1 in progress, 2 done. */
static kelp_status *check_calls(const loader *l, const kelp_block *block, uint8_t *states,
                                uint32_t depth) {
    if (depth > l->depth)
        return KELP_ERROR(
            KELP_RESOURCE_EXHAUSTED,
            "%s: functions and their subgraphs are nested deeper than the limit of %u", l->label,
            l->depth);
    for (size_t n = 0; n < block->node_count; n++) {
        const kelp_node *node = block->nodes[n];
        size_t index = 0;
        const kelp_block *function = called_function(l->graph, node->op, &index);
        if (function != NULL && states[index] == 1)
            return LOAD_ERROR("%s: node '%s' in '%s' calls function '%s' recursively", l->label,
                              node->name, block->name, function->name);
        if (function != NULL && states[index] == 0) {
            states[index] = 1;
            KELP_TRY(check_calls(l, function, states, depth + 1));
            states[index] = 2;
        }
        for (const kelp_attr *attr = node->attributes; attr != NULL; attr = attr->next)
            for (size_t k = 0; attr->blocks != NULL && k < attr->count; k++)
                KELP_TRY(check_calls(l, attr->blocks[k], states, depth + 1));
    }
    return NULL;
}

static kelp_status *load_functions(loader *l, const kelp_onnx_model *model) {
    kelp_graph *graph = l->graph;
    uint8_t *states = KELP_ARENA_ARRAY(&graph->arena, model->function_count + 1, uint8_t);
    graph->functions = KELP_ARENA_ARRAY(&graph->arena, model->function_count + 1, kelp_block *);
    if (graph->functions == NULL || states == NULL)
        return kelp_status_oom();
    for (size_t i = 0; i < model->function_count; i++) {
        size_t other = 0;
        KELP_TRY(load_function(l, &model->functions[i], &graph->functions[i]));
        if (called_function(graph, graph->functions[i]->function, &other) != NULL)
            return LOAD_ERROR("%s: functions[%zu]: function '%s' is defined twice", l->label, i,
                              graph->functions[i]->name);
        graph->function_count++;
    }
    for (size_t i = 0; i < graph->function_count; i++) {
        if (states[i] != 0)
            continue;
        states[i] = 1;
        KELP_TRY(check_calls(l, graph->functions[i], states, 1));
        states[i] = 2;
    }
    return NULL;
}

/* ---- the model ---- */
static kelp_status *load_info(loader *l, const kelp_onnx_model *model) {
    kelp_graph *graph = l->graph;
    kelp_graph_info *info = &graph->info;
    info->ir_version = model->ir_version;
    info->model_version = model->model_version;
    info->producer_name = copy(l, model->producer_name);
    info->producer_version = copy(l, model->producer_version);
    info->domain = copy(l, model->domain);
    info->doc = copy(l, model->doc);
    info->graph_name = copy(l, model->graph.name);
    info->metadata_count = model->metadata_count;
    graph->metadata = KELP_ARENA_ARRAY(&graph->arena, 2 * model->metadata_count + 1, const char *);
    if (info->producer_name == NULL || info->producer_version == NULL || info->domain == NULL ||
        info->doc == NULL || info->graph_name == NULL || graph->metadata == NULL)
        return kelp_status_oom();
    for (size_t i = 0; i < 2 * model->metadata_count; i++)
        if ((graph->metadata[i] = copy(l, model->metadata[i])) == NULL)
            return kelp_status_oom();
    graph->main->name = info->graph_name;
    return NULL;
}

static kelp_status *load_model(loader *l, const kelp_onnx_model *model) {
    kelp_graph *graph = l->graph;
    static const kelp_onnx_import first_opset = {{NULL, 0}, 1};
    bool old = model->import_count == 0; /* IR versions before 3 imply opset 1 */
    KELP_TRY(load_info(l, model));
    graph->import_count = old ? 1 : model->import_count;
    KELP_TRY(
        load_imports(l, old ? &first_opset : model->imports, graph->import_count, &graph->imports));
    if (model->graph.output_count == 0)
        return LOAD_ERROR("%s: graph.output: expected at least one, found none", l->label);
    KELP_TRY(load_graph(l, NULL, &model->graph, graph->main));
    KELP_TRY(load_functions(l, model));
    kelp_block_count_uses(graph->main);
    graph->settled = l->in_parts;
    return graph->settled ? NULL : kelp_block_infer(graph->main);
}

static kelp_graph_limits fill_limits(const kelp_graph_limits *user) {
    kelp_graph_limits limits = user != NULL ? *user : (kelp_graph_limits){0};
    if (limits.file_bytes == 0)
        limits.file_bytes = (size_t)16 << 30;
    if (limits.nodes == 0)
        limits.nodes = (size_t)4 << 20;
    if (limits.depth == 0)
        limits.depth = 64;
    if (limits.external_bytes == 0)
        limits.external_bytes = (size_t)256 << 30;
    return limits;
}

/* Where external data is: see kelp_onnx_reader. */
typedef struct external_place {
    const char *directory, *path;
} external_place;

/* Reads a model into `graph`, which owns its source; the caller releases it on failure. */
static kelp_status *read_model(kelp_graph *graph, kelp_str bytes, const char *label,
                               external_place external, const kelp_graph_limits *limits,
                               kelp_onnx_file *weights, kelp_file_guard *guard) {
    loader l = {.graph = graph};
    graph->info.label = kelp_arena_strndup(&graph->arena, label, strlen(label));
    if (graph->info.label == NULL)
        return kelp_status_oom();
    l.label = graph->info.label;
    kelp_arena structs;
    kelp_onnx_model model;
    kelp_onnx_reader reader = {.arena = &structs,
                               .data = &graph->arena,
                               .label = l.label,
                               .directory = external.directory,
                               .path = external.path,
                               .files = weights,
                               .guard = guard,
                               .limits = fill_limits(limits)};
    if (bytes.length > reader.limits.file_bytes)
        return KELP_ERROR(KELP_RESOURCE_EXHAUSTED, "%s: %zu bytes exceed the limit of %zu", label,
                          bytes.length, reader.limits.file_bytes);
    l.model = &model;
    l.depth = reader.limits.depth;
    l.newest_onnx = reader.limits.newest_onnx;
    graph->node_limit = reader.limits.nodes;
    kelp_arena_init(&structs, graph->allocator, 64 << 10);
    kelp_status *status = kelp_onnx_read(&reader, bytes, &model);
    /* a model in parts does not own its weights and has no external files */
    ((source *)graph->source)->files = weights != NULL ? NULL : reader.files;
    l.in_parts = weights != NULL;
    kelp_interner_init(&l.operators, graph->allocator, &graph->arena);
    if (status == NULL)
        status = load_model(&l, &model);
    kelp_interner_deinit(&l.operators);
    kelp_arena_deinit(&structs);
    return status;
}

static kelp_status *new_graph(kelp_allocator allocator, kelp_mapping mapping,
                              void (*release)(void *userp), void *userp, kelp_graph **out) {
    kelp_graph *graph = NULL;
    kelp_status *status = kelp_graph_new(allocator, &graph);
    source *s = status == NULL ? KELP_ARENA_NEW(&graph->arena, source) : NULL;
    if (s == NULL) {
        kelp_fs_unmap(&mapping);
        if (release != NULL)
            release(userp);
        kelp_graph_release(graph);
        return status != NULL ? status : kelp_status_oom();
    }
    *s = (source){.mapping = mapping, .release = release, .userp = userp};
    graph->source = s;
    graph->release_source = release_source;
    *out = graph;
    return NULL;
}

kelp_status *kelp_graph_load_bytes(kelp_allocator allocator, const void *data, size_t size_bytes,
                                   const char *label, const char *directory,
                                   void (*release)(void *userp), void *userp,
                                   const kelp_graph_limits *limits, kelp_graph **out) {
    kelp_graph *graph = NULL;
    KELP_TRY(new_graph(allocator, (kelp_mapping){0}, release, userp, &graph));
    kelp_status *status = read_model(graph, (kelp_str){data, size_bytes}, label,
                                     (external_place){directory, NULL}, limits, NULL, NULL);
    if (status != NULL) {
        kelp_graph_release(graph);
        return status;
    }
    *out = graph;
    return NULL;
}

kelp_status *kelp_graph_load_parts(kelp_allocator allocator, kelp_str model,
                                   const kelp_str parts[KELP_PART_COUNT], const char *label,
                                   void (*release)(void *userp), void *userp,
                                   const kelp_graph_limits *limits, kelp_graph **out) {
    static const char *const locations[] = {KELP_WEIGHTS_LOCATION, KELP_ORIGINALS_LOCATION,
                                            KELP_STRIPPED_LOCATION};
    kelp_graph *graph = NULL;
    kelp_onnx_file files[KELP_PART_COUNT];
    for (int i = 0; i < KELP_PART_COUNT; i++)
        files[i] =
            (kelp_onnx_file){.location = kelp_str_from(locations[i]),
                             .mapping = {.data = parts[i].data, .size_bytes = parts[i].length},
                             .next = i + 1 < KELP_PART_COUNT ? &files[i + 1] : NULL};
    KELP_TRY(new_graph(allocator, (kelp_mapping){0}, release, userp, &graph));
    kelp_status *status = read_model(graph, model, label, (external_place){0}, limits, files, NULL);
    if (status != NULL) {
        kelp_graph_release(graph);
        return status;
    }
    *out = graph;
    return NULL;
}

kelp_status *kelp_graph_load_guarded(kelp_allocator allocator, kelp_file_guard *guard,
                                     const char *path, const kelp_graph_limits *limits,
                                     kelp_graph **out) {
    kelp_mapping mapping = {0};
    kelp_graph *graph = NULL;
    char *directory = NULL;
    KELP_TRY(kelp_file_guard_map(guard, path, &mapping));
    kelp_str bytes = {mapping.data, mapping.size_bytes};
    KELP_TRY(new_graph(allocator, mapping, NULL, NULL, &graph));
    const char *slash = strrchr(path, '/');
    kelp_status *status = kelp_strdup(allocator, slash != NULL ? path : ".", &directory);
    if (status == NULL) {
        if (slash != NULL)
            directory[slash == path ? 1 : slash - path] = '\0';
        status =
            read_model(graph, bytes, path, (external_place){directory, path}, limits, NULL, guard);
        /* the allocation has the size of the whole path */
        kelp_free(allocator, directory, strlen(slash != NULL ? path : ".") + 1);
    }
    if (status != NULL) {
        kelp_graph_release(graph);
        return status;
    }
    *out = graph;
    return NULL;
}

kelp_status *kelp_graph_load_file(kelp_allocator allocator, const char *path,
                                  const kelp_graph_limits *limits, kelp_graph **out) {
    return kelp_graph_load_guarded(allocator, NULL, path, limits, out);
}
