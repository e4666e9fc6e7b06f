/* SPDX-License-Identifier: Apache-2.0 */
/* Captured runs: the kernel calls of a plan, as a flat list with everything resolved. */
#include "base/alloc.h"
#include "base/checked.h"
#include "cpu/exec/exec.h"

#include <kelp/engine_provider.h>

#include <stdatomic.h>
#include <string.h>

typedef struct call {
    kelp_status *(*invoke)(const void *state, kelp_op_args *args);
    const void *state;
    kelp_op_args *args;
} call;

struct kelp_capture {
    kelp_context *context;     /* NULL once it is gone */
    struct kelp_capture *next; /* of the context */
    kelp_engine *engine;       /* counted: what the calls need */
    uint32_t stamp;
    bool delivers; /* outputs are copied after the last call */
    size_t count;
    call *calls;
    void *foreign; /* another provider's record; then there are no calls */
};

static kelp_status *capture_foreign(kelp_context *context, kelp_capture **out) {
    const kelp_engine_vtbl *table = context->engine->vtbl;
    kelp_capture *capture = NULL;
    if (table->capture == NULL || table->replay == NULL)
        return kelp_foreign_missing(context->engine, "captured runs");
    KELP_TRY(KELP_NEW(context->allocator, kelp_capture, &capture));
    kelp_status *status = table->capture(context->foreign, &capture->foreign, &capture->count);
    if (status != NULL) {
        kelp_free(context->allocator, capture, sizeof *capture);
        return status;
    }
    capture->context = context;
    capture->engine = kelp_engine_retain(context->engine);
    capture->next = context->captures;
    context->captures = capture;
    *out = capture;
    return NULL;
}

static void destroy_foreign(kelp_capture *capture) {
    const kelp_engine_vtbl *table = capture->engine->vtbl;
    if (capture->foreign != NULL && table->destroy_capture != NULL)
        table->destroy_capture(capture->foreign);
    capture->foreign = NULL;
}

kelp_status *kelp_context_capture(kelp_context *context, kelp_capture **out) {
    kelp_frame *frame = &context->main;
    kelp_capture *capture = NULL;
    if (context->engine->vtbl != NULL)
        return capture_foreign(context, out);
    KELP_TRY(kelp_context_prepare(context));
    kelp_arena_clear(&context->run_arena);
    KELP_TRY(kelp_frame_begin(frame));
    if (frame->rebind)
        return KELP_ERROR(KELP_FAILED_PRECONDITION,
                          "a run whose inputs are not aligned to their type, or whose outputs are "
                          "placed anew each time, cannot be captured");
    const kelp_plan *plan = frame->plans;
    for (size_t i = 0; i < plan->step_count; i++)
        if (plan->steps[i].dynamic)
            return KELP_ERROR(KELP_FAILED_PRECONDITION,
                              "the run cannot be captured: the shape of node '%s' (%s) depends on "
                              "data",
                              plan->steps[i].args.node->name, plan->steps[i].args.node->op->name);
    KELP_TRY(KELP_NEW(context->allocator, kelp_capture, &capture));
    kelp_status *status = kelp_alloc_zero(context->allocator, plan->step_count,
                                          sizeof *capture->calls, (void **)&capture->calls);
    if (status != NULL) {
        kelp_free(context->allocator, capture, sizeof *capture);
        return status;
    }
    capture->context = context;
    capture->engine = kelp_engine_retain(context->core);
    capture->stamp = frame->stamp;
    capture->count = plan->step_count;
    for (size_t i = 0; i < plan->step_count; i++) {
        kelp_step *step = &plan->steps[i];
        capture->calls[i] =
            (call){step->engine_node->kernel->invoke, step->engine_node->state, &step->args};
    }
    for (size_t i = 0; i < frame->program->block->output_count; i++) {
        const struct kelp_bound_output *output = &frame->outputs[i];
        capture->delivers = capture->delivers || plan->copies[i] ||
                            (output->user_data != NULL && output->user_data != output->target);
    }
    capture->next = context->captures;
    context->captures = capture;
    *out = capture;
    return NULL;
}

kelp_status *kelp_capture_replay(kelp_capture *capture) {
    kelp_context *context = capture->context;
    if (KELP_UNLIKELY(context == NULL))
        return KELP_ERROR(KELP_FAILED_PRECONDITION, "the context of the captured run is gone");
    if (KELP_UNLIKELY(capture->foreign != NULL))
        return capture->engine->vtbl->replay(capture->foreign, context->foreign_outputs);
    kelp_frame *frame = &context->main;
    if (KELP_UNLIKELY(capture->stamp != frame->stamp || context->core != capture->engine))
        return KELP_ERROR(
            KELP_FAILED_PRECONDITION,
            "the context was bound anew since the run was captured: capture it again");
    kelp_context_begin_run(context);
    for (size_t i = 0; i < capture->count; i++) {
        const call *c = &capture->calls[i];
        kelp_status *status = kelp_stop_asked(&context->stop) ? NULL : c->invoke(c->state, c->args);
        KELP_TRY(kelp_frame_settle(frame, c->args->node, status));
    }
    return capture->delivers ? kelp_frame_deliver(frame) : NULL;
}

size_t kelp_capture_step_count(const kelp_capture *capture) {
    return capture->count;
}

void kelp_captures_orphan(kelp_context *context) {
    for (kelp_capture *capture = context->captures; capture != NULL; capture = capture->next) {
        if (capture->foreign != NULL)
            destroy_foreign(capture);
        capture->context = NULL;
    }
}

void kelp_capture_destroy(kelp_capture *capture) {
    if (capture == NULL)
        return;
    kelp_capture **link = capture->context != NULL ? &capture->context->captures : NULL;
    while (link != NULL && *link != NULL && *link != capture)
        link = &(*link)->next;
    if (link != NULL && *link != NULL)
        *link = capture->next;
    kelp_engine *engine = capture->engine;
    kelp_allocator allocator = engine->allocator;
    if (capture->foreign != NULL)
        destroy_foreign(capture);
    if (capture->calls != NULL)
        kelp_free(allocator, capture->calls, capture->count * sizeof *capture->calls);
    kelp_free(allocator, capture, sizeof *capture);
    kelp_engine_release(engine);
}
