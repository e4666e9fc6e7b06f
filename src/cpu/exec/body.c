/* SPDX-License-Identifier: Apache-2.0 */
/* Blocks of nodes as operators see them (runtime/opset/body.h): each is a frame of its own. */
#include "base/alloc.h"
#include "cpu/exec/exec.h"
#include "graph/passes/passes.h"

static void bind_inputs(kelp_frame *frame, const kelp_tensor *const *inputs) {
    for (size_t i = 0; i < frame->program->block->input_count; i++)
        kelp_frame_bind(frame, i, inputs[i]);
}

static kelp_status *shape_body(kelp_body *body, const kelp_tensor *const *inputs,
                               kelp_tensor *outputs, bool *out_known) {
    kelp_frame *frame = &((kelp_cpu_body *)body)->frame;
    bind_inputs(frame, inputs);
    KELP_TRY(kelp_frame_prepare(frame));
    const kelp_plan *plan = frame->plans;
    *out_known = true;
    for (size_t i = 0; i < frame->program->block->output_count; i++) {
        const kelp_plan_value *value = plan->outputs[i];
        *out_known = *out_known && !plan->open[i];
        outputs[i] = value->tensor;
        if (value->dynamic || plan->values[value->root].storage != KELP_STORAGE_FIXED)
            outputs[i].data = NULL;
    }
    return NULL;
}

static bool output_is_input(const kelp_body *body, size_t output, size_t input) {
    const kelp_plan *plan = ((const kelp_cpu_body *)body)->frame.plans;
    const kelp_plan_value *value = plan->outputs[output], *root = &plan->values[value->root];
    return !value->dynamic && root->storage == KELP_STORAGE_INPUT && root->index == input;
}

static kelp_status *run_body(kelp_body *body, const kelp_tensor *const *inputs,
                             kelp_tensor *outputs) {
    kelp_frame *frame = &((kelp_cpu_body *)body)->frame;
    size_t count = frame->program->block->output_count;
    bind_inputs(frame, inputs);
    for (size_t i = 0; i < count; i++) {
        frame->outputs[i].user_data = outputs[i].data;
        frame->outputs[i].user_bytes = outputs[i].data ? kelp_tensor_bytes(&outputs[i]) : 0;
    }
    KELP_TRY(kelp_frame_run(frame));
    for (size_t i = 0; i < count; i++)
        outputs[i] = frame->shown[i];
    return NULL;
}

/* Which inputs of the body have known data: the last of the node's inputs are its last. */
static uint64_t given_inside(const kelp_node *node, const kelp_block *block, uint64_t given) {
    size_t captures = node->input_count - kelp_node_first_capture(node);
    uint64_t inside = 0;
    for (size_t i = 0; i < captures; i++) {
        size_t outer = node->input_count - captures + i, inner = block->input_count - captures + i;
        if (outer < 63 && inner < 63 && (given >> outer & 1) != 0)
            inside |= (uint64_t)1 << inner;
    }
    return inside;
}

kelp_status *kelp_bodies_create(kelp_cpu_context *context, kelp_plan *plan,
                                const kelp_cpu_node *engine_node, uint64_t given, kelp_body **out) {
    *out = NULL;
    for (size_t k = 0; k < engine_node->body_count; k++) {
        const kelp_program *program = engine_node->bodies[k];
        kelp_cpu_body *body = KELP_ARENA_NEW(&plan->arena, kelp_cpu_body);
        if (body == NULL)
            return kelp_status_oom();
        body->body = (kelp_body){.block = program->block,
                                 .shape = shape_body,
                                 .output_is_input = output_is_input,
                                 .run = run_body};
        body->next = plan->bodies;
        plan->bodies = body;
        KELP_TRY(kelp_frame_init(&body->frame, context, program));
        body->frame.body = &body->body;
        body->frame.given = given_inside(engine_node->node, program->block, given);
        body->body.next = *out;
        *out = &body->body;
    }
    return NULL;
}

void kelp_bodies_destroy(kelp_plan *plan) {
    for (kelp_cpu_body *body = plan->bodies; body != NULL; body = body->next)
        kelp_frame_deinit(&body->frame);
    plan->bodies = NULL;
}
