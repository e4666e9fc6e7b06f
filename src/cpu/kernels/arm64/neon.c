/* SPDX-License-Identifier: Apache-2.0 */
/* Float micro-kernels for arm64 with NEON, which every arm64 CPU has. */
#define ISA neon
#define ISA_TILE_ROWS 12
#define VEC_NEON
#include "cpu/kernels/isa/f32.inc"
