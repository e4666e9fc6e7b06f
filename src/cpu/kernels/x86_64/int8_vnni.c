/* SPDX-License-Identifier: Apache-2.0 */
/* The loops of 8-bit integers for x86-64 with AVX-512 VNNI. */
#define INT8_TABLE kelp_int8_vnni
#define INT8_NAME "vnni"
#define INT8_ROWS 12
#define INT8_PANELS 2
#include "cpu/kernels/simd/int8.inc"
