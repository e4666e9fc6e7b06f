/* SPDX-License-Identifier: Apache-2.0 */
/* Constant weights of bfloat16 convolutions, packed for the algorithms that run. */
#ifndef KELP_CPU_OPS_CONV_CONV_BF16_WEIGHTS_H_
#define KELP_CPU_OPS_CONV_CONV_BF16_WEIGHTS_H_

#include "cpu/kernels/conv/conv_bf16.h"

#include <kelp/opset.h>

/* The weights of a node, shared by all contexts. */
typedef struct kelp_conv_bf16_weights kelp_conv_bf16_weights;

/* Implements phases create and destroy. INVALID_ARGUMENT: the weights are not constant floats over
 * one or two axes. */
kelp_status *kelp_conv_bf16_weights_create(const kelp_node *node, const kelp_op_env *env,
                                           void **out_state) KELP_MUST_USE;
void kelp_conv_bf16_weights_destroy(void *state, kelp_allocator allocator);

/* Gets the weights in `layout`; packs them the first time. Thread-safe. */
kelp_status *kelp_conv_bf16_weights_get(const kelp_conv_bf16_weights *weights,
                                        kelp_conv_bf16_layout layout,
                                        const kelp_bf16_pair **out) KELP_MUST_USE;

#endif
