/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The default scheduler: which instance runs a request, and on which thread. Its lock is the
 * model's own.
 *
 * Backends that may block: each instance has a thread, which takes requests from one queue in order
 * of arrival; one hop a request.
 *
 * Backends that do not: the submitting thread runs the request on a free instance, without a hop.
 * What cannot be run there is queued: when no instance is free, when others wait already, when this
 * very request may block, or when the submission comes from inside executions on this thread that
 * are nested deep (a response callback that submits the next request would else recurse without
 * end). A thread that frees an instance runs what waits, but only so much: a submission must
 * return. The rest goes to threads of the scheduler, at most one an instance, which are started
 * when they are first needed. So an instance never idles beside a queue.
 */
#ifndef KELP_SERVER_SCHEDULER_SCHEDULER_H_
#define KELP_SERVER_SCHEDULER_SCHEDULER_H_

#include "server/request/request.h"

#include <pthread.h>

struct kelp_model_config;

/* Requests that one execution takes at most. */
#define KELP_SCHEDULER_MOST_JOINED 256

/* What `dynamic_batching` in the configuration says of the queue; all zero without it. */
typedef struct kelp_queue_rules {
    uint32_t max_batch;     /* extents of a batch that requests are joined to; 0 joins none */
    uint32_t max_queued;    /* 0 is no limit */
    uint64_t timeout_us;    /* in the queue; 0 is no limit */
    bool shorter_timeouts;  /* a request may ask for less than that */
    bool reject_on_timeout; /* else it is served late */
} kelp_queue_rules;

/* Whether a request may block, as its backend says. Any thread. */
typedef bool (*kelp_may_block_fn)(TRITONBACKEND_Model *model, TRITONBACKEND_Request *request);

/* Where requests are executed. */
typedef struct kelp_execution {
    bool on_caller;              /* on the submitting thread, when that can be */
    kelp_may_block_fn may_block; /* those that cannot; NULL: all can */
} kelp_execution;

typedef struct kelp_scheduler {
    pthread_mutex_t lock;
    pthread_cond_t wake;    /* only threads that wait for work, so that one signal finds one */
    pthread_cond_t changed; /* an instance has begun, or is no longer run: who adds and removes */
    kelp_request *head, *tail;
    kelp_instance *free;       /* on_caller: instances that nobody runs */
    kelp_instance *threadless; /* on_caller: whose threads are not started */
    unsigned sleeping;         /* threads that wait for work */
    uint32_t queued;
    kelp_queue_rules rules;
    kelp_execution execution;
    bool stopping;
} kelp_scheduler;

void kelp_scheduler_init(kelp_scheduler *scheduler, const struct kelp_model_config *config,
                         kelp_execution execution);
void kelp_scheduler_deinit(kelp_scheduler *scheduler);
/* What the thread of an instance does before it executes requests, and what came of it. */
typedef struct kelp_instance_start {
    kelp_status *(*fn)(kelp_instance *instance);
    kelp_status *status;
    bool over; /* under the scheduler's lock; `changed` says when */
} kelp_instance_start;

/* Adds an instance and, unless on_caller, starts its thread. `fn` (may be NULL) runs first, on the
 * thread that will execute or, on_caller, on this one; its failure is returned, and the instance
 * then executes nothing. */
kelp_status *kelp_scheduler_add(kelp_scheduler *scheduler, kelp_instance *instance,
                                kelp_status *(*fn)(kelp_instance *instance)) KELP_MUST_USE;
/* Takes an instance away, once it has executed what it is at; requests go on to the others, of
 * which there is one at least. Not on a thread that executes for it. */
void kelp_scheduler_remove(kelp_scheduler *scheduler, kelp_instance *instance);
/* Ends and joins the threads; the queue is empty. */
void kelp_scheduler_stop(kelp_scheduler *scheduler, kelp_instance **instances, size_t count);
/* How many requests wait. */
uint32_t kelp_scheduler_queued(kelp_scheduler *scheduler);
/* Takes the request, which is PENDING. It may be over when this returns. UNAVAILABLE, and it is not
 * taken, when the queue is full; RESOURCE_EXHAUSTED when it needs a thread and there is none. */
kelp_status *kelp_scheduler_submit(kelp_scheduler *scheduler, kelp_request *request) KELP_MUST_USE;

#endif
