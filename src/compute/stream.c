/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Streams: a ring of submissions, made with the stream, so that submitting allocates nothing. Where
 * the provider has no submit of its own, a thread takes them in order. One mutex guards the ring.
 */
#include "base/alloc.h"
#include "base/clock.h"
#include "base/thread.h"
#include "compute/state.h"

#include <errno.h>

/* ---- events ---- */
struct kelp_compute_event {
    kelp_allocator allocator;
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    bool pending;
};

static kelp_status *make_lock(pthread_mutex_t *mutex, pthread_cond_t *changed) {
    pthread_condattr_t attributes;
    if (pthread_condattr_init(&attributes) != 0)
        return KELP_ERROR(KELP_RESOURCE_EXHAUSTED, "no memory for a condition variable");
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    int failed = pthread_cond_init(changed, &attributes);
    pthread_condattr_destroy(&attributes);
    if (failed != 0)
        return KELP_ERROR(KELP_RESOURCE_EXHAUSTED, "no memory for a condition variable");
    if (pthread_mutex_init(mutex, NULL) != 0) {
        pthread_cond_destroy(changed);
        return KELP_ERROR(KELP_RESOURCE_EXHAUSTED, "no memory for a mutex");
    }
    return NULL;
}

kelp_status *kelp_compute_event_create(kelp_allocator allocator, kelp_compute_event **out) {
    kelp_compute_event *event = NULL;
    KELP_TRY(KELP_NEW(allocator, kelp_compute_event, &event));
    event->allocator = allocator;
    kelp_status *status = make_lock(&event->mutex, &event->changed);
    if (status != NULL) {
        kelp_free(allocator, event, sizeof *event);
        return status;
    }
    *out = event;
    return NULL;
}

void kelp_compute_event_destroy(kelp_compute_event *event) {
    if (event == NULL)
        return;
    kelp_compute_event_wait(event, UINT64_MAX);
    kelp_allocator allocator = event->allocator;
    pthread_cond_destroy(&event->changed);
    pthread_mutex_destroy(&event->mutex);
    kelp_free(allocator, event, sizeof *event);
}

bool kelp_compute_event_done(kelp_compute_event *event) {
    pthread_mutex_lock(&event->mutex);
    bool done = !event->pending;
    pthread_mutex_unlock(&event->mutex);
    return done;
}

bool kelp_compute_event_wait(kelp_compute_event *event, uint64_t timeout_ns) {
    uint64_t now = kelp_now_ns();
    uint64_t deadline = timeout_ns > UINT64_MAX - now ? UINT64_MAX : now + timeout_ns;
    struct timespec until = {.tv_sec = (time_t)(deadline / 1000000000u),
                             .tv_nsec = (long)(deadline % 1000000000u)};
    int code = 0;
    pthread_mutex_lock(&event->mutex);
    while (event->pending && code != ETIMEDOUT)
        code = deadline == UINT64_MAX
                   ? pthread_cond_wait(&event->changed, &event->mutex)
                   : pthread_cond_timedwait(&event->changed, &event->mutex, &until);
    bool done = !event->pending;
    pthread_mutex_unlock(&event->mutex);
    return done;
}

/* Wakes under the mutex: whoever waited may destroy the event at once. */
static void set_pending(kelp_compute_event *event, bool pending) {
    if (event == NULL)
        return;
    pthread_mutex_lock(&event->mutex);
    event->pending = pending;
    if (!pending)
        pthread_cond_broadcast(&event->changed);
    pthread_mutex_unlock(&event->mutex);
}

/* ---- streams ---- */
typedef struct submission {
    kelp_infer_item *item;
    kelp_compute_event *event;
} submission;

struct kelp_compute_stream {
    kelp_compute_model *model;
    kelp_allocator allocator;
    pthread_t thread; /* runs when the provider has no submit */
    bool threaded, stopping;
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    submission *ring;
    size_t capacity, first, count;
};

/* The oldest submission is done. */
static void finish_first(kelp_compute_stream *stream, kelp_status *take_status) {
    pthread_mutex_lock(&stream->mutex);
    submission done = stream->ring[stream->first];
    done.item->status = take_status;
    stream->first = (stream->first + 1) % stream->capacity;
    stream->count--;
    /* the event before the stream: who waits for the stream may destroy the event */
    set_pending(done.event, false);
    pthread_cond_broadcast(&stream->changed);
    pthread_mutex_unlock(&stream->mutex);
}

/* The newest submission was not taken. */
static void withdraw_last(kelp_compute_stream *stream) {
    pthread_mutex_lock(&stream->mutex);
    stream->count--;
    set_pending(stream->ring[(stream->first + stream->count) % stream->capacity].event, false);
    pthread_cond_broadcast(&stream->changed);
    pthread_mutex_unlock(&stream->mutex);
}

static void provider_done(void *userp, kelp_status *take_status) {
    finish_first(userp, take_status);
}

static void *stream_main(void *userp) {
    kelp_compute_stream *stream = userp;
    for (;;) {
        pthread_mutex_lock(&stream->mutex);
        while (stream->count == 0 && !stream->stopping)
            pthread_cond_wait(&stream->changed, &stream->mutex);
        if (stream->count == 0) {
            pthread_mutex_unlock(&stream->mutex);
            return NULL;
        }
        kelp_infer_item *item = stream->ring[stream->first].item;
        pthread_mutex_unlock(&stream->mutex);
        finish_first(stream, kelp_compute_run_item(stream->model, item));
    }
}

static void free_stream(kelp_compute_stream *stream) {
    kelp_allocator allocator = stream->allocator;
    pthread_cond_destroy(&stream->changed);
    pthread_mutex_destroy(&stream->mutex);
    kelp_free(allocator, stream->ring, stream->capacity * sizeof *stream->ring);
    kelp_free(allocator, stream, sizeof *stream);
}

kelp_status *kelp_compute_stream_create(kelp_compute_model *model, size_t capacity,
                                        kelp_compute_stream **out) {
    kelp_allocator allocator = model->state->allocator;
    kelp_compute_stream *stream = NULL;
    if (model->state->stream != NULL)
        return KELP_ERROR(KELP_FAILED_PRECONDITION,
                          "a stream owns the model already: fork the model for another");
    if (capacity == 0)
        return KELP_ERROR(KELP_INVALID_ARGUMENT, "a stream needs room for one submission: found 0");
    KELP_TRY(KELP_NEW(allocator, kelp_compute_stream, &stream));
    stream->allocator = allocator;
    stream->model = model;
    kelp_status *status =
        kelp_alloc_zero(allocator, capacity, sizeof *stream->ring, (void **)&stream->ring);
    stream->capacity = status == NULL ? capacity : 0;
    if (status == NULL)
        status = make_lock(&stream->mutex, &stream->changed);
    if (status != NULL) {
        kelp_free(allocator, stream->ring, stream->capacity * sizeof *stream->ring);
        kelp_free(allocator, stream, sizeof *stream);
        return status;
    }
    stream->threaded = model->vtbl->submit == NULL;
    if (stream->threaded)
        status = kelp_thread_start(&stream->thread, "kelp-stream", stream_main, stream);
    if (status != NULL) {
        free_stream(stream);
        return status;
    }
    model->state->stream = stream;
    *out = stream;
    return NULL;
}

void kelp_compute_stream_wait(kelp_compute_stream *stream) {
    pthread_mutex_lock(&stream->mutex);
    while (stream->count > 0)
        pthread_cond_wait(&stream->changed, &stream->mutex);
    pthread_mutex_unlock(&stream->mutex);
}

void kelp_compute_stream_destroy(kelp_compute_stream *stream) {
    if (stream == NULL)
        return;
    kelp_compute_stream_wait(stream);
    if (stream->threaded) {
        pthread_mutex_lock(&stream->mutex);
        stream->stopping = true;
        pthread_cond_broadcast(&stream->changed);
        pthread_mutex_unlock(&stream->mutex);
        pthread_join(stream->thread, NULL);
    }
    stream->model->state->stream = NULL;
    free_stream(stream);
}

kelp_status *kelp_compute_submit(kelp_compute_stream *stream, kelp_infer_item *item,
                                 kelp_compute_event *event) {
    bool adapt;
    KELP_TRY(kelp_compute_check_item(stream->model, item, &adapt));
    if (adapt && !stream->threaded)
        return KELP_ERROR(KELP_UNIMPLEMENTED,
                          "compute backend '%s' runs by itself, and takes inputs where they lie: "
                          "one has gaps or lies elsewhere",
                          stream->model->state->backend->name);
    if (event != NULL && !kelp_compute_event_done(event))
        return KELP_ERROR(KELP_FAILED_PRECONDITION,
                          "the event stands for another submission that is under way");
    pthread_mutex_lock(&stream->mutex);
    bool full = stream->count == stream->capacity;
    if (!full) {
        item->status = NULL;
        set_pending(event, true);
        stream->ring[(stream->first + stream->count) % stream->capacity] =
            (submission){item, event};
        stream->count++;
        pthread_cond_broadcast(&stream->changed);
    }
    pthread_mutex_unlock(&stream->mutex);
    if (full)
        return KELP_ERROR(KELP_RESOURCE_EXHAUSTED,
                          "%zu submissions wait already: the stream is full", stream->capacity);
    if (!stream->threaded) {
        kelp_status *status =
            stream->model->vtbl->submit(stream->model, item, provider_done, stream);
        if (status != NULL) {
            withdraw_last(stream);
            return status;
        }
    }
    return NULL;
}
