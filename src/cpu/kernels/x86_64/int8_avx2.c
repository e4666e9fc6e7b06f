/* SPDX-License-Identifier: Apache-2.0 */
/* 8-bit micro-kernels for x86-64 with AVX2. */
#define ISA avx2
#define ISA_TILE_ROWS 3
#define ISA_TILE_PANELS 1
#include "cpu/kernels/isa/int8.inc"
