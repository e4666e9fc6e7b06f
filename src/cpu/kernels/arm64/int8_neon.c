/* SPDX-License-Identifier: Apache-2.0 */
/* The loops of 8-bit integers for any arm64. */
#define INT8_TABLE kelp_int8_neon
#define INT8_NAME "neon"
#define INT8_ROWS 4
#define INT8_PANELS 1
#define VEC_NEON
#include "cpu/kernels/simd/int8.inc"
