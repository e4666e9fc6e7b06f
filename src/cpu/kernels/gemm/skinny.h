/* SPDX-License-Identifier: Apache-2.0 */
/* Skinny GEMM: a few rows times a large matrix. */
#ifndef KELP_CPU_KERNELS_GEMM_SKINNY_H_
#define KELP_CPU_KERNELS_GEMM_SKINNY_H_

#include "cpu/kernels/gemm/gemm.h"

extern const kelp_gemm_algorithm kelp_gemm_skinny;

#endif
