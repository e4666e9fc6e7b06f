/* SPDX-License-Identifier: Apache-2.0 */
/* Streams of submissions to a model. The provider runs them if its models have `submit`; otherwise,
 * a thread of the stream does. */
#include "runtime/stream.h"

#include "base/alloc.h"
#include "base/assert.h"
#include "runtime/compute/state.h"

struct kelp_compute_stream {
    kelp_compute_model *model;
    kelp_task_stream tasks; /* of kelp_infer_item */
};

static kelp_status *run(void *userp, void *task) {
    return kelp_compute_run_item(((kelp_compute_stream *)userp)->model, task);
}

static void finish(void *userp, void *task, kelp_status *take_status) {
    (void)userp;
    ((kelp_infer_item *)task)->status = take_status;
}

static void provider_done(void *userp, kelp_status *take_status) {
    kelp_task_stream_finish(&((kelp_compute_stream *)userp)->tasks, take_status);
}

kelp_status *kelp_compute_stream_create(kelp_compute_model *model, size_t capacity,
                                        kelp_compute_stream **out) {
    kelp_allocator allocator = model->state->allocator;
    kelp_compute_stream *stream = NULL;
    if (model->state->stream != NULL)
        return KELP_ERROR(KELP_FAILED_PRECONDITION,
                          "a stream already owns the model: fork the model for another stream");
    if (capacity == 0)
        return KELP_ERROR(KELP_INVALID_ARGUMENT, "the stream has capacity 0: expected at least 1");
    KELP_TRY(KELP_NEW(allocator, kelp_compute_stream, &stream));
    stream->model = model;
    stream->tasks.run = model->vtbl->submit == NULL ? run : NULL;
    stream->tasks.finish = finish;
    stream->tasks.userp = stream;
    kelp_status *status = kelp_task_stream_init(&stream->tasks, allocator, capacity);
    if (status != NULL) {
        kelp_free(allocator, stream, sizeof *stream);
        return status;
    }
    model->state->stream = stream;
    *out = stream;
    return NULL;
}

void kelp_compute_stream_wait(kelp_compute_stream *stream) {
    kelp_task_stream_wait(&stream->tasks);
}

void kelp_compute_stream_destroy(kelp_compute_stream *stream) {
    if (stream == NULL)
        return;
    KELP_ASSERT(stream->model->state->stream == stream);
    kelp_task_stream_deinit(&stream->tasks);
    stream->model->state->stream = NULL;
    kelp_free(stream->tasks.allocator, stream, sizeof *stream);
}

kelp_status *kelp_compute_submit(kelp_compute_stream *stream, kelp_infer_item *item,
                                 kelp_event *event) {
    kelp_compute_model *model = stream->model;
    bool adapt;
    KELP_TRY(kelp_compute_check_item(model, item, &adapt));
    if (adapt && model->vtbl->submit != NULL)
        return KELP_ERROR(KELP_UNIMPLEMENTED,
                          "an input is not compact or is on another device: provider '%s' runs "
                          "submissions itself and does not copy inputs",
                          model->state->backend->name);
    item->status = NULL;
    KELP_TRY(kelp_task_stream_push(&stream->tasks, item, event));
    if (model->vtbl->submit == NULL)
        return NULL;
    kelp_status *status = model->vtbl->submit(model, item, provider_done, stream);
    if (status != NULL)
        kelp_task_stream_withdraw(&stream->tasks);
    return status;
}
