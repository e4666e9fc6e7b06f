/* SPDX-License-Identifier: Apache-2.0 */
/* Recordings: runs that a provider recorded, for replay without dispatch of single nodes. */
#include "base/alloc.h"
#include "base/assert.h"
#include "base/checked.h"
#include "base/domain.h"
#include "engine/engine.h"

struct kelp_capture {
    kelp_context *context;     /* NULL once it is destroyed */
    struct kelp_capture *next; /* of the same context */
    kelp_engine *engine;
    void *self; /* the provider's recording; NULL if context is NULL */
    size_t step_count;
};

kelp_status *kelp_context_capture(kelp_context *context, kelp_capture **out) {
    const kelp_engine *engine = context->engine;
    kelp_capture *recording = NULL;
    if (context->vtbl->capture == NULL || context->vtbl->replay == NULL)
        return kelp_engine_lacks(engine, "recordings");
    KELP_TRY(kelp_context_check_bound(context));
    KELP_TRY(KELP_NEW(engine->allocator, kelp_capture, &recording));
    kelp_status *status =
        context->vtbl->capture(context->self, &recording->self, &recording->step_count);
    if (status != NULL) {
        kelp_free(engine->allocator, recording, sizeof *recording);
        return kelp_in_domain(status, KELP_DOMAIN_ENGINE);
    }
    KELP_ASSERT(recording->self != NULL);
    recording->context = context;
    recording->engine = kelp_engine_retain(context->engine);
    recording->next = context->recordings;
    context->recordings = recording;
    *out = recording;
    return NULL;
}

kelp_status *kelp_capture_replay(kelp_capture *recording) {
    kelp_context *context = recording->context;
    if (KELP_UNLIKELY(context == NULL))
        return kelp_in_domain(
            KELP_ERROR(KELP_FAILED_PRECONDITION, "the context of the recording was destroyed"),
            KELP_DOMAIN_ENGINE);
    KELP_ASSERT(recording->self != NULL);
    KELP_ASSERT(recording->engine == context->engine);
    return kelp_in_domain(context->vtbl->replay(recording->self, context->outputs),
                          KELP_DOMAIN_ENGINE);
}

size_t kelp_capture_step_count(const kelp_capture *recording) {
    return recording->step_count;
}

static void drop(kelp_capture *recording) {
    const kelp_engine_vtbl *vtbl = recording->engine->vtbl;
    if (recording->self != NULL && vtbl->destroy_capture != NULL)
        vtbl->destroy_capture(recording->self);
    recording->self = NULL;
    recording->context = NULL;
}

void kelp_context_drop_recordings(kelp_context *context) {
    for (kelp_capture *recording = context->recordings; recording != NULL;
         recording = recording->next)
        drop(recording);
    context->recordings = NULL;
}

void kelp_capture_destroy(kelp_capture *recording) {
    if (recording == NULL)
        return;
    kelp_capture **link = recording->context != NULL ? &recording->context->recordings : NULL;
    while (link != NULL && *link != NULL && *link != recording)
        link = &(*link)->next;
    if (link != NULL && *link != NULL)
        *link = recording->next;
    kelp_engine *engine = recording->engine;
    drop(recording);
    kelp_free(engine->allocator, recording, sizeof *recording);
    kelp_engine_release(engine);
}
