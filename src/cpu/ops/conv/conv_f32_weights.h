/* SPDX-License-Identifier: Apache-2.0 */
/* Constant weights of float convolutions, packed for the algorithms that run. */
#ifndef KELP_CPU_OPS_CONV_CONV_F32_WEIGHTS_H_
#define KELP_CPU_OPS_CONV_CONV_F32_WEIGHTS_H_

#include "cpu/kernels/conv/conv.h"

#include <kelp/opset.h>

/* The weights of a node, shared by all contexts. */
typedef struct kelp_conv_weights kelp_conv_weights;

/* Implements phases create and destroy. `*out_state` stays NULL unless the weights are constant
 * float32 of one group. */
kelp_status *kelp_conv_weights_create(const kelp_node *node, const kelp_op_env *env,
                                      void **out_state) KELP_MUST_USE;
void kelp_conv_weights_destroy(void *state, kelp_allocator allocator);

/* Gets the weights in `layout` for the tile of `kernels`; packs them the first time. NULL when
 * `weights` is NULL, or when they were packed for another instruction set: then the algorithm
 * cannot run. Thread-safe. */
kelp_status *kelp_conv_weights_get(const kelp_conv_weights *weights,
                                   const kelp_gemm_kernels *kernels, kelp_conv_layout layout,
                                   const float **out) KELP_MUST_USE;

#endif
