/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Resize and Upsample of any rank: the attributes and shapes, and the nearest mode, which copies
 * elements and therefore supports every type. Source: ONNX operator specification, Resize-19 and
 * Upsample-9.
 */
#include "base/assert.h"
#include "cpu/ops/image/resize.h"
#include "tensor/real.h"

#include <math.h>

static kelp_status *bad_word(const kelp_op_args *args, const char *name, const char *found) {
    return KELP_ERROR(KELP_INVALID_ARGUMENT,
                      "operator '%s': attribute '%s' has an unknown value: found '%s'",
                      kelp_node_op_type(args->node), name, found);
}

/* Writes the index of the value of `attribute` in `words`. */
static kelp_status *word_of(const kelp_op_args *args, const char *attribute, const char *fallback,
                            const char *const *words, int count, int *out) {
    const char *found = kelp_node_attr_string(args->node, attribute, fallback, NULL);
    for (*out = 0; *out < count; ++*out)
        if (strcmp(found, words[*out]) == 0)
            return NULL;
    return bad_word(args, attribute, found);
}

static kelp_status *read_words(kelp_resize_plan *r, const kelp_op_args *args, bool upsample) {
    static const char *const modes[] = {"nearest", "linear", "cubic", "bilinear"};
    static const char *const coordinates[] = {
        "half_pixel", "half_pixel_symmetric", "pytorch_half_pixel", "align_corners",
        "asymmetric", "tf_half_pixel_for_nn", "tf_crop_and_resize"};
    static const char *const rounds[] = {"round_prefer_floor", "round_prefer_ceil", "floor",
                                         "ceil"};
    int mode, coordinate, round;
    bool old = upsample || kelp_ops_version(args) < 11;
    KELP_TRY(word_of(args, "mode", "nearest", modes, 4, &mode));
    KELP_TRY(word_of(args, "coordinate_transformation_mode", old ? "asymmetric" : "half_pixel",
                     coordinates, 7, &coordinate));
    KELP_TRY(word_of(args, "nearest_mode", "round_prefer_floor", rounds, 4, &round));
    r->mode = mode == 3 ? KELP_RESIZE_LINEAR : (kelp_resize_mode)mode;
    r->coordinates = (kelp_resize_coordinates)coordinate;
    r->round = upsample ? KELP_RESIZE_FLOOR : old ? KELP_RESIZE_SIMPLE : (kelp_resize_round)round;
    r->antialias = kelp_node_attr_i64(args->node, "antialias", 0) != 0;
    r->exclude_outside = kelp_node_attr_i64(args->node, "exclude_outside", 0) != 0;
    r->cubic_a = kelp_node_attr_f32(args->node, "cubic_coeff_a", -0.75f);
    r->extrapolation = kelp_node_attr_f32(args->node, "extrapolation_value", 0.0f);
    if (r->antialias && r->mode == KELP_RESIZE_NEAREST)
        return bad_word(args, "antialias", "1' with mode 'nearest");
    return NULL;
}

/* The requested scales or sizes, one for each of `axes`. */
typedef struct requested {
    int32_t axes[KELP_MAX_RANK];
    size_t count;
    double scales[KELP_MAX_RANK];
    int64_t sizes[KELP_MAX_RANK];
    bool has_scales, has_sizes;
} requested;

static kelp_status *bad_count(const kelp_op_args *args, const char *what, int64_t found,
                              size_t expected) {
    return KELP_ERROR(KELP_INVALID_ARGUMENT,
                      "operator '%s': %s has %lld elements: expected one for each of %zu axes",
                      kelp_node_op_type(args->node), what, (long long)found, expected);
}

static kelp_status *read_axes(const kelp_op_args *args, int32_t rank, requested *w) {
    const int64_t *axes = NULL;
    uint32_t seen = 0;
    w->count = kelp_node_attr_i64s(args->node, "axes", &axes);
    if (w->count > (size_t)rank)
        return bad_count(args, "axes", (int64_t)w->count, (size_t)rank);
    for (size_t i = 0; i < w->count; i++) {
        KELP_TRY(kelp_ops_axis(args, axes[i], rank, &w->axes[i]));
        if (seen >> w->axes[i] & 1u)
            return KELP_ERROR(KELP_INVALID_ARGUMENT,
                              "operator '%s': attribute 'axes' contains axis %d twice",
                              kelp_node_op_type(args->node), w->axes[i]);
        seen |= 1u << w->axes[i];
    }
    if (w->count == 0)
        for (w->count = 0; w->count < (size_t)rank; w->count++)
            w->axes[w->count] = (int32_t)w->count;
    return NULL;
}

static kelp_status *read_scales(kelp_op_args *args, int32_t input, requested *w) {
    const kelp_tensor *scales = kelp_ops_in(args, input);
    const float *attribute = NULL;
    int64_t count = (int64_t)kelp_node_attr_f32s(args->node, "scales", &attribute);
    const float first[4] = {1.0f, 1.0f, kelp_node_attr_f32(args->node, "height_scale", 0.0f),
                            kelp_node_attr_f32(args->node, "width_scale", 0.0f)};
    if (first[2] != 0) { /* Upsample's first version */
        attribute = first;
        count = 4;
    }
    if (scales != NULL) {
        if (kelp_ops_defer(args, input))
            return NULL;
        count = kelp_tensor_elements(scales);
    }
    if (count == 0)
        return NULL;
    if (count != (int64_t)w->count)
        return bad_count(args, "scales", count, w->count);
    for (int64_t i = 0; i < count; i++) {
        w->scales[i] = scales != NULL ? kelp_ops_read_f64(scales, i) : (double)attribute[i];
        if (!(w->scales[i] > 0) || !isfinite(w->scales[i]))
            return KELP_ERROR(KELP_INVALID_ARGUMENT,
                              "operator '%s': scale %lld is out of range: expected a positive "
                              "finite number, found %g",
                              kelp_node_op_type(args->node), (long long)i, w->scales[i]);
    }
    w->has_scales = true;
    return NULL;
}

static kelp_status *read_sizes(kelp_op_args *args, requested *w) {
    const kelp_tensor *sizes = kelp_ops_in(args, 3);
    size_t count = 0;
    if (sizes == NULL || kelp_ops_defer(args, 3))
        return NULL;
    KELP_TRY(kelp_ops_i64s(args, sizes, w->sizes, KELP_MAX_RANK, &count));
    if (count == 0)
        return NULL;
    if (count != w->count)
        return bad_count(args, "sizes", (int64_t)count, w->count);
    for (size_t i = 0; i < count; i++)
        if (w->sizes[i] < 0)
            return KELP_ERROR(KELP_INVALID_ARGUMENT,
                              "operator '%s': size %zu is negative: found %lld",
                              kelp_node_op_type(args->node), i, (long long)w->sizes[i]);
    w->has_sizes = true;
    return NULL;
}

/* Applies 'keep_aspect_ratio_policy': the smallest or largest requested scale, for all axes. */
static kelp_status *keep_aspect(kelp_resize_plan *r, const kelp_op_args *args, const requested *w) {
    static const char *const words[] = {"stretch", "not_larger", "not_smaller"};
    int word;
    KELP_TRY(word_of(args, "keep_aspect_ratio_policy", "stretch", words, 3, &word));
    if (word == 0 || w->count == 0)
        return NULL;
    KELP_ASSERT(w->has_sizes && w->count <= (size_t)r->rank);
    const kelp_resize_axis *best = &r->axes[w->axes[0]];
    for (size_t i = 1; i < w->count; i++) {
        const kelp_resize_axis *axis = &r->axes[w->axes[i]];
        if (word == 1 ? axis->scale < best->scale : axis->scale > best->scale)
            best = axis;
    }
    double scale = best->scale, up = (double)best->out, down = (double)best->in;
    for (size_t i = 0; i < w->count; i++) {
        kelp_resize_axis *axis = &r->axes[w->axes[i]];
        double out = floor((double)axis->in * up / down + 0.5);
        axis->scale = scale;
        axis->out = out < 0x1p31 ? (int64_t)out : INT32_MAX;
        axis->exact = (double)axis->out * down == (double)axis->in * up;
    }
    return NULL;
}

static kelp_status *set_dims(kelp_resize_plan *r, const kelp_op_args *args, const requested *w) {
    for (size_t i = 0; i < w->count; i++) {
        kelp_resize_axis *axis = &r->axes[w->axes[i]];
        if (w->has_sizes) {
            axis->out = w->sizes[i];
            axis->exact = true;
            axis->scale = axis->in > 0 ? (double)axis->out / (double)axis->in : 1;
        } else {
            /* in float, as in ONNX's shape inference */
            double out = (double)floorf((float)axis->in * (float)w->scales[i]);
            axis->out = out < 0x1p31 ? (int64_t)out : INT32_MAX;
            axis->scale = w->scales[i];
        }
    }
    if (w->has_sizes)
        KELP_TRY(keep_aspect(r, args, w));
    for (int32_t i = 0; i < r->rank; i++) {
        kelp_resize_axis *axis = &r->axes[i];
        if (axis->in >= INT32_MAX || axis->out >= INT32_MAX || (axis->in == 0 && axis->out > 0))
            return kelp_ops_bad_shapes(args, args->inputs[0], NULL,
                                       "an axis is too long, or empty");
        axis->resized = axis->out != axis->in || axis->scale != 1;
    }
    return NULL;
}

static kelp_status *read_region(kelp_resize_plan *r, kelp_op_args *args, const requested *w) {
    const kelp_tensor *roi = kelp_ops_in(args, 1);
    if (r->coordinates != KELP_RESIZE_CROP)
        return NULL;
    if (roi == NULL || kelp_tensor_elements(roi) != 2 * (int64_t)w->count)
        return KELP_ERROR(KELP_INVALID_ARGUMENT,
                          "operator '%s': input 'roi' has the wrong length: expected 2 values for "
                          "each of %zu axes, found %lld",
                          kelp_node_op_type(args->node), w->count,
                          (long long)(roi != NULL ? kelp_tensor_elements(roi) : 0));
    if (kelp_ops_defer(args, 1))
        return NULL;
    for (size_t i = 0; i < w->count; i++) {
        kelp_resize_axis *axis = &r->axes[w->axes[i]];
        axis->begin = kelp_ops_read_f64(roi, (int64_t)i);
        axis->end = kelp_ops_read_f64(roi, (int64_t)(i + w->count));
        axis->resized = axis->resized || axis->begin != 0 || axis->end != 1;
    }
    return NULL;
}

static kelp_status *reserve_tables(kelp_resize_plan *r, kelp_op_args *args) {
    for (int32_t i = 0; i < r->rank; i++) {
        kelp_resize_axis *axis = &r->axes[i];
        int64_t weights = 0;
        if (!axis->resized)
            continue;
        axis->taps = kelp_resize_taps(r, axis);
        KELP_TRY(kelp_ops_scratch(args, axis->out, sizeof(int32_t), &axis->first_offset));
        if (r->mode != KELP_RESIZE_NEAREST && !kelp_i64_mul(axis->out, axis->taps, &weights))
            return kelp_ops_bad_shapes(args, args->inputs[0], NULL, "the table is too large");
        KELP_TRY(kelp_ops_scratch(args, weights, sizeof(double), &axis->weights_offset));
    }
    return NULL;
}

static kelp_status *reshape(kelp_op_args *args, bool upsample) {
    kelp_resize_plan *r = args->plan;
    requested w = {.count = 0};
    int64_t shape[KELP_MAX_RANK];
    KELP_TRY(kelp_ops_check(args, 1));
    const kelp_tensor *x = args->inputs[0];
    memset(r, 0, sizeof *r);
    KELP_TRY(read_words(r, args, upsample));
    size_t size = kelp_ops_element_bytes(x->dtype);
    if (size == 0 || (r->mode != KELP_RESIZE_NEAREST && !kelp_real_takes(x->dtype)))
        return kelp_ops_bad_type(args, x->dtype);
    r->rank = x->rank;
    for (int32_t i = 0; i < x->rank; i++)
        r->axes[i] = (kelp_resize_axis){
            .in = x->shape[i], .out = x->shape[i], .scale = 1, .exact = true, .end = 1};
    bool modern = !upsample && kelp_ops_version(args) >= 11;
    KELP_TRY(read_axes(args, x->rank, &w));
    KELP_TRY(read_scales(args, modern ? 2 : 1, &w));
    if (args->deferred)
        return NULL;
    if (modern)
        KELP_TRY(read_sizes(args, &w));
    if (args->deferred)
        return NULL;
    if (w.has_scales == w.has_sizes && x->rank > 0)
        return KELP_ERROR(KELP_INVALID_ARGUMENT,
                          "operator '%s': expected either scales or sizes, found %s",
                          kelp_node_op_type(args->node), w.has_scales ? "both" : "neither");
    for (size_t i = 0; i < w.count; i++)
        if (!w.has_sizes)
            r->axes[w.axes[i]].exact = false;
    KELP_TRY(set_dims(r, args, &w));
    KELP_TRY(read_region(r, args, &w));
    if (args->deferred)
        return NULL;
    KELP_TRY(reserve_tables(r, args));
    for (int32_t i = 0; i < r->rank; i++)
        shape[i] = r->axes[i].out;
    KELP_TRY(kelp_ops_set(args, 0, x->dtype, r->rank, shape));
    return r->mode == KELP_RESIZE_NEAREST ? NULL : kelp_resize_blend_reserve(r, args);
}

/* ---- nearest ---- */
typedef struct nearest_job {
    const kelp_resize_plan *r;
    const kelp_op_args *args;
    int32_t last; /* the last axis that is resized */
    size_t bytes; /* of the trailing dimensions */
    uint8_t fill[16];
    size_t size;                    /* of an element */
    bool doubled;                   /* the last resized axis has each input twice */
    int64_t strides[KELP_MAX_RANK]; /* of the input, in units of `bytes` */
} nearest_job;

static const int32_t *firsts(const nearest_job *job, int32_t axis) {
    const kelp_resize_axis *a = &job->r->axes[axis];
    return a->resized ? (const int32_t *)kelp_ops_scratch_at(job->args, a->first_offset) : NULL;
}

/* Returns the position of output row `row` in the input, in units of job->bytes; -1 if it is
 * outside the input. */
static int64_t row_source(const nearest_job *job, int64_t row) {
    int64_t from = 0;
    for (int32_t i = job->last - 1; i >= 0; i--) {
        const int32_t *first = firsts(job, i);
        int64_t at = row % job->r->axes[i].out;
        row /= job->r->axes[i].out;
        if (first != NULL)
            at = first[at];
        if (at < 0)
            return -1;
        KELP_ASSERT(at < job->r->axes[i].in);
        from += at * job->strides[i];
    }
    return from;
}

#define PICK(type)                                        \
    do {                                                  \
        const type *from = (const type *)(const void *)x; \
        type *to = (type *)(void *)y;                     \
        for (int64_t i = 0; i < out; i++)                 \
            to[i] = from[first[i]];                       \
    } while (0)
#define TWICE(type)                                       \
    do {                                                  \
        const type *from = (const type *)(const void *)x; \
        type *to = (type *)(void *)y;                     \
        for (int64_t i = 0; i < out / 2; i++)             \
            to[2 * i] = to[2 * i + 1] = from[i];          \
    } while (0)

static void pick_row(const nearest_job *job, const char *x, const int32_t *first, int64_t out,
                     char *y) {
    if (job->doubled && job->bytes == 4) {
        TWICE(uint32_t);
    } else if (job->doubled && job->bytes == 2) {
        TWICE(uint16_t);
    } else if (job->doubled && job->bytes == 1) {
        TWICE(uint8_t);
    } else if (job->bytes == 4) {
        PICK(uint32_t);
    } else if (job->bytes == 2) {
        PICK(uint16_t);
    } else if (job->bytes == 1) {
        PICK(uint8_t);
    } else if (job->bytes == 8) {
        PICK(uint64_t);
    } else {
        for (int64_t i = 0; i < out; i++)
            memcpy(y + (size_t)i * job->bytes, x + (size_t)first[i] * job->bytes, job->bytes);
    }
}

static void nearest_rows(void *userp, int64_t begin, int64_t end, int worker) {
    const nearest_job *job = userp;
    const kelp_resize_axis *axis = &job->r->axes[job->last];
    const int32_t *first = firsts(job, job->last);
    size_t row_bytes = (size_t)axis->out * job->bytes;
    int64_t before = -2; /* the source of the previous row */
    (void)worker;
    for (int64_t row = begin; row < end; row++) {
        char *y = (char *)job->args->outputs[0]->data + (size_t)row * row_bytes;
        int64_t from = row_source(job, row);
        const char *x = (const char *)job->args->inputs[0]->data;
        if (from < 0) {
            kelp_ops_fill(y, job->size, (int64_t)(row_bytes / job->size), job->fill);
        } else if (from == before) {
            memcpy(y, y - row_bytes, row_bytes);
        } else if (job->r->coordinates != KELP_RESIZE_CROP) {
            pick_row(job, x + (size_t)from * job->bytes, first, axis->out, y);
        } else {
            for (int64_t i = 0; i < axis->out; i++, y += job->bytes)
                if (first[i] < 0)
                    kelp_ops_fill(y, job->size, (int64_t)(job->bytes / job->size), job->fill);
                else
                    memcpy(y, x + (size_t)(from + first[i]) * job->bytes, job->bytes);
        }
        before = from;
    }
}

static void move_nearest(const kelp_resize_plan *r, kelp_op_args *args, int32_t last) {
    const kelp_tensor *x = args->inputs[0];
    nearest_job job = {.r = r, .args = args, .last = last};
    KELP_ASSERT(last >= 0 && last < r->rank && r->axes[last].resized);
    job.size = kelp_ops_element_bytes(x->dtype);
    job.bytes = job.size * (size_t)kelp_ops_product(x->shape, last + 1, x->rank);
    if (kelp_real_takes(x->dtype))
        kelp_real_store_f32(x->dtype, job.fill, 0, 1, &r->extrapolation);
    for (int32_t i = 0; i < last; i++)
        job.strides[i] = kelp_ops_product(x->shape, i + 1, last + 1);
    int64_t rows = 1;
    for (int32_t i = 0; i < last; i++)
        rows *= r->axes[i].out;
    const int32_t *first = firsts(&job, last);
    job.doubled = r->axes[last].out == 2 * r->axes[last].in;
    for (int64_t i = 0; i < r->axes[last].out; i++)
        job.doubled = job.doubled && first[i] == i / 2;
    int64_t grain = kelp_cpu_grain(KELP_GRAIN_ELEMENTS, r->axes[last].out);
    kelp_op_parallel(args->env, rows, grain, nearest_rows, &job);
}

static kelp_status *invoke(const void *state, kelp_op_args *args) {
    const kelp_resize_plan *r = args->plan;
    const kelp_tensor *x = args->inputs[0], *y = args->outputs[0];
    int32_t last = -1;
    (void)state;
    if (kelp_tensor_elements(y) == 0)
        return NULL;
    for (int32_t i = 0; i < r->rank; i++)
        if (r->axes[i].resized) {
            kelp_resize_fill(r, &r->axes[i], args->scratch);
            last = i;
        }
    if (last < 0)
        kelp_ops_memcpy(args->env, y->data, x->data, kelp_tensor_bytes(x));
    else if (r->mode == KELP_RESIZE_NEAREST)
        move_nearest(r, args, last);
    else
        kelp_resize_blend(r, args);
    return NULL;
}

static kelp_status *resize_reshape(const void *state, kelp_op_args *args) {
    (void)state;
    return reshape(args, false);
}

static kelp_status *upsample_reshape(const void *state, kelp_op_args *args) {
    (void)state;
    return reshape(args, true);
}
KELP_KERNEL(Resize, 0, sizeof(kelp_resize_plan), 0, resize_reshape, invoke);
KELP_KERNEL(Upsample, 0, sizeof(kelp_resize_plan), 0, upsample_reshape, invoke);
