/* SPDX-License-Identifier: Apache-2.0 */
/* The default policy: first in, first out, joining requests that fit into one batch. */
#include "server/scheduler/policy.h"

typedef struct default_policy {
    kelp_policy base;
    kelp_request_queue queue;
    kelp_queue_limits limits;
    uint32_t max_batch_size; /* of joined requests; 0: requests are not joined */
} default_policy;

static kelp_status *admit(const kelp_policy *base, const kelp_request *request) {
    const default_policy *policy = (const default_policy *)base;
    return kelp_request_queue_admit(&policy->queue, &policy->limits, request);
}

static void push(kelp_policy *base, kelp_request *request, uint64_t now_ns) {
    default_policy *policy = (default_policy *)base;
    (void)now_ns;
    kelp_request_queue_push(&policy->queue, &policy->limits, request);
}

/* Returns true if a batching strategy forms the batches. */
static bool is_custom(const default_policy *policy) {
    return policy->base.batcher != NULL && policy->max_batch_size > 0;
}

/* A request must not overtake queued requests. A batching strategy decides about all requests. */
static bool bypass(const kelp_policy *base, const kelp_request *request) {
    const default_policy *policy = (const default_policy *)base;
    (void)request;
    return policy->queue.head == NULL && !is_custom(policy);
}

static uint64_t ready_at_ns(const kelp_policy *base, const kelp_instance_base *instance) {
    (void)instance;
    return ((const default_policy *)base)->queue.head != NULL ? 0 : KELP_NEVER_NS;
}

/* Returns true if two requests can form a batch: they have the same inputs, with equal shapes
 * except for the batch dimension. */
static bool can_join(const kelp_request *a, const kelp_request *b) {
    if (a->input_count != b->input_count)
        return false;
    for (size_t i = 0; i < a->input_count; i++) {
        const kelp_input *left = a->inputs[i];
        const char *name = kelp_text_get(&left->name);
        const kelp_input *right = kelp_request_find_input(b, name);
        if (right == NULL || left->rank != right->rank)
            return false;
        const kelp_config_io *io = kelp_model_config_input(a->model->config, kelp_str_from(name));
        if (io != NULL && io->allow_ragged_batch)
            continue;
        for (uint32_t k = 1; k < left->rank; k++)
            if (left->shape[k] != right->shape[k])
                return false;
    }
    return true;
}

static uint32_t take(kelp_policy *base, const kelp_instance_base *instance, bool may_block,
                     uint64_t now_ns, kelp_request **out_requests) {
    (void)instance, (void)now_ns;
    default_policy *policy = (default_policy *)base;
    kelp_request_queue *queue = &policy->queue;
    uint32_t count = 0;
    if (queue->head == NULL || (queue->head->may_block && !may_block))
        return 0;
    kelp_request *first = kelp_request_queue_pop(queue);
    uint64_t batch_size = first->batch_size;
    kelp_custom_batch batch = {0};
    bool custom = is_custom(policy);
    out_requests[count++] = first;
    if (custom)
        kelp_custom_batch_begin(&batch, base->batcher, first);
    while (count < KELP_MAX_EXECUTION_REQUESTS && queue->head != NULL &&
           (may_block || !queue->head->may_block) &&
           batch_size + queue->head->batch_size <= policy->max_batch_size &&
           can_join(first, queue->head) &&
           (!custom || kelp_custom_batch_include(&batch, queue->head))) {
        batch_size += queue->head->batch_size;
        out_requests[count++] = kelp_request_queue_pop(queue);
    }
    if (custom)
        kelp_custom_batch_end(&batch);
    return count;
}

static uint64_t expires_at_ns(const kelp_policy *base) {
    return kelp_request_queue_expires_at_ns(&((const default_policy *)base)->queue);
}

static kelp_request *expire(kelp_policy *base, uint64_t now_ns) {
    return kelp_request_queue_expire(&((default_policy *)base)->queue, now_ns);
}

static uint32_t size(const kelp_policy *base) {
    return ((const default_policy *)base)->queue.size;
}

static void destroy(kelp_policy *base) {
    kelp_free(base->allocator, base, sizeof(default_policy));
}

static void configure(default_policy *policy, const kelp_model_config *config) {
    const kelp_queue_policy *source = &config->dynamic_batching.default_queue_policy;
    policy->max_batch_size = config->max_batch_size > 0 ? (uint32_t)config->max_batch_size : 0;
    for (size_t i = 0; i < config->input_count; i++)
        if (config->inputs[i].is_shape_tensor)
            policy->max_batch_size = 0; /* shape tensors of a batch would have to be equal */
    if (config->dynamic_batching.has_default_queue_policy)
        policy->limits = (kelp_queue_limits){
            .max_size = source->max_queue_size,
            .timeout_us = source->default_timeout_us,
            .allow_timeout_override = source->allow_timeout_override,
            .reject_on_timeout = source->timeout_action == KELP_TIMEOUT_REJECT,
        };
}

kelp_status *kelp_default_policy_create(kelp_allocator allocator, const kelp_model_config *config,
                                        kelp_policy **out) {
    static const kelp_policy_ops ops = {.admit = admit,
                                        .push = push,
                                        .bypass = bypass,
                                        .ready_at_ns = ready_at_ns,
                                        .take = take,
                                        .expires_at_ns = expires_at_ns,
                                        .expire = expire,
                                        .size = size,
                                        .destroy = destroy};
    default_policy *policy = NULL;
    KELP_TRY(KELP_NEW(allocator, default_policy, &policy));
    policy->base.ops = &ops;
    policy->base.allocator = allocator;
    if (config->scheduling == KELP_SCHEDULING_DYNAMIC)
        configure(policy, config);
    *out = &policy->base;
    return NULL;
}
