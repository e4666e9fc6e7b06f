/* SPDX-License-Identifier: Apache-2.0 */
/* The loops of 8-bit integers for any CPU: vectors of 16 bytes. */
#define INT8_TABLE kelp_int8_portable
#define INT8_NAME "portable"
#define INT8_ROWS 2
#define INT8_PANELS 1
#include "cpu/kernels/simd/int8.inc"
