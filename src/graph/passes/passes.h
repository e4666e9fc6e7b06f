/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Passes over an engine's graph. A pass rewrites a block without changing its results and leaves
 * use counts up to date. Fused operators are in the domain "kelp", version 1; the cpu provider
 * defines them.
 */
#ifndef KELP_GRAPH_PASSES_PASSES_H_
#define KELP_GRAPH_PASSES_PASSES_H_

#include "graph/ir.h"

/* Runs all fusion passes on the block and on the blocks of its nodes. */
kelp_status *kelp_passes_run(kelp_block *block) KELP_MUST_USE;

/* Runs kelp_pass_half on the block and on the blocks of its nodes, as far as they have weights,
 * before all other passes. The caller folds the casts of constants. */
kelp_status *kelp_passes_run_half(kelp_block *block) KELP_MUST_USE;
/* Computes in float32 what the block computes in float16 or bfloat16, with casts where such values
 * enter and leave: inputs, outputs, and operators without float32. Results are rounded once. */
kelp_status *kelp_pass_half(kelp_block *block) KELP_MUST_USE;
/* Returns true if an operator that kelp_pass_half always widens combines a value with a constant of
 * 16 bits that has more than one element. */
bool kelp_half_has_weights(const kelp_block *block);

/* Runs the bfloat16 passes on the block and on the blocks of its nodes, after all other passes:
 * GEMMs and convolutions with constant weights → kelp::MatMulBf16, kelp::ConvBf16. */
kelp_status *kelp_passes_run_bf16(kelp_block *block) KELP_MUST_USE;
/* Replaces operators by those that round to bfloat16. */
kelp_status *kelp_pass_bf16(kelp_block *block) KELP_MUST_USE;
/* Makes values bfloat16, channels last, if only ConvBf16 reads them, directly or through a MaxPool
 * (→ kelp::MaxPoolBf16). */
kelp_status *kelp_pass_bf16_values(kelp_block *block) KELP_MUST_USE;

/* Runs the passes that need constant 8-bit weights. Constant folding dequantizes weights only after
 * these have run. */
kelp_status *kelp_passes_run_quant(kelp_block *block) KELP_MUST_USE;

/* Expands Gradient of ai.onnx.preview.training to nodes that compute it. Not part of
 * kelp_passes_run. */
kelp_status *kelp_pass_gradient(kelp_block *block) KELP_MUST_USE;

/* ---- passes ---- */
/* Fuses Conv + Add of a value of the same fixed shape (+ activation) → ConvAct with a residual. */
kelp_status *kelp_pass_residual(kelp_block *block) KELP_MUST_USE;
/* Fuses x * 0.5 * (1 + erf(x / sqrt(2))) or its approximation by tanh, with the factors in any
 * order → Gelu. */
kelp_status *kelp_pass_gelu(kelp_block *block) KELP_MUST_USE;
/* Fuses x times a gate of x → com.microsoft QuickGelu with alpha 1, HardSwish. */
kelp_status *kelp_pass_swish(kelp_block *block) KELP_MUST_USE;
/* Replaces MatMul of one-hot rows and constant weights by kelp::Lookup of rows. Elementwise
 * operators that follow are applied to the table. */
kelp_status *kelp_pass_lookup(kelp_block *block) KELP_MUST_USE;
/* Fuses (x - mean(x)) / sqrt(mean of its square + epsilon), times and plus constants →
 * LayerNormalization. */
kelp_status *kelp_pass_layer_norm(kelp_block *block) KELP_MUST_USE;
/* Fuses Softmax(Q·Kᵀ·scale + mask)·V between the head-splitting reshapes and transposes →
 * kelp::Attention. */
kelp_status *kelp_pass_attention(kelp_block *block) KELP_MUST_USE;
/* Fuses the same for separate heads, repeated for groups of queries or not → kelp::AttentionHeads.
 */
kelp_status *kelp_pass_attention_heads(kelp_block *block) KELP_MUST_USE;
/* Fuses MatMul + constant bias (+ activation) → kelp::MatMulBias. */
kelp_status *kelp_pass_matmul(kelp_block *block) KELP_MUST_USE;
/* Fuses Add + LayerNormalization → kelp::SkipLayerNorm. */
kelp_status *kelp_pass_skip_norm(kelp_block *block) KELP_MUST_USE;
/* Folds Mul and Add of a scalar or of one constant per channel + Conv → Conv with other weights. */
kelp_status *kelp_pass_scale(kelp_block *block) KELP_MUST_USE;
/* Folds Conv + BatchNormalization, or Mul or Add of one constant per channel → Conv with other
 * weights. */
kelp_status *kelp_pass_affine(kelp_block *block) KELP_MUST_USE;
/* Fuses Conv + activation → kelp::ConvAct. */
kelp_status *kelp_pass_conv(kelp_block *block) KELP_MUST_USE;
/* Replaces operators of com.microsoft by those of ai.onnx that other passes match. */
kelp_status *kelp_pass_contrib(kelp_block *block) KELP_MUST_USE;
/* Fuses MatMul, Gemm or Conv between DequantizeLinear and QuantizeLinear → kelp::QMatMul,
 * kelp::QConv. */
kelp_status *kelp_pass_quant(kelp_block *block) KELP_MUST_USE;
/* Fuses DynamicQuantizeLinear, MatMulInteger or ConvInteger, Cast, Mul → the same. */
kelp_status *kelp_pass_quant_dynamic(kelp_block *block) KELP_MUST_USE;
/* Replaces MatMul of floats and large constant 8-bit weights by kelp::WeightMatMul. */
kelp_status *kelp_pass_weights(kelp_block *block) KELP_MUST_USE;
/* Removes nodes without effect: Identity, Dropout, Cast to the same type, Transpose that keeps the
 * order, multiplication by one. */
kelp_status *kelp_pass_simplify(kelp_block *block) KELP_MUST_USE;

/* ---- helpers of passes ---- */
/* Calls `fuse` for each node with an output, in order. After a change, removes dead nodes, counts
 * uses and starts again from the first node, because new nodes may be fused further. */
kelp_status *kelp_pass_each(kelp_block *block,
                            kelp_status *(*fuse)(kelp_block *block, kelp_node *node,
                                                 bool *out_done)) KELP_MUST_USE;
/* Returns the MatMul that produces `value`, directly or multiplied or divided by a constant scalar;
 * `*out_scale` is the factor. NULL when there is none, or an intermediate value has other uses. */
kelp_node *kelp_match_scaled_matmul(kelp_value *value, double *out_scale);
/* Returns true when `weights` is a Softmax over the last of four axes, used once, of scores that
 * `match` accepts. `*out_mask` is the mask that was added to the scores and that `fits` accepts, or
 * NULL. */
bool kelp_match_attention_weights(kelp_value *weights, bool (*fits)(const kelp_value *mask),
                                  bool (*match)(kelp_value *scores, void *userp), void *userp,
                                  kelp_value **out_mask);
/* Returns the node that produces `value` if its operator is `op`; otherwise NULL. */
kelp_node *kelp_match_producer(const kelp_value *value, const kelp_operator *op);
/* Returns true and the value if `value` is a constant of one float element. */
bool kelp_match_scalar(const kelp_value *value, double *out);
/* Returns true for a constant scalar within a relative error of 1e-4 of `expected`. */
bool kelp_match_scalar_near(const kelp_value *value, double expected);
/* Gets the elements of a constant of type int64 or int32; false when it is not one or exceeds
 * `capacity`. */
bool kelp_match_i64s(const kelp_value *value, int64_t *out, size_t capacity, size_t *out_count);
/* Returns true for Clip to [0, 6]. */
bool kelp_match_relu6(const kelp_node *node);
/* Returns the name that kelp::MatMulBias and kelp::ConvAct have for an activation node, whose
 * operand is input 0; NULL for other nodes. */
const char *kelp_match_activation(const kelp_node *node);
/* Returns true for a constant with one element, or with `channels` elements along axis 1 of `rank`.
 */
bool kelp_match_channels(const kelp_value *value, int32_t rank, int64_t channels);
/* Returns the element of such a constant for `channel`. */
double kelp_match_channel_at(const kelp_tensor *tensor, int64_t channel);
/* Returns true for a value with one use that is not an output, which may be fused with its reader.
 */
bool kelp_used_once(const kelp_value *value);

/* ---- constants of passes ---- */
/* Returns an element of a float constant, which may be unaligned. */
double kelp_pass_f32_at(const kelp_tensor *tensor, int64_t index);
/* Creates a constant; the caller fills in its elements. */
kelp_status *kelp_pass_new_f32(kelp_block *block, const char *name, int32_t rank,
                               const int64_t *shape, kelp_value **out,
                               float **out_data) KELP_MUST_USE;
/* Returns a copy of a float constant that may be changed, or the constant itself if a pass created
 * it and it has no other use. Use counts must be up to date. */
kelp_status *kelp_pass_own_f32(kelp_block *block, kelp_value *value, kelp_value **out,
                               float **out_data) KELP_MUST_USE;

#endif
