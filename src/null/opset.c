/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The null provider for parts of models: takes every node, computes nothing, and answers with
 * zeros of the shapes that the model declares. It shows what a provider of subgraphs needs, and
 * what the way to one costs. An open extent takes that of an input's axis of the same name, else 1.
 */
#include "null/provider.h"

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

static int64_t open_extent(const kelp_block *body, const kelp_tensor *const *inputs,
                           const char *symbol) {
    for (size_t i = 0; symbol != NULL && i < kelp_block_input_count(body); i++) {
        const kelp_value *value = kelp_block_input(body, i);
        for (int32_t axis = 0; axis < kelp_value_rank(value) && axis < inputs[i]->rank; axis++) {
            const char *name = NULL;
            (void)kelp_value_dim(value, axis, &name);
            if (name != NULL && strcmp(name, symbol) == 0)
                return inputs[i]->shape[axis];
        }
    }
    return 1;
}

static kelp_status *execute_graph(void *self, const kelp_op_env *env, const kelp_block *body,
                                  const kelp_tensor *const *inputs, kelp_tensor *outputs) {
    (void)self;
    for (size_t i = 0; i < kelp_block_output_count(body); i++) {
        const kelp_value *value = kelp_block_output(body, i);
        int64_t shape[KELP_MAX_RANK];
        for (int32_t axis = 0; axis < kelp_value_rank(value); axis++) {
            const char *symbol = NULL;
            shape[axis] = kelp_value_dim(value, axis, &symbol);
            if (shape[axis] < 0)
                shape[axis] = open_extent(body, inputs, symbol);
        }
        KELP_TRY(kelp_tensor_init(&outputs[i], kelp_value_dtype(value), kelp_value_rank(value),
                                  shape, NULL));
        size_t bytes = kelp_tensor_bytes(&outputs[i]);
        outputs[i].data = kelp_op_env_alloc(env, bytes > 0 ? bytes : 1);
        if (outputs[i].data == NULL)
            return kelp_status_oom();
        memset(outputs[i].data, 0, bytes); /* of strings: empty ones */
    }
    return NULL;
}

const kelp_opset_backend kelp_null_operators = {.abi_version = KELP_OPSET_ABI_VERSION,
                                                .struct_size = sizeof(kelp_opset_backend),
                                                .name = "null",
                                                .execute_graph = execute_graph,
                                                .flags = KELP_OPSET_BY_NAME,
                                                .covers = covers};
