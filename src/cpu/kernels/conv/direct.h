/* SPDX-License-Identifier: Apache-2.0 */
/* Convolutions over two axes whose windows are not unrolled: the input, with its padding around it,
 * is the matrix, each of whose rows begins at another place. */
#ifndef KELP_CPU_KERNELS_CONV_DIRECT_H_
#define KELP_CPU_KERNELS_CONV_DIRECT_H_

#include "cpu/ops/conv/window.h"
#include "cpu/kernels/simd/simd.h"

#define KELP_FRAME_LANES 16     /* floats of the widest vector */
#define KELP_FRAME_ROWS 12      /* rows of the highest tile */
#define KELP_FRAME_TOGETHER 400 /* floats from one row of weights to the next: 25 cache lines */

/* How the frames lie; a plan keeps it. */
typedef struct kelp_conv_frames {
    bool bare;             /* the input itself is the frame */
    int64_t strip;         /* output rows at a time */
    int64_t slices, slice; /* of the output channels, and how many each has at most */
    int64_t high, wide;    /* of one phase: inputs that a stride of s reaches lie together */
    int64_t downs, across; /* phases */
    int64_t frame_floats, product_floats, offset_floats; /* the first two a worker's */
} kelp_conv_frames;

typedef struct kelp_conv_direct {
    const kelp_window *w;
    const kelp_conv_frames *frames;
    const kelp_simd *simd;
    int64_t batch, groups, in_channels, out_channels; /* channels a group */
    const float *x;
    const void *weights;          /* at any address */
    const float *bias, *residual; /* or NULL */
    kelp_act act;
    float *y;
    float *buffer; /* offset_floats, then frame_floats + product_floats a worker */
} kelp_conv_direct;

/* Whether that pays; then how. */
bool kelp_conv_direct_pays(const kelp_window *w, int64_t units, int64_t in_channels,
                           int64_t out_channels, int threads, kelp_conv_frames *out);
void kelp_conv_direct_run(const kelp_op_env *env, const kelp_conv_direct *job);

#endif
