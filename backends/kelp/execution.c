/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs requests. The outputs of a single request are written directly into the response's buffers
 * if their shapes are known before the inference. The requests of a batch run as one inference, and
 * their parts of its outputs are copied to the responses.
 */
#include "execution.h"

#include "config.h"

#include <stdlib.h>
#include <string.h>

/* ---- memory ---- */

/* Allocates `count` elements; at least one, because the model may have no inputs or outputs. */
static void *new_array(size_t count, size_t rows, size_t element_bytes) {
    return count > SIZE_MAX / (rows + 1) ? NULL : calloc(count * rows + 1, element_bytes);
}

static void free_arrays(kelp_execution *execution) {
    free(execution->items);
    free(execution->inputs);
    free(execution->outputs);
    free(execution->requested);
    free(execution->requests);
}

static kelp_status *reserve(kelp_execution *execution, size_t count) {
    const kelp_compute_metadata *metadata = execution->metadata;
    kelp_execution grown = *execution;
    if (count <= execution->capacity)
        return NULL;
    grown.items = new_array(count, 1, sizeof *grown.items);
    grown.inputs = new_array(metadata->input_count, count, sizeof *grown.inputs);
    grown.outputs = new_array(metadata->output_count, count, sizeof *grown.outputs);
    grown.requested = new_array(metadata->output_count, count, sizeof *grown.requested);
    grown.requests = (kelp_backend_request **)new_array(count, 1, sizeof(kelp_backend_request *));
    if (grown.items == NULL || grown.inputs == NULL || grown.outputs == NULL ||
        grown.requested == NULL || grown.requests == NULL) {
        free_arrays(&grown);
        return kelp_status_oom();
    }
    for (size_t k = 0; k < count; k++)
        grown.items[k] = (kelp_infer_item){.inputs = grown.inputs + k * metadata->input_count,
                                           .outputs = grown.outputs + k * metadata->output_count};
    grown.capacity = count;
    free_arrays(execution);
    *execution = grown;
    return NULL;
}

/* Interrupts an inference if all of its requests were cancelled. */
static bool is_cancelled(void *userp) {
    const kelp_execution *execution = userp;
    for (size_t k = 0; k < execution->request_count; k++)
        if (!kelp_backend_request_is_cancelled(execution->requests[k]))
            return false;
    return true;
}

/* Returns the memory of a preferred kind. Triton has no type for shared memory. */
static kelp_backend_memory memory_of(kelp_memory_class preferred, kelp_placements accepted) {
    int64_t device = 0;
    if (preferred == KELP_MEMORY_PINNED)
        return (kelp_backend_memory){TRITONSERVER_MEMORY_CPU_PINNED, 0};
    if (preferred != KELP_MEMORY_DEVICE)
        return KELP_BACKEND_HOST_MEMORY;
    while (device < 15 && (accepted & KELP_PLACED_DEVICE(device)) == 0)
        device++;
    if ((accepted & KELP_PLACED_DEVICE(device)) == 0)
        device = 0;
    return (kelp_backend_memory){TRITONSERVER_MEMORY_GPU, device};
}

/* Notes the outputs that are states of sequences. */
static kelp_status *find_states(kelp_execution *execution, const kelp_backend_model *of) {
    const kelp_compute_metadata *metadata = execution->metadata;
    const kelp_backend_value *states = kelp_backend_value_get(kelp_model_sequence(of), "state");
    execution->states = calloc(metadata->output_count + 1, sizeof(const char *));
    if (execution->states == NULL)
        return kelp_status_oom();
    for (const kelp_backend_value *state = kelp_backend_value_first(states); state != NULL;
         state = kelp_backend_value_next(state)) {
        const char *name =
            kelp_backend_value_text(kelp_backend_value_get(state, "output_name"), "");
        for (size_t i = 0; i < metadata->output_count; i++)
            if (strcmp(metadata->outputs[i].name, name) == 0)
                execution->states[i] = metadata->outputs[i].name;
        execution->has_states = true;
    }
    if (execution->has_states && execution->ragged->inputs != NULL)
        return KELP_ERROR(KELP_UNIMPLEMENTED,
                          "model '%s': a model with batch_input or batch_output cannot have states "
                          "in sequence_batching",
                          kelp_backend_model_name(of));
    execution->resets = kelp_model_resets(of);
    return NULL;
}

kelp_status *kelp_execution_init(kelp_execution *execution, const kelp_backend_model *of,
                                 size_t max_items) {
    execution->metadata = kelp_compute_metadata_of(execution->model);
    KELP_TRY(find_states(execution, of));
    execution->input_memory =
        memory_of(execution->metadata->preferred_input, execution->metadata->input_placements);
    execution->output_memory =
        memory_of(execution->metadata->preferred_output, execution->metadata->output_placements);
    execution->max_items = max_items;
    KELP_TRY(reserve(execution, 1));
    kelp_compute_set_interrupt(execution->model, is_cancelled, execution);
    return NULL;
}

void kelp_execution_deinit(kelp_execution *execution) {
    free_arrays(execution);
    free(execution->states);
}

/* ---- inputs and outputs of request k ---- */

static bool *requested_of(const kelp_execution *execution, size_t k) {
    return execution->requested + k * execution->metadata->output_count;
}

static void find_requested(kelp_execution *execution, size_t k) {
    const kelp_compute_metadata *metadata = execution->metadata;
    const kelp_backend_request *request = execution->requests[k];
    bool *requested = requested_of(execution, k);
    size_t count = kelp_backend_request_output_count(request);
    memset(requested, 0, metadata->output_count * sizeof *requested);
    for (size_t n = 0; n < count; n++) {
        const char *name = kelp_backend_request_output_name(request, n);
        for (size_t i = 0; i < metadata->output_count; i++)
            if (name != NULL && strcmp(metadata->outputs[i].name, name) == 0)
                requested[i] = true;
    }
}

static kelp_status *read_inputs(kelp_execution *execution, size_t k) {
    const kelp_compute_metadata *metadata = execution->metadata;
    kelp_tensor *inputs = execution->inputs + k * metadata->input_count;
    bool on_host = execution->input_memory.type == TRITONSERVER_MEMORY_CPU;
    for (size_t i = 0; i < metadata->input_count; i++) {
        const char *name = metadata->inputs[i].name;
        if (on_host)
            KELP_TRY(kelp_backend_input(execution->requests[k], name, KELP_DTYPE_INVALID,
                                        KELP_ANY_RANK, &inputs[i]));
        else
            KELP_TRY(kelp_backend_input_in(execution->requests[k], name, KELP_DTYPE_INVALID,
                                           KELP_ANY_RANK, execution->input_memory, &inputs[i]));
    }
    find_requested(execution, k);
    return NULL;
}

/* Binds the outputs to the response's buffers if all shapes are known. */
static kelp_status *place_outputs(kelp_execution *execution, kelp_backend_response *response,
                                  bool *out_placed) {
    const kelp_compute_metadata *metadata = execution->metadata;
    kelp_tensor *outputs = execution->outputs;
    *out_placed = true;
    for (size_t i = 0; i < metadata->output_count; i++) {
        outputs[i].data = NULL;
        if (outputs[i].rank < 0 || outputs[i].dtype == KELP_STRING)
            *out_placed = false;
    }
    bool on_host = execution->output_memory.type == TRITONSERVER_MEMORY_CPU;
    for (size_t i = 0; *out_placed && i < metadata->output_count; i++) {
        const char *name = metadata->outputs[i].name;
        if (execution->requested[i] && on_host)
            KELP_TRY(kelp_backend_output_tensor(response, name, &outputs[i]));
        else if (execution->requested[i])
            KELP_TRY(kelp_backend_output_in(response, name, execution->output_memory, &outputs[i]));
    }
    return NULL;
}

static kelp_status *put_outputs(const kelp_execution *execution, size_t k,
                                kelp_backend_response *response) {
    const kelp_compute_metadata *metadata = execution->metadata;
    const kelp_tensor *outputs = execution->items[k].outputs;
    for (size_t i = 0; i < metadata->output_count; i++)
        if (requested_of(execution, k)[i])
            KELP_TRY(kelp_backend_put_tensor(response, metadata->outputs[i].name, &outputs[i]));
    return NULL;
}

/* Stores the states of a request for the next one of its sequence. */
static kelp_status *put_states(const kelp_execution *execution, size_t k) {
    const kelp_compute_metadata *metadata = execution->metadata;
    for (size_t i = 0; execution->has_states && i < metadata->output_count; i++)
        if (execution->states[i] != NULL)
            KELP_TRY(kelp_backend_put_state(execution->requests[k], execution->states[i],
                                            &execution->items[k].outputs[i]));
    return NULL;
}

/* ---- one request ---- */

static kelp_status *run_one(kelp_execution *execution, kelp_backend_instance *instance,
                            kelp_backend_request *request) {
    kelp_backend_response *response = NULL;
    bool placed = false;
    execution->requests[0] = request; /* is_cancelled reads it, also during shape inference */
    execution->request_count = 1;
    if (execution->resets && kelp_backend_request_is_start(request))
        KELP_TRY(kelp_compute_reset(execution->model));
    KELP_TRY(read_inputs(execution, 0));
    KELP_TRY(kelp_backend_respond(request, &response));
    KELP_TRY(kelp_compute_infer_shapes(execution->model, execution->items));
    KELP_TRY(place_outputs(execution, response, &placed));
    kelp_backend_compute_begins(instance);
    kelp_status *status = kelp_compute_infer_one(execution->model, execution->items);
    kelp_backend_compute_ends(instance);
    if (status == NULL && !placed)
        status = put_outputs(execution, 0, response);
    if (status == NULL)
        status = put_states(execution, 0);
    return status;
}

static void run_each(kelp_execution *execution, kelp_backend_instance *instance,
                     kelp_backend_request **requests, size_t count) {
    for (size_t k = 0; k < count; k++) {
        kelp_status *status = run_one(execution, instance, requests[k]);
        if (status != NULL)
            kelp_backend_fail(requests[k], status);
    }
}

/* ---- batches ---- */

/* Reads the inputs of the requests. Requests without valid inputs fail and are left out. */
static void prepare(kelp_execution *execution, kelp_backend_request **requests, size_t count) {
    size_t outputs = execution->metadata->output_count;
    execution->request_count = 0;
    for (size_t n = 0; n < count; n++) {
        size_t k = execution->request_count;
        execution->requests[k] = requests[n];
        kelp_status *status = read_inputs(execution, k);
        if (status != NULL)
            kelp_backend_fail(requests[n], status);
        else
            execution->request_count++;
    }
    memset(execution->outputs, 0, execution->request_count * outputs * sizeof(kelp_tensor));
}

static void respond(kelp_execution *execution) {
    for (size_t k = 0; k < execution->request_count; k++) {
        kelp_backend_response *response = NULL;
        kelp_status *status = execution->items[k].status;
        execution->items[k].status = NULL;
        if (status == NULL)
            status = kelp_backend_respond(execution->requests[k], &response);
        if (status == NULL)
            status = put_outputs(execution, k, response);
        if (status == NULL)
            status = put_states(execution, k);
        if (status != NULL)
            kelp_backend_fail(execution->requests[k], status);
    }
}

static void fail_all(kelp_backend_request **requests, size_t count, kelp_status *take_status) {
    for (size_t k = 0; k < count; k++)
        kelp_backend_fail(requests[k], kelp_status_clone(take_status));
    kelp_status_free(take_status);
}

static void run_batch(kelp_execution *execution, kelp_backend_instance *instance,
                      kelp_backend_request **requests, size_t count) {
    kelp_status *status = reserve(execution, count);
    if (status != NULL) {
        fail_all(requests, count, status);
        return;
    }
    prepare(execution, requests, count);
    status = kelp_compute_infer_batch(execution->model, execution->items, execution->request_count,
                                      KELP_BATCH_EACH);
    kelp_backend_compute_ends(instance);
    if (status == NULL) {
        respond(execution);
        return;
    }
    for (size_t k = 0; k < execution->request_count; k++)
        kelp_status_free(execution->items[k].status);
    fail_all(execution->requests, execution->request_count, status);
}

/* ---- ragged batches ---- */

/* Runs requests as one inference or, if it fails, each by itself. */
static void run_ragged(kelp_execution *execution, kelp_backend_instance *instance,
                       kelp_backend_request **requests, size_t count) {
    kelp_status *status = reserve(execution, count);
    if (status == NULL) {
        memcpy(execution->requests, requests, count * sizeof *requests); /* for is_cancelled */
        execution->request_count = count;
        status = kelp_ragged_infer(execution->ragged, execution->model, requests, count,
                                   execution->inputs, execution->outputs);
    }
    kelp_backend_compute_ends(instance);
    if (status != NULL && count > 1) {
        kelp_status_free(status);
        for (size_t k = 0; k < count; k++)
            run_ragged(execution, instance, &requests[k], 1);
        return;
    }
    if (status == NULL)
        status = kelp_ragged_respond(execution->ragged, execution->metadata, requests, count,
                                     execution->outputs);
    if (status != NULL)
        fail_all(requests, count, status);
}

kelp_status *kelp_execution_run(kelp_execution *execution, kelp_backend_instance *instance,
                                kelp_backend_request **requests, size_t count) {
    size_t step = execution->max_items != 0 ? execution->max_items : count;
    if (execution->ragged->inputs != NULL) {
        kelp_backend_compute_begins(instance);
        run_ragged(execution, instance, requests, count);
        return NULL;
    }
    if (count == 1)
        return run_one(execution, instance, requests[0]);
    if (execution->metadata->preferred_output == KELP_MEMORY_DEVICE) {
        run_each(execution, instance, requests, count); /* into the buffers on the device */
        return NULL;
    }
    kelp_backend_compute_begins(instance);
    for (size_t begin = 0; begin < count; begin += step)
        run_batch(execution, instance, requests + begin,
                  count - begin < step ? count - begin : step);
    return NULL;
}
