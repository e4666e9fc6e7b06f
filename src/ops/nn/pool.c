/* SPDX-License-Identifier: Apache-2.0 */
/* MaxPool, AveragePool and their global forms, over float. Source: ONNX operator specification. */
#include "ops/nn/window.h"

#include <math.h>

typedef struct pool_plan {
    kelp_window w;
    int64_t planes;
    bool average, count_padding;
    const float *x;
    float *y;
    int64_t *indices;
    bool column_major;
} pool_plan;

static kelp_status *pool_reshape(kelp_op_args *args, bool average, bool global) {
    pool_plan *p = args->plan;
    int64_t shape[KELP_MAX_RANK], whole[KELP_MAX_RANK];
    const int64_t *kernel = whole;
    KELP_TRY(kelp_ops_check_inputs(args, 1));
    const kelp_tensor *x = args->inputs[0];
    if (x->dtype != KELP_F32)
        return kelp_ops_bad_type(args, x->dtype);
    if (x->rank < 3)
        return kelp_ops_bad_shapes(args, x, NULL, "expected batch, channels and spatial axes");
    for (int32_t i = 2; i < x->rank; i++)
        whole[i - 2] = x->shape[i];
    if (!global && kelp_node_attr_i64s(args->node, "kernel_shape", &kernel) != (size_t)x->rank - 2)
        return kelp_ops_bad_shapes(args, x, NULL, "kernel_shape needs one extent a spatial axis");
    KELP_TRY(kelp_window_init(&p->w, args, x, kernel, x->rank - 2));
    p->planes = x->shape[0] * x->shape[1];
    p->average = average;
    p->count_padding = kelp_node_attr_i64(args->node, "count_include_pad", 0) != 0;
    p->column_major = kelp_node_attr_i64(args->node, "storage_order", 0) != 0;
    int32_t rank = kelp_window_shape(&p->w, x->shape[0], x->shape[1], shape);
    KELP_TRY(kelp_ops_set(args, 0, KELP_F32, rank, shape));
    return average ? NULL : kelp_ops_set(args, 1, KELP_I64, rank, shape);
}

/* How many kernel positions lie inside the padded input, along an axis. */
static int64_t covered(const kelp_window *w, int axis, int64_t at) {
    int64_t begin = at * w->stride[axis] - w->before[axis], count = 0;
    for (int64_t k = 0; k < w->kernel[axis]; k++)
        count += begin + k * w->dilation[axis] < w->in[axis] + w->after[axis];
    return count;
}

typedef struct pooled {
    float sum, most;
    int64_t index, count;
} pooled;

static pooled pool_one(const kelp_window *w, const float *x, const int64_t *at) {
    pooled result = {0.0f, -INFINITY, -1, 0};
    for (int64_t a = 0; a < w->kernel[0]; a++)
        for (int64_t b = 0; b < w->kernel[1]; b++)
            for (int64_t c = 0; c < w->kernel[2]; c++) {
                int64_t i = at[0] * w->stride[0] - w->before[0] + a * w->dilation[0];
                int64_t j = at[1] * w->stride[1] - w->before[1] + b * w->dilation[1];
                int64_t k = at[2] * w->stride[2] - w->before[2] + c * w->dilation[2];
                if (i < 0 || i >= w->in[0] || j < 0 || j >= w->in[1] || k < 0 || k >= w->in[2])
                    continue;
                int64_t offset = (i * w->in[1] + j) * w->in[2] + k;
                result.sum += x[offset];
                result.count++;
                if (x[offset] > result.most || result.index < 0 || x[offset] != x[offset]) {
                    result.most = x[offset];
                    result.index = offset;
                }
            }
    return result;
}

/* The index of a maximum counts through the whole tensor; column-major turns the spatial axes
 * around. */
static int64_t index_of(const pool_plan *p, int64_t plane, int64_t offset) {
    const kelp_window *w = &p->w;
    if (p->column_major) {
        int64_t k = offset % w->in[2], j = offset / w->in[2] % w->in[1];
        int64_t i = offset / w->in[2] / w->in[1];
        offset = (k * w->in[1] + j) * w->in[0] + i;
    }
    return plane * w->in_size + offset;
}

/* ---- maxima without their places ---- a row at a time, so that the inner loop is one of vectors
 */
static void max_row(const kelp_window *w, const float *x, const int64_t *at, float *y) {
    for (int64_t i = 0; i < w->out[2]; i++)
        y[i] = -INFINITY;
    for (int64_t a = 0; a < w->kernel[0]; a++)
        for (int64_t b = 0; b < w->kernel[1]; b++) {
            int64_t z = at[0] * w->stride[0] - w->before[0] + a * w->dilation[0];
            int64_t r = at[1] * w->stride[1] - w->before[1] + b * w->dilation[1];
            if (z < 0 || z >= w->in[0] || r < 0 || r >= w->in[1])
                continue;
            const float *row = x + (z * w->in[1] + r) * w->in[2];
            for (int64_t c = 0; c < w->kernel[2]; c++) {
                int64_t shift = c * w->dilation[2] - w->before[2], stride = w->stride[2];
                int64_t first = shift < 0 ? (-shift + stride - 1) / stride : 0;
                int64_t last = w->in[2] - shift <= 0 ? 0 : (w->in[2] - shift - 1) / stride + 1;
                last = KELP_MIN(last, w->out[2]);
                for (int64_t i = first; i < last; i++) {
                    float value = row[i * stride + shift];
                    /* a NaN wins, and stays */
                    y[i] = value > y[i] || value != value ? value : y[i];
                }
            }
        }
}

static void max_planes(void *userp, int64_t begin, int64_t end, int worker) {
    const pool_plan *p = userp;
    const kelp_window *w = &p->w;
    int64_t at[2];
    (void)worker;
    for (int64_t plane = begin; plane < end; plane++) {
        float *y = p->y + plane * w->out_size;
        for (at[0] = 0; at[0] < w->out[0]; at[0]++)
            for (at[1] = 0; at[1] < w->out[1]; at[1]++, y += w->out[2])
                max_row(w, p->x + plane * w->in_size, at, y);
    }
}

/* ---- averages, and maxima with their places ---- */
static void pool_planes(void *userp, int64_t begin, int64_t end, int worker) {
    const pool_plan *p = userp;
    const kelp_window *w = &p->w;
    int64_t at[3];
    (void)worker;
    for (int64_t plane = begin; plane < end; plane++) {
        int64_t to = plane * w->out_size;
        for (at[0] = 0; at[0] < w->out[0]; at[0]++)
            for (at[1] = 0; at[1] < w->out[1]; at[1]++)
                for (at[2] = 0; at[2] < w->out[2]; at[2]++, to++) {
                    pooled r = pool_one(w, p->x + plane * w->in_size, at);
                    int64_t count = r.count;
                    if (p->average && p->count_padding)
                        count = covered(w, 0, at[0]) * covered(w, 1, at[1]) * covered(w, 2, at[2]);
                    if (p->y != NULL)
                        p->y[to] = p->average ? r.sum / (float)count : r.most;
                    if (p->indices != NULL)
                        p->indices[to] = index_of(p, plane, r.index);
                }
    }
}

static kelp_status *pool_invoke(const void *state, kelp_op_args *args) {
    pool_plan *p = args->plan;
    const kelp_tensor *y = kelp_ops_out(args, 0), *indices = kelp_ops_out(args, 1);
    (void)state;
    p->x = args->inputs[0]->data;
    p->y = y != NULL ? y->data : NULL;
    p->indices = indices != NULL ? indices->data : NULL;
    int64_t work = p->w.out_size * p->w.kernel_size;
    kelp_op_parallel(args->env, p->planes, KELP_OPS_GRAIN / KELP_MAX((int64_t)1, work) + 1,
                     p->average || p->indices != NULL ? pool_planes : max_planes, p);
    return NULL;
}

#define POOL(name, average, global)                                             \
    static kelp_status *reshape_##name(const void *state, kelp_op_args *args) { \
        (void)state;                                                            \
        return pool_reshape(args, average, global);                             \
    }                                                                           \
    KELP_KERNEL(name, 0, sizeof(pool_plan), 0, reshape_##name, pool_invoke);
POOL(MaxPool, false, false)
POOL(AveragePool, true, false)
POOL(GlobalMaxPool, false, true)
