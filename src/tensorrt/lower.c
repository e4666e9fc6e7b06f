/* SPDX-License-Identifier: Apache-2.0 */
/* Converts a Kelp network to TensorRT: inputs, weights, loops and conditionals, outputs. */
#include "tensorrt/lower.h"

#include "base/assert.h"
#include "base/checked.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* ---- failures ---- */
static kelp_status *in_network(kelp_status *status) {
    kelp_status_set_domain(status, KELP_DOMAIN_NETWORK);
    return status;
}

static void describe(const kelp_layer *layer, char *buffer, size_t capacity) {
    snprintf(buffer, capacity, "layer %u '%s' (%s)", layer->index, layer->name,
             kelp_layer_type_name(layer->type));
}

kelp_status *trt_lower_check(trt_lowering *l, const kelp_layer *layer, bool done,
                             const char *what) {
    if (done)
        return NULL;
    return in_network(trt_log_failure(l->log, KELP_INVALID_ARGUMENT,
                                      "TensorRT: layer %u '%s' (%s): cannot %s", layer->index,
                                      layer->name, kelp_layer_type_name(layer->type), what));
}

kelp_status *trt_lower_unsupported(const kelp_layer *layer, const char *format, ...) {
    char text[400];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    return in_network(KELP_ERROR(KELP_UNIMPLEMENTED, "TensorRT: layer %u '%s' (%s): %s",
                                 layer->index, layer->name, kelp_layer_type_name(layer->type),
                                 text));
}

/* ---- parts of layers ---- */
trt_tensor *trt_lower_input(const trt_lowering *l, const kelp_layer *layer, uint32_t index) {
    return index < layer->input_count && layer->inputs[index] != NULL
               ? l->tensors[layer->inputs[index]->id]
               : NULL;
}

kelp_dtype trt_lower_input_type(const kelp_layer *layer, uint32_t index) {
    KELP_ASSERT(index < layer->input_count && layer->inputs[index] != NULL);
    return layer->inputs[index]->draft->dtype;
}

int32_t trt_lower_input_rank(const kelp_layer *layer, uint32_t index) {
    KELP_ASSERT(index < layer->input_count && layer->inputs[index] != NULL);
    return layer->inputs[index]->draft->rank;
}

kelp_status *trt_lower_dims(const kelp_layer *layer, const kelp_shape *shape, trt_dims *out) {
    if (shape->rank < 0 || shape->rank > TRT_MAX_DIMS)
        return trt_lower_unsupported(layer, "at most %d dimensions are supported, found %d",
                                     TRT_MAX_DIMS, shape->rank);
    return trt_dims_from((size_t)shape->rank, shape->d, out);
}

kelp_status *trt_lower_weights(trt_lowering *l, const kelp_layer *layer,
                               const kelp_weights *weights, const char *role, trt_data_type type,
                               trt_weights *out) {
    *out = (trt_weights){.type = type};
    if (weights->count == 0)
        return NULL;
    out->values = weights->data;
    out->count = weights->count;
    kelp_status *status = trt_data_type_from(weights->dtype, &out->type);
    if (status != NULL)
        return in_network(
            KELP_ANNOTATE(status, "layer %u '%s': its %s", layer->index, layer->name, role));
    if (!l->names_weights)
        return NULL;
    const char *name = weights->name != NULL
                           ? weights->name
                           : kelp_arena_printf(&l->arena, "%s.%s", layer->name, role);
    if (name == NULL)
        return kelp_status_oom();
    KELP_ASSERT(l->unnamed_count <= KELP_COUNT(l->unnamed));
    if (l->unnamed_count < KELP_COUNT(l->unnamed)) {
        l->unnamed[l->unnamed_count].weights = *out;
        l->unnamed[l->unnamed_count++].name = name;
    }
    return NULL;
}

/* Names the weights of a new layer: TensorRT only names weights that a layer uses. Shared weights
 * keep the first name. */
static void name_weights(trt_lowering *l) {
    for (size_t i = 0; i < l->unnamed_count; i++)
        (void)trt_network_set_weights_name(l->m, l->to, l->unnamed[i].weights, l->unnamed[i].name);
    l->unnamed_count = 0;
}

kelp_status *trt_lower_between(trt_lowering *l, const kelp_layer *layer, trt_layer *added,
                               const char *what, trt_tensor **out) {
    const char *name = kelp_arena_printf(&l->arena, "%s.%s", layer->name, what);
    char text[300];
    describe(layer, text, sizeof text);
    if (name == NULL)
        return kelp_status_oom();
    KELP_TRY(in_network(trt_check_layer(l->library, l->log, added, text)));
    name_weights(l);
    trt_layer_set_name(l->m, added, name);
    *out = trt_layer_get_output(l->m, added, 0);
    return NULL;
}

kelp_status *trt_lower_constant(trt_lowering *l, const kelp_layer *layer,
                                const kelp_weights *weights, const char *role, const trt_dims *dims,
                                kelp_dtype type, trt_tensor **out) {
    trt_data_type wanted = TRT_DATA_TYPE_FLOAT;
    trt_weights values;
    KELP_TRY(trt_data_type_from(type, &wanted));
    KELP_TRY(trt_lower_weights(l, layer, weights, role, wanted, &values));
    KELP_TRY(trt_lower_between(
        l, layer, trt_as_layer(trt_network_add_constant(l->m, l->to, dims, values)), role, out));
    if (weights->dtype == type)
        return NULL;
    return trt_lower_between(
        l, layer, trt_as_layer(trt_network_add_cast(l->m, l->to, *out, wanted)), "cast", out);
}

static void store_outputs(trt_lowering *l, const kelp_layer *layer, trt_layer *added) {
    for (uint32_t i = 0; i < layer->output_count; i++) {
        trt_tensor *output = trt_layer_get_output(l->m, added, (int32_t)i);
        if (output != NULL)
            trt_tensor_set_name(l->m, output, layer->outputs[i]->name);
        l->tensors[layer->outputs[i]->id] = output;
    }
}

kelp_status *trt_lower_done(trt_lowering *l, const kelp_layer *layer, trt_layer *added) {
    char text[300];
    describe(layer, text, sizeof text);
    KELP_TRY(in_network(trt_check_layer(l->library, l->log, added, text)));
    name_weights(l);
    trt_layer_set_name(l->m, added, layer->name);
    store_outputs(l, layer, added);
    return NULL;
}

/* ---- inputs ---- */
static kelp_status *lower_input(trt_lowering *l, const kelp_layer *layer) {
    const kelp_net_tensor *tensor = layer->outputs[0];
    kelp_shape shape = kelp_net_tensor_dims(tensor);
    trt_data_type type = TRT_DATA_TYPE_FLOAT;
    trt_dims dims;
    KELP_TRY(trt_lower_dims(layer, &shape, &dims));
    kelp_status *status = trt_data_type_from(tensor->draft->dtype, &type);
    if (status != NULL)
        return in_network(KELP_ANNOTATE(status, "input '%s'", tensor->name));
    trt_tensor *added = trt_network_add_input(l->m, l->to, tensor->name, type, &dims);
    KELP_TRY(trt_lower_check(l, layer, added != NULL, "add it"));
    l->tensors[tensor->id] = added;
    return NULL;
}

static trt_tensor *find_parsed(const trt_lowering *l, const char *name, bool is_input) {
    int32_t count =
        is_input ? trt_network_get_nb_inputs(l->m, l->to) : trt_network_get_nb_outputs(l->m, l->to);
    for (int32_t i = 0; i < count; i++) {
        trt_tensor *tensor = is_input ? trt_network_get_input(l->m, l->to, i)
                                      : trt_network_get_output(l->m, l->to, i);
        if (tensor != NULL && strcmp(trt_tensor_get_name(l->m, tensor), name) == 0)
            return tensor;
    }
    return NULL;
}

/* Finds the model's inputs and outputs in the parsed network. */
static kelp_status *find_parsed_tensors(trt_lowering *l, const kelp_layer *layer) {
    const kelp_block *main = kelp_graph_main(l->from->parsed);
    size_t inputs = kelp_block_input_count(main);
    for (uint32_t i = 0; i < layer->output_count; i++) {
        const kelp_net_tensor *tensor = layer->outputs[i];
        bool is_input = i < inputs;
        const char *name = kelp_value_name(is_input ? kelp_block_input(main, i)
                                                    : kelp_block_output(main, i - inputs));
        trt_tensor *found = find_parsed(l, name, is_input);
        if (found == NULL)
            return trt_lower_unsupported(layer, "the parsed network has no %s '%s'",
                                         is_input ? "input" : "output", name);
        l->tensors[tensor->id] = found;
    }
    for (uint32_t i = 0; i < layer->output_count; i++) {
        const kelp_net_tensor *tensor = layer->outputs[i];
        trt_tensor *found = l->tensors[tensor->id];
        if (strcmp(trt_tensor_get_name(l->m, found), tensor->name) != 0)
            trt_tensor_set_name(l->m, found, tensor->name);
        if (i >= inputs && !tensor->is_output)
            trt_network_unmark_output(l->m, l->to, found);
    }
    return NULL;
}

/* ---- loops and conditionals ---- */
kelp_status *trt_lower_loop(trt_lowering *l, const kelp_layer *layer, trt_loop **out) {
    const kelp_loop *loop = layer->boundary->loop;
    KELP_ASSERT(loop != NULL && loop->region.index <= l->from->region_count);
    trt_loop **created = &l->loops[loop->region.index];
    if (*created == NULL) {
        *created = trt_network_add_loop(l->m, l->to);
        KELP_TRY(trt_lower_check(l, layer, *created != NULL, "add its loop"));
    }
    *out = *created;
    return NULL;
}

static kelp_status *lower_loop_output(trt_lowering *l, const kelp_layer *layer) {
    const kelp_loop *loop = layer->boundary->loop;
    trt_loop *created = NULL;
    KELP_TRY(trt_lower_loop(l, layer, &created));
    trt_layer *added = trt_as_layer(trt_loop_add_loop_output(
        l->m, created, trt_lower_input(l, layer, 0),
        (trt_loop_output)layer->params.loop_output.kind, layer->params.loop_output.axis));
    KELP_TRY(trt_lower_check(l, layer, added != NULL, "add it"));
    if (layer->params.loop_output.kind != KELP_LOOP_LAST_VALUE) {
        trt_tensor *length = loop->trip_count != NULL ? l->tensors[loop->trip_count->id] : NULL;
        if (length == NULL)
            return trt_lower_unsupported(
                layer,
                "stacked outputs require a loop with a trip count that was added before the loop");
        trt_layer_set_input(l->m, added, 1, length);
    }
    return trt_lower_done(l, layer, added);
}

static kelp_status *lower_conditional(trt_lowering *l, const kelp_layer *layer) {
    const kelp_conditional *conditional = layer->boundary->conditional;
    trt_if_conditional **created = &l->conditionals[conditional->region.index];
    if (*created == NULL) {
        *created = trt_network_add_if_conditional(l->m, l->to);
        KELP_TRY(trt_lower_check(l, layer, *created != NULL, "add its conditional"));
        const void *set = trt_if_conditional_set_condition(l->m, *created,
                                                           l->tensors[conditional->condition->id]);
        KELP_TRY(trt_lower_check(l, layer, set != NULL, "set its condition"));
    }
    if (layer->type == KELP_LAYER_CONDITIONAL_INPUT)
        return trt_lower_done(l, layer,
                              trt_as_layer(trt_if_conditional_add_input(
                                  l->m, *created, trt_lower_input(l, layer, 0))));
    return trt_lower_done(
        l, layer,
        trt_as_layer(trt_if_conditional_add_output(l->m, *created, trt_lower_input(l, layer, 0),
                                                   trt_lower_input(l, layer, 1))));
}

static kelp_status *lower_boundary(trt_lowering *l, const kelp_layer *layer) {
    trt_loop *loop = NULL;
    if (layer->type == KELP_LAYER_LOOP_OUTPUT)
        return lower_loop_output(l, layer);
    if (layer->boundary->loop == NULL)
        return lower_conditional(l, layer);
    KELP_TRY(trt_lower_loop(l, layer, &loop));
    trt_tensor *input = trt_lower_input(l, layer, 0);
    trt_layer *added =
        layer->type == KELP_LAYER_ITERATOR
            ? trt_as_layer(trt_loop_add_iterator(l->m, loop, input, layer->params.iterator.axis,
                                                 layer->params.iterator.reverse))
            : trt_as_layer(trt_loop_add_recurrence(l->m, loop, input));
    KELP_TRY(trt_lower_check(l, layer, added != NULL, "add it"));
    trt_layer_set_name(l->m, added, layer->name);
    store_outputs(l, layer, added); /* the shapes depend on the next value, which is added later */
    return NULL;
}

/* Adds the parts of a loop that depend on its body: next values, trip count and condition. */
static kelp_status *finish_loop(trt_lowering *l, const kelp_layer *layer) {
    const kelp_loop *loop = layer->boundary->loop;
    trt_loop **created = &l->loops[loop->region.index];
    if (layer->type == KELP_LAYER_RECURRENCE) {
        const kelp_net_tensor *out = layer->outputs[0];
        trt_tensor *next = trt_lower_input(l, layer, 1), *output = l->tensors[out->id];
        if (next == NULL)
            return kelp_layer_error(layer, "it has no next value");
        for (int32_t i = 0; i < trt_network_get_nb_layers(l->m, l->to); i++) {
            trt_layer *added = trt_network_get_layer(l->m, l->to, i);
            if (trt_layer_get_type(l->m, added) == TRT_LAYER_TYPE_RECURRENCE &&
                trt_layer_get_output(l->m, added, 0) == output)
                trt_layer_set_input(l->m, added, 1, next);
        }
    }
    if (*created == NULL || layer != loop->first)
        return NULL;
    if (loop->trip_count == NULL && loop->condition == NULL)
        return kelp_layer_error(layer, "its loop has neither a trip count nor a condition");
    if (loop->trip_count != NULL)
        KELP_TRY(trt_lower_check(l, layer,
                                 trt_loop_add_trip_limit(l->m, *created,
                                                         l->tensors[loop->trip_count->id],
                                                         TRT_TRIP_LIMIT_COUNT) != NULL,
                                 "set the loop's trip count"));
    if (loop->condition != NULL)
        KELP_TRY(
            trt_lower_check(l, layer,
                            trt_loop_add_trip_limit(l->m, *created, l->tensors[loop->condition->id],
                                                    TRT_TRIP_LIMIT_WHILE) != NULL,
                            "set the loop's condition"));
    return NULL;
}

/* ---- the network ---- */
static kelp_status *lower_layer(trt_lowering *l, const kelp_layer *layer) {
    bool known = false;
    if (layer->type == KELP_LAYER_INPUT)
        return lower_input(l, layer);
    if (layer->type == KELP_LAYER_PARSED)
        return find_parsed_tensors(l, layer);
    if (layer->boundary != NULL)
        return lower_boundary(l, layer);
    KELP_TRY(trt_lower_basic(l, layer, &known));
    if (!known)
        KELP_TRY(trt_lower_shaping(l, layer, &known));
    if (!known)
        KELP_TRY(trt_lower_special(l, layer, &known));
    return known ? NULL : trt_lower_unsupported(layer, "unsupported layer type");
}

static kelp_status *lower_outputs(trt_lowering *l) {
    for (size_t i = 0; i < l->from->output_count; i++) {
        const kelp_net_tensor *output = l->from->outputs[i];
        trt_tensor *tensor = l->tensors[output->id];
        if (tensor == NULL)
            return trt_lower_unsupported(output->producer, "it has not produced '%s'",
                                         output->name);
        if (trt_tensor_is_network_input(l->m, tensor))
            return trt_lower_unsupported(output->producer,
                                         "'%s' is both an input and an output, which must have "
                                         "different names: add an identity layer",
                                         output->name);
        if (!trt_tensor_is_network_output(l->m, tensor))
            trt_network_mark_output(l->m, l->to, tensor);
    }
    return NULL;
}

kelp_status *trt_lower(trt_lowering *l) {
    const kelp_network *from = l->from;
    KELP_ASSERT(l->to != NULL && l->log != NULL && l->tensors == NULL);
    l->tensors = KELP_ARENA_ARRAY(&l->arena, from->tensor_count + 1, trt_tensor *);
    l->loops = KELP_ARENA_ARRAY(&l->arena, from->region_count + 1u, trt_loop *);
    l->conditionals = KELP_ARENA_ARRAY(&l->arena, from->region_count + 1u, trt_if_conditional *);
    if (l->tensors == NULL || l->loops == NULL || l->conditionals == NULL)
        return kelp_status_oom();
    trt_log_clear(l->log);
    trt_network_set_name(l->m, l->to, from->name);
    for (size_t i = 0; i < from->layer_count; i++)
        KELP_TRY(lower_layer(l, from->layers[i]));
    for (size_t i = 0; i < from->layer_count; i++)
        if (from->layers[i]->boundary != NULL && from->layers[i]->boundary->loop != NULL)
            KELP_TRY(finish_loop(l, from->layers[i]));
    return lower_outputs(l);
}
