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

typedef struct kelp_scheduler {
    pthread_mutex_t lock;
    pthread_cond_t wake;
    kelp_request *head, *tail;
    kelp_instance *free; /* inline: instances that nobody runs */
    unsigned sleeping;   /* threads that wait for work */
    bool run_inline;
    bool stopping;
} kelp_scheduler;

kelp_status *kelp_scheduler_init(kelp_scheduler *scheduler, bool run_inline) KELP_MUST_USE;
void kelp_scheduler_deinit(kelp_scheduler *scheduler);
/* Adds an instance and, unless inline, starts its thread. */
kelp_status *kelp_scheduler_add(kelp_scheduler *scheduler, kelp_instance *instance) KELP_MUST_USE;
/* Ends and joins the threads; the queue is empty. */
void kelp_scheduler_stop(kelp_scheduler *scheduler, kelp_instance **instances, size_t count);
/* Takes the request, which is PENDING. It may be over when this returns. */
void kelp_scheduler_submit(kelp_scheduler *scheduler, kelp_request *request);

#endif
