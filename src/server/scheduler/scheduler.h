/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The scheduler of one model: a policy, which orders requests (policy.h), and a pool of instances,
 * which executes them (instance_pool.h). Schedulers of different models share no lock.
 */
#ifndef KELP_SERVER_SCHEDULER_SCHEDULER_H_
#define KELP_SERVER_SCHEDULER_SCHEDULER_H_

#include "server/scheduler/instance_pool.h"

#include <triton/core/tritonbackend.h>

/* Returns true if the execution of a request may block, according to the backend. Thread-safe. */
typedef bool (*kelp_may_block_fn)(TRITONBACKEND_Model *model, TRITONBACKEND_Request *request);

/* The execution of requests by a backend. All pointers are borrowed. */
typedef struct kelp_execution {
    kelp_execution_mode mode;
    uint64_t caller_limit_ns; /* see kelp_instance_pool_options */
    kelp_execute_fn execute;
    kelp_may_block_fn may_block; /* ON_CALLER: which requests may block; NULL: none */
    const kelp_batcher *batcher; /* the batching strategy; NULL: none */
    kelp_stats *stats;           /* of requests that no instance executes */
    kelp_timers *timers;         /* for queue timeouts */
} kelp_execution;

/* The scheduler of a model. */
typedef struct kelp_scheduler {
    kelp_instance_pool pool;
    kelp_policy *policy;
    kelp_may_block_fn may_block;
} kelp_scheduler;

/* Returns UNIMPLEMENTED if there is no policy for the configuration's kind of scheduling. */
kelp_status *kelp_scheduler_check(const kelp_model_config *config) KELP_MUST_USE;
/* Creates the policy that the configuration selects, and an empty pool. */
kelp_status *kelp_scheduler_init(kelp_scheduler *scheduler, kelp_allocator allocator,
                                 const kelp_model_config *config,
                                 kelp_execution execution) KELP_MUST_USE;
/* Destroys the policy and the pool, which is stopped. */
void kelp_scheduler_deinit(kelp_scheduler *scheduler);
/* Submits a PENDING request; see kelp_instance_pool_submit. */
kelp_status *kelp_scheduler_submit(kelp_scheduler *scheduler, kelp_request *request) KELP_MUST_USE;

#endif
