/* SPDX-License-Identifier: Apache-2.0 */
/* The implicit state of sequences. */
#include "server/request/states.h"

#include "base/alloc.h"
#include "base/assert.h"
#include "base/checked.h"

#include <string.h>

kelp_status *kelp_sequence_states_init(kelp_sequence_states *states, kelp_allocator allocator,
                                       const kelp_config_sequence *config) {
    *states = (kelp_sequence_states){.allocator = allocator};
    KELP_TRY(kelp_alloc_zero(allocator, config->state_count, sizeof *states->items,
                             (void **)&states->items));
    states->count = config->state_count;
    for (size_t i = 0; i < states->count; i++) {
        states->items[i].config = &config->states[i];
        states->items[i].owner = states;
    }
    return NULL;
}

void kelp_sequence_states_deinit(kelp_sequence_states *states) {
    for (size_t i = 0; i < states->count; i++)
        for (size_t k = 0; k < 2; k++)
            kelp_free(states->allocator, states->items[i].buffers[k].data,
                      states->items[i].buffers[k].capacity);
    kelp_free(states->allocator, states->items, states->count * sizeof *states->items);
    *states = (kelp_sequence_states){0};
}

kelp_status *kelp_state_initial_bytes(const kelp_config_state *config, size_t *out_bytes) {
    uint32_t element = TRITONSERVER_DataTypeByteSize(config->data_type);
    int64_t size_bytes = element ? element : 4; /* an empty string has only its length */
    for (uint32_t i = 0; i < config->initial_rank; i++)
        if (!kelp_i64_mul(size_bytes, config->initial_dims[i], &size_bytes))
            return KELP_ERROR(KELP_INVALID_ARGUMENT, "state '%s': the initial state is too large",
                              config->input_name);
    *out_bytes = (size_t)size_bytes;
    return NULL;
}

/* Ensures that there is memory for at least one byte. The contents are lost if it moves. */
static kelp_status *reserve(kelp_allocator allocator, kelp_state_buffer *buffer,
                            size_t size_bytes) {
    size_t wanted = size_bytes > 0 ? size_bytes : 1;
    void *data = NULL;
    if (wanted <= buffer->capacity)
        return NULL;
    KELP_TRY(kelp_alloc(allocator, wanted, &data));
    kelp_free(allocator, buffer->data, buffer->capacity);
    *buffer = (kelp_state_buffer){data, wanted};
    return NULL;
}

static kelp_status *set_initial(kelp_allocator allocator, kelp_state *state,
                                const kelp_initial_state *initial, bool batched) {
    const kelp_config_state *config = state->config;
    kelp_state_buffer *buffer = &state->buffers[state->current];
    kelp_state_tensor *tensor = &state->tensor;
    size_t size_bytes = initial->size_bytes;
    if (initial->data == NULL)
        KELP_TRY(kelp_state_initial_bytes(config, &size_bytes));
    KELP_TRY(reserve(allocator, buffer, size_bytes));
    if (initial->data != NULL)
        memcpy(buffer->data, initial->data, size_bytes);
    else
        memset(buffer->data, 0, size_bytes);
    tensor->size_bytes = size_bytes;
    tensor->data_type = config->data_type;
    tensor->rank = 0;
    if (batched)
        tensor->shape[tensor->rank++] = 1;
    for (uint32_t i = 0; i < config->initial_rank; i++)
        tensor->shape[tensor->rank++] = config->initial_dims[i];
    return NULL;
}

kelp_status *kelp_sequence_states_reset(kelp_sequence_states *states,
                                        const kelp_initial_state *initial, bool batched) {
    for (size_t i = 0; i < states->count; i++) {
        states->items[i].is_new = false;
        KELP_TRY(set_initial(states->allocator, &states->items[i], &initial[i], batched));
    }
    return NULL;
}

kelp_status *kelp_sequence_states_zero(kelp_sequence_states *states,
                                       const kelp_sequence_states *like) {
    KELP_ASSERT(states->count == like->count);
    for (size_t i = 0; i < states->count; i++) {
        kelp_state *state = &states->items[i];
        const kelp_state_tensor *tensor = &like->items[i].tensor;
        state->is_new = false;
        KELP_TRY(reserve(states->allocator, &state->buffers[state->current], tensor->size_bytes));
        memset(state->buffers[state->current].data, 0, tensor->size_bytes);
        state->tensor = *tensor;
    }
    return NULL;
}

kelp_state *kelp_sequence_states_find(const kelp_sequence_states *states, const char *output_name) {
    for (size_t i = 0; i < states->count; i++)
        if (strcmp(states->items[i].config->output_name, output_name) == 0)
            return &states->items[i];
    return NULL;
}

kelp_status *kelp_state_begin(kelp_state *state, TRITONSERVER_DataType data_type,
                              const int64_t *shape, uint32_t rank) {
    if (rank > KELP_SERVER_MAX_RANK)
        return KELP_ERROR(KELP_INVALID_ARGUMENT,
                          "state '%s' has %u dimensions: expected at most %d",
                          state->config->output_name, rank, KELP_SERVER_MAX_RANK);
    if (data_type != state->config->data_type)
        return KELP_ERROR(KELP_INVALID_ARGUMENT,
                          "state '%s' has type %s: the configuration declares %s",
                          state->config->output_name, TRITONSERVER_DataTypeString(data_type),
                          TRITONSERVER_DataTypeString(state->config->data_type));
    state->new_tensor = (kelp_state_tensor){.data_type = data_type, .rank = rank};
    if (rank > 0)
        memcpy(state->new_tensor.shape, shape, rank * sizeof *shape);
    state->target = state->config->same_buffer ? state->current : state->current ^ 1u;
    state->is_new = true;
    return NULL;
}

static kelp_status *check_new(const kelp_state *state) {
    if (state->is_new && state->owner->in_use)
        return NULL;
    return KELP_ERROR(KELP_INTERNAL, "state '%s' has no new value: %s", state->config->output_name,
                      state->owner->in_use ? "it was updated before" : "its request was released");
}

/* Moves a value that is replaced in place to a larger buffer. The current one stays as it is,
 * because the request may still read it. */
static kelp_status *move(kelp_state *state, size_t size_bytes) {
    unsigned other = state->current ^ 1u;
    const kelp_state_buffer *from = &state->buffers[state->current];
    bool generous = state->config->growable && size_bytes < SIZE_MAX / 2;
    KELP_TRY(reserve(state->owner->allocator, &state->buffers[other],
                     generous ? 2 * size_bytes : size_bytes));
    memcpy(state->buffers[other].data, from->data, state->tensor.size_bytes);
    state->target = other;
    return NULL;
}

kelp_status *kelp_state_memory(kelp_state *state, uint64_t size_bytes, void **out) {
    KELP_TRY(check_new(state));
    if (state->config->same_buffer && size_bytes > state->buffers[state->target].capacity)
        KELP_TRY(move(state, size_bytes));
    else
        KELP_TRY(reserve(state->owner->allocator, &state->buffers[state->target], size_bytes));
    state->new_tensor.size_bytes = size_bytes;
    state->attributes =
        (kelp_buffer_attributes){.size_bytes = size_bytes, .memory_type = TRITONSERVER_MEMORY_CPU};
    *out = state->buffers[state->target].data;
    return NULL;
}

kelp_status *kelp_state_update(kelp_state *state) {
    KELP_TRY(check_new(state));
    state->is_new = false;
    state->current = state->target;
    state->tensor = state->new_tensor;
    return NULL;
}
