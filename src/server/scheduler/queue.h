/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A queue of pending requests for policies, in the order of levels and, within a level, of a number
 * that the policy chooses: 0 for first in, first out. Queue timeouts are ordered as well, so that
 * many different ones cost no more than equal ones.
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
    bool reject_on_timeout;      /* false: it moves behind the others of its level */
} kelp_queue_limits;

/* A queue; zero-initialized it is empty. Must not move while it has requests. */
typedef struct kelp_request_queue {
    kelp_request *head; /* the first request, or NULL */
    uint32_t size;
    uint64_t input_bytes; /* of all requests */
    uint64_t serial;      /* of the next insertion */
    kelp_ordered_tree order;
    kelp_ordered_tree
        rejections; /* requests that are rejected when their timeout ends, in that order */
    kelp_ordered_tree delays; /* requests that are moved when their timeout ends, in that order */
} kelp_request_queue;

/* Returns UNAVAILABLE if the queue is full. */
kelp_status *kelp_request_queue_admit(const kelp_request_queue *queue,
                                      const kelp_queue_limits *limits,
                                      const kelp_request *request) KELP_MUST_USE;
/* Returns the error of a request that a full queue rejects. */
kelp_status *kelp_request_queue_full(const kelp_request *request) KELP_MUST_USE;
/* Appends a request at level 0 and sets its deadline. */
void kelp_request_queue_push(kelp_request_queue *queue, const kelp_queue_limits *limits,
                             kelp_request *request);
/* Inserts a request and sets its deadline. Lower levels come first; within a level, a lower
 * `order` (below KELP_NEVER_NS); and then the request that was inserted first. */
void kelp_request_queue_insert(kelp_request_queue *queue, const kelp_queue_limits *limits,
                               kelp_request *request, uint64_t level, uint64_t order);
/* Returns the level of a request that is or was queued. */
uint64_t kelp_request_queue_level(const kelp_request *request);
/* Returns the `order` of a request that is or was queued. */
uint64_t kelp_request_queue_order(const kelp_request *request);
/* Returns true if `a` is before `b`. */
bool kelp_request_queue_before(const kelp_request *a, const kelp_request *b);
/* Returns the next request of the queue, or NULL. */
kelp_request *kelp_request_queue_next(const kelp_request *request);
/* Removes a request. */
void kelp_request_queue_remove(kelp_request_queue *queue, kelp_request *request);
/* Removes and returns the first request, or NULL. */
kelp_request *kelp_request_queue_pop(kelp_request_queue *queue);
/* Returns the first end of a queue timeout; KELP_NEVER_NS if no request has one. */
uint64_t kelp_request_queue_expires_at_ns(const kelp_request_queue *queue);
/* Moves requests whose timeout delays them behind the others of their level. Returns their number.
 */
uint32_t kelp_request_queue_delay(kelp_request_queue *queue, uint64_t now_ns);
/* Removes the requests that are past their deadline and, which takes time in proportion to the
 * queue's size, the cancelled ones. Returns them linked by `next`, or NULL. */
kelp_request *kelp_request_queue_expire(kelp_request_queue *queue, uint64_t now_ns, bool cancelled);

/* Returns true if a request is cancelled or past its deadline. */
bool kelp_request_queue_is_dead(const kelp_request *request, uint64_t now_ns);
/* Returns the error of a request that is cancelled or past its deadline, or NULL. */
kelp_status *kelp_request_queue_check(const kelp_request *request, uint64_t now_ns) KELP_MUST_USE;
/* Starts taken requests (PENDING -> EXECUTING), and rejects those that are cancelled or past their
 * deadline. Moves the others to the front of `requests` and returns their number. Called without
 * the lock, because it calls the callbacks of requests. */
uint32_t kelp_request_queue_reject(kelp_stats *stats, kelp_request **requests, uint32_t count,
                                   uint64_t now_ns);

#endif
