/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tables of the inputs and weights of each output of a resized axis. Source: ONNX operator
 * specification, Resize-19; Keys, "Cubic Convolution Interpolation for Digital Image Processing",
 * 1981.
 */
#include "base/assert.h"
#include "cpu/ops/image/resize.h"

#include <math.h>

double kelp_resize_source(const kelp_resize_plan *r, const kelp_resize_axis *axis, int64_t at) {
    double in = (double)axis->in, length = axis->exact ? (double)axis->out : axis->scale * in;
    double x = (double)at, half;
    /* a quotient of integers is exact where a division by the rounded scale is not */
    if (axis->exact)
        half = (x + 0.5) * in / (double)axis->out - 0.5;
    else
        half = (x + 0.5) / axis->scale - 0.5;
    switch (r->coordinates) {
    case KELP_RESIZE_ALIGN_CORNERS:
        return length == 1 ? 0 : x * (in - 1) / (length - 1);
    case KELP_RESIZE_ASYMMETRIC:
        return axis->exact ? x * in / (double)axis->out : x / axis->scale;
    case KELP_RESIZE_CROP:
        if (length == 1)
            return (axis->begin + axis->end) * (in - 1) / 2;
        return axis->begin * (in - 1) + x * (axis->end - axis->begin) * (in - 1) / (length - 1);
    case KELP_RESIZE_PYTORCH_HALF_PIXEL:
        return length == 1 ? -0.5 : half;
    case KELP_RESIZE_HALF_PIXEL_SYMMETRIC:
        return in / 2 * (1 - (double)axis->out / length) + half;
    case KELP_RESIZE_TF_HALF_PIXEL:
        return half + 0.5;
    case KELP_RESIZE_HALF_PIXEL:
        break;
    }
    return half;
}

/* Returns half the width of the interpolation kernel, in inputs. */
static double radius_of(const kelp_resize_plan *r, const kelp_resize_axis *axis) {
    double scale = r->antialias && axis->scale < 1 ? axis->scale : 1;
    return (r->mode == KELP_RESIZE_CUBIC ? 2 : 1) / scale;
}

static int64_t width_of(const kelp_resize_plan *r, const kelp_resize_axis *axis) {
    return 2 * (int64_t)ceil(radius_of(r, axis));
}

int64_t kelp_resize_taps(const kelp_resize_plan *r, const kelp_resize_axis *axis) {
    if (r->mode == KELP_RESIZE_NEAREST)
        return 1;
    double radius = radius_of(r, axis);
    return radius * 2 >= (double)axis->in ? axis->in : KELP_MIN(axis->in, width_of(r, axis));
}

static double weight_of(const kelp_resize_plan *r, double x) {
    double a = (double)r->cubic_a;
    x = fabs(x);
    if (r->mode == KELP_RESIZE_LINEAR)
        return x < 1 ? 1 - x : 0;
    if (x <= 1)
        return ((a + 2) * x - (a + 3)) * x * x + 1;
    return x < 2 ? ((a * x - 5 * a) * x + 8 * a) * x - 4 * a : 0;
}

static int64_t clamp(double x, int64_t max) {
    return x > 0 ? (x < (double)max ? (int64_t)x : max) : 0;
}

static int64_t nearest(const kelp_resize_plan *r, const kelp_resize_axis *axis, double x) {
    kelp_resize_round round = r->round;
    if (round == KELP_RESIZE_SIMPLE)
        round = axis->scale < 1 ? KELP_RESIZE_CEIL : KELP_RESIZE_FLOOR;
    switch (round) {
    case KELP_RESIZE_ROUND_PREFER_FLOOR:
        x = ceil(x - 0.5);
        break;
    case KELP_RESIZE_ROUND_PREFER_CEIL:
        x = floor(x + 0.5);
        break;
    case KELP_RESIZE_CEIL:
        x = ceil(x);
        break;
    default:
        x = floor(x);
        break;
    }
    return clamp(x, axis->in - 1);
}

/* Writes the weights of one output and returns its first input. Weights of inputs outside the axis
 * are added to its ends, or left out with exclude_outside. */
static int64_t weigh(const kelp_resize_plan *r, const kelp_resize_axis *axis, double x,
                     double *sums) {
    int64_t step = axis->out;
    double scale = r->antialias && axis->scale < 1 ? axis->scale : 1, total = 0;
    /* positions farther outside have the same weights; keeps the integers small */
    double span = (double)axis->in + radius_of(r, axis) + 2;
    x = x < -span ? -span : x > 2 * span ? 2 * span : x;
    KELP_ASSERT(axis->taps > 0 && axis->taps <= axis->in);
    int64_t width = width_of(r, axis), begin = (int64_t)floor(x) - width / 2 + 1;
    int64_t last = axis->in - 1;
    int64_t first = begin < 0 ? 0 : begin;
    first = KELP_MIN(first, axis->in - axis->taps);
    for (int64_t k = 0; k < axis->taps; k++)
        sums[k * step] = 0;
    for (int64_t i = begin; i < begin + width; i++) {
        if (r->exclude_outside && (i < 0 || i > last))
            continue;
        double weight = weight_of(r, ((double)i - x) * scale);
        int64_t at = i < 0 ? 0 : i > last ? last : i;
        at = KELP_MIN(KELP_MAX(at - first, (int64_t)0), axis->taps - 1);
        sums[at * step] += weight;
        total += weight;
    }
    if ((r->antialias || r->exclude_outside) && total != 0)
        for (int64_t k = 0; k < axis->taps; k++)
            sums[k * step] /= total;
    return first;
}

void kelp_resize_fill(const kelp_resize_plan *r, const kelp_resize_axis *axis, void *scratch) {
    int32_t *first = (int32_t *)(void *)((char *)scratch + axis->first_offset);
    void *weights = (char *)scratch + axis->weights_offset;
    KELP_ASSERT(axis->resized && axis->in > 0 && axis->in < INT32_MAX);
    for (int64_t o = 0; o < axis->out; o++) {
        double x = kelp_resize_source(r, axis, o);
        if (r->coordinates == KELP_RESIZE_CROP && !(x >= 0 && x <= (double)(axis->in - 1)))
            first[o] = -1;
        else if (r->mode == KELP_RESIZE_NEAREST)
            first[o] = (int32_t)nearest(r, axis, x);
        else /* as doubles; the loop below converts them to float in place */
            first[o] = (int32_t)weigh(r, axis, x, (double *)weights + o);
    }
    if (r->mode == KELP_RESIZE_NEAREST || r->wide)
        return;
    for (int64_t i = 0; i < axis->out * axis->taps; i++) {
        double value;
        memcpy(&value, (const char *)weights + (size_t)i * sizeof value, sizeof value);
        float narrow = (float)value;
        memcpy((char *)weights + (size_t)i * sizeof narrow, &narrow, sizeof narrow);
    }
}
