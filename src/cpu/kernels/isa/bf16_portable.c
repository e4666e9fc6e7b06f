/* SPDX-License-Identifier: Apache-2.0 */
/* bfloat16 micro-kernels for any CPU. */
#define ISA portable
#define ISA_TILE_ROWS 4
#include "cpu/kernels/isa/bf16.inc"
