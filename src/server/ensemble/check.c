/* SPDX-License-Identifier: Apache-2.0 */
/* Checks that the models of an ensemble fit together. Messages begin with Triton's wording. */
#include "base/assert.h"
#include "server/ensemble/flow.h"

#include <stdio.h>

bool kelp_flow_dims_match(const int64_t *a, uint32_t a_rank, const int64_t *b, uint32_t b_rank) {
    if (a_rank != b_rank)
        return false;
    for (uint32_t i = 0; i < a_rank; i++)
        if (a[i] != -1 && b[i] != -1 && a[i] != b[i])
            return false;
    return true;
}

/* ---- paths ---- */

/* Returns the step before `step` on its path, and the tensor between them. */
static uint32_t step_before(const kelp_flow *flow, uint32_t step, uint32_t *out_tensor) {
    const kelp_flow_step *here = &flow->steps[step];
    *out_tensor = KELP_FLOW_NONE;
    if (here->input_count == 0)
        return KELP_FLOW_NONE;
    *out_tensor = here->inputs[0].tensor;
    for (uint32_t k = 0; k < here->input_count; k++)
        if (flow->tensors[here->inputs[k].tensor].producer != KELP_FLOW_NONE)
            *out_tensor = here->inputs[k].tensor;
    return flow->tensors[*out_tensor].producer;
}

void kelp_flow_write_path(const kelp_flow *flow, uint32_t step, kelp_buf *out) {
    uint32_t length = 0, tensor = 0;
    for (uint32_t at = step; at != KELP_FLOW_NONE; at = step_before(flow, at, &tensor))
        length++;
    for (uint32_t i = length; i-- > 0;) {
        uint32_t at = step;
        for (uint32_t k = 0; k < i; k++)
            at = step_before(flow, at, &tensor);
        step_before(flow, at, &tensor);
        if (i + 1 < length)
            kelp_buf_append_cstr(out, " -> ");
        if (tensor != KELP_FLOW_NONE)
            kelp_buf_printf(out, "'%s' -> ", flow->tensors[tensor].name);
        kelp_buf_printf(out, "step[%u] '%s'", at, flow->steps[at].model_name);
    }
}

/* Returns "in ensemble 'E', PROBLEM (path: …)". */
static kelp_status *problem_at(const kelp_flow *flow, uint32_t step, const kelp_buf *problem) {
    kelp_buf path;
    kelp_buf_init(&path, flow->arena.allocator);
    kelp_flow_write_path(flow, step, &path);
    const char *text = kelp_buf_cstr(&path);
    kelp_status *status =
        text != NULL && kelp_buf_status(problem) == NULL
            ? KELP_ERROR(KELP_INVALID_ARGUMENT, "in ensemble '%s', %.*s (path: %s)", flow->name,
                         (int)problem->length, problem->data, text)
            : kelp_status_oom();
    kelp_buf_deinit(&path);
    return status;
}

/* ---- tensors ---- */

/* One end of a tensor: what a model or the ensemble declares. */
typedef struct end {
    const char *model;
    TRITONSERVER_DataType type;
    const int64_t *dims;
    uint32_t rank;
    bool batched;
} end;

static end end_of_model(const kelp_model_base *model, const kelp_config_io *io) {
    return (end){.model = model->name,
                 .type = io->data_type,
                 .dims = io->dims,
                 .rank = io->rank,
                 .batched = model->config->max_batch_size > 0 && !io->is_shape_tensor};
}

/* The ensemble's own tensors have the shape after `reshape`. */
static end end_of_ensemble(const kelp_flow *flow, const kelp_config_io *io) {
    return (end){.model = flow->name,
                 .type = io->data_type,
                 .dims = io->has_reshape ? io->reshape : io->dims,
                 .rank = io->has_reshape ? io->reshape_rank : io->rank,
                 .batched = flow->config->max_batch_size > 0 && !io->is_shape_tensor};
}

static uint32_t full_dims(const end *e, int64_t *out) {
    uint32_t rank = 0;
    if (e->batched)
        out[rank++] = -1;
    for (uint32_t i = 0; i < e->rank && rank <= KELP_SERVER_MAX_RANK; i++)
        out[rank++] = e->dims[i];
    return rank;
}

static void write_shape(const end *e, kelp_buf *out) {
    int64_t full[KELP_SERVER_MAX_RANK + 1] = {0};
    char text[512];
    uint32_t rank = full_dims(e, full);
    kelp_shape_format((int32_t)rank, full, text, sizeof text);
    kelp_buf_append_cstr(out, text);
}

/* The shapes match with or without the batch dimensions, because a model without batching may have
 * the batch dimension in its own dims. */
static bool shapes_match(const end *a, const end *b) {
    int64_t left[KELP_SERVER_MAX_RANK + 1] = {0}, right[KELP_SERVER_MAX_RANK + 1] = {0};
    if (kelp_flow_dims_match(a->dims, a->rank, b->dims, b->rank))
        return true;
    uint32_t left_rank = full_dims(a, left), right_rank = full_dims(b, right);
    return kelp_flow_dims_match(left, left_rank, right, right_rank);
}

static kelp_status *check_ends(const kelp_flow *flow, uint32_t step, const char *tensor,
                               const end *from, const end *to) {
    kelp_buf text;
    kelp_buf_init(&text, flow->arena.allocator);
    kelp_buf_printf(&text, "ensemble tensor '%s': ", tensor);
    kelp_status *status = NULL;
    if (from->type != to->type) {
        kelp_buf_printf(&text,
                        "inconsistent data type: TYPE_%s is inferred from model '%s' while TYPE_%s "
                        "is inferred from model '%s'",
                        TRITONSERVER_DataTypeString(from->type), from->model,
                        TRITONSERVER_DataTypeString(to->type), to->model);
        status = problem_at(flow, step, &text);
    } else if (!shapes_match(from, to)) {
        kelp_buf_append_cstr(&text, "inconsistent shape: ");
        write_shape(from, &text);
        kelp_buf_printf(&text, " is inferred from model '%s' while ", from->model);
        write_shape(to, &text);
        kelp_buf_printf(&text, " is inferred from model '%s'", to->model);
        status = problem_at(flow, step, &text);
    }
    kelp_buf_deinit(&text);
    return status;
}

/* Fails with "in ensemble 'E', ensemble tensor 'T' is mapp… tensor 'N' in model 'M' (path: …)". */
static kelp_status *no_such_tensor(const kelp_flow *flow, uint32_t step, const kelp_flow_link *link,
                                   const char *relation) {
    kelp_buf text;
    kelp_buf_init(&text, flow->arena.allocator);
    kelp_buf_printf(&text, "ensemble tensor '%s' is %s '%s' in model '%s'",
                    flow->tensors[link->tensor].name, relation, link->name,
                    flow->steps[step].model_name);
    kelp_status *status = problem_at(flow, step, &text);
    kelp_buf_deinit(&text);
    return status;
}

/* Returns the end of a tensor at which its values originate. Outputs are checked before. */
static end source_of(const kelp_flow *flow, kelp_model_base *const *models,
                     const kelp_flow_tensor *tensor) {
    if (tensor->input != NULL)
        return end_of_ensemble(flow, tensor->input);
    const kelp_model_base *model = models[tensor->producer];
    const char *name = flow->steps[tensor->producer].outputs[tensor->producer_link].name;
    const kelp_config_io *io = kelp_model_config_output(model->config, kelp_str_from(name));
    KELP_ASSERT(io != NULL);
    return end_of_model(model, io);
}

static kelp_status *check_outputs(const kelp_flow *flow, kelp_model_base *const *models,
                                  uint32_t index) {
    const kelp_flow_step *step = &flow->steps[index];
    for (uint32_t k = 0; k < step->output_count; k++) {
        const kelp_flow_link *link = &step->outputs[k];
        const kelp_flow_tensor *tensor = &flow->tensors[link->tensor];
        if (kelp_model_config_output(models[index]->config, kelp_str_from(link->name)) == NULL)
            return no_such_tensor(flow, index, link, "mapped from non-existing output");
        if (tensor->output == NULL)
            continue;
        end from = source_of(flow, models, tensor), to = end_of_ensemble(flow, tensor->output);
        KELP_TRY(check_ends(flow, index, tensor->name, &from, &to));
    }
    return NULL;
}

/* Checks that all required inputs of a model are mapped. */
static kelp_status *check_mapped(const kelp_flow *flow, const kelp_model_base *model,
                                 uint32_t index) {
    const kelp_flow_step *step = &flow->steps[index];
    for (size_t i = 0; i < model->config->input_count; i++) {
        const kelp_config_io *io = &model->config->inputs[i];
        bool mapped = io->optional;
        for (uint32_t k = 0; k < step->input_count && !mapped; k++)
            mapped = strcmp(step->inputs[k].name, io->name) == 0;
        if (mapped)
            continue;
        kelp_buf text;
        kelp_buf_init(&text, flow->arena.allocator);
        kelp_buf_printf(&text, "input '%s' in model '%s' is not mapped to any ensemble tensors",
                        io->name, step->model_name);
        kelp_status *status = problem_at(flow, index, &text);
        kelp_buf_deinit(&text);
        return status;
    }
    return NULL;
}

static kelp_status *check_inputs(const kelp_flow *flow, kelp_model_base *const *models,
                                 uint32_t index) {
    const kelp_flow_step *step = &flow->steps[index];
    const kelp_model_base *model = models[index];
    for (uint32_t k = 0; k < step->input_count; k++) {
        const kelp_flow_link *link = &step->inputs[k];
        const kelp_config_io *io =
            kelp_model_config_input(model->config, kelp_str_from(link->name));
        if (io == NULL)
            return no_such_tensor(flow, index, link, "mapping to non-existing input");
        end from = source_of(flow, models, &flow->tensors[link->tensor]);
        end to = end_of_model(model, io);
        KELP_TRY(check_ends(flow, index, flow->tensors[link->tensor].name, &from, &to));
    }
    return check_mapped(flow, model, index);
}

static kelp_status *check_batch(const kelp_flow *flow, const kelp_model_base *model) {
    int32_t own = flow->config->max_batch_size, theirs = model->config->max_batch_size;
    if (theirs == 0 || theirs >= own)
        return NULL;
    return KELP_ERROR(
        KELP_INVALID_ARGUMENT,
        "ensemble '%s' allows maximum batch size %d, but it contains model '%s' which "
        "only allows maximum batch size to be %d",
        flow->name, own, model->name, theirs);
}

/* ---- domains ---- */

static kelp_status *mixed_domains(const kelp_flow *flow, uint32_t step, const char *reader) {
    kelp_buf text;
    kelp_buf_init(&text, flow->arena.allocator);
    kelp_buf_printf(&text,
                    "step of model '%s' receives inputs originated from different decoupled models",
                    reader);
    kelp_status *status = problem_at(flow, step, &text);
    kelp_buf_deinit(&text);
    return status;
}

/* Computes the domain of the outputs of each step. */
static kelp_status *set_domains(kelp_flow *flow, kelp_model_base *const *models) {
    uint32_t last_domain = 0;
    for (uint32_t i = 0; i < flow->step_count; i++) {
        kelp_flow_step *step = &flow->steps[flow->order[i]];
        step->decoupled = models[flow->order[i]]->decoupled;
        step->domain = step->input_count > 0 ? flow->tensors[step->inputs[0].tensor].domain : 0;
        for (uint32_t k = 1; k < step->input_count; k++)
            if (flow->tensors[step->inputs[k].tensor].domain != step->domain)
                return mixed_domains(flow, flow->order[i], step->model_name);
        if (step->decoupled)
            step->domain = ++last_domain;
        for (uint32_t k = 0; k < step->output_count; k++)
            flow->tensors[step->outputs[k].tensor].domain = step->domain;
    }
    for (size_t i = 0; i < flow->config->output_count; i++) {
        const kelp_flow_tensor *tensor = &flow->tensors[flow->outputs[i]];
        if (i == 0)
            flow->output_domain = tensor->domain;
        else if (tensor->domain != flow->output_domain)
            return mixed_domains(flow, tensor->producer, flow->name);
    }
    return NULL;
}

kelp_status *kelp_flow_check(kelp_flow *flow, kelp_model_base *const *models, bool first) {
    for (uint32_t i = 0; i < flow->step_count; i++) {
        if (!first && models[i]->decoupled != flow->steps[i].decoupled)
            return KELP_ERROR(
                KELP_INVALID_ARGUMENT,
                "in ensemble '%s', model '%s' was loaded again and %s decoupled: load "
                "the ensemble again",
                flow->name, models[i]->name, models[i]->decoupled ? "is now" : "is no longer");
        KELP_TRY(check_batch(flow, models[i]));
        KELP_TRY(check_outputs(flow, models, i));
    }
    for (uint32_t i = 0; i < flow->step_count; i++)
        KELP_TRY(check_inputs(flow, models, i));
    return first ? set_domains(flow, models) : NULL;
}
