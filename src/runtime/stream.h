/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Streams of tasks. The ring is allocated with the stream, so that pushing a task does not
 * allocate. Tasks finish in the order in which they were pushed. A thread of the stream runs them;
 * if the provider has streams of its own, it runs them and reports their end. One mutex guards the
 * ring.
 */
#ifndef KELP_RUNTIME_STREAM_H_
#define KELP_RUNTIME_STREAM_H_

#include "base/sync/event.h"

typedef struct kelp_task_stream {
    kelp_allocator allocator;
    /* Runs a task on the stream's thread, without the mutex. NULL: the stream has no thread. */
    kelp_status *(*run)(void *userp, void *task);
    /* Receives the result, with the mutex held. */
    void (*finish)(void *userp, void *task, kelp_status *take_status);
    void *userp;
    pthread_t thread;
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    struct kelp_stream_slot {
        void *task;
        kelp_event *event; /* may be NULL */
    } * ring;
    size_t capacity, first, count;
    bool stopping;
} kelp_task_stream;

/* Allocates the ring and starts the thread. The caller has set run, finish and userp. */
kelp_status *kelp_task_stream_init(kelp_task_stream *stream, kelp_allocator allocator,
                                   size_t capacity) KELP_MUST_USE;
/* Waits for all tasks and stops the thread. */
void kelp_task_stream_deinit(kelp_task_stream *stream);
/* Adds a task; `event` (may be NULL) is pending until the task has finished. Fails with
 * RESOURCE_EXHAUSTED if the ring is full, and with FAILED_PRECONDITION if the event is pending.
 * Thread-safe. */
kelp_status *kelp_task_stream_push(kelp_task_stream *stream, void *task,
                                   kelp_event *event) KELP_MUST_USE;
/* Removes the newest task, which was not started. Only for streams without a thread. */
void kelp_task_stream_withdraw(kelp_task_stream *stream);
/* Ends the oldest task. Only for streams without a thread. Thread-safe. */
void kelp_task_stream_finish(kelp_task_stream *stream, kelp_status *take_status);
/* Waits until no task is left. */
void kelp_task_stream_wait(kelp_task_stream *stream);

#endif
