/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Scheduling policies. A policy decides in which order requests run, and which requests run as one
 * execution. The instance pool (instance_pool.h) owns threads and instances and calls the policy.
 * default_policy.c is the example for new policies.
 *
 * To add a policy, for example dynamic_batch.c: define a struct whose first member is kelp_policy,
 * implement the functions below on one or more kelp_request_queue, and add its constructor to
 * the table in scheduler.c under the configuration's kind of scheduling.
 *
 * - Dynamic batching: `ready_at_ns` returns 0 once the preferred batch size is reached, otherwise
 *   the time at which the oldest request's delay ends; `bypass` returns false; `take` pops requests
 *   of equal shapes.
 * - Sequence batching: one queue for each slot of sequences, and a backlog; `push` assigns the
 *   request's correlation ID to a slot; `take` pops at most one request from each slot.
 * - Iteration-level (continuous) batching: `take` returns every request that is due for the next
 *   iteration, and the release of a request for rescheduling pushes it again. The server rejects
 *   such a release (TRITONSERVER_REQUEST_RELEASE_RESCHEDULE) until a policy uses it.
 * - Ensembles need no policy of their own, but an execution (kelp_execution in scheduler.h): it is
 *   called without the pool's lock, submits the first steps of each request to other models, and
 *   returns. The completion of the last step sends the response.
 *
 * Threads and locks: all functions except creation and `destroy` are called with the pool's lock
 * held, on a submitting thread or on a thread of the pool. They must not block, allocate, call a
 * backend (other than its batching strategy) or a callback of a request, or take another lock. A
 * request therefore takes only this lock of its model.
 */
#ifndef KELP_SERVER_SCHEDULER_POLICY_H_
#define KELP_SERVER_SCHEDULER_POLICY_H_

#include "server/scheduler/batcher.h"
#include "server/scheduler/queue.h"

/* The maximum number of requests in one execution. */
#define KELP_MAX_EXECUTION_REQUESTS 256
/* The result of ready_at_ns if no request is queued. */
#define KELP_NEVER_NS UINT64_MAX

typedef struct kelp_policy kelp_policy;

/* The functions that a policy implements. */
typedef struct kelp_policy_ops {
    /* Rejects a request that cannot be queued. Called before push, under the same lock. */
    kelp_status *(*admit)(const kelp_policy *policy, const kelp_request *request);
    /* Queues a request. It belongs to the policy until `take` returns it. */
    void (*push)(kelp_policy *policy, kelp_request *request);
    /* Returns true if the request may be executed at once, without push, if an instance is idle. */
    bool (*bypass)(const kelp_policy *policy, const kelp_request *request);
    /* Returns the time on the monotonic clock from which `take` returns requests: 0 means
     * immediately, KELP_NEVER_NS if no request is queued. */
    uint64_t (*ready_at_ns)(const kelp_policy *policy);
    /* Moves the requests of the next execution to `out_requests` (KELP_MAX_EXECUTION_REQUESTS
     * entries) and returns their number. On a submitting thread `may_block` is false: requests that
     * may block must stay, and 0 may be returned. Otherwise it returns at least 1 if ready_at_ns
     * has passed. */
    uint32_t (*take)(kelp_policy *policy, bool may_block, kelp_request **out_requests);
    /* Returns the number of queued requests. */
    uint32_t (*size)(const kelp_policy *policy);
    /* Frees the policy, which is empty. The lock is not held. */
    void (*destroy)(kelp_policy *policy);
} kelp_policy_ops;

/* The first member of a policy. */
struct kelp_policy {
    const kelp_policy_ops *ops;
    kelp_allocator allocator;
    const kelp_batcher *batcher; /* the batching strategy, borrowed; NULL: none */
    kelp_queue_limits limits; /* the pool rejects taken requests whose queue timeout has expired */
};

/* Creates the default policy: first in, first out, one request for each execution. With
 * `dynamic_batching`, the following requests that fit into one batch join the first one, without
 * waiting for more. */
kelp_status *kelp_default_policy_create(kelp_allocator allocator, const kelp_model_config *config,
                                        kelp_policy **out) KELP_MUST_USE;

#endif
