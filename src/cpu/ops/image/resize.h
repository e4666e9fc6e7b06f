/* SPDX-License-Identifier: Apache-2.0 */
/* Between the files of Resize: where each output position reads, axis by axis. */
#ifndef KELP_CPU_OPS_IMAGE_RESIZE_H_
#define KELP_CPU_OPS_IMAGE_RESIZE_H_

#include "cpu/ops/kernel.h"

typedef enum kelp_resize_mode {
    KELP_RESIZE_NEAREST,
    KELP_RESIZE_LINEAR,
    KELP_RESIZE_CUBIC
} kelp_resize_mode;
typedef enum kelp_resize_place {
    KELP_RESIZE_HALF_PIXEL,
    KELP_RESIZE_HALF_PIXEL_SYMMETRIC,
    KELP_RESIZE_PYTORCH_HALF_PIXEL,
    KELP_RESIZE_ALIGN_CORNERS,
    KELP_RESIZE_ASYMMETRIC,
    KELP_RESIZE_TF_HALF_PIXEL,
    KELP_RESIZE_CROP
} kelp_resize_place;
typedef enum kelp_resize_round {
    KELP_RESIZE_ROUND_PREFER_FLOOR,
    KELP_RESIZE_ROUND_PREFER_CEIL,
    KELP_RESIZE_FLOOR,
    KELP_RESIZE_CEIL,
    KELP_RESIZE_SIMPLE /* version 10: up when the image shrinks, else down */
} kelp_resize_round;

/* One axis. Inputs first[o] + t (int32) with weights[t * out + o], t < taps, make output o; nearest
 * has one tap without weights. first -1: nothing is there, the extrapolation value stands. */
typedef struct kelp_resize_axis {
    int64_t in, out;
    double scale;      /* as asked for */
    bool exact;        /* the scale is out / in */
    double begin, end; /* region of interest */
    bool resized;
    int64_t taps;
    size_t first_offset, weights_offset; /* in scratch, and `weights` as float or double */
} kelp_resize_axis;

typedef struct kelp_resize_plan {
    kelp_resize_mode mode;
    kelp_resize_place place;
    kelp_resize_round round;
    bool antialias, exclude_outside;
    float cubic_a, extrapolation;
    int32_t rank;
    kelp_resize_axis axes[KELP_MAX_RANK];
    bool wide;                /* arithmetic in double */
    size_t buffer_offsets[4]; /* input, output, two between passes */
    size_t rows_offset;
    int64_t row_elements; /* of a worker's buffer */
} kelp_resize_plan;

/* Where output `at` of an axis lies in the input. */
double kelp_resize_source(const kelp_resize_plan *r, const kelp_resize_axis *axis, int64_t at);
/* How many inputs make an output. */
int64_t kelp_resize_taps(const kelp_resize_plan *r, const kelp_resize_axis *axis);
/* Fills the axis' table in scratch. */
void kelp_resize_fill(const kelp_resize_plan *r, const kelp_resize_axis *axis, void *scratch);

/* What the linear and cubic modes need in scratch; then the work itself. */
kelp_status *kelp_resize_blend_reserve(kelp_resize_plan *r, kelp_op_args *args) KELP_MUST_USE;
void kelp_resize_blend(const kelp_resize_plan *r, kelp_op_args *args);

#endif
