/* SPDX-License-Identifier: Apache-2.0 */
/* The float loops for arm64, whose vectors every one of these CPUs has. */
#define SIMD_TABLE kelp_simd_neon
#define SIMD_NAME "neon"
#define SIMD_ROWS 12
#define VEC_NEON
#include "cpu/kernels/isa/kernels.inc"
