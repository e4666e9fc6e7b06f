/* SPDX-License-Identifier: Apache-2.0 */
/* The interface between the files of Resize: the inputs and weights of each output, per axis. */
#ifndef KELP_CPU_OPS_IMAGE_RESIZE_H_
#define KELP_CPU_OPS_IMAGE_RESIZE_H_

#include "cpu/ops/kernel.h"

/* The attribute 'mode'. */
typedef enum kelp_resize_mode {
    KELP_RESIZE_NEAREST,
    KELP_RESIZE_LINEAR,
    KELP_RESIZE_CUBIC
} kelp_resize_mode;
/* The attribute 'coordinate_transformation_mode'. */
typedef enum kelp_resize_coordinates {
    KELP_RESIZE_HALF_PIXEL,
    KELP_RESIZE_HALF_PIXEL_SYMMETRIC,
    KELP_RESIZE_PYTORCH_HALF_PIXEL,
    KELP_RESIZE_ALIGN_CORNERS,
    KELP_RESIZE_ASYMMETRIC,
    KELP_RESIZE_TF_HALF_PIXEL,
    KELP_RESIZE_CROP
} kelp_resize_coordinates;
/* The attribute 'nearest_mode'. */
typedef enum kelp_resize_round {
    KELP_RESIZE_ROUND_PREFER_FLOOR,
    KELP_RESIZE_ROUND_PREFER_CEIL,
    KELP_RESIZE_FLOOR,
    KELP_RESIZE_CEIL,
    KELP_RESIZE_SIMPLE /* version 10: up if the axis shrinks, else down */
} kelp_resize_round;

/* One axis, with its table in scratch memory. Output o is the sum of input[first[o] + t] *
 * weights[t * out + o] over t < taps. The nearest mode has one tap and no weights. A negative
 * first[o] is outside the input; the output is the extrapolation value. */
typedef struct kelp_resize_axis {
    int64_t in, out;
    double scale;      /* as requested */
    bool exact;        /* the scale is out / in */
    double begin, end; /* region of interest */
    bool resized;
    int64_t taps;
    size_t first_offset;   /* int32[out] */
    size_t weights_offset; /* float or double [taps, out] */
} kelp_resize_axis;

/* The `plan` of the kernels Resize and Upsample. */
typedef struct kelp_resize_plan {
    kelp_resize_mode mode;
    kelp_resize_coordinates coordinates;
    kelp_resize_round round;
    bool antialias, exclude_outside;
    float cubic_a, extrapolation;
    int32_t rank;
    kelp_resize_axis axes[KELP_MAX_RANK];
    bool wide;                /* arithmetic in double */
    size_t buffer_offsets[4]; /* input, output, two between passes */
    size_t rows_offset;       /* one row for each worker */
    int64_t row_elements;
} kelp_resize_plan;

/* Returns the position of output `at` of an axis in the input. */
double kelp_resize_source(const kelp_resize_plan *r, const kelp_resize_axis *axis, int64_t at);
/* Returns the number of inputs of each output. */
int64_t kelp_resize_taps(const kelp_resize_plan *r, const kelp_resize_axis *axis);
/* Writes the table of the axis to scratch memory. */
void kelp_resize_fill(const kelp_resize_plan *r, const kelp_resize_axis *axis, void *scratch);

/* Reserves the scratch memory of the linear and cubic modes; for reshape. */
kelp_status *kelp_resize_blend_reserve(kelp_resize_plan *r, kelp_op_args *args) KELP_MUST_USE;
/* Computes the linear and cubic modes after kelp_resize_fill of all resized axes. */
void kelp_resize_blend(const kelp_resize_plan *r, kelp_op_args *args);

#endif
