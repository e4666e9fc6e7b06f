/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A frame: a program in one context. Plans of recent shapes are kept; a plan that leaves steps
 * whose shapes hang on a few integers that are bound (a sampling rate that chooses a branch, the
 * extents of a Reshape) is followed by one made for those integers, as long as they repeat.
 */
#include "base/alloc.h"
#include "base/checked.h"
#include "base/clock.h"
#include "cpu/exec/exec.h"
#include "runtime/opset/bridge.h"

#include <string.h>

/* A plan for data costs DATA_PLAN_COST, a run that finds one gives 1 back, up to DATA_PLAN_CREDIT:
 * data that never repeat are soon planned for no more. */
#define DATA_PLAN_COST 4u
#define DATA_PLAN_CREDIT 32u

bool kelp_is_aligned(const void *data, kelp_dtype dtype) {
    return ((uintptr_t)data & (kelp_element_alignment(dtype) - 1)) == 0;
}

static void relax(void *userp) {
    const kelp_cpu_context *context = userp;
    kelp_graph_relax(context->core->source);
}

kelp_status *kelp_frame_init(kelp_frame *frame, kelp_cpu_context *context,
                             const kelp_program *program) {
    kelp_allocator allocator = context->allocator;
    size_t inputs = program->block->input_count, outputs = program->block->output_count;
    frame->context = context;
    frame->program = program;
    frame->credit = DATA_PLAN_CREDIT;
    frame->env = (kelp_op_env){.allocator = allocator,
                               .pool = context->engine->runtime->pool,
                               .relax = relax,
                               .relax_userp = context};
    kelp_frame_lend(&frame->env, context);
    KELP_TRY(kelp_alloc_zero(allocator, inputs, sizeof *frame->inputs, (void **)&frame->inputs));
    KELP_TRY(
        kelp_alloc_zero(allocator, inputs, sizeof *frame->input_data, (void **)&frame->input_data));
    KELP_TRY(kelp_alloc_zero(allocator, outputs, sizeof *frame->outputs, (void **)&frame->outputs));
    KELP_TRY(kelp_alloc_zero(allocator, outputs, sizeof *frame->shown, (void **)&frame->shown));
    for (size_t i = 0; i < outputs; i++)
        frame->shown[i] = (kelp_tensor){.dtype = program->block->outputs[i]->dtype, .rank = -1};
    return NULL;
}

static void free_output(kelp_allocator allocator, struct kelp_bound_output *output) {
    kelp_free_aligned(allocator, output->own_data, output->own_bytes, KELP_TENSOR_ALIGNMENT);
    kelp_free_aligned(allocator, output->other_data, output->other_bytes, KELP_TENSOR_ALIGNMENT);
}

void kelp_frame_deinit(kelp_frame *frame) {
    if (frame->context == NULL)
        return;
    kelp_allocator allocator = frame->context->allocator;
    size_t inputs = frame->program->block->input_count;
    size_t outputs = frame->program->block->output_count;
    kelp_frame_forget(frame);
    for (size_t i = 0; frame->outputs != NULL && i < outputs; i++)
        free_output(allocator, &frame->outputs[i]);
    kelp_free(allocator, frame->outputs, outputs * sizeof *frame->outputs);
    kelp_free(allocator, frame->shown, outputs * sizeof *frame->shown);
    kelp_free(allocator, frame->inputs, inputs * sizeof *frame->inputs);
    kelp_free(allocator, frame->input_data, inputs * sizeof *frame->input_data);
}

void kelp_frame_forget(kelp_frame *frame) {
    kelp_allocator allocator = frame->context->allocator;
    for (kelp_plan *plan = frame->plans, *next; plan != NULL; plan = next) {
        next = plan->next;
        kelp_plan_destroy(plan, allocator);
    }
    kelp_free_aligned(allocator, frame->own_workspace, frame->own_workspace_bytes,
                      KELP_TENSOR_ALIGNMENT);
    frame->plans = NULL;
    frame->plan_count = 0;
    frame->planned = false;
    frame->workspace = frame->own_workspace = NULL;
    frame->own_workspace_bytes = 0;
    frame->stamp++;
}

/* ---- bind ---- */
void kelp_frame_bind(kelp_frame *frame, size_t index, const kelp_tensor *tensor) {
    kelp_tensor *bound = &frame->inputs[index];
    bool same = bound->rank == tensor->rank && bound->dtype == tensor->dtype &&
                (tensor->rank <= 0 || memcmp(bound->shape, tensor->shape,
                                             (size_t)tensor->rank * sizeof *tensor->shape) == 0);
    frame->planned = frame->planned && same;
    *bound = *tensor;
    frame->rebind = true;
    frame->stamp++;
}

/* ---- prepare ---- */
/* Makes a plan that fits what is bound the current one: the one that is there, or a new one. */
static kelp_status *use_plan(kelp_frame *frame, uint64_t given) {
    kelp_plan **link = &frame->plans;
    for (; *link != NULL; link = &(*link)->next)
        if ((*link)->given == given && kelp_plan_fits(*link, frame))
            break;
    kelp_plan *plan = *link;
    if (plan != NULL) {
        *link = plan->next;
    } else {
        KELP_TRY(kelp_plan_create(frame, given, &plan));
        for (size_t i = 0; given != frame->given && i < frame->program->block->output_count; i++)
            plan->open[i] = frame->plans->open[i]; /* it follows the plan without data */
        frame->plan_count++;
    }
    plan->next = frame->plans;
    frame->plans = plan;
    if (frame->plan_count > frame->context->engine->max_plans) { /* not used for longest */
        for (link = &plan->next; (*link)->next != NULL; link = &(*link)->next) {
        }
        kelp_plan_destroy(*link, frame->context->allocator);
        *link = NULL;
        frame->plan_count--;
    }
    return NULL;
}

static kelp_status *grow(kelp_frame *frame, void **inout_data, size_t *inout_bytes, size_t needed) {
    if (needed <= *inout_bytes)
        return NULL;
    void *data = NULL;
    KELP_TRY(kelp_alloc_aligned(frame->context->allocator, needed, KELP_TENSOR_ALIGNMENT, &data));
    kelp_free_aligned(frame->context->allocator, *inout_data, *inout_bytes, KELP_TENSOR_ALIGNMENT);
    *inout_data = data;
    *inout_bytes = needed;
    return NULL;
}

static kelp_status *give_workspace(kelp_frame *frame, size_t needed) {
    frame->workspace = frame->user_workspace;
    if (frame->workspace == NULL) {
        KELP_TRY(KELP_ANNOTATE(
            grow(frame, (void **)&frame->own_workspace, &frame->own_workspace_bytes, needed),
            "model '%s' needs a workspace of %zu bytes for these shapes",
            frame->context->engine->graph->info.label, needed));
        frame->workspace = frame->own_workspace;
    } else if (frame->user_workspace_bytes < needed) {
        return KELP_ERROR(KELP_RESOURCE_EXHAUSTED,
                          "the workspace is too small: %zu bytes are needed, %zu were given",
                          needed, frame->user_workspace_bytes);
    }
    return NULL;
}

/* The current plan gets its workspace and shows its outputs. */
static kelp_status *adopt_plan(kelp_frame *frame) {
    const kelp_plan *plan = frame->plans;
    const kelp_block *block = frame->program->block;
    frame->rebind = true;
    frame->stamp++;
    KELP_TRY(give_workspace(frame, plan->workspace_bytes));
    for (size_t i = 0; i < block->output_count; i++) {
        const kelp_plan_value *value = plan->outputs[i];
        kelp_tensor *shown = &frame->shown[i];
        *shown = value->tensor;
        shown->data = NULL;
    }
    frame->hidden = false;
    if (plan->given == 0)
        kelp_frame_hide_open(frame);
    return NULL;
}

void kelp_frame_hide_open(kelp_frame *frame) {
    const kelp_block *block = frame->program->block;
    for (size_t i = 0; i < block->output_count; i++)
        if (frame->plans->open[i]) {
            frame->shown[i] = (kelp_tensor){.dtype = block->outputs[i]->dtype, .rank = -1};
            frame->hidden = true;
        }
}

kelp_status *kelp_frame_prepare(kelp_frame *frame) {
    if (frame->planned)
        return NULL;
    KELP_TRY(use_plan(frame, frame->given));
    KELP_TRY(adopt_plan(frame));
    frame->planned = true;
    return NULL;
}

/* ---- invoke ---- */
/* The current plan fits the shapes; it must fit the data it was made for, and one that would gain
 * by data is followed by one that knows them. */
static kelp_status *switch_plan(kelp_frame *frame, uint64_t given) {
    frame->planned = false;
    KELP_TRY(use_plan(frame, given));
    KELP_TRY(adopt_plan(frame));
    frame->planned = true;
    return NULL;
}

static kelp_status *choose_by_data(kelp_frame *frame) {
    const kelp_plan *plan = frame->plans;
    uint64_t wants = plan->wants | plan->given;
    if (KELP_LIKELY(wants == 0) || frame->body != NULL)
        return NULL;
    if (plan->given != 0 && kelp_plan_fits(plan, frame)) {
        frame->credit += frame->credit < DATA_PLAN_CREDIT;
        return frame->hidden ? adopt_plan(frame) : NULL;
    }
    for (const kelp_plan *other = frame->plans; other != NULL; other = other->next)
        if (other->given == wants && kelp_plan_fits(other, frame)) {
            frame->credit += frame->credit < DATA_PLAN_CREDIT;
            return switch_plan(frame, wants);
        }
    if (frame->credit >= DATA_PLAN_COST) {
        frame->credit -= DATA_PLAN_COST;
        return switch_plan(frame, wants);
    }
    return plan->given == 0 ? NULL : switch_plan(frame, 0);
}

static kelp_status *too_small(const kelp_frame *frame, size_t index, size_t needed) {
    return KELP_ERROR(
        KELP_OUT_OF_RANGE,
        "the memory bound to output '%s' is too small: %zu bytes are needed, %zu were "
        "given",
        frame->program->block->outputs[index]->name, needed, frame->outputs[index].user_bytes);
}

/* Asks for the output's place. The next invoke asks again. */
static kelp_status *place_output(kelp_frame *frame, size_t index) {
    struct kelp_bound_output *output = &frame->outputs[index];
    const kelp_tensor *shown = &frame->shown[index];
    if (output->place == NULL)
        return NULL;
    size_t bytes = kelp_tensor_bytes(shown);
    output->user_data = output->place(output->place_userp, index, shown, bytes);
    output->user_bytes = bytes;
    if (output->user_data == NULL && bytes > 0)
        return KELP_ERROR(KELP_RESOURCE_EXHAUSTED,
                          "the allocator of output '%s' has no memory for %zu bytes",
                          frame->program->block->outputs[index]->name, bytes);
    return NULL;
}

/* Kernels read aligned data; a client's bytes may lie anywhere. The copy lives as long as this
 * invoke, so that the next one binds again. */
static kelp_status *bind_inputs(kelp_frame *frame) {
    frame->rebind = false;
    for (size_t i = 0; i < frame->program->block->input_count; i++) {
        const kelp_tensor *input = &frame->inputs[i];
        frame->input_data[i] = input->data;
        if (kelp_is_aligned(input->data, input->dtype))
            continue;
        size_t bytes = kelp_tensor_bytes(input);
        void *copy = kelp_op_env_alloc(&frame->env, bytes ? bytes : 1);
        if (copy == NULL)
            return kelp_status_oom();
        memcpy(copy, input->data, bytes);
        frame->input_data[i] = copy;
        frame->rebind = true;
    }
    return NULL;
}

/* Output `i` of a body is its input `*out_input` in the next run. */
static bool is_carried(const kelp_frame *frame, size_t i, size_t *out_input) {
    const kelp_body *body = frame->body;
    if (body == NULL || i < body->first_output || i - body->first_output >= body->carried)
        return false;
    *out_input = body->first_input + (i - body->first_output);
    return true;
}

/* The frame's own memory for an output. What is carried alternates between two places: one is read
 * while the other is written. */
static kelp_status *own_place(kelp_frame *frame, size_t i, size_t bytes) {
    struct kelp_bound_output *output = &frame->outputs[i];
    size_t input;
    if (is_carried(frame, i, &input)) {
        void *data = output->own_data;
        size_t had = output->own_bytes;
        output->own_data = output->other_data;
        output->own_bytes = output->other_bytes;
        output->other_data = data;
        output->other_bytes = had;
    }
    return KELP_ANNOTATE(grow(frame, &output->own_data, &output->own_bytes, bytes ? bytes : 1),
                         "output '%s' needs %zu bytes", frame->program->block->outputs[i]->name,
                         bytes);
}

static kelp_status *bind_outputs(kelp_frame *frame) {
    const kelp_plan *plan = frame->plans;
    for (size_t i = 0; i < frame->program->block->output_count; i++) {
        struct kelp_bound_output *output = &frame->outputs[i];
        if (plan->copies[i])
            continue;
        KELP_TRY(place_output(frame, i));
        size_t bytes = kelp_tensor_bytes(&frame->shown[i]);
        if (output->user_data != NULL && output->user_bytes < bytes)
            return too_small(frame, i, bytes);
        if (output->user_data != NULL &&
            kelp_is_aligned(output->user_data, frame->shown[i].dtype)) {
            output->target = output->user_data;
            continue;
        }
        KELP_TRY(own_place(frame, i, bytes));
        output->target = output->own_data;
    }
    return NULL;
}

/* A step whose shapes were not known: reshape with the data that is there now, and place its
 * results. */
static kelp_status *prepare_dynamic(const kelp_frame *frame, kelp_step *step) {
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
    kelp_cpu_engine_weights_relax(frame->context->core);
    if (kelp_stop_is_set(&frame->context->stop)) /* shapes may hang on what was left out */
        return NULL;
    if (args->deferred)
        return KELP_ERROR(KELP_INTERNAL,
                          "the operator defers its shape although its data is there");
    if (args->placed)
        return NULL;
    for (int32_t i = 0; i < args->output_count; i++) {
        if (args->outputs[i] == NULL)
            continue;
        size_t bytes = kelp_tensor_bytes(args->outputs[i]);
        args->outputs[i]->data = kelp_op_env_alloc(&frame->env, bytes ? bytes : 1);
        if (args->outputs[i]->data == NULL)
            return kelp_status_oom();
    }
    args->scratch = NULL;
    if (args->scratch_bytes > 0) {
        args->scratch = kelp_op_env_alloc(&frame->env, args->scratch_bytes);
        if (args->scratch == NULL)
            return kelp_status_oom();
    }
    return NULL;
}

kelp_status *kelp_frame_name_node(const kelp_frame *frame, const kelp_node *node,
                                  kelp_status *status) {
    const kelp_block *block = frame->program->block;
    for (; node->block != block && node->block->owner != NULL; node = node->block->owner)
        status = KELP_ANNOTATE(status, "node '%s' (%s) of graph '%s'", node->name, node->op->name,
                               node->block->name);
    bool is_main = block->owner == NULL;
    return KELP_ANNOTATE(status, "node '%s' (%s) of %s '%s'", node->name, node->op->name,
                         is_main ? "model" : "graph",
                         is_main ? frame->context->engine->graph->info.label : block->name);
}

static kelp_status *cancelled(const kelp_frame *frame) {
    return KELP_ERROR(KELP_CANCELLED, "the invocation of model '%s' was cancelled",
                      frame->context->engine->graph->info.label);
}

kelp_status *kelp_frame_settle(const kelp_frame *frame, const kelp_node *node,
                               kelp_status *status) {
    if (KELP_UNLIKELY(kelp_stop_is_set(&frame->context->stop)) &&
        kelp_status_code(status) != KELP_CANCELLED) {
        kelp_status_free(status);
        status = cancelled(frame);
    }
    return KELP_LIKELY(status == NULL) ? NULL : kelp_frame_name_node(frame, node, status);
}

static kelp_status *run_step(kelp_frame *frame, kelp_step *step) {
    kelp_status *status = step->dynamic ? prepare_dynamic(frame, step) : NULL;
    if (status == NULL && !step->args.placed && !kelp_stop_is_set(&frame->context->stop))
        status = step->engine_node->kernel->invoke(step->engine_node->state, &step->args);
    return kelp_frame_settle(frame, step->args.node, status);
}

/* A carried value that is the body's input as it was: it stays where it is. */
static bool stays(const kelp_frame *frame, size_t i) {
    const kelp_plan *plan = frame->plans;
    const kelp_plan_value *value = plan->outputs[i], *root = &plan->values[value->root];
    size_t input;
    return plan->copies[i] && !value->dynamic && root->storage == KELP_STORAGE_INPUT &&
           is_carried(frame, i, &input) && root->index == input &&
           frame->input_data[input] == frame->inputs[input].data &&
           frame->outputs[i].user_data == NULL;
}

static kelp_status *deliver(kelp_frame *frame, bool *out_keeps) {
    const kelp_plan *plan = frame->plans;
    *out_keeps = false;
    for (size_t i = 0; i < frame->program->block->output_count; i++) {
        struct kelp_bound_output *output = &frame->outputs[i];
        kelp_tensor *shown = &frame->shown[i];
        const void *from = output->target;
        if (plan->copies[i]) {
            *shown = plan->outputs[i]->tensor;
            from = shown->data;
            KELP_TRY(place_output(frame, i));
        }
        shown->flags = 0;
        *out_keeps = *out_keeps || shown->dtype == KELP_LIST || shown->dtype == KELP_STRING;
        if (stays(frame, i))
            continue;
        frame->rebind = frame->rebind || output->place != NULL;
        size_t bytes = kelp_tensor_bytes(shown);
        if (output->user_data != NULL && output->user_bytes < bytes)
            return too_small(frame, i, bytes);
        if (output->user_data == NULL && plan->copies[i])
            KELP_TRY(own_place(frame, i, bytes));
        void *to = output->user_data ? output->user_data : output->own_data;
        if (to != from && bytes > 0)
            memcpy(to, from, bytes);
        shown->data = to;
    }
    return NULL;
}

static kelp_status *bind(kelp_frame *frame) {
    if (!frame->rebind)
        return NULL;
    kelp_status *status = bind_outputs(frame);
    if (status == NULL)
        status = bind_inputs(frame);
    if (status != NULL) {
        frame->rebind = true;
        return status;
    }
    kelp_plan_bind(frame->plans, frame);
    return NULL;
}

kelp_status *kelp_frame_begin(kelp_frame *frame) {
    KELP_TRY(kelp_frame_prepare(frame));
    KELP_TRY(choose_by_data(frame));
    return bind(frame);
}

kelp_status *kelp_frame_deliver(kelp_frame *frame) {
    bool keeps = false;
    return deliver(frame, &keeps);
}

kelp_status *kelp_frame_run(kelp_frame *frame) {
    kelp_cpu_context *context = frame->context;
    kelp_arena_mark mark = kelp_arena_get_mark(&context->run_arena);
    bool keeps = false;
    KELP_TRY(kelp_frame_begin(frame));
    bool profiled =
        context->profiler != NULL && frame->body == NULL; /* a body's time is its node's */
    const kelp_plan *plan = frame->plans;
    for (size_t i = 0; i < plan->step_count; i++) {
        if (KELP_UNLIKELY(kelp_op_env_cancelled(&frame->env)))
            return cancelled(frame);
        uint64_t begin = profiled ? kelp_now_ns() : 0;
        KELP_TRY(run_step(frame, &plan->steps[i]));
        if (profiled)
            context->profiler(context->profiler_userp, i, plan->steps[i].args.node->op->name,
                              plan->steps[i].args.node->name, plan->steps[i].args.algorithm,
                              kelp_now_ns() - begin);
    }
    KELP_TRY(deliver(frame, &keeps));
    if (frame->body != NULL && !keeps)
        kelp_arena_go_back(&context->run_arena, mark);
    return NULL;
}
