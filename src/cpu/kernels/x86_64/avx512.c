/* SPDX-License-Identifier: Apache-2.0 */
/* Float micro-kernels for x86-64 with AVX-512 F, VL, BW and DQ. */
#define ISA avx512
#define ISA_TILE_ROWS 12
#include "cpu/kernels/isa/f32.inc"
