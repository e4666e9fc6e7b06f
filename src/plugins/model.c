/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Inferences of models of the provider `kernels`. A submission has a session of its own, so that
 * several are in flight at once. They may end in any order, and are reported in order of
 * submission.
 */
#include "plugins/model.h"

#include "base/alloc.h"
#include "base/assert.h"

#include <string.h>

struct kelp_kernels_call {
    kelp_kernels_model *model;
    kelp_kernels_call *next; /* in a list of the model */
    kelp_kernel_session *session;
    const kelp_tensor *inputs[KELP_SIGNATURE_PARAMS];
    kelp_tensor results[KELP_SIGNATURE_PARAMS];
    struct {
        void *data;
        size_t size_bytes;
    } memory[KELP_SIGNATURE_PARAMS]; /* by output: used if the caller binds no memory */
    kelp_infer_item *item;
    /* submissions */
    kelp_kernel_run run;
    kelp_kernel_bound bound;
    void (*done)(void *userp, kelp_status *take_status);
    void *userp;
    kelp_status *status;
    bool finished;
};

/* ---- lifetime ---- */
kelp_status *kelp_kernels_call_create(kelp_kernels_model *model, kelp_kernels_call **out) {
    kelp_allocator allocator = kelp_runtime_allocator(model->runtime);
    kelp_kernels_call *call = NULL;
    KELP_TRY(KELP_NEW(allocator, kelp_kernels_call, &call));
    call->model = model;
    kelp_status *status = kelp_kernel_session_create(model->registry, NULL, &call->session);
    if (status != NULL) {
        kelp_free(allocator, call, sizeof *call);
        return status;
    }
    *out = call;
    return NULL;
}

void kelp_kernels_call_destroy(kelp_kernels_call *call) {
    if (call == NULL)
        return;
    kelp_allocator allocator = kelp_runtime_allocator(call->model->runtime);
    kelp_kernel_session_destroy(call->session);
    for (size_t i = 0; i < KELP_SIGNATURE_PARAMS; i++)
        kelp_free(allocator, call->memory[i].data, call->memory[i].size_bytes);
    kelp_free(allocator, call, sizeof *call);
}

void kelp_kernels_call_destroy_all(kelp_kernels_call *first) {
    while (first != NULL) {
        kelp_kernels_call *next = first->next;
        kelp_kernels_call_destroy(first); /* waits until the thread that ended it has returned */
        first = next;
    }
}

/* ---- arguments ---- */
static kelp_status *scalar_of(void *userp, const kelp_signature_param *p, kelp_kernel_arg *out) {
    return kelp_kernels_scalar_of(((const kelp_kernels_call *)userp)->model, p, out);
}

/* Returns the memory that the caller bound to the output, or the call's own. */
static kelp_status *memory_of(void *userp, size_t index, size_t size_bytes, void **out) {
    kelp_kernels_call *call = userp;
    const kelp_kernels_model *model = call->model;
    kelp_allocator allocator = kelp_runtime_allocator(model->runtime);
    KELP_ASSERT(call->item != NULL && index < model->metadata.output_count);
    const kelp_tensor *bound = &call->item->outputs[index];
    *out = bound->data;
    if (bound->data != NULL)
        return kelp_tensor_bytes(bound) >= size_bytes
                   ? NULL
                   : KELP_ERROR(KELP_OUT_OF_RANGE,
                                "the memory for output '%s' is too small: expected %zu bytes, "
                                "found %zu",
                                model->outputs[index].name, size_bytes, kelp_tensor_bytes(bound));
    if (call->memory[index].size_bytes < size_bytes || call->memory[index].data == NULL) {
        void *grown = NULL;
        KELP_TRY(kelp_alloc(allocator, size_bytes > 0 ? size_bytes : 1, &grown));
        kelp_free(allocator, call->memory[index].data, call->memory[index].size_bytes);
        call->memory[index].data = grown;
        call->memory[index].size_bytes = size_bytes > 0 ? size_bytes : 1;
    }
    *out = call->memory[index].data;
    return NULL;
}

static kelp_kernel_run run_of(kelp_kernels_call *call, kelp_infer_item *item,
                              kelp_tensor *results) {
    const kelp_kernels_model *model = call->model;
    KELP_ASSERT(model->kernel->typed); /* a model requires a signature */
    for (size_t i = 0; i < model->metadata.input_count; i++)
        call->inputs[i] = &item->inputs[i];
    call->item = item;
    return (kelp_kernel_run){.kernel = model->kernel,
                             .session = call->session,
                             .inputs = call->inputs,
                             .input_count = model->metadata.input_count,
                             .outputs = results,
                             .output_count = model->metadata.output_count,
                             .scalar = scalar_of,
                             .memory = memory_of,
                             .userp = call};
}

static void take_results(const kelp_kernels_call *call) {
    memcpy(call->item->outputs, call->results,
           call->model->metadata.output_count * sizeof *call->results);
}

/* ---- calls that wait ---- */
kelp_status *kelp_kernels_infer_shapes(kelp_compute_model *base, kelp_infer_item *item) {
    kelp_kernel_run run = run_of(((kelp_kernels_model *)base)->own, item, item->outputs);
    return kelp_kernel_shapes_on_tensors(&run);
}

kelp_status *kelp_kernels_infer_one(kelp_compute_model *base, kelp_infer_item *item) {
    kelp_kernels_call *call = ((kelp_kernels_model *)base)->own;
    kelp_kernel_run run = run_of(call, item, call->results);
    KELP_TRY(kelp_kernel_run_on_tensors(&run));
    take_results(call);
    return NULL;
}

/* ---- submissions ---- */
/* Ends a submission, and reports those that have ended and have no predecessor in flight. */
static void finish(kelp_kernels_call *call, kelp_status *take_status) {
    kelp_kernels_model *model = call->model;
    if (take_status == NULL)
        take_results(call);
    pthread_mutex_lock(&model->mutex);
    call->status = take_status;
    call->finished = true;
    while (model->first != NULL && model->first->finished) {
        kelp_kernels_call *ended = model->first;
        model->first = ended->next;
        if (model->first == NULL)
            model->last = NULL;
        ended->next = model->spare;
        model->spare = ended;
        ended->done(ended->userp, ended->status); /* in order, hence with the mutex */
    }
    pthread_mutex_unlock(&model->mutex);
}

/* Is called with the mutex of the session held, or before submit returns. */
static void on_done(void *userp) {
    kelp_kernels_call *call = userp;
    kelp_status *result = call->session->result;
    call->session->result = NULL;
    finish(call, result);
}

static kelp_status *take_call(kelp_kernels_model *model, kelp_kernels_call **out) {
    pthread_mutex_lock(&model->mutex);
    kelp_kernels_call *call = model->spare;
    if (call != NULL)
        model->spare = call->next;
    pthread_mutex_unlock(&model->mutex);
    if (call == NULL) {
        KELP_TRY(kelp_kernels_call_create(model, &call));
        call->session->on_done = on_done;
        call->session->on_done_userp = call;
    }
    *out = call;
    return NULL;
}

kelp_status *kelp_kernels_submit(kelp_compute_model *base, kelp_infer_item *item,
                                 void (*done)(void *userp, kelp_status *take_status), void *userp) {
    kelp_kernels_model *model = (kelp_kernels_model *)base;
    kelp_kernels_call *call = NULL;
    KELP_TRY(take_call(model, &call));
    call->run = run_of(call, item, call->results);
    call->done = done;
    call->userp = userp;
    call->finished = false;
    call->next = NULL;
    pthread_mutex_lock(&model->mutex);
    if (model->last != NULL)
        model->last->next = call;
    else
        model->first = call;
    model->last = call;
    pthread_mutex_unlock(&model->mutex);
    kelp_status *status = kelp_kernel_submit_on_tensors(&call->run, &call->bound);
    if (status != NULL)
        finish(call, status);
    return NULL;
}
