/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The default scheduler: which instance runs a request, and on which thread. Its lock is the
 * model's own.
 *
 * Foreign backends: each instance has a thread, which takes requests from one queue in order of
 * arrival; one hop a request. Built-in backends that do not block: the submitting thread runs the
 * request on a free instance; when none is free the request is queued and run by the thread that
 * frees one, so that an instance never idles beside a queue.
 */
#ifndef KELP_SERVER_SCHEDULER_SCHEDULER_H_
#define KELP_SERVER_SCHEDULER_SCHEDULER_H_

#include "server/request/request.h"

#include <pthread.h>

struct kelp_model_config;

/* What `dynamic_batching` in the configuration says of the queue; all zero without it. */
typedef struct kelp_queue_rules {
    uint32_t max_batch;     /* extents of a batch that requests are joined to; 0 joins none */
    uint32_t max_queued;    /* 0 is no limit */
    uint64_t timeout_us;    /* in the queue; 0 is no limit */
    bool shorter_timeouts;  /* a request may ask for less than that */
    bool reject_on_timeout; /* else it is served late */
} kelp_queue_rules;

typedef struct kelp_scheduler {
    pthread_mutex_t lock;
    pthread_cond_t wake;
    kelp_request *head, *tail;
    kelp_instance *free; /* inline: instances that nobody runs */
    unsigned sleeping;   /* threads that wait for work */
    uint32_t queued;
    kelp_queue_rules rules;
    bool run_inline;
    bool stopping;
} kelp_scheduler;

void kelp_scheduler_init(kelp_scheduler *scheduler, const struct kelp_model_config *config,
                         bool run_inline);
void kelp_scheduler_deinit(kelp_scheduler *scheduler);
/* Adds an instance and, unless inline, starts its thread. */
kelp_status *kelp_scheduler_add(kelp_scheduler *scheduler, kelp_instance *instance) KELP_MUST_USE;
/* Ends and joins the threads; the queue is empty. */
void kelp_scheduler_stop(kelp_scheduler *scheduler, kelp_instance **instances, size_t count);
/* Takes the request, which is PENDING. It may be over when this returns. UNAVAILABLE, and it is not
 * taken, when the queue is full. */
kelp_status *kelp_scheduler_submit(kelp_scheduler *scheduler, kelp_request *request) KELP_MUST_USE;

#endif
