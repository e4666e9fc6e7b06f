/* SPDX-License-Identifier: Apache-2.0 */
/* The default scheduler; see scheduler.h. Threads: submitters on any, each instance's own in
 * run_instance. */
#include "server/scheduler/scheduler.h"

#include "base/thread.h"
#include "server/model/model.h"

kelp_status *kelp_scheduler_init(kelp_scheduler *scheduler, bool run_inline) {
    *scheduler = (kelp_scheduler){.run_inline = run_inline};
    pthread_mutex_init(&scheduler->lock, NULL);
    pthread_cond_init(&scheduler->wake, NULL);
    return NULL;
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
}

static kelp_request *pop(kelp_scheduler *scheduler) {
    kelp_request *request = scheduler->head;
    if (request) {
        scheduler->head = request->next;
        if (!scheduler->head)
            scheduler->tail = NULL;
        request->next = NULL;
    }
    return request;
}

static void *run_instance(void *userp) {
    kelp_instance *instance = userp;
    kelp_scheduler *scheduler = &instance->model->scheduler;
    pthread_mutex_lock(&scheduler->lock);
    for (;;) {
        kelp_request *request = pop(scheduler);
        if (request) {
            pthread_mutex_unlock(&scheduler->lock);
            kelp_instance_execute(instance, &request, 1);
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
    while (request) {
        kelp_instance_execute(instance, &request, 1);
        pthread_mutex_lock(&scheduler->lock);
        request = pop(scheduler);
        if (!request) {
            instance->next_free = scheduler->free;
            scheduler->free = instance;
            if (scheduler->stopping)
                pthread_cond_broadcast(&scheduler->wake);
        }
        pthread_mutex_unlock(&scheduler->lock);
    }
}

void kelp_scheduler_submit(kelp_scheduler *scheduler, kelp_request *request) {
    pthread_mutex_lock(&scheduler->lock);
    if (!scheduler->run_inline) {
        push(scheduler, request);
        /* Inside the lock: outside it the request, and with it the model, may already be gone. */
        if (scheduler->sleeping > 0)
            pthread_cond_signal(&scheduler->wake);
        pthread_mutex_unlock(&scheduler->lock);
        return;
    }
    kelp_instance *instance = scheduler->free;
    if (instance)
        scheduler->free = instance->next_free;
    else
        push(scheduler, request);
    pthread_mutex_unlock(&scheduler->lock);
    if (instance)
        run_inline(scheduler, instance, request);
}
