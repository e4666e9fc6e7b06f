/* SPDX-License-Identifier: Apache-2.0 */
/* Threads and instances. Submissions come on any thread. instance_main is the thread of
 * KELP_EXECUTE_ON_INSTANCE, worker_main that of KELP_EXECUTE_ON_CALLER. */
#include "server/scheduler/instance_pool.h"

#include "base/assert.h"
#include "base/checked.h"
#include "base/clock.h"
#include "base/sync/thread.h"

#include <time.h>

/* The maximum depth of nested executions on a submitting thread. Executions nest when a response
 * callback submits a request, such as in models that call each other. */
enum { MAX_NESTED_EXECUTIONS = 4 };
/* The budget of a submitting thread for requests of other threads: executions, and time. */
enum { MAX_EXTRA_EXECUTIONS = 32, MAX_EXTRA_NS = 200000 };
enum { EXPIRY_STEP_NS = 1000000 };
/* One of MEASURED_ONE_OF executions on submitting threads is measured: reading the clock takes a
 * percent of the time of the smallest models. */
enum { MEASURED_ONE_OF = 8 };
/* While submitting threads execute queued requests, a worker leaves them those that are due for
 * HANDOVER_NS. It does so HANDOVERS times after they executed some. */
enum { HANDOVER_NS = 50000, HANDOVERS = 8 };
/* A worker executes a batch that another thread has promised if that is late by this time. */
enum { PROMISE_NS = 2000000 };
/* Inputs extend the limit of a submitting thread by 4 us per 64 KiB, at most 128 us. */
enum { MAX_EXTENDING_BYTES = 2 << 20, EXTENDING_BYTES = 64 << 10, EXTENSION_NS = 4000 };
/* A measured time of more than MAX_MEASURED times the limit counts as this time. */
enum { MAX_MEASURED = 32 };

static _Thread_local unsigned nested_executions;
static _Thread_local unsigned begun_executions; /* modulo 2^N */

/* The duration of an execution. */
typedef struct measurement {
    bool wanted;
    unsigned class_index;
    uint64_t duration_ns;
    kelp_execution_report report; /* batch_size 0: none */
} measurement;

/* The work of an instance's thread before it executes requests, and the result. */
typedef struct kelp_preparation {
    kelp_prepare_fn prepare;
    kelp_status *status;
    bool done; /* under the pool's lock; signalled by `changed` */
} kelp_preparation;

static void expire(void *userp);

kelp_status *kelp_instance_pool_init(kelp_instance_pool *pool,
                                     const kelp_instance_pool_options *options) {
    KELP_ASSERT(options->policy && options->policy->ops && options->execute && options->stats);
    pthread_condattr_t attributes;
    *pool = (kelp_instance_pool){.policy = options->policy,
                                 .mode = options->mode,
                                 .caller_limit_ns = options->caller_limit_ns,
                                 .joins_requests = options->joins_requests,
                                 .execute = options->execute,
                                 .stats = options->stats,
                                 .expires_ns = KELP_NEVER_NS,
                                 .next_check_ns = KELP_NEVER_NS,
                                 .now_ns = options->now_ns != NULL ? options->now_ns : kelp_now_ns};
    if (options->timers != NULL)
        KELP_TRY(kelp_timer_add(options->timers, &pool->expiry, expire, pool));
    pool->has_expiry = options->timers != NULL;
    pthread_mutex_init(&pool->lock, NULL);
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&pool->work, &attributes);
    pthread_condattr_destroy(&attributes);
    pthread_cond_init(&pool->changed, NULL);
    pthread_cond_init(&pool->rejections, NULL);
    return NULL;
}

void kelp_instance_pool_deinit(kelp_instance_pool *pool) {
    if (pool->has_expiry)
        kelp_timer_remove(&pool->expiry);
    KELP_ASSERT(pool->policy->ops->size(pool->policy) == 0);
    KELP_ASSERT(!pool->has_rejecter && pool->first_rejected == NULL);
    pthread_cond_destroy(&pool->rejections);
    pthread_cond_destroy(&pool->changed);
    pthread_cond_destroy(&pool->work);
    pthread_mutex_destroy(&pool->lock);
}

/* ---- the policy, under the lock ---- */

static uint64_t ready_at_ns(kelp_instance_pool *pool, const kelp_instance_base *instance) {
    KELP_ASSERT_HELD(&pool->lock);
    return pool->policy->ops->ready_at_ns(pool->policy, instance);
}

/* Returns true if requests can be taken; `out_now_ns` is then the time. */
static bool is_due(kelp_instance_pool *pool, uint64_t ready_ns, uint64_t *out_now_ns) {
    *out_now_ns = 0;
    if (ready_ns == KELP_NEVER_NS)
        return false;
    *out_now_ns = pool->now_ns();
    return ready_ns <= *out_now_ns;
}

/* Returns true if requests can be taken by an instance. */
static bool has_due(kelp_instance_pool *pool) {
    uint64_t now_ns;
    return is_due(pool, ready_at_ns(pool, NULL), &now_ns);
}

static uint32_t take(kelp_instance_pool *pool, const kelp_instance_base *instance, bool may_block,
                     uint64_t now_ns, kelp_request **out_requests) {
    KELP_ASSERT_HELD(&pool->lock);
    uint32_t count =
        pool->policy->ops->take(pool->policy, instance, may_block, now_ns, out_requests);
    KELP_ASSERT(count <= KELP_MAX_EXECUTION_REQUESTS);
    return count;
}

/* Describes an execution that begins. */
static void begin_report(kelp_instance_pool *pool, kelp_request *const *requests, uint32_t count,
                         kelp_execution_report *out) {
    *out = (kelp_execution_report){.oldest_ns = KELP_NEVER_NS, .start_ns = pool->now_ns()};
    for (uint32_t i = 0; i < count; i++) {
        out->batch_size += requests[i]->batch_size;
        if (requests[i]->queue_start_ns < out->oldest_ns)
            out->oldest_ns = requests[i]->queue_start_ns;
    }
}

/* Executes taken requests except those that were cancelled or timed out. The lock is not held. An
 * execution is not measured if a callback began another one on this thread. */
static void execute(kelp_instance_pool *pool, kelp_instance_base *instance, kelp_request **requests,
                    uint32_t count, uint64_t now_ns, measurement *inout) {
    count = kelp_request_queue_reject(&instance->stats, requests, count, now_ns);
    unsigned serial = ++begun_executions;
    inout->wanted &= count > 0 && pool->caller_limit_ns > 0;
    if (inout->wanted)
        inout->class_index = kelp_execution_class(kelp_execution_bytes(requests, count));
    if (pool->policy->wants_reports)
        begin_report(pool, requests, count, &inout->report);
    if (count)
        pool->execute(instance, requests, count);
    if (inout->report.batch_size > 0)
        inout->report.end_ns = pool->now_ns();
    inout->wanted &= serial == begun_executions;
    if (inout->wanted)
        inout->duration_ns = pool->now_ns() - now_ns;
}

/* Adds a measured execution to the times, and reports it to the policy; the lock is held. */
static void add_time(kelp_instance_pool *pool, const measurement *m) {
    KELP_ASSERT_HELD(&pool->lock);
    if (m->report.batch_size > 0)
        pool->policy->ops->executed(pool->policy, &m->report);
    if (m->wanted)
        kelp_execution_times_add(&pool->times, m->class_index, m->duration_ns,
                                 pool->caller_limit_ns * MAX_MEASURED);
}

void kelp_instance_pool_add_time(kelp_instance_pool *pool, unsigned class_index,
                                 uint64_t duration_ns) {
    const measurement m = {.wanted = pool->caller_limit_ns > 0,
                           .class_index = class_index,
                           .duration_ns = duration_ns};
    pthread_mutex_lock(&pool->lock);
    add_time(pool, &m);
    pthread_mutex_unlock(&pool->lock);
}

/* Returns the expected time of an execution with inputs of a size. The lock is held. */
static uint64_t expected_ns(const kelp_instance_pool *pool, uint64_t size_bytes) {
    return kelp_execution_times_get(&pool->times, kelp_execution_class(size_bytes));
}

/* Returns true if requests of the size run on submitting threads. Large inputs extend the limit: to
 * receive them takes longer than that, and another thread would read them from another cache. The
 * lock is held. */
static bool is_short(const kelp_instance_pool *pool, kelp_request *const *request) {
    if (pool->caller_limit_ns == 0)
        return true;
    uint64_t size_bytes = kelp_execution_bytes(request, 1);
    uint64_t steps = KELP_MIN(size_bytes, (uint64_t)MAX_EXTENDING_BYTES) / EXTENDING_BYTES;
    return expected_ns(pool, size_bytes) <= pool->caller_limit_ns + steps * EXTENSION_NS;
}

/* Waits for a signal, at most until a time; requests that are due before `check_ns` signal. The
 * lock is held. */
static void wait_for_work(kelp_instance_pool *pool, uint64_t check_ns, uint64_t until_ns) {
    KELP_ASSERT_HELD(&pool->lock);
    KELP_ASSERT(check_ns <= until_ns);
    pool->waiting++;
    if (check_ns < pool->next_check_ns)
        pool->next_check_ns = check_ns;
    if (until_ns == KELP_NEVER_NS) {
        pthread_cond_wait(&pool->work, &pool->lock);
    } else {
        const struct timespec until = {.tv_sec = (time_t)(until_ns / 1000000000),
                                       .tv_nsec = (long)(until_ns % 1000000000)};
        pthread_cond_timedwait(&pool->work, &pool->lock, &until);
    }
    pool->waiting--;
    pool->next_check_ns = KELP_NEVER_NS; /* those of other threads are forgotten, too */
}

/* Returns the time from which a worker takes requests. The lock is held. */
static uint64_t worker_at_ns(kelp_instance_pool *pool) {
    uint64_t ready_ns = ready_at_ns(pool, NULL);
    bool promised = pool->promise != NULL && ready_ns > 0 && ready_ns < KELP_NEVER_NS - PROMISE_NS;
    return promised ? ready_ns + PROMISE_NS : ready_ns;
}

/* Wakes a waiting thread when requests are due before a waiting thread looks at the policy. Wakes
 * all of them if only one of them may take the requests. The lock is held. */
static void wake_threads(kelp_instance_pool *pool) {
    KELP_ASSERT_HELD(&pool->lock);
    if (pool->waiting == 0)
        return;
    if (pool->policy->ops->attach != NULL) {
        pthread_cond_broadcast(&pool->work);
    } else if (worker_at_ns(pool) < pool->next_check_ns) {
        pool->next_check_ns = 0; /* the thread that wakes up */
        pthread_cond_signal(&pool->work);
    }
}

/* ---- ON_INSTANCE ---- */

/* Prepares the instance on its thread; returns false if that fails. */
static bool prepare(kelp_instance_pool *pool, kelp_instance_base *instance) {
    kelp_preparation *preparation = instance->preparation;
    if (preparation == NULL)
        return true;
    kelp_status *status = preparation->prepare(instance);
    bool usable = status == NULL;
    pthread_mutex_lock(&pool->lock);
    preparation->status = status;
    preparation->done = true;
    instance->preparation = NULL; /* on the stack of the waiting thread */
    pthread_cond_broadcast(&pool->changed);
    pthread_mutex_unlock(&pool->lock);
    return usable;
}

/* Waits until the rate limiter permits an execution; the lock is released meanwhile. Returns true
 * if requests are still due then. */
static bool acquire_resources(kelp_instance_pool *pool, kelp_instance_base *instance,
                              uint64_t *inout_now_ns) {
    if (instance->ticket.limiter == NULL)
        return true;
    bool granted = kelp_rate_ticket_request(&instance->ticket);
    if (!granted) {
        if (pool->waiting > 0) /* the resources of another instance may be free */
            pthread_cond_signal(&pool->work);
        pthread_mutex_unlock(&pool->lock);
        granted = kelp_rate_ticket_wait(&instance->ticket);
        pthread_mutex_lock(&pool->lock);
    }
    if (granted && is_due(pool, ready_at_ns(pool, instance), inout_now_ns))
        return true;
    kelp_rate_ticket_withdraw(&instance->ticket);
    return false;
}

static void *instance_main(void *userp) {
    kelp_instance_base *instance = userp;
    kelp_instance_pool *pool = instance->pool;
    kelp_request *requests[KELP_MAX_EXECUTION_REQUESTS];
    bool usable = prepare(pool, instance);
    kelp_thread_wait_precisely(); /* for queue delays */
    pthread_mutex_lock(&pool->lock);
    while (usable && !instance->removing) {
        uint64_t now_ns, ready_ns = ready_at_ns(pool, instance);
        uint32_t count = 0;
        if (is_due(pool, ready_ns, &now_ns) && acquire_resources(pool, instance, &now_ns))
            count = take(pool, instance, true, now_ns, requests);
        /* Other requests are left, or sequences have moved to slots of other instances. */
        if (count > 0 || (pool->policy->ops->attach != NULL && has_due(pool)))
            wake_threads(pool);
        if (count) {
            measurement m = {0}; /* only for the policy */
            pthread_mutex_unlock(&pool->lock);
            execute(pool, instance, requests, count, now_ns, &m);
            pthread_mutex_lock(&pool->lock);
            if (instance->ticket.limiter != NULL)
                kelp_rate_ticket_release(&instance->ticket,
                                         !instance->removing &&
                                             is_due(pool, ready_at_ns(pool, instance), &now_ns));
            add_time(pool, &m);
            continue;
        }
        if (instance->ticket.limiter != NULL) /* there was nothing to take */
            kelp_rate_ticket_withdraw(&instance->ticket);
        if (pool->stopping)
            break;
        wait_for_work(pool, ready_ns, ready_ns);
    }
    if (instance->ticket.limiter != NULL)
        kelp_rate_ticket_withdraw(&instance->ticket);
    if (instance->removing && pool->waiting > 0 && ready_at_ns(pool, NULL) != KELP_NEVER_NS)
        pthread_cond_signal(&pool->work); /* this thread may have consumed the signal */
    pthread_mutex_unlock(&pool->lock);
    return NULL;
}

/* ---- ON_CALLER ---- */

static void push_idle(kelp_instance_pool *pool, kelp_instance_base *instance) {
    KELP_ASSERT_HELD(&pool->lock);
    if (instance->removing) {
        instance->removed = true;
        pthread_cond_broadcast(&pool->changed);
        return;
    }
    instance->next_idle = pool->idle;
    pool->idle = instance;
}

static kelp_instance_base *pop_idle(kelp_instance_pool *pool) {
    KELP_ASSERT_HELD(&pool->lock);
    kelp_instance_base *instance = pool->idle;
    if (instance != NULL)
        pool->idle = instance->next_idle;
    return instance;
}

static void *worker_main(void *userp);

/* Starts a worker if none waits, but for an instance that has one. A worker checks the policy
 * before it waits. The lock is held. */
static kelp_status *start_worker(kelp_instance_pool *pool) {
    KELP_ASSERT_HELD(&pool->lock);
    kelp_instance_base *instance = pool->unstarted;
    if (pool->waiting > 0 || instance == NULL)
        return NULL;
    KELP_TRY(kelp_thread_start(&instance->thread, "kelp-instance", worker_main, pool));
    instance->has_thread = true;
    pool->unstarted = instance->next_unstarted;
    return NULL;
}

/* Ensures that a worker takes the queued requests when they are due. The lock is held. */
static kelp_status *wake_worker(kelp_instance_pool *pool) {
    KELP_TRY(start_worker(pool));
    wake_threads(pool);
    return NULL;
}

/* Waits for requests that are due at a time (KELP_NEVER_NS: none is queued), and a little longer
 * if submitting threads are likely to take them. The lock is held. */
static void wait_as_worker(kelp_instance_pool *pool, uint64_t ready_ns) {
    KELP_ASSERT_HELD(&pool->lock);
    uint64_t until_ns = ready_ns;
    if (ready_ns < KELP_NEVER_NS - HANDOVER_NS && pool->handovers > 0) {
        pool->handovers--;
        until_ns += HANDOVER_NS;
    }
    wait_for_work(pool, ready_ns, until_ns);
}

/* A worker uses any idle instance. */
static void *worker_main(void *userp) {
    kelp_instance_pool *pool = userp;
    kelp_request *requests[KELP_MAX_EXECUTION_REQUESTS];
    kelp_thread_wait_precisely(); /* for queue delays */
    pthread_mutex_lock(&pool->lock);
    for (;;) {
        uint64_t now_ns, ready_ns = worker_at_ns(pool);
        bool due = is_due(pool, ready_ns, &now_ns);
        kelp_instance_base *instance = due ? pop_idle(pool) : NULL;
        if (instance != NULL) {
            measurement m = {.wanted = true};
            uint32_t count = take(pool, instance, true, now_ns, requests);
            /* Two submissions may have woken only this thread, or other requests are left. */
            if (pool->idle != NULL && ready_at_ns(pool, NULL) != KELP_NEVER_NS)
                kelp_status_free(wake_worker(pool)); /* on failure, this thread takes it later */
            pthread_mutex_unlock(&pool->lock);
            execute(pool, instance, requests, count, now_ns, &m);
            pthread_mutex_lock(&pool->lock);
            add_time(pool, &m);
            push_idle(pool, instance);
            continue;
        }
        if (pool->stopping)
            break;
        wait_as_worker(pool, due ? KELP_NEVER_NS : ready_ns);
    }
    pthread_mutex_unlock(&pool->lock);
    return NULL;
}

/* Makes an instance idle and leaves queued requests to a worker. Returns false if no worker can be
 * started; the caller then keeps the instance. The lock is held. */
static bool release_instance(kelp_instance_pool *pool, kelp_instance_base *instance) {
    uint64_t now_ns, ready_ns = ready_at_ns(pool, NULL);
    if (ready_ns != KELP_NEVER_NS) {
        if (is_due(pool, ready_ns, &now_ns))
            pool->promise = NULL;
        kelp_status *status = wake_worker(pool);
        if (status != NULL) {
            kelp_status_free(status);
            return false;
        }
    }
    push_idle(pool, instance);
    if (pool->stopping)
        pthread_cond_broadcast(&pool->changed);
    return true;
}

static bool has_budget(uint64_t start_ns, uint64_t now_ns, unsigned executions) {
    return executions < MAX_EXTRA_EXECUTIONS && now_ns - start_ns < MAX_EXTRA_NS;
}

/* Returns true if the execution of all queued requests fits into the budget, assuming that each of
 * them has inputs of the size. The lock is held. */
static bool queue_fits(const kelp_instance_pool *pool, uint64_t request_bytes) {
    if (!pool->joins_requests || pool->caller_limit_ns == 0)
        return true;
    uint64_t count = pool->policy->ops->size(pool->policy);
    return expected_ns(pool, request_bytes) <= MAX_EXTRA_NS / (count + 1) ||
           expected_ns(pool, request_bytes * count) <= MAX_EXTRA_NS;
}

/* Executes requests on this thread, and then others within the budget. `requests` has
 * KELP_MAX_EXECUTION_REQUESTS entries. */
static void run_on_caller(kelp_instance_pool *pool, kelp_instance_base *instance,
                          kelp_request **requests, uint32_t count, uint64_t start_ns,
                          bool measured) {
    uint64_t now_ns = start_ns;
    uint64_t request_bytes = pool->joins_requests ? kelp_execution_bytes(requests, 1) : 0;
    nested_executions++;
    for (unsigned executions = 0; count; executions++) {
        measurement m = {.wanted = measured};
        execute(pool, instance, requests, count, now_ns, &m);
        pthread_mutex_lock(&pool->lock);
        add_time(pool, &m);
        count = 0;
        if (is_due(pool, ready_at_ns(pool, instance), &now_ns) &&
            has_budget(start_ns, now_ns, executions) && queue_fits(pool, request_bytes))
            count = take(pool, instance, false, now_ns, requests);
        if (!count && !release_instance(pool, instance)) {
            now_ns = pool->now_ns();
            count = take(pool, instance, true, now_ns, requests);
            if (!count)
                push_idle(pool, instance);
        }
        pthread_mutex_unlock(&pool->lock);
    }
    nested_executions--;
}

/* Takes the request, or the batch that a queued request completed, if this thread may execute it
 * now. Sets the instance for it. A batching strategy gets the requests that arrive until a worker
 * has woken up. The lock is held. */
static uint32_t take_on_caller(kelp_instance_pool *pool, kelp_request *request,
                               kelp_instance_base **out_instance, kelp_request **out_requests) {
    KELP_ASSERT_HELD(&pool->lock);
    uint64_t now_ns = request->queue_start_ns;
    uint32_t count = 0;
    if (pool->idle == NULL || pool->policy->batcher != NULL ||
        ready_at_ns(pool, pool->idle) > now_ns ||
        !queue_fits(pool, kelp_execution_bytes(&request, 1)))
        return 0;
    count = take(pool, pool->idle, false, now_ns, out_requests);
    if (count > 0) {
        pool->handovers = HANDOVERS;
        *out_instance = pop_idle(pool);
    }
    return count;
}

/* ---- instances ---- */

static void link_instance(kelp_instance_pool *pool, kelp_instance_base *instance) {
    pthread_mutex_lock(&pool->lock);
    KELP_ASSERT(!pool->stopping && !instance->removing);
    instance->next = pool->instances;
    pool->instances = instance;
    if (pool->mode == KELP_EXECUTE_ON_CALLER) {
        push_idle(pool, instance);
        instance->next_unstarted = pool->unstarted;
        pool->unstarted = instance;
    }
    pthread_mutex_unlock(&pool->lock);
}

/* Starts the thread of an instance and waits until it is prepared. */
static kelp_status *start_instance(kelp_instance_pool *pool, kelp_instance_base *instance,
                                   kelp_prepare_fn fn) {
    kelp_preparation preparation = {.prepare = fn};
    if (fn != NULL)
        instance->preparation = &preparation;
    KELP_TRY(kelp_thread_start(&instance->thread, "kelp-instance", instance_main, instance));
    pthread_mutex_lock(&pool->lock);
    while (fn != NULL && !preparation.done)
        pthread_cond_wait(&pool->changed, &pool->lock);
    pthread_mutex_unlock(&pool->lock);
    instance->has_thread = preparation.status == NULL;
    if (preparation.status != NULL)
        pthread_join(instance->thread, NULL);
    return preparation.status;
}

static void attach(kelp_instance_pool *pool, kelp_instance_base *instance) {
    if (pool->policy->ops->attach == NULL)
        return;
    pthread_mutex_lock(&pool->lock);
    pool->policy->ops->attach(pool->policy, instance);
    pthread_mutex_unlock(&pool->lock);
}

kelp_status *kelp_instance_pool_add(kelp_instance_pool *pool, kelp_instance_base *instance,
                                    kelp_prepare_fn fn) {
    KELP_ASSERT(instance->pool == NULL || instance->pool == pool);
    instance->pool = pool;
    attach(pool, instance);
    if (pool->mode == KELP_EXECUTE_ON_INSTANCE)
        KELP_TRY(start_instance(pool, instance, fn));
    else if (fn != NULL)
        KELP_TRY(fn(instance));
    link_instance(pool, instance);
    return NULL;
}

static void unlink_idle(kelp_instance_pool *pool, kelp_instance_base *instance) {
    for (kelp_instance_base **link = &pool->idle; *link != NULL; link = &(*link)->next_idle) {
        if (*link == instance) {
            *link = instance->next_idle;
            instance->removed = true;
            return;
        }
    }
}

/* A worker that was started for the instance continues with the other instances. */
static void unlink_unstarted(kelp_instance_pool *pool, kelp_instance_base *instance) {
    for (kelp_instance_base **link = &pool->unstarted; *link != NULL;
         link = &(*link)->next_unstarted) {
        if (*link == instance) {
            *link = instance->next_unstarted;
            return;
        }
    }
}

void kelp_instance_pool_remove(kelp_instance_pool *pool, kelp_instance_base *instance) {
    pthread_mutex_lock(&pool->lock);
    KELP_ASSERT(!instance->removing);
    instance->removing = true;
    if (pool->mode == KELP_EXECUTE_ON_INSTANCE) {
        pthread_cond_broadcast(&pool->work);
        kelp_rate_ticket_cancel(&instance->ticket);
        pthread_mutex_unlock(&pool->lock);
        pthread_join(instance->thread, NULL);
        instance->has_thread = false;
        return;
    }
    unlink_idle(pool, instance);
    unlink_unstarted(pool, instance);
    while (!instance->removed)
        pthread_cond_wait(&pool->changed, &pool->lock);
    pthread_mutex_unlock(&pool->lock);
}

/* Waits for submitting threads that still hold an instance after the last request is over. */
static void wait_until_idle(kelp_instance_pool *pool) {
    pthread_mutex_lock(&pool->lock);
    for (;;) {
        size_t idle = 0, expected = 0;
        for (const kelp_instance_base *i = pool->idle; i != NULL; i = i->next_idle)
            idle++;
        for (const kelp_instance_base *i = pool->instances; i != NULL; i = i->next)
            expected += !i->removing;
        if (idle >= expected)
            break;
        pthread_cond_wait(&pool->changed, &pool->lock);
    }
    pool->idle = pool->unstarted = NULL;
    pthread_mutex_unlock(&pool->lock);
}

void kelp_instance_pool_stop(kelp_instance_pool *pool) {
    pthread_mutex_lock(&pool->lock);
    pool->stopping = true;
    pthread_cond_broadcast(&pool->work);
    pthread_cond_signal(&pool->rejections);
    for (kelp_instance_base *i = pool->instances; i != NULL; i = i->next)
        kelp_rate_ticket_cancel(&i->ticket);
    pthread_mutex_unlock(&pool->lock);
    for (kelp_instance_base *instance = pool->instances; instance != NULL;
         instance = instance->next) {
        if (instance->has_thread)
            pthread_join(instance->thread, NULL);
        instance->has_thread = false;
    }
    if (pool->has_rejecter)
        pthread_join(pool->rejecter, NULL);
    pool->has_rejecter = false;
    if (pool->mode == KELP_EXECUTE_ON_CALLER)
        wait_until_idle(pool);
}

/* ---- submission ---- */

/* Sets the timer to the next queue timeout; the lock is held. The timer rounds up to a multiple of
 * EXPIRY_STEP_NS, so that it runs rarely if many timeouts are close to each other. */
static void set_expiry(kelp_instance_pool *pool) {
    KELP_ASSERT_HELD(&pool->lock);
    uint64_t time_ns = pool->policy->ops->expires_at_ns(pool->policy);
    if (!pool->has_expiry || pool->expires_soon || time_ns == pool->expires_ns)
        return;
    pool->expires_ns = time_ns;
    if (time_ns < KELP_NEVER_NS - EXPIRY_STEP_NS)
        time_ns += EXPIRY_STEP_NS - time_ns % EXPIRY_STEP_NS;
    /* Without the timer's thread, a timeout is noticed when the request is taken. */
    kelp_status_free(kelp_timer_set(&pool->expiry, time_ns));
}

/* Rejects requests that the policy returned, linked by `next`. The lock is not held. With the last
 * request, the model may be destroyed on another thread. */
static void reject(kelp_instance_pool *pool, kelp_request *list, uint64_t now_ns) {
    for (kelp_request *request = list, *next; request != NULL; request = next) {
        next = request->next;
        request->next = NULL;
        (void)kelp_request_queue_reject(pool->stats, &request, 1, now_ns);
    }
}

/* Rejects the requests that the timer took. */
static void *rejecter_main(void *userp) {
    kelp_instance_pool *pool = userp;
    pthread_mutex_lock(&pool->lock);
    for (;;) {
        kelp_request *list = pool->first_rejected;
        pool->first_rejected = pool->last_rejected = NULL;
        if (list != NULL) {
            uint64_t now_ns = pool->now_ns();
            pthread_mutex_unlock(&pool->lock);
            reject(pool, list, now_ns);
            pthread_mutex_lock(&pool->lock);
            continue;
        }
        if (pool->stopping)
            break;
        pthread_cond_wait(&pool->rejections, &pool->lock);
    }
    pthread_mutex_unlock(&pool->lock);
    return NULL;
}

/* Passes requests to the rejecter. Returns false if its thread cannot be started. The lock is held.
 */
static bool pass_on(kelp_instance_pool *pool, kelp_request *list) {
    KELP_ASSERT_HELD(&pool->lock);
    if (!pool->has_rejecter) {
        kelp_status *status =
            kelp_thread_start(&pool->rejecter, "kelp-reject", rejecter_main, pool);
        pool->has_rejecter = status == NULL;
        kelp_status_free(status);
    }
    if (!pool->has_rejecter)
        return false;
    if (pool->last_rejected != NULL)
        pool->last_rejected->next = list;
    else
        pool->first_rejected = list;
    while (list->next != NULL)
        list = list->next;
    pool->last_rejected = list;
    pthread_cond_signal(&pool->rejections);
    return true;
}

/* The timer's callback. */
static void expire(void *userp) {
    kelp_instance_pool *pool = userp;
    pthread_mutex_lock(&pool->lock);
    uint64_t now_ns = pool->now_ns();
    pool->expires_soon = false;
    kelp_request *list = pool->policy->ops->expire(pool->policy, now_ns);
    if (pool->waiting > 0 && has_due(pool))
        wake_threads(pool); /* the remaining requests may form a batch, or have a slot */
    set_expiry(pool);
    if (list != NULL && pass_on(pool, list))
        list = NULL;
    pthread_mutex_unlock(&pool->lock);
    reject(pool, list, now_ns); /* kelp_timer_remove waits until this call returns */
}

void kelp_instance_pool_expire_soon(kelp_instance_pool *pool) {
    pthread_mutex_lock(&pool->lock);
    if (pool->has_expiry && !pool->expires_soon && pool->policy->ops->size(pool->policy) > 0) {
        pool->expires_ns = pool->now_ns();
        kelp_status *status = kelp_timer_set(&pool->expiry, pool->expires_ns);
        pool->expires_soon = status == NULL;
        kelp_status_free(status);
    }
    pthread_mutex_unlock(&pool->lock);
}

void kelp_instance_pool_retire(kelp_instance_pool *pool) {
    pthread_mutex_lock(&pool->lock);
    if (pool->policy->ops->retire != NULL) {
        pool->policy->ops->retire(pool->policy);
        set_expiry(pool);
    }
    pthread_mutex_unlock(&pool->lock);
}

/* Takes the requests that are over from a full queue; the caller rejects them. The lock is held. */
static kelp_request *drop_dead(kelp_instance_pool *pool, uint64_t now_ns) {
    KELP_ASSERT_HELD(&pool->lock);
    kelp_request *dropped = pool->policy->ops->expire(pool->policy, now_ns);
    if (pool->waiting > 0 && has_due(pool))
        wake_threads(pool);
    set_expiry(pool);
    return dropped;
}

/* Checks that a request can be queued; the lock is held. A full queue first drops the requests that
 * are over, which the caller rejects. */
static kelp_status *admit(kelp_instance_pool *pool, const kelp_request *request,
                          kelp_request **out_dropped) {
    const kelp_policy_ops *ops = pool->policy->ops;
    KELP_ASSERT_HELD(&pool->lock);
    kelp_status *status = ops->admit(pool->policy, request);
    if (status == NULL)
        return NULL;
    *out_dropped = drop_dead(pool, request->queue_start_ns);
    if (*out_dropped == NULL)
        return status;
    kelp_status_free(status);
    return ops->admit(pool->policy, request);
}

kelp_status *kelp_instance_pool_check_full(kelp_instance_pool *pool, const kelp_request *request) {
    const kelp_policy_ops *ops = pool->policy->ops;
    kelp_request *dropped = NULL;
    if (ops->is_full == NULL)
        return NULL;
    pthread_mutex_lock(&pool->lock);
    bool full = ops->is_full(pool->policy);
    uint64_t now_ns = full ? pool->now_ns() : 0;
    if (full)
        dropped = drop_dead(pool, now_ns);
    full = full && ops->is_full(pool->policy);
    pthread_mutex_unlock(&pool->lock);
    reject(pool, dropped, now_ns);
    return full ? kelp_request_queue_full(request) : NULL;
}

/* Queues a request; the lock is held. Another thread takes it, unless the calling thread does. */
static kelp_status *enqueue(kelp_instance_pool *pool, kelp_request *request,
                            kelp_request **out_dropped) {
    KELP_ASSERT_HELD(&pool->lock);
    KELP_TRY(admit(pool, request, out_dropped));
    if (pool->mode == KELP_EXECUTE_ON_CALLER && pool->idle != NULL)
        KELP_TRY(start_worker(pool));
    pool->policy->ops->push(pool->policy, request, request->queue_start_ns);
    set_expiry(pool);
    return NULL;
}

/* Returns true if the request may be executed on this thread. The lock is held. */
static bool may_run_here(const kelp_instance_pool *pool, kelp_request *request) {
    if (pool->mode != KELP_EXECUTE_ON_CALLER || request->may_block)
        return false;
    request->may_block = !is_short(pool, &request);
    return !request->may_block && nested_executions < MAX_NESTED_EXECUTIONS;
}

/* Decides who executes the batch of a request that was queued: this thread if it can wait, and if
 * the request is the only one; otherwise as before, or a worker. The lock is held. */
static void promise(kelp_instance_pool *pool, const kelp_request *request, bool here) {
    KELP_ASSERT_HELD(&pool->lock);
    const kelp_policy *policy = pool->policy;
    uint64_t ready_ns = ready_at_ns(pool, NULL);
    bool possible = here && request->due != NULL && policy->batcher == NULL &&
                    !policy->wants_reports && ready_ns > 0 && ready_ns != KELP_NEVER_NS;
    if (!possible) {
        pool->promise = NULL;
    } else if (policy->ops->size(policy) == 1) {
        pool->promise = request->due;
        kelp_due_add(request->due, request->model, ready_ns);
    }
    pool->promised_bytes = kelp_execution_bytes((kelp_request *const *)&request, 1);
}

void kelp_instance_pool_execute_due(kelp_instance_pool *pool, kelp_model_base *model,
                                    kelp_due *due) {
    kelp_request *requests[KELP_MAX_EXECUTION_REQUESTS];
    kelp_instance_base *instance = NULL;
    uint32_t count = 0;
    bool measured = false;
    pthread_mutex_lock(&pool->lock);
    uint64_t now_ns = 0, ready_ns = ready_at_ns(pool, NULL);
    if (pool->promise == due && is_due(pool, ready_ns, &now_ns)) {
        if (pool->idle != NULL && nested_executions < MAX_NESTED_EXECUTIONS &&
            queue_fits(pool, pool->promised_bytes))
            count = take(pool, pool->idle, false, now_ns, requests);
        if (count > 0)
            instance = pop_idle(pool);
        else
            pool->promise = NULL;
        measured = count > 0 && pool->caller_executions++ % MEASURED_ONE_OF == 0;
        wake_threads(pool);
    }
    pthread_mutex_unlock(&pool->lock);
    if (instance != NULL)
        run_on_caller(pool, instance, requests, count, now_ns, measured);
    pthread_mutex_lock(&pool->lock);
    ready_ns = ready_at_ns(pool, NULL);
    if (pool->promise == due && ready_ns > 0 && ready_ns != KELP_NEVER_NS)
        kelp_due_add(due, model, ready_ns);
    pthread_mutex_unlock(&pool->lock);
}

kelp_status *kelp_instance_pool_submit(kelp_instance_pool *pool, kelp_request *request) {
    kelp_request *requests[KELP_MAX_EXECUTION_REQUESTS];
    kelp_instance_base *instance = NULL;
    kelp_request *dropped = NULL;
    kelp_status *status = NULL;
    uint64_t now_ns = request->queue_start_ns;
    uint32_t count = 1;
    bool measured = false;
    pthread_mutex_lock(&pool->lock);
    bool here = may_run_here(pool, request);
    pool->policy->eager = here && request->skips_delay;
    requests[0] = request;
    if (here && pool->policy->ops->bypass(pool->policy, request))
        instance = pop_idle(pool);
    if (instance == NULL) {
        status = enqueue(pool, request, &dropped);
        count = here && status == NULL ? take_on_caller(pool, request, &instance, requests) : 0;
        if (count == 0 && status == NULL)
            promise(pool, request, here);
        /* Before the lock is released: after that, the request and the model may be destroyed. */
        if (pool->mode == KELP_EXECUTE_ON_INSTANCE || pool->idle != NULL)
            wake_threads(pool);
    }
    if (instance != NULL)
        measured = pool->caller_executions++ % MEASURED_ONE_OF == 0;
    pthread_mutex_unlock(&pool->lock);
    if (instance != NULL)
        run_on_caller(pool, instance, requests, count, now_ns, measured);
    reject(pool, dropped, now_ns);
    return status;
}

void kelp_instance_pool_release(kelp_instance_pool *pool, kelp_request *request) {
    pthread_mutex_lock(&pool->lock);
    pool->policy->ops->release(pool->policy, request, pool->now_ns());
    wake_threads(pool);
    set_expiry(pool);
    pthread_mutex_unlock(&pool->lock);
}

void kelp_instance_pool_reschedule(kelp_instance_pool *pool, kelp_request *request) {
    pthread_mutex_lock(&pool->lock);
    pool->policy->ops->reschedule(pool->policy, request, pool->now_ns());
    wake_threads(pool);
    pthread_mutex_unlock(&pool->lock);
}

uint32_t kelp_instance_pool_live(kelp_instance_pool *pool) {
    pthread_mutex_lock(&pool->lock);
    uint32_t live = pool->policy->ops->live != NULL ? pool->policy->ops->live(pool->policy) : 0;
    pthread_mutex_unlock(&pool->lock);
    return live;
}

uint32_t kelp_instance_pool_queued(kelp_instance_pool *pool) {
    pthread_mutex_lock(&pool->lock);
    uint32_t size = pool->policy->ops->size(pool->policy);
    pthread_mutex_unlock(&pool->lock);
    return size;
}
