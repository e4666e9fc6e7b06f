/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The batching strategy of a backend: TRITONBACKEND_ModelBatch*. TRITONBACKEND_Batcher is a pointer
 * to sdk_batcher, and the state of a batch a pointer to sdk_batch.
 */
#include "sdk/sdk.h"

#include <stddef.h>
#include <stdlib.h>

typedef struct sdk_batcher sdk_batcher;

/* A batch in formation. */
typedef struct sdk_batch {
    sdk_batcher *batcher;
    max_align_t state[]; /* of the backend */
} sdk_batch;

/* The strategy of a model. A server forms one batch at a time, so that the state of the first one
 * is kept for the next ones. */
struct sdk_batcher {
    kelp_backend_model *model;
    sdk_batch *kept;
    atomic_flag is_kept_used;
};

static sdk_batch *batch_create(sdk_batcher *batcher) {
    size_t size_bytes;
    if (!kelp_size_add(sizeof(sdk_batch), batcher->model->host->definition->batch_state_bytes,
                       &size_bytes))
        return NULL;
    sdk_batch *batch = calloc(1, size_bytes);
    if (batch != NULL)
        batch->batcher = batcher;
    return batch;
}

TRITONSERVER_Error *kelp_backend_entry_batcher_initialize(const kelp_backend_definition *definition,
                                                          TRITONBACKEND_Batcher **out,
                                                          TRITONBACKEND_Model *raw) {
    void *state = NULL;
    TRITONSERVER_Error *error = TRITONBACKEND_ModelState(raw, &state);
    if (error != NULL)
        return error;
    kelp_backend_model *model = state;
    if (model == NULL || model->host->definition != definition)
        return kelp_backend_error(KELP_ERROR(
            KELP_INVALID_ARGUMENT, "the batching strategy of backend '%s' is only for its models",
            definition->name));
    sdk_batcher *batcher = calloc(1, sizeof *batcher);
    if (batcher != NULL) {
        batcher->model = model;
        batcher->kept = batch_create(batcher);
    }
    if (batcher == NULL || batcher->kept == NULL) {
        free(batcher);
        return kelp_backend_error(kelp_status_oom());
    }
    atomic_flag_clear(&batcher->is_kept_used);
    *out = (TRITONBACKEND_Batcher *)batcher;
    return NULL;
}

TRITONSERVER_Error *kelp_backend_entry_batcher_finalize(TRITONBACKEND_Batcher *raw) {
    sdk_batcher *batcher = (sdk_batcher *)raw;
    if (batcher != NULL)
        free(batcher->kept);
    free(batcher);
    return NULL;
}

TRITONSERVER_Error *kelp_backend_entry_batch_initialize(const TRITONBACKEND_Batcher *raw,
                                                        void **userp) {
    sdk_batcher *batcher = (sdk_batcher *)(uintptr_t)raw;
    sdk_batch *batch = batcher->kept;
    if (atomic_flag_test_and_set(&batcher->is_kept_used))
        batch = batch_create(batcher);
    else
        memset(batch->state, 0, batcher->model->host->definition->batch_state_bytes);
    *userp = batch;
    return batch != NULL ? NULL : kelp_backend_error(kelp_status_oom());
}

TRITONSERVER_Error *kelp_backend_entry_batch_include(TRITONBACKEND_Request *raw, void *userp,
                                                     bool *should_include) {
    sdk_batch *batch = userp;
    kelp_backend_model *model = batch->batcher->model;
    kelp_backend_request request = {.raw = raw};
    request.batch = kelp_sdk_request_batch(model, raw);
    kelp_arena_init(&request.arena, kelp_allocator_system(), 0);
    *should_include = false;
    kelp_status *status =
        model->host->definition->batch_include(model, batch->state, &request, should_include);
    kelp_arena_deinit(&request.arena);
    return kelp_backend_error(status);
}

TRITONSERVER_Error *kelp_backend_entry_batch_finalize(void *userp) {
    sdk_batch *batch = userp;
    if (batch == NULL)
        return NULL;
    if (batch == batch->batcher->kept)
        atomic_flag_clear(&batch->batcher->is_kept_used);
    else
        free(batch);
    return NULL;
}
