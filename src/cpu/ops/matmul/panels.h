/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Constant float matrices of GEMMs. Skinny GEMMs read the plain matrix from the model's file. The
 * first GEMM with more rows packs it in panels. Shared by all contexts. Thread-safe.
 */
#ifndef KELP_CPU_OPS_MATMUL_PANELS_H_
#define KELP_CPU_OPS_MATMUL_PANELS_H_

#include "cpu/kernels/gemm/gemm.h"

#include <kelp/opset.h>

/* A constant matrix, packed or not. */
typedef struct kelp_panels kelp_panels;

/* Returns input 1 if it is a constant float32 matrix, else NULL. */
const kelp_tensor *kelp_panels_constant(const kelp_node *node);

/* Creates the panels of `b`, input 1 of the node of `env`: [k,n], or [n,k] if `transposed`. */
kelp_status *kelp_panels_create(const kelp_op_env *env, const kelp_tensor *b, bool transposed,
                                kelp_panels **out) KELP_MUST_USE;
void kelp_panels_destroy(kelp_panels *panels, kelp_allocator allocator);

/* Packs the panels if GEMMs of m rows need them; for reshape. `panels` may be NULL. */
kelp_status *kelp_panels_plan(const kelp_op_env *env, const kelp_panels *panels,
                              int64_t m) KELP_MUST_USE;
/* Sets `packed` and the instruction set of a GEMM if the matrix is packed, for invoke; otherwise
 * the GEMM reads its `b`. `panels` may be NULL. */
void kelp_panels_use(const kelp_panels *panels, kelp_gemm *inout_job);

#endif
