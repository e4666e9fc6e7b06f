/* SPDX-License-Identifier: Apache-2.0 */
/* The default scheduler; see scheduler.h. Threads: submitters on any, each instance's own in
 * run_instance, those that help submitters in help. */
#include "server/scheduler/scheduler.h"

#include "base/clock.h"
#include "base/thread.h"
#include "server/model/model.h"

/* Executions of a submitting thread that are inside each other: a request in the callback of
 * another, and so on. A few, for models that are chained; stacks are finite. */
enum { DEEPEST = 4 };
/* What a submitting thread runs of others beside its own request: executions, and until when. */
enum { MOST_OTHERS = 32, LONGEST_OTHERS_NS = 200000 };

static _Thread_local unsigned depth; /* executions on this thread that are under way */

void kelp_scheduler_init(kelp_scheduler *scheduler, const kelp_model_config *config,
                         kelp_execution execution) {
    *scheduler = (kelp_scheduler){.execution = execution};
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
    pthread_cond_init(&scheduler->changed, NULL);
}

void kelp_scheduler_deinit(kelp_scheduler *scheduler) {
    pthread_cond_destroy(&scheduler->changed);
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

/* Takes the first request and, where the rules say so, those behind it that fit; none that may
 * block, unless they are wanted too. The lock is held. */
static uint32_t take(kelp_scheduler *scheduler, bool blocking, kelp_request **out) {
    uint32_t count = 0;
    if (!scheduler->head || (scheduler->head->may_block && !blocking))
        return 0;
    kelp_request *first = pop(scheduler);
    uint64_t batch = first->batch_size;
    out[count++] = first;
    while (count < KELP_SCHEDULER_MOST_JOINED && scheduler->head &&
           (blocking || !scheduler->head->may_block) &&
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

/* What an instance's thread does first; false when it failed, and nothing follows. */
static bool begin(kelp_instance *instance) {
    kelp_scheduler *scheduler = &instance->model->scheduler;
    kelp_instance_start *start = instance->start;
    if (!start)
        return true;
    kelp_status *status = start->fn(instance);
    bool usable = !status;
    pthread_mutex_lock(&scheduler->lock);
    start->status = status;
    start->over = true;
    instance->start = NULL; /* it is the waiting thread's, and gone when that wakes */
    pthread_cond_broadcast(&scheduler->changed);
    pthread_mutex_unlock(&scheduler->lock);
    return usable;
}

/* The thread of an instance that executes nowhere else. */
static void *run_instance(void *userp) {
    kelp_instance *instance = userp;
    kelp_scheduler *scheduler = &instance->model->scheduler;
    kelp_request *requests[KELP_SCHEDULER_MOST_JOINED];
    bool usable = begin(instance);
    pthread_mutex_lock(&scheduler->lock);
    while (usable && !instance->leaving) {
        uint32_t count = take(scheduler, true, requests);
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
    if (instance->leaving && scheduler->head && scheduler->sleeping > 0)
        pthread_cond_signal(&scheduler->wake); /* it may have been woken for what is queued */
    pthread_mutex_unlock(&scheduler->lock);
    return NULL;
}

/* ---- on the submitting thread ---- */

/* An instance that nobody runs any more; the lock is held. */
static void put_free(kelp_scheduler *scheduler, kelp_instance *instance) {
    if (instance->leaving) {
        instance->left = true;
        pthread_cond_broadcast(&scheduler->changed);
        return;
    }
    instance->next_free = scheduler->free;
    scheduler->free = instance;
}

static kelp_instance *take_free(kelp_scheduler *scheduler) {
    kelp_instance *instance = scheduler->free;
    if (instance)
        scheduler->free = instance->next_free;
    return instance;
}

static void *help(void *userp);

/* Sees to it that a thread takes what is queued, or is about to be; the lock is held. Threads that
 * are awake look at the queue before they sleep. */
static kelp_status *call_help(kelp_scheduler *scheduler) {
    kelp_instance *instance = scheduler->threadless;
    if (scheduler->sleeping > 0) {
        pthread_cond_signal(&scheduler->wake);
        return NULL;
    }
    if (!instance)
        return NULL;
    KELP_TRY(kelp_thread_start(&instance->thread, "kelp-instance", help, scheduler));
    instance->has_thread = true;
    scheduler->threadless = instance->next_threadless;
    return NULL;
}

/* Gives an instance back, and what is queued to somebody else; false when there is nobody, and the
 * instance stays taken. The lock is held. */
static bool give_back(kelp_scheduler *scheduler, kelp_instance *instance) {
    if (scheduler->head) {
        kelp_status *status = call_help(scheduler);
        if (status) {
            kelp_status_free(status);
            return false;
        }
    }
    put_free(scheduler, instance);
    if (scheduler->stopping)
        pthread_cond_broadcast(&scheduler->changed);
    return true;
}

/* A thread for what submitting threads do not run, on whichever instance is free. */
static void *help(void *userp) {
    kelp_scheduler *scheduler = userp;
    kelp_request *requests[KELP_SCHEDULER_MOST_JOINED];
    pthread_mutex_lock(&scheduler->lock);
    for (;;) {
        kelp_instance *instance = scheduler->head ? take_free(scheduler) : NULL;
        if (instance) {
            uint32_t count = take(scheduler, true, requests);
            /* Two that were queued may have woken this thread only. */
            if (scheduler->head && scheduler->free)
                kelp_status_free(call_help(scheduler)); /* else this one comes back for it */
            pthread_mutex_unlock(&scheduler->lock);
            run(scheduler, instance, requests, count);
            pthread_mutex_lock(&scheduler->lock);
            put_free(scheduler, instance);
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

/* Whether a submitting thread that began then has done enough for others. */
static bool enough(uint64_t begin_ns, unsigned executions) {
    return executions >= MOST_OTHERS || kelp_now_ns() - begin_ns >= LONGEST_OTHERS_NS;
}

static void run_here(kelp_scheduler *scheduler, kelp_instance *instance, kelp_request *request) {
    kelp_request *requests[KELP_SCHEDULER_MOST_JOINED] = {request};
    uint64_t begin_ns = request->queue_start_ns;
    uint32_t count = 1;
    depth++;
    for (unsigned executions = 0; count; executions++) {
        run(scheduler, instance, requests, count);
        pthread_mutex_lock(&scheduler->lock);
        count = 0;
        if (scheduler->head && !enough(begin_ns, executions))
            count = take(scheduler, false, requests);
        if (!count && !give_back(scheduler, instance))
            count = take(scheduler, true, requests);
        pthread_mutex_unlock(&scheduler->lock);
    }
    depth--;
}

/* ---- instances, submission ---- */

kelp_status *kelp_scheduler_add(kelp_scheduler *scheduler, kelp_instance *instance,
                                kelp_status *(*fn)(kelp_instance *instance)) {
    kelp_instance_start start = {.fn = fn};
    if (scheduler->execution.on_caller) {
        if (fn)
            KELP_TRY(fn(instance));
        pthread_mutex_lock(&scheduler->lock);
        instance->next_free = scheduler->free;
        scheduler->free = instance;
        instance->next_threadless = scheduler->threadless;
        scheduler->threadless = instance;
        pthread_mutex_unlock(&scheduler->lock);
        return NULL;
    }
    if (fn)
        instance->start = &start;
    KELP_TRY(kelp_thread_start(&instance->thread, "kelp-instance", run_instance, instance));
    instance->has_thread = true;
    pthread_mutex_lock(&scheduler->lock);
    while (fn && !start.over)
        pthread_cond_wait(&scheduler->changed, &scheduler->lock);
    pthread_mutex_unlock(&scheduler->lock);
    return start.status;
}

void kelp_scheduler_remove(kelp_scheduler *scheduler, kelp_instance *instance) {
    pthread_mutex_lock(&scheduler->lock);
    instance->leaving = true;
    if (!scheduler->execution.on_caller) {
        pthread_cond_broadcast(&scheduler->wake);
        pthread_mutex_unlock(&scheduler->lock);
        pthread_join(instance->thread, NULL);
        instance->has_thread = false;
        return;
    }
    for (kelp_instance **link = &scheduler->free; *link; link = &(*link)->next_free) {
        if (*link == instance) {
            *link = instance->next_free;
            instance->left = true;
            break;
        }
    }
    /* A thread that its place has started goes on, and runs the others. */
    for (kelp_instance **link = &scheduler->threadless; *link; link = &(*link)->next_threadless) {
        if (*link == instance) {
            *link = instance->next_threadless;
            break;
        }
    }
    while (!instance->left)
        pthread_cond_wait(&scheduler->changed, &scheduler->lock);
    pthread_mutex_unlock(&scheduler->lock);
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
    /* A submitting thread may still hold an instance after it had ended the last request. */
    pthread_mutex_lock(&scheduler->lock);
    while (scheduler->execution.on_caller) {
        size_t idle = 0;
        for (kelp_instance *instance = scheduler->free; instance; instance = instance->next_free)
            idle++;
        size_t expected = 0;
        for (size_t i = 0; i < count; i++)
            expected +=
                !instances[i]->passive && instances[i]->initialized && !instances[i]->leaving;
        if (idle >= expected)
            break;
        pthread_cond_wait(&scheduler->changed, &scheduler->lock);
    }
    scheduler->free = scheduler->threadless = NULL;
    pthread_mutex_unlock(&scheduler->lock);
}

/* Queues a request for a thread of the scheduler; the lock is held. */
static kelp_status *queue(kelp_scheduler *scheduler, kelp_request *request) {
    const kelp_queue_rules *rules = &scheduler->rules;
    if (rules->max_queued && scheduler->queued >= rules->max_queued)
        return KELP_ERROR(KELP_UNAVAILABLE, KELP_REQUEST_TAG "Exceeds maximum queue size",
                          kelp_request_tag(request));
    /* Inside the lock: outside it the request, and with it the model, may already be gone. */
    if (!scheduler->execution.on_caller) {
        if (scheduler->sleeping > 0)
            pthread_cond_signal(&scheduler->wake);
    } else if (scheduler->free) {
        KELP_TRY(call_help(scheduler));
    }
    push(scheduler, request);
    return NULL;
}

uint32_t kelp_scheduler_queued(kelp_scheduler *scheduler) {
    pthread_mutex_lock(&scheduler->lock);
    uint32_t count = scheduler->queued;
    pthread_mutex_unlock(&scheduler->lock);
    return count;
}

kelp_status *kelp_scheduler_submit(kelp_scheduler *scheduler, kelp_request *request) {
    const kelp_execution *execution = &scheduler->execution;
    kelp_instance *instance = NULL;
    kelp_status *status = NULL;
    request->may_block =
        execution->may_block && execution->may_block((TRITONBACKEND_Model *)request->model,
                                                     (TRITONBACKEND_Request *)request);
    pthread_mutex_lock(&scheduler->lock);
    if (execution->on_caller && !request->may_block && !scheduler->head && depth < DEEPEST)
        instance = take_free(scheduler);
    if (!instance)
        status = queue(scheduler, request);
    pthread_mutex_unlock(&scheduler->lock);
    if (instance)
        run_here(scheduler, instance, request);
    return status;
}
