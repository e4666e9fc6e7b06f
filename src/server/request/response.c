/* SPDX-License-Identifier: Apache-2.0 */
/* Responses, their outputs, and the factory that makes them; see response.h. */
#include "server/request/response.h"

#include "base/clock.h"
#include "server/core/log.h"
#include "server/cache/cached.h"
#include "server/config/reshape.h"
#include "server/server.h"
#include "server/request/trace.h"

enum { POOLED = 128 }; /* responses that a stripe keeps with all their memory */

/* ---- factory ---- */

kelp_status *kelp_factory_create(kelp_request *request, kelp_factory **out) {
    kelp_server *server = request->model->server;
    kelp_stripe *stripe = kelp_server_stripe(server);
    pthread_mutex_lock(&stripe->lock);
    kelp_factory *factory = stripe->factories;
    if (factory)
        stripe->factories = factory->next;
    pthread_mutex_unlock(&stripe->lock);
    if (!factory)
        KELP_TRY(KELP_NEW(kelp_allocator_system(), kelp_factory, &factory));
    kelp_status *status = kelp_text_set(&factory->id, kelp_text_get(&request->id));
    if (status) {
        kelp_factory_free(factory);
        return status;
    }
    factory->next = NULL;
    factory->home = stripe;
    factory->model = request->model;
    kelp_model_retain(factory->model);
    atomic_store_explicit(&factory->refs, 2, memory_order_relaxed);
    atomic_store_explicit(&factory->open, 1, memory_order_relaxed);
    atomic_store_explicit(&factory->cancelled, false, memory_order_relaxed);
    atomic_store_explicit(&factory->final_sent, false, memory_order_relaxed);
    atomic_store_explicit(&factory->response_count, 0, memory_order_relaxed);
    atomic_store_explicit(&factory->failed, false, memory_order_relaxed);
    atomic_store_explicit(&factory->reported_count, 0, memory_order_relaxed);
    factory->allocator = request->allocator;
    factory->allocator_userp = request->allocator_userp;
    factory->response_fn = request->response_fn;
    factory->response_userp = request->response_userp;
    factory->trace = NULL;
    factory->counted_by = NULL;
    atomic_store_explicit(&factory->trace_users, 1, memory_order_relaxed);
    atomic_store_explicit(&factory->serial,
                          atomic_load_explicit(&factory->serial, memory_order_relaxed) + 1,
                          memory_order_relaxed);
    atomic_store_explicit(&factory->released, false, memory_order_release);
    atomic_store_explicit(&factory->ticket, NULL, memory_order_relaxed);
    *out = factory;
    return NULL;
}

void kelp_factory_free(kelp_factory *factory) {
    kelp_text_deinit(&factory->id);
    kelp_free(kelp_allocator_system(), factory, sizeof *factory);
}

void kelp_factory_retain(kelp_factory *factory) {
    atomic_fetch_add_explicit(&factory->refs, 1, memory_order_relaxed);
}

void kelp_factory_release(kelp_factory *factory) {
    if (atomic_fetch_sub_explicit(&factory->refs, 1, memory_order_acq_rel) != 1)
        return;
    kelp_model *model = factory->model;
    kelp_cache_ticket_destroy(atomic_exchange(&factory->ticket, NULL));
    /* Kept for good, however many: who executes a submission looks here to see that it is over. */
    kelp_stripe *stripe = factory->home;
    pthread_mutex_lock(&stripe->lock);
    factory->next = stripe->factories;
    stripe->factories = factory;
    pthread_mutex_unlock(&stripe->lock);
    kelp_model_release(model);
}

bool kelp_factory_open(kelp_factory *factory) {
    unsigned open = atomic_load_explicit(&factory->open, memory_order_relaxed);
    do {
        if (open == 0)
            return false;
    } while (!atomic_compare_exchange_weak_explicit(&factory->open, &open, open + 1,
                                                    memory_order_relaxed, memory_order_relaxed));
    return true;
}

static kelp_status *is_over(const kelp_factory *factory) {
    return KELP_ERROR(KELP_INTERNAL,
                      "the request for model '%s' has had its final response: nothing can follow",
                      factory->model->name);
}

/* One user fewer of the trace, which the last one gives back. */
static void leave_trace(kelp_factory *factory) {
    if (!factory->trace ||
        atomic_fetch_sub_explicit(&factory->trace_users, 1, memory_order_acq_rel) != 1)
        return;
    kelp_trace *trace = factory->trace;
    factory->trace = NULL;
    kelp_trace_release(trace);
}

/* Says FINAL for a backend that did not: as an error when it had not answered at all. */
static void finish(kelp_factory *factory) {
    bool decoupled = factory->model->decoupled;
    if (atomic_load(&factory->response_count) == 0 && !decoupled) {
        kelp_response *response = NULL;
        kelp_status *error = KELP_ERROR(
            KELP_INTERNAL, "backend '%s' released the request for model '%s' without a response",
            factory->model->backend->name, factory->model->name);
        atomic_fetch_add(&factory->open, 1); /* so that sending does not come back here */
        kelp_status *status = kelp_response_create(factory, &response);
        if (!status)
            status = kelp_response_send(response, TRITONSERVER_RESPONSE_COMPLETE_FINAL, error);
        atomic_fetch_sub(&factory->open, 1);
        kelp_status_free(error);
        if (!status)
            return;
        kelp_server_log_status("cannot send an error response", status);
    }
    kelp_server_log_status("cannot end a request",
                           kelp_factory_send_flags(factory, TRITONSERVER_RESPONSE_COMPLETE_FINAL));
}

void kelp_factory_count(kelp_factory *factory) {
    if (!factory->counted_by)
        return;
    bool success = !atomic_load(&factory->failed) &&
                   (atomic_load(&factory->response_count) > 0 || factory->model->decoupled);
    kelp_stats_request(&factory->counted_by->stats, success, factory->batch_size, &factory->times);
    factory->counted_by = NULL;
}

void kelp_factory_close(kelp_factory *factory) {
    if (atomic_fetch_sub_explicit(&factory->open, 1, memory_order_acq_rel) != 1)
        return;
    kelp_factory_count(factory);
    if (!atomic_load_explicit(&factory->final_sent, memory_order_relaxed))
        finish(factory);
    leave_trace(factory);
    kelp_model *model = factory->model;
    kelp_model_retain(
        model); /* leaving wakes the reaper, and needs the model's memory until it is done */
    kelp_factory_release(factory);
    kelp_model_leave(model);
    kelp_model_release(model);
}

void kelp_factory_abandon(kelp_factory *factory) {
    kelp_factory_release(factory);
    kelp_factory_release(factory);
}

/* false when FINAL was said before. */
static bool may_send(kelp_factory *factory, uint32_t flags) {
    if (flags & TRITONSERVER_RESPONSE_COMPLETE_FINAL)
        return !atomic_exchange_explicit(&factory->final_sent, true, memory_order_relaxed);
    return !atomic_load_explicit(&factory->final_sent, memory_order_relaxed);
}

kelp_status *kelp_factory_send_flags(kelp_factory *factory, uint32_t flags) {
    if (!may_send(factory, flags))
        return is_over(factory);
    factory->response_fn(NULL, flags, factory->response_userp);
    return NULL;
}

/* ---- response ---- */

kelp_status *kelp_response_create(kelp_factory *factory, kelp_response **out) {
    if (!kelp_factory_open(factory))
        return is_over(factory);
    kelp_stripe *stripe = kelp_server_stripe(factory->model->server);
    pthread_mutex_lock(&stripe->lock);
    kelp_response *response = stripe->responses;
    if (response) {
        stripe->responses = response->next;
        stripe->response_count--;
    } else if (stripe->bare_responses) {
        response = stripe->bare_responses;
        stripe->bare_responses = response->next;
    }
    pthread_mutex_unlock(&stripe->lock);
    kelp_status *status =
        response ? NULL : KELP_NEW(kelp_allocator_system(), kelp_response, &response);
    if (status) {
        kelp_factory_close(factory);
        return status;
    }
    response->next = NULL;
    response->home = stripe;
    response->factory = factory;
    response->sent = false;
    response->error = NULL;
    response->output_count = 0;
    kelp_params_clear(&response->params);
    kelp_factory_retain(factory);
    if (factory->trace)
        atomic_fetch_add_explicit(&factory->trace_users, 1, memory_order_relaxed);
    if (factory->allocator->start_fn)
        kelp_server_log_status(
            "response allocation start failed",
            kelp_from_error(factory->allocator->start_fn(
                (TRITONSERVER_ResponseAllocator *)factory->allocator, factory->allocator_userp)));
    *out = response;
    return NULL;
}

static void release_buffers(kelp_response *response) {
    kelp_response_allocator *allocator = response->factory->allocator;
    for (size_t i = 0; i < response->output_count; i++) {
        kelp_output *output = response->outputs[i];
        if (!output->buffer)
            continue;
        TRITONSERVER_Error *error = allocator->release_fn(
            (TRITONSERVER_ResponseAllocator *)allocator, output->buffer, output->buffer_userp,
            output->attributes.size_bytes, output->attributes.memory_type,
            output->attributes.memory_type_id);
        output->buffer = NULL;
        kelp_server_log_status("failed to release a result buffer", kelp_from_error(error));
    }
}

/* Gives back the memory that a response keeps for its next use. */
static void trim(kelp_response *response) {
    kelp_allocator heap = kelp_allocator_system();
    for (size_t i = 0; i < response->output_spare; i++) {
        kelp_text_deinit(&response->outputs[i]->name);
        kelp_free(heap, response->outputs[i], sizeof *response->outputs[i]);
    }
    kelp_free(heap, response->outputs, response->output_capacity * sizeof *response->outputs);
    response->outputs = NULL;
    response->output_count = response->output_spare = response->output_capacity = 0;
    kelp_params_deinit(&response->params);
}

void kelp_response_delete(kelp_response *response) {
    kelp_factory *factory = response->factory;
    bool sent = response->sent;
    release_buffers(response);
    leave_trace(factory);
    kelp_status_free(response->error);
    response->error = NULL;
    response->factory = NULL;
    kelp_stripe *stripe = response->home;
    /* The object stays until the server goes, so that it is known as deleted when used again. */
    pthread_mutex_lock(&stripe->lock);
    bool keeps = stripe->response_count < POOLED;
    if (keeps) {
        response->next = stripe->responses;
        stripe->responses = response;
        stripe->response_count++;
    }
    pthread_mutex_unlock(&stripe->lock);
    if (!keeps) {
        trim(response);
        pthread_mutex_lock(&stripe->lock);
        response->next = stripe->bare_responses;
        stripe->bare_responses = response;
        pthread_mutex_unlock(&stripe->lock);
    }
    if (!sent)
        kelp_factory_close(factory);
    kelp_factory_release(factory);
}

void kelp_response_free(kelp_response *response) {
    trim(response);
    kelp_free(kelp_allocator_system(), response, sizeof *response);
}

kelp_status *kelp_response_send(kelp_response *take_response, uint32_t flags,
                                const kelp_status *error) {
    kelp_response *response = take_response;
    kelp_factory *factory = response->factory;
    if (response->sent)
        return KELP_ERROR(KELP_INTERNAL, "the response was sent before");
    if (!may_send(factory, flags)) {
        kelp_status *status = is_over(factory);
        kelp_response_delete(response);
        return status;
    }
    if (error) {
        response->error = kelp_status_clone(error);
        atomic_store_explicit(&factory->failed, true, memory_order_relaxed);
    }
    kelp_cached_store(response, flags);
    response->sent = true;
    unsigned long long before =
        atomic_fetch_add_explicit(&factory->response_count, 1, memory_order_relaxed);
    if (before == 0 && factory->model->latency)
        kelp_latency_add_first(factory->model->latency, kelp_now_ns() - factory->start_ns);
    if (factory->trace)
        kelp_trace_outputs(factory->trace, response);
    factory->response_fn((TRITONSERVER_InferenceResponse *)response, flags,
                         factory->response_userp);
    kelp_factory_close(factory);
    return NULL;
}

/* ---- outputs ---- */

kelp_status *kelp_response_restore_output(kelp_response *response, const char *name,
                                          TRITONSERVER_DataType datatype, const int64_t *shape,
                                          uint32_t rank, kelp_output **out) {
    kelp_allocator heap = kelp_allocator_system();
    if (rank > KELP_SERVER_MAX_RANK)
        return KELP_ERROR(KELP_INVALID_ARGUMENT,
                          "output '%s' has %u dimensions: expected at most %d", name, rank,
                          KELP_SERVER_MAX_RANK);
    if (response->output_count == response->output_spare) {
        KELP_TRY(kelp_grow(heap, (void **)&response->outputs, &response->output_capacity,
                           response->output_count + 1, sizeof *response->outputs));
        KELP_TRY(KELP_NEW(heap, kelp_output, &response->outputs[response->output_count]));
        response->output_spare++;
    }
    kelp_output *output = response->outputs[response->output_count];
    KELP_TRY(kelp_text_set(&output->name, name));
    output->response = response;
    output->datatype = datatype;
    output->rank = rank;
    for (uint32_t i = 0; i < rank; i++)
        output->shape[i] = shape[i];
    output->allocated = false;
    output->buffer = NULL;
    output->buffer_userp = NULL;
    output->attributes = (kelp_buffer_attributes){0};
    response->output_count++;
    *out = output;
    return NULL;
}

kelp_status *kelp_response_add_output(kelp_response *response, const char *name,
                                      TRITONSERVER_DataType datatype, const int64_t *shape,
                                      uint32_t rank, kelp_output **out) {
    for (size_t i = 0; i < response->output_count; i++)
        if (strcmp(kelp_text_get(&response->outputs[i]->name), name) == 0)
            return KELP_ERROR(KELP_ALREADY_EXISTS, "the response has an output '%s' already", name);
    KELP_TRY(kelp_response_restore_output(response, name, datatype, shape, rank, out));
    kelp_status *status = kelp_output_reshape(response->factory->model, *out);
    if (status)
        response->output_count--;
    return status;
}

kelp_status *kelp_output_allocate(kelp_output *output, uint64_t size_bytes,
                                  TRITONSERVER_MemoryType memory_type, int64_t memory_type_id,
                                  void **out_buffer) {
    const char *name = kelp_text_get(&output->name);
    if (output->allocated)
        return KELP_ERROR(KELP_ALREADY_EXISTS, "allocated buffer for output '%s' already exists",
                          name);
    kelp_factory *factory = output->response->factory;
    TRITONSERVER_ResponseAllocator *allocator =
        (TRITONSERVER_ResponseAllocator *)factory->allocator;
    void *buffer = NULL, *buffer_userp = NULL;
    kelp_buffer_attributes attributes = {
        .size_bytes = size_bytes, .memory_type = memory_type, .memory_type_id = memory_type_id};
    KELP_TRY(kelp_from_error(factory->allocator->alloc_fn(
        allocator, name, size_bytes, memory_type, memory_type_id, factory->allocator_userp, &buffer,
        &buffer_userp, &attributes.memory_type, &attributes.memory_type_id)));
    if (!buffer && size_bytes)
        return KELP_ERROR(KELP_INTERNAL,
                          "the response allocator gave no buffer for output '%s' of %llu bytes",
                          name, (unsigned long long)size_bytes);
    output->allocated = true;
    output->buffer = buffer;
    output->buffer_userp = buffer_userp;
    output->attributes = attributes;
    if (factory->allocator->attributes_fn)
        KELP_TRY(kelp_from_error(factory->allocator->attributes_fn(
            allocator, name, (TRITONSERVER_BufferAttributes *)&output->attributes,
            factory->allocator_userp, buffer_userp)));
    *out_buffer = buffer;
    return NULL;
}
