/* SPDX-License-Identifier: Apache-2.0 */
/*
 * com.microsoft CropAndResize: resizes regions of images, given in normalized coordinates, to one
 * size. Positions and weights of a region are computed once for all channels. Source: ONNX Runtime,
 * ContribOperators.md; TensorFlow, tf.image.crop_and_resize.
 */
#include "base/assert.h"
#include "cpu/ops/converted.h"

#include <math.h>

/* The positions of an output row or column: two inputs and the weight of the second. */
typedef struct crop_tap {
    int64_t first, second; /* -1: outside the image */
    float weight;
} crop_tap;

typedef struct crop_plan {
    int64_t batch, channels, regions, in[2], out[2];
    bool nearest;
    float outside;
    size_t taps_offset; /* in scratch memory, of each worker: of rows, then of columns */
    const kelp_op_args *args;
} crop_plan;

static kelp_status *crop_mode(const kelp_op_args *args, crop_plan *p) {
    const char *mode = kelp_node_attr_string(args->node, "mode", "bilinear", NULL);
    p->nearest = strcmp(mode, "nearest") == 0;
    p->outside = kelp_node_attr_f32(args->node, "extrapolation_value", 0);
    if (p->nearest || strcmp(mode, "bilinear") == 0)
        return NULL;
    return KELP_ERROR(KELP_INVALID_ARGUMENT,
                      "operator 'CropAndResize': attribute 'mode' has an unknown value: expected "
                      "bilinear or nearest, found '%s'",
                      mode);
}

static kelp_status *crop_reshape(const void *state, kelp_op_args *args) {
    crop_plan *p = args->plan;
    size_t count = 0;
    (void)state;
    KELP_TRY(kelp_ops_check(args, 4));
    const kelp_tensor *x = args->inputs[0], *rois = args->inputs[1], *images = args->inputs[2];
    if (x->dtype != KELP_F32 || rois->dtype != KELP_F32)
        return kelp_ops_bad_type(args, x->dtype != KELP_F32 ? x->dtype : rois->dtype);
    KELP_TRY(crop_mode(args, p));
    if (x->rank != 4 || rois->rank != 2 || rois->shape[1] != 4 || x->shape[2] < 1 ||
        x->shape[3] < 1)
        return kelp_ops_bad_shapes(args, x, rois, "expected [N, C, H, W] and [regions, 4]");
    if (images->dtype != KELP_I32 || kelp_tensor_elements(images) != rois->shape[0])
        return kelp_ops_bad_shapes(args, rois, images,
                                   "expected one int32 per region, the index of its image");
    if (kelp_ops_defer(args, 3))
        return NULL;
    KELP_TRY(kelp_ops_i64s(args, args->inputs[3], p->out, 2, &count));
    if (count != 2 || p->out[0] < 1 || p->out[1] < 1)
        return kelp_ops_bad_shapes(args, args->inputs[3], NULL,
                                   "expected a crop_size of two positive integers");
    p->batch = x->shape[0];
    p->channels = x->shape[1];
    p->in[0] = x->shape[2];
    p->in[1] = x->shape[3];
    p->regions = rois->shape[0];
    KELP_TRY(kelp_ops_scratch(args, p->out[0] + p->out[1],
                              sizeof(crop_tap) * (size_t)kelp_op_env_threads(args->env),
                              &p->taps_offset));
    int64_t shape[4] = {p->regions, p->channels, p->out[0], p->out[1]};
    return kelp_ops_set(args, 0, x->dtype, 4, shape);
}

/* Finds the taps of an axis of a region from `begin` to `end`, where 1 is the last input. */
static void find_taps(const crop_plan *p, float begin, float end, int axis, crop_tap *taps) {
    int64_t in = p->in[axis], out = p->out[axis];
    float last = (float)(in - 1), step = out > 1 ? (end - begin) * last / (float)(out - 1) : 0;
    for (int64_t i = 0; i < out; i++) {
        float at = out > 1 ? begin * last + (float)i * step : 0.5f * (begin + end) * last;
        taps[i] = (crop_tap){-1, -1, 0};
        if (!(at >= 0 && at <= last)) /* NaN is outside */
            continue;
        taps[i].first = (int64_t)(p->nearest ? roundf(at) : floorf(at));
        taps[i].second = p->nearest ? taps[i].first : (int64_t)ceilf(at);
        taps[i].weight = p->nearest ? 0 : at - floorf(at);
        KELP_ASSERT(taps[i].first >= 0 && taps[i].second < in);
    }
}

static void crop_channel(const crop_plan *p, const crop_tap *rows, const float *x, float *y) {
    const crop_tap *columns = rows + p->out[0];
    for (int64_t i = 0; i < p->out[0]; i++, y += p->out[1]) {
        const float *top = x + KELP_MAX(rows[i].first, (int64_t)0) * p->in[1];
        const float *bottom = x + KELP_MAX(rows[i].second, (int64_t)0) * p->in[1];
        for (int64_t j = 0; j < p->out[1]; j++) {
            crop_tap c = columns[j];
            if (rows[i].first < 0 || c.first < 0) {
                y[j] = p->outside;
                continue;
            }
            float above = top[c.first] + (top[c.second] - top[c.first]) * c.weight;
            float below = bottom[c.first] + (bottom[c.second] - bottom[c.first]) * c.weight;
            y[j] = above + (below - above) * rows[i].weight;
        }
    }
}

/* A unit is a channel of a region. */
static void crop_range(void *userp, int64_t begin, int64_t end, int worker) {
    const crop_plan *p = userp;
    const kelp_op_args *args = p->args;
    crop_tap *taps =
        (crop_tap *)kelp_ops_scratch_at(args, p->taps_offset) + worker * (p->out[0] + p->out[1]);
    int64_t before = -1;
    for (int64_t unit = begin; unit < end; unit++) {
        int64_t region = unit / p->channels, channel = unit % p->channels;
        int64_t image = ((const int32_t *)args->inputs[2]->data)[region];
        const float *box = (const float *)args->inputs[1]->data + 4 * region;
        KELP_ASSERT(image >= 0 && image < p->batch);
        if (region != before) {
            find_taps(p, box[0], box[2], 0, taps);
            find_taps(p, box[1], box[3], 1, taps + p->out[0]);
            before = region;
        }
        crop_channel(p, taps,
                     (const float *)args->inputs[0]->data +
                         (image * p->channels + channel) * p->in[0] * p->in[1],
                     (float *)args->outputs[0]->data + unit * p->out[0] * p->out[1]);
    }
}

static kelp_status *crop_invoke(const void *state, kelp_op_args *args) {
    crop_plan *p = args->plan;
    (void)state;
    for (int64_t i = 0; i < p->regions; i++) {
        int32_t image = ((const int32_t *)args->inputs[2]->data)[i];
        if (image < 0 || image >= p->batch)
            return KELP_ERROR(KELP_OUT_OF_RANGE,
                              "operator 'CropAndResize': the image of region %lld is out of range: "
                              "expected less than %lld, found %d",
                              (long long)i, (long long)p->batch, image);
    }
    p->args = args;
    kelp_op_parallel(args->env, p->regions * p->channels,
                     kelp_cpu_grain(KELP_GRAIN_ELEMENTS / 4, p->out[0] * p->out[1]), crop_range, p);
    return NULL;
}
KELP_CONVERTED_PHASES(crop, kelp_widened, sizeof(crop_plan), crop_reshape, crop_invoke)
KELP_KERNEL(MsCropAndResize, 0, KELP_CONVERTED_PLAN(sizeof(crop_plan)), 0, crop_reshape_any,
            crop_invoke_any);
