/* SPDX-License-Identifier: Apache-2.0 */
/* Float micro-kernels for x86-64 with AVX2 and FMA. */
#define ISA avx2
#define ISA_TILE_ROWS 6
#include "cpu/kernels/isa/f32.inc"
