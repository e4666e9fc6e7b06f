/* SPDX-License-Identifier: Apache-2.0 */
/* 8-bit micro-kernels for arm64 with dot products of four unsigned and signed bytes. */
#define ISA i8mm
#define ISA_TILE_ROWS 6
#define ISA_TILE_PANELS 1
#define VEC_NEON
#include "cpu/kernels/isa/int8.inc"
