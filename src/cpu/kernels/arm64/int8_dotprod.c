/* SPDX-License-Identifier: Apache-2.0 */
/* 8-bit micro-kernels for arm64 with dot products of four signed bytes. */
#define ISA dotprod
#define ISA_TILE_ROWS 4
#define ISA_TILE_PANELS 1
#define VEC_NEON
#include "cpu/kernels/isa/int8.inc"
