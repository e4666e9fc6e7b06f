/* SPDX-License-Identifier: Apache-2.0 */
/* The queue of pending requests. */
#include "server/scheduler/queue.h"

#include "base/assert.h"
#include "server/request/factory.h"

kelp_status *kelp_request_queue_admit(const kelp_request_queue *queue,
                                      const kelp_queue_limits *limits,
                                      const kelp_request *request) {
    if (limits->max_size && queue->size >= limits->max_size)
        return KELP_ERROR(KELP_UNAVAILABLE, KELP_REQUEST_TAG "Exceeds maximum queue size",
                          kelp_request_tag(request));
    return NULL;
}

/* Returns the end of the queue timeout of a request. */
static uint64_t deadline_of(const kelp_queue_limits *limits, const kelp_request *request) {
    uint64_t own_us = request->timeout_us;
    uint64_t timeout_us = limits->timeout_us;
    if (limits->allow_timeout_override && own_us && own_us < timeout_us)
        timeout_us = own_us;
    if (timeout_us == 0 || !limits->reject_on_timeout ||
        timeout_us > (KELP_NEVER_NS - request->queue_start_ns) / 1000)
        return KELP_NEVER_NS;
    return request->queue_start_ns + timeout_us * 1000;
}

void kelp_request_queue_push(kelp_request_queue *queue, const kelp_queue_limits *limits,
                             kelp_request *request) {
    KELP_ASSERT((queue->head == NULL) == (queue->size == 0));
    request->deadline_ns = deadline_of(limits, request);
    if (request->deadline_ns != KELP_NEVER_NS &&
        (queue->timed++ == 0 || request->deadline_ns < queue->earliest_ns))
        queue->earliest_ns = request->deadline_ns;
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
        queue->timed -= request->deadline_ns != KELP_NEVER_NS;
    }
    return request;
}

uint64_t kelp_request_queue_expires_at_ns(const kelp_request_queue *queue) {
    return queue->timed > 0 ? queue->earliest_ns : KELP_NEVER_NS;
}

static bool is_cancelled(const kelp_request *request) {
    return atomic_load_explicit(&request->factory->cancelled, memory_order_relaxed);
}

kelp_request *kelp_request_queue_expire(kelp_request_queue *queue, uint64_t now_ns) {
    kelp_request_queue kept = {.earliest_ns = KELP_NEVER_NS};
    kelp_request *expired = NULL, **end = &expired, *next;
    for (kelp_request *request = queue->head; request != NULL; request = next) {
        next = request->next;
        if (request->deadline_ns <= now_ns || is_cancelled(request)) {
            request->next = NULL;
            *end = request;
            end = &request->next;
            continue;
        }
        if (kept.tail != NULL)
            kept.tail->next = request;
        else
            kept.head = request;
        kept.tail = request;
        kept.size++;
        kept.timed += request->deadline_ns != KELP_NEVER_NS;
        if (request->deadline_ns < kept.earliest_ns)
            kept.earliest_ns = request->deadline_ns;
    }
    if (kept.tail != NULL)
        kept.tail->next = NULL;
    *queue = kept;
    return expired;
}

kelp_status *kelp_request_queue_check(const kelp_request *request, uint64_t now_ns) {
    if (request->deadline_ns <= now_ns)
        return KELP_ERROR(KELP_UNAVAILABLE, KELP_REQUEST_TAG "Request timeout expired",
                          kelp_request_tag(request));
    if (request->rejection == KELP_REJECTION_SEQUENCE_TIMEOUT)
        return KELP_ERROR(KELP_UNAVAILABLE,
                          KELP_REQUEST_TAG "timeout of the corresponding sequence has been expired",
                          kelp_request_tag(request));
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
