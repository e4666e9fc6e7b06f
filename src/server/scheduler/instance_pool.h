/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The instances of a model, the threads that execute requests on them, and the lock of the model's
 * scheduling. Which requests run is the policy's decision (policy.h).
 *
 * There are two modes. KELP_EXECUTE_ON_INSTANCE is for backends that may block: each instance has a
 * thread, which takes requests from the policy.
 *
 * KELP_EXECUTE_ON_CALLER is for backends that do not block: the submitting thread executes the
 * request, or the batch that it completes, on an idle instance. The request is queued instead if no
 * instance is idle, if other requests wait, if this request may block or takes long, or if too many
 * executions are nested on the thread (a response callback that submits the next request would
 * otherwise recurse without limit). A thread that finishes an execution continues with queued
 * requests within a budget, because a submission must return. Worker threads, at most one for each
 * instance and started on demand, execute the others. Therefore no instance is idle while requests
 * are due. While submitting threads execute the queued requests, a worker leaves them those that
 * have just become due, because a thread switch takes longer than a small execution.
 *
 * A thread that can wait, such as an event loop, executes the batch whose first request it has
 * queued when the queue delay ends (request/due.h): it promises this, and a worker does it only if
 * the thread is late by PROMISE_NS or all instances are busy.
 *
 * A request takes long if the measured time of executions with inputs of its size
 * (execution_times.h) exceeds caller_limit_ns, which large inputs extend, or is unknown. The pool
 * measures all executions of worker threads, and some of submitting threads.
 *
 * Queued requests whose queue timeout ends, or that are cancelled, are rejected also while all
 * instances are busy: a timer takes them from the policy, and a thread of the pool calls their
 * callbacks, so that a slow callback does not delay the timers of other models.
 */
#ifndef KELP_SERVER_SCHEDULER_INSTANCE_POOL_H_
#define KELP_SERVER_SCHEDULER_INSTANCE_POOL_H_

#include "base/sync/timer.h"
#include "server/request/due.h"
#include "server/scheduler/execution_times.h"
#include "server/scheduler/policy.h"
#include "server/scheduler/rate_limiter.h"

typedef struct kelp_instance_pool kelp_instance_pool;

/* Executes started requests on an instance. One call at a time for each instance; no lock is held.
 */
typedef void (*kelp_execute_fn)(kelp_instance_base *instance, kelp_request **requests,
                                uint32_t count);
/* Prepares an instance, on its own thread if it has one. */
typedef kelp_status *(*kelp_prepare_fn)(kelp_instance_base *instance);

/* The threads that execute requests. */
typedef enum kelp_execution_mode {
    KELP_EXECUTE_ON_INSTANCE,
    KELP_EXECUTE_ON_CALLER
} kelp_execution_mode;

/* The part of an instance that its pool uses: the first member of kelp_instance. */
struct kelp_instance_base {
    kelp_instance_base *next;           /* of all that were added, including removed ones */
    kelp_instance_base *next_idle;      /* ON_CALLER */
    kelp_instance_base *next_unstarted; /* ON_CALLER */
    kelp_instance_pool *pool;
    uint32_t policy_index; /* set by the policy, if it binds requests to instances */
    kelp_stats stats;
    kelp_rate_ticket ticket; /* ON_INSTANCE: waits for resources before an execution */
    pthread_t thread;
    bool has_thread;
    bool removing, removed;
    struct kelp_preparation *preparation; /* the first work of its own thread, or NULL */
};

/* The instances and threads of a model. */
struct kelp_instance_pool {
    pthread_mutex_t lock;
    pthread_cond_t work;    /* for threads that wait for requests */
    pthread_cond_t changed; /* for add, remove and stop: an instance was prepared or became idle */
    kelp_policy *policy;
    kelp_execute_fn execute;
    kelp_execution_mode mode;
    uint64_t caller_limit_ns; /* ON_CALLER; 0: no limit, and nothing is measured */
    bool joins_requests;
    kelp_execution_times times;
    unsigned caller_executions; /* modulo 2^N; selects those that are measured */
    kelp_clock_fn now_ns;
    kelp_stats *stats; /* of requests that no instance executed; borrowed */
    kelp_timer expiry; /* of queue timeouts */
    bool has_expiry;
    pthread_cond_t rejections; /* for the thread that rejects */
    pthread_t rejecter;        /* started on demand */
    bool has_rejecter;
    kelp_request *first_rejected, *last_rejected; /* for the rejecter, linked by `next` */
    bool expires_soon;                            /* the timer is set for cancelled requests */
    uint64_t expires_ns; /* KELP_NEVER_NS, or the queue timeout that the timer is set for */
    kelp_instance_base *instances; /* all that were added */
    kelp_instance_base *idle;      /* ON_CALLER: instances that no thread uses */
    kelp_instance_base *unstarted; /* ON_CALLER: instances whose worker thread is not started */
    unsigned waiting;              /* threads that wait for work */
    uint64_t next_check_ns;  /* a waiting thread looks at the policy then; KELP_NEVER_NS: unknown */
    unsigned handovers;      /* ON_CALLER: times a worker leaves due requests to other threads */
    const kelp_due *promise; /* of the thread that executes the next batch; NULL: a worker */
    uint64_t promised_bytes; /* the inputs of one of its requests */
    bool stopping;
};

/* The parameters of a pool. All pointers are borrowed. */
typedef struct kelp_instance_pool_options {
    kelp_policy *policy;
    kelp_execution_mode mode;
    uint64_t caller_limit_ns; /* ON_CALLER: the maximum execution time on a submitting thread; 0: no
                                 limit */
    bool joins_requests;      /* the policy returns several requests for one execution */
    kelp_execute_fn execute;
    kelp_stats *stats;    /* counts requests that are rejected without an instance */
    kelp_timers *timers;  /* NULL: queue timeouts are noticed when a request is taken */
    kelp_clock_fn now_ns; /* NULL: kelp_now_ns */
} kelp_instance_pool_options;

/* Initializes a pool without instances. */
kelp_status *kelp_instance_pool_init(kelp_instance_pool *pool,
                                     const kelp_instance_pool_options *options) KELP_MUST_USE;
void kelp_instance_pool_deinit(kelp_instance_pool *pool);

/* Adds an instance; ON_INSTANCE starts its thread. `prepare` (may be NULL) runs before that, on the
 * instance's thread or, ON_CALLER, on the calling thread. If it fails, the instance is not added
 * and its failure is returned. The instance must stay in memory until the pool is stopped.
 * Thread-safe.
 */
kelp_status *kelp_instance_pool_add(kelp_instance_pool *pool, kelp_instance_base *instance,
                                    kelp_prepare_fn prepare) KELP_MUST_USE;
/* Removes an instance after its current execution. Queued requests run on the other instances, of
 * which there is at least one. Not called from an execution on the instance. */
void kelp_instance_pool_remove(kelp_instance_pool *pool, kelp_instance_base *instance);
/* Stops and joins all threads. The policy must be empty. */
void kelp_instance_pool_stop(kelp_instance_pool *pool);

/* Executes or queues a PENDING request, which may be over on return. UNAVAILABLE if the policy
 * rejects it, RESOURCE_EXHAUSTED if no thread can be started for it. On failure, the caller still
 * owns the request. */
kelp_status *kelp_instance_pool_submit(kelp_instance_pool *pool,
                                       kelp_request *request) KELP_MUST_USE;
/* Implements kelp_model_ops.execute_due for the pool of a model. */
void kelp_instance_pool_execute_due(kelp_instance_pool *pool, kelp_model_base *model,
                                    kelp_due *due);
/* Returns UNAVAILABLE if the queue is full for every request; `request` is named in the error.
 * Drops the queued requests that are over first. Thread-safe. */
kelp_status *kelp_instance_pool_check_full(kelp_instance_pool *pool,
                                           const kelp_request *request) KELP_MUST_USE;
/* Adds the duration of an execution without the pool to the measured times; see
 * kelp_execution_class. Thread-safe. */
void kelp_instance_pool_add_time(kelp_instance_pool *pool, unsigned class_index,
                                 uint64_t duration_ns);
/* Tells a policy that binds requests to instances that a taken request returns to its caller, or
 * queues the request again. Thread-safe; called before the request's callback. */
void kelp_instance_pool_release(kelp_instance_pool *pool, kelp_request *request);
void kelp_instance_pool_reschedule(kelp_instance_pool *pool, kelp_request *request);
/* Returns the number of sequences that have not ended. Thread-safe. */
uint32_t kelp_instance_pool_live(kelp_instance_pool *pool);
/* Soon rejects the queued requests that are cancelled or past their deadline. Thread-safe. */
void kelp_instance_pool_expire_soon(kelp_instance_pool *pool);
/* Tells a policy that binds requests to instances that no new sequence follows. Thread-safe. */
void kelp_instance_pool_retire(kelp_instance_pool *pool);
/* Returns the number of queued requests. Thread-safe. */
uint32_t kelp_instance_pool_queued(kelp_instance_pool *pool);

#endif
