/* SPDX-License-Identifier: Apache-2.0 */
/* Inputs and requested outputs of a request. Removed objects are kept for the next use. */
#include "server/request/sequence.h"

#include "base/assert.h"
#include "base/checked.h"

static void data_clear(kelp_data *data) {
    data->count = 0;
    data->size_bytes = 0;
}

static void data_deinit(kelp_allocator allocator, kelp_data *data) {
    kelp_free(allocator, data->blocks, data->capacity * sizeof *data->blocks);
    *data = (kelp_data){0};
}

static void input_free(kelp_allocator allocator, kelp_input *input) {
    kelp_text_deinit(allocator, &input->name);
    data_deinit(allocator, &input->data);
    for (size_t i = 0; i < input->policy_count; i++) {
        kelp_text_deinit(allocator, &input->policies[i].policy);
        data_deinit(allocator, &input->policies[i].data);
    }
    kelp_free(allocator, input->policies, input->policy_capacity * sizeof *input->policies);
    kelp_free(allocator, input, sizeof *input);
}

kelp_input *kelp_request_find_input(const kelp_request *request, const char *name) {
    for (size_t i = 0; i < request->input_count; i++)
        if (strcmp(kelp_text_get(&request->inputs[i]->name), name) == 0)
            return request->inputs[i];
    return NULL;
}

kelp_status *kelp_request_get_input(const kelp_request *request, const char *name,
                                    kelp_input **out) {
    kelp_input *input = kelp_request_find_input(request, name);
    if (input == NULL)
        return KELP_ERROR(KELP_INVALID_ARGUMENT,
                          KELP_REQUEST_TAG "input '%s' does not exist in request",
                          kelp_request_tag(request), name);
    *out = input;
    return NULL;
}

/* Names are compared with all others, so that the time for a list from a client must have a limit.
 * A few more than the model has are accepted: normalize.c reports their names. */
static kelp_status *check_count(const kelp_request *request, const char *kind, size_t count,
                                size_t model_count) {
    enum { MAX_EXTRA = 64 };
    if (count < model_count + MAX_EXTRA)
        return NULL;
    return KELP_ERROR(KELP_INVALID_ARGUMENT,
                      KELP_REQUEST_TAG "too many %ss: model '%s' has %zu, found more than %zu",
                      kelp_request_tag(request), kind,
                      request->model != NULL ? request->model->name : "", model_count, count);
}

/* Returns the number of inputs of a model, with those that the server adds. */
static size_t count_inputs(const kelp_model_base *model) {
    if (model == NULL)
        return 0;
    const kelp_config_sequence *sequence = model->config->sequence;
    return model->config->input_count +
           (sequence != NULL ? sequence->control_count + sequence->state_count : 0);
}

kelp_status *kelp_request_add_input(kelp_request *request, const char *name,
                                    TRITONSERVER_DataType datatype, const int64_t *shape,
                                    uint64_t rank, kelp_input **out) {
    KELP_ASSERT(request->input_count <= request->input_spare);
    KELP_ASSERT(request->input_spare <= request->input_capacity);
    kelp_allocator allocator = request->home->allocator;
    if (kelp_request_find_input(request, name) != NULL)
        return KELP_ERROR(KELP_ALREADY_EXISTS,
                          KELP_REQUEST_TAG "input '%s' already exists in request",
                          kelp_request_tag(request), name);
    KELP_TRY(check_count(request, "input", request->input_count, count_inputs(request->model)));
    if (rank > KELP_SERVER_MAX_RANK)
        return KELP_ERROR(KELP_INVALID_ARGUMENT,
                          KELP_REQUEST_TAG "input '%s' has %llu dimensions: expected at most %d",
                          kelp_request_tag(request), name, (unsigned long long)rank,
                          KELP_SERVER_MAX_RANK);
    if (request->input_count == request->input_spare) {
        KELP_TRY(kelp_grow(allocator, (void **)&request->inputs, &request->input_capacity,
                           request->input_count + 1, sizeof *request->inputs));
        KELP_TRY(KELP_NEW(allocator, kelp_input, &request->inputs[request->input_count]));
        request->input_spare++;
    }
    kelp_input *input = request->inputs[request->input_count];
    KELP_TRY(kelp_text_set(allocator, &input->name, name));
    kelp_input_clear_data(input);
    input->datatype = datatype;
    input->client_rank = input->rank = (uint32_t)rank;
    for (uint32_t i = 0; i < rank; i++)
        input->client_shape[i] = input->shape[i] = shape[i];
    request->input_count++;
    if (out != NULL)
        *out = input;
    return NULL;
}

kelp_status *kelp_request_add_raw_input(kelp_request *request, const char *name) {
    if (request->input_count > 0)
        return KELP_ERROR(KELP_INVALID_ARGUMENT,
                          KELP_REQUEST_TAG "raw input '%s' can't be added to request with other "
                                           "inputs",
                          kelp_request_tag(request), name);
    KELP_TRY(kelp_request_add_input(request, name, TRITONSERVER_TYPE_INVALID, NULL, 0, NULL));
    request->raw_input = true;
    return NULL;
}

kelp_status *kelp_request_remove_input(kelp_request *request, const char *name) {
    for (size_t i = 0; i < request->input_count; i++) {
        kelp_input *input = request->inputs[i];
        if (strcmp(kelp_text_get(&input->name), name) != 0)
            continue;
        memmove(&request->inputs[i], &request->inputs[i + 1],
                (request->input_count - i - 1) * sizeof *request->inputs);
        request->inputs[--request->input_count] = input;
        request->raw_input = false;
        return NULL;
    }
    return KELP_ERROR(KELP_INVALID_ARGUMENT,
                      KELP_REQUEST_TAG "input '%s' does not exist in request",
                      kelp_request_tag(request), name);
}

void kelp_request_remove_inputs(kelp_request *request) {
    request->input_count = 0;
    request->raw_input = false;
}

void kelp_input_clear_data(kelp_input *input) {
    data_clear(&input->data);
    for (size_t i = 0; i < input->policy_count; i++)
        data_clear(&input->policies[i].data);
}

static kelp_status *data_of_policy(kelp_allocator allocator, kelp_input *input, const char *policy,
                                   kelp_data **out) {
    for (size_t i = 0; i < input->policy_count; i++)
        if (strcmp(kelp_text_get(&input->policies[i].policy), policy) == 0) {
            *out = &input->policies[i].data;
            return NULL;
        }
    KELP_TRY(kelp_grow(allocator, (void **)&input->policies, &input->policy_capacity,
                       input->policy_count + 1, sizeof *input->policies));
    kelp_policy_data *entry = &input->policies[input->policy_count];
    *entry = (kelp_policy_data){0};
    KELP_TRY(kelp_text_set(allocator, &entry->policy, policy));
    input->policy_count++;
    *out = &entry->data;
    return NULL;
}

kelp_status *kelp_request_append(kelp_request *request, kelp_input *input, const char *policy,
                                 const void *base, const kelp_buffer_attributes *attributes) {
    kelp_allocator allocator = request->home->allocator;
    kelp_data *data = &input->data;
    if (policy != NULL)
        KELP_TRY(data_of_policy(allocator, input, policy, &data));
    if (attributes->size_bytes == 0)
        return NULL;
    size_t total;
    if (!kelp_size_add(data->size_bytes, attributes->size_bytes, &total))
        return KELP_ERROR(KELP_INVALID_ARGUMENT, "data of input '%s' is too large",
                          kelp_text_get(&input->name));
    KELP_TRY(kelp_grow(allocator, (void **)&data->blocks, &data->capacity, data->count + 1,
                       sizeof *data->blocks));
    data->blocks[data->count++] = (kelp_data_block){.base = base, .attributes = *attributes};
    data->size_bytes = total;
    return NULL;
}

const kelp_data *kelp_input_data(const kelp_input *input, const char *policy) {
    for (size_t i = 0; policy != NULL && i < input->policy_count; i++)
        if (input->policies[i].data.count > 0 &&
            strcmp(kelp_text_get(&input->policies[i].policy), policy) == 0)
            return &input->policies[i].data;
    return &input->data;
}

/* ---- outputs ---- */

kelp_status *kelp_request_add_output(kelp_request *request, const char *name) {
    KELP_ASSERT(request->output_count <= request->output_capacity);
    kelp_allocator allocator = request->home->allocator;
    size_t at = 0;
    for (; at < request->output_count; at++) {
        int order = strcmp(kelp_text_get(&request->outputs[at]), name);
        if (order == 0)
            return NULL;
        if (order > 0)
            break;
    }
    KELP_TRY(check_count(request, "requested output", request->output_count,
                         request->model != NULL ? request->model->config->output_count : 0));
    size_t old = request->output_capacity;
    KELP_TRY(kelp_grow(allocator, (void **)&request->outputs, &request->output_capacity,
                       request->output_count + 1, sizeof *request->outputs));
    if (request->output_capacity > old)
        memset(&request->outputs[old], 0,
               (request->output_capacity - old) * sizeof *request->outputs);
    kelp_text text = request->outputs[request->output_count];
    kelp_status *status = kelp_text_set(allocator, &text, name);
    if (status != NULL) {
        request->outputs[request->output_count] = text;
        return status;
    }
    memmove(&request->outputs[at + 1], &request->outputs[at],
            (request->output_count - at) * sizeof *request->outputs);
    request->outputs[at] = text;
    request->output_count++;
    return NULL;
}

void kelp_request_remove_output(kelp_request *request, const char *name) {
    KELP_ASSERT(request->output_count <= request->output_capacity);
    for (size_t i = 0; i < request->output_count; i++) {
        kelp_text text = request->outputs[i];
        if (strcmp(kelp_text_get(&text), name) != 0)
            continue;
        memmove(&request->outputs[i], &request->outputs[i + 1],
                (request->output_count - i - 1) * sizeof *request->outputs);
        request->outputs[--request->output_count] = text;
        return;
    }
}

void kelp_request_trim(kelp_request *request) {
    KELP_ASSERT(atomic_load(&request->state) != KELP_REQUEST_EXECUTING);
    kelp_allocator allocator = request->home->allocator;
    for (size_t i = 0; i < request->input_spare; i++)
        input_free(allocator, request->inputs[i]);
    kelp_free(allocator, request->inputs, request->input_capacity * sizeof *request->inputs);
    for (size_t i = 0; i < request->output_capacity; i++)
        kelp_text_deinit(allocator, &request->outputs[i]);
    kelp_free(allocator, request->outputs, request->output_capacity * sizeof *request->outputs);
    request->inputs = NULL;
    request->input_count = request->input_spare = request->input_capacity = 0;
    request->outputs = NULL;
    request->output_count = request->output_capacity = 0;
    kelp_params_deinit(allocator, &request->params);
    kelp_text_deinit(allocator, &request->id);
    kelp_text_deinit(allocator, &request->correlation_string);
    kelp_request_free_sequence(request);
}

void kelp_request_free(kelp_request *request) {
    KELP_ASSERT(request->model == NULL);
    kelp_allocator allocator = request->home->allocator;
    kelp_request_trim(request);
    kelp_free(allocator, request, sizeof *request);
}
