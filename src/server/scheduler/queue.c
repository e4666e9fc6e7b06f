/* SPDX-License-Identifier: Apache-2.0 */
/* The queue of pending requests. */
#include "server/scheduler/queue.h"

#include "base/assert.h"
#include "base/clock.h"
#include "server/request/factory.h"

kelp_status *kelp_request_queue_admit(const kelp_request_queue *queue,
                                      const kelp_queue_limits *limits,
                                      const kelp_request *request) {
    if (limits->max_size && queue->size >= limits->max_size)
        return KELP_ERROR(KELP_UNAVAILABLE, KELP_REQUEST_TAG "Exceeds maximum queue size",
                          kelp_request_tag(request));
    return NULL;
}

void kelp_request_queue_push(kelp_request_queue *queue, kelp_request *request) {
    KELP_ASSERT((queue->head == NULL) == (queue->size == 0));
    request->next = NULL;
    if (queue->tail != NULL)
        queue->tail->next = request;
    else
        queue->head = request;
    queue->tail = request;
    queue->size++;
}

kelp_request *kelp_request_queue_pop(kelp_request_queue *queue) {
    kelp_request *request = queue->head;
    if (request != NULL) {
        KELP_ASSERT(queue->size > 0);
        queue->head = request->next;
        if (queue->head == NULL)
            queue->tail = NULL;
        request->next = NULL;
        queue->size--;
    }
    return request;
}

/* Returns the queue timeout of a request in microseconds; 0: none. */
static uint64_t timeout_of(const kelp_queue_limits *limits, const kelp_request *request) {
    uint64_t own_us = request->timeout_us;
    if (limits->allow_timeout_override && own_us && own_us < limits->timeout_us)
        return own_us;
    return limits->timeout_us;
}

static kelp_status *check(const kelp_queue_limits *limits, const kelp_request *request,
                          uint64_t now_ns) {
    if (now_ns && (now_ns - request->queue_start_ns) / 1000 > timeout_of(limits, request))
        return KELP_ERROR(KELP_UNAVAILABLE, KELP_REQUEST_TAG "Request timeout expired",
                          kelp_request_tag(request));
    if (atomic_load_explicit(&request->factory->cancelled, memory_order_relaxed))
        return KELP_ERROR(KELP_CANCELLED, "Request cancelled");
    return NULL;
}

uint32_t kelp_request_queue_reject(const kelp_queue_limits *limits, kelp_stats *stats,
                                   kelp_request **requests, uint32_t count) {
    uint64_t now_ns = limits->timeout_us && limits->reject_on_timeout ? kelp_now_ns() : 0;
    uint32_t kept = 0;
    for (uint32_t i = 0; i < count; i++) {
        kelp_request *request = requests[i];
        kelp_request_start(request);
        kelp_status *error = check(limits, request, now_ns);
        if (error != NULL)
            kelp_request_reject(request, stats, error);
        else
            requests[kept++] = request;
        kelp_status_free(error);
    }
    return kept;
}
