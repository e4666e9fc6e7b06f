/* SPDX-License-Identifier: Apache-2.0 */
/* bfloat16 micro-kernels for x86-64 with AVX2 and FMA. */
#define ISA avx2
#define ISA_TILE_ROWS 4
#include "cpu/kernels/isa/bf16.inc"
