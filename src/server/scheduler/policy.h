/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Scheduling policies. A policy decides in which order requests run, and which requests run as one
 * execution. The instance pool (instance_pool.h) owns threads and instances and calls the policy.
 * batch_policy.c is the example for new policies.
 *
 * To add a policy: define a struct whose first member is kelp_policy, implement the functions
 * below, and add its constructor to the table in scheduler.c under the configuration's kind of
 * scheduling.
 *
 * Time: a policy never reads a clock. The pool passes the time, so that tests of a policy need no
 * threads and no sleeping.
 *
 * Threads and locks: all functions except creation and `destroy` are called with the pool's lock
 * held, on a submitting thread, on a thread of the pool or on the timer thread. They must not
 * block, allocate, call a backend (other than its batching strategy) or a callback of a request, or
 * take another lock. A request therefore takes only this lock of its model.
 */
#ifndef KELP_SERVER_SCHEDULER_POLICY_H_
#define KELP_SERVER_SCHEDULER_POLICY_H_

#include "server/scheduler/batcher.h"
#include "server/scheduler/queue.h"

/* The maximum number of requests in one execution. */
#define KELP_MAX_EXECUTION_REQUESTS 256

typedef struct kelp_policy kelp_policy;
typedef struct kelp_instance_base kelp_instance_base; /* instance_pool.h */

/* An execution, for policies that learn from its duration. */
typedef struct kelp_execution_report {
    uint32_t batch_size; /* of all requests */
    uint64_t oldest_ns;  /* the first submission of a request */
    uint64_t start_ns, end_ns;
} kelp_execution_report;

/* The functions that a policy implements. `instance` is an instance of the pool, for policies that
 * bind requests to instances; NULL means any instance. */
typedef struct kelp_policy_ops {
    /* Rejects a request that cannot be queued. Called before push, under the same lock; after a
     * rejection once more if `expire` returned requests. */
    kelp_status *(*admit)(const kelp_policy *policy, const kelp_request *request);
    /* Returns true if `admit` rejects every request. NULL: unknown without the request. */
    bool (*is_full)(const kelp_policy *policy);
    /* Queues a request. It belongs to the policy until `take` or `expire` returns it. Sets
     * request->deadline_ns. */
    void (*push)(kelp_policy *policy, kelp_request *request, uint64_t now_ns);
    /* Returns true if the request may be executed at once, without push, if an instance is idle. */
    bool (*bypass)(const kelp_policy *policy, const kelp_request *request);
    /* Returns the time from which `take` returns requests: 0 means immediately, KELP_NEVER_NS if no
     * request is queued. */
    uint64_t (*ready_at_ns)(const kelp_policy *policy, const kelp_instance_base *instance);
    /* Moves the requests of the next execution to `out_requests` (KELP_MAX_EXECUTION_REQUESTS
     * entries) and returns their number. On a submitting thread `may_block` is false: requests that
     * may block or take long (request->may_block) must stay, and 0 may be returned. Otherwise it
     * returns at least 1 if ready_at_ns has passed. The pool rejects returned requests that are
     * cancelled or past their deadline. */
    uint32_t (*take)(kelp_policy *policy, const kelp_instance_base *instance, bool may_block,
                     uint64_t now_ns, kelp_request **out_requests);
    /* Returns a time at or before the earliest time at which `expire` returns requests, other than
     * cancelled ones; KELP_NEVER_NS if there is none. */
    uint64_t (*expires_at_ns)(const kelp_policy *policy);
    /* Removes queued requests that are past their deadline or cancelled, and returns them linked by
     * `next`, or NULL. The pool rejects them without the lock. Cancelled requests may stay if a
     * search would take long. */
    kelp_request *(*expire)(kelp_policy *policy, uint64_t now_ns);
    /* Learns of an execution that has ended. Called if kelp_policy.wants_reports; else may be NULL.
     */
    void (*executed)(kelp_policy *policy, const kelp_execution_report *report);
    /* Returns the number of queued requests. */
    uint32_t (*size)(const kelp_policy *policy);
    /* Frees the policy, which is empty. The lock is not held. */
    void (*destroy)(kelp_policy *policy);

    /* For policies that bind requests to instances; all of them or none. */
    /* Adds an instance and sets instance->policy_index. Called before its thread takes requests. */
    void (*attach)(kelp_policy *policy, kelp_instance_base *instance);
    /* Called when a taken request with a `place` is about to return to its caller. */
    void (*release)(kelp_policy *policy, kelp_request *request, uint64_t now_ns);
    /* Queues a taken request again, before the other requests of its place. */
    void (*reschedule)(kelp_policy *policy, kelp_request *request, uint64_t now_ns);
    /* The model is being unloaded: sequences that are idle end when others wait for a slot. */
    void (*retire)(kelp_policy *policy);
    /* Returns the number of sequences that have not ended. */
    uint32_t (*live)(const kelp_policy *policy);
} kelp_policy_ops;

/* The first member of a policy. */
struct kelp_policy {
    const kelp_policy_ops *ops;
    kelp_allocator allocator;
    const kelp_batcher *batcher; /* the batching strategy, borrowed; NULL: none */
    bool wants_reports;          /* `executed` is called; constant */
    bool eager; /* set by the pool: the latest request skips the queue delay, and so may others */
};

/* Creates the batch policy, which applies `dynamic_batching`; without it, an execution has one
 * request. batch_settings.h lists the parameters. The configuration is borrowed. */
kelp_status *kelp_batch_policy_create(kelp_allocator allocator, const kelp_model_config *config,
                                      kelp_policy **out) KELP_MUST_USE;

#endif
