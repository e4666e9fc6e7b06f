/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A queue of pending requests for policies: first in, first out, with a size limit and a timeout.
 * kelp_request_queue_push is the only function that decides the order.
 *
 * A request that was cancelled or timed out stays in the queue until it is popped, so that neither
 * cancellation nor expiry takes the queue's lock. kelp_request_queue_reject then rejects it.
 *
 * The instance pool's lock is held, except where noted. No function allocates.
 */
#ifndef KELP_SERVER_SCHEDULER_QUEUE_H_
#define KELP_SERVER_SCHEDULER_QUEUE_H_

#include "server/request/request.h"

/* `default_queue_policy` of the model's configuration. Zero: no limits. */
typedef struct kelp_queue_limits {
    uint32_t max_size;           /* 0: unlimited */
    uint64_t timeout_us;         /* in the queue; 0: none */
    bool allow_timeout_override; /* a request may set a shorter timeout */
    bool reject_on_timeout;      /* false: it is executed late */
} kelp_queue_limits;

/* A queue; zero-initialized it is empty. */
typedef struct kelp_request_queue {
    kelp_request *head, *tail; /* linked by `next` */
    uint32_t size;
} kelp_request_queue;

/* Returns UNAVAILABLE if the queue is full. */
kelp_status *kelp_request_queue_admit(const kelp_request_queue *queue,
                                      const kelp_queue_limits *limits,
                                      const kelp_request *request) KELP_MUST_USE;
/* Appends a request. */
void kelp_request_queue_push(kelp_request_queue *queue, kelp_request *request);
/* Removes and returns the first request, or NULL. */
kelp_request *kelp_request_queue_pop(kelp_request_queue *queue);

/* Starts popped requests (PENDING -> EXECUTING), and rejects those that timed out or were
 * cancelled. Moves the others to the front of `requests` and returns their number. Called without
 * the lock, because it calls the callbacks of requests. */
uint32_t kelp_request_queue_reject(const kelp_queue_limits *limits, kelp_stats *stats,
                                   kelp_request **requests, uint32_t count);

#endif
