/* SPDX-License-Identifier: Apache-2.0 */
/* The selection of a policy, and the submission of requests. */
#include "server/scheduler/scheduler.h"

#include "base/assert.h"
#include "server/request/sequence.h"
#include "server/scheduler/sequence_policy.h"

typedef kelp_status *(*create_fn)(kelp_allocator allocator, const kelp_model_config *config,
                                  kelp_policy **out);

/* The policies, by the configuration's kind of scheduling. */
static const struct {
    create_fn create;        /* NULL: not supported */
    const char *description; /* "model 'NAME' …" */
} policies[] = {
    [KELP_SCHEDULING_DEFAULT] = {kelp_batch_policy_create, "uses the default scheduler"},
    [KELP_SCHEDULING_DYNAMIC] = {kelp_batch_policy_create, "batches dynamically"},
    [KELP_SCHEDULING_SEQUENCE] = {kelp_sequence_policy_create, "batches sequences"},
    [KELP_SCHEDULING_ENSEMBLE] = {NULL, "is an ensemble"},
};

kelp_status *kelp_scheduler_check(const kelp_model_config *config) {
    if (policies[config->scheduling].create != NULL)
        return NULL;
    return KELP_ERROR(KELP_UNIMPLEMENTED, "model '%s' %s, which is not supported", config->name,
                      policies[config->scheduling].description);
}

kelp_status *kelp_scheduler_init(kelp_scheduler *scheduler, kelp_allocator allocator,
                                 const kelp_model_config *config, kelp_execution execution) {
    KELP_TRY(kelp_scheduler_check(config));
    KELP_TRY(policies[config->scheduling].create(allocator, config, &scheduler->policy));
    const bool joins = config->scheduling != KELP_SCHEDULING_DEFAULT && config->max_batch_size > 1;
    const kelp_instance_pool_options options = {.policy = scheduler->policy,
                                                .mode = execution.mode,
                                                .caller_limit_ns = execution.caller_limit_ns,
                                                .joins_requests = joins,
                                                .execute = execution.execute,
                                                .stats = execution.stats,
                                                .timers = execution.timers};
    scheduler->policy->batcher = execution.batcher;
    scheduler->may_block = execution.may_block;
    kelp_status *status = kelp_instance_pool_init(&scheduler->pool, &options);
    if (status != NULL)
        scheduler->policy->ops->destroy(scheduler->policy);
    return status;
}

void kelp_scheduler_deinit(kelp_scheduler *scheduler) {
    kelp_instance_pool_deinit(&scheduler->pool);
    scheduler->policy->ops->destroy(scheduler->policy);
}

kelp_status *kelp_scheduler_submit(kelp_scheduler *scheduler, kelp_request *request) {
    KELP_ASSERT(atomic_load(&request->state) == KELP_REQUEST_PENDING);
    request->may_block = request->avoids_caller;
    if (!request->may_block && scheduler->may_block != NULL)
        request->may_block = scheduler->may_block((TRITONBACKEND_Model *)request->model,
                                                  (TRITONBACKEND_Request *)request);
    if (request->due != NULL)
        KELP_TRY(kelp_due_reserve(request->due));
    if (request->model->config->scheduling == KELP_SCHEDULING_SEQUENCE)
        KELP_TRY(kelp_request_enter_sequence(request));
    return kelp_instance_pool_submit(&scheduler->pool, request);
}
