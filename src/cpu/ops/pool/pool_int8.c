/* SPDX-License-Identifier: Apache-2.0 */
/*
 * com.microsoft QLinearAveragePool, QLinearGlobalAveragePool and NhwcMaxPool: pools of bytes, NCHW
 * or NHWC. Source: ONNX Runtime, ContribOperators.md.
 */
#include "base/assert.h"
#include "cpu/ops/quantize/qlinear.h"
#include "cpu/ops/conv/window.h"

typedef enum pool_kind { POOL_AVERAGE, POOL_GLOBAL, POOL_MAX } pool_kind;

typedef struct pool_plan {
    kelp_conv_window w;
    pool_kind kind;
    int64_t batch, channels;
    int64_t x_strides[2], x_axis[3], y_strides[2], y_axis[3]; /* batch and channel; spatial axes */
    bool count_padding;
    kelp_quant in, out;
    const kelp_op_args *args;
} pool_plan;

/* Computes the strides of batch and channel, and of the spatial axes; `last`: NHWC. */
static void strides_of(const pool_plan *p, const int64_t *dims, bool last, int64_t *strides,
                       int64_t *axes) {
    int64_t inner = last ? p->channels : 1, size = dims[0] * dims[1] * dims[2];
    strides[0] = p->channels * size;
    strides[1] = last ? 1 : size;
    for (int i = 2; i >= 0; i--) {
        axes[i] = inner;
        inner *= dims[i];
    }
}

static kelp_status *pool_reshape(kelp_op_args *args, pool_kind kind) {
    pool_plan *p = args->plan;
    KELP_TRY(kelp_ops_check(args, 1));
    const kelp_tensor *x = args->inputs[0];
    bool last = kind == POOL_MAX || kelp_node_attr_i64(args->node, "channels_last", 0) != 0;
    kelp_tensor nchw = *x; /* the shape of x as NCHW */
    const int64_t *kernel = NULL;
    int64_t shape[KELP_MAX_RANK];
    if (!kelp_quant_is(x->dtype))
        return kelp_ops_bad_type(args, x->dtype);
    if (x->rank < 3 || x->rank > 5)
        return kelp_ops_bad_shapes(args, x, NULL, "expected batch, channels and spatial axes");
    if (kind != POOL_MAX) {
        KELP_TRY(kelp_quant_check(args, x->dtype, 1, 2));
        KELP_TRY(kelp_quant_check(args, x->dtype, 3, 4));
    }
    for (int32_t i = 2; i < x->rank && last; i++)
        nchw.shape[i] = x->shape[i - 1];
    if (last)
        nchw.shape[1] = x->shape[x->rank - 1];
    p->kind = kind;
    p->batch = nchw.shape[0];
    p->channels = nchw.shape[1];
    kernel = nchw.shape + 2;
    if (kind != POOL_GLOBAL &&
        kelp_node_attr_i64s(args->node, "kernel_shape", &kernel) != (size_t)x->rank - 2)
        return kelp_ops_bad_shapes(args, x, NULL,
                                   "expected kernel_shape with one size for each spatial axis");
    KELP_TRY(kelp_window_init(&p->w, args, &nchw, kernel, x->rank - 2));
    p->count_padding = kelp_node_attr_i64(args->node, "count_include_pad", 0) != 0;
    int32_t rank = kelp_window_shape(&p->w, p->batch, p->channels, shape);
    strides_of(p, p->w.in, last, p->x_strides, p->x_axis);
    strides_of(p, p->w.out, last, p->y_strides, p->y_axis);
    for (int32_t i = 1; i < rank - 1 && last; i++)
        shape[i] = shape[i + 1];
    if (last)
        shape[rank - 1] = p->channels;
    return kelp_ops_set(args, 0, x->dtype, rank, shape);
}

/* Computes the kernel positions along an axis that are inside the input, and the number that
 * counts.
 */
static void window_range(const pool_plan *p, int axis, int64_t at, int64_t *first, int64_t *last,
                         int64_t *count) {
    const kelp_conv_window *w = &p->w;
    int64_t begin = at * w->stride[axis] - w->before[axis], d = w->dilation[axis];
    int64_t end = w->in[axis] + (p->count_padding ? w->after[axis] : 0);
    *first = begin < 0 ? (-begin + d - 1) / d : 0;
    *last = *count = 0;
    for (int64_t k = 0; k < w->kernel[axis]; k++) {
        int64_t index = begin + k * d;
        *last = index < w->in[axis] ? k + 1 : *last;
        *count += index < end && (index >= 0 || p->count_padding);
    }
}

static uint8_t pool_one(const pool_plan *p, int64_t base, const int64_t *at) {
    const kelp_conv_window *w = &p->w;
    const kelp_tensor *x = p->args->inputs[0];
    int64_t first[3], last[3], counted = 1;
    int32_t max = INT32_MIN;
    float sum = 0;
    for (int i = 0; i < 3; i++) {
        int64_t count;
        window_range(p, i, at[i], &first[i], &last[i], &count);
        counted *= count;
        base += (at[i] * w->stride[i] - w->before[i]) * p->x_axis[i];
    }
    for (int64_t a = first[0]; a < last[0]; a++)
        for (int64_t b = first[1]; b < last[1]; b++)
            for (int64_t c = first[2]; c < last[2]; c++) {
                int32_t v = kelp_quant_get(x, base + a * w->dilation[0] * p->x_axis[0] +
                                                  b * w->dilation[1] * p->x_axis[1] +
                                                  c * w->dilation[2] * p->x_axis[2]);
                sum += (float)(v - p->in.zero) * p->in.scale;
                max = KELP_MAX(max, v);
            }
    if (p->kind == POOL_MAX)
        return (uint8_t)(max == INT32_MIN ? (x->dtype == KELP_I8 ? -128 : 0) : max);
    return kelp_quant_byte(&p->out, sum / (float)counted * (1.0f / p->out.scale));
}

static void pool_range(void *userp, int64_t begin, int64_t end, int worker) {
    const pool_plan *p = userp;
    uint8_t *y = p->args->outputs[0]->data;
    (void)worker;
    for (int64_t plane = begin; plane < end; plane++) {
        int64_t image = plane / p->channels, channel = plane % p->channels, at[3];
        int64_t from = image * p->x_strides[0] + channel * p->x_strides[1];
        int64_t to = image * p->y_strides[0] + channel * p->y_strides[1];
        for (at[0] = 0; at[0] < p->w.out[0]; at[0]++)
            for (at[1] = 0; at[1] < p->w.out[1]; at[1]++)
                for (at[2] = 0; at[2] < p->w.out[2]; at[2]++)
                    y[to + at[0] * p->y_axis[0] + at[1] * p->y_axis[1] + at[2] * p->y_axis[2]] =
                        pool_one(p, from, at);
    }
}

static kelp_status *pool_invoke(const void *state, kelp_op_args *args) {
    pool_plan *p = args->plan;
    kelp_dtype dtype = args->inputs[0]->dtype;
    (void)state;
    KELP_ASSERT(kelp_quant_is(dtype) && args->outputs[0]->dtype == dtype);
    p->args = args;
    if (p->kind != POOL_MAX) {
        p->in = kelp_quant_read(args, dtype, 1, 2);
        p->out = kelp_quant_read(args, dtype, 3, 4);
    }
    int64_t each = KELP_MAX((int64_t)1, p->w.out_size * p->w.kernel_size);
    kelp_op_parallel(args->env, p->batch * p->channels, kelp_cpu_grain(KELP_GRAIN_ELEMENTS, each),
                     pool_range, p);
    return NULL;
}

static kelp_status *average_reshape(const void *state, kelp_op_args *args) {
    (void)state;
    return pool_reshape(args, POOL_AVERAGE);
}
static kelp_status *global_reshape(const void *state, kelp_op_args *args) {
    (void)state;
    return pool_reshape(args, POOL_GLOBAL);
}
static kelp_status *max_reshape(const void *state, kelp_op_args *args) {
    (void)state;
    return pool_reshape(args, POOL_MAX);
}
KELP_KERNEL(MsQLinearAveragePool, 0, sizeof(pool_plan), 0, average_reshape, pool_invoke);
KELP_KERNEL(MsQLinearGlobalAveragePool, 0, sizeof(pool_plan), 0, global_reshape, pool_invoke);
KELP_KERNEL(MsNhwcMaxPool, 0, sizeof(pool_plan), 0, max_reshape, pool_invoke);
