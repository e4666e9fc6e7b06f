/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lowers a network to a graph. Layers are emitted in the order in which they were added, each into
 * the block of its region; a tensor that is needed earlier is emitted on demand. The first output
 * of a loop emits the Loop node, and the first output of a conditional the If node.
 */
#include "builder/emit.h"
#include "graph/load.h"

#include "base/alloc.h"
#include "base/assert.h"

#include <string.h>

/* Values of one block, indexed by tensor. A shadow scope has the block and region of another scope
 * and its own values: the loop condition is evaluated for the values of the next iteration. */
typedef struct scope {
    const struct scope *parent;
    kelp_region *region;
    kelp_block *block;
    kelp_value **values;
} scope;

typedef struct lowering {
    const kelp_network *network;
    kelp_graph *graph;
    uint32_t depth; /* number of layers whose inputs are being emitted */
} lowering;

#define LOWER_MAX_DEPTH 20000

static kelp_status *emit_layer(lowering *l, const scope *s, const kelp_layer *layer);
static kelp_status *emit_loop(lowering *l, const scope *s, const kelp_loop *loop);
static kelp_status *emit_conditional(lowering *l, const scope *s,
                                     const kelp_conditional *conditional);

static kelp_status *open_scope(lowering *l, const scope *parent, kelp_region *region,
                               kelp_block *block, scope *out) {
    *out = (scope){.parent = parent, .region = region, .block = block};
    out->values = KELP_ARENA_ARRAY(&l->graph->arena, l->network->tensor_count + 1, kelp_value *);
    return out->values != NULL ? NULL : kelp_status_oom();
}

static void set_type(kelp_value *value, const kelp_value *draft) {
    if (value->constant != NULL)
        return;
    value->kind = draft->kind;
    value->dtype = draft->dtype;
    value->rank = draft->rank;
    memcpy(value->shape, draft->shape, sizeof value->shape);
}

static kelp_status *emit_tensor(lowering *l, const scope *s, const kelp_net_tensor *tensor,
                                kelp_value **out) {
    const scope *home = NULL;
    KELP_ASSERT(tensor->id < l->network->tensor_count);
    for (const scope *at = s; at != NULL; at = at->parent) {
        if (at->values[tensor->id] != NULL) {
            *out = at->values[tensor->id];
            return NULL;
        }
        if (home == NULL && at->region == tensor->producer->region)
            home = at;
    }
    if (home == NULL)
        return kelp_layer_error(tensor->producer,
                                "'%s' is used outside the loop or conditional that produces it",
                                tensor->name);
    if (++l->depth > LOWER_MAX_DEPTH)
        return kelp_layer_error(tensor->producer,
                                "layers form a cycle, or a chain of more than %d layers",
                                LOWER_MAX_DEPTH);
    KELP_TRY(emit_layer(l, home, tensor->producer));
    KELP_ASSERT(l->depth > 0);
    l->depth--;
    *out = home->values[tensor->id];
    return *out != NULL
               ? NULL
               : kelp_layer_error(tensor->producer, "output '%s' was not produced", tensor->name);
}

static kelp_status *emit_layer(lowering *l, const scope *s, const kelp_layer *layer) {
    kelp_emit e = {.block = s->block, .layer = layer};
    if (layer->output_count > 0 && s->values[layer->outputs[0]->id] != NULL)
        return NULL;
    if (layer->type == KELP_LAYER_LOOP_OUTPUT)
        return emit_loop(l, s, layer->boundary->loop);
    if (layer->type == KELP_LAYER_CONDITIONAL_OUTPUT)
        return emit_conditional(l, s, layer->boundary->conditional);
    e.inputs = KELP_ARENA_ARRAY(&l->graph->arena, layer->input_count + 1, kelp_value *);
    if (e.inputs == NULL)
        return kelp_status_oom();
    for (uint32_t i = 0; i < layer->input_count; i++)
        if (layer->inputs[i] != NULL)
            KELP_TRY(emit_tensor(l, s, layer->inputs[i], &e.inputs[i]));
    KELP_TRY(kelp_emit_table[layer->type](&e));
    KELP_ASSERT(e.output_count == layer->output_count); /* as in the draft */
    for (uint32_t i = 0; i < e.output_count; i++) {
        set_type(e.outputs[i], layer->outputs[i]->draft);
        s->values[layer->outputs[i]->id] = e.outputs[i];
    }
    return NULL;
}

/* Emits all layers of the region in order. */
static kelp_status *emit_region(lowering *l, const scope *s) {
    for (size_t i = 0; i < l->network->layer_count; i++) {
        const kelp_layer *layer = l->network->layers[i];
        bool has_nodes = layer->type != KELP_LAYER_INPUT && layer->type != KELP_LAYER_PARSED;
        if (layer->region == s->region && has_nodes)
            KELP_TRY(emit_layer(l, s, layer));
    }
    return NULL;
}

/* ---- blocks ---- */
static kelp_status *block_input(kelp_block *block, const char *name, kelp_dtype dtype, int32_t rank,
                                kelp_value **out) {
    KELP_TRY(kelp_block_add_value(block, name, out));
    (*out)->kind = KELP_VALUE_TENSOR;
    (*out)->dtype = dtype;
    (*out)->rank = rank;
    (*out)->is_input = true;
    block->inputs[block->input_count++] = *out;
    return NULL;
}

/* Adds an output to a block. An output must be produced by the block and must not be an input;
 * other values pass through an Identity. */
static kelp_status *block_output(const scope *s, const kelp_layer *layer, kelp_value *value) {
    kelp_emit e = {.block = s->block, .layer = layer};
    if (value->block != s->block || value->producer == NULL || value->is_output)
        KELP_TRY(kelp_emit_1(&e, KELP_OP(Identity), value, &value));
    value->is_output = true;
    s->block->outputs[s->block->output_count++] = value;
    return NULL;
}

static kelp_status *attach_block(kelp_node *node, const char *name, kelp_block *block) {
    kelp_arena *arena = &node->block->graph->arena;
    kelp_attr *attr = KELP_ARENA_NEW(arena, kelp_attr);
    kelp_block **blocks = KELP_ARENA_ARRAY(arena, 1, kelp_block *);
    if (attr == NULL || blocks == NULL)
        return kelp_status_oom();
    blocks[0] = block;
    *attr = (kelp_attr){.name = name,
                        .type = KELP_ATTR_GRAPH,
                        .count = 1,
                        .blocks = blocks,
                        .next = node->attributes};
    node->attributes = attr;
    block->owner = node;
    return NULL;
}

static kelp_status *new_block(lowering *l, const scope *parent, const char *name, size_t inputs,
                              size_t outputs, kelp_block **out) {
    KELP_TRY(kelp_block_new(l->graph, parent->block, name, out));
    (*out)->inputs = KELP_ARENA_ARRAY(&l->graph->arena, inputs + 1, kelp_value *);
    (*out)->outputs = KELP_ARENA_ARRAY(&l->graph->arena, outputs, kelp_value *);
    return (*out)->inputs != NULL && (*out)->outputs != NULL ? NULL : kelp_status_oom();
}

/* ---- loops ---- */
typedef struct loop_parts {
    const kelp_layer *recurrences[64], *stacked[64];
    size_t recurrence_count, stacked_count;
} loop_parts;

static kelp_status *collect_parts(const kelp_loop *loop, loop_parts *out) {
    for (const kelp_layer *layer = loop->first; layer != NULL; layer = layer->next_in_region) {
        bool is_stacked = layer->type == KELP_LAYER_LOOP_OUTPUT &&
                          layer->params.loop_output.kind != KELP_LOOP_LAST_VALUE;
        if (layer->type == KELP_LAYER_RECURRENCE) {
            if (layer->inputs[1] == NULL)
                return kelp_layer_error(layer, "the recurrence has no next value");
            if (out->recurrence_count == 64)
                return kelp_layer_error(layer, "too many recurrences: a loop has at most 64");
            out->recurrences[out->recurrence_count++] = layer;
        } else if (is_stacked) {
            if (out->stacked_count == 64)
                return kelp_layer_error(layer, "too many outputs: a loop has at most 64");
            out->stacked[out->stacked_count++] = layer;
        }
    }
    if (loop->trip_count == NULL && loop->condition == NULL)
        return KELP_ERROR(KELP_INVALID_ARGUMENT, "loop %u has neither a trip count nor a condition",
                          loop->region.index);
    return NULL;
}

/* Emits slice `iteration` of the iterator's tensor. */
static kelp_status *emit_iterator(lowering *l, const scope *body, const kelp_layer *layer,
                                  kelp_value *iteration, kelp_value **out) {
    kelp_emit e = {.block = body->block, .layer = layer};
    kelp_value *inputs[2] = {NULL, iteration};
    kelp_node *node = NULL;
    KELP_TRY(emit_tensor(l, body->parent, layer->inputs[0], &inputs[0]));
    if (layer->params.iterator.reverse) { /* -1 is the last element */
        kelp_value *last = NULL;
        KELP_TRY(kelp_emit_i64(&e, -1, &last));
        KELP_TRY(kelp_emit_2(&e, KELP_OP(Sub), last, iteration, &inputs[1]));
    }
    KELP_TRY(kelp_emit_node(&e, KELP_OP(Gather), inputs, 2, out, &node));
    KELP_TRY(kelp_node_set_i64(node, "axis", layer->params.iterator.axis));
    set_type(*out, layer->outputs[0]->draft);
    return NULL;
}

static kelp_status *bind_iterators(lowering *l, const scope *s, const kelp_loop *loop,
                                   kelp_value *iteration) {
    for (const kelp_layer *layer = loop->first; layer != NULL; layer = layer->next_in_region)
        if (layer->type == KELP_LAYER_ITERATOR)
            KELP_TRY(emit_iterator(l, s, layer, iteration, &s->values[layer->outputs[0]->id]));
    return NULL;
}

/* Emits the condition for another iteration with these values of the recurrences, in the block of
 * `s`. */
static kelp_status *emit_condition(lowering *l, const scope *s, const scope *outer,
                                   const kelp_loop *loop, const loop_parts *parts,
                                   kelp_value *const *recurrences, kelp_value *iteration,
                                   kelp_value **out) {
    scope shadow;
    const kelp_layer *layer = loop->first;
    kelp_emit e = {.block = s->block, .layer = layer};
    if (loop->condition == NULL)
        return kelp_emit_scalar(&e, KELP_BOOL, 1, out);
    KELP_TRY(open_scope(l, outer, (kelp_region *)(uintptr_t)&loop->region, s->block, &shadow));
    for (size_t i = 0; i < parts->recurrence_count; i++)
        shadow.values[parts->recurrences[i]->outputs[0]->id] = recurrences[i];
    KELP_TRY(bind_iterators(l, &shadow, loop, iteration));
    return emit_tensor(l, &shadow, loop->condition, out);
}

/* Makes `inout` depend on assertions of a region that can only be checked at run time. */
static kelp_status *add_assertions(lowering *l, const scope *s, kelp_value **inout) {
    for (size_t i = 0; i < l->network->layer_count; i++) {
        const kelp_layer *layer = l->network->layers[i];
        kelp_value *pair[2] = {*inout, NULL};
        kelp_node *node = NULL;
        if (layer->type != KELP_LAYER_ASSERTION || layer->region != s->region ||
            layer->inputs[0]->draft->constant != NULL)
            continue;
        kelp_emit e = {.block = s->block, .layer = layer};
        KELP_TRY(emit_tensor(l, s, layer->inputs[0], &pair[1]));
        KELP_TRY(kelp_emit_node(&e, KELP_OP_KELP(Assert), pair, 2, inout, &node));
        KELP_TRY(kelp_node_set_string(node, "message", layer->params.message));
    }
    return NULL;
}

static kelp_status *emit_body(lowering *l, const scope *s, const kelp_loop *loop,
                              const loop_parts *parts, kelp_block *block) {
    scope body;
    kelp_value *iteration = NULL, *proceed = NULL, *next[64], *one = NULL, *next_iteration = NULL;
    const kelp_layer *layer = loop->first;
    kelp_emit e = {.block = block, .layer = layer};
    KELP_TRY(open_scope(l, s, (kelp_region *)(uintptr_t)&loop->region, block, &body));
    KELP_TRY(block_input(block, "iteration", KELP_I64, 0, &iteration));
    KELP_TRY(block_input(block, "condition", KELP_BOOL, 0, &proceed));
    for (size_t i = 0; i < parts->recurrence_count; i++) {
        const kelp_net_tensor *tensor = parts->recurrences[i]->outputs[0];
        kelp_value *value = NULL;
        KELP_TRY(block_input(block, tensor->name, tensor->draft->dtype, -1, &value));
        body.values[tensor->id] = value;
    }
    KELP_TRY(bind_iterators(l, &body, loop, iteration));
    KELP_TRY(emit_region(l, &body));
    for (size_t i = 0; i < parts->recurrence_count; i++)
        KELP_TRY(emit_tensor(l, &body, parts->recurrences[i]->inputs[1], &next[i]));
    KELP_TRY(kelp_emit_i64(&e, 1, &one));
    KELP_TRY(kelp_emit_2(&e, KELP_OP(Add), iteration, one, &next_iteration));
    KELP_TRY(emit_condition(l, &body, s, loop, parts, next, next_iteration, &proceed));
    KELP_TRY(add_assertions(l, &body, &proceed));
    KELP_TRY(block_output(&body, layer, proceed));
    for (size_t i = 0; i < parts->recurrence_count; i++)
        KELP_TRY(block_output(&body, parts->recurrences[i], next[i]));
    for (size_t i = 0; i < parts->stacked_count; i++) {
        kelp_value *value = NULL;
        KELP_TRY(emit_tensor(l, &body, parts->stacked[i]->inputs[0], &value));
        KELP_TRY(block_output(&body, parts->stacked[i], value));
    }
    return NULL;
}

/* Restores known dimensions of stacked values. For a loop without iterations, only the first
 * dimension of its outputs is known; for all others this is a view. */
static kelp_status *restore_dims(kelp_emit *e, const kelp_value *draft, int32_t axis,
                                 kelp_value **inout) {
    int64_t dims[KELP_MAX_RANK] = {0}; /* 0: copied from the input */
    kelp_value *shape = NULL;
    for (int32_t i = 0, to = 1; i < draft->rank; i++) {
        if (i != axis && draft->shape[i] <= 0)
            return NULL;
        if (i != axis)
            dims[to++] = draft->shape[i];
    }
    if (draft->rank < 2)
        return NULL;
    KELP_TRY(kelp_emit_i64s(e, dims, (size_t)draft->rank, &shape));
    return kelp_emit_2(e, KELP_OP(Reshape), *inout, shape, inout);
}

/* Transposes the stacked axis from the first position, as in ONNX, to its position in the network.
 */
static kelp_status *reorder_stacked(const scope *s, const kelp_layer *layer, kelp_value *value) {
    kelp_emit e = {.block = s->block, .layer = layer};
    const kelp_value *draft = layer->outputs[0]->draft;
    kelp_node *node = NULL;
    KELP_TRY(restore_dims(&e, draft, layer->params.loop_output.axis, &value));
    if (layer->params.loop_output.kind == KELP_LOOP_REVERSE) {
        static const int64_t from = -1, to = INT64_MIN, axis = 0, step = -1;
        kelp_value *inputs[5] = {value};
        KELP_TRY(kelp_emit_i64s(&e, &from, 1, &inputs[1]));
        KELP_TRY(kelp_emit_i64s(&e, &to, 1, &inputs[2]));
        KELP_TRY(kelp_emit_i64s(&e, &axis, 1, &inputs[3]));
        KELP_TRY(kelp_emit_i64s(&e, &step, 1, &inputs[4]));
        KELP_TRY(kelp_emit_node(&e, KELP_OP(Slice), inputs, 5, &value, NULL));
    }
    if (layer->params.loop_output.axis > 0) {
        int64_t perm[KELP_MAX_RANK];
        int32_t axis = layer->params.loop_output.axis;
        if (draft->rank < 0)
            return kelp_layer_error(layer, "concatenation along axis %d needs a known rank", axis);
        for (int32_t i = 0; i < draft->rank; i++)
            perm[i] = i < axis ? i + 1 : i == axis ? 0 : i;
        KELP_TRY(kelp_emit_node(&e, KELP_OP(Transpose), &value, 1, &value, &node));
        KELP_TRY(kelp_node_set_i64s(node, "perm", perm, (size_t)draft->rank));
    }
    set_type(value, draft);
    s->values[layer->outputs[0]->id] = value;
    return NULL;
}

static kelp_status *emit_loop(lowering *l, const scope *s, const kelp_loop *loop) {
    loop_parts parts = {0};
    kelp_value *inputs[66] = {NULL}, *outputs[128], *zero = NULL;
    kelp_block *block = NULL;
    kelp_node *node = NULL;
    kelp_emit e = {.block = s->block, .layer = loop->first};
    KELP_TRY(collect_parts(loop, &parts));
    KELP_ASSERT(parts.recurrence_count + 2 <= 66 && loop->first != NULL);
    if (loop->trip_count != NULL) {
        KELP_TRY(emit_tensor(l, s, loop->trip_count, &inputs[0]));
        KELP_TRY(kelp_emit_cast(&e, inputs[0], KELP_I64, &inputs[0]));
    }
    for (size_t i = 0; i < parts.recurrence_count; i++)
        KELP_TRY(emit_tensor(l, s, parts.recurrences[i]->inputs[0], &inputs[2 + i]));
    KELP_TRY(kelp_emit_i64(&e, 0, &zero));
    KELP_TRY(emit_condition(l, s, s, loop, &parts, inputs + 2, zero, &inputs[1]));
    size_t count = parts.recurrence_count + parts.stacked_count;
    KELP_TRY(new_block(l, s, "body", parts.recurrence_count + 2, count + 1, &block));
    KELP_TRY(emit_body(l, s, loop, &parts, block));
    KELP_TRY(kelp_emit_nodes(&e, KELP_OP(Loop), inputs, parts.recurrence_count + 2, outputs, count,
                             &node));
    KELP_TRY(attach_block(node, "body", block));
    for (const kelp_layer *layer = loop->first; layer != NULL; layer = layer->next_in_region) {
        if (layer->type != KELP_LAYER_LOOP_OUTPUT ||
            layer->params.loop_output.kind != KELP_LOOP_LAST_VALUE)
            continue;
        for (size_t i = 0; i < parts.recurrence_count; i++)
            if (parts.recurrences[i]->outputs[0] == layer->inputs[0]) {
                set_type(outputs[i], layer->outputs[0]->draft);
                s->values[layer->outputs[0]->id] = outputs[i];
            }
    }
    for (size_t i = 0; i < parts.stacked_count; i++)
        KELP_TRY(reorder_stacked(s, parts.stacked[i], outputs[parts.recurrence_count + i]));
    return NULL;
}

/* ---- conditionals ---- */
/* Emits a branch: input 0 (then) or 1 (else) of each output. Omits layers that no output depends
 * on. */
static kelp_status *emit_branch(lowering *l, const scope *s, const kelp_conditional *conditional,
                                uint32_t which, kelp_block *block) {
    scope branch;
    KELP_TRY(open_scope(l, s, (kelp_region *)(uintptr_t)&conditional->region, block, &branch));
    for (const kelp_layer *layer = conditional->first; layer != NULL; layer = layer->next_in_region)
        if (layer->type == KELP_LAYER_CONDITIONAL_INPUT)
            KELP_TRY(emit_tensor(l, s, layer->inputs[0], &branch.values[layer->outputs[0]->id]));
    for (const kelp_layer *layer = conditional->first; layer != NULL;
         layer = layer->next_in_region) {
        kelp_value *value = NULL;
        if (layer->type != KELP_LAYER_CONDITIONAL_OUTPUT)
            continue;
        KELP_TRY(emit_tensor(l, &branch, layer->inputs[which], &value));
        KELP_TRY(block_output(&branch, layer, value));
    }
    return NULL;
}

static kelp_status *emit_conditional(lowering *l, const scope *s,
                                     const kelp_conditional *conditional) {
    kelp_value *condition = NULL, **outputs = NULL;
    kelp_block *then_block = NULL, *else_block = NULL;
    kelp_node *node = NULL;
    kelp_emit e = {.block = s->block, .layer = conditional->first};
    size_t count = 0;
    for (const kelp_layer *layer = conditional->first; layer != NULL; layer = layer->next_in_region)
        count += layer->type == KELP_LAYER_CONDITIONAL_OUTPUT;
    outputs = KELP_ARENA_ARRAY(&l->graph->arena, count + 1, kelp_value *);
    if (outputs == NULL)
        return kelp_status_oom();
    KELP_TRY(emit_tensor(l, s, conditional->condition, &condition));
    KELP_TRY(new_block(l, s, "then", 0, count, &then_block));
    KELP_TRY(new_block(l, s, "else", 0, count, &else_block));
    KELP_TRY(emit_branch(l, s, conditional, 0, then_block));
    KELP_TRY(emit_branch(l, s, conditional, 1, else_block));
    KELP_TRY(kelp_emit_nodes(&e, KELP_OP(If), &condition, 1, outputs, count, &node));
    KELP_TRY(attach_block(node, "else_branch", else_block));
    KELP_TRY(attach_block(node, "then_branch", then_block));
    size_t i = 0;
    for (const kelp_layer *layer = conditional->first; layer != NULL; layer = layer->next_in_region)
        if (layer->type == KELP_LAYER_CONDITIONAL_OUTPUT) {
            set_type(outputs[i], layer->outputs[0]->draft);
            s->values[layer->outputs[0]->id] = outputs[i++];
        }
    return NULL;
}

/* ---- the network ---- */
static void place_layers(const kelp_network *network) {
    bool changed = true;
    for (size_t passes = 0; changed && passes < 2 + network->region_count * 4u; passes++) {
        changed = false;
        for (size_t i = 0; i < network->layer_count; i++)
            changed |= kelp_network_place(network->layers[i]);
    }
}

static kelp_status *bind_inputs(lowering *l, const scope *s) {
    const kelp_network *network = l->network;
    kelp_block *main = s->block;
    if (network->parsed != NULL) {
        const kelp_layer *parsed = network->layers[0];
        for (uint32_t i = 0; i < parsed->output_count; i++)
            s->values[parsed->outputs[i]->id] =
                i < main->input_count ? main->inputs[i] : main->outputs[i - main->input_count];
    }
    kelp_value **inputs =
        KELP_ARENA_ARRAY(&l->graph->arena, network->input_count + 1, kelp_value *);
    if (inputs == NULL)
        return kelp_status_oom();
    for (size_t i = 0; i < network->input_count; i++) {
        const kelp_net_tensor *tensor = network->inputs[i];
        kelp_value *value = s->values[tensor->id];
        if (value == NULL) {
            KELP_TRY(kelp_block_add_value(main, tensor->name, &value));
            set_type(value, tensor->draft);
            value->is_input = true;
            s->values[tensor->id] = value;
        }
        inputs[i] = value;
    }
    main->inputs = inputs;
    main->input_count = network->input_count;
    return NULL;
}

/* Rejects assertions inside conditionals, because their branch is unknown. */
static kelp_status *check_assertions(const lowering *l) {
    for (size_t i = 0; i < l->network->layer_count; i++) {
        const kelp_layer *layer = l->network->layers[i];
        if (layer->type == KELP_LAYER_ASSERTION && layer->region != NULL &&
            layer->region->conditional != NULL && layer->inputs[0]->draft->constant == NULL)
            return KELP_ERROR(KELP_UNIMPLEMENTED,
                              "layer '%s' (Assertion) is inside a conditional: assert on one of "
                              "its outputs instead",
                              layer->name);
    }
    return NULL;
}

static kelp_status *bind_outputs(lowering *l, const scope *s) {
    const kelp_network *network = l->network;
    kelp_block *main = s->block;
    for (size_t i = 0; i < main->output_count; i++)
        main->outputs[i]->is_output = false;
    main->output_count = 0;
    main->outputs = KELP_ARENA_ARRAY(&l->graph->arena, network->output_count + 1, kelp_value *);
    if (main->outputs == NULL)
        return kelp_status_oom();
    for (size_t i = 0; i < network->output_count; i++) {
        const kelp_net_tensor *tensor = network->outputs[i];
        kelp_emit e = {.block = main, .layer = tensor->producer};
        kelp_value *value = NULL;
        if (tensor->producer->region != NULL)
            return kelp_layer_error(tensor->producer,
                                    "output '%s' is produced inside a loop or conditional: mark an "
                                    "output of the loop or conditional instead",
                                    tensor->name);
        KELP_TRY(emit_tensor(l, s, tensor, &value));
        if (value->is_input || value->is_output || value->constant != NULL)
            KELP_TRY(kelp_emit_1(&e, KELP_OP(Identity), value, &value));
        if (i == 0) {
            KELP_TRY(check_assertions(l));
            KELP_TRY(add_assertions(l, s, &value));
        }
        set_type(value, tensor->draft);
        value->name = tensor->name;
        value->is_output = true;
        main->outputs[main->output_count++] = value;
    }
    return NULL;
}

static kelp_status *lower(lowering *l) {
    static kelp_opset_import imports[] = {{"", KELP_BUILDER_OPSET}, {"kelp", 1}};
    const kelp_network *network = l->network;
    kelp_graph *graph = l->graph;
    scope main;
    if (network->parsed == NULL) {
        graph->imports = imports;
        graph->import_count = 2;
        graph->info.label = graph->info.graph_name = network->name;
        graph->main->name = network->name;
        graph->info.producer_name = "kelp";
    }
    KELP_TRY(open_scope(l, NULL, NULL, graph->main, &main));
    place_layers(network);
    KELP_TRY(bind_inputs(l, &main));
    KELP_TRY(emit_region(l, &main));
    KELP_TRY(bind_outputs(l, &main));
    kelp_block_count_uses(graph->main);
    KELP_TRY(kelp_block_sort(graph->main));
    return kelp_block_infer(graph->main);
}

kelp_status *kelp_network_lower(const kelp_network *network, kelp_graph **out) {
    lowering l = {.network = network};
    KELP_TRY(kelp_network_check_outputs(network));
    if (network->parsed != NULL)
        KELP_TRY(kelp_graph_clone_for_engine(network->parsed, &l.graph));
    else
        KELP_TRY(kelp_graph_new(network->allocator, &l.graph));
    kelp_status *status = lower(&l);
    if (status != NULL) {
        kelp_graph_release(l.graph);
        return status;
    }
    *out = l.graph;
    return NULL;
}
