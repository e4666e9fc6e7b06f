/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Instances: a program in one context, with a cache of schedules of recent shapes. A schedule may
 * have dynamic steps that depend on a few integers in inputs, such as a sampling rate that selects
 * a branch or the dimensions of a Reshape. If such integers repeat, a specialized schedule for them
 * is compiled.
 */
#include "base/alloc.h"
#include "base/assert.h"
#include "base/checked.h"
#include "base/clock.h"
#include "cpu/exec/context.h"
#include "runtime/opset/bridge.h"

#include <string.h>

/* A specialized schedule costs SPECIALIZED_COST of the credit; a run that reuses one adds 1, up to
 * SPECIALIZED_CREDIT. For data that never repeats, the credit is soon exhausted. */
#define SPECIALIZED_COST 4u
#define SPECIALIZED_CREDIT 32u

bool kelp_cpu_is_aligned(const void *data, kelp_dtype dtype) {
    return ((uintptr_t)data & (kelp_cpu_element_alignment(dtype) - 1)) == 0;
}

static void release_pages(void *userp) {
    const kelp_cpu_context *context = userp;
    kelp_graph_release_pages(context->core->source);
}

kelp_status *kelp_cpu_instance_init(kelp_cpu_instance *instance, kelp_cpu_context *context,
                                    const kelp_cpu_program *program) {
    kelp_allocator allocator = context->allocator;
    size_t inputs = program->block->input_count, outputs = program->block->output_count;
    instance->context = context;
    instance->program = program;
    instance->credit = SPECIALIZED_CREDIT;
    instance->env = (kelp_op_env){.allocator = allocator,
                                  .pool = context->engine->runtime->pool,
                                  .release_pages = release_pages,
                                  .release_userp = context};
    kelp_cpu_context_lend(&instance->env, context);
    KELP_TRY(
        kelp_alloc_zero(allocator, inputs, sizeof *instance->inputs, (void **)&instance->inputs));
    KELP_TRY(kelp_alloc_zero(allocator, inputs, sizeof *instance->input_data,
                             (void **)&instance->input_data));
    KELP_TRY(kelp_alloc_zero(allocator, outputs, sizeof *instance->outputs,
                             (void **)&instance->outputs));
    KELP_TRY(
        kelp_alloc_zero(allocator, outputs, sizeof *instance->shown, (void **)&instance->shown));
    for (size_t i = 0; i < outputs; i++)
        instance->shown[i] = (kelp_tensor){.dtype = program->block->outputs[i]->dtype, .rank = -1};
    return NULL;
}

static void free_output(kelp_allocator allocator, kelp_cpu_bound_output *output) {
    kelp_free_aligned(allocator, output->own_data, output->own_bytes, KELP_TENSOR_ALIGNMENT);
    kelp_free_aligned(allocator, output->other_data, output->other_bytes, KELP_TENSOR_ALIGNMENT);
}

void kelp_cpu_instance_deinit(kelp_cpu_instance *instance) {
    if (instance->context == NULL)
        return;
    kelp_allocator allocator = instance->context->allocator;
    size_t inputs = instance->program->block->input_count;
    size_t outputs = instance->program->block->output_count;
    kelp_cpu_instance_forget(instance);
    for (size_t i = 0; instance->outputs != NULL && i < outputs; i++)
        free_output(allocator, &instance->outputs[i]);
    kelp_free(allocator, instance->outputs, outputs * sizeof *instance->outputs);
    kelp_free(allocator, instance->shown, outputs * sizeof *instance->shown);
    kelp_free(allocator, instance->inputs, inputs * sizeof *instance->inputs);
    kelp_free(allocator, instance->input_data, inputs * sizeof *instance->input_data);
}

void kelp_cpu_instance_forget(kelp_cpu_instance *instance) {
    kelp_allocator allocator = instance->context->allocator;
    for (kelp_cpu_schedule *schedule = instance->schedules, *next; schedule != NULL;
         schedule = next) {
        next = schedule->next;
        kelp_cpu_schedule_destroy(schedule, allocator);
    }
    kelp_free_aligned(allocator, instance->own_workspace, instance->own_workspace_bytes,
                      KELP_TENSOR_ALIGNMENT);
    instance->schedules = NULL;
    instance->schedule_count = 0;
    instance->scheduled = false;
    instance->workspace = instance->own_workspace = NULL;
    instance->own_workspace_bytes = 0;
    instance->stamp++;
}

/* ---- bind ---- */
void kelp_cpu_instance_bind(kelp_cpu_instance *instance, size_t index, const kelp_tensor *tensor) {
    KELP_ASSERT(index < instance->program->block->input_count);
    kelp_tensor *bound = &instance->inputs[index];
    bool same = bound->rank == tensor->rank && bound->dtype == tensor->dtype &&
                (tensor->rank <= 0 || memcmp(bound->shape, tensor->shape,
                                             (size_t)tensor->rank * sizeof *tensor->shape) == 0);
    instance->scheduled = instance->scheduled && same;
    *bound = *tensor;
    instance->rebind = true;
    instance->stamp++;
}

/* ---- prepare ---- */
/* Makes the schedule of the bindings the current one; compiles it if it is not in the cache. */
static kelp_status *use_schedule(kelp_cpu_instance *instance, uint64_t specialized) {
    kelp_cpu_schedule **link = &instance->schedules;
    for (; *link != NULL; link = &(*link)->next)
        if ((*link)->specialized == specialized && kelp_cpu_schedule_fits(*link, instance))
            break;
    kelp_cpu_schedule *schedule = *link;
    if (schedule != NULL) {
        *link = schedule->next;
    } else {
        KELP_TRY(kelp_cpu_schedule_create(instance, specialized, &schedule));
        for (size_t i = 0;
             specialized != instance->specialized && i < instance->program->block->output_count;
             i++)
            schedule->data_dependent[i] =
                instance->schedules->data_dependent[i]; /* as without specialization */
        instance->schedule_count++;
    }
    KELP_ASSERT(schedule->specialized == specialized);
    schedule->next = instance->schedules;
    instance->schedules = schedule;
    if (instance->schedule_count >
        instance->context->engine->max_schedules) { /* the least recently used */
        for (link = &schedule->next; (*link)->next != NULL; link = &(*link)->next) {
        }
        kelp_cpu_schedule_destroy(*link, instance->context->allocator);
        *link = NULL;
        instance->schedule_count--;
    }
    return NULL;
}

static kelp_status *grow(kelp_cpu_instance *instance, void **inout_data, size_t *inout_bytes,
                         size_t needed) {
    if (needed <= *inout_bytes)
        return NULL;
    void *data = NULL;
    KELP_TRY(
        kelp_alloc_aligned(instance->context->allocator, needed, KELP_TENSOR_ALIGNMENT, &data));
    kelp_free_aligned(instance->context->allocator, *inout_data, *inout_bytes,
                      KELP_TENSOR_ALIGNMENT);
    *inout_data = data;
    *inout_bytes = needed;
    return NULL;
}

static kelp_status *set_workspace(kelp_cpu_instance *instance, size_t needed) {
    instance->workspace = instance->user_workspace;
    if (instance->workspace == NULL) {
        KELP_TRY(KELP_ANNOTATE(grow(instance, (void **)&instance->own_workspace,
                                    &instance->own_workspace_bytes, needed),
                               "model '%s' needs a workspace of %zu bytes for these shapes",
                               instance->context->engine->graph->info.label, needed));
        instance->workspace = instance->own_workspace;
    } else if (instance->user_workspace_bytes < needed) {
        return KELP_ERROR(KELP_RESOURCE_EXHAUSTED,
                          "the workspace is too small: expected %zu bytes, found %zu", needed,
                          instance->user_workspace_bytes);
    }
    return NULL;
}

/* Sets the workspace of the current schedule, and the descriptors of its outputs. */
static kelp_status *adopt_schedule(kelp_cpu_instance *instance) {
    const kelp_cpu_schedule *schedule = instance->schedules;
    const kelp_block *block = instance->program->block;
    KELP_ASSERT(schedule != NULL);
    instance->rebind = true;
    instance->stamp++;
    KELP_TRY(set_workspace(instance, schedule->workspace_bytes));
    for (size_t i = 0; i < block->output_count; i++) {
        const kelp_cpu_value *value = schedule->outputs[i];
        kelp_tensor *shown = &instance->shown[i];
        *shown = value->tensor;
        shown->data = NULL;
    }
    instance->hidden = false;
    if (schedule->specialized == 0)
        kelp_cpu_instance_hide_dynamic(instance);
    return NULL;
}

void kelp_cpu_instance_hide_dynamic(kelp_cpu_instance *instance) {
    const kelp_block *block = instance->program->block;
    KELP_ASSERT(instance->schedules != NULL);
    for (size_t i = 0; i < block->output_count; i++)
        if (instance->schedules->data_dependent[i]) {
            instance->shown[i] = (kelp_tensor){.dtype = block->outputs[i]->dtype, .rank = -1};
            instance->hidden = true;
        }
}

static bool all_bound(const kelp_cpu_instance *instance) {
    for (size_t i = 0; i < instance->program->block->input_count; i++)
        if (instance->inputs[i].dtype == KELP_DTYPE_INVALID)
            return false;
    return true;
}

kelp_status *kelp_cpu_instance_prepare(kelp_cpu_instance *instance) {
    KELP_ASSERT(all_bound(instance));
    if (instance->scheduled)
        return NULL;
    KELP_TRY(use_schedule(instance, instance->specialized));
    KELP_TRY(adopt_schedule(instance));
    instance->scheduled = true;
    return NULL;
}

/* ---- invoke ---- */
static kelp_status *switch_schedule(kelp_cpu_instance *instance, uint64_t specialized) {
    instance->scheduled = false;
    KELP_TRY(use_schedule(instance, specialized));
    KELP_TRY(adopt_schedule(instance));
    instance->scheduled = true;
    return NULL;
}

/* Selects the schedule by the data of inputs. The current schedule fits the shapes. If it is
 * specialized it must fit the data too; if it can be specialized, a specialized one replaces it. */
static kelp_status *choose_by_data(kelp_cpu_instance *instance) {
    const kelp_cpu_schedule *schedule = instance->schedules;
    uint64_t specializable = schedule->specializable | schedule->specialized;
    if (KELP_LIKELY(specializable == 0) || instance->body != NULL)
        return NULL;
    if (schedule->specialized != 0 && kelp_cpu_schedule_fits(schedule, instance)) {
        instance->credit += instance->credit < SPECIALIZED_CREDIT;
        return instance->hidden ? adopt_schedule(instance) : NULL;
    }
    for (const kelp_cpu_schedule *other = instance->schedules; other != NULL; other = other->next)
        if (other->specialized == specializable && kelp_cpu_schedule_fits(other, instance)) {
            instance->credit += instance->credit < SPECIALIZED_CREDIT;
            return switch_schedule(instance, specializable);
        }
    if (instance->credit >= SPECIALIZED_COST) {
        instance->credit -= SPECIALIZED_COST;
        return switch_schedule(instance, specializable);
    }
    return schedule->specialized == 0 ? NULL : switch_schedule(instance, 0);
}

static kelp_status *too_small(const kelp_cpu_instance *instance, size_t index, size_t needed) {
    return KELP_ERROR(KELP_OUT_OF_RANGE,
                      "the memory bound to output '%s' is too small: expected %zu bytes, found %zu",
                      instance->program->block->outputs[index]->name, needed,
                      instance->outputs[index].user_bytes);
}

/* Calls the allocator of the output, if it has one. */
static kelp_status *allocate_output(kelp_cpu_instance *instance, size_t index) {
    kelp_cpu_bound_output *output = &instance->outputs[index];
    const kelp_tensor *shown = &instance->shown[index];
    if (output->allocate == NULL)
        return NULL;
    size_t bytes = kelp_tensor_bytes(shown);
    output->user_data = output->allocate(output->allocate_userp, index, shown, bytes);
    output->user_bytes = bytes;
    if (output->user_data == NULL && bytes > 0)
        return KELP_ERROR(KELP_RESOURCE_EXHAUSTED,
                          "the allocator of output '%s' returned no memory for %zu bytes",
                          instance->program->block->outputs[index]->name, bytes);
    return NULL;
}

/* Copies inputs that are not aligned, because kernels read aligned data. The copy is freed after
 * the run, so that the next run binds again. */
static kelp_status *bind_inputs(kelp_cpu_instance *instance) {
    instance->rebind = false;
    for (size_t i = 0; i < instance->program->block->input_count; i++) {
        const kelp_tensor *input = &instance->inputs[i];
        instance->input_data[i] = input->data;
        if (kelp_cpu_is_aligned(input->data, input->dtype))
            continue;
        size_t bytes = kelp_tensor_bytes(input);
        void *copy = kelp_op_env_alloc(&instance->env, bytes ? bytes : 1);
        if (copy == NULL)
            return kelp_status_oom();
        memcpy(copy, input->data, bytes);
        instance->input_data[i] = copy;
        instance->rebind = true;
    }
    return NULL;
}

/* Returns true if output `i` of a body is its input `*out_input` in the next run. */
static bool is_carried(const kelp_cpu_instance *instance, size_t i, size_t *out_input) {
    const kelp_body *body = instance->body;
    if (body == NULL || i < body->first_output || i - body->first_output >= body->carried)
        return false;
    *out_input = body->first_input + (i - body->first_output);
    return true;
}

/* Allocates the instance's own memory of an output. A carried output alternates between two
 * buffers: the body reads one and writes the other. */
static kelp_status *own_output(kelp_cpu_instance *instance, size_t i, size_t bytes) {
    kelp_cpu_bound_output *output = &instance->outputs[i];
    size_t input;
    if (is_carried(instance, i, &input)) {
        void *data = output->own_data;
        size_t bytes_before = output->own_bytes;
        output->own_data = output->other_data;
        output->own_bytes = output->other_bytes;
        output->other_data = data;
        output->other_bytes = bytes_before;
    }
    return KELP_ANNOTATE(grow(instance, &output->own_data, &output->own_bytes, bytes ? bytes : 1),
                         "output '%s' needs %zu bytes", instance->program->block->outputs[i]->name,
                         bytes);
}

static kelp_status *bind_outputs(kelp_cpu_instance *instance) {
    const kelp_cpu_schedule *schedule = instance->schedules;
    for (size_t i = 0; i < instance->program->block->output_count; i++) {
        kelp_cpu_bound_output *output = &instance->outputs[i];
        if (schedule->copies[i])
            continue;
        KELP_TRY(allocate_output(instance, i));
        size_t bytes = kelp_tensor_bytes(&instance->shown[i]);
        if (output->user_data != NULL && output->user_bytes < bytes)
            return too_small(instance, i, bytes);
        if (output->user_data != NULL &&
            kelp_cpu_is_aligned(output->user_data, instance->shown[i].dtype)) {
            output->target = output->user_data;
            continue;
        }
        KELP_TRY(own_output(instance, i, bytes));
        output->target = output->own_data;
    }
    return NULL;
}

/* Reshapes a dynamic step with the data of this run, and allocates its results. */
static kelp_status *prepare_dynamic(const kelp_cpu_instance *instance, kelp_cpu_step *step) {
    KELP_ASSERT(step->dynamic);
    kelp_op_args *args = &step->args;
    const kelp_op_kernel *kernel = step->engine_node->kernel;
    if (kernel->plan_bytes > 0)
        memset(args->plan, 0, kernel->plan_bytes);
    args->scratch_bytes = 0;
    args->deferred = false;
    args->placed = false;
    args->algorithm = NULL;
    KELP_TRY(kelp_opset_check_lists(kernel, args));
    KELP_TRY(kernel->reshape(step->engine_node->state, args));
    kelp_cpu_engine_release_pages(instance->context->core);
    if (kelp_stop_is_set(&instance->context->stop)) /* the inputs may be incomplete */
        return NULL;
    if (args->deferred)
        return KELP_ERROR(KELP_INTERNAL,
                          "the operator defers its shape although its inputs have data");
    if (args->placed)
        return NULL;
    for (int32_t i = 0; i < args->output_count; i++) {
        if (args->outputs[i] == NULL)
            continue;
        size_t bytes = kelp_tensor_bytes(args->outputs[i]);
        args->outputs[i]->data = kelp_op_env_alloc(&instance->env, bytes ? bytes : 1);
        if (args->outputs[i]->data == NULL)
            return kelp_status_oom();
    }
    args->scratch = NULL;
    if (args->scratch_bytes > 0) {
        args->scratch = kelp_op_env_alloc(&instance->env, args->scratch_bytes);
        if (args->scratch == NULL)
            return kelp_status_oom();
    }
    return NULL;
}

kelp_status *kelp_cpu_instance_name_node(const kelp_cpu_instance *instance, const kelp_node *node,
                                         kelp_status *status) {
    const kelp_block *block = instance->program->block;
    for (; node->block != block && node->block->owner != NULL; node = node->block->owner)
        status = KELP_ANNOTATE(status, "node '%s' (%s) of graph '%s'", node->name, node->op->name,
                               node->block->name);
    bool is_main = block->owner == NULL;
    return KELP_ANNOTATE(status, "node '%s' (%s) of %s '%s'", node->name, node->op->name,
                         is_main ? "model" : "graph",
                         is_main ? instance->context->engine->graph->info.label : block->name);
}

static kelp_status *cancelled(const kelp_cpu_instance *instance) {
    return KELP_ERROR(KELP_CANCELLED, "the invocation of model '%s' was cancelled",
                      instance->context->engine->graph->info.label);
}

kelp_status *kelp_cpu_instance_settle(const kelp_cpu_instance *instance, const kelp_node *node,
                                      kelp_status *status) {
    if (KELP_UNLIKELY(kelp_stop_is_set(&instance->context->stop)) &&
        kelp_status_code(status) != KELP_CANCELLED) {
        kelp_status_free(status);
        status = cancelled(instance);
    }
    return KELP_LIKELY(status == NULL) ? NULL : kelp_cpu_instance_name_node(instance, node, status);
}

static kelp_status *run_step(kelp_cpu_instance *instance, kelp_cpu_step *step) {
    kelp_status *status = step->dynamic ? prepare_dynamic(instance, step) : NULL;
    if (status == NULL && !step->args.placed && !kelp_stop_is_set(&instance->context->stop))
        status = step->engine_node->kernel->invoke(step->engine_node->state, &step->args);
    return kelp_cpu_instance_settle(instance, step->args.node, status);
}

/* Returns true for a carried output that is the unchanged input of the body and is not copied. */
static bool stays(const kelp_cpu_instance *instance, size_t i) {
    const kelp_cpu_schedule *schedule = instance->schedules;
    const kelp_cpu_value *value = schedule->outputs[i], *root = &schedule->values[value->root];
    size_t input;
    return schedule->copies[i] && !value->dynamic && root->storage == KELP_CPU_STORAGE_INPUT &&
           is_carried(instance, i, &input) && root->index == input &&
           instance->input_data[input] == instance->inputs[input].data &&
           instance->outputs[i].user_data == NULL;
}

static kelp_status *deliver(kelp_cpu_instance *instance, bool *out_keeps) {
    const kelp_cpu_schedule *schedule = instance->schedules;
    *out_keeps = false;
    for (size_t i = 0; i < instance->program->block->output_count; i++) {
        kelp_cpu_bound_output *output = &instance->outputs[i];
        kelp_tensor *shown = &instance->shown[i];
        const void *from = output->target;
        if (schedule->copies[i]) {
            *shown = schedule->outputs[i]->tensor;
            from = shown->data;
            KELP_TRY(allocate_output(instance, i));
        }
        shown->flags = 0;
        *out_keeps = *out_keeps || shown->dtype == KELP_LIST || shown->dtype == KELP_STRING;
        if (stays(instance, i))
            continue;
        instance->rebind = instance->rebind || output->allocate != NULL;
        size_t bytes = kelp_tensor_bytes(shown);
        if (output->user_data != NULL && output->user_bytes < bytes)
            return too_small(instance, i, bytes);
        KELP_ASSERT(bytes == 0 || from != NULL);
        if (output->user_data == NULL && schedule->copies[i])
            KELP_TRY(own_output(instance, i, bytes));
        void *to = output->user_data != NULL ? output->user_data : output->own_data;
        if (to != from && bytes > 0)
            memcpy(to, from, bytes);
        shown->data = to;
    }
    return NULL;
}

static kelp_status *bind(kelp_cpu_instance *instance) {
    if (!instance->rebind)
        return NULL;
    kelp_status *status = bind_outputs(instance);
    if (status == NULL)
        status = bind_inputs(instance);
    if (status != NULL) {
        instance->rebind = true;
        return status;
    }
    kelp_cpu_schedule_bind(instance->schedules, instance);
    return NULL;
}

kelp_status *kelp_cpu_instance_begin(kelp_cpu_instance *instance) {
    KELP_TRY(kelp_cpu_instance_prepare(instance));
    KELP_TRY(choose_by_data(instance));
    return bind(instance);
}

kelp_status *kelp_cpu_instance_deliver(kelp_cpu_instance *instance) {
    bool keeps = false;
    return deliver(instance, &keeps);
}

kelp_status *kelp_cpu_instance_run(kelp_cpu_instance *instance) {
    kelp_cpu_context *context = instance->context;
    kelp_arena_mark mark = kelp_arena_get_mark(&context->run_arena);
    const kelp_placed *placed = context->placed;
    bool keeps = false;
    KELP_TRY(kelp_cpu_instance_begin(instance));
    bool profiled =
        context->profiler != NULL && instance->body == NULL; /* the node's time includes bodies */
    const kelp_cpu_schedule *schedule = instance->schedules;
    for (size_t i = 0; i < schedule->step_count; i++) {
        if (KELP_UNLIKELY(kelp_op_env_cancelled(&instance->env)))
            return cancelled(instance);
        uint64_t begin = profiled ? kelp_now_ns() : 0;
        KELP_TRY(run_step(instance, &schedule->steps[i]));
        if (profiled)
            context->profiler(context->profiler_userp, i, schedule->steps[i].args.node->op->name,
                              schedule->steps[i].args.node->name, schedule->steps[i].args.algorithm,
                              kelp_now_ns() - begin);
    }
    KELP_TRY(deliver(instance, &keeps));
    if (instance->body != NULL && !keeps) {
        kelp_placed_release(&context->placed, placed);
        kelp_arena_go_back(&context->run_arena, mark);
    }
    return NULL;
}
