/* SPDX-License-Identifier: Apache-2.0 */
/*
 * If with a condition that is unknown before the run. (A pass inlines the branch of a constant
 * condition.) If both branches have the same output types and shapes, the outputs are in the arena
 * like those of other operators; otherwise the node runs in reshape, when its data is available.
 * Source: ONNX operator specification, If (versions 1 to 25).
 */
#include "base/assert.h"
#include "runtime/opset/body.h"
#include "cpu/ops/control/control.h"

kelp_status *kelp_control_bool(const kelp_node *node, const kelp_tensor *tensor, bool *out) {
    if (tensor->dtype != KELP_BOOL || kelp_tensor_elements(tensor) != 1)
        return KELP_ERROR(KELP_INVALID_ARGUMENT,
                          "the condition of node '%s' (%s) is invalid: expected one bool, found "
                          "%lld of %s",
                          kelp_node_name(node), kelp_node_op_type(node),
                          (long long)kelp_tensor_elements(tensor), kelp_dtype_name(tensor->dtype));
    *out = *(const uint8_t *)tensor->data != 0;
    return NULL;
}

bool kelp_control_has_data(const kelp_op_args *args) {
    for (int32_t i = 0; i < args->input_count; i++)
        if (args->inputs[i] != NULL && args->inputs[i]->data == NULL &&
            kelp_tensor_elements(args->inputs[i]) > 0)
            return false;
    return args->env->arena != NULL;
}

static kelp_status *find_branch(const kelp_op_args *args, bool condition, kelp_body **out) {
    const char *name = condition ? "then_branch" : "else_branch";
    KELP_TRY(kelp_env_body(args->env, args->node, name, out));
    size_t own = kelp_node_own_inputs(args->node);
    KELP_ASSERT(own <= (size_t)args->input_count);
    if (kelp_block_output_count((*out)->block) < (size_t)args->output_count ||
        kelp_block_input_count((*out)->block) != (size_t)args->input_count - own)
        return KELP_ERROR(KELP_INVALID_ARGUMENT,
                          "node '%s' (If): %s takes inputs or has fewer outputs than the node",
                          kelp_node_name(args->node), name);
    return NULL;
}

/* Returns true if both branches have the same output types and shapes. A branch whose shapes are
 * invalid is not an error, because it may never be taken. */
static bool common_shapes(kelp_op_args *args, kelp_body *const *branches, kelp_tensor **results) {
    const kelp_tensor *const *captures = args->inputs + kelp_node_own_inputs(args->node);
    for (int k = 0; k < 2; k++) {
        bool known = false;
        kelp_status *status = kelp_body_shape(branches[k], captures, results[k], &known);
        bool failed = status != NULL;
        kelp_status_free(status);
        if (failed || !known)
            return false;
    }
    for (int32_t i = 0; i < args->output_count; i++) {
        const kelp_tensor *a = &results[0][i], *b = &results[1][i];
        if (args->outputs[i] != NULL &&
            (a->dtype != b->dtype || a->dtype == KELP_LIST || a->dtype == KELP_STRING ||
             a->rank != b->rank ||
             (a->rank > 0 && memcmp(a->shape, b->shape, (size_t)a->rank * sizeof *a->shape) != 0)))
            return false;
    }
    return true;
}

static kelp_status *reshape_both(kelp_op_args *args, bool *out_known) {
    kelp_body *branches[2];
    kelp_tensor *results[2] = {NULL, NULL};
    size_t sizes[2];
    kelp_status *status = NULL;
    kelp_allocator allocator = kelp_op_env_allocator(args->env);
    for (int k = 0; k < 2; k++)
        KELP_TRY(find_branch(args, k == 1, &branches[k]));
    for (int k = 0; status == NULL && k < 2; k++) {
        sizes[k] = kelp_block_output_count(branches[k]->block) + 1;
        status = kelp_alloc_zero(allocator, sizes[k], sizeof(kelp_tensor), (void **)&results[k]);
    }
    *out_known = status == NULL && common_shapes(args, branches, results);
    for (int32_t i = 0; *out_known && status == NULL && i < args->output_count; i++)
        if (args->outputs[i] != NULL)
            status = kelp_tensor_init(args->outputs[i], results[0][i].dtype, results[0][i].rank,
                                      results[0][i].shape, NULL);
    for (int k = 0; k < 2; k++)
        if (results[k] != NULL)
            kelp_free(allocator, results[k], sizes[k] * sizeof(kelp_tensor));
    return status;
}

/* Runs the branch. With `placed`, the outputs have memory and the branch writes to it; otherwise
 * the outputs borrow the memory of the results. */
static kelp_status *run(kelp_op_args *args, bool placed) {
    bool condition = false;
    kelp_body *branch = NULL;
    KELP_TRY(kelp_control_bool(args->node, args->inputs[0], &condition));
    KELP_TRY(find_branch(args, condition, &branch));
    size_t count = kelp_block_output_count(branch->block);
    kelp_tensor *results = kelp_op_env_alloc(args->env, (count + 1) * sizeof *results);
    if (results == NULL)
        return kelp_status_oom();
    KELP_ASSERT(count >= (size_t)args->output_count);
    memset(results, 0, (count + 1) * sizeof *results);
    for (int32_t i = 0; placed && i < args->output_count; i++)
        if (args->outputs[i] != NULL)
            results[i] = *args->outputs[i];
    KELP_TRY(kelp_body_run(branch, args->inputs + kelp_node_own_inputs(args->node), results));
    for (int32_t i = 0; !placed && i < args->output_count; i++)
        if (args->outputs[i] != NULL)
            *args->outputs[i] = results[i];
    return NULL;
}

static kelp_status *if_reshape(const void *state, kelp_op_args *args) {
    (void)state;
    KELP_TRY(kelp_ops_check_inputs(args, 1));
    if (kelp_control_has_data(args)) {
        args->placed = true;
        return run(args, false);
    }
    bool known = false;
    KELP_TRY(reshape_both(args, &known));
    args->deferred = !known;
    return NULL;
}

static kelp_status *if_invoke(const void *state, kelp_op_args *args) {
    (void)state;
    return run(args, true);
}

const kelp_op_kernel kelp_op_If = {.struct_size = sizeof(kelp_op_kernel),
                                   .flags = KELP_OP_IMPURE | KELP_OP_LISTS,
                                   .reshape = if_reshape,
                                   .invoke = if_invoke};
