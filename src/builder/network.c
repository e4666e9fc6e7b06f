/* SPDX-License-Identifier: Apache-2.0 */
/* Implements networks: layers, tensors, inputs and outputs. */
#include "base/assert.h"
#include "builder/emit.h"

#include "base/alloc.h"
#include "builder/builder.h"

#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

static const char *const type_names[KELP_LAYER_TYPE_COUNT] = {
#define KELP_LAYER(name, text) [KELP_LAYER_##name] = text,
#include <kelp/layers.inc>
#undef KELP_LAYER
};

const char *kelp_layer_type_name(kelp_layer_type type) {
    return (unsigned)type < KELP_LAYER_TYPE_COUNT ? type_names[type] : "unknown";
}

/* ---- lifetime ---- */
kelp_status *kelp_network_reserve(kelp_network *network, void *inout_items, size_t count,
                                  size_t *inout_capacity) {
    void **items = NULL;
    if (count < *inout_capacity)
        return NULL;
    size_t grown = *inout_capacity ? 2 * *inout_capacity : 16;
    void **larger = KELP_ARENA_ARRAY(&network->arena, grown, void *);
    if (larger == NULL)
        return kelp_status_oom();
    memcpy(&items, inout_items, sizeof items);
    if (items != NULL)
        memcpy(larger, items, count * sizeof *larger);
    memcpy(inout_items, &larger, sizeof larger);
    *inout_capacity = grown;
    return NULL;
}

static kelp_status *new_tensor(kelp_network *network, kelp_layer *producer, uint32_t index,
                               kelp_value *draft, kelp_net_tensor **out) {
    kelp_net_tensor *tensor = KELP_ARENA_NEW(&network->arena, kelp_net_tensor);
    if (tensor == NULL)
        return kelp_status_oom();
    KELP_TRY(kelp_network_reserve(network, &network->tensors, network->tensor_count,
                                  &network->tensor_capacity));
    tensor->network = network;
    tensor->producer = producer;
    tensor->output_index = index;
    tensor->draft = draft;
    tensor->id = (uint32_t)network->tensor_count;
    tensor->name = kelp_arena_printf(&network->arena, "tensor_%u", tensor->id);
    if (tensor->name == NULL)
        return kelp_status_oom();
    KELP_ASSERT(network->tensor_count < network->tensor_capacity);
    network->tensors[network->tensor_count++] = tensor;
    *out = tensor;
    return NULL;
}

static kelp_status *new_layer(kelp_network *network, kelp_layer_type type, size_t input_count,
                              kelp_layer **out) {
    kelp_layer *layer = KELP_ARENA_NEW(&network->arena, kelp_layer);
    if (layer == NULL)
        return kelp_status_oom();
    KELP_TRY(kelp_network_reserve(network, &network->layers, network->layer_count,
                                  &network->layer_capacity));
    layer->network = network;
    layer->type = type;
    layer->index = (uint32_t)network->layer_count;
    layer->inputs = KELP_ARENA_ARRAY(&network->arena, input_count + 1, kelp_net_tensor *);
    layer->input_count = (uint32_t)input_count;
    layer->name = kelp_arena_printf(&network->arena, "%s_%u", type_names[type], layer->index);
    if (layer->inputs == NULL || layer->name == NULL)
        return kelp_status_oom();
    *out = layer;
    return NULL;
}

/* Adds the inputs and outputs of a parsed model to the network. */
static kelp_status *add_parsed(kelp_network *network) {
    const kelp_block *main = network->draft->main;
    kelp_layer *layer = NULL;
    KELP_TRY(new_layer(network, KELP_LAYER_PARSED, 0, &layer));
    layer->name = network->draft->info.graph_name;
    network->layers[network->layer_count++] = layer;
    size_t count = main->input_count + main->output_count;
    layer->outputs = KELP_ARENA_ARRAY(&network->arena, count + 1, kelp_net_tensor *);
    if (layer->outputs == NULL)
        return kelp_status_oom();
    for (size_t i = 0; i < count; i++) {
        bool is_input = i < main->input_count;
        kelp_value *value = is_input ? main->inputs[i] : main->outputs[i - main->input_count];
        kelp_net_tensor *tensor = NULL;
        KELP_TRY(new_tensor(network, layer, (uint32_t)i, value, &tensor));
        tensor->name = value->name;
        layer->outputs[layer->output_count++] = tensor;
        if (is_input) {
            KELP_TRY(kelp_network_reserve(network, &network->inputs, network->input_count,
                                          &network->input_capacity));
            network->inputs[network->input_count++] = tensor;
        } else {
            KELP_TRY(kelp_network_reserve(network, &network->outputs, network->output_count,
                                          &network->output_capacity));
            network->outputs[network->output_count++] = tensor;
            tensor->is_output = true;
        }
    }
    return NULL;
}

static kelp_status *fill_network(kelp_network *network, kelp_graph *parsed) {
    network->name = parsed != NULL ? parsed->info.graph_name : "network";
    if (parsed != NULL) {
        network->parsed = kelp_graph_retain(parsed);
        KELP_TRY(kelp_graph_clone_for_engine(parsed, &network->draft));
        KELP_TRY(kelp_block_infer(network->draft->main));
        return add_parsed(network);
    }
    KELP_TRY(kelp_graph_new(network->allocator, &network->draft));
    network->draft->info.label = "network";
    return NULL;
}

kelp_status *kelp_network_new(kelp_builder *builder, kelp_allocator allocator, kelp_graph *parsed,
                              kelp_network **out) {
    kelp_network *network = NULL;
    KELP_TRY(KELP_NEW(allocator, kelp_network, &network));
    atomic_init(&network->references, 1);
    network->allocator = allocator;
    network->builder = kelp_builder_retain(builder);
    kelp_arena_init(&network->arena, allocator, 16 << 10);
    kelp_status *status = fill_network(network, parsed);
    if (status != NULL) {
        kelp_network_release(network);
        return status;
    }
    *out = network;
    return NULL;
}

kelp_network *kelp_network_retain(kelp_network *network) {
    atomic_fetch_add_explicit(&network->references, 1, memory_order_relaxed);
    return network;
}

void kelp_network_release(kelp_network *network) {
    if (network == NULL ||
        atomic_fetch_sub_explicit(&network->references, 1, memory_order_acq_rel) != 1)
        return;
    kelp_builder *builder = network->builder;
    kelp_graph_release(network->draft);
    kelp_graph_release(network->parsed);
    kelp_arena_deinit(&network->arena);
    kelp_free(network->allocator, network, sizeof *network);
    kelp_builder_release(builder);
}

/* ---- names ---- */
static kelp_status *copy_name(kelp_network *network, const char *name, const char **out) {
    if (name == NULL || *name == '\0')
        return KELP_NETWORK_ERROR(KELP_INVALID_ARGUMENT, "the name is empty");
    const char *copy = kelp_arena_strndup(&network->arena, name, strlen(name));
    if (copy == NULL)
        return kelp_status_oom();
    *out = copy;
    return NULL;
}

kelp_status *kelp_network_set_name(kelp_network *network, const char *name) {
    return copy_name(network, name, &network->name);
}

const char *kelp_network_name(const kelp_network *network) {
    return network->name;
}

const char *kelp_layer_name(const kelp_layer *layer) {
    return layer->name;
}

/* Renames the layer only: nodes of the draft keep the names that they were created with. */
kelp_status *kelp_layer_set_name(kelp_layer *layer, const char *name) {
    return copy_name(layer->network, name, &layer->name);
}

const char *kelp_net_tensor_name(const kelp_net_tensor *tensor) {
    return tensor->name;
}

kelp_status *kelp_net_tensor_set_name(kelp_net_tensor *tensor, const char *name) {
    kelp_network *network = tensor->network;
    for (size_t i = 0; name != NULL && i < network->tensor_count; i++)
        if (network->tensors[i] != tensor && strcmp(network->tensors[i]->name, name) == 0)
            return KELP_NETWORK_ERROR(KELP_ALREADY_EXISTS,
                                      "another tensor of network '%s' has the name '%s'",
                                      network->name, name);
    return copy_name(network, name, &tensor->name);
}

kelp_status *kelp_layer_error(const kelp_layer *layer, const char *format, ...) {
    char text[768];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    return KELP_NETWORK_ERROR(KELP_INVALID_ARGUMENT, "layer %u '%s' (%s): %s", layer->index,
                              layer->name, kelp_layer_type_name(layer->type), text);
}

kelp_status *kelp_network_check_outputs(const kelp_network *network) {
    return network->output_count > 0
               ? NULL
               : KELP_NETWORK_ERROR(KELP_FAILED_PRECONDITION,
                                    "network '%s' has no output: mark a tensor as an output first",
                                    network->name);
}

/* ---- layers and inputs ---- */
static kelp_status *check_inputs(const kelp_layer *layer, size_t required) {
    for (uint32_t i = 0; i < required; i++)
        if (layer->inputs[i] == NULL)
            return kelp_layer_error(layer, "input %u is NULL", i);
    for (uint32_t i = 0; i < layer->input_count; i++)
        if (layer->inputs[i] != NULL && layer->inputs[i]->network != layer->network)
            return kelp_layer_error(layer, "input %u, '%s', belongs to another network", i,
                                    layer->inputs[i]->name);
    return NULL;
}

kelp_status *kelp_network_check_out(const kelp_network *network, const void *out) {
    return out != NULL ? NULL
                       : KELP_NETWORK_ERROR(
                             KELP_INVALID_ARGUMENT,
                             "cannot add to network '%s': 'out' is NULL, expected an address",
                             network->name);
}

static kelp_status *emit_draft(kelp_layer *layer, kelp_emit *e) {
    kelp_network *network = layer->network;
    e->block = network->draft->main;
    e->layer = layer;
    e->inputs = KELP_ARENA_ARRAY(&network->draft->arena, layer->input_count + 1, kelp_value *);
    if (e->inputs == NULL)
        return kelp_status_oom();
    for (uint32_t i = 0; i < layer->input_count; i++)
        e->inputs[i] = layer->inputs[i] != NULL ? layer->inputs[i]->draft : NULL;
    size_t first = e->block->node_count;
    KELP_TRY(kelp_emit_table[layer->type](e));
    KELP_ASSERT(e->block->node_count >= first);
    kelp_status *status = kelp_block_infer_from(e->block, first);
    if (kelp_status_code(status) == KELP_RESOURCE_EXHAUSTED)
        return status;
    if (status != NULL) {
        char text[640];
        kelp_status_format(status, text, sizeof text);
        kelp_status_free(status);
        return kelp_layer_error(layer, "%s", text);
    }
    return NULL;
}

static kelp_status *create_outputs(kelp_layer *layer, const kelp_emit *e) {
    kelp_network *network = layer->network;
    layer->outputs = KELP_ARENA_ARRAY(&network->arena, e->output_count + 1, kelp_net_tensor *);
    if (layer->outputs == NULL)
        return kelp_status_oom();
    for (uint32_t i = 0; i < e->output_count; i++)
        KELP_TRY(new_tensor(network, layer, i, e->outputs[i], &layer->outputs[i]));
    layer->output_count = e->output_count;
    return NULL;
}

kelp_status *kelp_network_append(kelp_network *network, kelp_layer_type type,
                                 kelp_net_tensor *const *inputs, size_t input_count,
                                 size_t required, const kelp_layer_params *params,
                                 kelp_region *boundary, kelp_layer **out) {
    kelp_layer *layer = NULL;
    KELP_ASSERT((unsigned)type < KELP_LAYER_TYPE_COUNT && kelp_emit_table[type] != NULL);
    KELP_ASSERT(required <= input_count);
    kelp_emit e = {0};
    kelp_block *block = network->draft->main;
    size_t nodes = block->node_count, values = block->value_count, tensors = network->tensor_count;
    KELP_TRY(new_layer(network, type, input_count, &layer));
    if (input_count > 0)
        memcpy(layer->inputs, inputs, input_count * sizeof *inputs);
    layer->params = *params;
    layer->boundary = boundary;
    kelp_status *status = check_inputs(layer, required);
    if (status == NULL)
        status = emit_draft(layer, &e);
    if (status == NULL)
        status = create_outputs(layer, &e);
    if (status != NULL) {
        block->node_count = nodes;
        block->value_count = values;
        network->tensor_count = tensors;
        return kelp_in_domain(status, KELP_DOMAIN_NETWORK);
    }
    kelp_network_place(layer);
    KELP_ASSERT(network->layer_count < network->layer_capacity);
    network->layers[network->layer_count++] = layer;
    if (out != NULL)
        *out = layer;
    return NULL;
}

kelp_status *kelp_network_add_input(kelp_network *network, const char *name, kelp_dtype dtype,
                                    kelp_shape dims, kelp_net_tensor **out) {
    kelp_block *block = network->draft->main;
    kelp_layer *layer = NULL;
    kelp_value *value = NULL;
    kelp_net_tensor *tensor = NULL;
    const char *owned = NULL;
    if (dims.rank < 0 || dims.rank > KELP_MAX_RANK || kelp_dtype_bits(dtype) == 0)
        return KELP_NETWORK_ERROR(
            KELP_INVALID_ARGUMENT,
            "input '%s': expected a type and 0 to %d dimensions, found %s and %d", name ? name : "",
            KELP_MAX_RANK, kelp_dtype_name(dtype), dims.rank);
    KELP_TRY(kelp_network_check_out(network, out));
    KELP_TRY(copy_name(network, name, &owned));
    for (size_t i = 0; i < network->tensor_count; i++)
        if (strcmp(network->tensors[i]->name, name) == 0)
            return KELP_NETWORK_ERROR(KELP_ALREADY_EXISTS, "network '%s' already has a tensor '%s'",
                                      network->name, name);
    KELP_TRY(new_layer(network, KELP_LAYER_INPUT, 0, &layer));
    KELP_TRY(kelp_network_reserve(network, &network->inputs, network->input_count,
                                  &network->input_capacity));
    layer->outputs = KELP_ARENA_ARRAY(&network->arena, 1, kelp_net_tensor *);
    if (layer->outputs == NULL)
        return kelp_status_oom();
    KELP_TRY(kelp_block_add_value(block, owned, &value));
    value->kind = KELP_VALUE_TENSOR;
    value->dtype = dtype;
    value->rank = dims.rank;
    for (int32_t i = 0; i < dims.rank; i++)
        value->shape[i] = dims.d[i] < 0 ? -1 : dims.d[i];
    KELP_TRY(new_tensor(network, layer, 0, value, &tensor));
    layer->name = tensor->name = owned;
    layer->outputs[0] = tensor;
    layer->output_count = 1;
    network->layers[network->layer_count++] = layer;
    network->inputs[network->input_count++] = tensor;
    *out = tensor;
    return NULL;
}

/* ---- outputs ---- */
kelp_status *kelp_network_mark_output(kelp_network *network, kelp_net_tensor *tensor) {
    if (tensor == NULL || tensor->network != network)
        return KELP_NETWORK_ERROR(KELP_INVALID_ARGUMENT,
                                  "the tensor does not belong to network '%s'", network->name);
    if (tensor->is_output)
        return NULL;
    if (tensor->producer->region != NULL)
        return kelp_layer_error(tensor->producer,
                                "'%s' is produced inside a loop or conditional: mark an output of "
                                "the loop or conditional instead",
                                tensor->name);
    KELP_TRY(kelp_network_reserve(network, &network->outputs, network->output_count,
                                  &network->output_capacity));
    network->outputs[network->output_count++] = tensor;
    tensor->is_output = true;
    return NULL;
}

kelp_status *kelp_network_unmark_output(kelp_network *network, kelp_net_tensor *tensor) {
    size_t kept = 0;
    for (size_t i = 0; i < network->output_count; i++)
        if (network->outputs[i] != tensor)
            network->outputs[kept++] = network->outputs[i];
    if (kept == network->output_count)
        return KELP_NETWORK_ERROR(KELP_NOT_FOUND, "tensor '%s' is not an output of network '%s'",
                                  tensor ? tensor->name : "", network->name);
    network->output_count = kept;
    tensor->is_output = false;
    return NULL;
}

kelp_status *kelp_network_mark_refittable(kelp_network *network, const char *weights_name) {
    const char *owned = NULL;
    KELP_TRY(copy_name(network, weights_name, &owned));
    KELP_TRY(kelp_network_reserve(network, &network->refittable, network->refittable_count,
                                  &network->refittable_capacity));
    network->refittable[network->refittable_count++] = owned;
    return NULL;
}

/* ---- queries ---- */
size_t kelp_network_layer_count(const kelp_network *network) {
    return network->layer_count;
}
kelp_layer *kelp_network_layer(const kelp_network *network, size_t index) {
    return index < network->layer_count ? network->layers[index] : NULL;
}
size_t kelp_network_input_count(const kelp_network *network) {
    return network->input_count;
}
kelp_net_tensor *kelp_network_input(const kelp_network *network, size_t index) {
    return index < network->input_count ? network->inputs[index] : NULL;
}
size_t kelp_network_output_count(const kelp_network *network) {
    return network->output_count;
}
kelp_net_tensor *kelp_network_output(const kelp_network *network, size_t index) {
    return index < network->output_count ? network->outputs[index] : NULL;
}
kelp_layer_type kelp_layer_type_of(const kelp_layer *layer) {
    return layer->type;
}
size_t kelp_layer_input_count(const kelp_layer *layer) {
    return layer->input_count;
}
kelp_net_tensor *kelp_layer_input(const kelp_layer *layer, size_t index) {
    return index < layer->input_count ? layer->inputs[index] : NULL;
}
size_t kelp_layer_output_count(const kelp_layer *layer) {
    return layer->output_count;
}
kelp_net_tensor *kelp_layer_output(const kelp_layer *layer, size_t index) {
    return index < layer->output_count ? layer->outputs[index] : NULL;
}
kelp_dtype kelp_net_tensor_dtype(const kelp_net_tensor *tensor) {
    return tensor->draft->dtype;
}
kelp_shape kelp_net_tensor_dims(const kelp_net_tensor *tensor) {
    kelp_shape dims = {.rank = tensor->draft->rank};
    for (int32_t i = 0; i < dims.rank; i++)
        dims.d[i] = tensor->draft->shape[i];
    return dims;
}
