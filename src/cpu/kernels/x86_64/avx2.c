/* SPDX-License-Identifier: Apache-2.0 */
/* The float loops for x86-64 with AVX2 and FMA. */
#define SIMD_TABLE kelp_simd_avx2
#define SIMD_NAME "avx2"
#define SIMD_ROWS 6
#include "cpu/kernels/isa/kernels.inc"
