/* SPDX-License-Identifier: Apache-2.0 */
/* The float loops for x86-64 with AVX-512 F, VL, BW and DQ. */
#define SIMD_TABLE kelp_simd_avx512
#define SIMD_NAME "avx512"
#define SIMD_ROWS 12
#include "cpu/kernels/isa/kernels.inc"
