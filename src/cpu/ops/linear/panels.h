/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Constant float matrices of products: read where they lie in the model's file as long as products
 * are thin, laid out in panels when the first one with more rows is planned. Shared by all
 * contexts; any thread.
 */
#ifndef KELP_CPU_OPS_LINEAR_PANELS_H_
#define KELP_CPU_OPS_LINEAR_PANELS_H_

#include "cpu/kernels/gemm/gemm.h"

typedef struct kelp_panels kelp_panels;

/* The constant f32 matrix that input 1 is, or NULL. */
const kelp_tensor *kelp_panels_constant(const kelp_node *node);

/* Of `b`, input 1 of the node that `env` makes a kernel of: [k,n], or [n,k] when `turned`. */
kelp_status *kelp_panels_create(const kelp_op_env *env, const kelp_tensor *b, bool turned,
                                kelp_panels **out) KELP_MUST_USE;
void kelp_panels_destroy(kelp_panels *panels, kelp_allocator allocator);

/* In reshape: there will be products of m rows. `panels` may be NULL, here and below. */
kelp_status *kelp_panels_plan(const kelp_op_env *env, const kelp_panels *panels,
                              int64_t m) KELP_MUST_USE;
/* In invoke: sets `packed` and `simd` where there are panels; else the job's `b` is read. */
void kelp_panels_use(const kelp_panels *panels, kelp_gemm *inout_job);

#endif
