/* SPDX-License-Identifier: Apache-2.0 */
/* 8-bit micro-kernels for any arm64 CPU. */
#define ISA neon
#define ISA_TILE_ROWS 4
#define ISA_TILE_PANELS 1
#define VEC_NEON
#include "cpu/kernels/isa/int8.inc"
