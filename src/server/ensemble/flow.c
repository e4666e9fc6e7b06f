/* SPDX-License-Identifier: Apache-2.0 */
/* The construction of a data flow from the configuration of an ensemble. */
#include "server/ensemble/flow.h"

#include "base/alloc.h"
#include "base/map.h"

/* Maps names to tensors while the flow is built. */
typedef struct builder {
    kelp_flow *flow;
    const char *space; /* of the ensemble */
    kelp_map names;    /* -> a kelp_flow_tensor */
} builder;

static kelp_status *invalid_step(const kelp_flow *flow, uint32_t step, const char *problem) {
    return KELP_ERROR(KELP_INVALID_ARGUMENT, "in ensemble '%s', step[%u] of model '%s': %s",
                      flow->name, step, flow->steps[step].model_name, problem);
}

/* ---- tensors ---- */

static kelp_status *add_tensor(builder *b, const char *name, kelp_flow_tensor **out) {
    kelp_flow *flow = b->flow;
    kelp_flow_tensor *tensor = kelp_map_get(&b->names, kelp_str_from(name));
    if (tensor == NULL) {
        tensor = &flow->tensors[flow->tensor_count++];
        tensor->name = name;
        tensor->producer = KELP_FLOW_NONE;
        KELP_TRY(kelp_map_put(&b->names, kelp_str_from(name), tensor));
    }
    *out = tensor;
    return NULL;
}

static uint32_t index_of(const kelp_flow *flow, const kelp_flow_tensor *tensor) {
    return (uint32_t)(tensor - flow->tensors);
}

/* Adds the inputs and outputs of the ensemble. */
static kelp_status *add_ios(builder *b) {
    kelp_flow *flow = b->flow;
    const kelp_model_config *config = flow->config;
    kelp_flow_tensor *tensor;
    for (size_t i = 0; i < config->input_count; i++) {
        KELP_TRY(add_tensor(b, config->inputs[i].name, &tensor));
        tensor->input = &config->inputs[i];
        flow->inputs[i] = index_of(flow, tensor);
    }
    for (size_t i = 0; i < config->output_count; i++) {
        KELP_TRY(add_tensor(b, config->outputs[i].name, &tensor));
        tensor->output = &config->outputs[i];
        flow->outputs[i] = index_of(flow, tensor);
    }
    return NULL;
}

/* Records the step as the producer of the tensor. */
static kelp_status *set_producer(kelp_flow *flow, uint32_t step, uint32_t link,
                                 kelp_flow_tensor *tensor) {
    if (tensor->input != NULL)
        return KELP_ERROR(KELP_INVALID_ARGUMENT,
                          "in ensemble '%s', step[%u] of model '%s': output '%s' is mapped to "
                          "ensemble tensor '%s', which is an input of the ensemble",
                          flow->name, step, flow->steps[step].model_name,
                          flow->steps[step].outputs[link].name, tensor->name);
    if (tensor->producer != KELP_FLOW_NONE)
        return KELP_ERROR(KELP_INVALID_ARGUMENT,
                          "in ensemble '%s', ensemble tensor '%s' is produced twice: by step[%u] "
                          "of model '%s' and step[%u] of model '%s'; an ensemble tensor can appear "
                          "in an output map only once",
                          flow->name, tensor->name, tensor->producer,
                          flow->steps[tensor->producer].model_name, step,
                          flow->steps[step].model_name);
    tensor->producer = step;
    tensor->producer_link = link;
    return NULL;
}

static kelp_status *add_links(builder *b, uint32_t index, const kelp_config_step *from) {
    kelp_flow *flow = b->flow;
    kelp_flow_step *step = &flow->steps[index];
    kelp_flow_tensor *tensor;
    step->inputs = KELP_ARENA_ARRAY(&flow->arena, from->input_count, kelp_flow_link);
    step->outputs = KELP_ARENA_ARRAY(&flow->arena, from->output_count, kelp_flow_link);
    if (step->inputs == NULL || step->outputs == NULL)
        return kelp_status_oom();
    for (size_t i = 0; i < from->input_count; i++) {
        KELP_TRY(add_tensor(b, from->input_map[i].value, &tensor));
        step->inputs[step->input_count++] =
            (kelp_flow_link){.name = from->input_map[i].key, .tensor = index_of(flow, tensor)};
        tensor->consumer_count++;
    }
    for (size_t i = 0; i < from->output_count; i++) {
        KELP_TRY(add_tensor(b, from->output_map[i].value, &tensor));
        step->outputs[step->output_count++] = (kelp_flow_link){.name = from->output_map[i].key,
                                                               .tensor = index_of(flow, tensor),
                                                               .id = flow->link_count++};
        KELP_TRY(set_producer(flow, index, (uint32_t)i, tensor));
    }
    return NULL;
}

static kelp_status *add_step(builder *b, uint32_t index, const kelp_config_step *from) {
    kelp_flow *flow = b->flow;
    kelp_flow_step *step = &flow->steps[index];
    step->model_name = from->model_name;
    step->version = from->model_version > 0 ? from->model_version : -1;
    step->lookup_name =
        from->model_namespace[0]
            ? kelp_arena_printf(&flow->arena, "%s::%s", from->model_namespace, from->model_name)
            : from->model_name;
    if (step->lookup_name == NULL)
        return kelp_status_oom();
    if (b->space[0] && !from->model_namespace[0]) {
        step->near_name = kelp_arena_printf(&flow->arena, "%s::%s", b->space, from->model_name);
        if (step->near_name == NULL)
            return kelp_status_oom();
    }
    if (!from->model_name[0])
        return invalid_step(flow, index, "must specify 'model_name'");
    if (from->output_count == 0)
        return invalid_step(flow, index, "must specify 'output_map'");
    return add_links(b, index, from);
}

/* Fills the lists of consumers, whose sizes are known. */
static kelp_status *add_consumers(kelp_flow *flow) {
    for (uint32_t i = 0; i < flow->tensor_count; i++) {
        kelp_flow_tensor *tensor = &flow->tensors[i];
        tensor->consumers = KELP_ARENA_ARRAY(&flow->arena, tensor->consumer_count, uint32_t);
        if (tensor->consumers == NULL)
            return kelp_status_oom();
        tensor->consumer_count = 0;
    }
    for (uint32_t i = 0; i < flow->step_count; i++)
        for (uint32_t k = 0; k < flow->steps[i].input_count; k++) {
            kelp_flow_tensor *tensor = &flow->tensors[flow->steps[i].inputs[k].tensor];
            tensor->consumers[tensor->consumer_count++] = i;
        }
    return NULL;
}

/* Checks that each tensor has a source and a use. */
static kelp_status *check_tensors(const kelp_flow *flow) {
    for (uint32_t i = 0; i < flow->tensor_count; i++) {
        const kelp_flow_tensor *tensor = &flow->tensors[i];
        bool has_source = tensor->input != NULL || tensor->producer != KELP_FLOW_NONE;
        if (tensor->output != NULL && tensor->producer == KELP_FLOW_NONE)
            return KELP_ERROR(KELP_INVALID_ARGUMENT,
                              "in ensemble '%s', ensemble output '%s' is not produced by any step",
                              flow->name, tensor->name);
        if (!has_source)
            return KELP_ERROR(KELP_INVALID_ARGUMENT,
                              "in ensemble '%s', step[%u] of model '%s' reads ensemble tensor "
                              "'%s', which is neither an input of the ensemble nor an output of a "
                              "step",
                              flow->name, tensor->consumers[0],
                              flow->steps[tensor->consumers[0]].model_name, tensor->name);
    }
    for (uint32_t i = 0; i < flow->tensor_count; i++) {
        const kelp_flow_tensor *tensor = &flow->tensors[i];
        if (tensor->input != NULL && tensor->consumer_count == 0)
            return KELP_ERROR(KELP_INVALID_ARGUMENT,
                              "in ensemble '%s', ensemble input '%s' is not used", flow->name,
                              tensor->name);
    }
    return NULL;
}

/* ---- the order of the steps ---- */

/* Returns an unordered step that produces an input of an unordered step. */
static uint32_t unordered_producer(const kelp_flow *flow, const bool *ordered, uint32_t step,
                                   uint32_t *out_tensor) {
    for (uint32_t k = 0; k < flow->steps[step].input_count; k++) {
        uint32_t tensor = flow->steps[step].inputs[k].tensor;
        uint32_t producer = flow->tensors[tensor].producer;
        if (producer != KELP_FLOW_NONE && !ordered[producer]) {
            *out_tensor = tensor;
            return producer;
        }
    }
    return KELP_FLOW_NONE;
}

/* Describes one cycle among the steps that have no order. */
static kelp_status *cycle_error(const kelp_flow *flow, const bool *ordered) {
    uint32_t step = 0, tensor = 0;
    while (ordered[step])
        step++;
    for (uint32_t i = 0; i < flow->step_count; i++) /* enters a cycle */
        step = unordered_producer(flow, ordered, step, &tensor);
    kelp_buf text;
    kelp_buf_init(&text, flow->arena.allocator);
    uint32_t at = step;
    kelp_buf_printf(&text, "step[%u] '%s'", at, flow->steps[at].model_name);
    do {
        at = unordered_producer(flow, ordered, at, &tensor);
        kelp_buf_printf(&text, " <- '%s' <- step[%u] '%s'", flow->tensors[tensor].name, at,
                        flow->steps[at].model_name);
    } while (at != step);
    const char *path = kelp_buf_cstr(&text);
    kelp_status *status =
        path != NULL ? KELP_ERROR(KELP_INVALID_ARGUMENT,
                                  "in ensemble '%s', the steps form a cycle: %s", flow->name, path)
                     : kelp_status_oom();
    kelp_buf_deinit(&text);
    return status;
}

/* Sorts the steps topologically. */
static kelp_status *sort_steps(kelp_flow *flow) {
    uint32_t *missing = KELP_ARENA_ARRAY(&flow->arena, flow->step_count, uint32_t);
    bool *ordered = KELP_ARENA_ARRAY(&flow->arena, flow->step_count, bool);
    uint32_t count = 0;
    if (missing == NULL || ordered == NULL)
        return kelp_status_oom();
    for (uint32_t i = 0; i < flow->step_count; i++) {
        for (uint32_t k = 0; k < flow->steps[i].input_count; k++)
            missing[i] += flow->tensors[flow->steps[i].inputs[k].tensor].input == NULL;
        if (missing[i] == 0)
            flow->order[count++] = i;
    }
    for (uint32_t at = 0; at < count; at++) {
        const kelp_flow_step *step = &flow->steps[flow->order[at]];
        ordered[flow->order[at]] = true;
        for (uint32_t k = 0; k < step->output_count; k++) {
            const kelp_flow_tensor *tensor = &flow->tensors[step->outputs[k].tensor];
            for (uint32_t c = 0; c < tensor->consumer_count; c++)
                if (--missing[tensor->consumers[c]] == 0)
                    flow->order[count++] = tensor->consumers[c];
        }
    }
    return count == flow->step_count ? NULL : cycle_error(flow, ordered);
}

/* ---- construction ---- */

static kelp_status *build(builder *b) {
    kelp_flow *flow = b->flow;
    const kelp_model_config *config = flow->config;
    size_t tensors = config->input_count + config->output_count;
    if (config->output_count == 0)
        return KELP_ERROR(KELP_INVALID_ARGUMENT, "ensemble '%s' has no output", flow->name);
    for (size_t i = 0; i < config->step_count; i++)
        tensors += config->steps[i].input_count + config->steps[i].output_count;
    if (tensors >= KELP_FLOW_NONE || config->step_count >= KELP_FLOW_NONE)
        return KELP_ERROR(KELP_INVALID_ARGUMENT, "ensemble '%s' has too many tensors", flow->name);
    flow->step_count = (uint32_t)config->step_count;
    flow->steps = KELP_ARENA_ARRAY(&flow->arena, config->step_count, kelp_flow_step);
    flow->order = KELP_ARENA_ARRAY(&flow->arena, config->step_count, uint32_t);
    flow->tensors = KELP_ARENA_ARRAY(&flow->arena, tensors, kelp_flow_tensor);
    flow->inputs = KELP_ARENA_ARRAY(&flow->arena, config->input_count, uint32_t);
    flow->outputs = KELP_ARENA_ARRAY(&flow->arena, config->output_count, uint32_t);
    if (flow->steps == NULL || flow->order == NULL || flow->tensors == NULL ||
        flow->inputs == NULL || flow->outputs == NULL)
        return kelp_status_oom();
    KELP_TRY(add_ios(b));
    for (uint32_t i = 0; i < flow->step_count; i++)
        KELP_TRY(add_step(b, i, &config->steps[i]));
    KELP_TRY(add_consumers(flow));
    KELP_TRY(check_tensors(flow));
    return sort_steps(flow);
}

kelp_status *kelp_flow_create(const kelp_model_base *ensemble, kelp_flow **out) {
    kelp_allocator allocator = ensemble->host->allocator;
    builder b = {.space = ensemble->space};
    KELP_TRY(KELP_NEW(allocator, kelp_flow, &b.flow));
    kelp_arena_init(&b.flow->arena, allocator, 0);
    b.flow->config = ensemble->config;
    b.flow->name = ensemble->config->name;
    kelp_map_init(&b.names, allocator);
    kelp_status *status = build(&b);
    kelp_map_deinit(&b.names);
    if (status != NULL)
        kelp_flow_destroy(b.flow);
    else
        *out = b.flow;
    return status;
}

void kelp_flow_destroy(kelp_flow *flow) {
    kelp_allocator allocator = flow->arena.allocator;
    kelp_arena_deinit(&flow->arena);
    kelp_free(allocator, flow, sizeof *flow);
}
