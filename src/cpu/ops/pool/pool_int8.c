/* SPDX-License-Identifier: Apache-2.0 */
/*
 * com.microsoft QLinearAveragePool, QLinearGlobalAveragePool and NhwcMaxPool: pools of bytes, NCHW
 * or NHWC. Sums are integers. Source: ONNX Runtime, ContribOperators.md.
 */
#include "base/assert.h"
#include "cpu/ops/quantize/qlinear.h"
#include "cpu/ops/conv/window.h"

/* The kernel positions along an axis that are inside the input, and the number that counts. */
typedef struct axis_range {
    int64_t first, last, count;
} axis_range;

/* The range of a column of outputs: the first input, the number of inputs and the number that
 * counts. */
typedef struct column {
    int32_t first, inside;
    float count;
} column;

typedef enum pool_kind { POOL_AVERAGE, POOL_GLOBAL, POOL_MAX } pool_kind;

/* Channels of NHWC that are pooled at a time, and taps of a maximum. */
#define BLOCK_CHANNELS 256
#define BLOCK_TAPS 64
/* Bytes whose sum fits into 32 bits. */
#define MAX_SUMMANDS ((int64_t)1 << 24)

typedef struct pool_plan {
    kelp_conv_window w;
    pool_kind kind;
    int64_t batch, channels, blocks; /* blocks of channels */
    bool last, count_padding;        /* last: NHWC */
    uint8_t flip;                    /* makes bytes unsigned */
    kelp_quant in, out;
    /* in scratch memory: sums of columns, and results, of each worker; the ranges of columns */
    size_t row_offset, columns_offset;
    const kelp_op_args *args;
} pool_plan;

static kelp_status *pool_reshape(kelp_op_args *args, pool_kind kind) {
    pool_plan *p = args->plan;
    KELP_TRY(kelp_ops_check(args, 1));
    const kelp_tensor *x = args->inputs[0];
    bool last = kind == POOL_MAX || kelp_node_attr_i64(args->node, "channels_last", 0) != 0;
    int64_t each = 0;
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
    p->last = last;
    p->batch = nchw.shape[0];
    p->channels = nchw.shape[1];
    kernel = nchw.shape + 2;
    if (kind != POOL_GLOBAL &&
        kelp_node_attr_i64s(args->node, "kernel_shape", &kernel) != (size_t)x->rank - 2)
        return kelp_ops_bad_shapes(args, x, NULL,
                                   "expected kernel_shape with one size for each spatial axis");
    KELP_TRY(kelp_window_init(&p->w, args, &nchw, kernel, x->rank - 2));
    if (kind != POOL_MAX && p->w.kernel_size > MAX_SUMMANDS)
        return kelp_ops_bad_shapes(args, x, NULL, "the window has more than 2^24 elements");
    p->count_padding = kelp_node_attr_i64(args->node, "count_include_pad", 0) != 0;
    int32_t rank = kelp_window_shape(&p->w, p->batch, p->channels, shape);
    p->blocks = kelp_divide_up(p->channels, BLOCK_CHANNELS);
    if (!last) {
        if (p->w.in[2] > INT32_MAX ||
            !kelp_i64_mul(p->w.in[2] + p->w.out[2], kelp_op_env_threads(args->env), &each))
            return kelp_ops_bad_shapes(args, x, NULL, "the input is too large");
        KELP_TRY(kelp_ops_scratch(args, each, sizeof(int32_t), &p->row_offset));
        KELP_TRY(kelp_ops_scratch(args, p->w.out[2], sizeof(column), &p->columns_offset));
    }
    for (int32_t i = 1; i < rank - 1 && last; i++)
        shape[i] = shape[i + 1];
    if (last)
        shape[rank - 1] = p->channels;
    return kelp_ops_set(args, 0, x->dtype, rank, shape);
}

static axis_range range_at(const pool_plan *p, int axis, int64_t at) {
    const kelp_conv_window *w = &p->w;
    int64_t begin = at * w->stride[axis] - w->before[axis], d = w->dilation[axis];
    int64_t end = w->in[axis] + (p->count_padding ? w->after[axis] : 0);
    axis_range r = {.first = begin < 0 ? (-begin + d - 1) / d : 0};
    if (d == 1) { /* without a loop, because windows of global pools are large */
        int64_t from = p->count_padding ? begin : KELP_MAX(begin, (int64_t)0);
        r.last = KELP_MAX((int64_t)0, KELP_MIN(w->kernel[axis], w->in[axis] - begin));
        r.count = KELP_MAX((int64_t)0, KELP_MIN(begin + w->kernel[axis], end) - from);
        return r;
    }
    for (int64_t k = 0; k < w->kernel[axis]; k++) {
        int64_t index = begin + k * d;
        r.last = index < w->in[axis] ? k + 1 : r.last;
        r.count += index < end && (index >= 0 || p->count_padding);
    }
    return r;
}

static int64_t inside(const axis_range *r) {
    return KELP_MAX((int64_t)0, r->last - r->first);
}

/* Returns the offset of kernel position k of the window at `at` along an axis. */
static int64_t index_at(const pool_plan *p, int axis, int64_t at, int64_t k) {
    return at * p->w.stride[axis] - p->w.before[axis] + k * p->w.dilation[axis];
}

/* Returns the mean of bytes that were made unsigned. */
static float mean_of(const pool_plan *p, int64_t sum, int64_t added, int64_t counted) {
    int64_t zero = p->in.zero + (p->flip != 0 ? 128 : 0);
    return (float)(sum - added * zero) * p->in.scale / (float)counted;
}

/* ---- NHWC: blocks of channels ---- */
static void max_of_taps(const pool_plan *p, const uint8_t *x, const int64_t *at, int64_t taps,
                        bool first, uint8_t *y, int64_t count) {
    uint8_t more[BLOCK_CHANNELS];
    if (taps == 0)
        return;
    kelp_int8_kernels_get()->max_taps(first ? y : more, x, at, taps, p->flip, count);
    for (int64_t c = 0; c < count && !first; c++) {
        uint8_t a = y[c] ^ p->flip, b = more[c] ^ p->flip;
        y[c] = KELP_MAX(a, b) ^ p->flip;
    }
}

static void add_channels(const uint8_t *x, uint8_t flip, uint32_t *sums, int64_t count) {
    for (int64_t c = 0; c < count; c++)
        sums[c] += (uint8_t)(x[c] ^ flip);
}

/* Pools `count` channels from x on at one position. */
static void pool_channels(const pool_plan *p, const uint8_t *x, const axis_range *ranges,
                          const int64_t *position, uint8_t *y, int64_t count) {
    const kelp_conv_window *w = &p->w;
    int64_t at[BLOCK_TAPS], taps = 0, added = 0;
    uint32_t sums[BLOCK_CHANNELS] = {0};
    for (int64_t a = ranges[0].first; a < ranges[0].last; a++)
        for (int64_t b = ranges[1].first; b < ranges[1].last; b++)
            for (int64_t c = ranges[2].first; c < ranges[2].last; c++, added++) {
                int64_t pixel = index_at(p, 0, position[0], a) * w->in[1];
                pixel = (pixel + index_at(p, 1, position[1], b)) * w->in[2];
                pixel = (pixel + index_at(p, 2, position[2], c)) * p->channels;
                if (p->kind != POOL_MAX) {
                    add_channels(x + pixel, p->flip, sums, count);
                    continue;
                }
                at[taps++] = pixel;
                if (taps == BLOCK_TAPS) {
                    max_of_taps(p, x, at, taps, added < BLOCK_TAPS, y, count);
                    taps = 0;
                }
            }
    if (p->kind == POOL_MAX) {
        if (added == 0)
            memset(y, p->flip, (size_t)count); /* the lowest value */
        max_of_taps(p, x, at, taps, added <= BLOCK_TAPS, y, count);
        return;
    }
    float values[BLOCK_CHANNELS];
    int64_t counted = ranges[0].count * ranges[1].count * ranges[2].count;
    for (int64_t c = 0; c < count; c++)
        values[c] = mean_of(p, sums[c], added, counted);
    kelp_quant_floats(&p->out, p->args->inputs[0]->dtype, values, y, count);
}

/* A unit is a block of channels of a row of outputs. */
static void pool_nhwc(void *userp, int64_t begin, int64_t end, int worker) {
    const pool_plan *p = userp;
    const kelp_conv_window *w = &p->w;
    const uint8_t *x = p->args->inputs[0]->data;
    uint8_t *y = p->args->outputs[0]->data;
    (void)worker;
    for (int64_t unit = begin; unit < end; unit++) {
        int64_t row = unit / p->blocks, channel = unit % p->blocks * BLOCK_CHANNELS;
        int64_t count = KELP_MIN((int64_t)BLOCK_CHANNELS, p->channels - channel);
        int64_t at[3] = {row / w->out[1] % w->out[0], row % w->out[1], 0};
        int64_t image = row / w->out[1] / w->out[0];
        axis_range ranges[3] = {range_at(p, 0, at[0]), range_at(p, 1, at[1])};
        for (; at[2] < w->out[2]; at[2]++) {
            ranges[2] = range_at(p, 2, at[2]);
            pool_channels(p, x + image * w->in_size * p->channels + channel, ranges, at,
                          y + (row * w->out[2] + at[2]) * p->channels + channel, count);
        }
    }
}

/* ---- NCHW ---- */
static void find_columns(const pool_plan *p) {
    column *columns = kelp_ops_scratch_at(p->args, p->columns_offset);
    for (int64_t j = 0; j < p->w.out[2]; j++) {
        axis_range r = range_at(p, 2, j);
        columns[j] = (column){.first = inside(&r) > 0 ? (int32_t)index_at(p, 2, j, r.first) : 0,
                              .inside = (int32_t)inside(&r),
                              .count = (float)r.count};
    }
}

/* Adds neighbours in the sums of columns, and computes the means. `rows`: the rows of the window
 * that are inside the input, `count`: the number that counts. */
static void average_columns(const pool_plan *p, const uint32_t *sums, int64_t rows, int64_t count,
                            float *values) {
    const column *columns = kelp_ops_scratch_at(p->args, p->columns_offset);
    int64_t step = p->w.dilation[2];
    int64_t zero = rows * (p->in.zero + (p->flip != 0 ? 128 : 0));
    float counted = (float)count, scale = p->in.scale;
    for (int64_t j = 0; j < p->w.out[2]; j++) {
        const uint32_t *from = sums + columns[j].first;
        uint32_t sum = 0;
        for (int32_t k = 0; k < columns[j].inside; k++)
            sum += from[k * step];
        values[j] =
            (float)((int64_t)sum - columns[j].inside * zero) * scale / (counted * columns[j].count);
    }
}

/* A unit is a row of outputs: rows of the window are added, then neighbours in the sum. */
static void average_rows(void *userp, int64_t begin, int64_t end, int worker) {
    const pool_plan *p = userp;
    const kelp_conv_window *w = &p->w;
    uint32_t *sums =
        (uint32_t *)kelp_ops_scratch_at(p->args, p->row_offset) + worker * (w->in[2] + w->out[2]);
    float *values = (float *)(void *)(sums + w->in[2]);
    for (int64_t row = begin; row < end; row++) {
        int64_t at[2] = {row / w->out[1] % w->out[0], row % w->out[1]};
        int64_t plane = row / w->out[1] / w->out[0];
        axis_range z = range_at(p, 0, at[0]), r = range_at(p, 1, at[1]);
        const uint8_t *x = (const uint8_t *)p->args->inputs[0]->data + plane * w->in_size;
        memset(sums, 0, (size_t)w->in[2] * sizeof *sums);
        for (int64_t a = z.first; a < z.last; a++)
            for (int64_t b = r.first; b < r.last; b++)
                add_channels(x + (index_at(p, 0, at[0], a) * w->in[1] + index_at(p, 1, at[1], b)) *
                                     w->in[2],
                             p->flip, sums, w->in[2]);
        average_columns(p, sums, inside(&z) * inside(&r), z.count * r.count, values);
        kelp_quant_floats(&p->out, p->args->inputs[0]->dtype, values,
                          (uint8_t *)p->args->outputs[0]->data + row * w->out[2], w->out[2]);
    }
}

/* Averages whole planes. */
static void average_planes(void *userp, int64_t begin, int64_t end, int worker) {
    const kelp_int8_kernels *kernels = kelp_int8_kernels_get();
    const pool_plan *p = userp;
    enum { CHUNK = 4096 };
    uint8_t flipped[CHUNK];
    (void)worker;
    for (int64_t plane = begin; plane < end; plane++) {
        const uint8_t *x = (const uint8_t *)p->args->inputs[0]->data + plane * p->w.in_size;
        int64_t total = 0;
        for (int64_t i = 0; i < p->w.in_size; i += CHUNK) {
            int64_t count = KELP_MIN((int64_t)CHUNK, p->w.in_size - i);
            const uint8_t *from = x + i;
            int32_t sum;
            for (int64_t k = 0; k < count && p->flip != 0; k++)
                flipped[k] = x[i + k] ^ 0x80;
            kernels->row_sums(p->flip != 0 ? flipped : from, count, 1, count, &sum);
            total += sum;
        }
        float mean = mean_of(p, total, p->w.in_size, p->w.in_size);
        kelp_quant_floats(&p->out, p->args->inputs[0]->dtype, &mean,
                          (uint8_t *)p->args->outputs[0]->data + plane, 1);
    }
}

static kelp_status *pool_invoke(const void *state, kelp_op_args *args) {
    pool_plan *p = args->plan;
    kelp_dtype dtype = args->inputs[0]->dtype;
    int64_t rows = p->batch * p->w.out[0] * p->w.out[1], channels = p->channels;
    (void)state;
    KELP_ASSERT(kelp_quant_is(dtype) && args->outputs[0]->dtype == dtype);
    if (kelp_tensor_elements(args->outputs[0]) == 0)
        return NULL;
    p->args = args;
    p->flip = dtype == KELP_I8 ? 0x80 : 0;
    if (p->kind != POOL_MAX) {
        p->in = kelp_quant_read(args, dtype, 1, 2);
        p->out = kelp_quant_read(args, dtype, 3, 4);
    }
    int64_t row = p->w.out[2] * p->w.kernel_size;
    if (!p->last && p->kind == POOL_AVERAGE)
        find_columns(p);
    if (p->last)
        kelp_op_parallel(
            args->env, rows * p->blocks,
            kelp_cpu_grain(4 * KELP_GRAIN_ELEMENTS, row * KELP_MIN(channels, BLOCK_CHANNELS)),
            pool_nhwc, p);
    else if (p->kind == POOL_GLOBAL)
        kelp_op_parallel(args->env, p->batch * channels,
                         kelp_cpu_grain(8 * KELP_GRAIN_ELEMENTS, p->w.in_size), average_planes, p);
    else
        kelp_op_parallel(args->env, rows * channels, kelp_cpu_grain(KELP_GRAIN_ELEMENTS, row),
                         average_rows, p);
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
