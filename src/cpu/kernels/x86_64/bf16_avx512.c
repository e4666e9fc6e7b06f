/* SPDX-License-Identifier: Apache-2.0 */
/* bfloat16 micro-kernels for x86-64 with AVX-512 F, VL, BW and DQ, without AVX512_BF16. */
#define ISA avx512
#define ISA_TILE_ROWS 12
#include "cpu/kernels/isa/bf16.inc"
