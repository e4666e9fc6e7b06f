/* SPDX-License-Identifier: Apache-2.0 */
/* The loops of 8-bit integers for x86-64 with AVX2. */
#define INT8_TABLE kelp_int8_avx2
#define INT8_NAME "avx2"
#define INT8_ROWS 3
#define INT8_PANELS 1
#include "cpu/kernels/simd/int8.inc"
