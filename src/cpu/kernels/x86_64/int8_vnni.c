/* SPDX-License-Identifier: Apache-2.0 */
/* 8-bit micro-kernels for x86-64 with AVX-512 VNNI. */
#define ISA vnni
#define ISA_TILE_ROWS 12
#define ISA_TILE_PANELS 2
#include "cpu/kernels/isa/int8.inc"
