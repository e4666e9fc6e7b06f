/* SPDX-License-Identifier: Apache-2.0 */
/* Convolutions of many images that are so small that their padding is a good part of the work: the
 * images lie side by side in vectors, and taps outside them are left out. */
#ifndef KELP_CPU_KERNELS_CONV_INTERLEAVED_H_
#define KELP_CPU_KERNELS_CONV_INTERLEAVED_H_

#include "cpu/ops/conv/window.h"
#include "cpu/kernels/simd/simd.h"

typedef struct kelp_conv_lanes {
    const kelp_window *w;
    const kelp_simd *simd;
    int64_t batch, in_channels, out_channels;
    const float *x;
    const void *weights; /* at any address */
    const float *bias;   /* or NULL */
    kelp_act act;
    float *y, *buffer; /* kelp_conv_lanes_floats a worker */
    int64_t buffer_floats;
} kelp_conv_lanes;

/* Whether that pays: two axes at most, a deep kernel, a batch that fills most of the vectors. */
bool kelp_conv_lanes_pays(const kelp_window *w, const kelp_simd *simd, int64_t batch,
                          int64_t in_channels, int64_t out_channels);
/* What a worker needs; -1 when too much. */
int64_t kelp_conv_lanes_floats(const kelp_window *w, const kelp_simd *simd, int64_t in_channels,
                               int64_t out_channels);
void kelp_conv_lanes_run(const kelp_op_env *env, kelp_conv_lanes *job);

#endif
