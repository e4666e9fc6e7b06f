/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The null provider for operators: covers every node in subgraphs and returns zeros of the shapes
 * that the model declares. It shows what a provider of subgraphs must implement, and the cost of
 * dispatch to it.
 */
#include "null/provider.h"
#include "null/shape.h"

#include <string.h>

static bool is_tensor(const kelp_value *value) {
    return value == NULL ||
           (kelp_value_kind_of(value) == KELP_VALUE_TENSOR &&
            kelp_dtype_bits(kelp_value_dtype(value)) > 0 && kelp_value_rank(value) >= 0);
}

static bool covers(void *self, const kelp_node *node) {
    (void)self;
    for (size_t i = 0; i < kelp_node_output_count(node); i++)
        if (!is_tensor(kelp_node_output(node, i)))
            return false;
    return true;
}

static kelp_status *zeros(const kelp_op_env *env, kelp_tensor *inout) {
    size_t bytes = kelp_tensor_bytes(inout);
    inout->data = kelp_op_env_alloc(env, bytes > 0 ? bytes : 1);
    if (inout->data == NULL)
        return kelp_status_oom();
    memset(inout->data, 0, bytes); /* strings become empty */
    return NULL;
}

static kelp_status *execute_graph(void *self, const kelp_op_env *env, const kelp_block *body,
                                  const kelp_tensor *const *inputs, kelp_tensor *outputs) {
    size_t count = kelp_block_input_count(body);
    (void)self;
    kelp_io_info *infos = kelp_op_env_alloc(env, (count + 1) * sizeof *infos);
    kelp_tensor *tensors = kelp_op_env_alloc(env, (count + 1) * sizeof *tensors);
    if (infos == NULL || tensors == NULL)
        return kelp_status_oom();
    for (size_t i = 0; i < count; i++) {
        infos[i] = (kelp_io_info){.name = NULL};
        kelp_null_describe(kelp_block_input(body, i), &infos[i]);
        tensors[i] = *inputs[i];
    }
    for (size_t i = 0; i < kelp_block_output_count(body); i++) {
        kelp_io_info output = {.name = NULL};
        kelp_null_describe(kelp_block_output(body, i), &output);
        KELP_TRY(kelp_null_output(&output, infos, tensors, count, &outputs[i]));
        KELP_TRY(zeros(env, &outputs[i]));
    }
    return NULL;
}

const kelp_opset_backend kelp_null_operators = {.abi_version = KELP_OPSET_ABI_VERSION,
                                                .struct_size = sizeof(kelp_opset_backend),
                                                .name = "null",
                                                .execute_graph = execute_graph,
                                                .flags = KELP_OPSET_BY_NAME,
                                                .covers = covers};
