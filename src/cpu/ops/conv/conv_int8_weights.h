/* SPDX-License-Identifier: Apache-2.0 */
/* Weights of convolutions of 8-bit integers, laid out for products whose rows hold a window's
 * positions one after the other, and of each its channels. */
#ifndef KELP_CPU_OPS_CONV_CONV_INT8_WEIGHTS_H_
#define KELP_CPU_OPS_CONV_CONV_INT8_WEIGHTS_H_

#include "cpu/kernels/gemm/gemm_int8.h"

typedef struct kelp_int8_conv_shape {
    int64_t groups, in_channels, out_channels, taps; /* channels of a group */
    bool depthwise; /* one channel in and out of each group: no product */
} kelp_int8_conv_shape;

typedef struct kelp_int8_conv_weights {
    const int8_t *panels; /* of each group; not of depthwise ones */
    const int16_t *taps;  /* of those w[tap][channel], less the zero points */
    size_t group_bytes;
    const int32_t *balance, *zeros; /* of all output channels; see kelp_int8_weights */
    int32_t zero;
} kelp_int8_conv_weights;

/* From weights [out channels, channels of a group, spatial…] and their zero points (NULL: 0). false
 * when they do not fit. */
bool kelp_int8_conv_shape_of(const kelp_tensor *weights, const kelp_tensor *zero, int64_t groups,
                             kelp_int8_conv_shape *out);
/* Bytes that they take, and those of a buffer that laying them out takes; multiples of 64. */
bool kelp_int8_conv_weights_size(const kelp_int8_conv_shape *shape, size_t *out_bytes,
                                 size_t *out_buffer_bytes);
#define KELP_INT8_CONV_LAYOUT "int8conv/1" /* for kelp_op_pack; with every table */
/* `memory` has the size above and is 64-byte aligned. */
void kelp_int8_conv_weights_lay(const kelp_int8 *loops, const kelp_int8_conv_shape *shape,
                                const kelp_tensor *weights, const kelp_tensor *zero, void *memory,
                                void *buffer);
/* Where things are in `memory`, which was laid out. */
void kelp_int8_conv_weights_view(const kelp_int8_conv_shape *shape, const void *memory,
                                 kelp_int8_conv_weights *out);

#endif
