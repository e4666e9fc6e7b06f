/* SPDX-License-Identifier: Apache-2.0 */
/* Streams of tasks: the ring, and the thread that runs its tasks. */
#include "runtime/stream.h"

#include "base/alloc.h"
#include "base/assert.h"
#include "base/sync/thread.h"

/* ---- tasks ---- */
static void finish_first(kelp_task_stream *stream, kelp_status *take_status) {
    KELP_ASSERT_HELD(&stream->mutex);
    KELP_ASSERT(stream->count > 0);
    struct kelp_stream_slot done = stream->ring[stream->first];
    stream->finish(stream->userp, done.task, take_status);
    stream->first = (stream->first + 1) % stream->capacity;
    stream->count--;
    /* notify the event first: a thread that waits for the stream may then destroy the event */
    kelp_event_set_pending(done.event, false);
    pthread_cond_broadcast(&stream->changed);
}

void kelp_task_stream_finish(kelp_task_stream *stream, kelp_status *take_status) {
    pthread_mutex_lock(&stream->mutex);
    finish_first(stream, take_status);
    pthread_mutex_unlock(&stream->mutex);
}

void kelp_task_stream_withdraw(kelp_task_stream *stream) {
    pthread_mutex_lock(&stream->mutex);
    KELP_ASSERT(stream->run == NULL && stream->count > 0);
    stream->count--;
    kelp_event_set_pending(stream->ring[(stream->first + stream->count) % stream->capacity].event,
                           false);
    pthread_cond_broadcast(&stream->changed);
    pthread_mutex_unlock(&stream->mutex);
}

kelp_status *kelp_task_stream_push(kelp_task_stream *stream, void *task, kelp_event *event) {
    if (event != NULL && !kelp_event_done(event))
        return KELP_ERROR(KELP_FAILED_PRECONDITION,
                          "the event is in use: another task in flight will notify it");
    pthread_mutex_lock(&stream->mutex);
    KELP_ASSERT(!stream->stopping);
    bool full = stream->count == stream->capacity;
    if (!full) {
        kelp_event_set_pending(event, true);
        stream->ring[(stream->first + stream->count++) % stream->capacity] =
            (struct kelp_stream_slot){task, event};
        pthread_cond_broadcast(&stream->changed);
    }
    pthread_mutex_unlock(&stream->mutex);
    return full ? KELP_ERROR(KELP_RESOURCE_EXHAUSTED, "the stream is full: %zu tasks are in flight",
                             stream->capacity)
                : NULL;
}

void kelp_task_stream_wait(kelp_task_stream *stream) {
    pthread_mutex_lock(&stream->mutex);
    while (stream->count > 0)
        pthread_cond_wait(&stream->changed, &stream->mutex);
    pthread_mutex_unlock(&stream->mutex);
}

/* ---- lifetime ---- */
static void *stream_main(void *userp) {
    kelp_task_stream *stream = userp;
    pthread_mutex_lock(&stream->mutex);
    for (;;) {
        while (stream->count == 0 && !stream->stopping)
            pthread_cond_wait(&stream->changed, &stream->mutex);
        if (stream->count == 0)
            break;
        void *task = stream->ring[stream->first].task;
        pthread_mutex_unlock(&stream->mutex);
        kelp_status *status = stream->run(stream->userp, task);
        pthread_mutex_lock(&stream->mutex);
        finish_first(stream, status);
    }
    pthread_mutex_unlock(&stream->mutex);
    return NULL;
}

static void free_stream(kelp_task_stream *stream) {
    KELP_ASSERT(stream->count == 0);
    pthread_cond_destroy(&stream->changed);
    pthread_mutex_destroy(&stream->mutex);
    kelp_free(stream->allocator, stream->ring, stream->capacity * sizeof *stream->ring);
}

kelp_status *kelp_task_stream_init(kelp_task_stream *stream, kelp_allocator allocator,
                                   size_t capacity) {
    KELP_ASSERT(stream->finish != NULL && capacity > 0);
    stream->allocator = allocator;
    KELP_TRY(kelp_alloc_zero(allocator, capacity, sizeof *stream->ring, (void **)&stream->ring));
    stream->capacity = capacity;
    kelp_status *status = kelp_lock_init(&stream->mutex, &stream->changed);
    if (status != NULL) {
        kelp_free(allocator, stream->ring, capacity * sizeof *stream->ring);
        return status;
    }
    if (stream->run != NULL)
        status = kelp_thread_start(&stream->thread, "kelp-stream", stream_main, stream);
    if (status != NULL)
        free_stream(stream);
    return status;
}

void kelp_task_stream_deinit(kelp_task_stream *stream) {
    kelp_task_stream_wait(stream);
    if (stream->run != NULL) {
        pthread_mutex_lock(&stream->mutex);
        stream->stopping = true;
        pthread_cond_broadcast(&stream->changed);
        pthread_mutex_unlock(&stream->mutex);
        pthread_join(stream->thread, NULL);
    }
    free_stream(stream);
}
