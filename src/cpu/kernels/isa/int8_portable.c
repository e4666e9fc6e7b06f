/* SPDX-License-Identifier: Apache-2.0 */
/* 8-bit micro-kernels for any CPU: vectors of 16 bytes. */
#define ISA portable
#define ISA_TILE_ROWS 2
#define ISA_TILE_PANELS 1
#include "cpu/kernels/isa/int8.inc"
