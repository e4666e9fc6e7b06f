/* SPDX-License-Identifier: Apache-2.0 */
/* Micro-kernels of windows that slide over an image: weighted sums (depthwise convolutions), sums
 * and maxima (pools). */
#ifndef KELP_CPU_KERNELS_SLIDING_SLIDING_KERNELS_H_
#define KELP_CPU_KERNELS_SLIDING_SLIDING_KERNELS_H_

#include "cpu/kernels/elementwise/elementwise_kernels.h"
#include "cpu/kernels/unaligned.h"

#include <stdbool.h>
#include <stdint.h>

/* Geometry of windows over an image or a padded tile of it; steps in floats. Outputs are `rows`
 * contiguous rows of `width` floats. Rows of the tile outside [first, last) hold no input and are
 * not read. */
typedef struct kelp_sliding_geometry {
    int64_t rows, width;                            /* of outputs */
    int64_t row_step, stride;                       /* from one output to the next, in the tile */
    int64_t tap_rows, taps, tap_row_step, tap_step; /* kernel positions and their distances */
    int64_t rows_apart, tap_rows_apart;             /* row_step and tap_row_step in rows */
    int64_t first, last;
} kelp_sliding_geometry;

/* Weighted windows over a padded tile. Up to 31 floats after the tile are read. */
typedef struct kelp_sliding_weighted {
    kelp_sliding_geometry geometry;
    const float *x;
    const kelp_float_u *w; /* one for each kernel position */
    float *y;
} kelp_sliding_weighted;

/* Weighted windows of 3 x 3 or 5 x 5 that keep the width of an unpadded image: columns outside it
 * count as zeros, and nothing outside the rows [first, last) is read. The result is act(sum + bias)
 * with a light activation. */
typedef struct kelp_sliding_image {
    kelp_sliding_weighted windows;
    float bias;
    kelp_act act;
} kelp_sliding_image;

/* Sums or maxima of windows over a padded tile, or with `unpadded` over an image of which only the
 * columns [begin, end) hold input (see kelp_sliding_takes_unpadded). Up to 31 floats after the last
 * column that a window covers are read. */
typedef struct kelp_sliding_pool {
    kelp_sliding_geometry geometry;
    const float *x;
    float *y;
    bool unpadded;
    int64_t begin, end; /* only with `unpadded` */
} kelp_sliding_pool;

/* Returns true for the windows of pools that the kernels can compute over an unpadded image. */
static inline bool kelp_sliding_takes_unpadded(int64_t taps, int64_t stride, int64_t tap_step) {
    return taps == 3 && stride == 2 && tap_step == 1;
}

typedef struct kelp_sliding_kernels {
    void (*weighted)(const kelp_sliding_weighted *windows);
    void (*weighted_image)(const kelp_sliding_image *windows); /* NULL: not available */
    void (*sum)(const kelp_sliding_pool *windows);
    void (*max)(const kelp_sliding_pool *windows); /* a NaN in a window is its maximum */
    /* Maxima of 2 x 2 windows with stride 2 over an image of `width` columns, which is even: `rows`
     * rows of width / 2 outputs. Reads nothing after the image. */
    void (*max_pool_2x2)(float *y, const float *x, int64_t rows, int64_t width);
} kelp_sliding_kernels;

/* Returns the table of the instruction set in use. Thread-safe. */
const kelp_sliding_kernels *kelp_sliding_kernels_get(void);

#endif
