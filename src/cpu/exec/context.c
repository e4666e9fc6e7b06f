/* SPDX-License-Identifier: Apache-2.0 */
/* Contexts of the provider `cpu`, and its kelp_engine_vtbl. */
#include "base/alloc.h"
#include "base/assert.h"
#include "base/checked.h"
#include "cpu/exec/context.h"

#include <kelp/compute.h>

#include <stdatomic.h>

/* ---- lifetime ---- */
kelp_status *kelp_cpu_context_create(kelp_cpu_engine *engine, kelp_cpu_context **out) {
    kelp_cpu_context *context = NULL;
    KELP_TRY(kelp_cpu_engine_check_complete(engine));
    KELP_TRY(KELP_NEW(engine->allocator, kelp_cpu_context, &context));
    KELP_ASSERT(engine->program != NULL || engine->refitted != NULL);
    context->engine = engine;
    context->allocator = engine->allocator;
    kelp_arena_init(&context->run_arena, context->allocator, 64 << 10);
    atomic_init(&context->stop.set, false);
    context->core = kelp_cpu_engine_retain(kelp_cpu_engine_current(engine));
    kelp_status *status = kelp_cpu_instance_init(&context->main, context, context->core->program);
    if (status != NULL) {
        kelp_cpu_context_destroy(context);
        return status;
    }
    *out = context;
    return NULL;
}

void kelp_cpu_context_destroy(kelp_cpu_context *context) {
    if (context == NULL)
        return;
    kelp_cpu_instance_deinit(&context->main);
    kelp_placed_release(&context->placed, NULL);
    kelp_arena_deinit(&context->run_arena);
    kelp_cpu_engine_release(context->core);
    kelp_free(context->allocator, context, sizeof *context);
}

static kelp_status *create(void *engine, void **out) {
    kelp_cpu_context *context = NULL;
    KELP_TRY(kelp_cpu_context_create(engine, &context));
    *out = context;
    return NULL;
}

static void destroy(void *context) {
    kelp_cpu_context_destroy(context);
}

/* ---- inputs ---- */
/* The deepest list is an optional sequence of maps of vectors. */
#define LIST_MAX_DEPTH 4

/* Checks a list and its elements, which kernels read in place. `dtype` is the innermost type, or
 * INVALID if it is not declared. */
static kelp_status *check_list(const char *name, const kelp_tensor *list, kelp_dtype dtype,
                               int depth) {
    if (list->rank < 1 || list->rank > 3 || (list->rank == 2 && list->shape[0] > 1) ||
        (list->rank == 3 && list->shape[0] != 2) || depth > LIST_MAX_DEPTH)
        return KELP_ERROR(KELP_INVALID_ARGUMENT,
                          "input '%s' has an invalid list: expected a sequence [n], an optional "
                          "[0,1] or [1,1], or a map [2,1,1], at most %d deep",
                          name, LIST_MAX_DEPTH);
    for (int64_t i = 0; i < list->shape[0]; i++) {
        const kelp_tensor *item = (const kelp_tensor *)list->data + i;
        bool fits = kelp_dtype_bits(item->dtype) > 0 && kelp_tensor_is_compact(item) &&
                    item->device.device_type == kDLCPU &&
                    kelp_cpu_is_aligned(item->data, item->dtype) &&
                    (item->data != NULL || kelp_tensor_elements(item) == 0);
        if (!fits)
            return KELP_ERROR(KELP_INVALID_ARGUMENT,
                              "input '%s': element %lld of the list must be compact, aligned to "
                              "its type and in host memory",
                              name, (long long)i);
        if (item->dtype == KELP_LIST)
            KELP_TRY(check_list(name, item, dtype, depth + 1));
        else if (dtype != KELP_DTYPE_INVALID && item->dtype != dtype && list->rank != 3)
            return KELP_ERROR(KELP_INVALID_ARGUMENT,
                              "input '%s': element %lld has the wrong type: expected %s, found %s",
                              name, (long long)i, kelp_dtype_name(dtype),
                              kelp_dtype_name(item->dtype));
    }
    return NULL;
}

/* Returns true for memory that the host can access, such as page-locked memory. */
static bool is_host(const kelp_tensor *tensor) {
    return (kelp_placement_of(tensor->device) &
            (KELP_PLACED_HOST | KELP_PLACED_PINNED | KELP_PLACED_SHARED)) != 0;
}

static kelp_status *set_input(void *userp, size_t index, const kelp_tensor *tensor) {
    kelp_cpu_context *context = userp;
    KELP_ASSERT(index < context->engine->input_count);
    const char *name = context->engine->inputs[index].name;
    if (!kelp_tensor_is_compact(tensor) ||
        (tensor->device.device_type != kDLCPU && !is_host(tensor)))
        return KELP_ERROR(KELP_INVALID_ARGUMENT,
                          "input '%s' must be compact and in host memory: found strides or device "
                          "type %d",
                          name, (int)tensor->device.device_type);
    if (tensor->data == NULL && kelp_tensor_elements(tensor) > 0)
        return KELP_ERROR(KELP_INVALID_ARGUMENT, "input '%s' has no data", name);
    if (tensor->dtype == KELP_LIST)
        KELP_TRY(check_list(name, tensor, context->engine->graph->main->inputs[index]->dtype, 1));
    kelp_cpu_instance_bind(&context->main, index, tensor);
    return NULL;
}

static kelp_status *set_profile(void *userp, size_t profile) {
    kelp_cpu_context *context = userp;
    KELP_ASSERT(profile < context->engine->profile_count);
    context->profile = profile;
    for (size_t i = 0; i < context->engine->input_count; i++)
        context->main.inputs[i].dtype = KELP_DTYPE_INVALID;
    context->main.scheduled = false;
    return NULL;
}

/* ---- outputs and memory ---- */
static kelp_tensor *outputs(void *context) {
    return ((kelp_cpu_context *)context)->main.shown;
}

static kelp_status *set_output(void *userp, size_t index, void *data, size_t capacity_bytes) {
    kelp_cpu_instance *instance = &((kelp_cpu_context *)userp)->main;
    instance->outputs[index].user_data = data;
    instance->outputs[index].user_bytes = data != NULL ? capacity_bytes : 0;
    instance->outputs[index].allocate = NULL;
    instance->rebind = true;
    instance->stamp++;
    return NULL;
}

static kelp_status *set_output_allocator(void *userp, size_t index, kelp_output_allocator fn,
                                         void *fn_userp) {
    kelp_cpu_instance *instance = &((kelp_cpu_context *)userp)->main;
    KELP_ASSERT(index < instance->program->block->output_count);
    instance->outputs[index].allocate = fn;
    instance->outputs[index].allocate_userp = fn_userp;
    return NULL;
}

static kelp_status *set_workspace(void *userp, void *data, size_t size_bytes) {
    kelp_cpu_instance *instance = &((kelp_cpu_context *)userp)->main;
    if (((uintptr_t)data & (KELP_TENSOR_ALIGNMENT - 1)) != 0)
        return KELP_ERROR(KELP_INVALID_ARGUMENT,
                          "the workspace is not aligned: expected a multiple of %u bytes, found %p",
                          KELP_TENSOR_ALIGNMENT, data);
    instance->user_workspace = data;
    instance->user_workspace_bytes = data != NULL ? size_bytes : 0;
    instance->scheduled = false;
    instance->stamp++;
    return NULL;
}

/* ---- runs ---- */
/* Switches to the engine of the last refit, which has other kernels and constants. */
static void follow_refit(kelp_cpu_context *context) {
    kelp_cpu_engine *current = kelp_cpu_engine_current(context->engine), *before = context->core;
    if (KELP_LIKELY(current == before))
        return;
    kelp_cpu_instance_forget(&context->main);
    context->core = kelp_cpu_engine_retain(current);
    context->main.program = current->program;
    kelp_cpu_engine_release(before);
}

kelp_status *kelp_cpu_context_prepare(kelp_cpu_context *context) {
    follow_refit(context);
    KELP_ASSERT(context->main.program == context->core->program);
    KELP_TRY(kelp_cpu_instance_prepare(&context->main));
    kelp_cpu_instance_hide_dynamic(&context->main); /* the next run may have other shapes */
    return NULL;
}

static kelp_status *prepare(void *context, kelp_tensor *shown) {
    KELP_ASSERT(shown == ((kelp_cpu_context *)context)->main.shown);
    (void)shown;
    return kelp_cpu_context_prepare(context);
}

void kelp_cpu_context_clear_run(kelp_cpu_context *context) {
    kelp_placed_release(&context->placed, NULL);
    kelp_arena_clear(&context->run_arena);
}

void kelp_cpu_context_begin_run(kelp_cpu_context *context) {
    kelp_cpu_context_clear_run(context);
    atomic_store_explicit(&context->stop.set, false, memory_order_relaxed);
}

static kelp_status *invoke(void *userp, kelp_tensor *shown) {
    kelp_cpu_context *context = userp;
    KELP_ASSERT(shown == context->main.shown);
    (void)shown;
    follow_refit(context);
    KELP_ASSERT(context->main.program == context->core->program);
    if (KELP_UNLIKELY(context->engine->profile_values != NULL))
        KELP_TRY(
            kelp_cpu_engine_check_values(context->engine, context->profile, context->main.inputs));
    kelp_cpu_context_begin_run(context);
    return kelp_cpu_instance_run(&context->main);
}

static void warm_up(void *context) {
    kelp_cpu_context_warm_up(context);
}

static void cancel(void *context) {
    atomic_store_explicit(&((kelp_cpu_context *)context)->stop.set, true, memory_order_relaxed);
}

static void set_interrupt(void *userp, kelp_interrupt_fn fn, void *fn_userp) {
    kelp_cpu_context *context = userp;
    context->stop.interrupt = fn;
    context->stop.interrupt_userp = fn_userp;
}

static kelp_status *set_profiler(void *userp, kelp_profile_fn fn, void *fn_userp) {
    kelp_cpu_context *context = userp;
    context->profiler = fn;
    context->profiler_userp = fn_userp;
    return NULL;
}

kelp_plan_stats kelp_cpu_context_plan_stats(const kelp_cpu_context *context) {
    return context->main.scheduled ? context->main.schedules->stats : (kelp_plan_stats){0};
}

static kelp_plan_stats plan_stats(const void *context) {
    return kelp_cpu_context_plan_stats(context);
}

/* ---- engines ---- */
static void destroy_engine(void *engine) {
    kelp_cpu_engine_release(engine);
}

static kelp_status *inspect(void *engine, bool json,
                            void (*write)(void *userp, const char *text, size_t length),
                            void *userp) {
    return kelp_cpu_engine_inspect(engine, json, write, userp);
}

static kelp_status *workspace_bytes(void *engine, size_t profile, size_t *out) {
    return kelp_cpu_engine_workspace(engine, profile, out);
}

static kelp_status *refit(void *engine, const kelp_weights *weights, size_t count) {
    return kelp_cpu_engine_refit(engine, weights, count);
}

static kelp_engine_stats stats(const void *engine) {
    return kelp_cpu_engine_stats(engine);
}

static size_t subgraph_count(const void *engine) {
    return ((const kelp_cpu_engine *)engine)->partition.count;
}

static kelp_subgraph_info subgraph(const void *engine, size_t index) {
    const kelp_subgraph *item = ((const kelp_cpu_engine *)engine)->partition.first;
    for (; index > 0; index--)
        item = item->next;
    KELP_ASSERT(item != NULL);
    return (kelp_subgraph_info){item->node->name, item->entry->backend->name, item->graph->main};
}

static const kelp_engine_vtbl vtbl = {
    .struct_size = sizeof vtbl,
    .destroy_engine = destroy_engine,
    .inspect = inspect,
    .workspace_bytes = workspace_bytes,
    .refit = refit,
    .create_context = create,
    .destroy_context = destroy,
    .set_profile = set_profile,
    .set_input = set_input,
    .set_output = set_output,
    .prepare = prepare,
    .invoke = invoke,
    .set_output_allocator = set_output_allocator,
    .set_workspace = set_workspace,
    .set_profiler = set_profiler,
    .cancel = cancel,
    .capture = kelp_cpu_recording_create,
    .replay = kelp_cpu_recording_replay,
    .destroy_capture = kelp_cpu_recording_destroy,
    .outputs = outputs,
    .set_interrupt = set_interrupt,
    .warm_up = warm_up,
    .plan_stats = plan_stats,
    .stats = stats,
    .subgraph_count = subgraph_count,
    .subgraph = subgraph,
};

kelp_status *kelp_cpu_engine_wrap(kelp_cpu_engine *engine, kelp_engine **out) {
    kelp_engine_parts parts = {.struct_size = sizeof parts,
                               .provider = "cpu",
                               .vtbl = &vtbl,
                               .engine = engine,
                               .inputs = engine->inputs,
                               .outputs = engine->outputs,
                               .input_count = engine->input_count,
                               .output_count = engine->output_count,
                               .profile_count = engine->profile_count,
                               .profile_shapes = engine->profile_shapes,
                               .refittable = engine->refittable,
                               .refittable_count = engine->refittable_count};
    return kelp_engine_wrap(engine->runtime, &parts, out);
}
