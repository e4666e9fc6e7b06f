/* SPDX-License-Identifier: Apache-2.0 */
/* Convolutions of few output positions (a frame of sound, the last layers of a small network): the
 * positions are the rows of a product whose columns are the output channels, so that vectors are
 * full. Constant weights are turned for it once, when the first plan asks for it. */
#ifndef KELP_CPU_KERNELS_CONV_IM2ROW_H_
#define KELP_CPU_KERNELS_CONV_IM2ROW_H_

#include "cpu/ops/conv/window.h"
#include "cpu/kernels/simd/simd.h"

/* Behind a Conv whose weights are constant: shared by all contexts. */
typedef struct kelp_conv_state kelp_conv_state;
kelp_status *kelp_conv_state_create(const kelp_node *node, const kelp_op_env *env,
                                    void **out_state) KELP_MUST_USE;
void kelp_conv_state_destroy(void *state, kelp_allocator allocator);

/* So few output positions of all images that no other way comes near. */
#define KELP_CONV_NARROW_FEW 10
/* Whether that pays. */
bool kelp_conv_narrow_pays(const kelp_window *w, const kelp_simd *simd, int64_t batch,
                           int64_t in_channels, int64_t out_channels);
/* The weights laid out for one way to run, for the current instruction set, made when they are
 * first asked for; NULL when they are not constant: then the convolution runs another way. Any
 * thread. */
typedef enum kelp_conv_layout {
    KELP_CONV_TURNED = 0, /* for kelp_conv_narrow_run */
    KELP_CONV_WINOGRAD,   /* for kelp_conv_winograd_run, six points along an axis */
    KELP_CONV_WINOGRAD_4, /* and four */
    KELP_CONV_LAYOUTS
} kelp_conv_layout;
kelp_status *kelp_conv_panels(const kelp_conv_state *state, const kelp_simd *simd,
                              kelp_conv_layout layout, const float **out) KELP_MUST_USE;

/* `taps` weights each of `rows` output channels, at most tile_columns, `stride` apart and at any
 * address, to out[tap * tile_columns + channel]; zeros fill up the channels. */
void kelp_conv_turn(const kelp_simd *simd, const void *weights, int64_t stride, int64_t rows,
                    int64_t taps, float *out);

typedef struct kelp_conv_narrow {
    const kelp_window *w;
    const kelp_simd *simd;
    int64_t batch, in_channels, out_channels;
    const float *x, *panels, *bias, *residual; /* the last two may be NULL */
    kelp_act act;
    float *y, *buffer; /* kelp_conv_narrow_floats */
} kelp_conv_narrow;
/* -1 when too much. */
int64_t kelp_conv_narrow_floats(const kelp_window *w, int64_t batch, int64_t in_channels,
                                int64_t out_channels);
void kelp_conv_narrow_run(const kelp_op_env *env, const kelp_conv_narrow *job);

#endif
