/* SPDX-License-Identifier: Apache-2.0 */
/* Recordings: the kernel calls of a run as a flat list with resolved addresses. */
#include "base/alloc.h"
#include "base/assert.h"
#include "base/checked.h"
#include "cpu/exec/context.h"

typedef struct call {
    kelp_status *(*invoke)(const void *state, kelp_op_args *args);
    const void *state;
    kelp_op_args *args;
} call;

typedef struct recording {
    kelp_cpu_context *context;
    kelp_cpu_engine *core; /* retained: owns the kernels */
    uint32_t stamp;
    bool delivers; /* outputs are copied after the last call */
    size_t count;
    call *calls;
} recording;

/* Checks that all calls and addresses are known before the run. */
static kelp_status *check_static(const kelp_cpu_instance *instance) {
    if (instance->rebind)
        return KELP_ERROR(KELP_FAILED_PRECONDITION,
                          "the inference cannot be recorded: an input is not aligned to its type, "
                          "or an output has an allocator");
    const kelp_cpu_schedule *schedule = instance->schedules;
    for (size_t i = 0; i < schedule->step_count; i++)
        if (schedule->steps[i].dynamic)
            return KELP_ERROR(KELP_FAILED_PRECONDITION,
                              "the inference cannot be recorded: the shape of node '%s' (%s) "
                              "depends on data",
                              schedule->steps[i].args.node->name,
                              schedule->steps[i].args.node->op->name);
    return NULL;
}

kelp_status *kelp_cpu_recording_create(void *userp, void **out, size_t *out_steps) {
    kelp_cpu_context *context = userp;
    kelp_cpu_instance *instance = &context->main;
    recording *made = NULL;
    KELP_TRY(kelp_cpu_context_prepare(context));
    kelp_cpu_context_clear_run(context);
    KELP_TRY(kelp_cpu_instance_begin(instance));
    KELP_TRY(check_static(instance));
    const kelp_cpu_schedule *schedule = instance->schedules;
    KELP_ASSERT(instance->scheduled && schedule->bound);
    KELP_TRY(KELP_NEW(context->allocator, recording, &made));
    kelp_status *status = kelp_alloc_zero(context->allocator, schedule->step_count,
                                          sizeof *made->calls, (void **)&made->calls);
    if (status != NULL) {
        kelp_free(context->allocator, made, sizeof *made);
        return status;
    }
    made->context = context;
    made->core = kelp_cpu_engine_retain(context->core);
    made->stamp = instance->stamp;
    made->count = schedule->step_count;
    for (size_t i = 0; i < schedule->step_count; i++) {
        kelp_cpu_step *step = &schedule->steps[i];
        made->calls[i] =
            (call){step->engine_node->kernel->invoke, step->engine_node->state, &step->args};
    }
    for (size_t i = 0; i < instance->program->block->output_count; i++) {
        const kelp_cpu_bound_output *output = &instance->outputs[i];
        made->delivers = made->delivers || schedule->copies[i] ||
                         (output->user_data != NULL && output->user_data != output->target);
    }
    *out = made;
    *out_steps = made->count;
    return NULL;
}

kelp_status *kelp_cpu_recording_replay(void *userp, kelp_tensor *outputs) {
    const recording *made = userp;
    kelp_cpu_context *context = made->context;
    kelp_cpu_instance *instance = &context->main;
    (void)outputs;
    if (KELP_UNLIKELY(made->stamp != instance->stamp ||
                      kelp_cpu_engine_current(context->engine) != made->core))
        return KELP_ERROR(
            KELP_FAILED_PRECONDITION,
            "the recording is invalid: tensors of the context were bound after it, or the engine "
            "was refitted");
    KELP_ASSERT(outputs == instance->shown && instance->scheduled && !instance->rebind);
    KELP_ASSERT(made->count == instance->schedules->step_count);
    kelp_cpu_context_begin_run(context);
    for (size_t i = 0; i < made->count; i++) {
        const call *c = &made->calls[i];
        kelp_status *status = kelp_stop_asked(&context->stop) ? NULL : c->invoke(c->state, c->args);
        KELP_TRY(kelp_cpu_instance_settle(instance, c->args->node, status));
    }
    return made->delivers ? kelp_cpu_instance_deliver(instance) : NULL;
}

void kelp_cpu_recording_destroy(void *userp) {
    recording *made = userp;
    kelp_allocator allocator = made->core->allocator;
    kelp_cpu_engine *core = made->core;
    kelp_free(allocator, made->calls, made->count * sizeof *made->calls);
    kelp_free(allocator, made, sizeof *made);
    kelp_cpu_engine_release(core);
}
