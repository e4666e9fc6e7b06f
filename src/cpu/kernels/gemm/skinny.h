/* SPDX-License-Identifier: Apache-2.0 */
/* Skinny GEMM: a few rows times a large matrix. */
#ifndef KELP_CPU_KERNELS_GEMM_SKINNY_H_
#define KELP_CPU_KERNELS_GEMM_SKINNY_H_

#include "cpu/kernels/gemm/gemm.h"

/* Runs one GEMM with `partial`; called by kelp_gemm_run. */
void kelp_gemm_skinny_run(const kelp_op_env *env, const kelp_gemm_kernels *kernels,
                          const kelp_gemm *g);

#endif
