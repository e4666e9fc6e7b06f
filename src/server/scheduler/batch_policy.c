/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The batch policy: requests in the order of their priority levels, joined to batches. Without
 * `dynamic_batching`, a batch is one request.
 *
 * The next batch is the longest part at the front of the queue whose requests fit together. It is
 * examined incrementally: a request is examined once when it arrives at the end of the queue, and
 * again only after requests before it were inserted or removed.
 */
#include "server/scheduler/policy.h"

#include "base/alloc.h"
#include "base/assert.h"
#include "server/scheduler/batch_settings.h"
#include "server/scheduler/join.h"
#include "server/scheduler/pace.h"

/* The result of examining the front of the queue. Zero: nothing was examined. */
typedef struct formation {
    kelp_request *last;    /* that joined, or NULL */
    kelp_request *blocker; /* the next request, which does not join, or NULL */
    uint32_t count, size;  /* requests that joined, and their batch size */
    uint32_t best_count;   /* the part that is executed without waiting; 0: none */
    uint64_t oldest_ns;    /* the first time at which one of them was queued */
    kelp_custom_batch custom;
} formation;

typedef struct batch_policy {
    kelp_policy base;
    kelp_batch_settings settings;
    kelp_join_rules rules;
    kelp_request_queue queue;
    formation next;
    kelp_pace pace;        /* if there is a latency target */
    uint32_t max_size;     /* of a batch of several requests; 0: requests do not join */
    uint64_t delay_ns;     /* the maximum time to wait for a full batch */
    uint32_t *level_sizes; /* see kelp_batch_settings_counter; NULL if there are no counters */
    uint32_t hold;         /* no execution before this number of requests is queued */
    uint32_t rejected;     /* by the full queue since it was searched for cancelled requests */
    unsigned cancelled;    /* cancellations of the model before the search */
} batch_policy;

/* Returns true if a batching strategy forms the batches. */
static bool is_custom(const batch_policy *policy) {
    return policy->base.batcher != NULL && policy->settings.max_batch_size > 0;
}

/* ---- the next batch ---- */

static bool is_paced(const batch_policy *policy) {
    return policy->settings.target_ns > 0;
}

/* Returns true if the next batch may wait for more requests. */
static bool may_wait(const batch_policy *policy) {
    return policy->delay_ns > 0 && (!policy->base.eager || is_paced(policy) || is_custom(policy));
}

static bool is_preferred(const batch_policy *policy, uint32_t size) {
    if (is_paced(policy))
        return size >= policy->pace.full_size;
    for (size_t i = 0; i < policy->settings.preferred_count; i++)
        if (policy->settings.preferred_sizes[i] == size)
            return true;
    return false;
}

static uint32_t largest_preferred(const batch_policy *policy) {
    if (is_paced(policy))
        return policy->pace.full_size;
    return policy->settings.preferred_count == 0
               ? 1
               : policy->settings.preferred_sizes[policy->settings.preferred_count - 1];
}

static void forget_next(batch_policy *policy) {
    if (policy->next.custom.batcher != NULL)
        kelp_custom_batch_end(&policy->next.custom);
    policy->next = (formation){0};
}

static bool joins(const batch_policy *policy, const kelp_request *request) {
    const formation *next = &policy->next;
    return next->count < KELP_MAX_EXECUTION_REQUESTS &&
           (uint64_t)next->size + request->batch_size <= policy->max_size &&
           kelp_join_rules_allow(&policy->rules, policy->queue.head, request) &&
           (!is_custom(policy) ||
            kelp_custom_batch_include(&next->custom, (kelp_request *)request));
}

static void begin(batch_policy *policy, kelp_request *first) {
    formation *next = &policy->next;
    next->oldest_ns = first->queue_start_ns;
    if (is_custom(policy))
        kelp_custom_batch_begin(&next->custom, policy->base.batcher, first);
}

static void examine(batch_policy *policy, kelp_request *request) {
    formation *next = &policy->next;
    if (next->count == 0) {
        begin(policy, request);
    } else {
        if ((uint64_t)next->size + request->batch_size > largest_preferred(policy) &&
            next->best_count == 0)
            next->best_count = next->count;
        if (!joins(policy, request)) {
            next->blocker = request;
            return;
        }
    }
    next->last = request;
    next->count++;
    next->size += request->batch_size;
    if (request->queue_start_ns < next->oldest_ns)
        next->oldest_ns = request->queue_start_ns;
    if (is_preferred(policy, next->size))
        next->best_count = next->count;
}

/* Examines the requests that follow those that joined. */
static void form_next(batch_policy *policy) {
    kelp_request *request =
        policy->next.last != NULL ? kelp_request_queue_next(policy->next.last) : policy->queue.head;
    for (; request != NULL && policy->next.blocker == NULL;
         request = kelp_request_queue_next(request))
        examine(policy, request);
}

static void form_again(batch_policy *policy) {
    forget_next(policy);
    form_next(policy);
}

/* Returns the number of requests of the next execution. */
static uint32_t count_next(const batch_policy *policy, uint64_t now_ns) {
    const formation *next = &policy->next;
    uint64_t delay_ns = policy->delay_ns;
    bool is_late = is_paced(policy) || (delay_ns > 0 && now_ns >= next->oldest_ns + delay_ns);
    return next->best_count > 0 && !is_late ? next->best_count : next->count;
}

static uint64_t ready_at_ns(const kelp_policy *base, const kelp_instance_base *instance) {
    const batch_policy *policy = (const batch_policy *)base;
    const formation *next = &policy->next;
    (void)instance;
    if (policy->queue.head == NULL || policy->hold > 0)
        return KELP_NEVER_NS;
    if (next->best_count > 0 || next->blocker != NULL || !may_wait(policy) ||
        next->size >= largest_preferred(policy))
        return 0;
    uint64_t ready_ns = next->oldest_ns + policy->delay_ns;
    if (is_paced(policy)) { /* do not wait so long that the first request is late */
        uint64_t time_ns = kelp_pace_time_ns(&policy->pace, next->size);
        uint64_t due_ns = kelp_request_queue_order(policy->queue.head);
        due_ns = due_ns > time_ns ? due_ns - time_ns : 0;
        ready_ns = due_ns < ready_ns ? due_ns : ready_ns;
    }
    return ready_ns;
}

/* ---- insertion ---- */

static uint64_t input_bytes(const kelp_request *request) {
    uint64_t total = 0;
    for (size_t i = 0; i < request->input_count; i++)
        total += request->inputs[i]->data.size_bytes;
    return total;
}

/* Returns the counter of the requests of a level, or NULL. */
static uint32_t *size_of(const batch_policy *policy, uint64_t level) {
    if (policy->level_sizes == NULL)
        return NULL;
    size_t counter = kelp_batch_settings_counter(&policy->settings, level);
    return counter != SIZE_MAX ? &policy->level_sizes[counter] : NULL;
}

static kelp_status *admit(const kelp_policy *base, const kelp_request *request) {
    const batch_policy *policy = (const batch_policy *)base;
    const kelp_batch_settings *settings = &policy->settings;
    const kelp_request_queue *queue = &policy->queue;
    bool full = settings->max_requests > 0 && queue->size >= settings->max_requests;
    if (!full && settings->max_input_bytes > 0 && queue->size > 0)
        full = queue->input_bytes + input_bytes(request) > settings->max_input_bytes;
    uint64_t level = kelp_batch_settings_level(settings, request);
    uint32_t *size = size_of(policy, level);
    if (!full && size != NULL) {
        uint32_t max_size = kelp_batch_settings_limits(settings, level)->max_size;
        full = max_size > 0 && *size >= max_size;
    }
    return full ? kelp_request_queue_full(request) : NULL;
}

/* With several levels, a full queue of one level does not concern requests of others. */
static bool is_full(const kelp_policy *base) {
    const batch_policy *policy = (const batch_policy *)base;
    const kelp_batch_settings *settings = &policy->settings;
    uint32_t max_size = settings->levels == 0 ? settings->limits.max_size : 0;
    return (settings->max_requests > 0 && policy->queue.size >= settings->max_requests) ||
           (max_size > 0 && policy->queue.size >= max_size);
}

/* Returns the number that orders a request within its level: 0, or the time at which it should be
 * over. */
static uint64_t order_of(const batch_policy *policy, const kelp_request *request) {
    uint64_t time_ns = policy->settings.target_ns;
    if (!is_paced(policy))
        return 0;
    if (request->timeout_us > 0)
        time_ns = request->timeout_us < KELP_NEVER_NS / 4000 ? request->timeout_us * 1000
                                                             : KELP_NEVER_NS / 4;
    return request->queue_start_ns + time_ns;
}

static void push(kelp_policy *base, kelp_request *request, uint64_t now_ns) {
    batch_policy *policy = (batch_policy *)base;
    uint64_t level = kelp_batch_settings_level(&policy->settings, request);
    const kelp_request *end =
        policy->next.blocker != NULL ? policy->next.blocker : policy->next.last;
    kelp_request_queue_insert(&policy->queue, kelp_batch_settings_limits(&policy->settings, level),
                              request, level, order_of(policy, request));
    if (is_paced(policy))
        kelp_pace_arrive(&policy->pace, request->batch_size, now_ns);
    uint32_t *size = size_of(policy, level);
    if (size != NULL)
        ++*size;
    if (policy->queue.size >= policy->hold)
        policy->hold = 0;
    if (end != NULL && kelp_request_queue_before(request, end))
        forget_next(policy);
    form_next(policy);
}

/* A request must not overtake queued requests, and waits if others may join it. A batching strategy
 * decides about all requests. */
static bool bypass(const kelp_policy *base, const kelp_request *request) {
    const batch_policy *policy = (const batch_policy *)base;
    (void)request;
    return policy->queue.head == NULL && policy->hold == 0 && !is_custom(policy) &&
           !is_paced(policy) && (!may_wait(policy) || policy->max_size <= 1);
}

/* ---- removal ---- */

static void count_removed(batch_policy *policy, const kelp_request *request) {
    uint32_t *size = size_of(policy, kelp_request_queue_level(request));
    if (size != NULL)
        --*size;
}

static void remove_request(batch_policy *policy, kelp_request *request) {
    kelp_request_queue_remove(&policy->queue, request);
    count_removed(policy, request);
}

/* Moves the requests of the next batch that are cancelled or past their deadline to
 * `out_requests`, and returns their number. */
static uint32_t take_dead(batch_policy *policy, uint64_t now_ns, kelp_request **out_requests) {
    uint32_t taken = 0;
    kelp_request *request = policy->queue.head, *next;
    for (uint32_t i = policy->next.count; i > 0; i--, request = next) {
        next = kelp_request_queue_next(request);
        if (kelp_request_queue_is_dead(request, now_ns))
            out_requests[taken++] = request;
    }
    if (taken == 0)
        return 0;
    forget_next(policy); /* it refers to the requests */
    for (uint32_t i = 0; i < taken; i++)
        remove_request(policy, out_requests[i]);
    form_next(policy);
    return taken;
}

static uint32_t take(kelp_policy *base, const kelp_instance_base *instance, bool may_block,
                     uint64_t now_ns, kelp_request **out_requests) {
    batch_policy *policy = (batch_policy *)base;
    uint32_t count = 0, dead;
    if (kelp_request_queue_delay(&policy->queue, now_ns) > 0)
        form_again(policy);
    /* The requests that replace dead ones may be dead, too. */
    while (policy->hold == 0 && count + policy->next.count <= KELP_MAX_EXECUTION_REQUESTS &&
           (dead = take_dead(policy, now_ns, out_requests + count)) > 0)
        count += dead;
    if (ready_at_ns(base, instance) > now_ns)
        return count;
    uint32_t left = count_next(policy, now_ns), live = 0;
    for (kelp_request *request = policy->queue.head, *next;
         live < left && count + live < KELP_MAX_EXECUTION_REQUESTS &&
         (may_block || !request->may_block);
         live++, request = next) {
        next = kelp_request_queue_next(request);
        out_requests[count + live] = request;
    }
    if (live == 0)
        return count;
    forget_next(policy);
    for (uint32_t i = 0; i < live; i++)
        remove_request(policy, out_requests[count + i]);
    form_next(policy);
    return count + live;
}

static uint64_t expires_at_ns(const kelp_policy *base) {
    return kelp_request_queue_expires_at_ns(&((const batch_policy *)base)->queue);
}

/* Returns true if the queue should be searched for cancelled requests: some were cancelled, and the
 * queue is short in comparison, or was not searched for a while, because a search must not make
 * rejections slow. */
static bool should_search(batch_policy *policy) {
    enum { SHORT = 64 };
    const kelp_request *head = policy->queue.head;
    if (head == NULL)
        return false;
    unsigned cancelled = atomic_load_explicit(&head->model->cancellations, memory_order_acquire);
    unsigned recent = cancelled - policy->cancelled;
    policy->rejected++;
    if (recent == 0 || policy->queue.size / SHORT > (uint64_t)policy->rejected + recent)
        return false;
    policy->cancelled = cancelled;
    policy->rejected = 0;
    return true;
}

static kelp_request *expire(kelp_policy *base, uint64_t now_ns) {
    batch_policy *policy = (batch_policy *)base;
    bool search = should_search(policy);
    if (!search && expires_at_ns(base) > now_ns)
        return NULL;
    forget_next(policy);
    kelp_request *list = kelp_request_queue_expire(&policy->queue, now_ns, search);
    for (const kelp_request *request = list; request != NULL; request = request->next)
        count_removed(policy, request);
    form_next(policy);
    return list;
}

static void executed(kelp_policy *base, const kelp_execution_report *report) {
    batch_policy *policy = (batch_policy *)base;
    kelp_pace *pace = &policy->pace;
    uint32_t max_size = pace->max_size, full_size = pace->full_size;
    kelp_pace_executed(pace, report->batch_size, report->oldest_ns, report->start_ns,
                       report->end_ns);
    policy->max_size = pace->max_size;
    policy->delay_ns = pace->delay_ns;
    if (pace->max_size != max_size || pace->full_size != full_size)
        form_again(policy);
}

static uint32_t size(const kelp_policy *base) {
    return ((const batch_policy *)base)->queue.size;
}

/* ---- creation ---- */

static void destroy(kelp_policy *base) {
    batch_policy *policy = (batch_policy *)base;
    kelp_allocator allocator = base->allocator;
    KELP_ASSERT(policy->queue.head == NULL && policy->next.custom.batcher == NULL);
    if (policy->level_sizes != NULL)
        kelp_free(allocator, policy->level_sizes,
                  policy->settings.counter_count * sizeof *policy->level_sizes);
    kelp_join_rules_deinit(&policy->rules, allocator);
    kelp_batch_settings_deinit(&policy->settings, allocator);
    kelp_free(allocator, policy, sizeof *policy);
}

static kelp_status *configure(batch_policy *policy, const kelp_model_config *config) {
    kelp_allocator allocator = policy->base.allocator;
    KELP_TRY(kelp_batch_settings_init(&policy->settings, allocator, config));
    policy->hold = policy->settings.hold;
    policy->max_size = policy->settings.max_batch_size;
    policy->delay_ns = policy->settings.delay_ns;
    if (is_paced(policy)) {
        kelp_pace_init(&policy->pace, policy->settings.target_ns, policy->settings.delay_ns,
                       policy->max_size, policy->settings.instances);
        policy->delay_ns = 0;
    }
    KELP_TRY(kelp_join_rules_init(&policy->rules, allocator, config));
    if (policy->settings.counter_count == 0)
        return NULL;
    return kelp_alloc_zero(allocator, policy->settings.counter_count, sizeof *policy->level_sizes,
                           (void **)&policy->level_sizes);
}

kelp_status *kelp_batch_policy_create(kelp_allocator allocator, const kelp_model_config *config,
                                      kelp_policy **out) {
    static const kelp_policy_ops ops = {.admit = admit,
                                        .is_full = is_full,
                                        .push = push,
                                        .bypass = bypass,
                                        .ready_at_ns = ready_at_ns,
                                        .take = take,
                                        .expires_at_ns = expires_at_ns,
                                        .expire = expire,
                                        .executed = executed,
                                        .size = size,
                                        .destroy = destroy};
    batch_policy *policy = NULL;
    KELP_TRY(KELP_NEW(allocator, batch_policy, &policy));
    policy->base.ops = &ops;
    policy->base.allocator = allocator;
    kelp_status *status = configure(policy, config);
    if (status != NULL) {
        destroy(&policy->base);
        return status;
    }
    policy->base.wants_reports = is_paced(policy);
    *out = &policy->base;
    return NULL;
}
