/* SPDX-License-Identifier: Apache-2.0 */
/* The policy of models that batch sequences. */
#ifndef KELP_SERVER_SCHEDULER_SEQUENCE_POLICY_H_
#define KELP_SERVER_SCHEDULER_SEQUENCE_POLICY_H_

#include "server/scheduler/policy.h"

/* Creates the policy of a configuration with sequence batching, which must outlive it. A taken
 * request has its `slot` (of all instances: instance * slots + index), and with the direct strategy
 * the `span` of the execution. As in Triton, the environment variables TRITONSERVER_DELAY_SCHEDULER
 * and TRITONSERVER_BACKLOG_DELAY_SCHEDULER delay the first execution until as many requests wait in
 * slots and in the backlog. Oldest: the first variable counts sequences of an instance that have a
 * request, and the second one has no effect. */
kelp_status *kelp_sequence_policy_create(kelp_allocator allocator, const kelp_model_config *config,
                                         kelp_policy **out) KELP_MUST_USE;
/* Returns the number of instances that execute requests. */
uint32_t kelp_sequence_instances(const kelp_model_config *config);

#endif
