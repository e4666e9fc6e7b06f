/* SPDX-License-Identifier: Apache-2.0 */
/* The inputs that the server adds to requests of sequences. */
#include "server/request/sequence.h"

#include "base/assert.h"
#include "base/str.h"

#include <stdatomic.h>

static const kelp_config_sequence *config_of(const kelp_request *request) {
    KELP_ASSERT(request->model->config->sequence != NULL);
    return request->model->config->sequence;
}

/* Returns a correlation ID for a request that has none: above those that clients usually choose. */
static uint64_t generate_id(void) {
    static atomic_ullong last;
    return ((uint64_t)1 << 62) + atomic_fetch_add_explicit(&last, 1, memory_order_relaxed) + 1;
}

static bool has_id(const kelp_request *request) {
    return request->correlation_is_string ? kelp_text_get(&request->correlation_string)[0] != '\0'
                                          : request->correlation_id != 0;
}

/* ---- the correlation ID as an input ---- */

static void set_corrid_text(kelp_request_sequence *part, const char *text, size_t length) {
    KELP_ASSERT(length <= KELP_SEQUENCE_ID_CHARACTERS);
    for (size_t i = 0; i < 4; i++)
        part->corrid[i] = (uint8_t)(length >> (8 * i));
    memcpy(part->corrid + 4, text, length);
    part->corrid_bytes = (uint32_t)length + 4;
}

/* Writes the ID in the type of the control. */
static kelp_status *set_corrid(const kelp_request *request, const kelp_config_control *control) {
    kelp_request_sequence *part = request->sequence;
    if (control->data_type == TRITONSERVER_TYPE_BYTES) {
        char digits[20];
        const char *text = kelp_text_get(&request->correlation_string);
        if (request->correlation_is_string || request->is_null)
            set_corrid_text(part, text, strlen(text));
        else
            set_corrid_text(part, digits, kelp_format_u64(request->correlation_id, digits));
        return NULL;
    }
    if (request->correlation_is_string)
        return KELP_ERROR(KELP_INVALID_ARGUMENT,
                          KELP_REQUEST_TAG "model '%s' expects a number as the correlation ID, "
                                           "found the string '%s'",
                          kelp_request_tag(request), request->model->name,
                          kelp_text_get(&request->correlation_string));
    uint64_t wide = request->correlation_id;
    uint32_t narrow = (uint32_t)wide;
    part->corrid_bytes = TRITONSERVER_DataTypeByteSize(control->data_type);
    KELP_ASSERT(part->corrid_bytes == 4 || part->corrid_bytes == 8);
    memcpy(part->corrid, part->corrid_bytes == 8 ? (const void *)&wide : &narrow,
           part->corrid_bytes);
    return NULL;
}

/* ---- inputs ---- */

static kelp_status *add_control(kelp_request *request, const kelp_config_control *control) {
    kelp_request_sequence *part = request->sequence;
    const int64_t shape[2] = {1, 1};
    kelp_buffer_attributes attributes = {.size_bytes = control->size_bytes};
    const void *data = NULL;
    kelp_input *input = NULL;
    if (control->kind == KELP_CONTROL_CORRID) {
        KELP_TRY(set_corrid(request, control));
        data = part->corrid;
        attributes.size_bytes = part->corrid_bytes;
    } else {
        data = part->values[control->kind];
    }
    KELP_TRY(kelp_request_add_input(request, control->name, control->data_type, shape,
                                    request->model->config->max_batch_size > 0 ? 2 : 1, &input));
    request->added_inputs++;
    return kelp_request_append(request, input, NULL, data, &attributes);
}

/* Adds the input of a state with memory for one block, which kelp_request_bind_states sets. */
static kelp_status *add_state(kelp_request *request, const kelp_config_state *state) {
    const kelp_buffer_attributes attributes = {.size_bytes = 1};
    kelp_input *input = NULL;
    KELP_TRY(kelp_request_add_input(request, state->input_name, state->data_type, NULL, 0, &input));
    request->added_inputs++;
    return kelp_request_append(request, input, NULL, request->sequence->values, &attributes);
}

static kelp_status *add_inputs(kelp_request *request) {
    const kelp_config_sequence *config = config_of(request);
    for (size_t i = 0; i < config->control_count; i++)
        KELP_TRY(add_control(request, &config->controls[i]));
    for (size_t i = 0; i < config->state_count; i++)
        KELP_TRY(add_state(request, &config->states[i]));
    return NULL;
}

kelp_status *kelp_request_reserve_sequence(kelp_request *request) {
    if (request->sequence != NULL)
        return NULL;
    return KELP_NEW(request->home->allocator, kelp_request_sequence, &request->sequence);
}

kelp_status *kelp_request_enter_sequence(kelp_request *request) {
    KELP_ASSERT(request->added_inputs == 0 && !request->has_generated_id);
    kelp_allocator allocator = request->home->allocator;
    bool iterative = config_of(request)->iterative && !request->is_null;
    KELP_TRY(kelp_request_reserve_sequence(request));
    if (((request->flags & TRITONSERVER_REQUEST_FLAG_SEQUENCE_START) || iterative) &&
        request->sequence->spare == NULL)
        KELP_TRY(KELP_NEW(allocator, kelp_sequence, &request->sequence->spare));
    request->client_flags = request->flags;
    if (iterative)
        request->flags = TRITONSERVER_REQUEST_FLAG_SEQUENCE_START;
    request->has_generated_id = iterative && !has_id(request);
    if (request->has_generated_id) {
        request->correlation_id = generate_id();
        request->correlation_is_string = false;
    }
    request->in_sequence = true;
    kelp_status *status = add_inputs(request);
    if (status != NULL)
        kelp_request_leave_sequence(request);
    return status;
}

void kelp_request_set_controls(kelp_request *request, bool ready) {
    const kelp_config_sequence *config = config_of(request);
    const bool values[] = {
        [KELP_CONTROL_START] = (request->flags & TRITONSERVER_REQUEST_FLAG_SEQUENCE_START) != 0,
        [KELP_CONTROL_READY] = ready,
        [KELP_CONTROL_END] = (request->flags & TRITONSERVER_REQUEST_FLAG_SEQUENCE_END) != 0};
    for (size_t i = 0; i < config->control_count; i++) {
        const kelp_config_control *control = &config->controls[i];
        if (control->kind != KELP_CONTROL_CORRID)
            memcpy(request->sequence->values[control->kind],
                   control->values[ready && values[control->kind]], control->size_bytes);
    }
}

void kelp_request_bind_states(kelp_request *request, kelp_sequence_states *states) {
    KELP_ASSERT(request->added_inputs >= states->count);
    size_t first = request->input_count - states->count;
    for (size_t i = 0; i < states->count; i++) {
        const kelp_state *state = &states->items[i];
        const kelp_state_tensor *tensor = &state->tensor;
        kelp_input *input = request->inputs[first + i];
        KELP_ASSERT(input->data.capacity > 0);
        input->datatype = tensor->data_type;
        input->rank = input->client_rank = tensor->rank;
        memcpy(input->shape, tensor->shape, tensor->rank * sizeof *input->shape);
        memcpy(input->client_shape, tensor->shape, tensor->rank * sizeof *input->client_shape);
        input->data.count = tensor->size_bytes > 0;
        input->data.size_bytes = tensor->size_bytes;
        input->data.blocks[0] =
            (kelp_data_block){.base = state->buffers[state->current].data,
                              .attributes = {.size_bytes = tensor->size_bytes,
                                             .memory_type = TRITONSERVER_MEMORY_CPU}};
        states->items[i].is_new = false;
    }
    states->in_use = true;
    request->states = states;
}

void kelp_request_leave_sequence(kelp_request *request) {
    if (!request->in_sequence)
        return;
    KELP_ASSERT(request->input_count >= request->added_inputs);
    request->input_count -= request->added_inputs;
    request->added_inputs = 0;
    request->flags = request->client_flags;
    if (request->has_generated_id)
        request->correlation_id = 0;
    request->has_generated_id = request->in_sequence = false;
    if (request->states != NULL)
        request->states->in_use = false;
    request->states = NULL;
}

void kelp_request_free_sequence(kelp_request *request) {
    kelp_allocator allocator = request->home->allocator;
    kelp_request_sequence *part = request->sequence;
    if (part == NULL)
        return;
    kelp_free(allocator, part->zeros, part->zeros_capacity);
    kelp_free(allocator, part->spare, sizeof *part->spare);
    kelp_free(allocator, part, sizeof *part);
    request->sequence = NULL;
}
