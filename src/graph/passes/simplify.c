/* SPDX-License-Identifier: Apache-2.0 */
/* Removes nodes without effect: Identity, Dropout in inference mode, Cast to the same type,
 * Transpose that keeps the order, multiplication by one. */
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

/* Dropout has an effect when its mask is used or training mode is not known to be off. */
static bool is_noop_dropout(const kelp_node *node) {
    const kelp_value *mask = node->output_count > 1 ? node->outputs[1] : NULL;
    const kelp_value *training = node->input_count > 2 ? node->inputs[2] : NULL;
    if (mask != NULL && (mask->use_count > 0 || mask->is_output))
        return false;
    if (node->opset_version < 7)
        return kelp_node_attr_i64(node, "is_test", 0) != 0;
    if (training == NULL || node->opset_version < 12)
        return true;
    const kelp_tensor *off = training->constant;
    return off != NULL && off->dtype == KELP_BOOL && kelp_tensor_elements(off) == 1 &&
           *(const uint8_t *)off->data == 0;
}

/* Returns the other operand of a multiplication or division by one, or NULL. */
static kelp_value *times_one(const kelp_node *node) {
    bool mul = node->op == KELP_OP(Mul), div = node->op == KELP_OP(Div);
    if ((!mul && !div) || node->input_count != 2 || node->opset_version < 7)
        return NULL;
    for (int k = 0; k < (mul ? 2 : 1); k++) {
        kelp_value *x = node->inputs[k], *one = node->inputs[1 - k];
        double number;
        if (x != NULL && x->dtype == KELP_F32 && kelp_match_scalar(one, &number) && number == 1.0 &&
            one->constant->dtype == KELP_F32 && x->rank >= one->constant->rank)
            return x;
    }
    return NULL;
}

static bool is_noop(const kelp_node *node) {
    if (node->input_count == 0 || node->inputs[0] == NULL)
        return false;
    if (node->op == KELP_OP(Identity))
        return true;
    if (node->op == KELP_OP(Transpose))
        return is_noop_transpose(node);
    if (node->op == KELP_OP(Cast))
        return node->inputs[0]->dtype != KELP_DTYPE_INVALID &&
               kelp_node_attr_i64(node, "to", 0) == (int64_t)node->inputs[0]->dtype;
    if (node->op == KELP_OP(Dropout))
        return is_noop_dropout(node);
    return false;
}

kelp_status *kelp_pass_simplify(kelp_block *block) {
    for (size_t i = 0; i < block->node_count; i++) {
        kelp_node *node = block->nodes[i];
        if (node->removed || node->output_count == 0 || node->outputs[0] == NULL)
            continue;
        kelp_value *input = is_noop(node) ? node->inputs[0] : times_one(node);
        kelp_value *output = node->outputs[0];
        if (input == NULL)
            continue;
        /* an output needs a producer: an input or constant cannot have its name */
        if (output->is_output && (input->is_output || input->producer == NULL))
            continue;
        kelp_block_replace_uses(block, output, input);
        node->removed = true;
    }
    return NULL;
}
