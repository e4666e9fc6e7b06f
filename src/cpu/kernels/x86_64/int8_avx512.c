/* SPDX-License-Identifier: Apache-2.0 */
/* The loops of 8-bit integers for x86-64 with AVX-512 F, VL, BW and DQ, without VNNI. */
#define INT8_TABLE kelp_int8_avx512
#define INT8_NAME "avx512"
#define INT8_ROWS 6
#define INT8_PANELS 2
#include "cpu/kernels/simd/int8.inc"
