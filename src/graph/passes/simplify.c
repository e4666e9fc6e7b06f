/* SPDX-License-Identifier: Apache-2.0 */
/* Nodes that say nothing: Identity, Dropout at inference, Cast to the type that a value has
 * already, Transpose that moves nothing. */
#include "graph/passes/passes.h"

#include <string.h>

static bool is_noop_transpose(const kelp_node *node) {
    const int64_t *perm = NULL;
    size_t count = kelp_node_attr_i64s(node, "perm", &perm);
    for (size_t i = 0; i < count; i++)
        if (perm[i] != (int64_t)i)
            return false;
    return count > 0;
}

static bool says_nothing(const kelp_node *node) {
    if (*node->domain != '\0' || node->input_count == 0 || node->inputs[0] == NULL)
        return false;
    if (strcmp(node->op_type, "Identity") == 0)
        return true;
    if (strcmp(node->op_type, "Transpose") == 0)
        return is_noop_transpose(node);
    if (strcmp(node->op_type, "Cast") == 0)
        return node->inputs[0]->dtype != KELP_DTYPE_INVALID &&
               kelp_node_attr_i64(node, "to", 0) == (int64_t)node->inputs[0]->dtype;
    if (strcmp(node->op_type, "Dropout") == 0)
        /* with a mask output, or a training switch, it has something to say */
        return (node->output_count < 2 || node->outputs[1] == NULL) &&
               (node->input_count < 3 || node->inputs[2] == NULL) &&
               (node->opset_version >= 7 || kelp_node_attr_i64(node, "is_test", 0) != 0);
    return false;
}

kelp_status *kelp_pass_simplify(kelp_block *block) {
    for (size_t i = 0; i < block->node_count; i++) {
        kelp_node *node = block->nodes[i];
        if (node->removed || node->output_count == 0 || node->outputs[0] == NULL ||
            !says_nothing(node))
            continue;
        kelp_value *input = node->inputs[0], *output = node->outputs[0];
        /* an output keeps a producer of its own: an input or a constant cannot take over its name
         */
        if (output->is_output && (input->is_output || input->producer == NULL))
            continue;
        kelp_block_replace_uses(block, output, input);
        node->removed = true;
    }
    return NULL;
}
