/* SPDX-License-Identifier: Apache-2.0 */
/* The states of a request: creation, submission, release, deletion. */
#include "server/request/request.h"

#include "base/assert.h"
#include "base/clock.h"
#include "server/core/log.h"
#include "server/request/response_cache.h"
#include "server/request/sequence.h"
#include "server/request/trace.h"

const char *kelp_request_tag(const kelp_request *request) {
    const char *id = kelp_text_get(&request->id);
    return id[0] ? id : "<id_unknown>";
}

static kelp_request_state state_of(const kelp_request *request) {
    int state = atomic_load_explicit(&request->state, memory_order_acquire);
    return (kelp_request_state)(state & ~KELP_REQUEST_DISCARDED);
}

static void set_state(kelp_request *request, kelp_request_state state) {
    atomic_store_explicit(&request->state, (int)state, memory_order_release);
}

static const char *state_name(kelp_request_state state) {
    static const char *const names[] = {"INITIALIZED", "PENDING", "EXECUTING", "RELEASING",
                                        "RELEASED"};
    return names[state];
}

/* Sets the fields of a new request. Lists and texts keep their memory. */
static void reset(kelp_request *request) {
    request->next = NULL;
    request->factory = request->earlier = NULL;
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
    request->place = NULL;
    request->states = NULL;
    request->added_inputs = 0;
    request->in_sequence = request->has_generated_id = request->is_null = false;
    request->replaces_run = request->avoids_caller = request->skips_delay = false;
    request->due = NULL;
    request->rejection = KELP_REJECTION_NONE;
    set_state(request, KELP_REQUEST_INITIALIZED);
}

kelp_status *kelp_request_create(kelp_model_base *take_model, int64_t version, kelp_request *pooled,
                                 kelp_request **out) {
    kelp_request_host *host = take_model->host;
    kelp_request *request = pooled;
    if (request == NULL) {
        kelp_status *status = KELP_NEW(host->allocator, kelp_request, &request);
        if (status != NULL) {
            kelp_model_release(take_model);
            return status;
        }
    }
    KELP_ASSERT(request->model == NULL);
    reset(request);
    request->home = kelp_request_pool_of_thread(&host->pools);
    request->model = take_model;
    request->requested_version = version;
    *out = request;
    return NULL;
}

/* Makes a request of an entered model execute. Leaves the model on failure. */
static kelp_status *begin(kelp_request *request) {
    KELP_ASSERT(state_of(request) != KELP_REQUEST_PENDING);
    KELP_ASSERT(state_of(request) != KELP_REQUEST_EXECUTING);
    kelp_factory *factory = NULL;
    kelp_status *status = kelp_factory_create(request, &factory);
    if (status != NULL) {
        kelp_model_leave(request->model);
        return status;
    }
    if (request->factory != NULL)
        kelp_factory_release(request->factory);
    request->factory = factory;
    request->request_start_ns = request->queue_start_ns = factory->start_ns = kelp_now_ns();
    set_state(request, KELP_REQUEST_EXECUTING);
    return NULL;
}

kelp_status *kelp_request_begin(kelp_request *request) {
    if (!kelp_model_enter(request->model))
        return KELP_ERROR(KELP_UNAVAILABLE, "model '%s' is being unloaded", request->model->name);
    return begin(request);
}

kelp_status *kelp_request_begin_again(kelp_request *request) {
    kelp_model_enter_again(request->model);
    return begin(request);
}

/* Marks a request whose final response was sent, but that is not released yet, as deleted. Returns
 * false if it is in another state. Clients that wait for the response only delete it at any time.
 */
static bool discard(kelp_request *request) {
    int state = atomic_load_explicit(&request->state, memory_order_acquire);
    while ((state == KELP_REQUEST_EXECUTING || state == KELP_REQUEST_RELEASING) &&
           atomic_load(&request->factory->final_sent))
        if (atomic_compare_exchange_weak(&request->state, &state, state | KELP_REQUEST_DISCARDED))
            return true;
    return false;
}

kelp_status *kelp_request_delete(kelp_request *request) {
    if (discard(request))
        return NULL;
    kelp_request_state state = state_of(request);
    if (state == KELP_REQUEST_PENDING || state == KELP_REQUEST_EXECUTING ||
        state == KELP_REQUEST_RELEASING)
        return KELP_ERROR(KELP_INTERNAL,
                          KELP_REQUEST_TAG "cannot delete a request in state %s: it is the "
                                           "server's until its release callback",
                          kelp_request_tag(request), state_name(state));
    kelp_model_base *model = request->model;
    if (model == NULL)
        return KELP_ERROR(KELP_INTERNAL, "the request was deleted before");
    if (request->factory != NULL)
        kelp_factory_release(request->factory);
    request->factory = NULL;
    request->model = NULL;
    request->input_count = request->output_count = 0;
    kelp_request_pool_put(request->home, request);
    kelp_model_release(model);
    return NULL;
}

/* Enters the model, or the one that replaced it since the request was created. */
static kelp_status *enter_model(kelp_request_host *host, kelp_request *request) {
    if (kelp_model_enter(request->model))
        return NULL;
    for (int attempt = 0; attempt < 3; attempt++) {
        kelp_model_base *model = NULL;
        KELP_TRY(
            host->ops->find_successor(host, request->model, request->requested_version, &model));
        kelp_model_release(request->model);
        request->model = model;
        if (kelp_model_enter(model))
            return NULL;
    }
    return KELP_ERROR(KELP_UNAVAILABLE,
                      "Request for unknown model: '%s' version %lld is not at ready state",
                      request->model->name, (long long)request->model->version);
}

/* Responds with the cached response, which ends the request. Returns false if there is none. */
static bool respond_from_cache(kelp_request *request) {
    KELP_ASSERT(state_of(request) == KELP_REQUEST_PENDING);
    kelp_response_cache *cache = request->model->cache;
    kelp_response *response = NULL;
    cache->ops->find(cache, request, &response);
    if (response == NULL)
        return false;
    set_state(request, KELP_REQUEST_EXECUTING);
    kelp_server_log_status(
        "cannot send a cached response",
        kelp_response_send(response, TRITONSERVER_RESPONSE_COMPLETE_FINAL, NULL));
    kelp_server_log_status("cannot release a request",
                           kelp_request_release(request, TRITONSERVER_REQUEST_RELEASE_ALL));
    return true;
}

/* Returns true for a request of a sequence that began before. A stopping server accepts it. */
static bool continues_sequence(const kelp_request *request) {
    const kelp_config_sequence *sequence = request->model->config->sequence;
    return sequence != NULL && !sequence->iterative &&
           (request->flags & TRITONSERVER_REQUEST_FLAG_SEQUENCE_START) == 0;
}

static kelp_status *check_submission(const kelp_request_host *host, const kelp_request *request) {
    kelp_request_state state = state_of(request);
    if (state != KELP_REQUEST_INITIALIZED && state != KELP_REQUEST_RELEASED)
        return KELP_ERROR(KELP_INTERNAL,
                          KELP_REQUEST_TAG "invalid request state transition from %s to PENDING",
                          kelp_request_tag(request), state_name(state));
    if (request->model == NULL)
        return KELP_ERROR(KELP_INTERNAL, "the request was deleted before");
    kelp_status *status = host->ops->check_ready(host);
    if (status != NULL && !continues_sequence(request))
        return status;
    kelp_status_free(status);
    if (request->model->host != host)
        return KELP_ERROR(KELP_INVALID_ARGUMENT,
                          KELP_REQUEST_TAG "the request was created for another server",
                          kelp_request_tag(request));
    return NULL;
}

static kelp_status *check_callbacks(const kelp_request *request) {
    if (request->response_fn != NULL && request->allocator != NULL && request->release_fn != NULL)
        return NULL;
    return KELP_ERROR(KELP_INVALID_ARGUMENT, KELP_REQUEST_TAG "the request has no %s callback",
                      kelp_request_tag(request), request->release_fn ? "response" : "release");
}

/* Undoes a submission that the model did not accept. */
static void take_back(kelp_request *request) {
    KELP_ASSERT(state_of(request) == KELP_REQUEST_PENDING);
    kelp_factory *factory = request->factory;
    kelp_request_leave_sequence(request);
    request->factory = request->earlier;
    request->earlier = NULL;
    request->trace = factory->trace = NULL;
    set_state(request, KELP_REQUEST_INITIALIZED);
    kelp_factory_abandon(factory);
    kelp_model_leave(request->model);
}

static void start_clock(kelp_request *request, kelp_trace *trace) {
    KELP_ASSERT(state_of(request) != KELP_REQUEST_EXECUTING);
    KELP_ASSERT(request->factory->model == request->model);
    uint64_t now_ns = kelp_now_ns();
    request->factory->trace = request->trace = trace;
    request->request_start_ns = request->queue_start_ns = request->factory->start_ns = now_ns;
    request->deadline_ns = KELP_NEVER_NS;
    if (trace != NULL) {
        kelp_trace_report(trace, TRITONSERVER_TRACE_REQUEST_START, now_ns);
        kelp_trace_report(trace, TRITONSERVER_TRACE_QUEUE_START, now_ns);
        kelp_trace_inputs(trace, request);
    }
}

kelp_status *kelp_request_prepare(kelp_request *request, kelp_trace *trace) {
    kelp_factory *factory = NULL;
    kelp_status *status = kelp_request_normalize(request);
    if (status == NULL)
        status = check_callbacks(request);
    if (status == NULL && trace != NULL)
        status = kelp_trace_begin(trace, request);
    if (status == NULL)
        status = kelp_factory_create(request, &factory);
    if (status != NULL) {
        kelp_model_leave(request->model);
        set_state(request, KELP_REQUEST_INITIALIZED);
        return status;
    }
    request->earlier = request->factory;
    request->factory = factory;
    start_clock(request, trace);
    return NULL;
}

kelp_status *kelp_request_dispatch(kelp_request *request) {
    kelp_status *status = NULL;
    /* The request may be over after its submission. */
    kelp_factory *earlier = request->earlier;
    set_state(request, KELP_REQUEST_PENDING);
    if (request->model->order.enabled)
        kelp_response_order_join(&request->model->order, request->factory);
    if (request->model->cache == NULL || !respond_from_cache(request))
        status = request->model->ops->submit(request->model, request);
    if (status != NULL) {
        kelp_stats_rejection(&request->model->stats, kelp_status_code(status),
                             request->request_start_ns);
        take_back(request);
    } else if (earlier != NULL) {
        kelp_factory_release(earlier);
    }
    return status;
}

kelp_status *kelp_request_submit(kelp_request_host *host, kelp_request *request,
                                 kelp_trace *trace) {
    KELP_TRY(check_submission(host, request));
    KELP_TRY(enter_model(host, request));
    KELP_TRY(kelp_request_prepare(request, trace));
    return kelp_request_dispatch(request);
}

kelp_status *kelp_request_check_queue(const kelp_request *request) {
    kelp_model_base *model = request->model;
    if (model == NULL)
        return KELP_ERROR(KELP_INTERNAL, "the request was deleted before");
    if (model->ops->check_queue == NULL || model->cache != NULL || !kelp_model_enter(model))
        return NULL;
    kelp_status *status = model->ops->check_queue(model, request);
    if (status != NULL)
        kelp_stats_rejection(&model->stats, kelp_status_code(status), kelp_now_ns());
    kelp_model_leave(model);
    return status;
}

/* ---- identity ---- */

kelp_status *kelp_request_set_id(kelp_request *request, const char *id) {
    return kelp_text_set(request->home->allocator, &request->id, id);
}

kelp_status *kelp_request_set_correlation_string(kelp_request *request, const char *id) {
    enum { MAX_LENGTH = 128 };
    if (strlen(id) > MAX_LENGTH)
        return KELP_ERROR(KELP_INVALID_ARGUMENT,
                          KELP_REQUEST_TAG "string correlation ID cannot be longer than %d "
                                           "characters",
                          kelp_request_tag(request), MAX_LENGTH);
    KELP_TRY(kelp_text_set(request->home->allocator, &request->correlation_string, id));
    request->correlation_is_string = true;
    return NULL;
}

/* ---- cancellation ---- */

static kelp_status *not_submitted(const kelp_request *request) {
    return KELP_ERROR(KELP_INTERNAL,
                      KELP_REQUEST_TAG "the request has not been submitted, so it cannot be "
                                       "cancelled",
                      kelp_request_tag(request));
}

kelp_status *kelp_request_cancel(kelp_request *request) {
    if (request->factory == NULL)
        return not_submitted(request);
    kelp_factory_cancel(request->factory);
    return NULL;
}

kelp_status *kelp_request_is_cancelled(const kelp_request *request, bool *out) {
    if (request->factory == NULL)
        return not_submitted(request);
    *out = atomic_load(&request->factory->cancelled);
    return NULL;
}

/* ---- execution ---- */

void kelp_request_start(kelp_request *request) {
    KELP_ASSERT(state_of(request) == KELP_REQUEST_PENDING);
    set_state(request, KELP_REQUEST_EXECUTING);
}

/* Records the times for a backend that cannot report; they are counted with the last response. */
static void note_times(const kelp_request *request, kelp_factory *factory) {
    KELP_ASSERT(request->counted_by && !factory->counted_by);
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

/* Queues an executing request again, as the next one of its sequence. */
static kelp_status *reschedule(kelp_request *request) {
    int expected = KELP_REQUEST_EXECUTING;
    if (request->place == NULL || !request->model->config->sequence->iterative)
        return KELP_ERROR(KELP_INVALID_ARGUMENT,
                          KELP_REQUEST_TAG
                          "Request is released with TRITONSERVER_REQUEST_RELEASE_RESCHEDULE, but "
                          "model '%s' does not batch sequences iteratively",
                          kelp_request_tag(request), request->model->name);
    if (!atomic_compare_exchange_strong(&request->state, &expected, KELP_REQUEST_PENDING))
        return KELP_ERROR(KELP_INTERNAL, "invalid request state transition from %s to PENDING",
                          state_name((kelp_request_state)expected));
    /* The execution that ends must not fail the request; see model/execute.c. */
    atomic_fetch_add_explicit(&request->factory->serial, 1, memory_order_relaxed);
    request->flags &= ~(uint32_t)(TRITONSERVER_REQUEST_FLAG_SEQUENCE_START |
                                  TRITONSERVER_REQUEST_FLAG_SEQUENCE_END);
    request->counted_by = NULL;
    request->queue_start_ns = kelp_now_ns();
    if (request->states != NULL)
        request->states->in_use = false;
    request->states = NULL;
    request->model->ops->reschedule(request->model, request);
    return NULL;
}

/* Begins the release of an executing request. */
static kelp_status *begin_release(kelp_request *request, uint32_t flags, bool *out_released) {
    int state = atomic_load_explicit(&request->state, memory_order_acquire);
    *out_released = false;
    for (;;) {
        int discarded = state & KELP_REQUEST_DISCARDED;
        kelp_request_state found = (kelp_request_state)(state & ~KELP_REQUEST_DISCARDED);
        if (found == KELP_REQUEST_EXECUTING) {
            if (!atomic_compare_exchange_weak(&request->state, &state,
                                              KELP_REQUEST_RELEASING | discarded))
                continue;
            return NULL;
        }
        *out_released = true;
        if (found >= KELP_REQUEST_RELEASING && flags == TRITONSERVER_REQUEST_RELEASE_ALL)
            return NULL; /* as in Triton */
        /* The message has no id: a request that was released before belongs to its caller. */
        return KELP_ERROR(KELP_INTERNAL, "invalid request state transition from %s to RELEASED",
                          state_name(found));
    }
}

/* Calls the release callback. From the change of the state on, the request belongs to its caller,
 * unless the caller has deleted it before. */
static void call_release(kelp_request *request) {
    TRITONSERVER_InferenceRequestReleaseFn_t release_fn = request->release_fn;
    void *userp = request->release_userp;
    int state = atomic_exchange(&request->state, KELP_REQUEST_RELEASED);
    release_fn((TRITONSERVER_InferenceRequest *)request, TRITONSERVER_REQUEST_RELEASE_ALL, userp);
    if (state & KELP_REQUEST_DISCARDED)
        kelp_server_log_status("cannot delete a request", kelp_request_delete(request));
}

kelp_status *kelp_request_release(kelp_request *request, uint32_t flags) {
    bool released = false;
    /* A request that was released before may have no model. */
    if ((flags & TRITONSERVER_REQUEST_RELEASE_RESCHEDULE) &&
        state_of(request) == KELP_REQUEST_EXECUTING)
        return reschedule(request);
    KELP_TRY(begin_release(request, flags, &released));
    if (released)
        return NULL;
    kelp_factory *factory = request->factory;
    if (request->trace != NULL)
        kelp_trace_report(request->trace, TRITONSERVER_TRACE_REQUEST_END, kelp_now_ns());
    request->trace = NULL;
    atomic_store_explicit(&factory->released, true, memory_order_release);
    if (request->counted_by != NULL) {
        note_times(request, factory);
        if (atomic_load(&factory->final_sent))
            kelp_factory_count(factory);
    }
    request->counted_by = NULL;
    kelp_request_leave_sequence(request);
    if (request->place != NULL)
        request->model->ops->release(request->model, request);
    call_release(request);
    kelp_factory_close(factory);
    return NULL;
}

void kelp_request_fail(kelp_request *request, const kelp_status *error) {
    KELP_ASSERT(state_of(request) == KELP_REQUEST_EXECUTING && error);
    kelp_response *response = NULL;
    kelp_status *status = NULL;
    /* A backend may fail after it has sent responses for a part of a batch. */
    bool responded = atomic_load(&request->factory->final_sent);
    if (!responded)
        status = kelp_response_create(request->factory, &response);
    if (status == NULL && !responded)
        status = kelp_response_send(response, TRITONSERVER_RESPONSE_COMPLETE_FINAL, error);
    /* If this failed, the factory sends an error when it closes. */
    kelp_server_log_status("cannot send an error response", status);
    kelp_server_log_status("cannot release a request",
                           kelp_request_release(request, TRITONSERVER_REQUEST_RELEASE_ALL));
}

void kelp_request_reject(kelp_request *request, kelp_stats *stats, const kelp_status *error) {
    kelp_stats_rejection(stats, kelp_status_code(error), request->request_start_ns);
    kelp_request_fail(request, error);
}
