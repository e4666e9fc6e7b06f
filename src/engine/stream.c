/* SPDX-License-Identifier: Apache-2.0 */
/* Streams, which invoke contexts in the order in which they were enqueued, and wrapped streams of a
 * device library. */
#include "runtime/stream.h"

#include "base/alloc.h"
#include "base/assert.h"
#include "base/domain.h"
#include "engine/engine.h"

#define STREAM_CAPACITY 1024u

struct kelp_stream {
    kelp_runtime *runtime;
    void *native; /* the device library's stream, if wrapped */
    bool wrapped;
    kelp_task_stream tasks; /* of kelp_context; unused if wrapped */
    kelp_status *failure; /* the first one since kelp_stream_synchronize; guarded by tasks.mutex */
};

static kelp_status *run(void *userp, void *task) {
    (void)userp;
    return kelp_context_invoke(task);
}

static void finish(void *userp, void *task, kelp_status *take_status) {
    kelp_stream *stream = userp;
    KELP_ASSERT_HELD(&stream->tasks.mutex);
    KELP_ASSERT(!stream->wrapped);
    (void)task;
    if (stream->failure == NULL)
        stream->failure = take_status;
    else
        kelp_status_free(take_status);
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
    stream->tasks.run = run;
    stream->tasks.finish = finish;
    stream->tasks.userp = stream;
    kelp_status *status =
        kelp_task_stream_init(&stream->tasks, runtime->allocator, STREAM_CAPACITY);
    if (status != NULL) {
        free_stream(stream);
        return kelp_in_domain(status, KELP_DOMAIN_RUNTIME);
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
        return kelp_in_domain(
            KELP_ERROR(KELP_UNIMPLEMENTED,
                       "a wrapped stream cannot be synchronized: use its own library"),
            KELP_DOMAIN_RUNTIME);
    kelp_task_stream_wait(&stream->tasks);
    pthread_mutex_lock(&stream->tasks.mutex);
    kelp_status *failure = stream->failure;
    stream->failure = NULL;
    pthread_mutex_unlock(&stream->tasks.mutex);
    return failure;
}

void kelp_stream_destroy(kelp_stream *stream) {
    if (stream == NULL)
        return;
    if (!stream->wrapped)
        kelp_task_stream_deinit(&stream->tasks);
    free_stream(stream);
}

static kelp_status *enqueue_native(kelp_context *context, const kelp_stream *stream,
                                   const kelp_event *event) {
    if (context->vtbl->enqueue == NULL)
        return kelp_engine_lacks(context->engine, "streams of a device");
    if (event != NULL)
        return KELP_ERROR(KELP_UNIMPLEMENTED,
                          "a wrapped stream does not support events: pass NULL");
    KELP_TRY(kelp_context_check_bound(context));
    return context->vtbl->enqueue(context->self, stream->native);
}

kelp_status *kelp_context_enqueue(kelp_context *context, kelp_stream *stream, kelp_event *event) {
    return kelp_in_argument_domain(stream->wrapped
                                       ? enqueue_native(context, stream, event)
                                       : kelp_task_stream_push(&stream->tasks, context, event));
}
