/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Streams: a ring of submissions, made with the stream, so that submitting allocates nothing. Where
 * the provider has no submit of its own, a thread takes them in order. One mutex guards the ring.
 */
#include "base/alloc.h"
#include "base/event.h"
#include "base/thread.h"
#include "runtime/compute/state.h"

/* ---- streams ---- */
typedef struct submission {
    kelp_infer_item *item;
    kelp_event *event;
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
    kelp_event_set_pending(done.event, false);
    pthread_cond_broadcast(&stream->changed);
    pthread_mutex_unlock(&stream->mutex);
}

/* The newest submission was not taken. */
static void withdraw_last(kelp_compute_stream *stream) {
    pthread_mutex_lock(&stream->mutex);
    stream->count--;
    kelp_event_set_pending(stream->ring[(stream->first + stream->count) % stream->capacity].event,
                           false);
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
        status = kelp_lock_init(&stream->mutex, &stream->changed);
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
                                 kelp_event *event) {
    bool adapt;
    KELP_TRY(kelp_compute_check_item(stream->model, item, &adapt));
    if (adapt && !stream->threaded)
        return KELP_ERROR(KELP_UNIMPLEMENTED,
                          "compute backend '%s' runs by itself, and takes inputs where they lie: "
                          "one has gaps or lies elsewhere",
                          stream->model->state->backend->name);
    if (event != NULL && !kelp_event_done(event))
        return KELP_ERROR(KELP_FAILED_PRECONDITION,
                          "the event stands for another submission that is under way");
    pthread_mutex_lock(&stream->mutex);
    bool full = stream->count == stream->capacity;
    if (!full) {
        item->status = NULL;
        kelp_event_set_pending(event, true);
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
