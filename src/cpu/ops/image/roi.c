/* SPDX-License-Identifier: Apache-2.0 */
/*
 * RoiAlign and MaxRoiPool: pooling of the regions of a feature map to one size. Source: ONNX
 * operator specification, RoiAlign-22 and MaxRoiPool-22; He et al., "Mask R-CNN", 2017, section 3.
 */
#include "base/assert.h"
#include "cpu/ops/kernel.h"
#include "tensor/real.h"

#include <math.h>

typedef struct roi_plan {
    int64_t batch, channels, height, width, regions, out[2];
    int64_t sampling;
    double scale;
    bool maximum, half_pixel;
    size_t input_offset;
    const double *x;
    const kelp_op_args *args;
} roi_plan;

/* Sets the output, and reserves scratch memory for the input as doubles. */
static kelp_status *roi_shapes(roi_plan *p, kelp_op_args *args, int64_t columns) {
    const kelp_tensor *x = args->inputs[0], *rois = args->inputs[1];
    if (!kelp_ops_is_float(x->dtype) || !kelp_ops_is_float(rois->dtype))
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
    KELP_TRY(kelp_ops_set(args, 0, x->dtype, 4, shape));
    return kelp_ops_scratch(args, x->dtype == KELP_F64 ? 0 : kelp_tensor_elements(x),
                            sizeof(double), &p->input_offset);
}

static void load_input(roi_plan *p, kelp_op_args *args) {
    const kelp_tensor *x = args->inputs[0];
    p->args = args;
    p->x = x->data;
    if (x->dtype == KELP_F64)
        return;
    double *to = kelp_ops_scratch_at(args, p->input_offset);
    kelp_real_load_f64(x->dtype, x->data, 0, kelp_tensor_elements(x), to);
    p->x = to;
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

/* Pools one bin of a region in one channel. */
static double align_bin(const roi_plan *p, const region *r, const double *plane, int64_t row,
                        int64_t column) {
    double sum = 0, max = 0;
    bool any = false;
    for (int64_t i = 0; i < r->grid[0]; i++)
        for (int64_t j = 0; j < r->grid[1]; j++) {
            double y = r->begin[0] + (double)row * r->bin[0] +
                       ((double)i + 0.5) * r->bin[0] / (double)r->grid[0];
            double x = r->begin[1] + (double)column * r->bin[1] +
                       ((double)j + 0.5) * r->bin[1] / (double)r->grid[1];
            int64_t at[4] = {0, 0, 0, 0};
            double weights[4] = {0, 0, 0, 0};
            neighbours(p, y, x, at, weights);
            for (int k = 0; k < 4; k++) {
                double value = weights[k] * plane[at[k]];
                sum += value;
                max = !any || value > max ? value : max;
                any = true;
            }
        }
    int64_t count = KELP_MAX((int64_t)1, r->grid[0] * r->grid[1]);
    return p->maximum ? max : sum / (double)count;
}

static void align_range(void *userp, int64_t begin, int64_t end, int worker) {
    const roi_plan *p = userp;
    const kelp_tensor *y = p->args->outputs[0];
    (void)worker;
    for (int64_t unit = begin; unit < end; unit++) {
        int64_t index = unit / p->channels, channel = unit % p->channels;
        int64_t image = ((const int64_t *)p->args->inputs[2]->data)[index];
        KELP_ASSERT(image >= 0 && image < p->batch);
        const double *plane = p->x + (image * p->channels + channel) * p->height * p->width;
        region r = region_of(p, index);
        for (int64_t i = 0; i < p->out[0] * p->out[1]; i++) {
            double value = align_bin(p, &r, plane, i / p->out[1], i % p->out[1]);
            kelp_real_store_f64(y->dtype, y->data, unit * p->out[0] * p->out[1] + i, 1, &value);
        }
    }
}

static kelp_status *align_invoke(const void *state, kelp_op_args *args) {
    roi_plan *p = args->plan;
    (void)state;
    const int64_t *images = args->inputs[2]->data;
    for (int64_t i = 0; i < p->regions; i++)
        KELP_TRY(check_image(args, images[i], i, p->batch));
    load_input(p, args);
    int64_t work = p->out[0] * p->out[1] * 16;
    kelp_op_parallel(args->env, p->regions * p->channels, kelp_cpu_grain(KELP_GRAIN_ELEMENTS, work),
                     align_range, p);
    return NULL;
}
KELP_KERNEL(RoiAlign, 0, sizeof(roi_plan), 0, align_reshape, align_invoke);

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
    return roi_shapes(p, args, 5);
}

/* Returns the first or one-past-last input of a bin, clamped to the axis. */
static int64_t bound(double at, double begin, int64_t length) {
    double value = at + begin;
    return value > 0 ? (value < (double)length ? (int64_t)value : length) : 0;
}

static void roi_pool_range(void *userp, int64_t begin, int64_t end, int worker) {
    const roi_plan *p = userp;
    const kelp_tensor *rois = p->args->inputs[1], *y = p->args->outputs[0];
    int64_t size = p->out[0] * p->out[1], lengths[2] = {p->height, p->width};
    (void)worker;
    for (int64_t unit = begin; unit < end; unit++) {
        double box[5], first[2], bin[2];
        kelp_real_load_f64(rois->dtype, rois->data, unit / p->channels * 5, 5, box);
        KELP_ASSERT((int64_t)box[0] >= 0 && (int64_t)box[0] < p->batch);
        const double *plane =
            p->x + ((int64_t)box[0] * p->channels + unit % p->channels) * p->height * p->width;
        for (int i = 0; i < 2; i++) {
            first[i] = round(box[2 - i] * p->scale);
            double last = round(box[4 - i] * p->scale);
            bin[i] = fmax(last - first[i] + 1, 1) / (double)p->out[i];
        }
        for (int64_t o = 0; o < size; o++) {
            int64_t cell[2] = {o / p->out[1], o % p->out[1]}, from[2], to[2];
            for (int i = 0; i < 2; i++) {
                from[i] = bound(floor((double)cell[i] * bin[i]), first[i], lengths[i]);
                to[i] = bound(ceil((double)(cell[i] + 1) * bin[i]), first[i], lengths[i]);
            }
            bool empty = from[0] >= to[0] || from[1] >= to[1];
            double max = empty ? 0 : -INFINITY;
            for (int64_t i = from[0]; i < to[0]; i++)
                for (int64_t j = from[1]; j < to[1]; j++)
                    max = fmax(max, plane[i * p->width + j]);
            kelp_real_store_f64(y->dtype, y->data, unit * size + o, 1, &max);
        }
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
    load_input(p, args);
    kelp_op_parallel(args->env, p->regions * p->channels, 16, roi_pool_range, p);
    return NULL;
}
KELP_KERNEL(MaxRoiPool, 0, sizeof(roi_plan), 0, roi_pool_reshape, roi_pool_invoke);
