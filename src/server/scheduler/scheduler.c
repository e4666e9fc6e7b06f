/* SPDX-License-Identifier: Apache-2.0 */
/* The default scheduler; see scheduler.h. Threads: submitters on any, each instance's own in
 * run_instance. */
#include "server/scheduler/scheduler.h"

#include "base/clock.h"
#include "base/thread.h"
#include "server/model/model.h"

/* Requests that one execution takes at most. */
enum { MOST_JOINED = 256 };

void kelp_scheduler_init(kelp_scheduler *scheduler, const kelp_model_config *config,
                         bool run_inline) {
    *scheduler = (kelp_scheduler){.run_inline = run_inline};
    if (config->scheduling == KELP_SCHEDULING_DYNAMIC) {
        kelp_queue_rules *rules = &scheduler->rules;
        const kelp_queue_policy *policy = &config->dynamic_batching.default_queue_policy;
        rules->max_batch = config->max_batch_size > 0 ? (uint32_t)config->max_batch_size : 0;
        for (size_t i = 0; i < config->input_count; i++)
            if (config->inputs[i].is_shape_tensor)
                rules->max_batch = 0; /* their contents would have to agree */
        if (config->dynamic_batching.has_default_queue_policy) {
            rules->max_queued = policy->max_queue_size;
            rules->timeout_us = policy->default_timeout_us;
            rules->shorter_timeouts = policy->allow_timeout_override;
            rules->reject_on_timeout = policy->timeout_action == KELP_TIMEOUT_REJECT;
        }
    }
    pthread_mutex_init(&scheduler->lock, NULL);
    pthread_cond_init(&scheduler->wake, NULL);
}

void kelp_scheduler_deinit(kelp_scheduler *scheduler) {
    pthread_cond_destroy(&scheduler->wake);
    pthread_mutex_destroy(&scheduler->lock);
}

static void push(kelp_scheduler *scheduler, kelp_request *request) {
    request->next = NULL;
    if (scheduler->tail)
        scheduler->tail->next = request;
    else
        scheduler->head = request;
    scheduler->tail = request;
    scheduler->queued++;
}

static kelp_request *pop(kelp_scheduler *scheduler) {
    kelp_request *request = scheduler->head;
    if (request) {
        scheduler->head = request->next;
        if (!scheduler->head)
            scheduler->tail = NULL;
        request->next = NULL;
        scheduler->queued--;
    }
    return request;
}

/* Whether two requests can be one batch: the same inputs, of the same shapes but for the batch. */
static bool joinable(const kelp_request *a, const kelp_request *b) {
    if (a->input_count != b->input_count)
        return false;
    for (size_t i = 0; i < a->input_count; i++) {
        const kelp_input *left = a->inputs[i];
        const kelp_input *right = kelp_request_find_input(b, kelp_text_get(&left->name));
        if (!right || left->rank != right->rank)
            return false;
        const kelp_config_io *io =
            kelp_model_config_input(a->model->config, kelp_str_from(kelp_text_get(&left->name)));
        if (io && io->allow_ragged_batch)
            continue;
        for (uint32_t k = 1; k < left->rank; k++)
            if (left->shape[k] != right->shape[k])
                return false;
    }
    return true;
}

/* Takes the first request and, where the rules say so, those behind it that fit. The lock is held.
 */
static uint32_t take(kelp_scheduler *scheduler, kelp_request **out) {
    kelp_request *first = pop(scheduler);
    uint32_t count = 0;
    if (!first)
        return 0;
    uint64_t batch = first->batch_size;
    out[count++] = first;
    while (count < MOST_JOINED && scheduler->head &&
           batch + scheduler->head->batch_size <= scheduler->rules.max_batch &&
           joinable(first, scheduler->head)) {
        batch += scheduler->head->batch_size;
        out[count++] = pop(scheduler);
    }
    return count;
}

/* How long a request may wait; 0 for ever. */
static uint64_t patience_us(const kelp_queue_rules *rules, const kelp_request *request) {
    uint64_t own_us = request->timeout_us;
    if (rules->shorter_timeouts && own_us && own_us < rules->timeout_us)
        return own_us;
    return rules->timeout_us;
}

/* Runs what was taken, without those that waited too long. The lock is not held. */
static void run(kelp_scheduler *scheduler, kelp_instance *instance, kelp_request **requests,
                uint32_t count) {
    if (!scheduler->rules.timeout_us || !scheduler->rules.reject_on_timeout) {
        kelp_instance_execute(instance, requests, count);
        return;
    }
    uint64_t now_ns = kelp_now_ns();
    uint32_t kept = 0;
    for (uint32_t i = 0; i < count; i++) {
        kelp_request *request = requests[i];
        uint64_t limit_us = patience_us(&scheduler->rules, request);
        if ((now_ns - request->queue_start_ns) / 1000 <= limit_us) {
            requests[kept++] = request;
            continue;
        }
        kelp_status *error =
            KELP_ERROR(KELP_UNAVAILABLE, KELP_REQUEST_TAG "Request timeout expired",
                       kelp_request_tag(request));
        kelp_instance_refuse(instance, request, error);
        kelp_status_free(error);
    }
    if (kept)
        kelp_instance_execute(instance, requests, kept);
}

static void *run_instance(void *userp) {
    kelp_instance *instance = userp;
    kelp_scheduler *scheduler = &instance->model->scheduler;
    kelp_request *requests[MOST_JOINED];
    pthread_mutex_lock(&scheduler->lock);
    for (;;) {
        uint32_t count = take(scheduler, requests);
        if (count) {
            pthread_mutex_unlock(&scheduler->lock);
            run(scheduler, instance, requests, count);
            pthread_mutex_lock(&scheduler->lock);
            continue;
        }
        if (scheduler->stopping)
            break;
        scheduler->sleeping++;
        pthread_cond_wait(&scheduler->wake, &scheduler->lock);
        scheduler->sleeping--;
    }
    pthread_mutex_unlock(&scheduler->lock);
    return NULL;
}

kelp_status *kelp_scheduler_add(kelp_scheduler *scheduler, kelp_instance *instance) {
    if (scheduler->run_inline) {
        pthread_mutex_lock(&scheduler->lock);
        instance->next_free = scheduler->free;
        scheduler->free = instance;
        pthread_mutex_unlock(&scheduler->lock);
        return NULL;
    }
    KELP_TRY(kelp_thread_start(&instance->thread, "kelp-instance", run_instance, instance));
    instance->has_thread = true;
    return NULL;
}

void kelp_scheduler_stop(kelp_scheduler *scheduler, kelp_instance **instances, size_t count) {
    pthread_mutex_lock(&scheduler->lock);
    scheduler->stopping = true;
    pthread_cond_broadcast(&scheduler->wake);
    pthread_mutex_unlock(&scheduler->lock);
    for (size_t i = 0; i < count; i++) {
        if (instances[i]->has_thread)
            pthread_join(instances[i]->thread, NULL);
        instances[i]->has_thread = false;
    }
    /* A thread that ran inline may still hold the lock after it had ended the last request. */
    pthread_mutex_lock(&scheduler->lock);
    while (scheduler->run_inline) {
        size_t idle = 0;
        for (kelp_instance *instance = scheduler->free; instance; instance = instance->next_free)
            idle++;
        size_t expected = 0;
        for (size_t i = 0; i < count; i++)
            expected += !instances[i]->passive && instances[i]->initialized;
        if (idle >= expected)
            break;
        pthread_cond_wait(&scheduler->wake, &scheduler->lock);
    }
    scheduler->free = NULL;
    pthread_mutex_unlock(&scheduler->lock);
}

static void run_inline(kelp_scheduler *scheduler, kelp_instance *instance, kelp_request *request) {
    kelp_request *requests[MOST_JOINED] = {request};
    uint32_t count = 1;
    while (count) {
        run(scheduler, instance, requests, count);
        pthread_mutex_lock(&scheduler->lock);
        count = take(scheduler, requests);
        if (!count) {
            instance->next_free = scheduler->free;
            scheduler->free = instance;
            if (scheduler->stopping)
                pthread_cond_broadcast(&scheduler->wake);
        }
        pthread_mutex_unlock(&scheduler->lock);
    }
}

kelp_status *kelp_scheduler_submit(kelp_scheduler *scheduler, kelp_request *request) {
    const kelp_queue_rules *rules = &scheduler->rules;
    pthread_mutex_lock(&scheduler->lock);
    kelp_instance *instance = scheduler->run_inline ? scheduler->free : NULL;
    if (instance) {
        scheduler->free = instance->next_free;
    } else if (rules->max_queued && scheduler->queued >= rules->max_queued) {
        pthread_mutex_unlock(&scheduler->lock);
        return KELP_ERROR(KELP_UNAVAILABLE, KELP_REQUEST_TAG "Exceeds maximum queue size",
                          kelp_request_tag(request));
    } else {
        push(scheduler, request);
        /* Inside the lock: outside it the request, and with it the model, may already be gone. */
        if (scheduler->sleeping > 0)
            pthread_cond_signal(&scheduler->wake);
    }
    pthread_mutex_unlock(&scheduler->lock);
    if (instance)
        run_inline(scheduler, instance, request);
    return NULL;
}
