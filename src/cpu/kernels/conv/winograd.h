/* SPDX-License-Identifier: Apache-2.0 */
/* Convolutions with a stride of 1 by Winograd's minimal filtering: of 3 x 3, 36 multiplications for
 * 16 outputs instead of 144, or 16 for 4 instead of 36; of 3 or 5 along one axis, 6 for 4 instead
 * of 12 and 6 for 2 instead of 10. Constant weights are transformed once. */
#ifndef KELP_CPU_KERNELS_CONV_WINOGRAD_H_
#define KELP_CPU_KERNELS_CONV_WINOGRAD_H_

#include "cpu/ops/conv/window.h"
#include "cpu/kernels/simd/simd.h"

/* How the tiles are taken; a plan keeps it. */
typedef struct kelp_conv_tiles {
    int64_t points;            /* along an axis: 6 or 4 */
    int64_t tall, wide, parts; /* outputs of a tile: 4 x 4, 2 x 2, or 4 or 2 in a line; 36, 16, 6 */
    int64_t down, across;      /* of a block */
    int64_t blocks, columns;   /* of an image; side by side */
    int64_t inputs, outputs;   /* channels, filled up */
    int64_t slices, slice;     /* of the output channels, and how many each has at most */
    int64_t image_floats, in_step, out_step, parts_floats;
    int64_t worker_floats;
} kelp_conv_tiles;

typedef struct kelp_conv_winograd {
    const kelp_window *w;
    const kelp_conv_tiles *tiles;
    const kelp_simd *simd;
    int64_t batch, in_channels, out_channels;
    const float *x, *panels, *bias, *residual; /* the last two may be NULL */
    kelp_act act;
    float *y, *buffer; /* worker_floats a worker */
} kelp_conv_winograd;

/* Whether that pays; then how. */
bool kelp_conv_winograd_pays(const kelp_window *w, const kelp_simd *simd, int64_t batch,
                             int64_t in_channels, int64_t out_channels, int threads,
                             kelp_conv_tiles *out);
/* Weights [out, in, taps], at any address, to their parts as panels of a product: as many as there
 * are points, of 9 taps the square of it. */
bool kelp_conv_winograd_size(const kelp_simd *simd, int64_t taps, int64_t points,
                             int64_t in_channels, int64_t out_channels, size_t *out_floats);
void kelp_conv_winograd_pack(const kelp_simd *simd, int64_t taps, int64_t points,
                             const void *weights, int64_t in_channels, int64_t out_channels,
                             float *out);
void kelp_conv_winograd_run(const kelp_op_env *env, const kelp_conv_winograd *job);

#endif
