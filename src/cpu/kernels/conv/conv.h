/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Float convolutions: the parameters of all algorithms, and the algorithms.
 *
 * An algorithm is chosen once, when shapes are known: the caller fills in the shape, calls
 * is_applicable and is_profitable, then reserve, which chooses the blocking and the sizes of
 * the scratch memory. Each run sets the operands. Kernels allocate nothing; a kelp_conv is used by
 * one thread at a time, and run distributes its work over the threads of `env`.
 */
#ifndef KELP_CPU_KERNELS_CONV_CONV_H_
#define KELP_CPU_KERNELS_CONV_CONV_H_

#include "base/checked.h"
#include "cpu/kernels/conv/conv_kernels.h"
#include "cpu/kernels/gemm/gemm_kernels.h"
#include "cpu/kernels/sliding/sliding_kernels.h"
#include "cpu/kernels/sliding/window.h"

#include <kelp/op_env.h>
#include <string.h>

/* How constant weights are packed for an algorithm. */
typedef enum kelp_conv_layout {
    KELP_CONV_UNPACKED = 0, /* [out channels, in channels of a group, kernel…], at any address */
    KELP_CONV_IM2ROW,       /* panels of kelp_conv_im2row_pack */
    KELP_CONV_WINOGRAD_6,   /* panels of kelp_conv_winograd_pack, six points along an axis */
    KELP_CONV_WINOGRAD_4,   /* the same, four points */
    KELP_CONV_LAYOUTS
} kelp_conv_layout;

/* Blocking of im2col: the output rows, and images, whose windows are one matrix. */
typedef struct kelp_conv_im2col {
    int64_t strip, images;
    int64_t matrix_floats, result_floats, plane_floats; /* of a worker */
} kelp_conv_im2col;

/* Blocking of depthwise convolutions. */
typedef struct kelp_conv_depthwise {
    int64_t strip; /* output rows */
} kelp_conv_depthwise;

/* Blocking of direct: strips of output rows, over padded tiles of the input. */
typedef struct kelp_conv_direct {
    bool bare;             /* the input is used in place of the padded tile */
    int64_t strip;         /* output rows at a time */
    int64_t slices, slice; /* of the output channels; maximum channels of a slice */
    int64_t high, wide;    /* of one phase: the inputs at one remainder of the stride */
    int64_t downs, across; /* phases */
    int64_t tile_floats, result_floats; /* of a worker */
} kelp_conv_direct;

/* Blocking of Winograd's convolutions. */
typedef struct kelp_conv_winograd {
    int64_t points;            /* along an axis: 6 or 4 */
    int64_t tall, wide, parts; /* outputs of a tile: 4 x 4, 2 x 2, or 4 or 2 in a line; 36, 16, 6 */
    int64_t down, across;      /* tiles of a block */
    int64_t blocks, columns;   /* blocks of an image; in a row of it */
    int64_t inputs, outputs;   /* channels, rounded up to whole vectors */
    int64_t slices, slice;     /* of the output channels; maximum channels of a slice */
    int64_t image_floats, in_step, out_step, parts_floats;
} kelp_conv_winograd;

/* A convolution: y = act(conv(x, weights) + bias + residual). */
typedef struct kelp_conv {
    kelp_conv_shape shape;
    /* The tables that the choice of the blocking and the layout of packed weights depend on; see
     * kelp_conv_select_kernels. */
    const kelp_conv_kernels *kernels;
    const kelp_gemm_kernels *gemm;
    const kelp_sliding_kernels *sliding;
    int threads;
    kelp_act act;
    bool is_f64;       /* operands are double; no activation, no residual */
    bool has_residual; /* `residual` will be set */
    /* Set by reserve; `scratch` is shared_floats, then worker_floats for each thread. */
    int64_t shared_floats, worker_floats;
    union {
        kelp_conv_im2col im2col;
        kelp_conv_depthwise depthwise;
        kelp_conv_direct direct;
        kelp_conv_winograd winograd;
    } blocking;
    /* Operands, set before each run. */
    const float *x;
    const void *weights;          /* unpacked, at any address */
    const float *packed_weights;  /* in the algorithm's layout, if it has one */
    const float *bias, *residual; /* or NULL */
    float *y, *scratch;           /* scratch is 64-byte aligned */
} kelp_conv;

typedef struct kelp_conv_algorithm {
    const char *name; /* as profiles show it */
    kelp_conv_layout layout;
    /* Returns true if the algorithm computes this shape. */
    bool (*is_applicable)(const kelp_conv *conv);
    /* Returns true if it is expected to be faster than all algorithms after it in the list.
     * NULL: always. */
    bool (*is_profitable)(const kelp_conv *conv);
    /* Chooses the blocking and sets shared_floats and worker_floats, which are 0 before. Returns
     * false if a size overflows. NULL: no blocking and no scratch memory. */
    bool (*reserve)(kelp_conv *conv);
    void (*run)(const kelp_op_env *env, kelp_conv *conv);
} kelp_conv_algorithm;

/* Doubles, according to the definition. */
extern const kelp_conv_algorithm kelp_conv_reference_f64;
/* One input channel in each group: windows slide over the image, or over a padded copy of it. */
extern const kelp_conv_algorithm kelp_conv_depthwise_image, kelp_conv_depthwise_padded;
/* The same in three dimensions, row by row. */
extern const kelp_conv_algorithm kelp_conv_depthwise_rows;
/* Few output positions: windows are the rows of a GEMM, output channels its columns. The first one
 * is for so few positions that no other algorithm is as fast. */
extern const kelp_conv_algorithm kelp_conv_im2row_few, kelp_conv_im2row;
/* Batches of small images, interleaved: one image in each lane of a vector. */
extern const kelp_conv_algorithm kelp_conv_interleaved;
/* Winograd's minimal filtering F(4x4, 3x3), F(2x2, 3x3), and F(4, 3) or F(2, 5) along one axis. */
extern const kelp_conv_algorithm kelp_conv_winograd_4x4, kelp_conv_winograd_2x2,
    kelp_conv_winograd_1d;
/* A GEMM that reads windows where they are in a padded tile of the input. */
extern const kelp_conv_algorithm kelp_conv_direct_gemm;
/* Kernels of size 1: a GEMM of weights and image. */
extern const kelp_conv_algorithm kelp_conv_pointwise;
/* Windows are copied to the columns of a matrix, which is multiplied by the weights. */
extern const kelp_conv_algorithm kelp_conv_im2col_gemm;

/* All of them in order of preference: a caller takes the first one that is applicable and
 * profitable, and whose packed weights it has. The last one computes every convolution of floats.
 */
#define KELP_CONV_ALGORITHMS 13
extern const kelp_conv_algorithm *const kelp_conv_algorithms[KELP_CONV_ALGORITHMS];

/* ConvTranspose in double: each input is added to the outputs that it reaches. The window's `in`
 * and `out` are the operator's; weights are [groups * in_channels, out_channels, kernel…]. */
void kelp_conv_transpose_reference_f64(const kelp_op_env *env, kelp_conv *conv);

/* ---- packing of weights [out_channels, in_channels, taps], at any address ---- */
/* Packs them for im2row: panels of tile_columns output channels, in each tap after tap the input
 * channels. `out` has kelp_gemm_packed_size floats. */
void kelp_conv_im2row_pack(const kelp_gemm_kernels *kernels, const void *weights, int64_t taps,
                           int64_t in_channels, int64_t out_channels, float *out);
/* Transforms them to panels for Winograd's convolutions: `points` parts, points² parts for 9
 * taps. The size is in floats; false when it overflows. */
bool kelp_conv_winograd_size(const kelp_gemm_kernels *kernels, int64_t taps, int64_t points,
                             int64_t in_channels, int64_t out_channels, size_t *out_floats);
void kelp_conv_winograd_pack(const kelp_conv_kernels *kernels, int64_t taps, int64_t points,
                             const void *weights, int64_t in_channels, int64_t out_channels,
                             float *out);
/* Transposes `taps` weights each of `rows` output channels, at most tile_columns, `stride` apart,
 * to out[tap * tile_columns + channel]; missing channels are zeros. */
void kelp_conv_transpose_weights(int64_t width, const void *weights, int64_t stride, int64_t rows,
                                 int64_t taps, float *out);

/* Sets the tables of the instruction set in use. */
void kelp_conv_select_kernels(kelp_conv *conv);

/* ---- functions for all algorithms ---- */
/* Returns true if no dimension exceeds int32, so that costs can be estimated in int64. Larger
 * problems fail when scratch is sized. */
bool kelp_conv_fits_int32(const kelp_conv *conv);
/* Returns true for a kernel of size 1 with stride 1 and no padding. */
bool kelp_conv_is_pointwise(const kelp_conv *conv);

/* Returns the scratch memory of a worker. */
static inline float *kelp_conv_worker_scratch(const kelp_conv *conv, int worker) {
    return conv->scratch + conv->shared_floats + worker * conv->worker_floats;
}

static inline float kelp_conv_bias(const kelp_conv *conv, int64_t channel) {
    return conv->bias != NULL ? conv->bias[channel] : 0.0f;
}

#endif
