/* SPDX-License-Identifier: Apache-2.0 */
/* Creation, reference counts and completion of submissions. */
#include "server/request/factory.h"

#include "base/assert.h"
#include "server/core/log.h"
#include "server/request/response_cache.h"
#include "server/request/trace.h"

kelp_status *kelp_factory_create(kelp_request *request, kelp_factory **out) {
    KELP_ASSERT(atomic_load(&request->model->live) > 0);
    kelp_request_pool *pool = kelp_request_pool_of_thread(&request->model->host->pools);
    kelp_factory *factory = kelp_request_pool_take_factory(pool);
    if (factory == NULL)
        KELP_TRY(KELP_NEW(pool->allocator, kelp_factory, &factory));
    factory->home = pool;
    kelp_status *status = kelp_text_set(pool->allocator, &factory->id, kelp_text_get(&request->id));
    if (status != NULL) {
        kelp_factory_free(factory);
        return status;
    }
    factory->next = NULL;
    factory->model = request->model;
    kelp_model_retain(factory->model);
    atomic_store_explicit(&factory->refs, 2, memory_order_relaxed);
    atomic_store_explicit(&factory->open, 1, memory_order_relaxed);
    atomic_store_explicit(&factory->late, 0, memory_order_relaxed);
    atomic_store_explicit(&factory->cancelled, false, memory_order_relaxed);
    atomic_store_explicit(&factory->execution, NULL, memory_order_relaxed);
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
    factory->slot = (kelp_response_slot){0};
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
    kelp_allocator allocator = factory->home->allocator;
    kelp_text_deinit(allocator, &factory->id);
    kelp_free(allocator, factory, sizeof *factory);
}

void kelp_factory_retain(kelp_factory *factory) {
    KELP_ASSERT(atomic_load(&factory->refs) > 0);
    atomic_fetch_add_explicit(&factory->refs, 1, memory_order_relaxed);
}

void kelp_factory_release(kelp_factory *factory) {
    KELP_ASSERT(atomic_load(&factory->refs) > 0);
    if (atomic_fetch_sub_explicit(&factory->refs, 1, memory_order_acq_rel) != 1)
        return;
    KELP_ASSERT(atomic_load(&factory->ticket) == NULL);
    kelp_model_base *model = factory->model;
    /* Factories are never freed before the pool: fail_unreleased in model/execute.c reads them to
     * determine whether a submission is over. */
    kelp_request_pool_put_factory(factory->home, factory);
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

kelp_status *kelp_factory_over(const kelp_factory *factory) {
    return KELP_ERROR(KELP_INTERNAL,
                      "the final response of the request for model '%s' was sent before",
                      factory->model->name);
}

void kelp_factory_leave_trace(kelp_factory *factory) {
    if (factory->trace == NULL ||
        atomic_fetch_sub_explicit(&factory->trace_users, 1, memory_order_acq_rel) != 1)
        return;
    kelp_trace *trace = factory->trace;
    factory->trace = NULL;
    kelp_trace_release(trace);
}

/* Frees the ticket. The model is entered, so that its cache exists. */
static void discard_ticket(kelp_factory *factory) {
    if (!atomic_load_explicit(&factory->ticket, memory_order_relaxed))
        return;
    kelp_response_cache *cache = factory->model->cache;
    cache->ops->discard(cache, atomic_exchange(&factory->ticket, NULL));
}

/* Sends FINAL for a backend that did not; with an error if it sent no response. */
static void finish(kelp_factory *factory) {
    bool decoupled = factory->model->decoupled;
    if (atomic_load(&factory->response_count) == 0 && !decoupled) {
        kelp_response *response = NULL;
        kelp_status *error =
            atomic_load(&factory->starved)
                ? KELP_ERROR(KELP_RESOURCE_EXHAUSTED,
                             "out of memory for the response of model '%s'", factory->model->name)
                : KELP_ERROR(KELP_INTERNAL,
                             "backend '%s' released the request for model '%s' without a response",
                             factory->model->backend_name, factory->model->name);
        atomic_fetch_add(&factory->open, 1); /* so that sending does not recurse */
        kelp_status *status = kelp_response_create(factory, &response);
        if (status == NULL)
            status = kelp_response_send(response, TRITONSERVER_RESPONSE_COMPLETE_FINAL, error);
        atomic_fetch_sub(&factory->open, 1);
        kelp_status_free(error);
        if (status == NULL)
            return;
        kelp_server_log_status("cannot send an error response", status);
    }
    kelp_server_log_status("cannot end a request",
                           kelp_factory_send_flags(factory, TRITONSERVER_RESPONSE_COMPLETE_FINAL));
}

void kelp_factory_count(kelp_factory *factory) {
    if (factory->counted_by == NULL)
        return;
    bool success = !atomic_load(&factory->failed) &&
                   (atomic_load(&factory->response_count) > 0 || factory->model->decoupled);
    kelp_stats_request(factory->counted_by, success, factory->batch_size, &factory->times);
    factory->counted_by = NULL;
}

void kelp_factory_close(kelp_factory *factory) {
    KELP_ASSERT(atomic_load(&factory->open) > 0);
    if (atomic_fetch_sub_explicit(&factory->open, 1, memory_order_acq_rel) != 1)
        return;
    kelp_factory_count(factory);
    bool ordered = factory->slot.order != NULL;
    if (ordered)
        kelp_factory_retain(factory); /* another thread may pass on FINAL */
    if (!atomic_load_explicit(&factory->final_sent, memory_order_relaxed))
        finish(factory);
    if (!ordered || kelp_response_order_retire(factory))
        kelp_factory_retire(factory);
    if (ordered)
        kelp_factory_release(factory);
}

void kelp_factory_retire(kelp_factory *factory) {
    kelp_factory_leave_trace(factory);
    discard_ticket(factory);
    kelp_model_base *model = factory->model;
    kelp_model_retain(model); /* kelp_model_leave needs the model's memory until it returns */
    kelp_factory_release(factory);
    kelp_model_leave(model);
    kelp_model_release(model);
}

void kelp_factory_abandon(kelp_factory *factory) {
    KELP_ASSERT(atomic_load(&factory->open) == 1 && !atomic_load(&factory->final_sent));
    if (factory->slot.order != NULL)
        kelp_response_order_leave(factory);
    discard_ticket(factory);
    atomic_store_explicit(&factory->open, 0, memory_order_relaxed);
    kelp_factory_release(factory);
    kelp_factory_release(factory);
}

void kelp_factory_cancel(kelp_factory *factory) {
    atomic_store(&factory->cancelled, true);
    atomic_fetch_add_explicit(&factory->model->cancellations, 1, memory_order_release);
    if (factory->model->ops->cancel != NULL)
        factory->model->ops->cancel(factory->model, factory);
}

bool kelp_factory_may_send(kelp_factory *factory, uint32_t flags) {
    if (flags & TRITONSERVER_RESPONSE_COMPLETE_FINAL)
        return !atomic_exchange_explicit(&factory->final_sent, true, memory_order_relaxed);
    return !atomic_load_explicit(&factory->final_sent, memory_order_relaxed);
}

kelp_status *kelp_factory_send_flags(kelp_factory *factory, uint32_t flags) {
    if (!kelp_factory_may_send(factory, flags))
        return kelp_factory_over(factory);
    if (factory->slot.order != NULL)
        kelp_response_order_send(factory, NULL, flags);
    else
        factory->response_fn(NULL, flags, factory->response_userp);
    return NULL;
}
