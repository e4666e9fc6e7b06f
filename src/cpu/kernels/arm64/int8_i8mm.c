/* SPDX-License-Identifier: Apache-2.0 */
/* The loops of 8-bit integers for arm64 with sums of four products of unsigned and signed bytes. */
#define INT8_TABLE kelp_int8_i8mm
#define INT8_NAME "i8mm"
#define INT8_ROWS 6
#define INT8_PANELS 1
#define VEC_NEON
#include "cpu/kernels/simd/int8.inc"
