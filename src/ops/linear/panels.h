/* SPDX-License-Identifier: Apache-2.0 */
/* Constant float matrices of products, laid out in panels once, when the kernel is made. */
#ifndef KELP_OPS_PANELS_H_
#define KELP_OPS_PANELS_H_

#include "ops/kernel.h"
#include "ops/simd/simd.h"

typedef struct kelp_panels kelp_panels;

/* The constant f32 matrix that input 1 is, or NULL. */
const kelp_tensor *kelp_panels_constant(const kelp_node *node);

/* Panels (kelp_gemm_pack) of `b`, input 1 of the node that `env` makes a kernel of: [k,n], or [n,k]
 * when `turned`. */
kelp_status *kelp_panels_create(const kelp_op_env *env, const kelp_tensor *b, bool turned,
                                kelp_panels **out) KELP_MUST_USE;
void kelp_panels_destroy(kelp_panels *panels, kelp_allocator allocator);

/* NULL when there are none, or when the instruction set was limited since they were laid out. */
const float *kelp_panels_data(const kelp_panels *panels);
/* The table that they are laid out for. */
const kelp_simd *kelp_panels_simd(const kelp_panels *panels);

#endif
