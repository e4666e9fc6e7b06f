/* SPDX-License-Identifier: Apache-2.0 */
/* Float micro-kernels for any CPU: vectors of 16 bytes, which SSE2 and NEON have. */
#define ISA portable
#define ISA_TILE_ROWS 4
#include "cpu/kernels/isa/f32.inc"
