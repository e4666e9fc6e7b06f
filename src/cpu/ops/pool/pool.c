/* SPDX-License-Identifier: Apache-2.0 */
/*
 * MaxPool, AveragePool, LpPool and their global forms. A row of outputs is computed in two steps:
 * the rows of the window are combined over the whole width, then adjacent elements along the row.
 * Arithmetic is in float; types of 16 bits and less are converted, a plane at a time. Doubles, and
 * maxima with indices, are computed one output at a time. Source: ONNX operator specification.
 */
#include "base/assert.h"
#include "cpu/kernels/sliding/padded.h"
#include "cpu/kernels/vector/vector_kernels.h"
#include "cpu/ops/conv/window.h"
#include "cpu/ops/converted.h"
#include "cpu/ops/kernel.h"
#include "tensor/real.h"

#include <math.h>

typedef enum pool_kind { POOL_MAX, POOL_AVERAGE, POOL_LP } pool_kind;

typedef struct pool_plan {
    kelp_conv_window w;
    int64_t planes;
    pool_kind kind;
    double p; /* of POOL_LP */
    bool count_padding, column_major, by_one;
    bool is_2x2; /* max pool 2x2 of the whole image */
    bool padded; /* a small window over at most two axes: all taps at once, in padded tiles */
    int64_t strip, tile_elements;
    int64_t buffer_elements; /* of a worker: a row, a tile, an input and an output plane */
    size_t counts_offset, buffer_offset;
    const kelp_op_args *args;
} pool_plan;

/* Sets the window of a global pool, with all spatial axes as one. */
static kelp_status *global_window(kelp_conv_window *w, const kelp_op_args *args,
                                  const kelp_tensor *x) {
    *w = (kelp_conv_window){.axes = 1, .out_size = 1};
    for (int i = 0; i < KELP_WINDOW_AXES; i++)
        w->in[i] = w->out[i] = w->kernel[i] = w->stride[i] = w->dilation[i] = 1;
    w->in[2] = w->kernel[2] = w->in_size = w->kernel_size = kelp_ops_product(x->shape, 2, x->rank);
    if (w->in_size == 0)
        return kelp_ops_bad_shapes(args, x, NULL, "a spatial dimension is 0");
    return NULL;
}

static kelp_status *pool_buffers(pool_plan *p, kelp_op_args *args) {
    const kelp_conv_window *w = &p->w;
    bool f32 = args->inputs[0]->dtype == KELP_F32;
    p->is_2x2 = p->kind == POOL_MAX && w->kernel[0] == 1 && w->in[0] == 1 && w->out[0] == 1;
    for (int i = 1; i < KELP_WINDOW_AXES; i++)
        p->is_2x2 = p->is_2x2 && w->kernel[i] == 2 && w->stride[i] == 2 && w->dilation[i] == 1 &&
                    w->before[i] == 0 && 2 * w->out[i] == w->in[i];
    p->by_one = args->inputs[0]->dtype == KELP_F64 || kelp_ops_out(args, 1) != NULL;
    int64_t all = 0;
    p->padded = !p->is_2x2 && kelp_padded_fits(w) && w->kernel_size <= 25 && w->out_size > 0;
    if (p->padded) {
        p->strip = kelp_padded_strip(w);
        p->tile_elements = kelp_padded_floats(w, p->strip);
        if (p->tile_elements < 0)
            return kelp_ops_bad_shapes(args, args->inputs[0], NULL, "the input is too large");
    }
    /* a row of inputs or of factors */
    p->buffer_elements = KELP_MAX(w->in[2], w->out[2]) + p->tile_elements;
    if (p->kind == POOL_LP || !f32 || p->by_one)
        p->buffer_elements += w->in_size + w->out_size;
    if (!kelp_i64_mul(p->buffer_elements, kelp_op_env_threads(args->env), &all))
        return kelp_ops_bad_shapes(args, args->inputs[0], NULL, "the input is too large");
    KELP_TRY(
        kelp_ops_scratch(args, all, p->by_one ? sizeof(double) : sizeof(float), &p->buffer_offset));
    return kelp_ops_scratch(args, w->out[0] + w->out[1] + w->out[2], sizeof(float),
                            &p->counts_offset);
}

static kelp_status *pool_reshape(kelp_op_args *args, pool_kind kind, bool global) {
    pool_plan *p = args->plan;
    int64_t shape[KELP_MAX_RANK];
    const int64_t *kernel = NULL;
    KELP_TRY(kelp_ops_check_inputs(args, 1));
    const kelp_tensor *x = args->inputs[0];
    bool small = x->dtype == KELP_I8 || x->dtype == KELP_U8;
    if (!kelp_ops_is_float(x->dtype) && !(small && kind == POOL_MAX))
        return kelp_ops_bad_type(args, x->dtype);
    if (x->rank < (global ? 2 : 3))
        return kelp_ops_bad_shapes(args, x, NULL, "expected batch, channels and spatial axes");
    p->planes = x->shape[0] * x->shape[1];
    p->kind = kind;
    p->p = kelp_node_attr_type(args->node, "p") == KELP_ATTR_FLOAT
               ? (double)kelp_node_attr_f32(args->node, "p", 2.0f)
               : (double)kelp_node_attr_i64(args->node, "p", 2);
    p->count_padding = kelp_node_attr_i64(args->node, "count_include_pad", 0) != 0;
    p->column_major = kelp_node_attr_i64(args->node, "storage_order", 0) != 0;
    int32_t rank = x->rank;
    if (global) {
        KELP_TRY(global_window(&p->w, args, x));
        for (int32_t i = 0; i < rank; i++)
            shape[i] = i < 2 ? x->shape[i] : 1;
    } else {
        if (kelp_node_attr_i64s(args->node, "kernel_shape", &kernel) != (size_t)x->rank - 2)
            return kelp_ops_bad_shapes(args, x, NULL,
                                       "expected kernel_shape with one size for each spatial axis");
        KELP_TRY(kelp_window_init(&p->w, args, x, kernel, x->rank - 2));
        rank = kelp_window_shape(&p->w, x->shape[0], x->shape[1], shape);
    }
    KELP_TRY(kelp_ops_set(args, 0, x->dtype, rank, shape));
    if (kind == POOL_MAX)
        KELP_TRY(kelp_ops_set(args, 1, KELP_I64, rank, shape));
    return pool_buffers(p, args);
}

/* Returns the number of kernel positions along an axis that are inside the input, or inside the
 * padded input. */
static int64_t counted(const pool_plan *p, int axis, int64_t at) {
    const kelp_conv_window *w = &p->w;
    KELP_ASSERT(at >= 0 && at < w->out[axis]);
    int64_t begin = at * w->stride[axis] - w->before[axis], count = 0;
    int64_t end = w->in[axis] + (p->count_padding ? w->after[axis] : 0);
    for (int64_t k = 0; k < w->kernel[axis]; k++) {
        int64_t index = begin + k * w->dilation[axis];
        count += index < end && (index >= 0 || p->count_padding);
    }
    return count;
}

/* Fills the divisors of each axis. The divisor of an empty window is 1, since its sum is 0. */
static void fill_counts(const pool_plan *p, float *counts) {
    for (int axis = 0; axis < KELP_WINDOW_AXES; axis++)
        for (int64_t at = 0; at < p->w.out[axis]; at++)
            *counts++ = (float)KELP_MAX((int64_t)1, counted(p, axis, at));
}

/* ---- a row at a time ---- */
typedef void accumulate_fn(float *y, const float *x, int64_t stride, int64_t count);

static accumulate_fn *accumulate_of(const pool_plan *p) {
    const kelp_vector_kernels *vector = kelp_vector_kernels_get();
    return p->kind == POOL_MAX ? vector->accumulate_max : vector->accumulate;
}

static void combine_rows(const pool_plan *p, const float *x, const int64_t *at, float *row) {
    accumulate_fn *accumulate = accumulate_of(p);
    const kelp_conv_window *w = &p->w;
    bool first = true;
    for (int64_t a = 0; a < w->kernel[0]; a++)
        for (int64_t b = 0; b < w->kernel[1]; b++) {
            int64_t z = at[0] * w->stride[0] - w->before[0] + a * w->dilation[0];
            int64_t r = at[1] * w->stride[1] - w->before[1] + b * w->dilation[1];
            if (z < 0 || z >= w->in[0] || r < 0 || r >= w->in[1])
                continue;
            const float *from = x + (z * w->in[1] + r) * w->in[2];
            if (first)
                memcpy(row, from, (size_t)w->in[2] * sizeof *row);
            else
                accumulate(row, from, 1, w->in[2]);
            first = false;
        }
    for (int64_t i = 0; first && i < w->in[2]; i++)
        row[i] = p->kind == POOL_MAX ? -INFINITY : 0.0f;
}

static void combine_along(const pool_plan *p, const float *row, float *y) {
    accumulate_fn *accumulate = accumulate_of(p);
    const kelp_conv_window *w = &p->w;
    for (int64_t i = 0; i < w->out[2]; i++)
        y[i] = p->kind == POOL_MAX ? -INFINITY : 0.0f;
    for (int64_t c = 0; c < w->kernel[2]; c++) {
        int64_t shift = c * w->dilation[2] - w->before[2], stride = w->stride[2];
        int64_t first = shift < 0 ? (-shift + stride - 1) / stride : 0;
        int64_t last = w->in[2] - shift <= 0 ? 0 : (w->in[2] - shift - 1) / stride + 1;
        last = KELP_MIN(last, w->out[2]);
        if (first < last)
            accumulate(y + first, row + first * stride + shift, stride, last - first);
    }
}

/* Divides sums by the counts. The factors of a row are computed again only where they change. */
static void average_rows(const pool_plan *p, const float *counts, int64_t first, int64_t rows,
                         float *factors, float *y) {
    const kelp_elementwise_kernels *elementwise = kelp_elementwise_kernels_get();
    const kelp_conv_window *w = &p->w;
    const float *along = counts + w->out[0] + w->out[1];
    float before = 0.0f;
    for (int64_t r = first; r < first + rows; r++, y += w->out[2]) {
        float others = counts[0] * counts[w->out[0] + r];
        for (int64_t i = 0; i < w->out[2] && others != before; i++)
            factors[i] = 1.0f / (others * along[i]);
        before = others;
        elementwise->bin[KELP_BIN_MUL](y, y, factors, w->out[2], 1, 1);
    }
}

/* Pools plane `plane` of the `planes` at `x`, in padded tiles. */
static void pool_padded(const pool_plan *p, const float *counts, const float *x, int64_t plane,
                        int64_t planes, float *row, float *y) {
    const kelp_sliding_kernels *sliding = kelp_sliding_kernels_get();
    const kelp_conv_window *w = &p->w;
    float *frame = row + KELP_MAX(w->in[2], w->out[2]);
    bool most = p->kind == POOL_MAX;
    void (*slide)(const kelp_sliding_pool *windows) = most ? sliding->max : sliding->sum;
    kelp_sliding_pool image = {.y = y};
    if (kelp_padded_pool_image(w, x, plane, planes, &image)) {
        slide(&image);
        if (p->kind == POOL_AVERAGE)
            average_rows(p, counts, 0, w->out[1], row, y);
        return;
    }
    x += plane * w->in_size;
    for (int64_t first = 0; first < w->out[1]; first += p->strip) {
        int64_t rows = KELP_MIN(p->strip, w->out[1] - first);
        kelp_sliding_pool s = {.x = frame, .y = y + first * w->out[2]};
        kelp_padded_fill(w, x, first, rows, most ? -INFINITY : 0.0f, frame, &s.geometry);
        slide(&s);
        if (p->kind == POOL_AVERAGE)
            average_rows(p, counts, first, rows, row, s.y);
    }
}

/* Pools plane `plane` of the `planes` at `all`. */
static void pool_plane(const pool_plan *p, const float *all, int64_t plane, int64_t planes,
                       float *row, float *y) {
    const kelp_sliding_kernels *sliding = kelp_sliding_kernels_get();
    const kelp_vector_kernels *vector = kelp_vector_kernels_get();
    const kelp_conv_window *w = &p->w;
    const float *x = all + plane * w->in_size;
    const float *counts = (const float *)kelp_ops_scratch_at(p->args, p->counts_offset);
    int64_t at[2];
    bool single = w->kernel[0] * w->kernel[1] == 1;
    bool whole = true; /* the window is the image */
    for (int i = 0; i < KELP_WINDOW_AXES; i++)
        whole = whole && w->kernel[i] == w->in[i] && (w->kernel[i] == 1 || w->dilation[i] == 1);
    if (whole && w->out_size == 1 && w->before[0] + w->before[1] + w->before[2] == 0) {
        y[0] = p->kind == POOL_MAX ? vector->max(x, w->in_size) : vector->sum(x, w->in_size);
        if (p->kind == POOL_AVERAGE)
            y[0] /= counts[0] * counts[1] * counts[2];
        return;
    }
    if (p->is_2x2) {
        sliding->max_pool_2x2(y, x, w->out[1], w->in[2]);
        return;
    }
    if (p->padded) {
        pool_padded(p, counts, all, plane, planes, row, y);
        return;
    }
    for (at[0] = 0; at[0] < w->out[0]; at[0]++)
        for (at[1] = 0; at[1] < w->out[1]; at[1]++, y += w->out[2]) {
            int64_t r = at[1] * w->stride[1] - w->before[1];
            int64_t z = at[0] * w->stride[0] - w->before[0];
            bool inside = single && z >= 0 && z < w->in[0] && r >= 0 && r < w->in[1];
            if (!inside)
                combine_rows(p, x, at, row);
            combine_along(p, inside ? x + (z * w->in[1] + r) * w->in[2] : row, y);
            float others = counts[at[0]] * counts[w->out[0] + at[1]];
            const float *along = counts + w->out[0] + w->out[1];
            for (int64_t i = 0; p->kind == POOL_AVERAGE && i < w->out[2]; i++)
                y[i] /= others * along[i];
        }
}

static void power(float *x, int64_t count, double exponent) {
    for (int64_t i = 0; i < count; i++) {
        float value = fabsf(x[i]);
        if (exponent == 2)
            x[i] = value * value;
        else if (exponent == 0.5)
            x[i] = sqrtf(value);
        else
            x[i] = exponent == 1 ? value : (float)pow((double)value, exponent);
    }
}

static void plane_range(void *userp, int64_t begin, int64_t end, int worker) {
    const pool_plan *p = userp;
    const kelp_conv_window *w = &p->w;
    const kelp_tensor *x = p->args->inputs[0], *y = p->args->outputs[0];
    float *row = (float *)kelp_ops_scratch_at(p->args, p->buffer_offset) +
                 (int64_t)worker * p->buffer_elements;
    float *input = row + KELP_MAX(w->in[2], w->out[2]) + p->tile_elements;
    float *output = input + w->in_size;
    for (int64_t plane = begin; plane < end; plane++) {
        if (x->dtype == KELP_F32 && p->kind != POOL_LP) {
            pool_plane(p, x->data, plane, p->planes, row, (float *)y->data + plane * w->out_size);
            continue;
        }
        kelp_math_load_tensor(x, plane * w->in_size, w->in_size, input);
        if (p->kind == POOL_LP)
            power(input, w->in_size, p->p);
        pool_plane(p, input, 0, 1, row, output);
        if (p->kind == POOL_LP)
            power(output, w->out_size, 1 / p->p);
        kelp_math_store_tensor(y, plane * w->out_size, w->out_size, output);
    }
}

/* ---- one output at a time ---- */
typedef struct pooled {
    double sum, max;
    int64_t index; /* of the maximum */
} pooled;

static pooled pool_one(const pool_plan *p, const double *x, const int64_t *at) {
    const kelp_conv_window *w = &p->w;
    pooled result = {0, -INFINITY, -1};
    for (int64_t a = 0; a < w->kernel[0]; a++)
        for (int64_t b = 0; b < w->kernel[1]; b++)
            for (int64_t c = 0; c < w->kernel[2]; c++) {
                int64_t i = at[0] * w->stride[0] - w->before[0] + a * w->dilation[0];
                int64_t j = at[1] * w->stride[1] - w->before[1] + b * w->dilation[1];
                int64_t k = at[2] * w->stride[2] - w->before[2] + c * w->dilation[2];
                if (i < 0 || i >= w->in[0] || j < 0 || j >= w->in[1] || k < 0 || k >= w->in[2])
                    continue;
                int64_t offset = (i * w->in[1] + j) * w->in[2] + k;
                double value = x[offset];
                if (p->kind != POOL_MAX)
                    result.sum += p->kind == POOL_LP ? pow(fabs(value), p->p) : value;
                if (value > result.max || result.index < 0 || value != value) {
                    result.max = value;
                    result.index = offset;
                }
            }
    return result;
}

/* Returns the index of a maximum in the whole tensor, with reversed spatial axes if column-major.
 */
static int64_t index_of(const pool_plan *p, int64_t plane, int64_t offset) {
    const kelp_conv_window *w = &p->w;
    if (p->column_major) {
        int64_t k = offset % w->in[2], j = offset / w->in[2] % w->in[1];
        int64_t i = offset / w->in[2] / w->in[1];
        offset = (k * w->in[1] + j) * w->in[0] + i;
    }
    return plane * w->in_size + offset;
}

static void one_range(void *userp, int64_t begin, int64_t end, int worker) {
    const pool_plan *p = userp;
    const kelp_conv_window *w = &p->w;
    const kelp_tensor *x = p->args->inputs[0], *y = kelp_ops_out(p->args, 0);
    const kelp_tensor *indices = p->kind == POOL_MAX ? kelp_ops_out(p->args, 1) : NULL;
    const float *counts = (const float *)kelp_ops_scratch_at(p->args, p->counts_offset);
    double *input = (double *)kelp_ops_scratch_at(p->args, p->buffer_offset) +
                    (int64_t)worker * p->buffer_elements;
    int64_t at[3];
    for (int64_t plane = begin; plane < end; plane++) {
        int64_t to = plane * w->out_size;
        kelp_real_load_f64(x->dtype, x->data, plane * w->in_size, w->in_size, input);
        for (int64_t i = 0; i < w->out_size; i++, to++) {
            at[0] = i / w->out[2] / w->out[1];
            at[1] = i / w->out[2] % w->out[1];
            at[2] = i % w->out[2];
            pooled r = pool_one(p, input, at);
            double value = p->kind == POOL_MAX ? r.max : r.sum;
            if (p->kind == POOL_LP)
                value = pow(value, 1 / p->p);
            if (p->kind == POOL_AVERAGE)
                value /= (double)counts[at[0]] * (double)counts[w->out[0] + at[1]] *
                         (double)counts[w->out[0] + w->out[1] + at[2]];
            if (y != NULL)
                kelp_real_store_f64(y->dtype, y->data, to, 1, &value);
            if (indices != NULL)
                ((int64_t *)indices->data)[to] = index_of(p, plane, r.index);
        }
    }
}

static kelp_status *pool_invoke(const void *state, kelp_op_args *args) {
    pool_plan *p = args->plan;
    (void)state;
    if (p->planes * p->w.out_size == 0)
        return NULL;
    KELP_ASSERT(args->scratch != NULL && p->buffer_elements > 0);
    KELP_ASSERT(!p->padded || p->strip > 0);
    p->args = args;
    fill_counts(p, (float *)kelp_ops_scratch_at(args, p->counts_offset));
    int64_t work = p->w.in_size + p->w.out_size * (p->by_one ? p->w.kernel_size : 4);
    kelp_op_parallel(args->env, p->planes, kelp_cpu_grain(KELP_GRAIN_ELEMENTS * 2, work),
                     p->by_one ? one_range : plane_range, p);
    return NULL;
}

#define POOL(name, kind, global)                                                \
    static kelp_status *reshape_##name(const void *state, kelp_op_args *args) { \
        (void)state;                                                            \
        return pool_reshape(args, kind, global);                                \
    }                                                                           \
    KELP_KERNEL(name, 0, sizeof(pool_plan), 0, reshape_##name, pool_invoke);
POOL(MaxPool, POOL_MAX, false)
POOL(AveragePool, POOL_AVERAGE, false)
POOL(LpPool, POOL_LP, false)
POOL(GlobalMaxPool, POOL_MAX, true)
POOL(GlobalAveragePool, POOL_AVERAGE, true)
POOL(GlobalLpPool, POOL_LP, true)
