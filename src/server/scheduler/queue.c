/* SPDX-License-Identifier: Apache-2.0 */
/* The queue of pending requests. */
#include "server/scheduler/queue.h"

#include "base/assert.h"
#include "server/request/factory.h"

#include <stddef.h>

static kelp_request *request_of(const kelp_ordered_node *node) {
    return node == NULL ? NULL
                        : (kelp_request *)((char *)node - offsetof(kelp_request, queue_order));
}

static kelp_request *expiring(const kelp_ordered_tree *tree, uint64_t now_ns) {
    kelp_ordered_node *node = tree->first;
    if (node == NULL || node->key.major > now_ns)
        return NULL;
    return (kelp_request *)((char *)node - offsetof(kelp_request, queue_expiry));
}

kelp_status *kelp_request_queue_full(const kelp_request *request) {
    return KELP_ERROR(KELP_UNAVAILABLE, KELP_REQUEST_TAG "Exceeds maximum queue size",
                      kelp_request_tag(request));
}

kelp_status *kelp_request_queue_admit(const kelp_request_queue *queue,
                                      const kelp_queue_limits *limits,
                                      const kelp_request *request) {
    if (limits->max_size && queue->size >= limits->max_size)
        return kelp_request_queue_full(request);
    return NULL;
}

/* Returns the end of the queue timeout of a request. */
static uint64_t timeout_of(const kelp_queue_limits *limits, const kelp_request *request) {
    uint64_t own_us = request->timeout_us;
    uint64_t timeout_us = limits->timeout_us;
    if (limits->allow_timeout_override && own_us && own_us < timeout_us)
        timeout_us = own_us;
    if (timeout_us == 0 || timeout_us > (KELP_NEVER_NS - 1 - request->queue_start_ns) / 1000)
        return KELP_NEVER_NS;
    return request->queue_start_ns + timeout_us * 1000;
}

static uint64_t input_bytes(const kelp_request *request) {
    uint64_t total = 0;
    for (size_t i = 0; i < request->input_count; i++)
        total += request->inputs[i]->data.size_bytes;
    return total;
}

void kelp_request_queue_insert(kelp_request_queue *queue, const kelp_queue_limits *limits,
                               kelp_request *request, uint64_t level, uint64_t order) {
    KELP_ASSERT((queue->head == NULL) == (queue->size == 0) && order < KELP_NEVER_NS);
    uint64_t timeout_ns = timeout_of(limits, request), serial = queue->serial++;
    request->next = NULL;
    request->deadline_ns = limits->reject_on_timeout ? timeout_ns : KELP_NEVER_NS;
    if (timeout_ns != KELP_NEVER_NS)
        kelp_ordered_tree_insert(limits->reject_on_timeout ? &queue->rejections : &queue->delays,
                                 &request->queue_expiry,
                                 (kelp_ordered_key){.major = timeout_ns, .serial = serial});
    kelp_ordered_tree_insert(&queue->order, &request->queue_order,
                             (kelp_ordered_key){level, order, serial});
    queue->head = request_of(queue->order.first);
    queue->input_bytes += input_bytes(request);
    queue->size++;
}

void kelp_request_queue_push(kelp_request_queue *queue, const kelp_queue_limits *limits,
                             kelp_request *request) {
    kelp_request_queue_insert(queue, limits, request, 0, 0);
}

uint64_t kelp_request_queue_level(const kelp_request *request) {
    return request->queue_order.key.major;
}

uint64_t kelp_request_queue_order(const kelp_request *request) {
    return request->queue_order.key.minor;
}

bool kelp_request_queue_before(const kelp_request *a, const kelp_request *b) {
    return kelp_ordered_tree_before(&a->queue_order, &b->queue_order);
}

kelp_request *kelp_request_queue_next(const kelp_request *request) {
    return request_of(kelp_ordered_tree_next(&request->queue_order));
}

void kelp_request_queue_remove(kelp_request_queue *queue, kelp_request *request) {
    KELP_ASSERT(queue->size > 0 && request->queue_order.tree == &queue->order);
    kelp_ordered_tree_remove(&request->queue_order);
    if (request->queue_expiry.tree != NULL)
        kelp_ordered_tree_remove(&request->queue_expiry);
    queue->head = request_of(queue->order.first);
    queue->input_bytes -= input_bytes(request);
    queue->size--;
}

kelp_request *kelp_request_queue_pop(kelp_request_queue *queue) {
    kelp_request *request = queue->head;
    if (request != NULL)
        kelp_request_queue_remove(queue, request);
    return request;
}

static uint64_t first_of(const kelp_ordered_tree *tree) {
    return tree->first != NULL ? tree->first->key.major : KELP_NEVER_NS;
}

uint64_t kelp_request_queue_expires_at_ns(const kelp_request_queue *queue) {
    uint64_t rejection_ns = first_of(&queue->rejections), delay_ns = first_of(&queue->delays);
    return rejection_ns < delay_ns ? rejection_ns : delay_ns;
}

uint32_t kelp_request_queue_delay(kelp_request_queue *queue, uint64_t now_ns) {
    kelp_request *request;
    uint32_t count = 0;
    for (; (request = expiring(&queue->delays, now_ns)) != NULL; count++) {
        const kelp_ordered_key key = {kelp_request_queue_level(request), KELP_NEVER_NS,
                                      queue->serial++};
        kelp_ordered_tree_remove(&request->queue_expiry);
        kelp_ordered_tree_remove(&request->queue_order);
        kelp_ordered_tree_insert(&queue->order, &request->queue_order, key);
    }
    queue->head = request_of(queue->order.first);
    return count;
}

static bool is_cancelled(const kelp_request *request) {
    return atomic_load_explicit(&request->factory->cancelled, memory_order_relaxed);
}

kelp_request *kelp_request_queue_expire(kelp_request_queue *queue, uint64_t now_ns,
                                        bool cancelled) {
    kelp_request *list = NULL, **end = &list, *request, *next;
    (void)kelp_request_queue_delay(queue, now_ns);
    while ((request = expiring(&queue->rejections, now_ns)) != NULL) {
        kelp_request_queue_remove(queue, request);
        *end = request;
        end = &request->next;
    }
    for (request = queue->head; cancelled && request != NULL; request = next) {
        next = kelp_request_queue_next(request);
        if (!is_cancelled(request))
            continue;
        kelp_request_queue_remove(queue, request);
        *end = request;
        end = &request->next;
    }
    return list;
}

bool kelp_request_queue_is_dead(const kelp_request *request, uint64_t now_ns) {
    return request->deadline_ns <= now_ns || is_cancelled(request);
}

kelp_status *kelp_request_queue_check(const kelp_request *request, uint64_t now_ns) {
    if (request->deadline_ns <= now_ns)
        return KELP_ERROR(KELP_UNAVAILABLE, "Request timeout expired");
    if (request->rejection == KELP_REJECTION_SEQUENCE_TIMEOUT)
        return KELP_ERROR(KELP_UNAVAILABLE,
                          "timeout of the corresponding sequence has been expired");
    if (is_cancelled(request) || request->rejection == KELP_REJECTION_SEQUENCE_CANCELLED)
        return KELP_ERROR(KELP_CANCELLED, "Request cancelled");
    return NULL;
}

uint32_t kelp_request_queue_reject(kelp_stats *stats, kelp_request **requests, uint32_t count,
                                   uint64_t now_ns) {
    uint32_t kept = 0;
    for (uint32_t i = 0; i < count; i++) {
        kelp_request *request = requests[i];
        kelp_status *error = kelp_request_queue_check(request, now_ns);
        kelp_request_start(request);
        if (error != NULL)
            kelp_request_reject(request, stats, error);
        else
            requests[kept++] = request;
        kelp_status_free(error);
    }
    return kept;
}
