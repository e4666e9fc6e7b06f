/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Inference calls to other models of the same server. The server delivers responses and the release
 * of the request on any thread, possibly within the start.
 */
#include "sdk/call.h"

#include "base/triton/convert.h"

#include <stdlib.h>

/* ---- memory of outputs ---- */

static TRITONSERVER_Error *allocate(TRITONSERVER_ResponseAllocator *allocator, const char *name,
                                    size_t size_bytes, TRITONSERVER_MemoryType type, int64_t id,
                                    void *userp, void **buffer, void **buffer_userp,
                                    TRITONSERVER_MemoryType *actual_type, int64_t *actual_id) {
    (void)allocator;
    (void)name;
    (void)type;
    (void)id;
    (void)userp;
    *buffer = NULL;
    *buffer_userp = NULL;
    *actual_type = TRITONSERVER_MEMORY_CPU;
    *actual_id = 0;
    if (size_bytes && posix_memalign(buffer, KELP_TENSOR_ALIGNMENT, size_bytes) != 0)
        return kelp_backend_error(kelp_status_oom());
    return NULL;
}

static TRITONSERVER_Error *release(TRITONSERVER_ResponseAllocator *allocator, void *buffer,
                                   void *buffer_userp, size_t size_bytes,
                                   TRITONSERVER_MemoryType type, int64_t id) {
    (void)allocator;
    (void)buffer_userp;
    (void)size_bytes;
    (void)type;
    (void)id;
    free(buffer);
    return NULL;
}

/* ---- the end ---- */

static void call_free(kelp_backend_call *call);

void kelp_sdk_call_retain(kelp_backend_call *call) {
    pthread_mutex_lock(&call->lock);
    KELP_ASSERT(call->refs > 0);
    call->refs++;
    pthread_mutex_unlock(&call->lock);
}

void kelp_sdk_call_release(kelp_backend_call *call) {
    pthread_mutex_lock(&call->lock);
    KELP_ASSERT(call->refs > 0);
    bool last = --call->refs == 0;
    pthread_mutex_unlock(&call->lock);
    if (last)
        call_free(call);
}

/* Claims the right to end the call. */
static bool claim_end(kelp_backend_call *call) {
    pthread_mutex_lock(&call->lock);
    bool claimed = !call->ended;
    call->ended = true;
    pthread_mutex_unlock(&call->lock);
    return claimed;
}

static void mark_over(kelp_backend_call *call) {
    if (call->parent != NULL)
        (void)sdk_ok(TRITONBACKEND_ResponseFactoryDelete(call->parent));
    call->parent = NULL;
    pthread_mutex_lock(&call->lock);
    call->in_last = false;
    call->over = true;
    pthread_cond_broadcast(&call->changed);
    pthread_mutex_unlock(&call->lock);
}

/* Runs the last callback, and wakes waiting threads. The caller claimed the end, and holds a
 * reference. */
static void finish(kelp_backend_call *call) {
    kelp_sdk_watch_remove(call->watch, call);
    if (call->fn != NULL) {
        pthread_mutex_lock(&call->lock);
        call->in_last = true;
        call->last_thread = pthread_self();
        pthread_mutex_unlock(&call->lock);
        call->fn(call, NULL, true, call->userp);
    }
    mark_over(call);
}

void kelp_sdk_call_abort(kelp_backend_call *call, kelp_status *take_failure) {
    if (!claim_end(call)) {
        kelp_status_free(take_failure);
        return;
    }
    pthread_mutex_lock(&call->turn);
    call->closed = true;
    if (call->failure == NULL) { /* otherwise the callback has received a failure */
        if (call->fn != NULL)
            call->fn(call, take_failure, false, call->userp);
        call->failure = take_failure;
        take_failure = NULL;
    }
    pthread_mutex_unlock(&call->turn);
    kelp_status_free(take_failure);
    kelp_backend_call_cancel(call); /* the server may respond at once: the call is closed */
    finish(call);
}

/* Returns true if the server has finished with the call. The caller holds the lock. */
static bool is_complete(kelp_backend_call *call) {
    KELP_ASSERT_HELD(&call->lock);
    return call->final && call->released && call->active == 0;
}

/* Ends a complete call, and drops the reference of the server. */
static void complete(kelp_backend_call *call) {
    if (claim_end(call))
        finish(call);
    kelp_sdk_call_release(call);
}

static void on_release(TRITONSERVER_InferenceRequest *raw, const uint32_t flags, void *userp) {
    kelp_backend_call *call = userp;
    (void)raw;
    (void)flags;
    pthread_mutex_lock(&call->lock);
    KELP_ASSERT(call->started && !call->released);
    call->released = true;
    bool last = is_complete(call);
    pthread_mutex_unlock(&call->lock);
    if (last)
        complete(call);
}

static kelp_status *keep_response(kelp_backend_call *call,
                                  TRITONSERVER_InferenceResponse *response) {
    void *items = call->responses;
    KELP_TRY(kelp_grow(kelp_allocator_system(), &items, &call->response_capacity,
                       call->response_count + 1, sizeof(TRITONSERVER_InferenceResponse *)));
    call->responses = items;
    call->responses[call->response_count++] = response;
    return NULL;
}

/* Stores a response and runs the callback. Serialized: the callback may read the list. */
static void take_response(kelp_backend_call *call, TRITONSERVER_InferenceResponse *response) {
    kelp_status *failure = kelp_backend_status(TRITONSERVER_InferenceResponseError(response));
    pthread_mutex_lock(&call->turn);
    bool closed = call->closed;
    kelp_status *status = closed ? NULL : keep_response(call, response);
    if (closed || status != NULL)
        (void)sdk_ok(TRITONSERVER_InferenceResponseDelete(response));
    if (status != NULL) {
        kelp_status_free(failure);
        failure = status;
    }
    if (!closed && call->fn != NULL)
        call->fn(call, failure, false, call->userp);
    if (!closed && call->failure == NULL) {
        call->failure = failure;
        failure = NULL;
    }
    pthread_mutex_unlock(&call->turn);
    kelp_status_free(failure);
}

static void on_response(TRITONSERVER_InferenceResponse *response, const uint32_t flags,
                        void *userp) {
    kelp_backend_call *call = userp;
    pthread_mutex_lock(&call->lock);
    call->active++;
    pthread_mutex_unlock(&call->lock);
    if (response != NULL)
        take_response(call, response);
    pthread_mutex_lock(&call->lock);
    KELP_ASSERT(call->active > 0);
    call->active--;
    if (flags & TRITONSERVER_RESPONSE_COMPLETE_FINAL)
        call->final = true;
    bool last = is_complete(call);
    pthread_mutex_unlock(&call->lock);
    if (last)
        complete(call);
}

void kelp_backend_call_clear(kelp_backend_call *call) {
    for (size_t i = 0; i < call->response_count; i++)
        (void)sdk_ok(TRITONSERVER_InferenceResponseDelete(call->responses[i]));
    call->response_count = 0;
    kelp_arena_clear(&call->strings);
}

/* ---- creation ---- */

static void call_free(kelp_backend_call *call) {
    kelp_backend_call_clear(call);
    if (call->parent != NULL)
        (void)sdk_ok(TRITONBACKEND_ResponseFactoryDelete(call->parent));
    kelp_free(kelp_allocator_system(), call->responses,
              call->response_capacity * sizeof(TRITONSERVER_InferenceResponse *));
    if (call->trace != NULL)
        (void)sdk_ok(TRITONSERVER_InferenceTraceDelete(call->trace));
    if (call->raw != NULL)
        (void)sdk_ok(TRITONSERVER_InferenceRequestDelete(call->raw));
    if (call->allocator != NULL)
        (void)sdk_ok(TRITONSERVER_ResponseAllocatorDelete(call->allocator));
    kelp_status_free(call->failure);
    kelp_arena_deinit(&call->arena);
    kelp_arena_deinit(&call->strings);
    pthread_cond_destroy(&call->changed);
    pthread_mutex_destroy(&call->lock);
    pthread_mutex_destroy(&call->turn);
    free(call);
}

/* Connects the call to the request that needs its result. */
static kelp_status *set_parent(kelp_backend_call *call, const kelp_backend_request *request) {
    TRITONSERVER_InferenceTrace *trace = NULL;
    uint64_t timeout_us = kelp_backend_request_timeout_us(request);
    KELP_TRY(sdk_status(TRITONBACKEND_ResponseFactoryNew(&call->parent, request->raw)));
    if (timeout_us != 0)
        KELP_TRY(
            sdk_status(TRITONSERVER_InferenceRequestSetTimeoutMicroseconds(call->raw, timeout_us)));
    /* A server without traces returns an error: the call then has no trace. */
    if (sdk_ok(TRITONBACKEND_RequestTrace(request->raw, &trace)) && trace != NULL)
        KELP_TRY(sdk_status(TRITONSERVER_InferenceTraceSpawnChildTrace(trace, &call->trace)));
    return kelp_sdk_watch_start(call->watch);
}

static kelp_status *open_call(kelp_backend_call *call, const kelp_backend_request *request,
                              const char *model_name, int64_t model_version) {
    KELP_TRY(
        sdk_status(TRITONSERVER_ResponseAllocatorNew(&call->allocator, allocate, release, NULL)));
    KELP_TRY(sdk_status(
        TRITONSERVER_InferenceRequestNew(&call->raw, call->server, model_name, model_version)));
    KELP_TRY(
        sdk_status(TRITONSERVER_InferenceRequestSetReleaseCallback(call->raw, on_release, call)));
    KELP_TRY(sdk_status(TRITONSERVER_InferenceRequestSetResponseCallback(call->raw, call->allocator,
                                                                         call, on_response, call)));
    return request != NULL ? set_parent(call, request) : NULL;
}

kelp_status *kelp_backend_call_create(kelp_backend_model *model, kelp_backend_request *request,
                                      const char *model_name, int64_t model_version,
                                      kelp_backend_call **out) {
    kelp_backend_call *call = calloc(1, sizeof *call);
    if (call == NULL)
        return kelp_status_oom();
    call->watch = &model->host->watch;
    call->server = model->server;
    call->refs = 1;
    kelp_arena_init(&call->arena, kelp_allocator_system(), 0);
    kelp_arena_init(&call->strings, kelp_allocator_system(), 0);
    pthread_mutex_init(&call->turn, NULL);
    pthread_mutex_init(&call->lock, NULL);
    pthread_cond_init(&call->changed, NULL);
    kelp_status *status = open_call(call, request, model_name, model_version);
    if (status != NULL) {
        call_free(call);
        return KELP_ANNOTATE(status, "cannot call model '%s'", model_name);
    }
    *out = call;
    return NULL;
}

TRITONSERVER_InferenceRequest *kelp_backend_call_raw(kelp_backend_call *call) {
    return call->raw;
}

kelp_status *kelp_backend_call_set_timeout(kelp_backend_call *call, uint64_t timeout_ns) {
    uint64_t current_us = 0, timeout_us = KELP_MAX(timeout_ns / 1000, 1u);
    if (timeout_ns == 0)
        return KELP_ERROR(KELP_INVALID_ARGUMENT,
                          "invalid timeout of a call: expected at least 1 ns, found 0");
    if (call->has_inputs || call->started)
        return KELP_ERROR(KELP_FAILED_PRECONDITION,
                          "the timeout of a call must be set before its first input");
    KELP_TRY(sdk_status(TRITONSERVER_InferenceRequestTimeoutMicroseconds(call->raw, &current_us)));
    if (current_us == 0 || timeout_us < current_us)
        KELP_TRY(
            sdk_status(TRITONSERVER_InferenceRequestSetTimeoutMicroseconds(call->raw, timeout_us)));
    KELP_TRY(kelp_sdk_watch_start(call->watch));
    call->timeout_ns = timeout_ns;
    return NULL;
}

/* Returns the data of an input: that of the tensor, or a copy. */
static kelp_status *input_data(kelp_backend_call *call, const kelp_tensor *tensor,
                               const void **out_data, size_t *out_size_bytes) {
    bool in_place =
        tensor->dtype != KELP_STRING && kelp_tensor_is_compact(tensor) && call->timeout_ns == 0;
    *out_data = tensor->data;
    if (in_place && tensor->device.device_type == kDLCUDA) {
        *out_size_bytes = kelp_tensor_bytes(tensor);
        return NULL;
    }
    KELP_TRY(kelp_sdk_wire_bytes(tensor, out_size_bytes));
    if (in_place)
        return NULL;
    void *copy = kelp_arena_alloc(&call->arena, *out_size_bytes, KELP_TENSOR_ALIGNMENT);
    if (copy == NULL)
        return kelp_status_oom();
    kelp_sdk_wire_write(tensor, copy);
    *out_data = copy;
    return NULL;
}

kelp_status *kelp_backend_call_input(kelp_backend_call *call, const char *name,
                                     const kelp_tensor *tensor) {
    size_t size_bytes = 0;
    const void *data = NULL;
    kelp_backend_memory memory = KELP_BACKEND_HOST_MEMORY;
    kelp_status *status = input_data(call, tensor, &data, &size_bytes);
    if (status != NULL)
        return KELP_ANNOTATE(status, "input '%s'", name);
    if (tensor->device.device_type == kDLCUDA)
        memory = (kelp_backend_memory){TRITONSERVER_MEMORY_GPU, tensor->device.device_id};
    call->has_inputs = true;
    KELP_TRY(sdk_status(
        TRITONSERVER_InferenceRequestAddInput(call->raw, name, kelp_dtype_to_triton(tensor->dtype),
                                              tensor->shape, (uint64_t)tensor->rank)));
    return kelp_backend_status(TRITONSERVER_InferenceRequestAppendInputData(
        call->raw, name, data, size_bytes, memory.type, memory.id));
}

kelp_status *kelp_backend_call_wants(kelp_backend_call *call, const char *name) {
    return kelp_backend_status(TRITONSERVER_InferenceRequestAddRequestedOutput(call->raw, name));
}

/* ---- execution ---- */

/* Counts the timeout from now; a timeout that is too large for the clock never expires. */
static uint64_t deadline_of(const kelp_backend_call *call) {
    uint64_t now_ns = kelp_backend_now_ns();
    return call->timeout_ns == 0 || call->timeout_ns > UINT64_MAX - now_ns
               ? 0
               : now_ns + call->timeout_ns;
}

kelp_status *kelp_backend_call_start(kelp_backend_call *call, kelp_backend_call_fn fn,
                                     void *userp) {
    if (call->started)
        return KELP_ERROR(KELP_FAILED_PRECONDITION, "the call was started twice");
    bool is_watched = call->parent != NULL || call->timeout_ns != 0;
    call->fn = fn;
    call->userp = userp;
    call->started = true;
    call->deadline_ns = deadline_of(call);
    call->refs = is_watched ? 3 : 2; /* the backend, the server, and this function */
    TRITONSERVER_InferenceTrace *trace = call->trace;
    call->trace = NULL;
    kelp_status *status =
        kelp_backend_status(TRITONSERVER_ServerInferAsync(call->server, call->raw, trace));
    if (status != NULL) {
        call->started = false;
        call->refs = 1;
        call->trace = trace;
        return status;
    }
    if (!is_watched)
        return NULL; /* the call may be over and destroyed */
    kelp_sdk_watch_add(call->watch, call);
    kelp_sdk_call_release(call);
    return NULL;
}

void kelp_backend_call_cancel(kelp_backend_call *call) {
    (void)sdk_ok(TRITONSERVER_InferenceRequestCancel(call->raw));
}

static void wait_until_over(kelp_backend_call *call) {
    pthread_mutex_lock(&call->lock);
    while (!call->over)
        pthread_cond_wait(&call->changed, &call->lock);
    pthread_mutex_unlock(&call->lock);
}

kelp_status *kelp_backend_call_wait(kelp_backend_call *call) {
    if (!call->started)
        return KELP_ERROR(KELP_FAILED_PRECONDITION, "the call was not started");
    wait_until_over(call);
    return kelp_status_clone(call->failure);
}

const kelp_status *kelp_backend_call_failure(const kelp_backend_call *call) {
    return call->failure;
}

size_t kelp_backend_call_response_count(const kelp_backend_call *call) {
    return call->response_count;
}

static kelp_status *find_output(TRITONSERVER_InferenceResponse *response, const char *name,
                                uint32_t *out_index) {
    uint32_t count = 0;
    KELP_TRY(sdk_status(TRITONSERVER_InferenceResponseOutputCount(response, &count)));
    for (uint32_t i = 0; i < count; i++) {
        const char *found = NULL;
        TRITONSERVER_DataType type;
        TRITONSERVER_MemoryType memory;
        const int64_t *shape;
        uint64_t rank;
        const void *base;
        size_t size_bytes;
        int64_t id;
        void *userp;
        KELP_TRY(sdk_status(TRITONSERVER_InferenceResponseOutput(
            response, i, &found, &type, &shape, &rank, &base, &size_bytes, &memory, &id, &userp)));
        if (strcmp(found, name) == 0) {
            *out_index = i;
            return NULL;
        }
    }
    return KELP_ERROR(KELP_NOT_FOUND, "the response has no output '%s'", name);
}

kelp_status *kelp_backend_call_output(kelp_backend_call *call, size_t response_index,
                                      const char *name, kelp_dtype dtype, int32_t rank,
                                      kelp_tensor *out) {
    uint32_t index = 0;
    const char *found = NULL;
    TRITONSERVER_DataType type;
    TRITONSERVER_MemoryType memory;
    const int64_t *shape = NULL;
    uint64_t dims = 0;
    const void *base = NULL;
    size_t size_bytes = 0;
    int64_t id;
    void *userp;
    if (response_index >= call->response_count)
        return KELP_ERROR(KELP_NOT_FOUND, "the call has %zu responses: expected at least %zu",
                          call->response_count, response_index + 1);
    TRITONSERVER_InferenceResponse *response = call->responses[response_index];
    KELP_TRY(find_output(response, name, &index));
    KELP_TRY(sdk_status(TRITONSERVER_InferenceResponseOutput(
        response, index, &found, &type, &shape, &dims, &base, &size_bytes, &memory, &id, &userp)));
    if (memory == TRITONSERVER_MEMORY_GPU)
        return kelp_sdk_not_on_host("output", name, id);
    KELP_TRY(
        kelp_sdk_check("output", name, kelp_dtype_from_triton(type), (int64_t)dims, dtype, rank));
    return kelp_sdk_tensor_from_wire(&call->strings, "output", name, kelp_dtype_from_triton(type),
                                     (int64_t)dims, shape, base, size_bytes, out);
}

/* Leaves a call with a timeout to the server: no callback runs after this. */
static void abandon(kelp_backend_call *call) {
    if (!claim_end(call)) {
        wait_until_over(call); /* the last callback runs on another thread */
        return;
    }
    pthread_mutex_lock(&call->turn);
    call->closed = true;
    pthread_mutex_unlock(&call->turn);
    kelp_sdk_watch_remove(call->watch, call);
    mark_over(call);
}

void kelp_backend_call_destroy(kelp_backend_call *call) {
    if (call == NULL)
        return;
    pthread_mutex_lock(&call->lock);
    bool inside = call->in_last && pthread_equal(call->last_thread, pthread_self());
    bool in_flight = call->started && !call->over && !inside;
    pthread_mutex_unlock(&call->lock);
    /* An abandoned call is closed before it is cancelled: its callback gets no further response. */
    if (in_flight && call->timeout_ns != 0)
        abandon(call);
    if (in_flight)
        kelp_backend_call_cancel(call);
    if (in_flight && call->timeout_ns == 0)
        wait_until_over(call);
    kelp_sdk_call_release(call);
}
