/* SPDX-License-Identifier: Apache-2.0 */
/* Micro-kernels of GEMMs whose weights are unsigned integers of 4 or 8 bits and whose other operand
 * is float. A byte of 4-bit weights holds two; `a` and scales need the alignment of a float. */
#ifndef KELP_CPU_KERNELS_NBITS_NBITS_KERNELS_H_
#define KELP_CPU_KERNELS_NBITS_NBITS_KERNELS_H_

#include <stdint.h>

typedef struct kelp_nbits_kernels {
    int32_t lanes; /* of a vector: blocks of nibble_dot and byte_dot are multiples */
    /* Dequantizes: low[i] = ((from[i] & 15) - zero) * scale and high[i] = ((from[i] >> 4) - zero) *
     * scale, i < bytes. */
    void (*nibbles)(const uint8_t *from, int64_t bytes, float zero, float scale, float *low,
                    float *high);
    /* Returns the sum over blocks of scales[block] times the dot product of the block's weights and
     * a. A block has `bytes` bytes, a multiple of `lanes`: first all low halves are multiplied,
     * then all high halves. */
    float (*nibble_dot)(const uint8_t *from, const float *scales, const float *a, int64_t blocks,
                        int64_t bytes);
    /* The same for weights of whole bytes. */
    float (*byte_dot)(const uint8_t *from, const float *scales, const float *a, int64_t blocks,
                      int64_t bytes);
} kelp_nbits_kernels;

/* Returns the table of the instruction set in use. Thread-safe. */
const kelp_nbits_kernels *kelp_nbits_kernels_get(void);

#endif
