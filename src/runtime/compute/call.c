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
                          kelp_compute_model *take_model, kelp_compute_model **out) {
    struct kelp_compute_state *state = NULL;
    kelp_status *status = NULL;
    KELP_ASSERT(backend != NULL && backend->capabilities != NULL); /* checked at registration */
    kelp_compute_capabilities capabilities = backend->capabilities(backend->self);
    if (capabilities.device_streams != (take_model->vtbl->submit != NULL))
        status = KELP_ERROR(KELP_INVALID_ARGUMENT,
                            "provider '%s' %s device streams, but its models have %s submit",
                            backend->name, capabilities.device_streams ? "declares" : "denies",
                            take_model->vtbl->submit ? "a" : "no");
    if (status == NULL)
        status =
            check_types(backend, capabilities.dtype_mask, take_model->vtbl->metadata(take_model));
    if (status == NULL)
        status = KELP_NEW(allocator, struct kelp_compute_state, &state);
    if (status != NULL) {
        take_model->vtbl->destroy(take_model);
        return status;
    }
    state->allocator = allocator;
    state->backend = backend;
    state->capabilities = capabilities;
    kelp_arena_init(&state->staging, allocator, 0);
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
        return adopt(kelp_runtime_allocator(runtime), backend, model, out);
    }
    /* the bytes were transferred to this function: release them on failure too */
    if (artifact->release != NULL)
        artifact->release(artifact->userp);
    return status;
}

kelp_status *kelp_compute_fork(kelp_compute_model *model, kelp_compute_model **out) {
    kelp_compute_model *fork = NULL;
    if (model->vtbl->fork == NULL)
        return KELP_ERROR(KELP_UNIMPLEMENTED, "models of provider '%s' cannot be forked",
                          model->state->backend->name);
    KELP_TRY(model->vtbl->fork(model, &fork));
    return adopt(model->state->allocator, model->state->backend, fork, out);
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

static kelp_status *check_outputs(const kelp_compute_model *model, const kelp_infer_item *item) {
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

static kelp_status *check_owner(const kelp_compute_model *model) {
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
    return check_outputs(model, item);
}

kelp_status *kelp_compute_infer_one(kelp_compute_model *model, kelp_infer_item *item) {
    KELP_TRY(check_owner(model));
    return kelp_compute_run_item(model, item);
}

static kelp_status *batch_by_loop(kelp_compute_model *model, kelp_infer_item *items, size_t count,
                                  kelp_batch_mode mode) {
    for (size_t i = 0; i < count; i++) {
        kelp_status *status = kelp_compute_run_item(model, &items[i]);
        if (status != NULL && mode == KELP_BATCH_STOP_AT_FIRST)
            return KELP_ANNOTATE(status, "item %zu of a batch of %zu", i, count);
        items[i].status = status;
    }
    return NULL;
}

/* Passes sequences of items that pass the checks to the provider. An item that needs a copy runs
 * alone. */
static kelp_status *batch_by_provider(kelp_compute_model *model, kelp_infer_item *items,
                                      size_t count, kelp_batch_mode mode) {
    size_t begin = 0;
    KELP_ASSERT(model->vtbl->infer_batch != NULL);
    while (begin < count) {
        size_t end = begin;
        bool adapt = false;
        kelp_status *failed = NULL;
        while (end < count && failed == NULL && !adapt) {
            failed = kelp_compute_check_item(model, &items[end], &adapt);
            end += failed == NULL && !adapt;
        }
        kelp_status *status =
            end > begin ? model->vtbl->infer_batch(model, items + begin, end - begin, mode) : NULL;
        for (size_t i = begin; status == NULL && i < end; i++) {
            if (items[i].status == NULL)
                items[i].status = check_outputs(model, &items[i]);
            if (mode == KELP_BATCH_STOP_AT_FIRST) {
                status = items[i].status;
                items[i].status = NULL;
            }
        }
        if (status != NULL) {
            kelp_status_free(failed);
            return KELP_ANNOTATE(status, "items %zu to %zu of a batch of %zu", begin, end - 1,
                                 count);
        }
        if (adapt)
            failed = kelp_compute_run_item(model, &items[end]);
        if (failed != NULL && mode == KELP_BATCH_STOP_AT_FIRST)
            return KELP_ANNOTATE(failed, "item %zu of a batch of %zu", end, count);
        if (end < count)
            items[end].status = failed;
        begin = end + 1;
    }
    return NULL;
}

kelp_status *kelp_compute_infer_batch(kelp_compute_model *model, kelp_infer_item *items,
                                      size_t count, kelp_batch_mode mode) {
    size_t max_batch = model->state->capabilities.max_batch;
    KELP_TRY(check_owner(model));
    for (size_t i = 0; i < count; i++)
        items[i].status = NULL;
    if (max_batch > 0 && count > max_batch)
        return KELP_ERROR(KELP_OUT_OF_RANGE,
                          "the batch has %zu items: provider '%s' accepts at most %zu", count,
                          model->state->backend->name, max_batch);
    if (model->vtbl->infer_batch != NULL)
        return batch_by_provider(model, items, count, mode);
    return batch_by_loop(model, items, count, mode);
}

#define CHUNK_ITEMS 32
kelp_status *kelp_compute_infer_arrays(kelp_compute_model *model, const kelp_tensor *inputs,
                                       size_t input_count, kelp_tensor *outputs,
                                       size_t output_count) {
    const kelp_compute_metadata *metadata = model->vtbl->metadata(model);
    if (metadata->input_count != 1 || metadata->output_count != 1)
        return KELP_ERROR(KELP_INVALID_ARGUMENT,
                          "the model has %zu inputs and %zu outputs: arrays need one of each",
                          metadata->input_count, metadata->output_count);
    if (input_count != output_count)
        return KELP_ERROR(KELP_INVALID_ARGUMENT,
                          "the arrays differ in length: %zu inputs, %zu outputs", input_count,
                          output_count);
    size_t max_batch = model->state->capabilities.max_batch;
    if (max_batch > 0 && input_count > max_batch)
        return KELP_ERROR(KELP_OUT_OF_RANGE,
                          "the batch has %zu items: provider '%s' accepts at most %zu", input_count,
                          model->state->backend->name, max_batch);
    for (size_t begin = 0; begin < input_count; begin += CHUNK_ITEMS) {
        kelp_infer_item items[CHUNK_ITEMS];
        size_t count = 0;
        for (; count < CHUNK_ITEMS && begin + count < input_count; count++)
            items[count] = (kelp_infer_item){.inputs = &inputs[begin + count],
                                             .outputs = &outputs[begin + count]};
        kelp_status *status =
            kelp_compute_infer_batch(model, items, count, KELP_BATCH_STOP_AT_FIRST);
        if (status != NULL)
            return begin == 0
                       ? status
                       : KELP_ANNOTATE(status, "counted from item %zu of %zu", begin, input_count);
    }
    return NULL;
}

kelp_status *kelp_compute_infer_shapes(kelp_compute_model *model, kelp_infer_item *item) {
    bool adapt;
    kelp_infer_item adapted = *item;
    KELP_TRY(check_owner(model));
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
