/* SPDX-License-Identifier: Apache-2.0 */
/* The execution of requests by a backend. */
#include "base/assert.h"
#include "base/clock.h"
#include "server/core/error.h"
#include "server/core/log.h"
#include "server/model/model.h"
#include "server/request/factory.h"

/* The instances on which this thread executes requests, the innermost first. */
typedef struct frame {
    const kelp_instance *instance;
    struct frame *outer;
} frame;
static _Thread_local frame *executing;

bool kelp_instance_is_executing(const kelp_instance *instance) {
    for (const frame *f = executing; f != NULL; f = f->outer)
        if (f->instance == instance)
            return true;
    return false;
}

/* Marks requests to be counted on release; returns the size of the batch. */
static uint64_t begin_counting(kelp_instance *instance, kelp_request **requests, uint32_t count,
                               uint64_t now_ns) {
    uint64_t batch_size = 0;
    for (uint32_t i = 0; i < count; i++) {
        requests[i]->execute_start_ns = now_ns;
        requests[i]->counted_by = requests[i]->is_null ? NULL : &instance->base.stats;
        batch_size += requests[i]->batch_size;
    }
    return batch_size;
}

static void count_batch(kelp_instance *instance, uint64_t batch_size, uint64_t start_ns) {
    uint64_t now_ns = kelp_now_ns();
    kelp_request_times times = {.execute_start_ns = start_ns,
                                .compute_start_ns = start_ns,
                                .compute_end_ns = now_ns,
                                .execute_end_ns = now_ns};
    kelp_server_log_status("cannot count an execution",
                           kelp_stats_batch(&instance->base.stats, batch_size, &times));
}

/* The submission of an executing request. Not a reference: the pools keep factories until the
 * server is destroyed. */
typedef struct submission {
    kelp_factory *factory;
    unsigned long long serial;
} submission;

/* Fails the requests that Execute did not release before it returned an error. A released request
 * may have been deleted or resubmitted; its submission is over then. */
static void fail_unreleased(kelp_instance *instance, kelp_request **requests,
                            const submission *submissions, uint32_t count,
                            const kelp_status *error) {
    for (uint32_t i = 0; i < count; i++) {
        kelp_factory *factory = submissions[i].factory;
        if (atomic_load_explicit(&factory->released, memory_order_acquire) ||
            atomic_load_explicit(&factory->serial, memory_order_relaxed) != submissions[i].serial)
            continue;
        kelp_request_times times = {.request_start_ns = requests[i]->request_start_ns};
        requests[i]->counted_by = NULL;
        if (!requests[i]->is_null)
            kelp_stats_request(&instance->base.stats, false, requests[i]->batch_size, &times);
        kelp_request_fail(requests[i], error);
    }
}

/* Orders the responses by the execution of the requests. An iterative request has its place from
 * its first execution. */
static void order_responses(kelp_model *model, kelp_request **requests, uint32_t count) {
    for (uint32_t i = 0; i < count; i++)
        if (!requests[i]->is_null && requests[i]->factory->slot.order == NULL)
            kelp_response_order_join(&model->base.order, requests[i]->factory);
}

void kelp_instance_execute(kelp_instance_base *base, kelp_request **requests, uint32_t count) {
    kelp_instance *instance = (kelp_instance *)base;
    const kelp_server_backend *backend = instance->model->backend;
    submission submissions[KELP_MAX_EXECUTION_REQUESTS];
    uint64_t batch_size = 0, start_ns = 0;
    KELP_ASSERT(count > 0 && count <= KELP_MAX_EXECUTION_REQUESTS);
    if (backend->never_reports) {
        start_ns = kelp_now_ns();
        batch_size = begin_counting(instance, requests, count, start_ns);
    }
    for (uint32_t i = 0; i < count; i++) {
        KELP_ASSERT(atomic_load(&requests[i]->state) == KELP_REQUEST_EXECUTING);
        submissions[i].factory = requests[i]->factory;
        submissions[i].serial =
            atomic_load_explicit(&requests[i]->factory->serial, memory_order_relaxed);
    }
    if (instance->model->orders_executions)
        order_responses(instance->model, requests, count);
    frame here = {instance, executing};
    executing = &here;
    kelp_status *error =
        kelp_from_error(backend->fn.execute((TRITONBACKEND_ModelInstance *)instance,
                                            (TRITONBACKEND_Request **)(void *)requests, count));
    KELP_ASSERT(executing == &here);
    executing = here.outer;
    if (error != NULL)
        fail_unreleased(instance, requests, submissions, count, error);
    else if (backend->never_reports)
        count_batch(instance, batch_size, start_ns);
    for (uint32_t i = 0; error == NULL && backend->never_releases && i < count; i++)
        kelp_server_log_status("cannot release a request",
                               kelp_request_release(requests[i], TRITONSERVER_REQUEST_RELEASE_ALL));
    kelp_status_free(error);
}
