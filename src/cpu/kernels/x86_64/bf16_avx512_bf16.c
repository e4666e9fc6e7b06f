/* SPDX-License-Identifier: Apache-2.0 */
/* bfloat16 micro-kernels for x86-64 with AVX512_BF16. */
#define ISA avx512_bf16
#define ISA_TILE_ROWS 12
#include "cpu/kernels/isa/bf16.inc"
