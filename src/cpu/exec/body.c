/* SPDX-License-Identifier: Apache-2.0 */
/* Bodies of nodes for operators (runtime/opset/body.h). Each body has its own instance. */
#include "base/alloc.h"
#include "base/assert.h"
#include "cpu/exec/context.h"
#include "graph/passes/passes.h"

static void bind_inputs(kelp_cpu_instance *instance, const kelp_tensor *const *inputs) {
    for (size_t i = 0; i < instance->program->block->input_count; i++)
        kelp_cpu_instance_bind(instance, i, inputs[i]);
}

static kelp_status *shape_body(kelp_body *body, const kelp_tensor *const *inputs,
                               kelp_tensor *outputs, bool *out_known) {
    kelp_cpu_instance *instance = &((kelp_cpu_body *)body)->instance;
    bind_inputs(instance, inputs);
    KELP_TRY(kelp_cpu_instance_prepare(instance));
    const kelp_cpu_schedule *schedule = instance->schedules;
    *out_known = true;
    for (size_t i = 0; i < instance->program->block->output_count; i++) {
        const kelp_cpu_value *value = schedule->outputs[i];
        *out_known = *out_known && !schedule->data_dependent[i];
        outputs[i] = value->tensor;
        if (value->dynamic || schedule->values[value->root].storage != KELP_CPU_STORAGE_FIXED)
            outputs[i].data = NULL;
    }
    return NULL;
}

static bool output_is_input(const kelp_body *body, size_t output, size_t input) {
    const kelp_cpu_schedule *schedule = ((const kelp_cpu_body *)body)->instance.schedules;
    KELP_ASSERT(schedule != NULL);
    const kelp_cpu_value *value = schedule->outputs[output], *root = &schedule->values[value->root];
    return !value->dynamic && root->storage == KELP_CPU_STORAGE_INPUT && root->index == input;
}

static kelp_status *run_body(kelp_body *body, const kelp_tensor *const *inputs,
                             kelp_tensor *outputs) {
    kelp_cpu_instance *instance = &((kelp_cpu_body *)body)->instance;
    size_t count = instance->program->block->output_count;
    bind_inputs(instance, inputs);
    for (size_t i = 0; i < count; i++) {
        instance->outputs[i].user_data = outputs[i].data;
        instance->outputs[i].user_bytes =
            outputs[i].data != NULL ? kelp_tensor_bytes(&outputs[i]) : 0;
    }
    KELP_TRY(kelp_cpu_instance_run(instance));
    for (size_t i = 0; i < count; i++)
        outputs[i] = instance->shown[i];
    return NULL;
}

/* Returns the mask of the body's inputs whose data is known. The last inputs of the node are the
 * last inputs of the body. */
static uint64_t specialized_inside(const kelp_node *node, const kelp_block *block,
                                   uint64_t specialized) {
    size_t captures = node->input_count - kelp_node_first_capture(node);
    uint64_t inside = 0;
    KELP_ASSERT(captures <= block->input_count);
    for (size_t i = 0; i < captures; i++) {
        size_t outer = node->input_count - captures + i, inner = block->input_count - captures + i;
        if (outer < KELP_CPU_MASKED_INPUTS && inner < KELP_CPU_MASKED_INPUTS &&
            (specialized >> outer & 1) != 0)
            inside |= (uint64_t)1 << inner;
    }
    return inside;
}

kelp_status *kelp_cpu_bodies_create(kelp_cpu_context *context, kelp_cpu_schedule *schedule,
                                    const kelp_cpu_node *engine_node, uint64_t specialized,
                                    kelp_body **out) {
    *out = NULL;
    for (size_t k = 0; k < engine_node->body_count; k++) {
        const kelp_cpu_program *program = engine_node->bodies[k];
        kelp_cpu_body *body = KELP_ARENA_NEW(&schedule->arena, kelp_cpu_body);
        if (body == NULL)
            return kelp_status_oom();
        body->body = (kelp_body){.block = program->block,
                                 .shape = shape_body,
                                 .output_is_input = output_is_input,
                                 .run = run_body};
        body->next = schedule->bodies;
        schedule->bodies = body;
        KELP_TRY(kelp_cpu_instance_init(&body->instance, context, program));
        body->instance.body = &body->body;
        body->instance.specialized =
            specialized_inside(engine_node->node, program->block, specialized);
        body->body.next = *out;
        *out = &body->body;
    }
    return NULL;
}

void kelp_cpu_bodies_destroy(kelp_cpu_schedule *schedule) {
    for (kelp_cpu_body *body = schedule->bodies; body != NULL; body = body->next)
        kelp_cpu_instance_deinit(&body->instance);
    schedule->bodies = NULL;
}
