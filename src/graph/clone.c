/* SPDX-License-Identifier: Apache-2.0 */
/* Copies a graph for an engine: replaces calls of functions by their bodies and Constant nodes by
 * constants. */
#include "base/alloc.h"
#include "base/assert.h"
#include "graph/ir.h"
#include "onnx/schema.h"

#include <string.h>

/* Maximum nesting of calls; deeper nesting is treated as recursion. */
#define CALL_DEPTH_MAX 64

/* Maps the values of one source block to their copies; falls back to the enclosing blocks. */
typedef struct scope {
    const struct scope *parent;
    const kelp_block *from;
    kelp_block *to;
    kelp_value **map;      /* by id of the source block */
    const kelp_node *call; /* the call, in the body of a function */
    const char *prefix;    /* prefix of names, so that two calls of a function do not collide */
    uint32_t call_depth;
} scope;

typedef struct cloner {
    const kelp_graph *from;
    kelp_graph *to;
    /* limits exponential growth: functions may call functions several times */
    size_t nodes, node_limit;
} cloner;

static kelp_value *lookup(const scope *s, const kelp_value *value) {
    for (; s != NULL; s = s->parent)
        if (s->from == value->block) {
            KELP_ASSERT(value->id < s->from->value_count);
            return s->map[value->id];
        }
    return NULL;
}

static const char *prefixed(const scope *s, const char *name) {
    if (*s->prefix == '\0' || *name == '\0')
        return name;
    return kelp_arena_printf(&s->to->graph->arena, "%s%s", s->prefix, name);
}

static kelp_status *clone_value(const scope *s, const kelp_value *from, kelp_value **out) {
    kelp_value *value = NULL;
    const char *name = prefixed(s, from->name);
    if (name == NULL)
        return kelp_status_oom();
    KELP_TRY(kelp_block_add_value(s->to, name, &value));
    value->kind = from->kind;
    value->dtype = from->dtype;
    value->rank = from->rank;
    memcpy(value->shape, from->shape, sizeof value->shape);
    memcpy(value->symbols, from->symbols, sizeof value->symbols);
    value->constant = from->constant;
    *out = value;
    return NULL;
}

static kelp_status *map_values(cloner *c, scope *s, const kelp_block *from) {
    s->from = from;
    s->map = KELP_ARENA_ARRAY(&c->to->arena, from->value_count + 1, kelp_value *);
    return s->map != NULL ? NULL : kelp_status_oom();
}

/* ---- attributes ---- */
static kelp_status *clone_block(cloner *c, const scope *outer, const kelp_block *from,
                                kelp_block **out);

/* Resolves a reference in a function's body: returns the attribute of the call, the default of the
 * function or NULL. */
static const kelp_attr *follow_ref(const scope *s, const kelp_attr *attr) {
    while (attr != NULL && attr->ref != NULL) {
        while (s != NULL && s->call == NULL)
            s = s->parent;
        if (s == NULL)
            return NULL;
        const kelp_attr *target = kelp_node_find_attr(s->call, attr->ref);
        for (const kelp_attr *fallback = s->from->defaults; target == NULL && fallback != NULL;
             fallback = fallback->next)
            if (strcmp(fallback->name, attr->ref) == 0)
                target = fallback;
        attr = target;
        s = s->parent;
    }
    return attr;
}

static kelp_status *clone_attrs(cloner *c, const scope *s, const kelp_attr *from, kelp_attr **out) {
    kelp_attr **link = out;
    *out = NULL;
    for (; from != NULL; from = from->next) {
        const kelp_attr *value = follow_ref(s, from);
        if (value == NULL)
            continue;
        kelp_attr *attr = KELP_ARENA_NEW(&c->to->arena, kelp_attr);
        if (attr == NULL)
            return kelp_status_oom();
        *attr = *value;
        attr->name = from->name;
        attr->ref = NULL;
        attr->next = NULL;
        if (value->blocks != NULL) {
            attr->blocks = KELP_ARENA_ARRAY(&c->to->arena, value->count + 1, kelp_block *);
            if (attr->blocks == NULL)
                return kelp_status_oom();
            for (size_t k = 0; k < value->count; k++)
                KELP_TRY(clone_block(c, s, value->blocks[k], &attr->blocks[k]));
        }
        *link = attr;
        link = &attr->next;
    }
    return NULL;
}

/* ---- constants ---- */
/* Sets a constant of rank 0, or of rank 1 with `count` elements. */
static kelp_status *set_constant(kelp_value *value, kelp_dtype dtype, int32_t rank, int64_t count,
                                 void *data) {
    kelp_tensor *tensor = KELP_ARENA_NEW(&value->block->graph->arena, kelp_tensor);
    if (tensor == NULL)
        return kelp_status_oom();
    KELP_ASSERT(value->constant == NULL && rank <= 1);
    KELP_TRY(kelp_tensor_init(tensor, dtype, rank, &count, data));
    tensor->flags = KELP_TENSOR_READ_ONLY;
    value->constant = tensor;
    return NULL;
}

static kelp_status *copy_constant(kelp_value *value, kelp_dtype dtype, int32_t rank, size_t count,
                                  const void *data, size_t item) {
    void *copy = kelp_arena_alloc(&value->block->graph->arena, count * item + 1, 64);
    if (copy == NULL)
        return kelp_status_oom();
    if (count > 0)
        memcpy(copy, data, count * item);
    return set_constant(value, dtype, rank, (int64_t)count, copy);
}

static kelp_status *constant_of(const kelp_node *node, const kelp_attr *attr, kelp_value *value) {
    if (strcmp(attr->name, "value") == 0 && attr->type == KELP_ATTR_TENSOR && attr->count == 1) {
        value->constant = attr->tensor;
        return NULL;
    }
    switch (attr->type) {
    case KELP_ATTR_FLOAT:
        return copy_constant(value, KELP_F32, 0, 1, &attr->f, sizeof attr->f);
    case KELP_ATTR_INT:
        return copy_constant(value, KELP_I64, 0, 1, &attr->i, sizeof attr->i);
    case KELP_ATTR_STRING:
        return copy_constant(value, KELP_STRING, 0, 1, &attr->s, sizeof attr->s);
    case KELP_ATTR_FLOATS:
        return copy_constant(value, KELP_F32, 1, attr->count, attr->floats, sizeof(float));
    case KELP_ATTR_INTS:
        return copy_constant(value, KELP_I64, 1, attr->count, attr->ints, sizeof(int64_t));
    case KELP_ATTR_STRINGS:
        return copy_constant(value, KELP_STRING, 1, attr->count, attr->strings,
                             sizeof(kelp_string));
    default:
        return KELP_ERROR(KELP_UNIMPLEMENTED, "attribute '%s' of Constant node '%s' is unsupported",
                          attr->name, node->name);
    }
}

static kelp_status *fold_constant(cloner *c, const scope *s, const kelp_node *from,
                                  kelp_value *value) {
    kelp_attr *attrs = NULL;
    KELP_TRY(clone_attrs(c, s, from->attributes, &attrs));
    if (attrs == NULL)
        return KELP_ERROR(KELP_INVALID_ARGUMENT, "%s: Constant node '%s' has no value",
                          c->from->info.label, from->name);
    KELP_TRY(constant_of(from, attrs, value));
    value->kind = KELP_VALUE_TENSOR;
    value->dtype = value->constant->dtype;
    value->rank = value->constant->rank;
    memcpy(value->shape, value->constant->shape, sizeof value->shape);
    return NULL;
}

/* ---- nodes ---- */
static const kelp_block *find_function(const cloner *c, const kelp_node *node) {
    for (size_t i = 0; i < c->from->function_count; i++) {
        const kelp_block *function = c->from->functions[i];
        if (function->function == node->op)
            return function;
    }
    return NULL;
}

static kelp_status *clone_nodes(cloner *c, const scope *s);

static kelp_status *map_own_values(const scope *s) {
    for (size_t i = 0; i < s->from->value_count; i++)
        if (s->map[i] == NULL)
            KELP_TRY(clone_value(s, s->from->values[i], &s->map[i]));
    return NULL;
}

/* Replaces a call by the function's body, whose inputs and outputs become those of the call. */
static kelp_status *inline_call(cloner *c, const scope *s, const kelp_node *call,
                                const kelp_block *function) {
    if (s->call_depth >= CALL_DEPTH_MAX)
        return KELP_ERROR(KELP_INVALID_ARGUMENT,
                          "%s: function '%s' is recursive, or calls are nested deeper than %d",
                          c->from->info.label, function->name, CALL_DEPTH_MAX);
    if (call->input_count > function->input_count || call->output_count > function->output_count)
        return KELP_ERROR(KELP_INVALID_ARGUMENT,
                          "%s: node '%s' calls function '%s' with %zu inputs and %zu outputs: "
                          "expected at most %zu and %zu",
                          c->from->info.label, call->name, function->name, call->input_count,
                          call->output_count, function->input_count, function->output_count);
    scope body = {.parent = s, .to = s->to, .call = call, .call_depth = s->call_depth + 1};
    KELP_TRY(map_values(c, &body, function));
    body.prefix = kelp_arena_printf(&c->to->arena, "%s%s/", s->prefix,
                                    *call->name ? call->name : call->op->name);
    if (body.prefix == NULL)
        return kelp_status_oom();
    static kelp_value omitted; /* stands for an input that the call omits */
    for (size_t i = 0; i < function->input_count; i++) {
        const kelp_value *argument = i < call->input_count ? call->inputs[i] : NULL;
        body.map[function->inputs[i]->id] = argument != NULL ? lookup(s, argument) : &omitted;
    }
    for (size_t i = 0; i < call->output_count; i++) {
        const kelp_value *inner = function->outputs[i];
        if (call->outputs[i] != NULL && !inner->is_input && body.map[inner->id] == NULL)
            body.map[inner->id] = lookup(s, call->outputs[i]);
    }
    KELP_TRY(map_own_values(&body));
    /* an output that is an input, or the same as another, needs a node of its own */
    for (size_t i = 0; i < call->output_count; i++) {
        kelp_value *result = call->outputs[i] != NULL ? lookup(s, call->outputs[i]) : NULL;
        kelp_value *inner = body.map[function->outputs[i]->id];
        if (result != NULL && result != inner && inner->block == NULL)
            return KELP_ERROR(KELP_INVALID_ARGUMENT,
                              "%s: node '%s' omits input '%s' of function '%s', which is also an "
                              "output of the function",
                              c->from->info.label, call->name, function->outputs[i]->name,
                              function->name);
    }
    for (size_t i = 0; i < function->input_count; i++)
        if (body.map[function->inputs[i]->id] == &omitted)
            body.map[function->inputs[i]->id] = NULL;
    KELP_TRY(clone_nodes(c, &body));
    for (size_t i = 0; i < call->output_count; i++) {
        kelp_value *result = call->outputs[i] != NULL ? lookup(s, call->outputs[i]) : NULL;
        kelp_value *inner = body.map[function->outputs[i]->id];
        if (result != NULL && result != inner)
            KELP_TRY(kelp_block_add_node(s->to, KELP_OP(Identity), 13, call->name, &inner, 1,
                                         &result, 1, NULL, NULL));
    }
    return NULL;
}

/* Checks that an input that the call omits is optional for the node that reads it. */
static kelp_status *check_omitted(const cloner *c, const scope *s, const kelp_node *from,
                                  size_t input) {
    const kelp_onnx_schema *schema = kelp_operator_schema(from->op, from->opset_version);
    const kelp_onnx_param *param = schema != NULL ? kelp_onnx_input_param(schema, input) : NULL;
    while (s != NULL && s->call == NULL)
        s = s->parent;
    if (param == NULL || (param->flags & KELP_ONNX_OPTIONAL) || s == NULL)
        return NULL;
    return KELP_ERROR(
        KELP_INVALID_ARGUMENT,
        "%s: node '%s' omits input '%s' of function '%s', which node '%s' (%s) requires",
        c->from->info.label, s->call->name, from->inputs[input]->name, s->from->name, from->name,
        from->op->name);
}

static kelp_status *clone_node(cloner *c, const scope *s, const kelp_node *from) {
    const kelp_block *function = find_function(c, from);
    if (++c->nodes > c->node_limit)
        return KELP_ERROR(KELP_RESOURCE_EXHAUSTED,
                          "%s: with its functions inlined, the model has more than %zu nodes",
                          c->from->info.label, c->node_limit);
    if (function != NULL)
        return inline_call(c, s, from, function);
    if (from->op == KELP_OP(Constant) && from->output_count == 1 && from->outputs[0] != NULL)
        return fold_constant(c, s, from, lookup(s, from->outputs[0]));
    kelp_arena *arena = &c->to->arena;
    kelp_value **inputs = KELP_ARENA_ARRAY(arena, from->input_count + 1, kelp_value *);
    kelp_value **outputs = KELP_ARENA_ARRAY(arena, from->output_count + 1, kelp_value *);
    kelp_attr *attributes = NULL;
    const char *name = prefixed(s, from->name);
    if (inputs == NULL || outputs == NULL || name == NULL)
        return kelp_status_oom();
    for (size_t i = 0; i < from->input_count; i++) {
        inputs[i] = from->inputs[i] != NULL ? lookup(s, from->inputs[i]) : NULL;
        if (from->inputs[i] != NULL && inputs[i] == NULL)
            KELP_TRY(check_omitted(c, s, from, i));
    }
    for (size_t i = 0; i < from->output_count; i++)
        outputs[i] = from->outputs[i] != NULL ? lookup(s, from->outputs[i]) : NULL;
    KELP_TRY(clone_attrs(c, s, from->attributes, &attributes));
    return kelp_block_add_node(s->to, from->op, from->opset_version, name, inputs,
                               from->input_count, outputs, from->output_count, attributes, NULL);
}

static kelp_status *clone_nodes(cloner *c, const scope *s) {
    for (size_t n = 0; n < s->from->node_count; n++)
        KELP_TRY(clone_node(c, s, s->from->nodes[n]));
    return NULL;
}

/* ---- blocks ---- */
static kelp_status *clone_into(cloner *c, scope *s) {
    const kelp_block *from = s->from;
    kelp_block *to = s->to;
    KELP_TRY(map_own_values(s));
    to->inputs = KELP_ARENA_ARRAY(&c->to->arena, from->input_count + 1, kelp_value *);
    to->outputs = KELP_ARENA_ARRAY(&c->to->arena, from->output_count + 1, kelp_value *);
    if (to->inputs == NULL || to->outputs == NULL)
        return kelp_status_oom();
    for (size_t i = 0; i < from->input_count; i++) {
        to->inputs[i] = lookup(s, from->inputs[i]);
        to->inputs[i]->is_input = true;
    }
    to->input_count = from->input_count;
    KELP_TRY(clone_nodes(c, s));
    for (size_t i = 0; i < from->output_count; i++) {
        to->outputs[i] = lookup(s, from->outputs[i]);
        if (to->outputs[i] == NULL)
            return KELP_ERROR(KELP_INVALID_ARGUMENT, "%s: output '%s' of graph '%s' has no value",
                              c->from->info.label, from->outputs[i]->name, from->name);
        if (to->outputs[i]->block == to)
            to->outputs[i]->is_output = true;
    }
    to->output_count = from->output_count;
    return NULL;
}

static kelp_status *clone_block(cloner *c, const scope *outer, const kelp_block *from,
                                kelp_block **out) {
    scope s = {.parent = outer, .prefix = outer->prefix, .call_depth = outer->call_depth};
    KELP_TRY(map_values(c, &s, from));
    KELP_TRY(kelp_block_new(c->to, outer->to, from->name, &s.to));
    *out = s.to;
    return clone_into(c, &s);
}

kelp_status *kelp_graph_clone_for_engine(kelp_graph *graph, kelp_graph **out) {
    kelp_graph *clone = NULL;
    KELP_TRY(kelp_graph_new(graph->allocator, &clone));
    clone->info = graph->info;
    clone->imports = graph->imports;
    clone->import_count = graph->import_count;
    clone->metadata = graph->metadata;
    clone->origin = kelp_graph_retain(graph);
    clone->main->name = graph->main->name;
    cloner c = {.from = graph,
                .to = clone,
                .node_limit = graph->node_limit ? graph->node_limit : (size_t)4 << 20};
    scope s = {.to = clone->main, .prefix = ""};
    kelp_status *status = map_values(&c, &s, graph->main);
    if (status == NULL)
        status = clone_into(&c, &s);
    if (status == NULL && !graph->settled)
        status = kelp_block_infer(clone->main);
    if (status != NULL) {
        kelp_graph_release(clone);
        return status;
    }
    kelp_block_count_uses(clone->main);
    *out = clone;
    return NULL;
}

/* ---- one node ---- */
static kelp_status *wrap_node(kelp_graph *graph, const kelp_node *node,
                              const kelp_tensor *const *inputs) {
    kelp_block *block = graph->main;
    kelp_arena *arena = &graph->arena;
    kelp_value **in = KELP_ARENA_ARRAY(arena, node->input_count + 1, kelp_value *);
    kelp_value **out = KELP_ARENA_ARRAY(arena, node->output_count + 1, kelp_value *);
    block->inputs = KELP_ARENA_ARRAY(arena, node->input_count + 1, kelp_value *);
    block->outputs = KELP_ARENA_ARRAY(arena, node->output_count + 1, kelp_value *);
    if (in == NULL || out == NULL || block->inputs == NULL || block->outputs == NULL)
        return kelp_status_oom();
    for (size_t i = 0; i < node->input_count; i++) {
        if (node->inputs[i] == NULL)
            continue;
        KELP_TRY(kelp_block_add_value(block, node->inputs[i]->name, &in[i]));
        in[i]->kind = KELP_VALUE_TENSOR;
        in[i]->dtype = inputs[i]->dtype;
        in[i]->rank = inputs[i]->rank;
        memcpy(in[i]->shape, inputs[i]->shape, sizeof in[i]->shape);
        in[i]->is_input = true;
        block->inputs[block->input_count++] = in[i];
    }
    for (size_t i = 0; i < node->output_count; i++) {
        if (node->outputs[i] == NULL)
            continue;
        KELP_TRY(kelp_block_add_value(block, node->outputs[i]->name, &out[i]));
        out[i]->is_output = true;
        block->outputs[block->output_count++] = out[i];
    }
    kelp_node *copy = NULL;
    KELP_TRY(kelp_block_add_node(block, node->op, node->opset_version, node->name, in,
                                 node->input_count, out, node->output_count, NULL, &copy));
    copy->attributes = node->attributes; /* set later: their blocks keep their owner */
    return NULL;
}

kelp_status *kelp_graph_of_node(kelp_allocator allocator, const kelp_node *node,
                                const kelp_tensor *const *inputs, kelp_graph **out) {
    kelp_graph *graph = NULL;
    KELP_TRY(kelp_graph_new(allocator, &graph));
    kelp_opset_import *import = KELP_ARENA_NEW(&graph->arena, kelp_opset_import);
    kelp_status *status = import == NULL ? kelp_status_oom() : NULL;
    if (status == NULL) {
        *import = (kelp_opset_import){node->op->domain, node->opset_version};
        graph->imports = import;
        graph->import_count = 1;
        graph->info.node_count = 1;
        status = wrap_node(graph, node, inputs);
    }
    if (status != NULL) {
        kelp_graph_release(graph);
        return status;
    }
    kelp_block_count_uses(graph->main);
    *out = graph;
    return NULL;
}
