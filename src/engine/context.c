/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Contexts: checks that apply to all providers, and dispatch to the provider's table. One thread at
 * a time.
 */
#include "base/alloc.h"
#include "base/assert.h"
#include "base/checked.h"
#include "base/domain.h"
#include "engine/engine.h"
#include "runtime/io.h"

#include <string.h>

/* ---- lifetime ---- */
static kelp_status *open_context(kelp_context *context) {
    const kelp_engine *engine = context->engine;
    size_t inputs = engine->input_count, outputs = engine->output_count;
    KELP_TRY(kelp_alloc_zero(context->engine->allocator, inputs, sizeof *context->bound,
                             (void **)&context->bound));
    context->unbound_count = inputs;
    KELP_TRY(engine->vtbl->create_context(engine->self, &context->self));
    if (engine->vtbl->outputs != NULL) {
        context->outputs = engine->vtbl->outputs(context->self);
        return NULL;
    }
    KELP_TRY(kelp_alloc_zero(engine->allocator, outputs, sizeof *context->own_outputs,
                             (void **)&context->own_outputs));
    for (size_t i = 0; i < outputs; i++)
        context->own_outputs[i] = (kelp_tensor){.dtype = engine->outputs[i].dtype, .rank = -1};
    context->outputs = context->own_outputs;
    return NULL;
}

kelp_status *kelp_context_create(kelp_engine *engine, kelp_context **out) {
    kelp_context *context = NULL;
    if (engine->vtbl->create_context == NULL)
        return kelp_engine_lacks(engine, "contexts");
    KELP_TRY(KELP_NEW(engine->allocator, kelp_context, &context));
    context->engine = kelp_engine_retain(engine);
    context->vtbl = engine->vtbl;
    kelp_status *status = kelp_in_domain(open_context(context), KELP_DOMAIN_ENGINE);
    if (status != NULL) {
        kelp_context_destroy(context);
        return status;
    }
    *out = context;
    return NULL;
}

void kelp_context_destroy(kelp_context *context) {
    if (context == NULL)
        return;
    kelp_engine *engine = context->engine;
    kelp_allocator allocator = engine->allocator;
    kelp_context_drop_recordings(context);
    if (context->self != NULL && context->vtbl->destroy_context != NULL)
        context->vtbl->destroy_context(context->self);
    kelp_free(allocator, context->bound, engine->input_count * sizeof *context->bound);
    if (context->own_outputs != NULL)
        kelp_free(allocator, context->own_outputs,
                  engine->output_count * sizeof *context->own_outputs);
    kelp_free(allocator, context, sizeof *context);
    kelp_engine_release(engine);
}

/* ---- binding ---- */
static kelp_status *set_input(kelp_context *context, size_t index, const kelp_tensor *tensor) {
    const kelp_engine *engine = context->engine;
    KELP_ASSERT(context->unbound_count <= engine->input_count);
    if (index >= engine->input_count)
        return KELP_ERROR(KELP_INVALID_ARGUMENT, "there is no input %zu: the model has %zu", index,
                          engine->input_count);
    KELP_TRY(kelp_io_check_dtype(&engine->inputs[index], tensor));
    KELP_TRY(kelp_io_check_shape(&engine->inputs[index], tensor));
    if (KELP_UNLIKELY(engine->profile_count > 0))
        KELP_TRY(kelp_engine_check_profile(engine, context->profile, index, tensor));
    if (KELP_UNLIKELY(context->vtbl->set_input == NULL))
        return kelp_engine_lacks(engine, "inputs that can be bound");
    KELP_TRY(context->vtbl->set_input(context->self, index, tensor));
    if (KELP_UNLIKELY(!context->bound[index])) {
        context->bound[index] = true;
        context->unbound_count--;
    }
    return NULL;
}

kelp_status *kelp_context_set_input(kelp_context *context, size_t index,
                                    const kelp_tensor *tensor) {
    return kelp_in_argument_domain(set_input(context, index, tensor));
}

static kelp_status *check_output(const kelp_context *context, size_t index) {
    if (index < context->engine->output_count)
        return NULL;
    return kelp_in_argument_domain(KELP_ERROR(KELP_INVALID_ARGUMENT,
                                              "there is no output %zu: the model has %zu", index,
                                              context->engine->output_count));
}

kelp_status *kelp_context_set_output(kelp_context *context, size_t index, void *data,
                                     size_t capacity_bytes) {
    KELP_TRY(check_output(context, index));
    if (context->vtbl->set_output == NULL)
        return kelp_engine_lacks(context->engine, "outputs that can be bound");
    return kelp_in_argument_domain(
        context->vtbl->set_output(context->self, index, data, capacity_bytes));
}

kelp_status *kelp_context_set_output_allocator(kelp_context *context, size_t index,
                                               kelp_output_allocator fn, void *userp) {
    KELP_TRY(kelp_context_set_output(context, index, NULL, 0));
    if (context->vtbl->set_output_allocator != NULL)
        return kelp_in_argument_domain(
            context->vtbl->set_output_allocator(context->self, index, fn, userp));
    return fn == NULL ? NULL : kelp_engine_lacks(context->engine, "output allocators");
}

kelp_status *kelp_context_set_output_device(kelp_context *context, size_t index, DLDevice device) {
    const kelp_engine *engine = context->engine;
    KELP_TRY(check_output(context, index));
    if (context->vtbl->set_output_device != NULL)
        return kelp_in_argument_domain(
            context->vtbl->set_output_device(context->self, index, device));
    if (device.device_type == kDLCPU)
        return NULL;
    return kelp_in_argument_domain(KELP_ERROR(
        KELP_INVALID_ARGUMENT,
        "output '%s' must be in host memory for an engine of provider '%s': found device %d of "
        "type %d",
        engine->outputs[index].name, engine->provider, (int)device.device_id,
        (int)device.device_type));
}

kelp_status *kelp_context_set_workspace(kelp_context *context, void *data, size_t size_bytes) {
    if (context->vtbl->set_workspace == NULL)
        return kelp_engine_lacks(context->engine, "workspaces that the caller allocates");
    return kelp_in_argument_domain(context->vtbl->set_workspace(context->self, data, size_bytes));
}

kelp_status *kelp_context_set_profile(kelp_context *context, size_t profile) {
    const kelp_engine *engine = context->engine;
    if (profile >= engine->profile_count)
        return kelp_in_argument_domain(KELP_ERROR(KELP_OUT_OF_RANGE,
                                                  "there is no profile %zu: the engine has %zu",
                                                  profile, engine->profile_count));
    if (context->vtbl->set_profile == NULL)
        return kelp_engine_lacks(engine, "profiles");
    KELP_TRY(kelp_in_argument_domain(context->vtbl->set_profile(context->self, profile)));
    KELP_ASSERT(engine->profile_count > 0);
    context->profile = profile;
    memset(context->bound, 0, engine->input_count * sizeof *context->bound);
    context->unbound_count =
        engine->input_count; /* the old inputs were checked for another profile */
    return NULL;
}

/* ---- prepare, invoke ---- */
kelp_status *kelp_context_check_bound(const kelp_context *context) {
    const kelp_engine *engine = context->engine;
    for (size_t i = 0; context->unbound_count > 0 && i < engine->input_count; i++)
        if (!context->bound[i])
            return kelp_in_domain(KELP_ERROR(KELP_FAILED_PRECONDITION,
                                             "input '%s' (%s) is not bound", engine->inputs[i].name,
                                             kelp_dtype_name(engine->inputs[i].dtype)),
                                  KELP_DOMAIN_ENGINE);
    return NULL;
}

kelp_status *kelp_context_prepare(kelp_context *context) {
    KELP_ASSERT(context->self != NULL);
    KELP_TRY(kelp_context_check_bound(context));
    if (context->vtbl->prepare == NULL)
        return kelp_engine_lacks(context->engine, "shapes before a run");
    return kelp_in_domain(context->vtbl->prepare(context->self, context->outputs),
                          KELP_DOMAIN_ENGINE);
}

kelp_status *kelp_context_invoke(kelp_context *context) {
    KELP_ASSERT(context->self != NULL);
    KELP_ASSERT(context->outputs != NULL || context->engine->output_count == 0);
    if (KELP_UNLIKELY(context->unbound_count > 0))
        return kelp_context_check_bound(context);
    if (KELP_UNLIKELY(context->vtbl->invoke == NULL))
        return kelp_engine_lacks(context->engine, "synchronous runs");
    return kelp_in_domain(context->vtbl->invoke(context->self, context->outputs),
                          KELP_DOMAIN_ENGINE);
}

void kelp_context_warm_up(kelp_context *context) {
    if (context->vtbl->warm_up != NULL)
        context->vtbl->warm_up(context->self);
}

void kelp_context_cancel(kelp_context *context) {
    if (context->vtbl->cancel != NULL)
        context->vtbl->cancel(context->self);
}

void kelp_context_set_interrupt(kelp_context *context, kelp_interrupt_fn fn, void *userp) {
    if (context->vtbl->set_interrupt != NULL)
        context->vtbl->set_interrupt(context->self, fn, userp);
}

/* ---- queries ---- */
const kelp_tensor *kelp_context_output(const kelp_context *context, size_t index) {
    return index < context->engine->output_count ? &context->outputs[index] : NULL;
}

kelp_plan_stats kelp_context_plan_stats(const kelp_context *context) {
    return context->vtbl->plan_stats != NULL ? context->vtbl->plan_stats(context->self)
                                             : (kelp_plan_stats){0};
}

kelp_status *kelp_context_set_profiler(kelp_context *context, kelp_profile_fn fn, void *userp) {
    if (context->vtbl->set_profiler == NULL)
        return kelp_engine_lacks(context->engine, "profiler");
    return kelp_in_domain(context->vtbl->set_profiler(context->self, fn, userp),
                          KELP_DOMAIN_ENGINE);
}
