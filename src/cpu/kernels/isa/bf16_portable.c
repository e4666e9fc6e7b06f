/* SPDX-License-Identifier: Apache-2.0 */
/* The loops of bfloat16 for any processor. */
#define BF16_TABLE kelp_bf16_portable
#define BF16_NAME "portable"
#define BF16_ROWS 4
#include "cpu/kernels/simd/bf16.inc"
