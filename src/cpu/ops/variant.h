/* SPDX-License-Identifier: Apache-2.0 */
/* Variants of kernels that implement several operators: which of them a node is. The values are in
 * the column `variant` of operator/operators.inc. */
#ifndef KELP_CPU_OPS_VARIANT_H_
#define KELP_CPU_OPS_VARIANT_H_

#include <kelp/graph.h>

/* A kernel's variant; NONE for the plain operator. */
typedef enum kelp_op_variant {
    KELP_VARIANT_NONE,
    /* recurrent networks */
    KELP_VARIANT_RNN,
    KELP_VARIANT_GRU,
    KELP_VARIANT_LSTM,
    KELP_VARIANT_LSTM_INT8, /* 8-bit weights, transposed: [directions, inputs, gates * hidden] */
    /* convolutions and matrix multiplications of 8-bit operands, by the order of their inputs */
    KELP_VARIANT_INT8_INTEGER,
    KELP_VARIANT_INT8_LINEAR,
    KELP_VARIANT_INT8_FUSED,
    KELP_VARIANT_INT8_TO_FLOAT,
    KELP_VARIANT_INT8_DYNAMIC,
    KELP_VARIANT_INT8_GEMM,
    KELP_VARIANT_INT8_ATTENTION,
    /* fused operators that round operands to bfloat16 */
    KELP_VARIANT_BF16,
    /* others */
    KELP_VARIANT_CATEGORY_MAPPER,
    KELP_VARIANT_CHANNEL_SLOPE, /* PRelu: a slope of rank 1 is one value for each channel */
    KELP_VARIANT_DEPTH_TO_SPACE,
    KELP_VARIANT_FUSED_ACT,   /* attribute 'activation', and input 3 is added before it */
    KELP_VARIANT_FUSED_MS,    /* the same with the names of activations of com.microsoft */
    KELP_VARIANT_FUSED_HEADS, /* the mask broadcasts along keys as the fused Add did */
    KELP_VARIANT_TREE_ENSEMBLE,
    /* special tokens and word ends of byte-level BPE; NONE: those of GPT-2 */
    KELP_VARIANT_TOKENS_CLIP,
    KELP_VARIANT_TOKENS_ROBERTA,
    KELP_VARIANT_TOKENS_SPM
} kelp_op_variant;

/* Returns the variant of the node's operator; NONE for operators that are not in the list. */
kelp_op_variant kelp_op_variant_of(const kelp_node *node);

#endif
