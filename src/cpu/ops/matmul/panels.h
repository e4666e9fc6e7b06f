/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Constant float matrices of GEMMs: read in the model's file as long as GEMMs are skinny, packed
 * in panels when the first one with more rows is planned. Shared by all contexts. Thread-safe.
 */
#ifndef KELP_CPU_OPS_MATMUL_PANELS_H_
#define KELP_CPU_OPS_MATMUL_PANELS_H_

#include "cpu/kernels/gemm/gemm.h"

#include <kelp/opset.h>

typedef struct kelp_panels kelp_panels;

/* Returns the constant float32 matrix that is input 1, or NULL. */
const kelp_tensor *kelp_panels_constant(const kelp_node *node);

/* Creates the panels of `b`, input 1 of the node of `env`: [k,n], or [n,k] if `transposed`. */
kelp_status *kelp_panels_create(const kelp_op_env *env, const kelp_tensor *b, bool transposed,
                                kelp_panels **out) KELP_MUST_USE;
void kelp_panels_destroy(kelp_panels *panels, kelp_allocator allocator);

/* In reshape: packs the panels if GEMMs of m rows need them. `panels` may be NULL, here and
 * below. */
kelp_status *kelp_panels_plan(const kelp_op_env *env, const kelp_panels *panels,
                              int64_t m) KELP_MUST_USE;
/* In invoke: sets `packed` and `kernels` of a GEMM if there are panels; otherwise its `b` is read.
 */
void kelp_panels_use(const kelp_panels *panels, kelp_gemm *inout_job);

#endif
