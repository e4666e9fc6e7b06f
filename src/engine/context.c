/* SPDX-License-Identifier: Apache-2.0 */
/* A context: bind, prepare, invoke. One thread at a time. */
#include "base/alloc.h"
#include "engine/engine_internal.h"

#include <stdatomic.h>
#include <string.h>

kelp_status *kelp_context_create(kelp_engine *engine, kelp_context **out) {
    kelp_allocator allocator = engine->allocator;
    kelp_context *context = NULL;
    KELP_TRY(KELP_NEW(allocator, kelp_context, &context));
    context->engine = kelp_engine_retain(engine);
    context->allocator = allocator;
    kelp_arena_init(&context->run_arena, allocator, 64 << 10);
    atomic_init(&context->stop.cancel, false);
    kelp_status *status = kelp_frame_init(&context->main, context, engine->program);
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
    kelp_frame_deinit(&context->main);
    kelp_arena_deinit(&context->run_arena);
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
    context->main.outputs[index].user_data = data;
    context->main.outputs[index].user_bytes = data ? capacity_bytes : 0;
    context->main.rebind = true;
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

kelp_status *kelp_context_prepare(kelp_context *context) {
    KELP_TRY(check_bound(context));
    KELP_TRY(kelp_frame_prepare(&context->main));
    if (context->main.plans->given != 0)
        kelp_frame_hide_open(&context->main);
    return NULL;
}

kelp_status *kelp_context_invoke(kelp_context *context) {
    if (!context->main.planned)
        KELP_TRY(check_bound(context));
    kelp_arena_clear(&context->run_arena);
    atomic_store_explicit(&context->stop.cancel, false, memory_order_relaxed);
    return kelp_frame_run(&context->main);
}

/* ---- readers ---- */
const kelp_tensor *kelp_context_output(const kelp_context *context, size_t index) {
    return index < context->engine->output_count ? &context->main.outputs[index].tensor : NULL;
}

void kelp_context_cancel(kelp_context *context) {
    atomic_store_explicit(&context->stop.cancel, true, memory_order_relaxed);
}

void kelp_context_set_interrupt(kelp_context *context, kelp_interrupt_fn fn, void *userp) {
    context->stop.interrupt = fn;
    context->stop.interrupt_userp = userp;
}

kelp_plan_stats kelp_context_plan_stats(const kelp_context *context) {
    return context->main.planned ? context->main.plans->stats : (kelp_plan_stats){0};
}

void kelp_context_set_profiler(kelp_context *context, kelp_profile_fn fn, void *userp) {
    context->profile = fn;
    context->profile_userp = userp;
}
