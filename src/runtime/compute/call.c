/* SPDX-License-Identifier: Apache-2.0 */
/* Runs a provider's model, after checks of the inputs and outputs. */
#include "base/alloc.h"
#include "base/assert.h"
#include "base/arena.h"
#include "runtime/compute/state.h"
#include "runtime/io.h"

#include <stddef.h>

/* ---- lifetime ---- */
static kelp_status *unsupported_type(const kelp_compute_backend *backend, const char *what,
                                     const kelp_io_info *info) {
    if (info->dtype == KELP_LIST)
        return KELP_ERROR(KELP_UNIMPLEMENTED,
                          "provider '%s' cannot run the model: its %s '%s' is a sequence, an "
                          "optional or a map; only tensors can be served",
                          backend->name, what, info->name);
    return KELP_ERROR(KELP_UNIMPLEMENTED,
                      "provider '%s' cannot run the model: its %s '%s' is of %s, which the "
                      "provider does not support",
                      backend->name, what, info->name, kelp_dtype_name(info->dtype));
}

static bool in_mask(uint64_t mask, kelp_dtype dtype) {
    return dtype == KELP_DTYPE_INVALID || ((unsigned)dtype < 64 && (mask >> dtype & 1) != 0);
}

static kelp_status *check_types(const kelp_compute_backend *backend, uint64_t mask,
                                const kelp_compute_metadata *metadata) {
    for (size_t i = 0; i < metadata->input_count; i++) {
        if (!in_mask(mask, metadata->inputs[i].dtype))
            return unsupported_type(backend, "input", &metadata->inputs[i]);
    }
    for (size_t i = 0; i < metadata->output_count; i++) {
        if (!in_mask(mask, metadata->outputs[i].dtype))
            return unsupported_type(backend, "output", &metadata->outputs[i]);
    }
    return NULL;
}

/* Attaches Kelp's state to a model, or destroys the model on failure. */
static kelp_status *adopt(kelp_allocator allocator, const kelp_compute_backend *backend,
                          bool batched, kelp_compute_model *take_model, kelp_compute_model **out) {
    struct kelp_compute_state *state = NULL;
    kelp_status *status = NULL;
    KELP_ASSERT(backend != NULL && backend->capabilities != NULL); /* checked at registration */
    kelp_compute_capabilities capabilities = backend->capabilities(backend->self);
    const kelp_compute_metadata *metadata = take_model->vtbl->metadata(take_model);
    if (!capabilities.device_streams && take_model->vtbl->submit != NULL)
        status = KELP_ERROR(KELP_INVALID_ARGUMENT,
                            "a model of provider '%s' has a submit, but the provider does not "
                            "declare device_streams",
                            backend->name);
    if (status == NULL)
        status = check_types(backend, capabilities.dtype_mask, metadata);
    if (status == NULL && batched)
        status = kelp_compute_check_batched(backend, metadata);
    if (status == NULL)
        status = KELP_NEW(allocator, struct kelp_compute_state, &state);
    if (status != NULL) {
        take_model->vtbl->destroy(take_model);
        return status;
    }
    state->allocator = allocator;
    state->backend = backend;
    state->capabilities = capabilities;
    state->batched = batched;
    kelp_arena_init(&state->staging, allocator, 0);
    kelp_arena_init(&state->batch, allocator, 0);
    take_model->state = state;
    *out = take_model;
    return NULL;
}

kelp_status *kelp_compute_load(kelp_runtime *runtime, const char *backend_name,
                               const kelp_artifact *artifact, kelp_compute_model **out) {
    const kelp_compute_backend *backend = NULL;
    kelp_compute_model *model = NULL;
    kelp_status *status = kelp_compute_find(runtime, backend_name, &backend);
    if (status == NULL && artifact->path == NULL && artifact->data == NULL)
        status = KELP_ERROR(KELP_INVALID_ARGUMENT,
                            "cannot load a model with provider '%s': the artifact has neither a "
                            "path nor bytes",
                            backend_name);
    if (status == NULL) {
        KELP_TRY(backend->load_model(backend->self, runtime, artifact, &model));
        return adopt(kelp_runtime_allocator(runtime), backend, artifact->batched, model, out);
    }
    /* the bytes were transferred to this function: release them on failure too */
    if (artifact->release != NULL)
        artifact->release(artifact->userp);
    return status;
}

kelp_status *kelp_compute_fork(kelp_compute_model *model, kelp_compute_model **out) {
    kelp_compute_model *fork = NULL;
    if (model->vtbl->fork == NULL)
        return KELP_ERROR(KELP_UNIMPLEMENTED,
                          "provider '%s' has no fork: its models cannot be used by several threads",
                          model->state->backend->name);
    KELP_TRY(model->vtbl->fork(model, &fork));
    return adopt(model->state->allocator, model->state->backend, model->state->batched, fork, out);
}

void kelp_compute_destroy(kelp_compute_model *model) {
    if (model == NULL)
        return;
    struct kelp_compute_state *state = model->state;
    KELP_ASSERT(state != NULL);
    kelp_allocator allocator = state->allocator;
    kelp_compute_stream_destroy(state->stream);
    KELP_ASSERT(state->stream == NULL);
    kelp_arena_deinit(&state->staging);
    kelp_arena_deinit(&state->batch);
    model->vtbl->destroy(model);
    kelp_free(allocator, state, sizeof *state);
}

/* ---- checks ---- */
kelp_status *kelp_compute_check_item(const kelp_compute_model *model, const kelp_infer_item *item,
                                     bool *out_adapt) {
    const kelp_compute_metadata *metadata = model->vtbl->metadata(model);
    size_t total = 0;
    *out_adapt = false;
    for (size_t i = 0; i < metadata->input_count; i++) {
        const kelp_io_info *info = &metadata->inputs[i];
        const kelp_tensor *tensor = &item->inputs[i];
        KELP_TRY(kelp_io_check_dtype(info, tensor));
        kelp_placing placement = kelp_compute_decide_placement(metadata->input_placements, tensor);
        if (placement == KELP_PLACING_IMPOSSIBLE)
            return KELP_ERROR(KELP_UNIMPLEMENTED,
                              "input '%s' is on a device that provider '%s' cannot read: "
                              "device type %d, id %d%s",
                              info->name, model->state->backend->name,
                              (int)tensor->device.device_type, (int)tensor->device.device_id,
                              kelp_tensor_is_compact(tensor) ? "" : ", with gaps");
        *out_adapt |= placement == KELP_PLACING_ADAPT;
        total += kelp_tensor_bytes(tensor);
    }
    if (metadata->max_input_bytes > 0 && total > metadata->max_input_bytes)
        return KELP_ERROR(KELP_OUT_OF_RANGE,
                          "the inputs have %zu bytes: the model accepts at most %zu", total,
                          metadata->max_input_bytes);
    for (size_t i = 0; i < metadata->output_count; i++) {
        const kelp_tensor *tensor = &item->outputs[i];
        if (tensor->data != NULL && kelp_compute_decide_placement(metadata->output_placements,
                                                                  tensor) != KELP_PLACING_ZERO_COPY)
            return KELP_ERROR(KELP_UNIMPLEMENTED,
                              "output '%s' is on a device that provider '%s' cannot write: "
                              "device type %d, id %d%s",
                              metadata->outputs[i].name, model->state->backend->name,
                              (int)tensor->device.device_type, (int)tensor->device.device_id,
                              kelp_tensor_is_compact(tensor) ? "" : ", with gaps");
    }
    return NULL;
}

kelp_status *kelp_compute_check_outputs(const kelp_compute_model *model,
                                        const kelp_infer_item *item) {
    const kelp_compute_metadata *metadata = model->vtbl->metadata(model);
    size_t total = 0;
    for (size_t i = 0; metadata->max_output_bytes > 0 && i < metadata->output_count; i++)
        total += kelp_tensor_bytes(&item->outputs[i]);
    if (total > metadata->max_output_bytes)
        return KELP_ERROR(KELP_OUT_OF_RANGE,
                          "the outputs have %zu bytes: the model declares at most %zu", total,
                          metadata->max_output_bytes);
    return NULL;
}

kelp_status *kelp_compute_check_owner(const kelp_compute_model *model) {
    if (!model->state->ready)
        return KELP_ERROR(KELP_FAILED_PRECONDITION,
                          "the model is not initialized: call kelp_compute_init first");
    return model->state->stream == NULL
               ? NULL
               : KELP_ERROR(KELP_FAILED_PRECONDITION,
                            "a stream owns the model: submit to the stream, or fork the model");
}

/* ---- inference ---- */
kelp_status *kelp_compute_run_item(kelp_compute_model *model, kelp_infer_item *item) {
    bool adapt;
    kelp_infer_item adapted;
    KELP_ASSERT(model->state != NULL);
    KELP_TRY(kelp_compute_check_item(model, item, &adapt));
    if (adapt) {
        kelp_arena_clear(&model->state->staging);
        KELP_TRY(kelp_compute_adapt(model, item, &adapted));
        KELP_TRY(model->vtbl->infer_one(model, &adapted));
    } else {
        KELP_TRY(model->vtbl->infer_one(model, item));
    }
    return kelp_compute_check_outputs(model, item);
}

kelp_status *kelp_compute_infer_one(kelp_compute_model *model, kelp_infer_item *item) {
    KELP_TRY(kelp_compute_check_owner(model));
    return kelp_compute_run_item(model, item);
}

kelp_status *kelp_compute_infer_shapes(kelp_compute_model *model, kelp_infer_item *item) {
    bool adapt;
    kelp_infer_item adapted = *item;
    KELP_TRY(kelp_compute_check_owner(model));
    KELP_TRY(kelp_compute_check_item(model, item, &adapt));
    if (adapt) {
        kelp_arena_clear(&model->state->staging);
        KELP_TRY(kelp_compute_adapt(model, item, &adapted));
    }
    if (model->vtbl->infer_shapes != NULL)
        return model->vtbl->infer_shapes(model, &adapted);
    const kelp_compute_metadata *metadata = model->vtbl->metadata(model);
    for (size_t i = 0; i < metadata->output_count; i++)
        item->outputs[i] = (kelp_tensor){.dtype = metadata->outputs[i].dtype, .rank = -1};
    return NULL;
}

/* ---- state ---- */
kelp_status *kelp_compute_init(kelp_compute_model *model) {
    if (model->state->ready)
        return NULL;
    KELP_TRY(model->vtbl->init(model));
    model->state->ready = true;
    return NULL;
}

kelp_status *kelp_compute_drain(kelp_compute_model *model) {
    if (model->state->stream != NULL)
        kelp_compute_stream_wait(model->state->stream);
    return model->vtbl->drain(model);
}

kelp_status *kelp_compute_reset(kelp_compute_model *model) {
    if (model->state->stream != NULL)
        kelp_compute_stream_wait(model->state->stream);
    return model->vtbl->reset(model);
}

void kelp_compute_set_interrupt(kelp_compute_model *model, kelp_interrupt_fn fn, void *userp) {
    size_t known = offsetof(kelp_compute_model_vtbl, set_interrupt);
    if (model->vtbl->struct_size > known && model->vtbl->set_interrupt != NULL)
        model->vtbl->set_interrupt(model, fn, userp);
}

const kelp_compute_metadata *kelp_compute_metadata_of(const kelp_compute_model *model) {
    return model->vtbl->metadata(model);
}

kelp_compute_copies kelp_compute_copies_of(const kelp_compute_model *model) {
    return model->state->copies;
}
