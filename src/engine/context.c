/* SPDX-License-Identifier: Apache-2.0 */
/* A context: bind, prepare, invoke. One thread at a time. */
#include "base/alloc.h"
#include "base/checked.h"
#include "base/clock.h"
#include "engine/engine_internal.h"
#include "opset/bridge.h"

#include <stdatomic.h>
#include <string.h>

kelp_status *kelp_context_create(kelp_engine *engine, kelp_context **out) {
    kelp_allocator allocator = engine->allocator;
    kelp_context *context = NULL;
    KELP_TRY(KELP_NEW(allocator, kelp_context, &context));
    context->engine = kelp_engine_retain(engine);
    context->allocator = allocator;
    kelp_arena_init(&context->run_arena, allocator, 64 << 10);
    atomic_init(&context->cancel, false);
    context->env =
        (kelp_op_env){allocator, engine->runtime->pool, &context->cancel, &context->run_arena};
    kelp_status *status = kelp_alloc_zero(allocator, engine->input_count, sizeof *context->inputs,
                                          (void **)&context->inputs);
    if (status == NULL)
        status = kelp_alloc_zero(allocator, engine->input_count, sizeof *context->input_data,
                                 (void **)&context->input_data);
    if (status == NULL)
        status = kelp_alloc_zero(allocator, engine->output_count, sizeof *context->outputs,
                                 (void **)&context->outputs);
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
    for (kelp_plan *plan = context->plans, *next; plan != NULL; plan = next) {
        next = plan->next;
        kelp_plan_destroy(plan, allocator);
    }
    for (size_t i = 0; context->outputs != NULL && i < engine->output_count; i++)
        kelp_free_aligned(allocator, context->outputs[i].own_data, context->outputs[i].own_bytes,
                          KELP_TENSOR_ALIGNMENT);
    kelp_free(allocator, context->outputs, engine->output_count * sizeof *context->outputs);
    kelp_free(allocator, context->inputs, engine->input_count * sizeof *context->inputs);
    kelp_free(allocator, context->input_data, engine->input_count * sizeof *context->input_data);
    kelp_free_aligned(allocator, context->workspace, context->workspace_bytes,
                      KELP_TENSOR_ALIGNMENT);
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

static bool is_aligned(const void *data, kelp_dtype dtype) {
    return ((uintptr_t)data & (kelp_element_alignment(dtype) - 1)) == 0;
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
                    item->device.device_type == kDLCPU && is_aligned(item->data, item->dtype) &&
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
    context->inputs[index] = *tensor;
    context->planned = context->planned && kelp_plan_fits(context->plans, context);
    context->rebind = true;
    return NULL;
}

kelp_status *kelp_context_set_output(kelp_context *context, size_t index, void *data,
                                     size_t capacity_bytes) {
    if (index >= context->engine->output_count)
        return KELP_ERROR(KELP_INVALID_ARGUMENT, "there is no output %zu: the model has %zu", index,
                          context->engine->output_count);
    context->outputs[index].user_data = data;
    context->outputs[index].user_bytes = data ? capacity_bytes : 0;
    context->rebind = true;
    return NULL;
}

/* ---- prepare ---- */
static kelp_status *use_plan(kelp_context *context) {
    kelp_plan **link = &context->plans;
    for (; *link != NULL && !kelp_plan_fits(*link, context); link = &(*link)->next) {
    }
    kelp_plan *plan = *link;
    if (plan != NULL) {
        *link = plan->next;
    } else {
        KELP_TRY(kelp_plan_create(context, &plan));
        context->plan_count++;
    }
    plan->next = context->plans;
    context->plans = plan;
    if (context->plan_count > context->engine->max_plans) { /* the one not used for longest */
        for (link = &plan->next; (*link)->next != NULL; link = &(*link)->next) {
        }
        kelp_plan_destroy(*link, context->allocator);
        *link = NULL;
        context->plan_count--;
    }
    return NULL;
}

static kelp_status *grow(kelp_context *context, void **inout_data, size_t *inout_bytes,
                         size_t needed) {
    if (needed <= *inout_bytes)
        return NULL;
    void *data = NULL;
    KELP_TRY(kelp_alloc_aligned(context->allocator, needed, KELP_TENSOR_ALIGNMENT, &data));
    kelp_free_aligned(context->allocator, *inout_data, *inout_bytes, KELP_TENSOR_ALIGNMENT);
    *inout_data = data;
    *inout_bytes = needed;
    return NULL;
}

kelp_status *kelp_context_prepare(kelp_context *context) {
    const kelp_engine *engine = context->engine;
    for (size_t i = 0; i < engine->input_count; i++)
        if (context->inputs[i].dtype == KELP_DTYPE_INVALID)
            return KELP_ERROR(KELP_FAILED_PRECONDITION, "input '%s' (%s) is not bound",
                              engine->inputs[i].name, kelp_dtype_name(engine->inputs[i].dtype));
    if (context->planned)
        return NULL;
    KELP_TRY(use_plan(context));
    kelp_plan *plan = context->plans;
    KELP_TRY(grow(context, (void **)&context->workspace, &context->workspace_bytes,
                  plan->workspace_bytes));
    const kelp_block *main = engine->graph->main;
    for (size_t i = 0; i < engine->output_count; i++) {
        const kelp_plan_value *value = &plan->values[main->outputs[i]->id];
        kelp_tensor *shown = &context->outputs[i].tensor;
        *shown = value->tensor;
        shown->data = NULL;
        if (value->dynamic)
            *shown = (kelp_tensor){.dtype = engine->outputs[i].dtype, .rank = -1};
    }
    context->planned = true;
    context->rebind = true;
    return NULL;
}

/* ---- invoke ---- */
static kelp_status *too_small(const kelp_context *context, size_t index, size_t needed) {
    return KELP_ERROR(
        KELP_OUT_OF_RANGE,
        "the memory bound to output '%s' is too small: %zu bytes are needed, %zu were "
        "given",
        context->engine->outputs[index].name, needed, context->outputs[index].user_bytes);
}

/* Kernels read aligned data; a client's bytes may lie anywhere. The copy lives as long as this
 * invoke, so that the next one binds again. */
static kelp_status *bind_inputs(kelp_context *context) {
    context->rebind = false;
    for (size_t i = 0; i < context->engine->input_count; i++) {
        const kelp_tensor *input = &context->inputs[i];
        context->input_data[i] = input->data;
        if (is_aligned(input->data, input->dtype))
            continue;
        size_t bytes = kelp_tensor_bytes(input);
        void *copy = kelp_op_env_alloc(&context->env, bytes ? bytes : 1);
        if (copy == NULL)
            return kelp_status_oom();
        memcpy(copy, input->data, bytes);
        context->input_data[i] = copy;
        context->rebind = true;
    }
    return NULL;
}

static kelp_status *bind_outputs(kelp_context *context) {
    kelp_plan *plan = context->plans;
    const kelp_engine *engine = context->engine;
    for (size_t i = 0; i < engine->output_count; i++) {
        struct kelp_bound_output *output = &context->outputs[i];
        if (plan->copies[i] != NULL)
            continue;
        size_t bytes = kelp_tensor_bytes(&output->tensor);
        if (output->user_data != NULL && output->user_bytes < bytes)
            return too_small(context, i, bytes);
        if (output->user_data != NULL && is_aligned(output->user_data, output->tensor.dtype)) {
            output->target = output->user_data;
            continue;
        }
        KELP_TRY(grow(context, &output->own_data, &output->own_bytes, bytes ? bytes : 1));
        output->target = output->own_data;
    }
    return NULL;
}

/* A step whose shapes were not known: reshape with the data that is there now, and place its
 * results. */
static kelp_status *prepare_dynamic(kelp_context *context, kelp_step *step) {
    kelp_op_args *args = &step->args;
    const kelp_op_kernel *kernel = step->engine_node->kernel;
    if (kernel->plan_bytes > 0)
        memset(args->plan, 0, kernel->plan_bytes);
    args->scratch_bytes = 0;
    args->deferred = false;
    KELP_TRY(kelp_opset_check_lists(kernel, args));
    KELP_TRY(kernel->reshape(step->engine_node->state, args));
    if (args->deferred)
        return KELP_ERROR(KELP_INTERNAL,
                          "the operator defers its shape although its data is there");
    for (int32_t i = 0; i < args->output_count; i++) {
        if (args->outputs[i] == NULL)
            continue;
        size_t bytes = kelp_tensor_bytes(args->outputs[i]);
        args->outputs[i]->data = kelp_op_env_alloc(&context->env, bytes ? bytes : 1);
        if (args->outputs[i]->data == NULL)
            return kelp_status_oom();
    }
    args->scratch = NULL;
    if (args->scratch_bytes > 0) {
        args->scratch = kelp_op_env_alloc(&context->env, args->scratch_bytes);
        if (args->scratch == NULL)
            return kelp_status_oom();
    }
    return NULL;
}

static kelp_status *run_step(kelp_context *context, kelp_step *step) {
    kelp_status *status = step->dynamic ? prepare_dynamic(context, step) : NULL;
    if (status == NULL)
        status = step->engine_node->kernel->invoke(step->engine_node->state, &step->args);
    if (status != NULL)
        return KELP_ANNOTATE(status, "node '%s' (%s) of model '%s'", step->args.node->name,
                             step->args.node->op_type, context->engine->graph->info.label);
    return NULL;
}

static kelp_status *deliver(kelp_context *context) {
    const kelp_plan *plan = context->plans;
    for (size_t i = 0; i < context->engine->output_count; i++) {
        struct kelp_bound_output *output = &context->outputs[i];
        const void *from = output->target;
        if (plan->copies[i] != NULL) {
            output->tensor = plan->copies[i]->tensor;
            from = plan->copies[i]->tensor.data;
        }
        size_t bytes = kelp_tensor_bytes(&output->tensor);
        if (output->user_data != NULL && output->user_bytes < bytes)
            return too_small(context, i, bytes);
        if (output->user_data == NULL && plan->copies[i] != NULL)
            KELP_TRY(grow(context, &output->own_data, &output->own_bytes, bytes ? bytes : 1));
        void *to = output->user_data ? output->user_data : output->own_data;
        if (to != from && bytes > 0)
            memcpy(to, from, bytes);
        output->tensor.data = to;
        output->tensor.flags = 0;
    }
    return NULL;
}

kelp_status *kelp_context_invoke(kelp_context *context) {
    KELP_TRY(kelp_context_prepare(context));
    kelp_arena_clear(&context->run_arena);
    kelp_plan *plan = context->plans;
    if (context->rebind) {
        kelp_status *status = bind_outputs(context);
        if (status == NULL)
            status = bind_inputs(context);
        if (status != NULL) {
            context->rebind = true;
            return status;
        }
        kelp_plan_bind(plan, context);
    }
    atomic_store_explicit(&context->cancel, false, memory_order_relaxed);
    for (size_t i = 0; i < plan->step_count; i++) {
        if (KELP_UNLIKELY(atomic_load_explicit(&context->cancel, memory_order_relaxed)))
            return KELP_ERROR(KELP_CANCELLED, "the invocation of model '%s' was cancelled",
                              context->engine->graph->info.label);
        uint64_t begin = context->profile ? kelp_now_ns() : 0;
        KELP_TRY(run_step(context, &plan->steps[i]));
        if (context->profile != NULL)
            context->profile(context->profile_userp, i, plan->steps[i].args.node->op_type,
                             plan->steps[i].args.node->name, kelp_now_ns() - begin);
    }
    return deliver(context);
}

/* ---- readers ---- */
const kelp_tensor *kelp_context_output(const kelp_context *context, size_t index) {
    return index < context->engine->output_count ? &context->outputs[index].tensor : NULL;
}

void kelp_context_cancel(kelp_context *context) {
    atomic_store_explicit(&context->cancel, true, memory_order_relaxed);
}

kelp_plan_stats kelp_context_plan_stats(const kelp_context *context) {
    return context->planned ? context->plans->stats : (kelp_plan_stats){0};
}

void kelp_context_set_profiler(kelp_context *context, kelp_profile_fn fn, void *userp) {
    context->profile = fn;
    context->profile_userp = userp;
}
