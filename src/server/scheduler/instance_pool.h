/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The instances of a model, the threads that execute requests on them, and the lock of the model's
 * scheduling. Which requests run is the policy's decision (policy.h).
 *
 * Two modes. KELP_EXECUTE_ON_INSTANCE, for backends that may block: each instance has a thread,
 * which takes work from the policy; a request changes threads once.
 *
 * KELP_EXECUTE_ON_CALLER, for backends that do not block: the submitting thread runs the request to
 * completion on an idle instance, without changing threads. The request is queued instead if no
 * instance is idle, if the policy forbids it (others wait), if this request may block, or if too
 * many executions are nested on the thread (a response callback that submits the next request would
 * otherwise recurse without end). A thread that finishes an execution continues with queued
 * requests, but only within a budget, because a submission must return. The pool's worker threads,
 * at most one for each instance and started on demand, execute the rest. So no instance is idle
 * while requests that are due wait.
 */
#ifndef KELP_SERVER_SCHEDULER_INSTANCE_POOL_H_
#define KELP_SERVER_SCHEDULER_INSTANCE_POOL_H_

#include "server/scheduler/policy.h"

typedef struct kelp_instance_base kelp_instance_base;
typedef struct kelp_instance_pool kelp_instance_pool;

/* Executes started requests on an instance, which executes nothing else. No lock is held. */
typedef void (*kelp_execute_fn)(kelp_instance_base *instance, kelp_request **requests,
                                uint32_t count);
/* Prepares an instance on the thread that will execute on it, where there is one such thread. */
typedef kelp_status *(*kelp_prepare_fn)(kelp_instance_base *instance);

typedef enum kelp_execution_mode {
    KELP_EXECUTE_ON_INSTANCE,
    KELP_EXECUTE_ON_CALLER
} kelp_execution_mode;

/* An instance as its pool sees it: the first member of kelp_instance. */
struct kelp_instance_base {
    kelp_instance_base *next;           /* of all that were added, also removed ones */
    kelp_instance_base *next_idle;      /* ON_CALLER */
    kelp_instance_base *next_unstarted; /* ON_CALLER */
    kelp_instance_pool *pool;
    kelp_stats stats;
    pthread_t thread;
    bool has_thread;
    bool removing, removed;
    struct kelp_preparation *preparation; /* what its own thread does first; NULL: nothing */
};

struct kelp_instance_pool {
    pthread_mutex_t lock;
    pthread_cond_t work;    /* only threads that wait for work, so that one signal wakes one */
    pthread_cond_t changed; /* an instance was prepared or became idle: for add, remove, stop */
    kelp_policy *policy;
    kelp_execute_fn execute;
    kelp_execution_mode mode;
    kelp_instance_base *instances; /* all that were added */
    kelp_instance_base *idle;      /* ON_CALLER: instances that no thread uses */
    kelp_instance_base *unstarted; /* ON_CALLER: instances whose worker thread is not started */
    unsigned waiting;              /* threads that wait for work */
    bool stopping;
};

/* `policy` is borrowed. */
void kelp_instance_pool_init(kelp_instance_pool *pool, kelp_policy *policy,
                             kelp_execution_mode mode, kelp_execute_fn execute);
void kelp_instance_pool_deinit(kelp_instance_pool *pool);

/* Adds an instance and, ON_INSTANCE, starts its thread. `prepare` (may be NULL) runs first, on that
 * thread or, ON_CALLER, on this one; if it fails, so does this, and the instance is not added. The
 * instance must stay in memory until the pool is stopped. Thread-safe. */
kelp_status *kelp_instance_pool_add(kelp_instance_pool *pool, kelp_instance_base *instance,
                                    kelp_prepare_fn prepare) KELP_MUST_USE;
/* Removes an instance after its current execution; queued requests run on the others, of which
 * there is at least one. Not called from an execution on the instance. */
void kelp_instance_pool_remove(kelp_instance_pool *pool, kelp_instance_base *instance);
/* Stops and joins all threads; the policy is empty. */
void kelp_instance_pool_stop(kelp_instance_pool *pool);

/* Executes or queues a PENDING request, which may be over when this returns. UNAVAILABLE if the
 * policy rejects it, RESOURCE_EXHAUSTED if it needs a thread and none can be started: the request
 * then stays the caller's. */
kelp_status *kelp_instance_pool_submit(kelp_instance_pool *pool,
                                       kelp_request *request) KELP_MUST_USE;
/* Returns the number of queued requests. Thread-safe. */
uint32_t kelp_instance_pool_queued(kelp_instance_pool *pool);

#endif
