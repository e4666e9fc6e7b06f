/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Replaces GEMMs and convolutions with constant weights by operators that round their operands to
 * bfloat16. Only the operator changes; attributes and inputs stay the same.
 */
#include "base/assert.h"
#include "graph/passes/passes.h"

#include <string.h>

/* Smaller GEMMs do not become faster, because packing and the epilogue dominate. The limit for
 * convolutions is lower: their weights are used at every position. */
#define MIN_WEIGHTS 1024
#define MIN_CONV_WEIGHTS 256
#define MIN_DIM 8

static bool has_operands(const kelp_node *node) {
    return node->input_count >= 2 && node->output_count >= 1 && node->inputs[0] != NULL &&
           node->inputs[1] != NULL && node->outputs[0] != NULL;
}

static const kelp_tensor *float_weights(const kelp_node *node, int64_t min_elements) {
    const kelp_tensor *weights = has_operands(node) ? node->inputs[1]->constant : NULL;
    return weights != NULL && weights->dtype == KELP_F32 && weights->data != NULL &&
                   kelp_tensor_elements(weights) >= min_elements
               ? weights
               : NULL;
}

/* Returns true when C is a bias: one value per column. */
static bool is_row(const kelp_value *c, int64_t n) {
    int64_t elements = 1;
    if (c->rank < 1 || c->rank > 2 || c->shape[c->rank - 1] != n)
        return false;
    for (int32_t i = 0; i < c->rank; i++)
        elements *= c->shape[i] < 0 ? 0 : c->shape[i];
    return elements == n;
}

static bool is_plain_gemm(const kelp_node *node, const kelp_tensor *weights) {
    bool transposed = kelp_node_attr_i64(node, "transB", 0) != 0;
    const kelp_value *c = node->input_count > 2 ? node->inputs[2] : NULL;
    return kelp_node_attr_i64(node, "transA", 0) == 0 &&
           kelp_node_attr_f32(node, "alpha", 1.0f) == 1.0f &&
           (c == NULL || (kelp_node_attr_f32(node, "beta", 1.0f) == 1.0f &&
                          is_row(c, weights->shape[transposed ? 0 : 1])));
}

static bool supports_gemm(const kelp_node *node) {
    const kelp_tensor *weights = float_weights(node, MIN_WEIGHTS);
    if (weights == NULL || weights->rank != 2 || weights->shape[0] < MIN_DIM ||
        weights->shape[1] < MIN_DIM)
        return false;
    return node->op == KELP_OP(MatMul) || node->op == KELP_OP_KELP(MatMulBias) ||
           (node->op == KELP_OP(Gemm) && is_plain_gemm(node, weights));
}

/* Depthwise convolutions and convolutions with three spatial axes have no bfloat16 kernel. */
static bool supports_conv(const kelp_node *node) {
    const kelp_tensor *weights = float_weights(node, MIN_CONV_WEIGHTS);
    int64_t groups = kelp_node_attr_i64(node, "group", 1);
    if (weights == NULL || (weights->rank != 3 && weights->rank != 4) || groups < 1 ||
        weights->shape[1] < 2 || weights->shape[0] / groups < 4)
        return false;
    return node->op == KELP_OP(Conv) || node->op == KELP_OP_KELP(ConvAct);
}

/* ---- intermediate tensors ---- */
/* bfloat16 tensors are stored channels last, and kernels multiply them by panels of output
 * channels. Grouped convolutions, and numbers of channels that leave panels mostly empty, are
 * faster channels first. */
#define MIN_CHANNELS 16
static bool prefers_nhwc(const kelp_node *node) {
    const kelp_tensor *weights = node->inputs[1]->constant;
    KELP_ASSERT(weights != NULL);
    int64_t count = weights->shape[0], panels = (count + 31) / 32 * 32;
    return node->op == KELP_OP_KELP(ConvBf16) && kelp_node_attr_i64(node, "group", 1) == 1 &&
           count >= MIN_CHANNELS && count % 2 == 0 && (count % 32 == 16 || count * 4 >= panels * 3);
}

typedef bool (*accepts_fn)(const kelp_block *block, const kelp_node *node, size_t input);

/* Returns true when the input is X or the residual of a convolution that reads channels last. */
static bool conv_accepts(const kelp_block *block, const kelp_node *node, size_t input) {
    (void)block;
    return node->op == KELP_OP_KELP(ConvBf16) && (input == 0 || input == 3) && prefers_nhwc(node);
}

/* Returns true when `accepts` accepts every use of the value. */
static bool only_for(const kelp_block *block, const kelp_value *value, accepts_fn accepts) {
    uint32_t uses = 0;
    if (value->is_output || value->use_count == 0)
        return false;
    for (size_t n = 0; n < block->node_count; n++) {
        const kelp_node *node = block->nodes[n];
        for (size_t i = 0; i < node->input_count; i++)
            if (node->inputs[i] == value) {
                if (!accepts(block, node, i))
                    return false;
                uses++;
            }
    }
    return uses == value->use_count;
}

/* Accepts also X of a MaxPool whose output only convolutions read. */
static bool pool_or_conv_accepts(const kelp_block *block, const kelp_node *node, size_t input) {
    return conv_accepts(block, node, input) ||
           (node->op == KELP_OP(MaxPool) && (node->output_count == 1 || node->outputs[1] == NULL) &&
            only_for(block, node->outputs[0], conv_accepts));
}

static void pool_in_bf16(const kelp_block *block, const kelp_value *value) {
    for (size_t n = 0; n < block->node_count; n++) {
        kelp_node *node = block->nodes[n];
        if (node->op != KELP_OP(MaxPool) || node->inputs[0] != value)
            continue;
        node->op = KELP_OP_KELP(MaxPoolBf16);
        node->opset_version = 1;
        node->outputs[0]->dtype = KELP_BF16;
    }
}

/* Rounds a value where it is produced if all its readers would round it: half the bytes are moved.
 * Relies on topological order. */
kelp_status *kelp_pass_bf16_values(kelp_block *block) {
    for (size_t i = 0; i < block->node_count; i++) {
        kelp_node *node = block->nodes[i];
        if (node->op != KELP_OP_KELP(ConvBf16) || !prefers_nhwc(node) ||
            !only_for(block, node->outputs[0], pool_or_conv_accepts))
            continue;
        const kelp_value *residual = node->input_count > 3 ? node->inputs[3] : NULL;
        if (residual != NULL && residual->dtype != KELP_BF16)
            continue;
        KELP_TRY(kelp_node_set_i64(node, "half", 1));
        node->outputs[0]->dtype = KELP_BF16;
        pool_in_bf16(block, node->outputs[0]);
    }
    return NULL;
}

/* ---- operators ---- */
/* Returns the operator that replaces the node's, or NULL. */
static const kelp_operator *rounded(const kelp_node *node) {
    if (node->op == KELP_OP_KELP(Attention))
        return KELP_OP_KELP(AttentionBf16);
    return supports_gemm(node)   ? KELP_OP_KELP(MatMulBf16)
           : supports_conv(node) ? KELP_OP_KELP(ConvBf16)
                                 : NULL;
}

kelp_status *kelp_pass_bf16(kelp_block *block) {
    for (size_t i = 0; i < block->node_count; i++) {
        kelp_node *node = block->nodes[i];
        const kelp_operator *op = rounded(node);
        if (node->removed || op == NULL)
            continue;
        node->op = op;
        node->opset_version = 1;
    }
    return NULL;
}
