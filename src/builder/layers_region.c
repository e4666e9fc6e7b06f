/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Boundary layers of loops and conditionals. In the draft they only carry types; lowering the
 * network creates the subgraphs.
 */
#include "base/assert.h"
#include "builder/emit.h"

/* ---- regions ---- */
static bool is_inside(const kelp_region *region, const kelp_region *outer) {
    for (; region != NULL; region = region->parent)
        if (region == outer)
            return true;
    return outer == NULL;
}

/* Returns the inner one of two regions that a layer depends on. If neither contains the other,
 * nests the one created later in the other. */
static kelp_region *inner_of(kelp_region *a, kelp_region *b, bool *inout_changed) {
    if (is_inside(a, b))
        return a;
    if (is_inside(b, a))
        return b;
    KELP_ASSERT(a != NULL && b != NULL && a->index != b->index);
    kelp_region *inner = a->index > b->index ? a : b, *outer = inner == a ? b : a;
    kelp_region *top = inner;
    while (top->parent != NULL && !is_inside(outer, top->parent))
        top = top->parent;
    KELP_ASSERT(top != outer && !is_inside(outer, top)); /* no cycle */
    top->parent = outer;
    *inout_changed = true;
    return inner;
}

bool kelp_region_nest(kelp_region *region, const kelp_net_tensor *tensor) {
    kelp_region *containing = tensor != NULL ? tensor->producer->region : NULL;
    if (containing == region || is_inside(region->parent, containing))
        return false;
    region->parent = containing;
    return true;
}

bool kelp_network_place(kelp_layer *layer) {
    bool changed = false;
    kelp_region *region = NULL, *before = layer->region;
    bool opens = layer->type == KELP_LAYER_RECURRENCE || layer->type == KELP_LAYER_ITERATOR ||
                 layer->type == KELP_LAYER_CONDITIONAL_INPUT;
    bool closes =
        layer->type == KELP_LAYER_LOOP_OUTPUT || layer->type == KELP_LAYER_CONDITIONAL_OUTPUT;
    KELP_ASSERT((opens || closes) == (layer->boundary != NULL));
    if (opens) {
        changed = kelp_region_nest(layer->boundary, layer->inputs[0]);
        layer->region = layer->boundary;
    } else if (closes) {
        layer->region = layer->boundary->parent;
    } else {
        for (uint32_t i = 0; i < layer->input_count; i++)
            if (layer->inputs[i] != NULL)
                region = inner_of(region, layer->inputs[i]->producer->region, &changed);
        layer->region = region;
    }
    return changed || layer->region != before;
}

/* ---- the draft ---- */
/* Adds a value of the given type without a producer: the draft is never run. */
static kelp_status *value_like(kelp_emit *e, const kelp_value *like, kelp_value **out) {
    KELP_TRY(kelp_block_add_value(e->block, e->layer->name, out));
    (*out)->kind = KELP_VALUE_TENSOR;
    (*out)->dtype = like->dtype;
    (*out)->rank = like->rank;
    for (int32_t i = 0; i < like->rank; i++)
        (*out)->shape[i] = like->shape[i];
    return NULL;
}

kelp_status *kelp_emit_RECURRENCE(kelp_emit *e) {
    kelp_value *y = NULL;
    KELP_TRY(value_like(e, e->inputs[0], &y));
    kelp_emit_result(e, y);
    return NULL;
}

kelp_status *kelp_emit_ITERATOR(kelp_emit *e) {
    int32_t axis = e->layer->params.iterator.axis;
    kelp_value *y = NULL;
    KELP_TRY(kelp_emit_check_axis(e, 0, axis));
    KELP_TRY(value_like(e, e->inputs[0], &y));
    if (y->rank > 0)
        y->rank--;
    for (int32_t i = axis; i < y->rank; i++)
        y->shape[i] = y->shape[i + 1];
    kelp_emit_result(e, y);
    return NULL;
}

kelp_status *kelp_emit_LOOP_OUTPUT(kelp_emit *e) {
    const kelp_layer_params *p = &e->layer->params;
    const kelp_net_tensor *tensor = e->layer->inputs[0];
    kelp_value *y = NULL;
    if ((unsigned)p->loop_output.kind > KELP_LOOP_REVERSE)
        return kelp_emit_fail(e, "invalid kind of loop output %d", (int)p->loop_output.kind);
    if (p->loop_output.kind == KELP_LOOP_LAST_VALUE &&
        (tensor->producer->type != KELP_LAYER_RECURRENCE ||
         tensor->producer->boundary != e->layer->boundary))
        return kelp_emit_fail(e, "'%s' is not a recurrence of this loop", tensor->name);
    KELP_TRY(value_like(e, e->inputs[0], &y));
    if (p->loop_output.kind != KELP_LOOP_LAST_VALUE && y->rank >= 0) {
        if (p->loop_output.axis < 0 || p->loop_output.axis > y->rank || y->rank == KELP_MAX_RANK)
            return kelp_emit_fail(e, "invalid axis %d: cannot insert it into %d dimensions",
                                  p->loop_output.axis, y->rank);
        for (int32_t i = y->rank++; i > p->loop_output.axis; i--)
            y->shape[i] = y->shape[i - 1];
        y->shape[p->loop_output.axis] = -1;
    }
    kelp_emit_result(e, y);
    return NULL;
}

kelp_status *kelp_emit_CONDITIONAL_INPUT(kelp_emit *e) {
    return kelp_emit_RECURRENCE(e);
}

kelp_status *kelp_emit_CONDITIONAL_OUTPUT(kelp_emit *e) {
    const kelp_value *a = e->inputs[0], *b = e->inputs[1];
    kelp_value *y = NULL;
    KELP_TRY(kelp_emit_check_same_dtype(e, 0, 1));
    if (a->rank >= 0 && b->rank >= 0 && a->rank != b->rank)
        return kelp_emit_fail(e, "the branches have %d and %d dimensions: expected equally many",
                              a->rank, b->rank);
    KELP_TRY(value_like(e, a, &y));
    for (int32_t i = 0; i < y->rank; i++)
        if (b->rank < 0 || a->shape[i] != b->shape[i])
            y->shape[i] = -1;
    kelp_emit_result(e, y);
    return NULL;
}

/* ---- loops ---- */
kelp_status *kelp_network_add_loop(kelp_network *network, kelp_loop **out) {
    KELP_TRY(kelp_network_check_out(network, out));
    kelp_loop *loop = KELP_ARENA_NEW(&network->arena, kelp_loop);
    if (loop == NULL)
        return kelp_status_oom();
    loop->network = network;
    loop->region.loop = loop;
    loop->region.index = network->region_count++;
    *out = loop;
    return NULL;
}

static void link_boundary(kelp_layer **first, kelp_layer *layer) {
    KELP_ASSERT(layer->next_in_region == NULL);
    while (*first != NULL)
        first = &(*first)->next_in_region;
    *first = layer;
}

static kelp_status *check_scalar(const kelp_network *network, const kelp_net_tensor *tensor,
                                 const char *what, bool is_bool) {
    const kelp_value *value = tensor != NULL ? tensor->draft : NULL;
    char found[160];
    if (tensor == NULL || tensor->network != network)
        return KELP_NETWORK_ERROR(KELP_INVALID_ARGUMENT, "%s: expected a tensor of network '%s'",
                                  what, network->name);
    kelp_shape_format(value->rank, value->shape, found, sizeof found);
    bool type_fits =
        is_bool ? value->dtype == KELP_BOOL : value->dtype == KELP_I32 || value->dtype == KELP_I64;
    if (!type_fits || value->rank > 0)
        return KELP_NETWORK_ERROR(KELP_INVALID_ARGUMENT,
                                  "%s: expected a scalar of %s, found %s %s of '%s'", what,
                                  is_bool ? "bool" : "int32 or int64",
                                  kelp_dtype_name(value->dtype), found, tensor->name);
    return NULL;
}

kelp_status *kelp_loop_set_trip_count(kelp_loop *loop, kelp_net_tensor *count) {
    KELP_TRY(check_scalar(loop->network, count, "trip count", false));
    loop->trip_count = count;
    kelp_region_nest(&loop->region, count);
    return NULL;
}

kelp_status *kelp_loop_set_condition(kelp_loop *loop, kelp_net_tensor *condition) {
    KELP_TRY(check_scalar(loop->network, condition, "loop condition", true));
    loop->condition = condition;
    return NULL;
}

static kelp_status *add_to_loop(kelp_loop *loop, kelp_layer_type type,
                                kelp_net_tensor *const *inputs, size_t input_count,
                                const kelp_layer_params *params, kelp_layer **out) {
    kelp_layer *layer = NULL;
    KELP_TRY(kelp_network_append(loop->network, type, inputs, input_count, 1, params, &loop->region,
                                 &layer));
    link_boundary(&loop->first, layer);
    if (out != NULL)
        *out = layer;
    return NULL;
}

kelp_status *kelp_loop_add_recurrence(kelp_loop *loop, kelp_net_tensor *initial, kelp_layer **out) {
    kelp_net_tensor *inputs[2] = {initial, NULL};
    kelp_layer_params params = {.axis = 0};
    return add_to_loop(loop, KELP_LAYER_RECURRENCE, inputs, 2, &params, out);
}

kelp_status *kelp_recurrence_set_next(kelp_layer *recurrence, kelp_net_tensor *next) {
    if (recurrence->type != KELP_LAYER_RECURRENCE)
        return kelp_layer_error(recurrence, "expected a recurrence layer");
    if (next == NULL || next->network != recurrence->network)
        return kelp_layer_error(recurrence, "the next value must be a tensor of this network");
    const kelp_value *from = recurrence->outputs[0]->draft, *to = next->draft;
    bool fits = from->dtype == to->dtype || to->dtype == KELP_DTYPE_INVALID;
    fits = fits && (from->rank < 0 || to->rank < 0 || from->rank == to->rank);
    char first[160], second[160];
    kelp_shape_format(from->rank, from->shape, first, sizeof first);
    kelp_shape_format(to->rank, to->shape, second, sizeof second);
    if (!fits)
        return kelp_layer_error(
            recurrence, "the initial value is %s %s, but the next value '%s' is %s %s",
            kelp_dtype_name(from->dtype), first, next->name, kelp_dtype_name(to->dtype), second);
    recurrence->inputs[1] = next;
    return NULL;
}

kelp_status *kelp_loop_add_iterator(kelp_loop *loop, kelp_net_tensor *tensor, int32_t axis,
                                    bool reverse, kelp_layer **out) {
    kelp_layer_params params = {.iterator = {axis, reverse}};
    return add_to_loop(loop, KELP_LAYER_ITERATOR, &tensor, 1, &params, out);
}

kelp_status *kelp_loop_add_output(kelp_loop *loop, kelp_net_tensor *tensor, kelp_loop_output kind,
                                  int32_t axis, kelp_layer **out) {
    kelp_layer_params params = {.loop_output = {kind, axis}};
    return add_to_loop(loop, KELP_LAYER_LOOP_OUTPUT, &tensor, 1, &params, out);
}

/* ---- conditionals ---- */
kelp_status *kelp_network_add_conditional(kelp_network *network, kelp_net_tensor *condition,
                                          kelp_conditional **out) {
    KELP_TRY(kelp_network_check_out(network, out));
    kelp_conditional *conditional = KELP_ARENA_NEW(&network->arena, kelp_conditional);
    if (conditional == NULL)
        return kelp_status_oom();
    KELP_TRY(check_scalar(network, condition, "condition", true));
    conditional->network = network;
    conditional->condition = condition;
    conditional->region.conditional = conditional;
    conditional->region.index = network->region_count++;
    kelp_region_nest(&conditional->region, condition);
    *out = conditional;
    return NULL;
}

kelp_status *kelp_conditional_add_input(kelp_conditional *conditional, kelp_net_tensor *input,
                                        kelp_layer **out) {
    kelp_layer_params params = {.axis = 0};
    kelp_layer *layer = NULL;
    KELP_TRY(kelp_network_append(conditional->network, KELP_LAYER_CONDITIONAL_INPUT, &input, 1, 1,
                                 &params, &conditional->region, &layer));
    link_boundary(&conditional->first, layer);
    if (out != NULL)
        *out = layer;
    return NULL;
}

kelp_status *kelp_conditional_add_output(kelp_conditional *conditional,
                                         kelp_net_tensor *then_tensor, kelp_net_tensor *else_tensor,
                                         kelp_layer **out) {
    kelp_net_tensor *inputs[2] = {then_tensor, else_tensor};
    kelp_layer_params params = {.axis = 0};
    kelp_layer *layer = NULL;
    KELP_TRY(kelp_network_append(conditional->network, KELP_LAYER_CONDITIONAL_OUTPUT, inputs, 2, 2,
                                 &params, &conditional->region, &layer));
    link_boundary(&conditional->first, layer);
    if (out != NULL)
        *out = layer;
    return NULL;
}
