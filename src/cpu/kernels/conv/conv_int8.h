/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Convolutions of 8-bit integers with sums of 32 bits. The phases are those of conv.h: an algorithm
 * is chosen and reserved once, then run.
 *
 * Images are transposed to NHWC, with their padding around them, so that a position's channels are
 * contiguous; a window is then a row of a GEMM. The results are NCHW again.
 */
#ifndef KELP_CPU_KERNELS_CONV_CONV_INT8_H_
#define KELP_CPU_KERNELS_CONV_CONV_INT8_H_

#include "cpu/kernels/sliding/window.h"
#include "cpu/kernels/gemm/gemm_int8.h"

/* ---- weights ---- */
typedef struct kelp_conv_int8_weights_shape {
    int64_t groups, in_channels, out_channels, taps; /* channels of a group */
    bool depthwise; /* one channel in and out of each group: no GEMM */
} kelp_conv_int8_weights_shape;

typedef struct kelp_conv_int8_weights {
    const int8_t *panels; /* of each group; not of depthwise ones */
    const int16_t *taps;  /* of those w[tap][channel], less the zero points */
    size_t group_bytes;
    const int32_t *balance, *zeros; /* of all output channels; see kelp_int8_weights */
    int32_t zero;
} kelp_conv_int8_weights;

/* Reads the shape of weights [out channels, channels of a group, spatial…] and their zero points
 * (NULL: 0). Returns false if they do not match. */
bool kelp_conv_int8_weights_shape_of(const kelp_tensor *weights, const kelp_tensor *zero,
                                     int64_t groups, kelp_conv_int8_weights_shape *out);
/* Bytes of the packed weights, and of a buffer that packing needs; multiples of 64. */
bool kelp_conv_int8_packed_size(const kelp_conv_int8_weights_shape *shape, size_t *out_bytes,
                                size_t *out_buffer_bytes);
#define KELP_CONV_INT8_LAYOUT "int8conv/1" /* name of the format, for every instruction set */
/* `memory` has the size above and is 64-byte aligned. */
void kelp_conv_int8_pack(const kelp_int8_kernels *kernels,
                         const kelp_conv_int8_weights_shape *shape, const kelp_tensor *weights,
                         const kelp_tensor *zero, void *memory, void *buffer);
/* Sets the pointers into packed weights. */
void kelp_conv_int8_packed_view(const kelp_conv_int8_weights_shape *shape, const void *memory,
                                kelp_conv_int8_weights *out);

/* ---- convolutions ---- */
typedef struct kelp_conv_int8 {
    kelp_conv_shape shape;
    bool depthwise; /* of the weights' shape */
    int threads;
    /* Set by kelp_conv_int8_plan_images: the sizes of the padded image, and the bytes of an image
     * without and with padding, and of a window. */
    bool padded;
    int64_t padded_size[KELP_WINDOW_AXES], image_bytes, padded_bytes, window_bytes;
    /* Sizes of scratch memory. The offsets are in `scratch`. */
    int64_t padded_offset, gathered_offset, scratch_bytes;
    /* Operands, set before each run. */
    const kelp_int8_kernels *kernels;
    const uint8_t *x;
    uint8_t flip;    /* 0x80 if x is signed */
    int32_t padding; /* the zero point of x, as an unsigned byte */
    kelp_conv_int8_weights weights;
    kelp_int8_gemm gemm; /* of the first group; its `y` and finish are set */
    void *scratch;       /* 64-byte aligned */
} kelp_conv_int8;

typedef struct kelp_conv_int8_algorithm {
    const char *name; /* as profiles show it */
    bool (*is_applicable)(const kelp_conv_int8 *conv);
    /* Return the bytes of scratch memory besides the images: for all threads, and for each. NULL:
     * 0.
     */
    int64_t (*shared_bytes)(const kelp_conv_int8 *conv);
    int64_t (*worker_bytes)(const kelp_conv_int8 *conv);
    /* Multiplies and finishes; the images are in scratch. */
    void (*run)(const kelp_op_env *env, kelp_conv_int8 *conv);
} kelp_conv_int8_algorithm;

/* Groups of one channel: windows are summed without a GEMM. */
extern const kelp_conv_int8_algorithm kelp_conv_int8_depthwise;
/* Windows are contiguous in the image and are read in place. */
extern const kelp_conv_int8_algorithm kelp_conv_int8_in_place;
/* Windows are gathered to the rows of a matrix. */
extern const kelp_conv_int8_algorithm kelp_conv_int8_im2row;

/* Computes the sizes of the images, which decide which algorithms are applicable. Returns false if
 * the padded image is too large. */
bool kelp_conv_int8_plan_images(kelp_conv_int8 *conv);
/* Returns the first algorithm that is applicable, in the order above. */
const kelp_conv_int8_algorithm *kelp_conv_int8_choose(const kelp_conv_int8 *conv);
/* Computes the offsets and the size of scratch memory. Returns false if it overflows. */
bool kelp_conv_int8_reserve(kelp_conv_int8 *conv, const kelp_conv_int8_algorithm *algorithm);
/* Transposes and pads the images, then runs the algorithm. */
void kelp_conv_int8_run(const kelp_op_env *env, const kelp_conv_int8_algorithm *algorithm,
                        kelp_conv_int8 *conv);

#endif
