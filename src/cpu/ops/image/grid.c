/* SPDX-License-Identifier: Apache-2.0 */
/*
 * GridSample over one to three spatial axes, and AffineGrid. The inputs of each position of the
 * grid and their weights are computed once for all channels. Source: ONNX operator specification,
 * GridSample-22 and AffineGrid-20.
 */
#include "base/assert.h"
#include "cpu/ops/kernel.h"
#include "tensor/real.h"

#include <math.h>

#define AXES 3
#define MAX_TAPS 64 /* cubic over three axes */

typedef enum sample_mode { SAMPLE_NEAREST, SAMPLE_LINEAR, SAMPLE_CUBIC } sample_mode;
typedef enum sample_padding { PAD_ZEROS, PAD_BORDER, PAD_REFLECTION } sample_padding;

typedef struct sample_plan {
    sample_mode mode;
    sample_padding padding;
    bool align, wide;
    int32_t axes;
    int64_t in[AXES], in_size, out_size, channels, batch;
    size_t element_bytes, input_offset;
    const kelp_op_args *args;
    const void *reals; /* the input as float or double */
} sample_plan;

/* The inputs of one position of the grid. */
typedef struct sample_taps {
    int count;
    int64_t offsets[MAX_TAPS]; /* -1: outside */
    double weights[MAX_TAPS];
} sample_taps;

static kelp_status *word_of(const kelp_op_args *args, const char *name, const char *fallback,
                            const char *const *words, int count, int *out) {
    const char *found = kelp_node_attr_string(args->node, name, fallback, NULL);
    for (*out = 0; *out < count; ++*out)
        if (strcmp(found, words[*out]) == 0)
            return NULL;
    return KELP_ERROR(KELP_INVALID_ARGUMENT,
                      "operator '%s': attribute '%s' has an unknown value: found '%s'",
                      kelp_node_op_type(args->node), name, found);
}

static kelp_status *sample_reshape(const void *state, kelp_op_args *args) {
    static const char *const modes[] = {"nearest", "linear", "cubic", "bilinear", "bicubic"};
    static const char *const paddings[] = {"zeros", "border", "reflection"};
    sample_plan *p = args->plan;
    int64_t shape[KELP_MAX_RANK];
    int word;
    (void)state;
    KELP_TRY(kelp_ops_check(args, 2));
    const kelp_tensor *x = args->inputs[0], *grid = args->inputs[1];
    KELP_TRY(word_of(args, "mode", "linear", modes, 5, &word));
    p->mode = (sample_mode)(word < 3 ? word : word - 2);
    KELP_TRY(word_of(args, "padding_mode", "zeros", paddings, 3, &word));
    p->padding = (sample_padding)word;
    p->align = kelp_node_attr_i64(args->node, "align_corners", 0) != 0;
    p->element_bytes = kelp_ops_element_bytes(x->dtype);
    if (p->element_bytes == 0 || (p->mode != SAMPLE_NEAREST && !kelp_real_takes(x->dtype)))
        return kelp_ops_bad_type(args, x->dtype);
    if (!kelp_ops_is_float(grid->dtype))
        return kelp_ops_bad_type(args, grid->dtype);
    p->axes = x->rank - 2;
    if (p->axes < 1 || p->axes > AXES || grid->rank != x->rank ||
        grid->shape[grid->rank - 1] != p->axes || grid->shape[0] != x->shape[0])
        return kelp_ops_bad_shapes(args, x, grid,
                                   "expected [N, C, 1 to 3 axes] and [N, axes…, number of axes]");
    p->batch = x->shape[0];
    p->channels = x->shape[1];
    p->in_size = p->out_size = 1;
    shape[0] = p->batch;
    shape[1] = p->channels;
    for (int32_t i = 0; i < p->axes; i++) {
        p->in[i] = x->shape[i + 2];
        shape[i + 2] = grid->shape[i + 1];
        p->in_size *= p->in[i];
        p->out_size *= shape[i + 2];
    }
    KELP_TRY(kelp_ops_set(args, 0, x->dtype, x->rank, shape));
    if (p->in_size == 0 && kelp_tensor_elements(args->outputs[0]) > 0)
        return kelp_ops_bad_shapes(args, x, grid, "the input is empty");
    p->wide = !kelp_real_fits_f32(x->dtype);
    if (p->mode == SAMPLE_NEAREST || x->dtype == KELP_F32 || x->dtype == KELP_F64)
        return NULL;
    return kelp_ops_scratch(args, kelp_tensor_elements(x), p->wide ? sizeof(double) : sizeof(float),
                            &p->input_offset);
}

/* ---- coordinates ---- */
static double reflect(double x, double low, double high) {
    double range = high - low;
    if (range <= 0)
        return low;
    double away = x < low ? low - x : x > high ? x - high : -1;
    if (away < 0)
        return x;
    double reflections = floor(away / range), rest = away - reflections * range;
    bool from_low = (x < low) == (fmod(reflections, 2) == 0);
    return from_low ? low + rest : high - rest;
}

/* Converts a coordinate in [-1, 1] to a position in the input, with padding applied. */
static double position_of(const sample_plan *p, double n, bool narrow, int axis) {
    double length = (double)p->in[axis], x;
    if (narrow) { /* in the type of the grid, so that halves round as in ONNX Runtime */
        float a = (float)n + 1.0f, l = (float)length;
        x = (double)(p->align ? a / 2.0f * (l - 1.0f) : (a * l - 1.0f) / 2.0f);
    } else {
        x = p->align ? (n + 1) / 2 * (length - 1) : ((n + 1) * length - 1) / 2;
    }
    if (p->mode == SAMPLE_NEAREST) /* ties to even; a function of the C library is slower */
        x = fabs(x) < 0x1p51 ? x + 0x1.8p52 - 0x1.8p52 : rint(x);
    /* NaN is outside; positions beyond 2^40 are equivalent */
    x = x > -0x1p40 ? (x < 0x1p40 ? x : 0x1p40) : -0x1p40;
    double low = p->align ? 0 : -0.5, high = p->align ? length - 1 : length - 0.5;
    /* as in ONNX Runtime, the cubic mode keeps the position and pads each neighbour */
    if ((x >= low && x <= high) || p->mode == SAMPLE_CUBIC)
        return x;
    if (p->padding == PAD_BORDER)
        return x < 0 ? 0 : x > length - 1 ? length - 1 : x;
    return p->padding == PAD_REFLECTION ? reflect(x, low, high) : x;
}

/* Returns the input that index `i` of an axis refers to after padding; -1 for zero. */
static int64_t index_of(const sample_plan *p, int64_t i, int axis) {
    int64_t length = p->in[axis];
    if (i >= 0 && i < length)
        return i;
    if (p->padding == PAD_ZEROS)
        return -1;
    if (p->padding == PAD_REFLECTION) {
        double low = p->align ? 0 : -0.5;
        i = (int64_t)reflect((double)i, low, (double)(length - 1) - low);
    }
    return i < 0 ? 0 : i >= length ? length - 1 : i;
}

static void cubic_weights(double x, double *out) {
    const double a = -0.75;
    double y = 1 - x;
    out[0] = ((a * (x + 1) - 5 * a) * (x + 1) + 8 * a) * (x + 1) - 4 * a;
    out[1] = ((a + 2) * x - (a + 3)) * x * x + 1;
    out[2] = ((a + 2) * y - (a + 3)) * y * y + 1;
    out[3] = ((a * (y + 1) - 5 * a) * (y + 1) + 8 * a) * (y + 1) - 4 * a;
}

/* Returns the largest integer that is not above x; |x| is below 2^41. */
static int64_t whole_below(double x) {
    int64_t whole = (int64_t)x;
    return whole - (x < (double)whole);
}

static void find_taps(const sample_plan *p, const double *coordinates, sample_taps *taps) {
    taps->count = 1;
    taps->offsets[0] = 0;
    taps->weights[0] = 1;
    KELP_ASSERT(p->axes >= 1 && p->axes <= AXES);
    for (int axis = 0; axis < p->axes; axis++) {
        double x = coordinates[axis], weights[4] = {1, 0, 0, 0};
        int64_t first = whole_below(x);
        double rest = x - (double)first;
        int each = 1;
        if (p->mode == SAMPLE_LINEAR) {
            weights[0] = 1 - rest;
            weights[1] = rest;
            each = 2;
        } else if (p->mode == SAMPLE_CUBIC) {
            cubic_weights(rest, weights);
            each = 4;
            first--;
        }
        int before = taps->count;
        taps->count *= each;
        KELP_ASSERT(taps->count <= MAX_TAPS);
        for (int t = before - 1; t >= 0; t--) /* from the last, since taps multiply in place */
            for (int k = each - 1; k >= 0; k--) {
                int64_t at = index_of(p, first + k, axis), so_far = taps->offsets[t];
                double weight = taps->weights[t] * weights[k];
                taps->offsets[t * each + k] = at < 0 || so_far < 0 ? -1 : so_far * p->in[axis] + at;
                taps->weights[t * each + k] = weight;
            }
    }
    int kept = 0;
    for (int i = 0; i < taps->count; i++)
        if (taps->offsets[i] >= 0) {
            taps->offsets[kept] = taps->offsets[i];
            taps->weights[kept++] = taps->weights[i];
        }
    taps->count = kept;
}

/* ---- work ---- */
static void sample_element(const sample_plan *p, const sample_taps *taps, int64_t plane,
                           int64_t to) {
    const kelp_tensor *y = p->args->outputs[0];
    if (p->mode == SAMPLE_NEAREST) {
        char *out = (char *)y->data + (size_t)to * p->element_bytes;
        if (taps->count == 0)
            memset(out, 0, p->element_bytes);
        else
            memcpy(out,
                   (const char *)p->args->inputs[0]->data +
                       (size_t)(plane * p->in_size + taps->offsets[0]) * p->element_bytes,
                   p->element_bytes);
    } else if (p->wide) {
        const double *x = (const double *)p->reals + plane * p->in_size;
        double sum = 0;
        for (int i = 0; i < taps->count; i++)
            sum += x[taps->offsets[i]] * taps->weights[i];
        kelp_real_store_f64(y->dtype, y->data, to, 1, &sum);
    } else {
        const float *x = (const float *)p->reals + plane * p->in_size;
        float sum = 0;
        for (int i = 0; i < taps->count; i++)
            sum += x[taps->offsets[i]] * (float)taps->weights[i];
        kelp_real_store_f32(y->dtype, y->data, to, 1, &sum);
    }
}

/* Computes a position in all channels of float32. */
static void sample_floats(const sample_plan *p, const sample_taps *taps, int64_t image,
                          int64_t inside) {
    const float *x = (const float *)p->reals + image * p->channels * p->in_size;
    float *y = (float *)p->args->outputs[0]->data + image * p->channels * p->out_size + inside;
    float weights[MAX_TAPS];
    for (int i = 0; i < taps->count; i++)
        weights[i] = p->mode == SAMPLE_NEAREST ? 1.0f : (float)taps->weights[i];
    for (int64_t c = 0; c < p->channels; c++, x += p->in_size, y += p->out_size) {
        float sum = taps->count > 0 ? x[taps->offsets[0]] * weights[0] : 0.0f;
        for (int i = 1; i < taps->count; i++)
            sum += x[taps->offsets[i]] * weights[i];
        *y = sum;
    }
}

static void sample_range(void *userp, int64_t begin, int64_t end, int worker) {
    const sample_plan *p = userp;
    const kelp_tensor *grid = p->args->inputs[1];
    sample_taps taps;
    (void)worker;
    for (int64_t at = begin; at < end; at++) {
        double n[AXES], coordinates[AXES];
        int64_t image = at / p->out_size, inside = at % p->out_size;
        kelp_real_load_f64(grid->dtype, grid->data, at * p->axes, p->axes, n);
        for (int i = 0; i < p->axes; i++) /* the grid stores the last axis first */
            coordinates[i] = position_of(p, n[p->axes - 1 - i], grid->dtype != KELP_F64, i);
        find_taps(p, coordinates, &taps);
        if (p->args->inputs[0]->dtype == KELP_F32) {
            sample_floats(p, &taps, image, inside);
            continue;
        }
        for (int64_t c = 0; c < p->channels; c++) {
            int64_t plane = image * p->channels + c;
            sample_element(p, &taps, plane, plane * p->out_size + inside);
        }
    }
}

static kelp_status *sample_invoke(const void *state, kelp_op_args *args) {
    sample_plan *p = args->plan;
    const kelp_tensor *x = args->inputs[0];
    int64_t count = kelp_tensor_elements(x);
    (void)state;
    p->args = args;
    p->reals = x->data;
    if (p->mode != SAMPLE_NEAREST && x->dtype != KELP_F32 && x->dtype != KELP_F64) {
        void *to = kelp_ops_scratch_at(args, p->input_offset);
        if (p->wide)
            kelp_real_load_f64(x->dtype, x->data, 0, count, to);
        else
            kelp_real_load_f32(x->dtype, x->data, 0, count, to);
        p->reals = to;
    }
    if (kelp_tensor_elements(args->outputs[0]) > 0)
        kelp_op_parallel(args->env, p->batch * p->out_size,
                         kelp_cpu_grain(KELP_GRAIN_ELEMENTS / 8, p->channels), sample_range, p);
    return NULL;
}
KELP_KERNEL(GridSample, 0, sizeof(sample_plan), 0, sample_reshape, sample_invoke);

/* ---- AffineGrid ---- */
static kelp_status *affine_reshape(const void *state, kelp_op_args *args) {
    int64_t size[5], shape[KELP_MAX_RANK];
    size_t count = 0;
    (void)state;
    KELP_TRY(kelp_ops_check(args, 2));
    const kelp_tensor *theta = args->inputs[0];
    if (!kelp_ops_is_float(theta->dtype))
        return kelp_ops_bad_type(args, theta->dtype);
    if (kelp_ops_defer(args, 1))
        return NULL;
    KELP_TRY(kelp_ops_i64s(args, args->inputs[1], size, 5, &count));
    if (count < 4 || theta->rank != 3 || theta->shape[0] != size[0] ||
        theta->shape[1] != (int64_t)count - 2 || theta->shape[2] != (int64_t)count - 1)
        return kelp_ops_bad_shapes(args, theta, args->inputs[1],
                                   "expected [N, 2, 3] and 4 dimensions, or [N, 3, 4] and 5");
    shape[0] = size[0];
    for (size_t i = 2; i < count; i++)
        shape[i - 1] = size[i];
    shape[count - 1] = (int64_t)count - 2;
    return kelp_ops_set(args, 0, theta->dtype, (int32_t)count, shape);
}

/* Returns coordinate `at` of an axis, in [-1, 1]. */
static double coordinate_of(bool align, int64_t at, int64_t length) {
    if (align)
        return length > 1 ? 2 * (double)at / (double)(length - 1) - 1 : 0;
    return (2 * (double)at + 1) / (double)length - 1;
}

/* A unit is a row of positions along the last axis, whose coordinate comes first. */
static void affine_range(void *userp, int64_t begin, int64_t end, int worker) {
    const kelp_op_args *args = userp;
    const kelp_tensor *theta = args->inputs[0], *y = args->outputs[0];
    bool align = kelp_node_attr_i64(args->node, "align_corners", 0) != 0;
    int32_t axes = y->rank - 2;
    int64_t width = y->shape[axes], lines = kelp_ops_product(y->shape, 1, axes);
    double rows[12], at[4];
    (void)worker;
    KELP_ASSERT(width > 0 && (axes == 2 || axes == 3));
    for (int64_t line = begin; line < end; line++) {
        int64_t rest = line % lines, each = axes * (axes + 1);
        kelp_real_load_f64(theta->dtype, theta->data, line / lines * each, each, rows);
        for (int32_t k = 1; k < axes; k++) {
            int64_t length = y->shape[axes - k];
            at[k] = coordinate_of(align, rest % length, length);
            rest /= length;
        }
        at[axes] = 1;
        /* of the products, only that of the first coordinate changes along the row */
        double fixed[3] = {0, 0, 0};
        for (int32_t r = 0; r < axes; r++)
            for (int32_t k = 1; k <= axes; k++)
                fixed[r] += rows[r * (axes + 1) + k] * at[k];
        for (int64_t i = 0; i < width; i++)
            for (int32_t r = 0; r < axes; r++) {
                double sum = rows[r * (axes + 1)] * coordinate_of(align, i, width) + fixed[r];
                int64_t to = (line * width + i) * axes + r;
                if (y->dtype == KELP_F32)
                    ((float *)y->data)[to] = (float)sum;
                else
                    kelp_real_store_f64(y->dtype, y->data, to, 1, &sum);
            }
    }
}

static kelp_status *affine_invoke(const void *state, kelp_op_args *args) {
    const kelp_tensor *y = args->outputs[0];
    int64_t width = y->shape[y->rank - 2];
    (void)state;
    if (kelp_tensor_elements(y) > 0)
        kelp_op_parallel(args->env, kelp_ops_product(y->shape, 0, y->rank - 2),
                         kelp_cpu_grain(KELP_GRAIN_ELEMENTS / 4, width), affine_range, args);
    return NULL;
}
KELP_KERNEL(AffineGrid, 0, 0, 0, affine_reshape, affine_invoke);
