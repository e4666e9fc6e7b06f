/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Inference calls to other models of the same server. The server delivers responses and the release
 * of the request on any thread, possibly within the start. The call is over after the last response
 * and the release, when no callback runs. After that, only the backend uses it.
 */
#include "sdk/sdk.h"

#include "base/triton/convert.h"

#include <stdlib.h>
#include <time.h>

/* The interval at which a wait checks if its own request was cancelled. */
enum { CANCEL_POLL_NS = 10000000 };

struct kelp_backend_call {
    kelp_backend_request
        *parent; /* may be NULL; after the start, only for kelp_backend_call_wait */
    TRITONSERVER_Server *server;
    TRITONSERVER_InferenceRequest *raw;
    TRITONSERVER_ResponseAllocator *allocator;
    TRITONSERVER_InferenceTrace *trace; /* owned until the start */
    kelp_arena arena;                   /* copies of inputs */
    kelp_arena strings;                 /* strings of outputs */
    kelp_backend_call_fn fn;
    void *userp;
    pthread_mutex_t turn; /* serializes callbacks; guards the following three */
    TRITONSERVER_InferenceResponse **responses;
    size_t response_count, response_capacity;
    kelp_status *failure; /* the first one */
    pthread_mutex_t lock; /* guards the following fields */
    pthread_cond_t changed;
    unsigned active; /* running callbacks */
    bool started, final, released, over;
    bool in_last; /* the last callback is running, on `last_thread` */
    pthread_t last_thread;
    bool *destroyed; /* set by kelp_backend_call_destroy within the last callback */
};

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

/* Runs the last callback, and wakes waiting threads. The call may be destroyed afterwards. */
static void finish(kelp_backend_call *call) {
    bool destroyed = false;
    if (call->fn != NULL) {
        pthread_mutex_lock(&call->lock);
        call->in_last = true;
        call->last_thread = pthread_self();
        call->destroyed = &destroyed;
        pthread_mutex_unlock(&call->lock);
        call->fn(call, NULL, true, call->userp);
        if (destroyed)
            return;
    }
    pthread_mutex_lock(&call->lock);
    call->in_last = false;
    call->over = true;
    pthread_cond_broadcast(&call->changed);
    pthread_mutex_unlock(&call->lock);
}

/* Returns true if the call is complete. The caller holds the lock. */
static bool is_complete(kelp_backend_call *call) {
    KELP_ASSERT_HELD(&call->lock);
    KELP_ASSERT(!call->over);
    return call->final && call->released && call->active == 0;
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
        finish(call);
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
    kelp_status *status = keep_response(call, response);
    if (status != NULL) {
        (void)sdk_ok(TRITONSERVER_InferenceResponseDelete(response));
        kelp_status_free(failure);
        failure = status;
    }
    if (call->fn != NULL)
        call->fn(call, failure, false, call->userp);
    if (call->failure == NULL) {
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
        finish(call);
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

static kelp_status *open_call(kelp_backend_call *call, const char *model_name,
                              int64_t model_version) {
    TRITONSERVER_InferenceTrace *trace = NULL;
    KELP_TRY(
        sdk_status(TRITONSERVER_ResponseAllocatorNew(&call->allocator, allocate, release, NULL)));
    KELP_TRY(sdk_status(
        TRITONSERVER_InferenceRequestNew(&call->raw, call->server, model_name, model_version)));
    KELP_TRY(
        sdk_status(TRITONSERVER_InferenceRequestSetReleaseCallback(call->raw, on_release, call)));
    KELP_TRY(sdk_status(TRITONSERVER_InferenceRequestSetResponseCallback(call->raw, call->allocator,
                                                                         call, on_response, call)));
    if (call->parent == NULL)
        return NULL;
    /* A server without traces returns an error: the call then has no trace. */
    if (sdk_ok(TRITONBACKEND_RequestTrace(call->parent->raw, &trace)) && trace != NULL)
        KELP_TRY(sdk_status(TRITONSERVER_InferenceTraceSpawnChildTrace(trace, &call->trace)));
    return NULL;
}

kelp_status *kelp_backend_call_create(kelp_backend_model *model, kelp_backend_request *request,
                                      const char *model_name, int64_t model_version,
                                      kelp_backend_call **out) {
    pthread_condattr_t attributes;
    kelp_backend_call *call = calloc(1, sizeof *call);
    if (call == NULL)
        return kelp_status_oom();
    call->parent = request;
    call->server = model->server;
    kelp_arena_init(&call->arena, kelp_allocator_system(), 0);
    kelp_arena_init(&call->strings, kelp_allocator_system(), 0);
    pthread_mutex_init(&call->turn, NULL);
    pthread_mutex_init(&call->lock, NULL);
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&call->changed, &attributes);
    pthread_condattr_destroy(&attributes);
    kelp_status *status = open_call(call, model_name, model_version);
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

kelp_status *kelp_backend_call_input(kelp_backend_call *call, const char *name,
                                     const kelp_tensor *tensor) {
    size_t size_bytes;
    const void *data = tensor->data;
    kelp_status *status = kelp_sdk_wire_bytes(tensor, &size_bytes);
    if (status != NULL)
        return KELP_ANNOTATE(status, "input '%s'", name);
    if (tensor->dtype == KELP_STRING || !kelp_tensor_is_compact(tensor)) {
        void *copy = kelp_arena_alloc(&call->arena, size_bytes, KELP_TENSOR_ALIGNMENT);
        if (copy == NULL)
            return kelp_status_oom();
        kelp_sdk_wire_write(tensor, copy);
        data = copy;
    }
    KELP_TRY(sdk_status(
        TRITONSERVER_InferenceRequestAddInput(call->raw, name, kelp_dtype_to_triton(tensor->dtype),
                                              tensor->shape, (uint64_t)tensor->rank)));
    return kelp_backend_status(TRITONSERVER_InferenceRequestAppendInputData(
        call->raw, name, data, size_bytes, TRITONSERVER_MEMORY_CPU, 0));
}

kelp_status *kelp_backend_call_wants(kelp_backend_call *call, const char *name) {
    return kelp_backend_status(TRITONSERVER_InferenceRequestAddRequestedOutput(call->raw, name));
}

/* ---- execution ---- */

kelp_status *kelp_backend_call_start(kelp_backend_call *call, kelp_backend_call_fn fn,
                                     void *userp) {
    if (call->started)
        return KELP_ERROR(KELP_FAILED_PRECONDITION, "the call was started twice");
    call->fn = fn;
    call->userp = userp;
    call->started = true;
    TRITONSERVER_InferenceTrace *trace = call->trace;
    call->trace = NULL;
    kelp_status *status =
        kelp_backend_status(TRITONSERVER_ServerInferAsync(call->server, call->raw, trace));
    if (status == NULL)
        return NULL; /* the call may be over and destroyed */
    call->started = false;
    call->trace = trace;
    return status;
}

void kelp_backend_call_cancel(kelp_backend_call *call) {
    (void)sdk_ok(TRITONSERVER_InferenceRequestCancel(call->raw));
}

/* Waits for the end of the call or, if `poll`, for at most CANCEL_POLL_NS. */
static void wait_for_end(kelp_backend_call *call, bool poll) {
    struct timespec until;
    KELP_ASSERT_HELD(&call->lock);
    if (!poll) {
        pthread_cond_wait(&call->changed, &call->lock);
        return;
    }
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_nsec += CANCEL_POLL_NS;
    if (until.tv_nsec >= 1000000000) {
        until.tv_sec++;
        until.tv_nsec -= 1000000000;
    }
    pthread_cond_timedwait(&call->changed, &call->lock, &until);
}

kelp_status *kelp_backend_call_wait(kelp_backend_call *call) {
    if (!call->started)
        return KELP_ERROR(KELP_FAILED_PRECONDITION, "the call was not started");
    bool cancelled = false;
    pthread_mutex_lock(&call->lock);
    while (!call->over) {
        wait_for_end(call, call->parent != NULL && !cancelled);
        if (call->over || cancelled || call->parent == NULL)
            continue;
        pthread_mutex_unlock(&call->lock);
        cancelled = kelp_backend_request_is_cancelled(call->parent);
        if (cancelled)
            kelp_backend_call_cancel(call);
        pthread_mutex_lock(&call->lock);
    }
    pthread_mutex_unlock(&call->lock);
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
    KELP_TRY(
        kelp_sdk_check("output", name, kelp_dtype_from_triton(type), (int64_t)dims, dtype, rank));
    return kelp_sdk_tensor_from_wire(&call->strings, "output", name, kelp_dtype_from_triton(type),
                                     (int64_t)dims, shape, base, size_bytes, out);
}

void kelp_backend_call_destroy(kelp_backend_call *call) {
    if (call == NULL)
        return;
    pthread_mutex_lock(&call->lock);
    bool inside = call->in_last && pthread_equal(call->last_thread, pthread_self());
    if (inside)
        *call->destroyed = true;
    bool in_flight = call->started && !call->over && !inside;
    pthread_mutex_unlock(&call->lock);
    if (in_flight) {
        kelp_backend_call_cancel(call);
        pthread_mutex_lock(&call->lock);
        while (!call->over)
            pthread_cond_wait(&call->changed, &call->lock);
        pthread_mutex_unlock(&call->lock);
    }
    call_free(call);
}
