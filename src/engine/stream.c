/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Streams: one thread that invokes contexts in the order they were enqueued, or, wrapped, a stream
 * of a device's library. One mutex guards the ring.
 */
#include "base/alloc.h"
#include "base/event.h"
#include "base/thread.h"
#include "engine/engine.h"

#include <kelp/engine_provider.h>

#define STREAM_CAPACITY 1024u

typedef struct enqueued {
    kelp_context *context;
    kelp_event *event;
} enqueued;

struct kelp_stream {
    kelp_runtime *runtime;
    void *native; /* wrapped: none of the rest is used */
    bool wrapped, stopping;
    pthread_t thread;
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    size_t first, count;
    kelp_status *failure; /* the first since the last synchronize */
    enqueued ring[STREAM_CAPACITY];
};

static void *stream_main(void *userp) {
    kelp_stream *stream = userp;
    pthread_mutex_lock(&stream->mutex);
    for (;;) {
        while (stream->count == 0 && !stream->stopping)
            pthread_cond_wait(&stream->changed, &stream->mutex);
        if (stream->count == 0)
            break;
        enqueued run = stream->ring[stream->first];
        pthread_mutex_unlock(&stream->mutex);
        kelp_status *status = kelp_context_invoke(run.context);
        pthread_mutex_lock(&stream->mutex);
        if (stream->failure == NULL)
            stream->failure = status;
        else
            kelp_status_free(status);
        stream->first = (stream->first + 1) % STREAM_CAPACITY;
        stream->count--;
        /* the event before the stream: who waits for the stream may destroy the event */
        kelp_event_set_pending(run.event, false);
        pthread_cond_broadcast(&stream->changed);
    }
    pthread_mutex_unlock(&stream->mutex);
    return NULL;
}

static void free_stream(kelp_stream *stream) {
    kelp_runtime *runtime = stream->runtime;
    kelp_status_free(stream->failure);
    kelp_free(runtime->allocator, stream, sizeof *stream);
    kelp_runtime_release(runtime);
}

static kelp_status *new_stream(kelp_runtime *runtime, kelp_stream **out) {
    KELP_TRY(KELP_NEW(runtime->allocator, kelp_stream, out));
    (*out)->runtime = kelp_runtime_retain(runtime);
    return NULL;
}

kelp_status *kelp_stream_create(kelp_runtime *runtime, kelp_stream **out) {
    kelp_stream *stream = NULL;
    KELP_TRY(new_stream(runtime, &stream));
    kelp_status *status = kelp_lock_init(&stream->mutex, &stream->changed);
    if (status != NULL) {
        free_stream(stream);
        return status;
    }
    status = kelp_thread_start(&stream->thread, "kelp-stream", stream_main, stream);
    if (status != NULL) {
        pthread_cond_destroy(&stream->changed);
        pthread_mutex_destroy(&stream->mutex);
        free_stream(stream);
        return status;
    }
    *out = stream;
    return NULL;
}

kelp_status *kelp_stream_wrap(kelp_runtime *runtime, void *native_stream, kelp_stream **out) {
    KELP_TRY(new_stream(runtime, out));
    (*out)->native = native_stream;
    (*out)->wrapped = true;
    return NULL;
}

kelp_status *kelp_stream_synchronize(kelp_stream *stream) {
    if (stream->wrapped)
        return KELP_ERROR(KELP_UNIMPLEMENTED,
                          "a wrapped stream is synchronised with its own library");
    pthread_mutex_lock(&stream->mutex);
    while (stream->count > 0)
        pthread_cond_wait(&stream->changed, &stream->mutex);
    kelp_status *failure = stream->failure;
    stream->failure = NULL;
    pthread_mutex_unlock(&stream->mutex);
    return failure;
}

void kelp_stream_destroy(kelp_stream *stream) {
    if (stream == NULL)
        return;
    if (!stream->wrapped) {
        pthread_mutex_lock(&stream->mutex);
        stream->stopping = true;
        pthread_cond_broadcast(&stream->changed);
        pthread_mutex_unlock(&stream->mutex);
        pthread_join(stream->thread, NULL);
        pthread_cond_destroy(&stream->changed);
        pthread_mutex_destroy(&stream->mutex);
    }
    free_stream(stream);
}

static kelp_status *enqueue_native(kelp_context *context, kelp_stream *stream, kelp_event *event) {
    if (context->vtbl->enqueue == NULL)
        return kelp_engine_lacks(context->engine, "streams of a device");
    if (event != NULL)
        return KELP_ERROR(KELP_UNIMPLEMENTED,
                          "events of a device's stream are that library's: pass NULL");
    KELP_TRY(kelp_context_check_bound(context));
    return context->vtbl->enqueue(context->self, stream->native);
}

kelp_status *kelp_context_enqueue(kelp_context *context, kelp_stream *stream, kelp_event *event) {
    if (stream->wrapped)
        return enqueue_native(context, stream, event);
    pthread_mutex_lock(&stream->mutex);
    bool full = stream->count == STREAM_CAPACITY;
    if (!full) {
        kelp_event_set_pending(event, true);
        stream->ring[(stream->first + stream->count++) % STREAM_CAPACITY] =
            (enqueued){context, event};
        pthread_cond_broadcast(&stream->changed);
    }
    pthread_mutex_unlock(&stream->mutex);
    return full ? KELP_ERROR(KELP_RESOURCE_EXHAUSTED, "%u runs wait in the stream already",
                             STREAM_CAPACITY)
                : NULL;
}
