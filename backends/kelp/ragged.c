/* SPDX-License-Identifier: Apache-2.0 */
/* Ragged batches: the configuration, and their execution with the functions of the SDK. */
#include "ragged.h"

#include <stdlib.h>
#include <string.h>

/* ---- configuration ---- */

static const kelp_backend_value *field(const kelp_backend_model *model, const char *name) {
    return kelp_backend_value_get(kelp_backend_model_config(model), name);
}

static const char *text_of(const kelp_backend_value *message, const char *name) {
    return kelp_backend_value_text(kelp_backend_value_get(message, name), "");
}

static bool is_ragged(const kelp_backend_value *input) {
    return kelp_backend_value_bool(kelp_backend_value_get(input, "allow_ragged_batch"), false);
}

bool kelp_ragged_is_configured(const kelp_backend_model *model) {
    const kelp_backend_value *input = kelp_backend_value_first(field(model, "input"));
    for (; input != NULL; input = kelp_backend_value_next(input))
        if (is_ragged(input))
            return true;
    return kelp_backend_value_count(field(model, "batch_input")) +
               kelp_backend_value_count(field(model, "batch_output")) >
           0;
}

/* Returns true if a name is a target of the messages of a list. */
static bool is_target(const kelp_backend_value *list, const char *name) {
    for (const kelp_backend_value *one = kelp_backend_value_first(list); one != NULL;
         one = kelp_backend_value_next(one)) {
        const kelp_backend_value *target =
            kelp_backend_value_first(kelp_backend_value_get(one, "target_name"));
        for (; target != NULL; target = kelp_backend_value_next(target))
            if (strcmp(kelp_backend_value_text(target, ""), name) == 0)
                return true;
    }
    return false;
}

bool kelp_ragged_has_own_shape(const kelp_backend_model *model, const kelp_backend_value *tensor,
                               const char *name) {
    return is_ragged(tensor) || is_target(field(model, "batch_output"), name);
}

static kelp_status *find(const kelp_backend_model *model, const char *what, const char *name,
                         const kelp_io_info *tensors, size_t count, size_t *out) {
    for (size_t i = 0; i < count; i++) {
        if (strcmp(tensors[i].name, name) != 0)
            continue;
        *out = i;
        return NULL;
    }
    return KELP_ERROR(KELP_INVALID_ARGUMENT, "model '%s': %s '%s' is not in the model",
                      kelp_backend_model_name(model), what, name);
}

static kelp_status *read_batch_input(kelp_ragged *ragged, const kelp_backend_model *model,
                                     const kelp_compute_metadata *metadata,
                                     const kelp_backend_value *from, size_t number) {
    const char *type = text_of(from, "data_type");
    kelp_dtype dtype = kelp_dtype_parse(type);
    const kelp_backend_value *target =
        kelp_backend_value_first(kelp_backend_value_get(from, "target_name"));
    for (; target != NULL; target = kelp_backend_value_next(target)) {
        const char *name = kelp_backend_value_text(target, "");
        size_t index = 0;
        KELP_TRY(find(model, "batch_input target", name, metadata->inputs, metadata->input_count,
                      &index));
        if (dtype != metadata->inputs[index].dtype)
            return KELP_ERROR(KELP_INVALID_ARGUMENT,
                              "model '%s': batch_input '%s': expected data_type TYPE_%s of the "
                              "model, found %s",
                              kelp_backend_model_name(model), name,
                              kelp_dtype_name(metadata->inputs[index].dtype), type);
        ragged->inputs[index].batch_input = number;
    }
    return NULL;
}

static kelp_status *read_batch_output(kelp_ragged *ragged, const kelp_backend_model *model,
                                      const kelp_compute_metadata *metadata,
                                      const kelp_backend_value *from) {
    size_t output = 0;
    const kelp_backend_value *source =
        kelp_backend_value_first(kelp_backend_value_get(from, "source_input"));
    const kelp_backend_value *target =
        kelp_backend_value_first(kelp_backend_value_get(from, "target_name"));
    for (; target != NULL; target = kelp_backend_value_next(target)) {
        KELP_TRY(find(model, "batch_output target", kelp_backend_value_text(target, ""),
                      metadata->outputs, metadata->output_count, &output));
        ragged->like[output] = kelp_backend_value_text(source, "");
    }
    return NULL;
}

static kelp_status *read_inputs(kelp_ragged *ragged, const kelp_backend_model *model,
                                const kelp_compute_metadata *metadata) {
    for (const kelp_backend_value *input = kelp_backend_value_first(field(model, "input"));
         input != NULL; input = kelp_backend_value_next(input)) {
        size_t index = 0;
        KELP_TRY(find(model, "input", text_of(input, "name"), metadata->inputs,
                      metadata->input_count, &index));
        ragged->inputs[index].flat = is_ragged(input);
    }
    return NULL;
}

kelp_status *kelp_ragged_init(kelp_ragged *out, const kelp_backend_model *model,
                              const kelp_compute_metadata *metadata) {
    size_t number = 0;
    *out = (kelp_ragged){0};
    if (!kelp_ragged_is_configured(model))
        return NULL;
    out->inputs = calloc(metadata->input_count + 1, sizeof *out->inputs);
    out->like = (const char **)calloc(metadata->output_count + 1, sizeof *out->like);
    if (out->inputs == NULL || out->like == NULL)
        return kelp_status_oom();
    for (size_t i = 0; i < metadata->input_count; i++)
        out->inputs[i].batch_input = SIZE_MAX;
    KELP_TRY(read_inputs(out, model, metadata));
    for (const kelp_backend_value *one = kelp_backend_value_first(field(model, "batch_input"));
         one != NULL; one = kelp_backend_value_next(one))
        KELP_TRY(read_batch_input(out, model, metadata, one, number++));
    for (const kelp_backend_value *one = kelp_backend_value_first(field(model, "batch_output"));
         one != NULL; one = kelp_backend_value_next(one))
        KELP_TRY(read_batch_output(out, model, metadata, one));
    return NULL;
}

void kelp_ragged_deinit(kelp_ragged *ragged) {
    free(ragged->inputs);
    free((void *)ragged->like);
}

/* ---- execution ---- */

kelp_status *kelp_ragged_infer(const kelp_ragged *ragged, kelp_compute_model *model,
                               kelp_backend_request **requests, size_t count, kelp_tensor *inputs,
                               kelp_tensor *outputs) {
    const kelp_compute_metadata *metadata = kelp_compute_metadata_of(model);
    for (size_t i = 0; i < metadata->input_count; i++) {
        const kelp_ragged_input *from = &ragged->inputs[i];
        const char *name = metadata->inputs[i].name;
        if (from->batch_input != SIZE_MAX)
            KELP_TRY(
                kelp_backend_batch_input(requests, count, from->batch_input, &name, &inputs[i]));
        else if (from->flat)
            KELP_TRY(kelp_backend_gather_flat(requests, count, name, metadata->inputs[i].dtype,
                                              &inputs[i]));
        else
            KELP_TRY(kelp_backend_gather(requests, count, name, metadata->inputs[i].dtype,
                                         KELP_ANY_RANK, &inputs[i]));
    }
    memset(outputs, 0, metadata->output_count * sizeof *outputs);
    kelp_infer_item item = {.inputs = inputs, .outputs = outputs};
    return kelp_compute_infer_one(model, &item);
}

kelp_status *kelp_ragged_respond(const kelp_ragged *ragged, const kelp_compute_metadata *metadata,
                                 kelp_backend_request **requests, size_t count,
                                 const kelp_tensor *outputs) {
    kelp_backend_response *response = NULL;
    for (size_t k = 0; k < count; k++) /* also if no output is requested */
        KELP_TRY(kelp_backend_respond(requests[k], &response));
    for (size_t i = 0; i < metadata->output_count; i++)
        KELP_TRY(kelp_backend_scatter(requests, count, metadata->outputs[i].name, ragged->like[i],
                                      &outputs[i]));
    return NULL;
}
