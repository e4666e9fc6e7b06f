/* SPDX-License-Identifier: Apache-2.0 */
/* The loops of 8-bit integers for arm64 with sums of four products of signed bytes. */
#define INT8_TABLE kelp_int8_dotprod
#define INT8_NAME "dotprod"
#define INT8_ROWS 4
#define INT8_PANELS 1
#define VEC_NEON
#include "cpu/kernels/simd/int8.inc"
