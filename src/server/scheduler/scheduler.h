/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The scheduler of one model: a policy, which orders requests (policy.h), and a pool of instances,
 * which executes them (instance_pool.h). A scheduler takes no lock that another model's takes.
 */
#ifndef KELP_SERVER_SCHEDULER_SCHEDULER_H_
#define KELP_SERVER_SCHEDULER_SCHEDULER_H_

#include "server/scheduler/instance_pool.h"

#include <triton/core/tritonbackend.h>

/* Returns true if a request may block, as its backend says. Thread-safe. */
typedef bool (*kelp_may_block_fn)(TRITONBACKEND_Model *model, TRITONBACKEND_Request *request);

/* How requests are executed. */
typedef struct kelp_execution {
    kelp_execution_mode mode;
    kelp_execute_fn execute;
    kelp_may_block_fn may_block; /* ON_CALLER: which requests may block; NULL: none */
} kelp_execution;

typedef struct kelp_scheduler {
    kelp_instance_pool pool;
    kelp_policy *policy;
    kelp_may_block_fn may_block;
} kelp_scheduler;

/* UNIMPLEMENTED if there is no policy for the configuration's kind of scheduling. */
kelp_status *kelp_scheduler_check(const kelp_model_config *config) KELP_MUST_USE;
/* Creates the policy that the configuration asks for, and an empty pool. */
kelp_status *kelp_scheduler_init(kelp_scheduler *scheduler, kelp_allocator allocator,
                                 const kelp_model_config *config,
                                 kelp_execution execution) KELP_MUST_USE;
/* The pool is stopped. */
void kelp_scheduler_deinit(kelp_scheduler *scheduler);
/* Submits a PENDING request; see kelp_instance_pool_submit. */
kelp_status *kelp_scheduler_submit(kelp_scheduler *scheduler, kelp_request *request) KELP_MUST_USE;

#endif
