/* SPDX-License-Identifier: Apache-2.0 */
/* The float loops for any CPU: vectors of 16 bytes, which SSE2 and NEON have. */
#define SIMD_TABLE kelp_simd_portable
#define SIMD_NAME "portable"
#define SIMD_ROWS 4
#include "cpu/kernels/isa/kernels.inc"
