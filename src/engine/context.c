/* SPDX-License-Identifier: Apache-2.0 */
/* A context: bind, prepare, invoke. One thread at a time. */
#include "base/alloc.h"
#include "base/checked.h"
#include "cpu/exec/exec.h"

#include <kelp/engine_provider.h>

#include <stdatomic.h>
#include <string.h>

kelp_status *kelp_context_create(kelp_engine *engine, kelp_context **out) {
    kelp_allocator allocator = engine->allocator;
    kelp_context *context = NULL;
    KELP_TRY(kelp_engine_check_complete(engine));
    KELP_TRY(KELP_NEW(allocator, kelp_context, &context));
    context->engine = kelp_engine_retain(engine);
    context->allocator = allocator;
    kelp_arena_init(&context->run_arena, allocator, 64 << 10);
    atomic_init(&context->stop.set, false);
    context->core = kelp_engine_retain(kelp_engine_current(engine));
    kelp_status *status = engine->vtbl != NULL
                              ? kelp_foreign_create(context)
                              : kelp_frame_init(&context->main, context, context->core->program);
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
    kelp_allocator allocator = context->allocator;
    kelp_captures_orphan(context);
    kelp_frame_deinit(&context->main);
    kelp_foreign_destroy(context);
    kelp_arena_deinit(&context->run_arena);
    kelp_engine_release(context->core);
    kelp_free(allocator, context, sizeof *context);
    kelp_engine_release(engine);
}

/* ---- bind ---- */
static kelp_status *check_shape(const kelp_io_info *info, const kelp_tensor *tensor) {
    bool fits = info->rank < 0 || info->rank == tensor->rank;
    for (int32_t i = 0; fits && i < info->rank; i++)
        fits = info->shape[i] < 0 || info->shape[i] == tensor->shape[i];
    if (fits)
        return NULL;
    char expected[256], found[256];
    kelp_shape_format(info->rank, info->shape, expected, sizeof expected);
    kelp_shape_format(tensor->rank, tensor->shape, found, sizeof found);
    return KELP_ERROR(KELP_INVALID_ARGUMENT,
                      "input '%s' has the wrong shape: expected %s, found %s", info->name, expected,
                      found);
}

/* Lists within lists go no deeper: an optional sequence of maps of vectors. */
#define LIST_MAX_DEPTH 4

/* Elements of a list are read where they lie, so that each must be as kernels need it. `dtype` is
 * the innermost type, INVALID where none is declared. */
static kelp_status *check_list(const kelp_io_info *info, const kelp_tensor *list, kelp_dtype dtype,
                               int depth) {
    if (list->rank < 1 || list->rank > 3 || (list->rank == 2 && list->shape[0] > 1) ||
        (list->rank == 3 && list->shape[0] != 2) || depth > LIST_MAX_DEPTH)
        return KELP_ERROR(KELP_INVALID_ARGUMENT,
                          "input '%s': a list is a sequence [n], an optional [0,1] or [1,1], or a "
                          "map [2,1,1], at most %d deep",
                          info->name, LIST_MAX_DEPTH);
    for (int64_t i = 0; i < list->shape[0]; i++) {
        const kelp_tensor *item = (const kelp_tensor *)list->data + i;
        bool fits = kelp_dtype_bits(item->dtype) > 0 && kelp_tensor_is_compact(item) &&
                    item->device.device_type == kDLCPU &&
                    kelp_is_aligned(item->data, item->dtype) &&
                    (item->data != NULL || kelp_tensor_elements(item) == 0);
        if (!fits)
            return KELP_ERROR(
                KELP_INVALID_ARGUMENT,
                "input '%s': element %lld of the list must be compact, aligned to its "
                "type and in host memory",
                info->name, (long long)i);
        if (item->dtype == KELP_LIST)
            KELP_TRY(check_list(info, item, dtype, depth + 1));
        else if (dtype != KELP_DTYPE_INVALID && item->dtype != dtype && list->rank != 3)
            return KELP_ERROR(KELP_INVALID_ARGUMENT,
                              "input '%s': element %lld has the wrong type: expected %s, found %s",
                              info->name, (long long)i, kelp_dtype_name(dtype),
                              kelp_dtype_name(item->dtype));
    }
    return NULL;
}

kelp_status *kelp_context_set_input(kelp_context *context, size_t index,
                                    const kelp_tensor *tensor) {
    const kelp_io_info *info = kelp_engine_input(context->engine, index);
    if (info == NULL)
        return KELP_ERROR(KELP_INVALID_ARGUMENT, "there is no input %zu: the model has %zu", index,
                          context->engine->input_count);
    if (info->dtype != KELP_DTYPE_INVALID && info->dtype != tensor->dtype)
        return KELP_ERROR(KELP_INVALID_ARGUMENT,
                          "input '%s' has the wrong type: expected %s, found %s", info->name,
                          kelp_dtype_name(info->dtype), kelp_dtype_name(tensor->dtype));
    KELP_TRY(check_shape(info, tensor));
    if (context->engine->profile_count > 0)
        KELP_TRY(kelp_engine_check_profile(context->engine, context->shapes, index, tensor));
    if (context->engine->vtbl != NULL)
        return kelp_foreign_set_input(context, index, tensor);
    if (!kelp_tensor_is_compact(tensor) || tensor->device.device_type != kDLCPU)
        return KELP_ERROR(KELP_INVALID_ARGUMENT,
                          "input '%s' must be compact and in host memory: found strides or device "
                          "type %d",
                          info->name, (int)tensor->device.device_type);
    if (tensor->data == NULL && kelp_tensor_elements(tensor) > 0)
        return KELP_ERROR(KELP_INVALID_ARGUMENT, "input '%s' has no data", info->name);
    if (tensor->dtype == KELP_LIST)
        KELP_TRY(check_list(info, tensor, context->engine->graph->main->inputs[index]->dtype, 1));
    kelp_frame_bind(&context->main, index, tensor);
    return NULL;
}

kelp_status *kelp_context_set_output(kelp_context *context, size_t index, void *data,
                                     size_t capacity_bytes) {
    if (index >= context->engine->output_count)
        return KELP_ERROR(KELP_INVALID_ARGUMENT, "there is no output %zu: the model has %zu", index,
                          context->engine->output_count);
    if (context->engine->vtbl != NULL)
        return kelp_foreign_set_output(context, index, data, capacity_bytes);
    context->main.outputs[index].user_data = data;
    context->main.outputs[index].user_bytes = data ? capacity_bytes : 0;
    context->main.outputs[index].place = NULL;
    context->main.rebind = true;
    context->main.stamp++;
    return NULL;
}

kelp_status *kelp_context_set_output_allocator(kelp_context *context, size_t index,
                                               kelp_output_allocator fn, void *userp) {
    KELP_TRY(kelp_context_set_output(context, index, NULL, 0));
    if (context->engine->vtbl != NULL)
        return kelp_foreign_set_output_allocator(context, index, fn, userp);
    context->main.outputs[index].place = fn;
    context->main.outputs[index].place_userp = userp;
    return NULL;
}

kelp_status *kelp_context_set_output_device(kelp_context *context, size_t index, DLDevice device) {
    const kelp_engine *engine = context->engine;
    if (index >= engine->output_count)
        return KELP_ERROR(KELP_INVALID_ARGUMENT, "there is no output %zu: the model has %zu", index,
                          engine->output_count);
    if (engine->vtbl != NULL && engine->vtbl->set_output_device != NULL)
        return engine->vtbl->set_output_device(context->foreign, index, device);
    if (device.device_type == kDLCPU)
        return NULL;
    return KELP_ERROR(
        KELP_INVALID_ARGUMENT,
        "output '%s' of an engine of provider '%s' can only lie in host memory: found "
        "device %d of type %d",
        engine->outputs[index].name, kelp_engine_provider_name(engine), (int)device.device_id,
        (int)device.device_type);
}

kelp_status *kelp_context_set_workspace(kelp_context *context, void *data, size_t size_bytes) {
    const kelp_engine *engine = context->engine;
    if (engine->vtbl != NULL)
        return engine->vtbl->set_workspace != NULL
                   ? engine->vtbl->set_workspace(context->foreign, data, size_bytes)
                   : kelp_foreign_missing(engine, "workspace of the caller's");
    if (((uintptr_t)data & (KELP_TENSOR_ALIGNMENT - 1)) != 0)
        return KELP_ERROR(KELP_INVALID_ARGUMENT, "a workspace is aligned to %u bytes: found %p",
                          KELP_TENSOR_ALIGNMENT, data);
    context->main.user_workspace = data;
    context->main.user_workspace_bytes = data != NULL ? size_bytes : 0;
    context->main.planned = false;
    context->main.stamp++;
    return NULL;
}

kelp_status *kelp_context_set_profile(kelp_context *context, size_t profile) {
    const kelp_engine *engine = context->engine;
    if (profile >= engine->profile_count)
        return KELP_ERROR(KELP_OUT_OF_RANGE, "there is no profile %zu: the engine has %zu", profile,
                          engine->profile_count);
    if (engine->vtbl != NULL) {
        if (engine->vtbl->set_profile == NULL)
            return kelp_foreign_missing(engine, "profiles");
        KELP_TRY(engine->vtbl->set_profile(context->foreign, profile));
    }
    context->shapes = profile;
    for (size_t i = 0; engine->vtbl == NULL && i < engine->input_count; i++)
        context->main.inputs[i].dtype = KELP_DTYPE_INVALID; /* bound under other bounds */
    context->main.planned = false;
    return NULL;
}

/* ---- prepare, invoke ---- */
static kelp_status *check_bound(const kelp_context *context) {
    const kelp_engine *engine = context->engine;
    for (size_t i = 0; i < engine->input_count; i++)
        if (context->main.inputs[i].dtype == KELP_DTYPE_INVALID)
            return KELP_ERROR(KELP_FAILED_PRECONDITION, "input '%s' (%s) is not bound",
                              engine->inputs[i].name, kelp_dtype_name(engine->inputs[i].dtype));
    return NULL;
}

/* After a refit, kernels and constants are others. */
static void notice_refit(kelp_context *context) {
    kelp_engine *current = kelp_engine_current(context->engine), *before = context->core;
    if (KELP_LIKELY(current == before))
        return;
    kelp_frame_forget(&context->main);
    context->core = kelp_engine_retain(current);
    context->main.program = current->program;
    kelp_engine_release(before);
}

kelp_status *kelp_context_prepare(kelp_context *context) {
    if (context->engine->vtbl != NULL)
        return kelp_foreign_prepare(context);
    notice_refit(context);
    KELP_TRY(check_bound(context));
    KELP_TRY(kelp_frame_prepare(&context->main));
    kelp_frame_hide_open(&context->main); /* the last shapes say nothing of the next */
    return NULL;
}

void kelp_context_begin_run(kelp_context *context) {
    kelp_arena_clear(&context->run_arena);
    atomic_store_explicit(&context->stop.set, false, memory_order_relaxed);
}

kelp_status *kelp_context_invoke(kelp_context *context) {
    if (KELP_UNLIKELY(context->engine->vtbl != NULL))
        return kelp_foreign_invoke(context);
    notice_refit(context);
    if (!context->main.planned)
        KELP_TRY(check_bound(context));
    if (KELP_UNLIKELY(context->engine->bounds_values))
        KELP_TRY(kelp_engine_check_values(context->engine, context->shapes, context->main.inputs));
    kelp_context_begin_run(context);
    return kelp_frame_run(&context->main);
}

/* ---- readers ---- */
const kelp_tensor *kelp_context_output(const kelp_context *context, size_t index) {
    if (index >= context->engine->output_count)
        return NULL;
    return context->foreign_outputs != NULL ? &context->foreign_outputs[index]
                                            : &context->main.outputs[index].tensor;
}

void kelp_context_cancel(kelp_context *context) {
    const kelp_engine *engine = context->engine;
    if (engine->vtbl != NULL && engine->vtbl->cancel != NULL)
        engine->vtbl->cancel(context->foreign);
    atomic_store_explicit(&context->stop.set, true, memory_order_relaxed);
}

void kelp_context_set_interrupt(kelp_context *context, kelp_interrupt_fn fn, void *userp) {
    context->stop.interrupt = fn;
    context->stop.interrupt_userp = userp;
}

kelp_plan_stats kelp_context_plan_stats(const kelp_context *context) {
    return context->main.planned ? context->main.plans->stats : (kelp_plan_stats){0};
}

kelp_status *kelp_context_set_profiler(kelp_context *context, kelp_profile_fn fn, void *userp) {
    const kelp_engine *engine = context->engine;
    if (engine->vtbl != NULL)
        return engine->vtbl->set_profiler != NULL
                   ? engine->vtbl->set_profiler(context->foreign, fn, userp)
                   : kelp_foreign_missing(engine, "profiler");
    context->profile = fn;
    context->profile_userp = userp;
    return NULL;
}
