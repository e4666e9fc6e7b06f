/* SPDX-License-Identifier: Apache-2.0 */
/*
 * If and Loop over subgraphs, which run node by node with whatever backend covers each. Results
 * live in the context's memory of this invoke. Source: ONNX operator specification, If and Loop
 * (versions 1 to 25).
 */
#include "ops/control/control.h"

#include "opset/bridge.h"
#include "ops/sequence/sequence.h"

#include <string.h>

/* Loops longer than this are refused rather than filling memory one iteration at a time. */
#define LOOP_MAX_ITERATIONS ((int64_t)1 << 24)

static kelp_status *read_bool(const kelp_node *node, const kelp_tensor *tensor, bool *out) {
    if (tensor->dtype != KELP_BOOL || kelp_tensor_elements(tensor) != 1)
        return KELP_ERROR(KELP_INVALID_ARGUMENT,
                          "the condition of node '%s' (%s) must be one bool: found %lld of %s",
                          kelp_node_name(node), kelp_node_op_type(node),
                          (long long)kelp_tensor_elements(tensor), kelp_dtype_name(tensor->dtype));
    *out = *(const uint8_t *)tensor->data != 0;
    return NULL;
}

static kelp_status *run_if(const kelp_opset_registry *registry, const kelp_op_env *env,
                           const kelp_node *node, const kelp_tensor *const *inputs,
                           kelp_tensor *outputs) {
    bool condition = false;
    KELP_TRY(read_bool(node, inputs[0], &condition));
    const char *name = condition ? "then_branch" : "else_branch";
    const kelp_block *branch = kelp_node_attr_block(node, name);
    if (branch == NULL || kelp_block_output_count(branch) < kelp_node_output_count(node))
        return KELP_ERROR(KELP_INVALID_ARGUMENT, "node '%s' (If): %s %s", kelp_node_name(node),
                          name, branch ? "has fewer outputs than the node" : "is missing");
    kelp_tensor *results =
        kelp_op_env_alloc(env, (kelp_block_output_count(branch) + 1) * sizeof *results);
    if (results == NULL)
        return kelp_status_oom();
    kelp_captures captures = kelp_node_captures(node, inputs);
    KELP_TRY(kelp_opset_walk_block(registry, env, branch, &captures, NULL, results));
    for (size_t i = 0; i < kelp_node_output_count(node); i++)
        outputs[i] = results[i];
    return NULL;
}

/* ---- Loop ---- */
typedef struct loop {
    const kelp_op_env *env;
    const kelp_node *node;
    const kelp_block *body;
    size_t carried; /* values that go round */
    size_t scans;   /* outputs that are stacked */
    kelp_tensor *state;
    kelp_tensor **stacks; /* per scan output: its tensors so far */
    int64_t capacity, count;
} loop;

static kelp_status *push_scans(loop *l, const kelp_tensor *results) {
    if (l->count == l->capacity) {
        int64_t grown = l->capacity ? l->capacity * 2 : 16;
        for (size_t i = 0; i < l->scans; i++) {
            kelp_tensor *stack = kelp_op_env_alloc(l->env, (size_t)grown * sizeof *stack);
            if (stack == NULL)
                return kelp_status_oom();
            if (l->count > 0)
                memcpy(stack, l->stacks[i], (size_t)l->count * sizeof *stack);
            l->stacks[i] = stack;
        }
        l->capacity = grown;
    }
    for (size_t i = 0; i < l->scans; i++)
        l->stacks[i][l->count] = results[1 + l->carried + i];
    l->count++;
    return NULL;
}

static kelp_status *stack_scan(const loop *l, size_t index, kelp_tensor *out) {
    int64_t shape[KELP_MAX_RANK] = {l->count};
    const kelp_value *declared = kelp_block_output(l->body, 1 + l->carried + index);
    kelp_dtype dtype = kelp_value_dtype(declared);
    int32_t rank = kelp_value_rank(declared) < 0 ? 0 : kelp_value_rank(declared);
    for (int32_t i = 0; i < rank && i + 1 < KELP_MAX_RANK; i++) {
        int64_t extent = kelp_value_dim(declared, i, NULL);
        shape[i + 1] = extent < 0 ? 0 : extent;
    }
    if (l->count > 0) {
        const kelp_tensor *first = &l->stacks[index][0];
        dtype = first->dtype;
        rank = first->rank;
        if (rank + 1 > KELP_MAX_RANK)
            return KELP_ERROR(KELP_INVALID_ARGUMENT,
                              "node '%s' (Loop): output %zu has too many axes",
                              kelp_node_name(l->node), l->carried + index);
        memcpy(shape + 1, first->shape, (size_t)rank * sizeof *shape);
    }
    KELP_TRY(kelp_tensor_init(out, dtype, rank + 1, shape, NULL));
    size_t bytes = kelp_tensor_bytes(out);
    out->data = kelp_op_env_alloc(l->env, bytes ? bytes : 1);
    if (out->data == NULL)
        return kelp_status_oom();
    size_t each = l->count > 0 ? bytes / (size_t)l->count : 0;
    for (int64_t i = 0; i < l->count; i++) {
        const kelp_tensor *item = &l->stacks[index][i];
        if (kelp_tensor_bytes(item) != each || item->rank != rank)
            return KELP_ERROR(KELP_INVALID_ARGUMENT,
                              "node '%s' (Loop): output %zu changes its shape in iteration %lld",
                              kelp_node_name(l->node), l->carried + index, (long long)i);
        if (each > 0)
            memcpy((char *)out->data + (size_t)i * each, item->data, each);
    }
    return NULL;
}

static kelp_status *iterate(loop *l, const kelp_opset_registry *registry,
                            const kelp_captures *captures, int64_t limit, bool condition) {
    size_t input_count = 2 + l->carried, output_count = 1 + l->carried + l->scans;
    const kelp_tensor **in = kelp_op_env_alloc(l->env, input_count * sizeof *in);
    if (in == NULL)
        return kelp_status_oom();
    for (int64_t n = 0; n < limit && condition; n++) {
        if (kelp_op_env_cancelled(l->env))
            return KELP_ERROR(KELP_CANCELLED, "node '%s' (Loop) was cancelled",
                              kelp_node_name(l->node));
        if (n >= LOOP_MAX_ITERATIONS)
            return KELP_ERROR(KELP_RESOURCE_EXHAUSTED,
                              "node '%s' (Loop) goes on after %lld iterations",
                              kelp_node_name(l->node), (long long)LOOP_MAX_ITERATIONS);
        struct {
            int64_t number;
            uint8_t condition;
            kelp_tensor tensors[2];
        } *head = kelp_op_env_alloc(l->env, sizeof *head);
        kelp_tensor *results = kelp_op_env_alloc(l->env, output_count * sizeof *results);
        if (head == NULL || results == NULL)
            return kelp_status_oom();
        head->number = n;
        head->condition = 1;
        KELP_TRY(kelp_tensor_init(&head->tensors[0], KELP_I64, 0, NULL, &head->number));
        KELP_TRY(kelp_tensor_init(&head->tensors[1], KELP_BOOL, 0, NULL, &head->condition));
        in[0] = &head->tensors[0];
        in[1] = &head->tensors[1];
        for (size_t i = 0; i < l->carried; i++)
            in[2 + i] = &l->state[i];
        KELP_TRY(kelp_opset_walk_block(registry, l->env, l->body, captures, in, results));
        KELP_TRY(read_bool(l->node, &results[0], &condition));
        for (size_t i = 0; i < l->carried; i++)
            l->state[i] = results[1 + i];
        KELP_TRY(push_scans(l, results));
    }
    return NULL;
}

static kelp_status *run_loop(const kelp_opset_registry *registry, const kelp_op_env *env,
                             const kelp_node *node, const kelp_tensor *const *inputs,
                             kelp_tensor *outputs) {
    size_t own_inputs =
        (size_t)kelp_node_attr_i64(node, "kelp.captures", (int64_t)kelp_node_input_count(node));
    size_t carried = own_inputs < 2 ? 0 : own_inputs - 2;
    const kelp_block *body = kelp_node_attr_block(node, "body");
    if (body == NULL ||
        kelp_block_input_count(body) != 2 + carried + kelp_node_input_count(node) - own_inputs ||
        kelp_block_output_count(body) < 1 + carried)
        return KELP_ERROR(KELP_INVALID_ARGUMENT,
                          "node '%s' (Loop): its body must take %zu inputs and give at least %zu "
                          "outputs",
                          kelp_node_name(node), 2 + carried, 1 + carried);
    loop l = {.env = env, .node = node, .body = body, .carried = carried};
    l.scans = kelp_block_output_count(body) - 1 - carried;
    l.state = kelp_op_env_alloc(env, (carried + 1) * sizeof *l.state);
    l.stacks = kelp_op_env_alloc(env, (l.scans + 1) * sizeof *l.stacks);
    if (l.state == NULL || l.stacks == NULL)
        return kelp_status_oom();
    for (size_t i = 0; i < carried; i++)
        l.state[i] = *inputs[2 + i];
    int64_t limit = INT64_MAX;
    bool condition = true;
    if (own_inputs > 0 && inputs[0] != NULL) {
        memcpy(&limit, inputs[0]->data, sizeof limit);
    }
    if (own_inputs > 1 && inputs[1] != NULL)
        KELP_TRY(read_bool(node, inputs[1], &condition));
    kelp_captures captures = kelp_node_captures(node, inputs);
    KELP_TRY(iterate(&l, registry, &captures, limit, condition));
    size_t wanted = kelp_node_output_count(node);
    for (size_t i = 0; i < wanted && i < carried; i++)
        outputs[i] = l.state[i];
    for (size_t i = carried; i < wanted && i < carried + l.scans; i++)
        if (kelp_node_output(node, i) != NULL)
            KELP_TRY(stack_scan(&l, i - carried, &outputs[i]));
    return NULL;
}

kelp_status *kelp_control_dispatch(void *self, const kelp_op_env *env, const kelp_node *node,
                                   const kelp_tensor *const *inputs, kelp_tensor *outputs,
                                   kelp_completion *completion, kelp_dispatch_result *out_result) {
    (void)completion;
    *out_result = KELP_DISPATCH_IMMEDIATE;
    if (strcmp(kelp_node_op_type(node), "If") == 0)
        return run_if(self, env, node, inputs, outputs);
    if (strcmp(kelp_node_op_type(node), "Loop") == 0)
        return run_loop(self, env, node, inputs, outputs);
    if (strcmp(kelp_node_op_type(node), "FlexAttention") == 0)
        return kelp_control_flex(self, env, node, inputs, outputs);
    if (strcmp(kelp_node_op_type(node), "Scan") == 0)
        return kelp_control_scan(self, env, node, inputs, outputs);
    if (strcmp(kelp_node_op_type(node), "Gradient") == 0) /* of the main graph it is written out */
        return KELP_ERROR(KELP_UNIMPLEMENTED,
                          "node '%s' (Gradient) stands in a subgraph: only those of the main graph "
                          "are carried out",
                          kelp_node_name(node));
    bool found = false;
    KELP_TRY(kelp_list_dispatch(self, env, node, inputs, outputs, &found));
    if (found)
        return NULL;
    return KELP_ERROR(KELP_INTERNAL, "operator '%s' is not dispatched by the cpu backend",
                      kelp_node_op_type(node));
}
