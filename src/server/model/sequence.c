/* SPDX-License-Identifier: Apache-2.0 */
/* The execution of sequences: implicit state and null requests. */
#include "server/model/sequence.h"

#include "base/assert.h"
#include "base/fs.h"
#include "server/core/error.h"
#include "server/core/log.h"
#include "server/model/model.h"
#include "server/request/response.h"
#include "server/scheduler/sequence_policy.h"

/* ---- initial states ---- */

static kelp_status *read_file(const kelp_model *model, const kelp_config_state *state,
                              kelp_buf *out) {
    enum { MAX_BYTES = 1 << 30 };
    kelp_allocator heap = model->base.host->allocator;
    char *directory = NULL, *path = NULL;
    kelp_status *status = kelp_fs_join(heap, model->directory, "initial_state", &directory);
    if (status == NULL)
        status = kelp_fs_join(heap, directory, state->initial_file, &path);
    if (status == NULL)
        status = kelp_fs_read(path, MAX_BYTES, out);
    kelp_free_string(heap, directory);
    kelp_free_string(heap, path);
    return status;
}

static kelp_status *load_initial(const kelp_model *model, const kelp_config_state *state,
                                 kelp_buf *file, kelp_initial_state *out) {
    size_t size_bytes = 0;
    KELP_TRY(kelp_state_initial_bytes(state, &size_bytes));
    if (state->initial_file[0] == '\0')
        return NULL;
    KELP_TRY(read_file(model, state, file));
    if (state->data_type != TRITONSERVER_TYPE_BYTES && file->length != size_bytes)
        return KELP_ERROR(KELP_INVALID_ARGUMENT, "'%s': expected %zu bytes, found %zu",
                          state->initial_file, size_bytes, file->length);
    *out = (kelp_initial_state){file->data != NULL ? file->data : "", file->length};
    return NULL;
}

static kelp_status *load_states(const kelp_model *model, kelp_sequencer *sequencer) {
    kelp_allocator heap = model->base.host->allocator;
    const kelp_config_sequence *config = model->base.config->sequence;
    size_t count = config->state_count;
    KELP_TRY(
        kelp_alloc_zero(heap, count, sizeof *sequencer->initial, (void **)&sequencer->initial));
    sequencer->state_count = count;
    KELP_TRY(kelp_alloc_zero(heap, count, sizeof *sequencer->files, (void **)&sequencer->files));
    for (size_t i = 0; i < count; i++)
        kelp_buf_init(&sequencer->files[i], heap);
    for (size_t i = 0; i < count; i++) {
        kelp_status *status =
            load_initial(model, &config->states[i], &sequencer->files[i], &sequencer->initial[i]);
        if (status != NULL)
            return KELP_ANNOTATE(status, "model '%s': initial state '%s' of state '%s'",
                                 model->base.name, config->states[i].initial_name,
                                 config->states[i].input_name);
    }
    return NULL;
}

static kelp_status *fill(kelp_model *model, kelp_sequencer *sequencer) {
    kelp_allocator heap = model->base.host->allocator;
    const kelp_model_config *config = model->base.config;
    KELP_TRY(load_states(model, sequencer));
    if (config->sequence->state_count == 0)
        return NULL;
    uint32_t slots = kelp_sequence_instances(config) * config->sequence->slots;
    KELP_TRY(kelp_alloc_zero(heap, slots, sizeof *sequencer->slots, (void **)&sequencer->slots));
    sequencer->slot_count = slots;
    return kelp_alloc_zero(heap, slots, sizeof *sequencer->nulls, (void **)&sequencer->nulls);
}

kelp_status *kelp_sequencer_create(kelp_model *model, kelp_sequencer **out) {
    kelp_allocator heap = model->base.host->allocator;
    kelp_sequencer *sequencer = NULL;
    if (model->base.config->sequence == NULL)
        return NULL;
    KELP_TRY(KELP_NEW(heap, kelp_sequencer, &sequencer));
    kelp_status *status = fill(model, sequencer);
    if (status != NULL)
        kelp_sequencer_destroy(sequencer, heap);
    else
        *out = sequencer;
    return status;
}

void kelp_sequencer_destroy(kelp_sequencer *sequencer, kelp_allocator allocator) {
    if (sequencer == NULL)
        return;
    for (uint32_t i = 0; i < sequencer->slot_count; i++) {
        kelp_sequence_states_deinit(&sequencer->slots[i]);
        if (sequencer->nulls != NULL)
            kelp_sequence_states_deinit(&sequencer->nulls[i]);
    }
    for (size_t i = 0; sequencer->files != NULL && i < sequencer->state_count; i++)
        kelp_buf_deinit(&sequencer->files[i]);
    kelp_free(allocator, sequencer->slots, sequencer->slot_count * sizeof *sequencer->slots);
    kelp_free(allocator, sequencer->nulls, sequencer->slot_count * sizeof *sequencer->nulls);
    kelp_free(allocator, sequencer->files, sequencer->state_count * sizeof *sequencer->files);
    kelp_free(allocator, sequencer->initial, sequencer->state_count * sizeof *sequencer->initial);
    kelp_free(allocator, sequencer, sizeof *sequencer);
}

/* ---- states of requests ---- */

/* Allocates the states of a slot when it is first used. */
static kelp_status *open_states(const kelp_model *model, kelp_sequence_states *states) {
    if (states->items != NULL)
        return NULL;
    return kelp_sequence_states_init(states, model->base.host->allocator,
                                     model->base.config->sequence);
}

static bool is_batched(const kelp_model *model) {
    return model->base.config->max_batch_size > 0;
}

/* Sets the controls and states of a request that executes in a slot. */
static kelp_status *prepare(const kelp_model *model, kelp_request *request) {
    kelp_request_set_controls(request, true);
    if (model->sequencer->slots == NULL)
        return NULL;
    KELP_ASSERT(request->slot < model->sequencer->slot_count);
    kelp_sequence_states *states = &model->sequencer->slots[request->slot];
    KELP_TRY(open_states(model, states));
    if (request->flags & TRITONSERVER_REQUEST_FLAG_SEQUENCE_START)
        KELP_TRY(kelp_sequence_states_reset(states, model->sequencer->initial, is_batched(model)));
    kelp_request_bind_states(request, states);
    return NULL;
}

kelp_status *kelp_instance_prepare_sample(kelp_instance *instance, kelp_request *request,
                                          uint32_t index) {
    const kelp_config_sequence *config = instance->model->base.config->sequence;
    if (index >= config->slots)
        return KELP_ERROR(KELP_INVALID_ARGUMENT,
                          "expected at most one request for each of the %u slots of an instance",
                          config->slots);
    request->flags =
        TRITONSERVER_REQUEST_FLAG_SEQUENCE_START | TRITONSERVER_REQUEST_FLAG_SEQUENCE_END;
    request->correlation_id = index + 1;
    request->slot = instance->base.policy_index * config->slots + index;
    KELP_TRY(kelp_request_enter_sequence(request));
    return prepare(instance->model, request);
}

/* ---- null requests ---- */

static void release_null(TRITONSERVER_InferenceRequest *request, uint32_t flags, void *userp) {
    (void)flags, (void)userp;
    kelp_server_log_status("cannot delete a null request",
                           kelp_request_delete((kelp_request *)request));
}

static void drop_response(TRITONSERVER_InferenceResponse *response, uint32_t flags, void *userp) {
    (void)flags, (void)userp;
    if (response != NULL)
        kelp_response_delete((kelp_response *)response);
}

static TRITONSERVER_Error *allocate(TRITONSERVER_ResponseAllocator *allocator, const char *name,
                                    size_t size_bytes, TRITONSERVER_MemoryType type, int64_t id,
                                    void *userp, void **buffer, void **buffer_userp,
                                    TRITONSERVER_MemoryType *actual_type, int64_t *actual_id) {
    (void)allocator, (void)name, (void)type, (void)id;
    *buffer = NULL;
    *buffer_userp = userp; /* the host, which outlives the response */
    *actual_type = TRITONSERVER_MEMORY_CPU;
    *actual_id = 0;
    return kelp_to_error(
        kelp_alloc(((const kelp_request_host *)userp)->allocator, size_bytes, buffer));
}

static TRITONSERVER_Error *deallocate(TRITONSERVER_ResponseAllocator *allocator, void *buffer,
                                      void *buffer_userp, size_t size_bytes,
                                      TRITONSERVER_MemoryType type, int64_t id) {
    (void)allocator, (void)type, (void)id;
    kelp_free(((const kelp_request_host *)buffer_userp)->allocator, buffer, size_bytes);
    return NULL;
}

static kelp_response_allocator null_allocator = {.alloc_fn = allocate, .release_fn = deallocate};

/* Returns a zeroed buffer of the request, which all of its inputs share. */
static kelp_status *reserve_zeros(kelp_request *request, size_t size_bytes) {
    kelp_request_sequence *part = request->sequence;
    if (size_bytes <= part->zeros_capacity)
        return NULL;
    KELP_TRY(kelp_grow(request->home->allocator, (void **)&part->zeros, &part->zeros_capacity,
                       size_bytes, 1));
    memset(part->zeros, 0, part->zeros_capacity);
    return NULL;
}

/* Returns the size of the data of zeros in place of an input: strings become empty. */
static size_t size_of_zeros(const kelp_input *like) {
    size_t elements = 1;
    if (like->datatype != TRITONSERVER_TYPE_BYTES)
        return like->data.size_bytes;
    for (uint32_t i = 0; i < like->client_rank; i++)
        elements *= (size_t)like->client_shape[i]; /* at most the number of strings that it has */
    return 4 * elements;
}

/* Adds the inputs of another request, with zeros as data. A null request requests no outputs. */
static kelp_status *copy_inputs(kelp_request *request, const kelp_request *like) {
    size_t count = like->input_count - like->added_inputs, largest = 0;
    for (size_t i = 0; i < count; i++)
        if (size_of_zeros(like->inputs[i]) > largest)
            largest = size_of_zeros(like->inputs[i]);
    KELP_TRY(reserve_zeros(request, largest));
    for (size_t i = 0; i < count; i++) {
        const kelp_input *from = like->inputs[i];
        const kelp_buffer_attributes attributes = {.size_bytes = size_of_zeros(from),
                                                   .memory_type = TRITONSERVER_MEMORY_CPU};
        kelp_input *input = NULL;
        KELP_TRY(kelp_request_add_input(request, kelp_text_get(&from->name), from->datatype,
                                        from->client_shape, from->client_rank, &input));
        KELP_TRY(kelp_request_append(request, input, NULL, request->sequence->zeros, &attributes));
        input->rank = from->rank;
        memcpy(input->shape, from->shape, from->rank * sizeof *input->shape);
    }
    return NULL;
}

static kelp_status *fill_null(const kelp_model *model, kelp_request *request,
                              const kelp_request *like, uint32_t slot) {
    kelp_sequencer *sequencer = model->sequencer;
    request->is_null = true;
    request->release_fn = release_null;
    request->response_fn = drop_response;
    request->allocator = &null_allocator;
    request->allocator_userp = model->base.host;
    KELP_TRY(kelp_request_reserve_sequence(request));
    KELP_TRY(copy_inputs(request, like));
    KELP_TRY(kelp_request_enter_sequence(request));
    kelp_request_set_controls(request, false);
    if (sequencer->nulls != NULL) {
        kelp_sequence_states *states = &sequencer->nulls[slot];
        KELP_TRY(open_states(model, states));
        if (!states->in_use) /* else a backend still holds an earlier null request */
            KELP_TRY(kelp_sequence_states_zero(states, like->states));
        kelp_request_bind_states(request, states);
    }
    return kelp_request_begin_again(request);
}

/* Creates an executing request for an empty slot, with the shapes of another one. */
static kelp_status *create_null(kelp_model *model, const kelp_request *like, uint32_t slot,
                                kelp_request **out) {
    kelp_request_pool *pool = kelp_request_pool_of_thread(&model->base.host->pools);
    kelp_request *request = NULL;
    pthread_mutex_lock(&pool->lock);
    kelp_request *pooled = kelp_request_pool_take(pool);
    pthread_mutex_unlock(&pool->lock);
    kelp_model_retain(&model->base);
    KELP_TRY(kelp_request_create(&model->base, model->base.version, pooled, &request));
    kelp_status *status = fill_null(model, request, like, slot);
    if (status == NULL) {
        *out = request;
        return NULL;
    }
    kelp_request_leave_sequence(request);
    release_null((TRITONSERVER_InferenceRequest *)request, 0, NULL);
    return status;
}

/* ---- execution ---- */

/* Prepares requests, and fails those for which there is no memory. Returns the number of the
 * others, which are moved to the front. */
static uint32_t prepare_all(kelp_instance *instance, kelp_request **requests, uint32_t count) {
    uint32_t kept = 0;
    for (uint32_t i = 0; i < count; i++) {
        kelp_request *request = requests[i];
        if (request->replaces_run)
            KELP_SERVER_LOG(KELP_LOG_WARNING,
                            "sequence %s%llu for model '%s' has a conflict. The previous sequence "
                            "did not end before this sequence start. Previous sequence will be "
                            "terminated early.",
                            kelp_text_get(&request->correlation_string),
                            (unsigned long long)request->correlation_id, request->model->name);
        request->replaces_run = false;
        kelp_status *status = prepare(instance->model, request);
        if (status == NULL)
            requests[kept++] = request;
        else
            kelp_request_reject(request, &instance->base.stats, status);
        kelp_status_free(status);
    }
    return kept;
}

/* Inserts null requests for the slots without a request. Returns the number of all requests; 0 if
 * memory is exhausted, and all requests have failed. */
static uint32_t pad(kelp_instance *instance, kelp_request *const *requests, uint32_t count,
                    kelp_request **out_all) {
    const uint32_t slots = instance->model->base.config->sequence->slots;
    uint32_t span = requests[0]->span, next = 0, at = 0;
    uint32_t first = requests[0]->slot / slots * slots;
    kelp_status *status = NULL;
    KELP_ASSERT(span >= count && span <= KELP_MAX_EXECUTION_REQUESTS);
    for (uint32_t i = 0; i < span && status == NULL; i++) {
        if (next < count && requests[next]->slot == first + i)
            out_all[at++] = requests[next++];
        else
            status = create_null(instance->model, requests[0], first + i, &out_all[at++]);
    }
    if (status == NULL)
        return at;
    at--; /* the null request that failed */
    for (uint32_t i = 0; i < at; i++)
        if (out_all[i]->is_null)
            kelp_request_fail(out_all[i], status);
    for (uint32_t i = 0; i < count; i++)
        kelp_request_reject(requests[i], &instance->base.stats, status);
    kelp_status_free(status);
    return 0;
}

void kelp_instance_execute_sequences(kelp_instance_base *base, kelp_request **requests,
                                     uint32_t count) {
    kelp_instance *instance = (kelp_instance *)base;
    kelp_request *all[KELP_MAX_EXECUTION_REQUESTS];
    count = prepare_all(instance, requests, count);
    if (count == 0)
        return;
    if (requests[0]->span <= count) {
        kelp_instance_execute(base, requests, count);
        return;
    }
    count = pad(instance, requests, count, all);
    if (count > 0)
        kelp_instance_execute(base, all, count);
}
