/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Passes over an engine's graph. Each takes a block, keeps its meaning, and leaves use
 * counts fresh. Fused operators live in the domain "kelp", version 1; the CPU
 * provider says what each does.
 */
#ifndef KELP_GRAPH_PASSES_PASSES_H_
#define KELP_GRAPH_PASSES_PASSES_H_

#include "graph/ir.h"

/* All of them, in order, on the block and on those of its nodes. */
kelp_status *kelp_passes_run(kelp_block *block) KELP_MUST_USE;

/* Products and convolutions with constant weights → kelp::MatMulBf16, kelp::ConvBf16, in the block
 * and in those of its nodes; after all others. */
kelp_status *kelp_passes_run_bf16(kelp_block *block) KELP_MUST_USE;
kelp_status *kelp_pass_bf16(kelp_block *block) KELP_MUST_USE;
/* Conv + Add of a value of the same fixed shape (+ activation) → ConvAct with a residual. */
kelp_status *kelp_pass_residual(kelp_block *block) KELP_MUST_USE;
/* What ConvBf16 alone reads, also by way of maxima (→ kelp::MaxPoolBf16), is made as bfloat16,
 * pixel after pixel. */
kelp_status *kelp_pass_halves(kelp_block *block) KELP_MUST_USE;

/* Those that have to see constant weights of 8 bits: folding leaves their way to floats alone until
 * they have run. */
kelp_status *kelp_passes_run_quant(kelp_block *block) KELP_MUST_USE;

/* Values that subgraphs read from outside become inputs of the nodes that own them and of their
 * blocks. Not part of kelp_passes_run: the engine always needs it, once. */
kelp_status *kelp_pass_captures(kelp_block *block) KELP_MUST_USE;
/* Index of the node's first capture; the count of its inputs when it has none. */
size_t kelp_node_first_capture(const kelp_node *node);
/* Captures that have become constant are constants of the blocks, and no inputs any more. */
void kelp_node_share_constants(kelp_node *node);
/* Captures that no block uses go. Needs fresh use counts. */
void kelp_node_drop_captures(kelp_node *node);
/* Puts the nodes of `branch`, a block of the If `node` that stands for itself, in the node's
 * place; the node is removed (to be swept). */
kelp_status *kelp_node_take_branch(kelp_node *node, kelp_block *branch) KELP_MUST_USE;
/* ai.onnx.preview.training Gradient → the nodes that compute it. Nor is this one part of
 * kelp_passes_run. */
kelp_status *kelp_pass_gradient(kelp_block *block) KELP_MUST_USE;
/* x * 0.5 * (1 + erf(x / sqrt(2))), or its approximation by tanh, in the orders that exporters
 * write them → Gelu. */
kelp_status *kelp_pass_gelu(kelp_block *block) KELP_MUST_USE;
/* x times a gate of x → com.microsoft QuickGelu with alpha 1, HardSwish. */
kelp_status *kelp_pass_swish(kelp_block *block) KELP_MUST_USE;
/* MatMul of one-hot rows and constant weights → kelp::Lookup of rows, with what follows elementwise
 * done to the table. */
kelp_status *kelp_pass_lookup(kelp_block *block) KELP_MUST_USE;
/* (x - mean(x)) / sqrt(mean of its square + epsilon), times and plus constants →
 * LayerNormalization. */
kelp_status *kelp_pass_layer_norm(kelp_block *block) KELP_MUST_USE;
/* Softmax(Q·Kᵀ·scale + mask)·V between the head-splitting reshapes and transposes →
 * kelp::Attention. */
kelp_status *kelp_pass_attention(kelp_block *block) KELP_MUST_USE;
/* The same between heads that lie apart, repeated for groups of queries or not → Attention. */
kelp_status *kelp_pass_attention_heads(kelp_block *block) KELP_MUST_USE;
/* MatMul + constant bias (+ activation) → kelp::MatMulBias. */
kelp_status *kelp_pass_matmul(kelp_block *block) KELP_MUST_USE;
/* Add + LayerNormalization → kelp::SkipLayerNorm. */
kelp_status *kelp_pass_skip_norm(kelp_block *block) KELP_MUST_USE;
/* Mul and Add of constants, one for all or one a channel, + Conv → Conv of other weights. */
kelp_status *kelp_pass_scale(kelp_block *block) KELP_MUST_USE;
/* Conv + BatchNormalization, or Mul or Add of a constant a channel → Conv of other weights. */
kelp_status *kelp_pass_affine(kelp_block *block) KELP_MUST_USE;
/* Conv + activation → kelp::ConvAct. */
kelp_status *kelp_pass_conv(kelp_block *block) KELP_MUST_USE;
/* MatMul, Gemm or Conv between DequantizeLinear and QuantizeLinear → kelp::QMatMul, kelp::QConv. */
kelp_status *kelp_pass_quant(kelp_block *block) KELP_MUST_USE;
/* DynamicQuantizeLinear, MatMulInteger or ConvInteger, Cast, Mul → the same. */
kelp_status *kelp_pass_quant_dynamic(kelp_block *block) KELP_MUST_USE;
/* Large constant weights of 8 bits that floats are multiplied with stay so → kelp::WeightMatMul. */
kelp_status *kelp_pass_weights(kelp_block *block) KELP_MUST_USE;
/* Identity, Dropout, Cast to the same type, Transpose that moves nothing, products with one: nodes
 * that say nothing. */
kelp_status *kelp_pass_simplify(kelp_block *block) KELP_MUST_USE;

/* ---- helpers of passes ---- */
/* Asks `fuse` of each node with an output, in order. Where it was done dead nodes go, uses are
 * counted anew, and it is asked from the first node on: what is new may be fused further. */
kelp_status *kelp_pass_each(kelp_block *block,
                            kelp_status *(*fuse)(kelp_block *block, kelp_node *node,
                                                 bool *out_done)) KELP_MUST_USE;
/* The MatMul that makes `value`, as it is, or times or divided by a constant scalar, each used
 * once; *out_scale is 1, the scalar, or one by it. NULL when it is something else. */
kelp_node *kelp_match_scaled_product(kelp_value *value, double *out_scale);
/* true when `shares` is Softmax over the last of four axes, used once, of scores that `match`
 * takes: with what was added to them as *out_mask, one that `fits`, or NULL when nothing was. */
bool kelp_match_shares(kelp_value *shares, bool (*fits)(const kelp_value *mask),
                       bool (*match)(kelp_value *scores, void *userp), void *userp,
                       kelp_value **out_mask);
/* The node that produces `value`, when its operator is `op`; else NULL. */
kelp_node *kelp_match_producer(const kelp_value *value, const kelp_operator *op);
/* true when `value` is a constant of one float element; *out is it as double. */
bool kelp_match_scalar(const kelp_value *value, double *out);
/* true when it is a constant scalar within 1e-4 relative of `expected`. */
bool kelp_match_scalar_near(const kelp_value *value, double expected);
/* The constant integers of an int64/int32 value; false when it is none or longer than capacity. */
bool kelp_match_i64s(const kelp_value *value, int64_t *out, size_t capacity, size_t *out_count);
/* true when the node is Clip to [0, 6]. */
bool kelp_match_relu6(const kelp_node *node);
/* The name under which kelp::MatMulBias and kelp::ConvAct know the activation that a node is; NULL
 * when they do not. Its operand is its first input. */
const char *kelp_match_activation(const kelp_node *node);
/* A constant that differs by channel, axis 1 of `rank`, if at all: one for all, or `channels`. */
bool kelp_match_channels(const kelp_value *value, int32_t rank, int64_t channels);
/* Its item for `channel`. */
double kelp_match_channel_at(const kelp_tensor *tensor, int64_t channel);
/* The value is used once, and not as an output: the node that reads it may swallow it. */
bool kelp_used_once(const kelp_value *value);

/* ---- constants that passes make ---- */
/* An item of a float constant, wherever it lies. */
double kelp_pass_f32_at(const kelp_tensor *tensor, int64_t index);
/* A new constant, whose items are the caller's to fill in. */
kelp_status *kelp_pass_new_f32(kelp_block *block, const char *name, int32_t rank,
                               const int64_t *shape, kelp_value **out,
                               float **out_data) KELP_MUST_USE;
/* A copy of a float constant to change; the constant itself when a pass made it and nobody else
 * reads it. Needs fresh use counts. */
kelp_status *kelp_pass_own_f32(kelp_block *block, kelp_value *value, kelp_value **out,
                               float **out_data) KELP_MUST_USE;

#endif
