/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Convolutions whose operands are rounded to bfloat16, over one or two axes; sums are floats. The
 * phases are those of conv.h: an algorithm is chosen and reserved once, then run.
 *
 * A tensor of bfloat16 is NHWC, although its shape is that of NCHW: only nodes of this kind read
 * it. A tensor of float32 is NCHW.
 */
#ifndef KELP_CPU_KERNELS_CONV_CONV_BF16_H_
#define KELP_CPU_KERNELS_CONV_CONV_BF16_H_

#include "base/checked.h"
#include "cpu/kernels/elementwise/elementwise_kernels.h"
#include "cpu/kernels/sliding/window.h"
#include "cpu/kernels/bf16/bf16_kernels.h"

#include <kelp/op_env.h>
#include <string.h>

/* How constant weights are packed for an algorithm. */
typedef enum kelp_conv_bf16_layout {
    KELP_CONV_BF16_ROWS = 0,   /* a row for each output channel: kelp_conv_bf16_pack_rows */
    KELP_CONV_BF16_PANELS,     /* kelp_bf16_pack_transposed: depth by output channels; one group */
    KELP_CONV_BF16_TAPS_FIRST, /* kelp_conv_bf16_pack_taps_first; one group */
    KELP_CONV_BF16_LAYOUTS
} kelp_conv_bf16_layout;

/* Blocking over planes of pairs of channels. */
typedef struct kelp_conv_bf16_planes {
    int64_t pairs, row_phases, column_planes;
    bool expanded;         /* a plane for each column of the kernel */
    int64_t strip;         /* output rows */
    int64_t width, phase;  /* of a plane: columns, and pairs of one phase */
    int64_t plane;         /* from one pair of channels to the next */
    int64_t across;        /* parts that the output channels are divided into */
    int64_t column_offset; /* of one column, after the planes */
    int64_t planes_pairs, weights_step;
} kelp_conv_bf16_planes;

/* Blocking over pixels (NHWC): pixels are the rows of a GEMM, output channels its columns. */
typedef struct kelp_conv_bf16_nhwc {
    kelp_conv_window w; /* of the iteration: an image that needs no rows is one row */
    int64_t channels;   /* of a padded tile's pixel: even */
    int64_t taps;       /* kernel positions, or its rows, whose pixels are contiguous */
    bool padded;        /* input is copied to a tile: it is of floats, or has borders */
    int64_t rows, columns, down, across_image, across, part; /* part: panels of a unit */
    int64_t wide;               /* pixels from one row of the tile, or of the image, to the next */
    int64_t tile, result_bytes; /* bytes of a worker's tile, and of its result in floats */
} kelp_conv_bf16_nhwc;

typedef struct kelp_conv_bf16 {
    kelp_conv_shape shape;
    const kelp_bf16_kernels *kernels;
    int threads;
    kelp_act act;
    bool x_is_bf16, y_is_bf16, has_residual, residual_is_bf16;
    /* Set by reserve; `scratch` is shared_bytes, a multiple of 64, then worker_bytes for each
     * thread. */
    int64_t shared_bytes, worker_bytes;
    union {
        kelp_conv_bf16_planes planes;
        kelp_conv_bf16_nhwc nhwc;
    } blocking;
    const kelp_bf16_pair *weights; /* in the algorithm's layout */
    /* Operands, set before each run. */
    const void *x, *residual; /* float or bfloat16; residual may be NULL */
    const float *bias;        /* or NULL */
    void *y, *scratch;        /* scratch is 64-byte aligned */
} kelp_conv_bf16;

typedef struct kelp_conv_bf16_algorithm {
    const char *name; /* as profiles show it */
    kelp_conv_bf16_layout layout;
    bool (*is_applicable)(const kelp_conv_bf16 *conv);
    /* Chooses the blocking and sets shared_bytes and worker_bytes. Returns false if a size
     * overflows. */
    bool (*reserve)(kelp_conv_bf16 *conv);
    void (*run)(const kelp_op_env *env, kelp_conv_bf16 *conv);
} kelp_conv_bf16_algorithm;

/* Operands or results of bfloat16: nothing is transposed between such nodes. */
extern const kelp_conv_bf16_algorithm kelp_conv_bf16_nhwc_gemm;
/* Floats with few output positions: windows are gathered and are the rows of a GEMM. */
extern const kelp_conv_bf16_algorithm kelp_conv_bf16_im2row;
/* Other floats: planes of pairs of channels are the panels of a GEMM. */
extern const kelp_conv_bf16_algorithm kelp_conv_bf16_planes_gemm;

/* Returns the first algorithm that is applicable, in this order. */
const kelp_conv_bf16_algorithm *kelp_conv_bf16_choose(const kelp_conv_bf16 *conv);

/* ---- packing of weights [out_channels, in_channels, taps] of floats, at any address ---- */
/* Pairs from one row to the next of KELP_CONV_BF16_ROWS. */
int64_t kelp_conv_bf16_row_step(int64_t in_channels, int64_t taps);
/* For each output channel and each pair of input channels one pair for each tap. `out` has
 * out_channels * row_step pairs. */
void kelp_conv_bf16_pack_rows(const kelp_bf16_kernels *kernels, const void *weights, int64_t taps,
                              int64_t in_channels, int64_t out_channels, kelp_bf16_pair *out);
/* Panels of KELP_BF16_COLUMNS output channels, each tap after tap the pairs of input channels, an
 * odd last channel is paired with zero. `ordered` is scratch memory: KELP_BF16_COLUMNS rows of the
 * in_channels, rounded up to even, times taps floats. */
void kelp_conv_bf16_pack_taps_first(const kelp_bf16_kernels *kernels, const void *weights,
                                    int64_t taps, int64_t in_channels, int64_t out_channels,
                                    float *ordered, kelp_bf16_pair *out);

#endif
