/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A queue of pending requests for policies: first in, first out, with a size limit and a timeout.
 * kelp_request_queue_push is the only function that decides the order.
 *
 * The instance pool's lock is held, except where noted. No function allocates or reads a clock.
 */
#ifndef KELP_SERVER_SCHEDULER_QUEUE_H_
#define KELP_SERVER_SCHEDULER_QUEUE_H_

#include "base/clock.h"
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
    uint32_t timed;       /* requests with a deadline */
    uint64_t earliest_ns; /* at or before the first deadline; valid if `timed` is not 0 */
} kelp_request_queue;

/* Returns UNAVAILABLE if the queue is full. */
kelp_status *kelp_request_queue_admit(const kelp_request_queue *queue,
                                      const kelp_queue_limits *limits,
                                      const kelp_request *request) KELP_MUST_USE;
/* Appends a request and sets its deadline. */
void kelp_request_queue_push(kelp_request_queue *queue, const kelp_queue_limits *limits,
                             kelp_request *request);
/* Removes and returns the first request, or NULL. */
kelp_request *kelp_request_queue_pop(kelp_request_queue *queue);
/* Returns a time at or before the first deadline; KELP_NEVER_NS if no request has one. */
uint64_t kelp_request_queue_expires_at_ns(const kelp_request_queue *queue);
/* Removes the requests that are cancelled or past their deadline. Returns them linked by `next`, or
 * NULL. Takes time in proportion to the queue's size. */
kelp_request *kelp_request_queue_expire(kelp_request_queue *queue, uint64_t now_ns);

/* Returns the error of a request that is cancelled or past its deadline, or NULL. */
kelp_status *kelp_request_queue_check(const kelp_request *request, uint64_t now_ns) KELP_MUST_USE;
/* Starts taken requests (PENDING -> EXECUTING), and rejects those that are cancelled or past their
 * deadline. Moves the others to the front of `requests` and returns their number. Called without
 * the lock, because it calls the callbacks of requests. */
uint32_t kelp_request_queue_reject(kelp_stats *stats, kelp_request **requests, uint32_t count,
                                   uint64_t now_ns);

#endif
