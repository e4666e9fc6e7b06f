/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What both ways of convolving in bfloat16 know of a node. A tensor of bfloat16 lies with its
 * channels side by side, pixel after pixel, whatever its shape says: only such nodes read it.
 */
#ifndef KELP_CPU_OPS_CONV_CONV_BF16_H_
#define KELP_CPU_OPS_CONV_CONV_BF16_H_

#include "cpu/ops/conv/conv_bf16_weights.h"
#include "cpu/ops/conv/window.h"

typedef struct kelp_bf16_conv {
    kelp_window w;
    int64_t batch, groups, in_channels, out_channels; /* channels a group */
    kelp_act act;
    bool half; /* the result is of bfloat16 */
    bool x_half, residual_half;
} kelp_bf16_conv;

/* Pixels are the rows of a product and output channels its columns. */
typedef struct kelp_bf16_pixel_plan {
    kelp_window w; /* as it is walked: an image that needs no rows is one row */
    const kelp_bf16_pair *panels;
    int64_t channels; /* of a frame's pixel: even */
    int64_t taps;     /* kernel positions, or its rows, whose pixels lie side by side */
    bool framed;      /* input is copied: it is of floats, or has borders */
    int64_t rows, columns, down, beside, across, part; /* part: panels a unit */
    int64_t wide;                        /* pixels from one row of what is walked to the next */
    int64_t frame, turned, worker_bytes; /* bytes of a worker's */
    size_t taps_offset, offset;
} kelp_bf16_pixel_plan;

/* Phase reshape: a conv of one group with a bfloat16 input, residual or result. */
kelp_status *kelp_bf16_pixels_reshape(const kelp_bf16_conv *conv, const void *state,
                                      kelp_op_args *args,
                                      kelp_bf16_pixel_plan *out_plan) KELP_MUST_USE;
void kelp_bf16_pixels_run(const kelp_bf16_conv *conv, const kelp_bf16_pixel_plan *plan,
                          const kelp_op_args *args);

#endif
