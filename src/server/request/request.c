/* SPDX-License-Identifier: Apache-2.0 */
/* The life of a request: made, submitted, released, deleted. Threads: see request.h. */
#include "server/request/request.h"

#include "base/clock.h"
#include "server/core/log.h"
#include "server/cache/cached.h"
#include "server/server.h"
#include "server/request/trace.h"

enum { POOLED = 128 }; /* requests that a stripe keeps with all their memory */

const char *kelp_request_tag(const kelp_request *request) {
    const char *id = kelp_text_get(&request->id);
    return id[0] ? id : "<id_unknown>";
}

static kelp_request_state state_of(const kelp_request *request) {
    return (kelp_request_state)atomic_load_explicit(&request->state, memory_order_acquire);
}

static void set_state(kelp_request *request, kelp_request_state state) {
    atomic_store_explicit(&request->state, (int)state, memory_order_release);
}

static const char *state_name(kelp_request_state state) {
    static const char *const names[] = {"INITIALIZED", "PENDING", "EXECUTING", "RELEASED"};
    return names[state];
}

/* Everything a new request has, apart from the memory that it keeps. */
static void reset(kelp_request *request) {
    request->next = NULL;
    request->factory = NULL;
    request->trace = NULL;
    request->flags = 0;
    request->correlation_is_string = false;
    request->raw_input = false;
    request->correlation_id = 0;
    kelp_text_clear(&request->correlation_string);
    request->priority = 0;
    request->timeout_us = 0;
    request->batch_size = 1;
    kelp_text_clear(&request->id);
    request->input_count = 0;
    request->output_count = 0;
    kelp_params_clear(&request->params);
    request->release_fn = NULL;
    request->response_fn = NULL;
    request->allocator = NULL;
    set_state(request, KELP_REQUEST_INITIALIZED);
}

kelp_status *kelp_request_create(kelp_server *server, const char *model_name, int64_t version,
                                 kelp_request **out) {
    kelp_model *model = NULL;
    kelp_request *request = NULL;
    KELP_TRY(kelp_server_check_ready(server));
    KELP_TRY(kelp_server_find_model(server, model_name, version, &model, &request));
    if (!request) {
        kelp_status *status = KELP_NEW(kelp_allocator_system(), kelp_request, &request);
        if (status) {
            kelp_model_release(model);
            return status;
        }
    }
    reset(request);
    request->home = kelp_server_stripe(server);
    request->model = model;
    request->requested_version = version;
    *out = request;
    return NULL;
}

kelp_status *kelp_request_create_for(kelp_model *model, kelp_request **out) {
    kelp_request *request = NULL;
    KELP_TRY(KELP_NEW(kelp_allocator_system(), kelp_request, &request));
    reset(request);
    request->home = kelp_server_stripe(model->server);
    kelp_model_retain(model);
    request->model = model;
    request->requested_version = model->version;
    *out = request;
    return NULL;
}

kelp_status *kelp_request_begin(kelp_request *request) {
    kelp_factory *factory = NULL;
    if (!kelp_model_enter(request->model))
        return KELP_ERROR(KELP_UNAVAILABLE, "model '%s' is being unloaded", request->model->name);
    kelp_status *status = kelp_factory_create(request, &factory);
    if (status) {
        kelp_model_leave(request->model);
        return status;
    }
    if (request->factory)
        kelp_factory_release(request->factory);
    request->factory = factory;
    request->request_start_ns = request->queue_start_ns = factory->start_ns = kelp_now_ns();
    set_state(request, KELP_REQUEST_EXECUTING);
    return NULL;
}

kelp_status *kelp_request_delete(kelp_request *request) {
    kelp_request_state state = state_of(request);
    if (state == KELP_REQUEST_PENDING || state == KELP_REQUEST_EXECUTING)
        return KELP_ERROR(KELP_INTERNAL,
                          KELP_REQUEST_TAG "cannot delete a request in state %s: it is the "
                                           "server's until its release callback",
                          kelp_request_tag(request), state_name(state));
    kelp_model *model = request->model;
    if (!model)
        return KELP_ERROR(KELP_INTERNAL, "the request was deleted before");
    if (request->factory)
        kelp_factory_release(request->factory);
    request->factory = NULL;
    kelp_stripe *stripe = request->home;
    request->model = NULL;
    request->input_count = request->output_count = 0;
    /* The object stays until the server goes, so that it is known as deleted when used again. */
    pthread_mutex_lock(&stripe->lock);
    bool keeps = stripe->request_count < POOLED;
    if (keeps) {
        request->next = stripe->requests;
        stripe->requests = request;
        stripe->request_count++;
    }
    pthread_mutex_unlock(&stripe->lock);
    if (!keeps) {
        kelp_request_trim(request);
        pthread_mutex_lock(&stripe->lock);
        request->next = stripe->bare_requests;
        stripe->bare_requests = request;
        pthread_mutex_unlock(&stripe->lock);
    }
    kelp_model_release(model);
    return NULL;
}

/* Enters the model, or the one that has taken its place since the request was made. */
static kelp_status *enter_model(kelp_server *server, kelp_request *request) {
    if (kelp_model_enter(request->model))
        return NULL;
    for (int attempt = 0; attempt < 3; attempt++) {
        kelp_model *model = NULL;
        KELP_TRY(kelp_server_find_version(server, request->model->entry, request->requested_version,
                                          &model));
        kelp_model_release(request->model);
        request->model = model;
        if (kelp_model_enter(model))
            return NULL;
    }
    return KELP_ERROR(KELP_UNAVAILABLE,
                      "Request for unknown model: '%s' version %lld is not at ready state",
                      request->model->name, (long long)request->model->version);
}

/* true when it is over. */
static bool answer_from_cache(kelp_request *request) {
    kelp_response *response = NULL;
    kelp_cached_find(request, &response);
    if (!response)
        return false;
    set_state(request, KELP_REQUEST_EXECUTING);
    kelp_server_log_status(
        "cannot send a cached response",
        kelp_response_send(response, TRITONSERVER_RESPONSE_COMPLETE_FINAL, NULL));
    kelp_server_log_status("cannot release a request",
                           kelp_request_release(request, TRITONSERVER_REQUEST_RELEASE_ALL));
    return true;
}

kelp_status *kelp_request_submit(kelp_server *server, kelp_request *request, kelp_trace *trace) {
    kelp_request_state state = state_of(request);
    if (state != KELP_REQUEST_INITIALIZED && state != KELP_REQUEST_RELEASED)
        return KELP_ERROR(KELP_INTERNAL,
                          KELP_REQUEST_TAG "invalid request state transition from %s to PENDING",
                          kelp_request_tag(request), state_name(state));
    if (!request->model)
        return KELP_ERROR(KELP_INTERNAL, "the request was deleted before");
    if (!request->response_fn || !request->allocator || !request->release_fn)
        return KELP_ERROR(KELP_INVALID_ARGUMENT, KELP_REQUEST_TAG "the request has no %s callback",
                          kelp_request_tag(request), request->release_fn ? "response" : "release");
    KELP_TRY(kelp_server_check_ready(server));
    if (request->model->server != server)
        return KELP_ERROR(KELP_INVALID_ARGUMENT,
                          KELP_REQUEST_TAG "the request was made for another server",
                          kelp_request_tag(request));
    KELP_TRY(enter_model(server, request));
    kelp_factory *factory = NULL;
    kelp_status *status = kelp_request_normalize(request);
    if (!status && trace)
        status = kelp_trace_begin(trace, request);
    if (!status)
        status = kelp_factory_create(request, &factory);
    if (status) {
        kelp_model_leave(request->model);
        set_state(request, KELP_REQUEST_INITIALIZED);
        return status;
    }
    kelp_factory *earlier = request->factory;
    request->factory = factory;
    factory->trace = trace;
    request->trace = trace;
    request->request_start_ns = request->queue_start_ns = factory->start_ns = kelp_now_ns();
    if (trace) {
        kelp_trace_report(trace, TRITONSERVER_TRACE_REQUEST_START, request->request_start_ns);
        kelp_trace_report(trace, TRITONSERVER_TRACE_QUEUE_START, request->queue_start_ns);
    }
    if (trace)
        kelp_trace_inputs(trace, request);
    set_state(request, KELP_REQUEST_PENDING);
    if (request->model->cached && answer_from_cache(request)) {
        if (earlier)
            kelp_factory_release(earlier);
        return NULL;
    }
    status = kelp_scheduler_submit(&request->model->scheduler, request);
    if (status) {
        kelp_stats_refusal(&request->model->stats, kelp_status_code(status),
                           request->request_start_ns);
        request->factory = earlier;
        request->trace = factory->trace = NULL;
        set_state(request, KELP_REQUEST_INITIALIZED);
        kelp_factory_abandon(factory);
        kelp_model_leave(request->model);
        return status;
    }
    if (earlier)
        kelp_factory_release(earlier);
    return NULL;
}

/* Notes what a backend that cannot report would have said; it is counted when the last answer is
 * given. */
static void note_times(const kelp_request *request, kelp_factory *factory) {
    uint64_t now_ns = kelp_now_ns();
    factory->counted_by = request->counted_by;
    factory->batch_size = request->batch_size;
    factory->times = (kelp_request_times){.request_start_ns = request->request_start_ns,
                                          .queue_start_ns = request->queue_start_ns,
                                          .execute_start_ns = request->execute_start_ns,
                                          .compute_start_ns = request->execute_start_ns,
                                          .compute_end_ns = now_ns,
                                          .execute_end_ns = now_ns};
}

kelp_status *kelp_request_release(kelp_request *request, uint32_t flags) {
    if (flags & TRITONSERVER_REQUEST_RELEASE_RESCHEDULE)
        return KELP_ERROR(KELP_INVALID_ARGUMENT,
                          KELP_REQUEST_TAG "cannot reschedule the request: model '%s' does not "
                                           "batch sequences iteratively",
                          kelp_request_tag(request), request->model->name);
    int expected = KELP_REQUEST_EXECUTING;
    /* Without its id, which is its owner's when it was released before. */
    if (!atomic_compare_exchange_strong(&request->state, &expected, KELP_REQUEST_RELEASED))
        return KELP_ERROR(KELP_INTERNAL, "invalid request state transition from %s to RELEASED",
                          state_name((kelp_request_state)expected));
    /* The callback may delete or resubmit the request, so nothing of it is used afterwards. */
    kelp_factory *factory = request->factory;
    if (request->trace)
        kelp_trace_report(request->trace, TRITONSERVER_TRACE_REQUEST_END, kelp_now_ns());
    request->trace = NULL;
    atomic_store_explicit(&factory->released, true, memory_order_release);
    if (request->counted_by) {
        note_times(request, factory);
        if (atomic_load(&factory->final_sent))
            kelp_factory_count(factory);
    }
    request->counted_by = NULL;
    request->release_fn((TRITONSERVER_InferenceRequest *)request, TRITONSERVER_REQUEST_RELEASE_ALL,
                        request->release_userp);
    kelp_factory_close(factory);
    return NULL;
}

void kelp_request_fail(kelp_request *request, const kelp_status *error) {
    kelp_response *response = NULL;
    kelp_status *status = NULL;
    /* A backend may fail after it has answered some of a batch: an answer is not taken back. */
    bool answered = atomic_load(&request->factory->final_sent);
    if (!answered)
        status = kelp_response_create(request->factory, &response);
    if (!status && !answered)
        status = kelp_response_send(response, TRITONSERVER_RESPONSE_COMPLETE_FINAL, error);
    /* Without a response the factory still answers with an error when it closes. */
    kelp_server_log_status("cannot send an error response", status);
    kelp_server_log_status("cannot release a request",
                           kelp_request_release(request, TRITONSERVER_REQUEST_RELEASE_ALL));
}
