/* SPDX-License-Identifier: Apache-2.0 */
/* Micro-kernels of float convolutions: a GEMM over shifted rows of an image, interleaved images,
 * and the transforms of Winograd's convolutions. */
#ifndef KELP_CPU_KERNELS_CONV_CONV_KERNELS_H_
#define KELP_CPU_KERNELS_CONV_CONV_KERNELS_H_

#include "cpu/kernels/unaligned.h"

#include <stdbool.h>
#include <stdint.h>

#define KELP_CONV_MAX_TILE_ROWS 12 /* maximum of tile_rows over all instruction sets */

/* C[m,n] = A[m,k] · B[k,n], or C += A · B with `accumulate`. Row p of B begins at x + offset[p];
 * nothing after its last column is read. Rows of C are padded to whole vectors, which are written.
 */
typedef struct kelp_conv_direct_block {
    const kelp_float_u *a;
    const float *x;
    const int32_t *offset;
    float *c;
    int64_t lda, ldc, m, n, k;
    bool accumulate;
} kelp_conv_direct_block;

/* One output position of tile_columns interleaved images: y[m * y_step + image] = Σ w[m * depth + c
 * * kernel + tap] * x[(c * plane + offset) * tile_columns + image] over channels and over the taps
 * inside the image, whose kernel positions and offsets are listed. */
typedef struct kelp_conv_lanes {
    const kelp_float_u *w;
    const float *x;
    float *y;
    int64_t m, depth, channels, kernel, plane, y_step;
    int64_t taps;
    const int32_t *tap_index, *tap_offset;
} kelp_conv_lanes;

/* `down` x `across` tiles of `tall` x `wide` outputs: 4 x 4, 2 x 2, or 4 or 2 along one axis. The
 * image is NHWC with `channels` channels, a multiple of the vector. Along each axis where tiles are
 * larger than 1 the input has 6 - tall (or wide) more pixels than the output; 2 x 2: 2 more. Each
 * tile has 36, 16 or (along one axis) 6 parts, which are `step` floats apart; tiles are `channels`
 * floats apart. */
typedef struct kelp_conv_winograd_tiles {
    float *image, *parts;
    int64_t tall, wide, down, across, channels, step;
} kelp_conv_winograd_tiles;

typedef struct kelp_conv_kernels {
    int32_t tile_rows, tile_columns; /* size of the register tile */
    void (*direct)(const kelp_conv_direct_block *block);
    void (*interleaved)(const kelp_conv_lanes *lanes);
    /* Transforms weights: for each channel the `taps` (9, 3 or 5) weights of tile_columns output
     * channels, [channel][tap][output channel], to `count` parts (36 or 16 for 9 taps, else 6),
     * which are `step` floats apart. */
    void (*winograd_weights)(const float *weights, int64_t taps, int64_t count, int64_t channels,
                             float *parts, int64_t step);
    void (*winograd_in)(const kelp_conv_winograd_tiles *tiles);  /* image to parts */
    void (*winograd_out)(const kelp_conv_winograd_tiles *tiles); /* parts to image */
} kelp_conv_kernels;

/* Returns the table of the instruction set in use. Thread-safe. */
const kelp_conv_kernels *kelp_conv_kernels_get(void);

#endif
