/* SPDX-License-Identifier: Apache-2.0 */
/* The table of compute backends, and the checks that every call through it passes. */
#include "base/alloc.h"
#include "base/buf.h"
#include "engine/runtime.h"

#include <kelp/compute.h>

#include <string.h>

/* ---- table ---- */
kelp_status *kelp_compute_register(kelp_runtime *runtime, const kelp_compute_backend *backend) {
    if (backend->abi_version != KELP_COMPUTE_ABI_VERSION)
        return KELP_ERROR(KELP_INVALID_ARGUMENT,
                          "cannot register a compute backend of ABI version %u: this Kelp speaks "
                          "version %d",
                          backend->abi_version, KELP_COMPUTE_ABI_VERSION);
    if (backend->struct_size < sizeof *backend || backend->name == NULL ||
        backend->capabilities == NULL || backend->load_model == NULL)
        return KELP_ERROR(KELP_INVALID_ARGUMENT,
                          "cannot register compute backend '%s': name, capabilities and load_model "
                          "are required in a table of at least %zu bytes (found %u)",
                          backend->name ? backend->name : "(none)", sizeof *backend,
                          backend->struct_size);
    for (size_t i = 0; i < runtime->compute_count; i++)
        if (strcmp(runtime->compute[i]->name, backend->name) == 0)
            return KELP_ERROR(KELP_ALREADY_EXISTS, "compute backend '%s' is registered already",
                              backend->name);
    KELP_TRY(kelp_grow(runtime->allocator, (void **)&runtime->compute, &runtime->compute_capacity,
                       runtime->compute_count + 1, sizeof *runtime->compute));
    runtime->compute[runtime->compute_count++] = backend;
    return NULL;
}

size_t kelp_compute_count(const kelp_runtime *runtime) {
    return runtime->compute_count;
}

const kelp_compute_backend *kelp_compute_at(const kelp_runtime *runtime, size_t index) {
    return index < runtime->compute_count ? runtime->compute[index] : NULL;
}

kelp_status *kelp_compute_find(kelp_runtime *runtime, const char *name,
                               const kelp_compute_backend **out) {
    kelp_buf names;
    kelp_buf_init(&names, runtime->allocator);
    for (size_t i = 0; i < runtime->compute_count; i++) {
        if (strcmp(runtime->compute[i]->name, name) == 0) {
            *out = runtime->compute[i];
            kelp_buf_deinit(&names);
            return NULL;
        }
        kelp_buf_printf(&names, "%s%s", i ? ", " : "", runtime->compute[i]->name);
    }
    kelp_status *status = kelp_buf_status(&names);
    if (status == NULL)
        status = KELP_ERROR(KELP_NOT_FOUND, "there is no compute backend '%s': found %s", name,
                            runtime->compute_count ? kelp_buf_cstr(&names) : "none");
    kelp_buf_deinit(&names);
    return status;
}

/* ---- calls ---- */
kelp_status *kelp_compute_load(kelp_runtime *runtime, const char *backend_name,
                               const kelp_artifact *artifact, kelp_compute_model **out) {
    const kelp_compute_backend *backend = NULL;
    kelp_status *status = kelp_compute_find(runtime, backend_name, &backend);
    if (status == NULL && artifact->path == NULL && artifact->data == NULL)
        status = KELP_ERROR(KELP_INVALID_ARGUMENT,
                            "cannot load a model with backend '%s': the artifact has neither a "
                            "path nor bytes",
                            backend_name);
    if (status == NULL)
        return backend->load_model(backend->self, runtime, artifact, out);
    /* the bytes are handed over also when nobody takes them */
    if (artifact->release != NULL)
        artifact->release(artifact->userp);
    return status;
}

kelp_status *kelp_compute_init(kelp_compute_model *model) {
    return model->vtbl->init(model);
}

static kelp_status *check_item(const kelp_compute_metadata *metadata, const kelp_infer_item *item) {
    size_t total = 0;
    for (size_t i = 0; i < metadata->input_count; i++) {
        const kelp_io_info *info = &metadata->inputs[i];
        const kelp_tensor *tensor = &item->inputs[i];
        if (info->dtype != KELP_DTYPE_INVALID && info->dtype != tensor->dtype)
            return KELP_ERROR(KELP_INVALID_ARGUMENT,
                              "input '%s' has the wrong type: expected %s, found %s", info->name,
                              kelp_dtype_name(info->dtype), kelp_dtype_name(tensor->dtype));
        total += kelp_tensor_bytes(tensor);
    }
    if (metadata->max_input_bytes > 0 && total > metadata->max_input_bytes)
        return KELP_ERROR(KELP_OUT_OF_RANGE,
                          "the inputs have %zu bytes, more than the %zu that the model takes",
                          total, metadata->max_input_bytes);
    return NULL;
}

kelp_status *kelp_compute_infer_one(kelp_compute_model *model, kelp_infer_item *item) {
    KELP_TRY(check_item(model->vtbl->metadata(model), item));
    return model->vtbl->infer_one(model, item);
}

kelp_status *kelp_compute_infer_batch(kelp_compute_model *model, kelp_infer_item *items,
                                      size_t count, kelp_batch_mode mode) {
    const kelp_compute_metadata *metadata = model->vtbl->metadata(model);
    for (size_t i = 0; i < count; i++)
        items[i].status = NULL;
    if (model->vtbl->infer_batch != NULL) {
        for (size_t i = 0; i < count; i++)
            KELP_TRY(check_item(metadata, &items[i]));
        return model->vtbl->infer_batch(model, items, count, mode);
    }
    for (size_t i = 0; i < count; i++) {
        kelp_status *status = kelp_compute_infer_one(model, &items[i]);
        if (status != NULL && mode == KELP_BATCH_STOP_AT_FIRST)
            return KELP_ANNOTATE(status, "item %zu of a batch of %zu", i, count);
        items[i].status = status;
    }
    return NULL;
}

kelp_status *kelp_compute_infer_shapes(kelp_compute_model *model, kelp_infer_item *item) {
    KELP_TRY(check_item(model->vtbl->metadata(model), item));
    if (model->vtbl->infer_shapes != NULL)
        return model->vtbl->infer_shapes(model, item);
    const kelp_compute_metadata *metadata = model->vtbl->metadata(model);
    for (size_t i = 0; i < metadata->output_count; i++)
        item->outputs[i] = (kelp_tensor){.dtype = metadata->outputs[i].dtype, .rank = -1};
    return NULL;
}

kelp_status *kelp_compute_drain(kelp_compute_model *model) {
    return model->vtbl->drain(model);
}

kelp_status *kelp_compute_reset(kelp_compute_model *model) {
    return model->vtbl->reset(model);
}

const kelp_compute_metadata *kelp_compute_metadata_of(const kelp_compute_model *model) {
    return model->vtbl->metadata(model);
}

kelp_status *kelp_compute_fork(kelp_compute_model *model, kelp_compute_model **out) {
    if (model->vtbl->fork == NULL)
        return KELP_ERROR(KELP_UNIMPLEMENTED, "this provider's models cannot be forked");
    return model->vtbl->fork(model, out);
}

void kelp_compute_destroy(kelp_compute_model *model) {
    if (model != NULL)
        model->vtbl->destroy(model);
}
