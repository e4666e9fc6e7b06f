/* SPDX-License-Identifier: Apache-2.0 */
/* A few rows times a large matrix. */
#ifndef KELP_CPU_KERNELS_GEMM_SKINNY_H_
#define KELP_CPU_KERNELS_GEMM_SKINNY_H_

#include "cpu/kernels/gemm/gemm.h"

/* What kelp_gemm_run does for one job with `partial`. */
void kelp_gemm_thin_run(const kelp_op_env *env, const kelp_simd *simd, const kelp_gemm *g);

#endif
