/* SPDX-License-Identifier: Apache-2.0 */
/* The loops of bfloat16 for x86-64 with AVX512_BF16. */
#define BF16_TABLE kelp_bf16_native
#define BF16_NAME "avx512_bf16"
#define BF16_ROWS 12
#include "cpu/kernels/simd/bf16.inc"
