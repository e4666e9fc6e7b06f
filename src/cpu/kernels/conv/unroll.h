/* SPDX-License-Identifier: Apache-2.0 */
/* Copies windows to a matrix (im2col), so that a convolution becomes a GEMM. */
#ifndef KELP_CPU_KERNELS_CONV_UNROLL_H_
#define KELP_CPU_KERNELS_CONV_UNROLL_H_

#include "cpu/kernels/sliding/window.h"

/* Rows of the matrix are channels and kernel positions, columns are output positions: of every
 * image, output rows [row, row + rows) of plane `depth`. */
typedef struct kelp_unroll {
    const kelp_conv_window *w;
    const float *x; /* first channel of the first image */
    int64_t channels, images, image_step;
    int64_t depth, row, rows;
    float *matrix;
    int64_t ld;   /* from one row to the next: at least KELP_UNROLL_SLACK more than the columns */
    float *plane; /* kelp_unroll_plane floats */
} kelp_unroll;
#define KELP_UNROLL_SLACK 16

/* Returns the floats that `plane` needs for `rows` output rows of `images` images. */
int64_t kelp_unroll_plane(const kelp_conv_window *w, int64_t rows, int64_t images);
void kelp_unroll_run(const kelp_unroll *u);

#endif
