/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Types and shapes of what the file leaves out, one pass in order. What is declared wins; kernels check the real shapes anyway, so that an
 * operator unknown here costs a fusion at most.
 */
#include "graph/infer.h"

#include <string.h>

/* Operators whose result has another type than their first input. */
static kelp_dtype output_dtype(const kelp_node *node, size_t index) {
    static const char *const to_bool[] = {"Equal", "Greater", "Less", "GreaterOrEqual",
                                          "LessOrEqual", "And", "Or", "Xor", "Not", "IsNaN",
                                          "IsInf"};
    static const char *const to_i64[] = {"Shape", "Size", "NonZero", "ArgMax", "ArgMin"};
    for (size_t i = 0; i < sizeof to_bool / sizeof to_bool[0]; i++)
        if (strcmp(node->op_type, to_bool[i]) == 0)
            return KELP_BOOL;
    for (size_t i = 0; i < sizeof to_i64 / sizeof to_i64[0]; i++)
        if (strcmp(node->op_type, to_i64[i]) == 0)
            return KELP_I64;
    if (strcmp(node->op_type, "Cast") == 0)
        return (kelp_dtype)kelp_node_attr_i64(node, "to", 0);
    if (strcmp(node->op_type, "TopK") == 0 && index == 1)
        return KELP_I64;
    if (strcmp(node->op_type, "ConstantOfShape") == 0) {
        const kelp_tensor *value = kelp_node_attr_tensor(node, "value");
        return value != NULL ? value->dtype : KELP_F32;
    }
    static const char *const others[] = {"If",           "Loop",          "Scan",
                                         "OneHot",       "QuantizeLinear", "DequantizeLinear",
                                         "DynamicQuantizeLinear", "MatMulInteger", "ConvInteger",
                                         "EyeLike",      "RandomNormal",  "RandomUniform",
                                         "Multinomial",  "Bernoulli",     "SequenceAt",
                                         "CastLike",     "BitCast",       "SequenceConstruct",
                                         "MelWeightMatrix", "QLinearMatMul", "QLinearConv",
                                         "Unique",       "Dropout",       "MaxPool"};
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++)
        if (strcmp(node->op_type, others[i]) == 0)
            return index == 0 && i >= sizeof others / sizeof others[0] - 3 && node->inputs[0] != NULL
                       ? node->inputs[0]->dtype
                       : KELP_DTYPE_INVALID;
    size_t first = strcmp(node->op_type, "Where") == 0 ? 1 : 0;
    return node->input_count > first && node->inputs[first] != NULL ? node->inputs[first]->dtype
                                                                    : KELP_DTYPE_INVALID;
}

static void take_shape(kelp_value *value, const kelp_dims *dims) {
    if (value->rank < 0) {
        value->rank = dims->rank;
        for (int32_t i = 0; i < dims->rank; i++) {
            value->shape[i] = dims->shape[i];
            value->symbols[i] = dims->symbols[i];
        }
        return;
    }
    for (int32_t i = 0; value->rank == dims->rank && i < dims->rank; i++)
        if (value->shape[i] < 0) {
            /* a fixed extent says more than an open one, a name more than none */
            value->shape[i] = dims->shape[i];
            if (value->symbols[i] == NULL)
                value->symbols[i] = dims->symbols[i];
        }
}

static bool is_sequence_op(const kelp_node *node) {
    return strstr(node->op_type, "Sequence") != NULL || strstr(node->op_type, "Optional") != NULL;
}

kelp_status *kelp_block_infer(kelp_block *block) {
    for (size_t n = 0; n < block->node_count; n++) {
        kelp_node *node = block->nodes[n];
        if (*node->domain != '\0' || is_sequence_op(node))
            continue;
        for (size_t i = 0; i < node->output_count; i++) {
            kelp_value *value = node->outputs[i];
            if (value == NULL || value->dtype != KELP_DTYPE_INVALID)
                continue;
            value->dtype = output_dtype(node, i);
            if (value->dtype != KELP_DTYPE_INVALID && value->kind == KELP_VALUE_UNKNOWN)
                value->kind = KELP_VALUE_TENSOR;
        }
        kelp_infer_fn fn = kelp_infer_find(node->op_type);
        kelp_dims dims = {.rank = -1};
        if (fn != NULL && node->output_count > 0 && node->outputs[0] != NULL && fn(node, &dims))
            take_shape(node->outputs[0], &dims);
    }
    return NULL;
}
