/* SPDX-License-Identifier: Apache-2.0 */
/* Shapes of sliding windows and of convolutions. */
#ifndef KELP_CPU_KERNELS_SLIDING_WINDOW_H_
#define KELP_CPU_KERNELS_SLIDING_WINDOW_H_

#include <stdint.h>

#define KELP_WINDOW_AXES 3

/* A window that slides over up to three spatial axes. Operators with fewer axes have leading
 * dimensions of 1. */
typedef struct kelp_conv_window {
    int32_t axes; /* of the operator */
    int64_t in[KELP_WINDOW_AXES], out[KELP_WINDOW_AXES], kernel[KELP_WINDOW_AXES];
    int64_t stride[KELP_WINDOW_AXES], dilation[KELP_WINDOW_AXES];
    int64_t before[KELP_WINDOW_AXES], after[KELP_WINDOW_AXES]; /* padding; negative: cropped */
    int64_t in_size, out_size, kernel_size;                    /* number of elements */
} kelp_conv_window;

/* The shape of a convolution of [batch, groups * in_channels, spatial…] with weights
 * [groups * out_channels, in_channels, kernel…]. */
typedef struct kelp_conv_shape {
    kelp_conv_window window;
    int64_t batch, groups;
    int64_t in_channels, out_channels; /* of one group */
} kelp_conv_shape;

/* Converts an image of one column to one of one row, which has the same bytes: inner loops iterate
 * along rows. */
void kelp_window_make_row(kelp_conv_window *window);

#endif
