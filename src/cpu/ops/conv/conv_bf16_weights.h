/* SPDX-License-Identifier: Apache-2.0 */
/* A convolution's weights as bfloat16, in the layout that the shapes ask for: made when it is asked
 * for first, then shared by all contexts. */
#ifndef KELP_CPU_OPS_CONV_CONV_BF16_WEIGHTS_H_
#define KELP_CPU_OPS_CONV_CONV_BF16_WEIGHTS_H_

#include "cpu/kernels/gemm/gemm_bf16.h"

/* Kernel phases create and destroy. INVALID_ARGUMENT: the weights are no constant floats over one
 * or two axes. */
kelp_status *kelp_bf16_conv_create(const kelp_node *node, const kelp_op_env *env,
                                   void **out_state) KELP_MUST_USE;
void kelp_bf16_conv_destroy(void *state, kelp_allocator allocator);

/* A row for each output channel, `*out_step` pairs apart: for each pair of the group's input
 * channels one pair for each kernel position. Any thread. */
kelp_status *kelp_bf16_conv_rows(const void *state, const kelp_bf16_pair **out,
                                 int64_t *out_step) KELP_MUST_USE;
/* Panels as kelp_bf16_pack_turned makes them: depth by output channels; of one group. */
kelp_status *kelp_bf16_conv_panels(const void *state, const kelp_bf16_pair **out) KELP_MUST_USE;

/* Panels of KELP_BF16_COLUMNS output channels, each tap after tap the pairs of input channels, an
 * odd last one beside zero; of one group. */
kelp_status *kelp_bf16_conv_taps_first(const void *state, const kelp_bf16_pair **out) KELP_MUST_USE;

#endif
