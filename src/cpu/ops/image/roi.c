/* SPDX-License-Identifier: Apache-2.0 */
/*
 * RoiAlign and MaxRoiPool: pooling of the regions of a feature map to one size. Source: ONNX
 * operator specification, RoiAlign-22 and MaxRoiPool-22; He et al., "Mask R-CNN", 2017, section 3.
 */
#include "base/assert.h"
#include "cpu/ops/converted.h"
#include "tensor/real.h"

#include <math.h>

/* Maximum rows or columns of bins, so that scratch memory stays small. */
#define MAX_BINS 65536

typedef struct roi_plan {
    int64_t batch, channels, height, width, regions, out[2];
    int64_t sampling;
    double scale;
    bool maximum, half_pixel, wide; /* wide: double, else float */
    size_t bounds_offset;           /* of the bins of a worker, in scratch memory */
    const kelp_op_args *args;
} roi_plan;

static kelp_status *roi_shapes(roi_plan *p, kelp_op_args *args, int64_t columns) {
    const kelp_tensor *x = args->inputs[0], *rois = args->inputs[1];
    p->wide = x->dtype == KELP_F64;
    if ((x->dtype != KELP_F32 && !p->wide) || !kelp_ops_is_float(rois->dtype))
        return kelp_ops_bad_type(args, kelp_ops_is_float(x->dtype) ? rois->dtype : x->dtype);
    if (x->rank != 4 || rois->rank != 2 || rois->shape[1] != columns)
        return kelp_ops_bad_shapes(args, x, rois, "expected [N, C, H, W] and one row per region");
    if (p->out[0] < 1 || p->out[1] < 1 || x->shape[2] < 1 || x->shape[3] < 1)
        return kelp_ops_bad_shapes(args, x, rois, "the height or width of an image is 0");
    p->batch = x->shape[0];
    p->channels = x->shape[1];
    p->height = x->shape[2];
    p->width = x->shape[3];
    p->regions = rois->shape[0];
    p->scale = (double)kelp_node_attr_f32(args->node, "spatial_scale", 1.0f);
    int64_t shape[4] = {p->regions, p->channels, p->out[0], p->out[1]};
    return kelp_ops_set(args, 0, x->dtype, 4, shape);
}

static kelp_status *check_image(const kelp_op_args *args, int64_t image, int64_t region,
                                int64_t batch) {
    if (image >= 0 && image < batch)
        return NULL;
    return KELP_ERROR(KELP_OUT_OF_RANGE,
                      "operator '%s': the image of region %lld is out of range: expected less than "
                      "%lld, found %lld",
                      kelp_node_op_type(args->node), (long long)region, (long long)batch,
                      (long long)image);
}

/* ---- RoiAlign ---- */
static kelp_status *align_reshape(const void *state, kelp_op_args *args) {
    roi_plan *p = args->plan;
    (void)state;
    KELP_TRY(kelp_ops_check(args, 3));
    const kelp_tensor *images = args->inputs[2];
    const char *mode = kelp_node_attr_string(args->node, "mode", "avg", NULL);
    const char *coordinates = kelp_node_attr_string(
        args->node, "coordinate_transformation_mode",
        kelp_ops_version(args) < 16 ? "output_half_pixel" : "half_pixel", NULL);
    p->maximum = strcmp(mode, "max") == 0;
    p->half_pixel = strcmp(coordinates, "half_pixel") == 0;
    if ((!p->maximum && strcmp(mode, "avg") != 0) ||
        (!p->half_pixel && strcmp(coordinates, "output_half_pixel") != 0))
        return KELP_ERROR(KELP_INVALID_ARGUMENT,
                          "RoiAlign: expected mode avg or max and coordinates half_pixel or "
                          "output_half_pixel, found '%s' and '%s'",
                          mode, coordinates);
    p->out[0] = kelp_node_attr_i64(args->node, "output_height", 1);
    p->out[1] = kelp_node_attr_i64(args->node, "output_width", 1);
    p->sampling = kelp_node_attr_i64(args->node, "sampling_ratio", 0);
    if (images->dtype != KELP_I64 || kelp_tensor_elements(images) != args->inputs[1]->shape[0] ||
        p->sampling > 1 << 20)
        return kelp_ops_bad_shapes(args, args->inputs[1], images,
                                   "expected one int64 per region, the index of its image");
    return roi_shapes(p, args, 4);
}

/* Computes the four neighbours of a position and their weights; false outside the image. */
static bool neighbours(const roi_plan *p, double y, double x, int64_t *at, double *weights) {
    double height = (double)p->height, width = (double)p->width;
    if (!(y >= -1 && y <= height && x >= -1 && x <= width))
        return false;
    y = y < 0 ? 0 : y > height - 1 ? height - 1 : y;
    x = x < 0 ? 0 : x > width - 1 ? width - 1 : x;
    int64_t top = (int64_t)y, left = (int64_t)x;
    int64_t bottom = KELP_MIN(top + 1, p->height - 1), right = KELP_MIN(left + 1, p->width - 1);
    double ly = y - (double)top, lx = x - (double)left;
    KELP_ASSERT(top >= 0 && top < p->height && left >= 0 && left < p->width);
    at[0] = top * p->width + left;
    at[1] = top * p->width + right;
    at[2] = bottom * p->width + left;
    at[3] = bottom * p->width + right;
    weights[0] = (1 - ly) * (1 - lx);
    weights[1] = (1 - ly) * lx;
    weights[2] = ly * (1 - lx);
    weights[3] = ly * lx;
    return true;
}

typedef struct region {
    double begin[2], bin[2]; /* rows, columns */
    int64_t grid[2];
} region;

static region region_of(const roi_plan *p, int64_t index) {
    const kelp_tensor *rois = p->args->inputs[1];
    double box[4], offset = p->half_pixel ? 0.5 : 0;
    region r;
    kelp_real_load_f64(rois->dtype, rois->data, index * 4, 4, box);
    for (int i = 0; i < 2; i++) {
        double begin = box[1 - i] * p->scale - offset, end = box[3 - i] * p->scale - offset;
        double length = end - begin;
        if (!p->half_pixel && !(length >= 1))
            length = 1;
        r.begin[i] = begin;
        r.bin[i] = length / (double)p->out[i];
        double grid = p->sampling > 0 ? (double)p->sampling : ceil(r.bin[i]);
        r.grid[i] = grid > 0 ? (int64_t)KELP_MIN(grid, 0x1p20) : 0;
    }
    return r;
}

/* Samples whose neighbours are found at a time, for all channels of a bin. */
#define SAMPLES 64

/* Finds the neighbours of samples [first, first + count) of a bin. */
static void sample_bin(const roi_plan *p, const region *r, int64_t bin, int64_t first,
                       int64_t count, int64_t *at, double *weights) {
    int64_t row = bin / p->out[1], column = bin % p->out[1];
    memset(at, 0, (size_t)count * 4 * sizeof *at);
    memset(weights, 0, (size_t)count * 4 * sizeof *weights);
    for (int64_t s = first; s < first + count; s++, at += 4, weights += 4) {
        int64_t i = s / r->grid[1], j = s % r->grid[1];
        double y = r->begin[0] + (double)row * r->bin[0] +
                   ((double)i + 0.5) * r->bin[0] / (double)r->grid[0];
        double x = r->begin[1] + (double)column * r->bin[1] +
                   ((double)j + 0.5) * r->bin[1] / (double)r->grid[1];
        neighbours(p, y, x, at, weights);
    }
}

/* Pools the samples of a bin in all channels. Unless `begins`, y has the result of samples before.
 * Results are `step` apart. */
#define POOL_SAMPLES(name, type)                                                                  \
    static void pool_samples_##name(const roi_plan *p, int64_t image, const int64_t *at,          \
                                    const double *weights, int64_t taps, bool begins, int64_t to, \
                                    int64_t step) {                                               \
        int64_t plane = p->height * p->width;                                                     \
        const type *x = (const type *)p->args->inputs[0]->data + image * p->channels * plane;     \
        type *y = (type *)p->args->outputs[0]->data + to, by[4 * SAMPLES];                        \
        for (int64_t t = 0; t < taps; t++)                                                        \
            by[t] = (type)weights[t];                                                             \
        for (int64_t c = 0; c < p->channels; c++, x += plane, y += step) {                        \
            type sum = begins ? 0 : *y, max = begins && taps > 0 ? by[0] * x[at[0]] : sum;        \
            for (int64_t t = 0; t < taps && !p->maximum; t++)                                     \
                sum += by[t] * x[at[t]];                                                          \
            for (int64_t t = 0; t < taps && p->maximum; t++)                                      \
                max = by[t] * x[at[t]] > max ? by[t] * x[at[t]] : max;                            \
            *y = p->maximum ? max : sum;                                                          \
        }                                                                                         \
    }
POOL_SAMPLES(f32, float)
POOL_SAMPLES(f64, double)

/* A unit is a bin of a region, in all channels. */
static void align_range(void *userp, int64_t begin, int64_t end, int worker) {
    const roi_plan *p = userp;
    int64_t bins = p->out[0] * p->out[1], at[4 * SAMPLES];
    double weights[4 * SAMPLES];
    (void)worker;
    for (int64_t unit = begin; unit < end; unit++) {
        int64_t index = unit / bins, bin = unit % bins;
        int64_t image = ((const int64_t *)p->args->inputs[2]->data)[index];
        region r = region_of(p, index);
        int64_t all = r.grid[0] * r.grid[1], to = index * p->channels * bins + bin;
        KELP_ASSERT(image >= 0 && image < p->batch);
        for (int64_t first = 0; first < all || first == 0; first += SAMPLES) {
            int64_t count = KELP_MIN((int64_t)SAMPLES, all - first);
            sample_bin(p, &r, bin, first, count, at, weights);
            for (int64_t t = 0; t < 4 * count && !p->maximum; t++)
                weights[t] /= (double)all;
            (p->wide ? pool_samples_f64 : pool_samples_f32)(p, image, at, weights, 4 * count,
                                                            first == 0, to, bins);
        }
    }
}

static kelp_status *align_invoke(const void *state, kelp_op_args *args) {
    roi_plan *p = args->plan;
    (void)state;
    const int64_t *images = args->inputs[2]->data;
    for (int64_t i = 0; i < p->regions; i++)
        KELP_TRY(check_image(args, images[i], i, p->batch));
    p->args = args;
    int64_t samples = KELP_MIN(KELP_MAX(p->sampling, (int64_t)1), (int64_t)64);
    int64_t work = p->channels * 4 * samples * samples;
    kelp_op_parallel(args->env, p->regions * p->out[0] * p->out[1],
                     kelp_cpu_grain(KELP_GRAIN_ELEMENTS, work), align_range, p);
    return NULL;
}
KELP_CONVERTED_PHASES(align, kelp_widened, sizeof(roi_plan), align_reshape, align_invoke)
KELP_KERNEL(RoiAlign, 0, KELP_CONVERTED_PLAN(sizeof(roi_plan)), 0, align_reshape_any,
            align_invoke_any);

/* ---- MaxRoiPool ---- */
static kelp_status *roi_pool_reshape(const void *state, kelp_op_args *args) {
    roi_plan *p = args->plan;
    const int64_t *shape = NULL;
    (void)state;
    KELP_TRY(kelp_ops_check(args, 2));
    if (kelp_node_attr_i64s(args->node, "pooled_shape", &shape) != 2)
        return KELP_ERROR(KELP_INVALID_ARGUMENT,
                          "MaxRoiPool: attribute 'pooled_shape' has the wrong length: expected 2");
    p->out[0] = shape[0];
    p->out[1] = shape[1];
    KELP_TRY(roi_shapes(p, args, 5));
    /* the first and last input of each row and column of bins, and maxima of columns */
    int64_t each = 2 * (p->out[0] + p->out[1]) + p->width;
    if (p->out[0] > MAX_BINS || p->out[1] > MAX_BINS)
        return kelp_ops_bad_shapes(args, args->inputs[0], NULL, "'pooled_shape' is too large");
    return kelp_ops_scratch(args, each, sizeof(double) * (size_t)kelp_op_env_threads(args->env),
                            &p->bounds_offset);
}

/* Returns the first or one-past-last input of a bin, clamped to the axis. */
static int64_t bound(double at, double begin, int64_t length) {
    double value = at + begin;
    return value > 0 ? (value < (double)length ? (int64_t)value : length) : 0;
}

/* Sets the first and the last input of each bin along both axes, `from` and `to`: rows, then
 * columns. */
static void bin_bounds(const roi_plan *p, const double *box, int64_t *from, int64_t *to) {
    int64_t lengths[2] = {p->height, p->width};
    for (int i = 0; i < 2; i++) {
        double first = round(box[2 - i] * p->scale), last = round(box[4 - i] * p->scale);
        double bin = fmax(last - first + 1, 1) / (double)p->out[i];
        for (int64_t cell = 0; cell < p->out[i]; cell++) {
            *from++ = bound(floor((double)cell * bin), first, lengths[i]);
            *to++ = bound(ceil((double)(cell + 1) * bin), first, lengths[i]);
        }
    }
}

/* Pools a plane: for each row of bins the maxima of columns, then those of bins. NaN is ignored. */
#define POOL_PLANE(name, type)                                                            \
    static void pool_plane_##name(const roi_plan *p, const type *x, const int64_t *from,  \
                                  const int64_t *to, type *max, type *y) {                \
        const int64_t *left = from + p->out[0], *right = to + p->out[0];                  \
        int64_t first = left[0], last = right[p->out[1] - 1];                             \
        for (int64_t row = 0; row < p->out[0]; row++, y += p->out[1]) {                   \
            for (int64_t j = first; j < last; j++)                                        \
                max[j] = (type)-INFINITY;                                                 \
            for (int64_t i = from[row]; i < to[row]; i++)                                 \
                for (int64_t j = first; j < last; j++)                                    \
                    max[j] = x[i * p->width + j] > max[j] ? x[i * p->width + j] : max[j]; \
            for (int64_t column = 0; column < p->out[1]; column++) {                      \
                bool empty = from[row] >= to[row] || left[column] >= right[column];       \
                type best = empty ? 0 : (type)-INFINITY;                                  \
                for (int64_t j = left[column]; j < right[column] && !empty; j++)          \
                    best = max[j] > best ? max[j] : best;                                 \
                y[column] = best;                                                         \
            }                                                                             \
        }                                                                                 \
    }
POOL_PLANE(f32, float)
POOL_PLANE(f64, double)

static void roi_pool_range(void *userp, int64_t begin, int64_t end, int worker) {
    const roi_plan *p = userp;
    const kelp_tensor *rois = p->args->inputs[1];
    int64_t bins = p->out[0] + p->out[1], size = p->out[0] * p->out[1], before = -1, image = 0;
    int64_t *from =
        (int64_t *)kelp_ops_scratch_at(p->args, p->bounds_offset) + worker * (2 * bins + p->width);
    void *max = from + 2 * bins;
    for (int64_t unit = begin; unit < end; unit++) {
        int64_t index = unit / p->channels;
        double box[5];
        if (index != before) {
            kelp_real_load_f64(rois->dtype, rois->data, index * 5, 5, box);
            image = (int64_t)box[0];
            bin_bounds(p, box, from, from + bins);
            before = index;
        }
        KELP_ASSERT(image >= 0 && image < p->batch);
        int64_t plane = (image * p->channels + unit % p->channels) * p->height * p->width;
        const void *x = p->args->inputs[0]->data;
        void *y = p->args->outputs[0]->data;
        if (p->wide)
            pool_plane_f64(p, (const double *)x + plane, from, from + bins, max,
                           (double *)y + unit * size);
        else
            pool_plane_f32(p, (const float *)x + plane, from, from + bins, max,
                           (float *)y + unit * size);
    }
}

static kelp_status *roi_pool_invoke(const void *state, kelp_op_args *args) {
    roi_plan *p = args->plan;
    (void)state;
    for (int64_t i = 0; i < p->regions; i++) {
        double image = kelp_ops_read_f64(args->inputs[1], i * 5);
        KELP_TRY(
            check_image(args, image > -1 && image < 0x1p40 ? (int64_t)image : -1, i, p->batch));
    }
    p->args = args;
    kelp_op_parallel(args->env, p->regions * p->channels, 64, roi_pool_range, p);
    return NULL;
}
KELP_CONVERTED_PHASES(roi_pool, kelp_widened, sizeof(roi_plan), roi_pool_reshape, roi_pool_invoke)
KELP_KERNEL(MaxRoiPool, 0, KELP_CONVERTED_PLAN(sizeof(roi_plan)), 0, roi_pool_reshape_any,
            roi_pool_invoke_any);
