/* SPDX-License-Identifier: Apache-2.0 */
/* The loops of bfloat16 for x86-64 with AVX2 and FMA. */
#define BF16_TABLE kelp_bf16_avx2
#define BF16_NAME "avx2"
#define BF16_ROWS 4
#include "cpu/kernels/simd/bf16.inc"
