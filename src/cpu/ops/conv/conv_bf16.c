/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kelp::ConvBf16: Conv and ConvAct (X, W, bias[, residual]; Conv's attributes and activation) of
 * floats over one or two axes with constant weights, whose operands are rounded to bfloat16; sums
 * and everything else are floats. Between such nodes tensors may be of bfloat16: X, the residual,
 * and with the attribute "half" the result, which is rounded where the next node would round it;
 * those nodes are conv_pixels.c's. Of floats alone:
 *
 * A strip of the input is laid out as planes of pairs of channels, its borders filled with zeros,
 * one plane for each remainder of rows by the stride. There every kernel position is an offset, and
 * 32 output positions that follow one another, also around the end of a row, are two vectors: the
 * planes themselves are the panels of a product, and nothing is unrolled. Of columns there is a
 * plane for each remainder as well, wider than the result's rows, so that what comes out between
 * the rows is not copied to the result; or, where rows are short and there are many output
 * channels, one for each column of the kernel, as wide as the result. Few output positions are
 * gathered and multiplied the other way round instead.
 */
#include "cpu/ops/conv/conv_bf16.h"
#include "cpu/kernels/gemm/gemm.h"

#define TILE KELP_BF16_COLUMNS
#define VECTOR 16
/* Columns behind the last whole vector that are summed one by one, along the depth. */
#define MOST_REST 6
/* Output channels that are finished while their sums are in cache. */
#define BLOCK 48
/* Pairs of weights of an output channel at a time. */
#define SLICE 288
/* Bytes of a strip's planes, and of its result: each a part of the second cache. */
#define STRIP_BYTES (256 << 10)
/* Output positions up to which they are gathered: a tile's rows. */
#define FEW_POSITIONS 12

typedef struct conv_plan {
    kelp_bf16_conv c;
    kelp_bf16_pixel_plan pixels; /* of nodes with tensors of bfloat16; the rest is not theirs */
    const kelp_bf16_pair *weights;
    int64_t weights_step;
    bool few, by_pixels;

    int64_t pairs, row_phases, column_planes;
    bool expanded;         /* a plane for each column of the kernel */
    int64_t strip;         /* output rows */
    int64_t width, phase;  /* of a plane: columns, and pairs of one phase */
    int64_t plane;         /* from one pair of channels to the next */
    int64_t across;        /* parts that the output channels are taken in */
    int64_t column_offset; /* of one column, behind the planes */
    int64_t planes_pairs, product_floats, worker_pairs; /* of 4 bytes each */
    size_t taps_offset, offset;
    const kelp_op_args *args;
    const kelp_bf16 *table;
    const kelp_simd *simd;
} conv_plan;

static kelp_status *conv_shapes(kelp_op_args *args) {
    conv_plan *p = args->plan;
    int64_t shape[KELP_MAX_RANK];
    KELP_TRY(kelp_ops_check(args, 2));
    const kelp_tensor *x = args->inputs[0], *weights = args->inputs[1],
                      *bias = kelp_ops_in(args, 2), *residual = kelp_ops_in(args, 3);
    if (x->dtype != KELP_F32 && x->dtype != KELP_BF16)
        return kelp_ops_bad_type(args, x->dtype);
    p->c.half = kelp_node_attr_i64(args->node, "half", 0) != 0;
    p->c.x_half = x->dtype == KELP_BF16;
    p->c.residual_half = residual != NULL && residual->dtype == KELP_BF16;
    if (weights->rank != x->rank)
        return kelp_ops_bad_shapes(args, x, weights, "expected as many axes in both");
    KELP_TRY(kelp_window_init(&p->c.w, args, x, weights->shape + 2, x->rank - 2));
    p->c.groups = kelp_node_attr_i64(args->node, "group", 1);
    if (p->c.groups < 1 || x->shape[1] % p->c.groups != 0 || weights->shape[0] % p->c.groups != 0 ||
        weights->shape[1] != x->shape[1] / p->c.groups)
        return kelp_ops_bad_shapes(args, x, weights, "the channels do not fit the groups");
    if (bias != NULL &&
        (kelp_tensor_elements(bias) != weights->shape[0] || bias->dtype != KELP_F32))
        return kelp_ops_bad_shapes(args, weights, bias, "expected one bias an output channel");
    p->c.batch = x->shape[0];
    p->c.in_channels = x->shape[1] / p->c.groups;
    p->c.out_channels = weights->shape[0] / p->c.groups;
    int32_t rank = kelp_window_shape(&p->c.w, p->c.batch, weights->shape[0], shape);
    if (residual != NULL &&
        ((residual->dtype != KELP_F32 && !p->c.residual_half) || residual->rank != rank ||
         memcmp(residual->shape, shape, (size_t)rank * sizeof *shape) != 0))
        return kelp_ops_bad_shapes(args, x, residual, "the residual is not shaped like the result");
    if (!kelp_act_parse(kelp_node_attr_string(args->node, "activation", "", NULL), &p->c.act))
        return KELP_ERROR(KELP_INVALID_ARGUMENT, "ConvBf16 knows no activation '%s'",
                          kelp_node_attr_string(args->node, "activation", "", NULL));
    return kelp_ops_set(args, 0, p->c.half ? KELP_BF16 : KELP_F32, rank, shape);
}

/* ---- sizes ---- */
static int64_t divide_up(int64_t value, int64_t by) {
    return (value + by - 1) / by;
}

/* Rows of a phase that `strip` output rows read. */
static int64_t phase_rows(const kelp_window *w, int64_t strip) {
    return strip + (w->kernel[1] - 1) * w->dilation[1] / w->stride[1];
}

/* Output positions of a strip, those between its rows included. */
static int64_t positions(const conv_plan *p, int64_t rows) {
    return (rows - 1) * p->width + p->c.w.out[2];
}

/* Of so many columns, those that are left to be summed one by one. */
static int64_t rest_of(int64_t columns) {
    int64_t rest = columns % VECTOR;
    return columns > VECTOR && rest <= MOST_REST ? rest : 0;
}

/* Vectors' worth of work of so many columns. */
static double vectors_of(int64_t columns) {
    int64_t rest = rest_of(columns);
    return (double)divide_up(columns - rest, VECTOR) + 0.1 * (double)rest;
}

/* Sums go straight into the result. */
static bool is_direct(const conv_plan *p) {
    return p->width == p->c.w.out[2];
}

/* Cycles, roughly: of the product's vectors, of laying out the planes, of copying the result. */
static double strip_cost(const conv_plan *p, int64_t strip) {
    const kelp_window *w = &p->c.w;
    int64_t whole = w->out[1] / strip, rest = w->out[1] % strip;
    double vectors = (double)whole * vectors_of(positions(p, strip));
    int64_t rows = whole * phase_rows(w, strip);
    if (rest > 0) {
        vectors += vectors_of(positions(p, rest));
        rows += phase_rows(w, rest);
    }
    double product = vectors * (double)(p->c.out_channels * w->kernel_size * p->pairs);
    double planes = (double)(rows * p->width * p->row_phases * p->pairs) *
                    (1.5 + 0.5 * (double)(p->column_planes - 1));
    double copies = is_direct(p) ? 0 : (double)(p->c.out_channels * w->out_size);
    return product + planes + copies;
}

/* Rows for which planes and result stay in cache, and vectors are filled. */
static double choose_strip(conv_plan *p) {
    const kelp_window *w = &p->c.w;
    int64_t row_bytes = p->pairs * p->row_phases * p->column_planes * p->width * 4;
    int64_t most = STRIP_BYTES / KELP_MAX((int64_t)1, row_bytes) - phase_rows(w, 0);
    most =
        KELP_MIN(most, STRIP_BYTES / (4 * KELP_MIN(p->c.out_channels, (int64_t)BLOCK) * p->width));
    most = KELP_MAX(most, divide_up(2 * TILE, p->width));
    most = KELP_MAX((int64_t)1, KELP_MIN(most, w->out[1]));
    double best = 0;
    for (int64_t strip = most, tries = 0; strip > 0 && tries < 64; strip--, tries++) {
        double cost = strip_cost(p, strip);
        if (tries == 0 || cost < best * 0.99) {
            best = cost;
            p->strip = strip;
        }
    }
    return best;
}

static double choose_planes(conv_plan *p, bool expanded) {
    const kelp_window *w = &p->c.w;
    p->expanded = expanded;
    p->column_planes =
        expanded ? w->kernel[2] : KELP_MIN(w->stride[2], (w->kernel[2] - 1) * w->dilation[2] + 1);
    p->width = w->out[2];
    if (!expanded)
        p->width += (w->kernel[2] - 1) * w->dilation[2] / w->stride[2];
    return choose_strip(p);
}

/* Parts of the output channels, then lower strips, until there is work for all. */
static void choose_parts(conv_plan *p, int64_t threads) {
    const kelp_window *w = &p->c.w;
    p->across = 1;
    int64_t units = p->c.batch * p->c.groups * divide_up(w->out[1], p->strip);
    if (threads > 1 && units < 2 * threads)
        p->across = KELP_MIN(divide_up(2 * threads, units), divide_up(p->c.out_channels, BLOCK));
    units *= p->across;
    if (threads > 1 && units < 2 * threads && p->strip > 1)
        p->strip = divide_up(w->out[1], KELP_MIN(w->out[1], divide_up(w->out[1], p->strip) *
                                                                divide_up(2 * threads, units)));
}

static kelp_status *too_large(const kelp_op_args *args) {
    return kelp_ops_bad_shapes(args, args->inputs[0], args->inputs[1], "the kernel is too large");
}

static kelp_status *reserve_planes(conv_plan *p, kelp_op_args *args) {
    const kelp_window *w = &p->c.w;
    int64_t most = 0, all = 0, threads = kelp_op_env_threads(args->env);
    p->pairs = divide_up(p->c.in_channels, 2);
    p->row_phases = KELP_MIN(w->stride[1], (w->kernel[1] - 1) * w->dilation[1] + 1);
    if (w->kernel[1] > 1 << 20 || w->kernel[2] > 1 << 20 || w->dilation[1] > 1 << 20 ||
        w->dilation[2] > 1 << 20 ||
        !kelp_i64_add(w->out[2], (w->kernel[2] - 1) * w->dilation[2] / w->stride[2], &most) ||
        !kelp_i64_mul(most, phase_rows(w, w->out[1]), &all) ||
        !kelp_i64_mul(all, p->row_phases * KELP_MAX(w->stride[2], w->kernel[2]), &all) ||
        !kelp_i64_mul(all, p->pairs * 4, &all) ||
        !kelp_i64_mul(w->out_size, p->c.out_channels * w->kernel_size, &all) ||
        !kelp_i64_mul(all, p->pairs, &all))
        return too_large(args);
    if (choose_planes(p, true) > choose_planes(p, false))
        choose_planes(p, false);
    else
        choose_planes(p, true);
    choose_parts(p, threads);
    p->phase = phase_rows(w, p->strip) * p->width;
    p->plane = kelp_bf16_row_step(p->row_phases * p->column_planes * p->phase);
    int64_t product = divide_up(positions(p, p->strip), TILE) * TILE *
                      KELP_MIN(p->c.out_channels, (int64_t)BLOCK);
    if (!kelp_i64_mul(p->pairs, p->plane, &p->planes_pairs))
        return too_large(args);
    p->planes_pairs += 2 * TILE; /* whole vectors are read behind the last */
    p->column_offset = p->planes_pairs;
    p->planes_pairs += kelp_bf16_row_step(p->pairs * w->kernel_size);
    p->product_floats = is_direct(p) ? 0 : product;
    p->worker_pairs = p->planes_pairs + p->product_floats;
    if (!kelp_i64_mul(p->worker_pairs, threads, &all))
        return too_large(args);
    KELP_TRY(kelp_ops_scratch(args, w->kernel_size, sizeof(int64_t), &p->taps_offset));
    return kelp_ops_scratch(args, all, sizeof(kelp_bf16_pair), &p->offset);
}

static kelp_status *reserve_few(conv_plan *p, kelp_op_args *args) {
    int64_t depth = p->c.in_channels * p->c.w.kernel_size, floats = 0, pairs = 0;
    int64_t count = p->c.batch * p->c.w.out_size;
    if (!kelp_i64_mul(count, depth + p->c.out_channels, &floats) ||
        !kelp_i64_mul(kelp_bf16_gemm_scratch(count, depth), kelp_op_env_threads(args->env), &pairs))
        return too_large(args);
    KELP_TRY(kelp_ops_scratch(args, floats, sizeof(float), &p->taps_offset));
    return kelp_ops_scratch(args, pairs, sizeof(kelp_bf16_pair), &p->offset);
}

static kelp_status *conv_reshape(const void *state, kelp_op_args *args) {
    conv_plan *p = args->plan;
    KELP_TRY(conv_shapes(args));
    if (kelp_tensor_elements(args->outputs[0]) == 0)
        return NULL;
    p->by_pixels = p->c.half || p->c.x_half || p->c.residual_half;
    if (p->by_pixels)
        return kelp_bf16_pixels_reshape(&p->c, state, args, &p->pixels);
    p->few = p->c.groups == 1 && p->c.batch * p->c.w.out_size <= FEW_POSITIONS &&
             p->c.out_channels >= 16;
    KELP_TRY(p->few ? kelp_bf16_conv_panels(state, &p->weights)
                    : kelp_bf16_conv_rows(state, &p->weights, &p->weights_step));
    return p->few ? reserve_few(p, args) : reserve_planes(p, args);
}

/* ---- planes ---- */
/* Of `extent` places, those [*out_first, *out_last) where place * stride + shift lies in [0, in).
 */
static void inside(int64_t extent, int64_t stride, int64_t shift, int64_t in, int64_t *out_first,
                   int64_t *out_last) {
    *out_first = shift >= 0 ? 0 : KELP_MIN(extent, divide_up(-shift, stride));
    *out_last = in - shift <= 0 ? 0 : KELP_MIN(extent, (in - shift - 1) / stride + 1);
    *out_last = KELP_MAX(*out_first, *out_last);
}

/* One pair of channels. */
static void fill_pair(const conv_plan *p, const float *even, const float *odd, int64_t row,
                      int64_t strip, kelp_bf16_pair *to) {
    const kelp_window *w = &p->c.w;
    int64_t rows = phase_rows(w, strip), top, bottom, left, right;
    for (int64_t a = 0; a < p->row_phases; a++)
        for (int64_t b = 0; b < p->column_planes; b++, to += p->phase) {
            int64_t y = row * w->stride[1] + a - w->before[1];
            int64_t x = (p->expanded ? b * w->dilation[2] : b) - w->before[2];
            inside(rows, w->stride[1], y, w->in[1], &top, &bottom);
            inside(p->width, w->stride[2], x, w->in[2], &left, &right);
            if (top > 0 || bottom < rows || left > 0 || right < p->width)
                memset(to, 0, (size_t)(rows * p->width) * sizeof *to);
            int64_t at = (y + top * w->stride[1]) * w->in[2] + x + left * w->stride[2];
            int64_t high = bottom - top, wide = right - left;
            if (high == 0 || wide == 0)
                continue;
            if (wide == w->in[2] && wide == p->width && w->stride[1] == 1) { /* without gaps */
                wide *= high;
                high = 1;
            }
            p->table->pairs(even + at, odd != NULL ? odd + at : NULL, w->stride[1] * w->in[2],
                            w->stride[2], high, wide, to + top * p->width + left, p->width);
        }
}

static void fill_taps(const conv_plan *p, int64_t *taps) {
    const kelp_window *w = &p->c.w;
    for (int64_t a = 0; a < w->kernel[1]; a++)
        for (int64_t b = 0; b < w->kernel[2]; b++) {
            int64_t y = a * w->dilation[1], x = b * w->dilation[2];
            int64_t plane = y % w->stride[1] * p->column_planes;
            plane += p->expanded ? b : x % w->stride[2];
            x = p->expanded ? 0 : x / w->stride[2];
            *taps++ = plane * p->phase + y / w->stride[1] * p->width + x;
        }
}

/* ---- run ---- */
typedef struct part {
    int64_t image, group, row, rows, channel, channels; /* the channel is one of the group's */
} part;

static part part_of(const conv_plan *p, int64_t unit) {
    int64_t strips = divide_up(p->c.w.out[1], p->strip),
            each = divide_up(p->c.out_channels, p->across);
    part u = {.channel = unit % p->across * each, .row = unit / p->across % strips * p->strip};
    u.channels = KELP_MAX((int64_t)0, KELP_MIN(each, p->c.out_channels - u.channel));
    u.rows = KELP_MIN(p->strip, p->c.w.out[1] - u.row);
    u.group = unit / p->across / strips % p->c.groups;
    u.image = unit / p->across / strips / p->c.groups;
    return u;
}

static const int64_t *taps_of(const conv_plan *p) {
    return (const int64_t *)(void *)((char *)p->args->scratch + p->taps_offset);
}

/* Column `at` alone: what it sees, one behind the other as weights are, times each row of them. */
static void multiply_column(const conv_plan *p, const kelp_bf16_pair *rows, int64_t channels,
                            kelp_bf16_pair *planes, int64_t at, float *c, int64_t ldc) {
    const int64_t *taps = taps_of(p);
    kelp_bf16_pair *column = planes + p->column_offset, *to = column;
    for (int64_t s = 0; s < p->pairs; s++)
        for (int64_t t = 0; t < p->c.w.kernel_size; t++)
            *to++ = planes[s * p->plane + taps[t] + at];
    p->table->dots(rows, p->weights_step, channels, column, p->pairs * p->c.w.kernel_size, c + at,
                   ldc);
}

static void multiply(const conv_plan *p, const part *u, kelp_bf16_pair *planes, float *c,
                     int64_t ldc) {
    int64_t taps = p->c.w.kernel_size, slice = KELP_MAX((int64_t)1, SLICE / taps);
    int64_t columns = positions(p, u->rows), whole = columns - rest_of(columns);
    const kelp_bf16_pair *rows =
        p->weights + (u->group * p->c.out_channels + u->channel) * p->weights_step;
    for (int64_t s = 0; s < p->pairs; s += slice)
        for (int64_t at = 0; at < whole; at += TILE)
            p->table->product(&(kelp_bf16_block){.a = rows + s * taps,
                                                 .b = planes + s * p->plane + at,
                                                 .c = c + at,
                                                 .lda = p->weights_step,
                                                 .ldc = ldc,
                                                 .m = u->channels,
                                                 .n = KELP_MIN((int64_t)TILE, whole - at),
                                                 .panel = TILE,
                                                 .steps = KELP_MIN(slice, p->pairs - s),
                                                 .step = p->plane,
                                                 .taps = taps,
                                                 .tap = taps_of(p),
                                                 .accumulate = s > 0});
    for (int64_t at = whole; at < columns; at++)
        multiply_column(p, rows, u->channels, planes, at, c, ldc);
}

/* bias, residual and activation of `count` results at `to` of output channel `channel`. */
static void finish_row(const conv_plan *p, float *y, int64_t to, int64_t channel, int64_t count) {
    const kelp_tensor *bias = kelp_ops_in(p->args, 2), *residual = kelp_ops_in(p->args, 3);
    if (bias == NULL && residual == NULL && p->c.act == KELP_ACT_NONE)
        return;
    p->simd->finish(y, NULL, bias != NULL ? ((const float *)bias->data)[channel] : 0.0f,
                    residual != NULL ? (const float *)residual->data + to : NULL, count, p->c.act);
}

/* Some output channels of a strip. */
static void run_block(const conv_plan *p, const part *u, kelp_bf16_pair *planes, float *product) {
    const kelp_window *w = &p->c.w;
    int64_t channel = u->group * p->c.out_channels + u->channel, count = u->rows * w->out[2];
    int64_t to =
        (u->image * p->c.groups * p->c.out_channels + channel) * w->out_size + u->row * w->out[2];
    int64_t ld = divide_up(positions(p, u->rows), TILE) * TILE;
    float *y = (float *)p->args->outputs[0]->data + to;
    bool direct = is_direct(p);
    multiply(p, u, planes, direct ? y : product, direct ? w->out_size : ld);
    for (int64_t c = 0; c < u->channels; c++, to += w->out_size) {
        float *done = y + c * w->out_size;
        if (!direct)
            p->simd->copy_rows(done, w->out[2], product + c * ld, p->width, u->rows, w->out[2]);
        finish_row(p, done, to, channel + c, count);
    }
}

static void run_part(const conv_plan *p, const part *u, kelp_bf16_pair *planes) {
    const kelp_window *w = &p->c.w;
    const float *x = (const float *)p->args->inputs[0]->data +
                     (u->image * p->c.groups + u->group) * p->c.in_channels * w->in_size;
    for (int64_t s = 0; s < p->pairs; s++, x += 2 * w->in_size)
        fill_pair(p, x, 2 * s + 1 < p->c.in_channels ? x + w->in_size : NULL, u->row, u->rows,
                  planes + s * p->plane);
    part block = *u;
    for (int64_t c = 0; c < u->channels; c += BLOCK) {
        block.channel = u->channel + c;
        block.channels = KELP_MIN((int64_t)BLOCK, u->channels - c);
        run_block(p, &block, planes, (float *)(void *)(planes + p->planes_pairs));
    }
}

static void run_range(void *userp, int64_t begin, int64_t end, int worker) {
    const conv_plan *p = userp;
    kelp_bf16_pair *planes =
        (kelp_bf16_pair *)(void *)((char *)p->args->scratch + p->offset) + worker * p->worker_pairs;
    for (int64_t unit = begin; unit < end; unit++) {
        part u = part_of(p, unit);
        if (u.channels > 0)
            run_part(p, &u, planes);
    }
}

/* ---- few positions ---- */
/* What output position `at` of an image sees: channels, then taps. */
static void gather(const conv_plan *p, const float *x, int64_t at, float *to) {
    const kelp_window *w = &p->c.w;
    int64_t row = at / w->out[2] * w->stride[1] - w->before[1];
    int64_t column = at % w->out[2] * w->stride[2] - w->before[2];
    for (int64_t c = 0; c < p->c.in_channels; c++, x += w->in_size)
        for (int64_t a = 0; a < w->kernel[1]; a++)
            for (int64_t b = 0; b < w->kernel[2]; b++, to++) {
                int64_t r = row + a * w->dilation[1], s = column + b * w->dilation[2];
                if (r < 0 || r >= w->in[1] || s < 0 || s >= w->in[2])
                    *to = 0.0f;
                else
                    *to = x[r * w->in[2] + s];
            }
}

static void run_few(const conv_plan *p) {
    const kelp_op_args *args = p->args;
    int64_t depth = p->c.in_channels * p->c.w.kernel_size, size = p->c.w.out_size;
    int64_t count = p->c.batch * size, plane = p->c.out_channels * size;
    int64_t image = p->c.in_channels * p->c.w.in_size;
    const kelp_tensor *bias = kelp_ops_in(args, 2), *residual = kelp_ops_in(args, 3);
    float *rows = (float *)(void *)((char *)args->scratch + p->taps_offset);
    float *product = rows + count * depth;
    float *y = args->outputs[0]->data;
    for (int64_t i = 0; i < count; i++)
        gather(p, (const float *)args->inputs[0]->data + i / size * image, i % size,
               rows + i * depth);
    kelp_bf16_gemm_run(
        args->env, &(kelp_bf16_gemm){
                       .a = rows,
                       .panels = p->weights,
                       .c = product,
                       .m = count,
                       .n = p->c.out_channels,
                       .k = depth,
                       .lda = depth,
                       .ldc = p->c.out_channels,
                       .bias = bias != NULL ? bias->data : NULL,
                       .act = residual == NULL ? p->c.act : KELP_ACT_NONE,
                       .scratch = (kelp_bf16_pair *)(void *)((char *)args->scratch + p->offset)});
    for (int64_t i = 0; i < p->c.batch; i++)
        p->simd->turn(y + i * plane, size, product + i * plane, p->c.out_channels, size,
                      p->c.out_channels);
    if (residual != NULL)
        p->simd->finish(y, NULL, 0.0f, residual->data, count * p->c.out_channels, p->c.act);
}

static kelp_status *conv_invoke(const void *state, kelp_op_args *args) {
    conv_plan *p = args->plan;
    const kelp_window *w = &p->c.w;
    (void)state;
    if (kelp_tensor_elements(args->outputs[0]) == 0)
        return NULL;
    if (p->by_pixels) {
        kelp_bf16_pixels_run(&p->c, &p->pixels, args);
        return NULL;
    }
    p->args = args;
    p->table = kelp_bf16_get();
    p->simd = kelp_simd_get();
    if (p->few) {
        run_few(p);
        return NULL;
    }
    fill_taps(p, (int64_t *)(void *)((char *)args->scratch + p->taps_offset));
    int64_t units = p->c.batch * p->c.groups * divide_up(w->out[1], p->strip) * p->across;
    double work = (double)p->c.in_channels * (double)w->kernel_size * (double)w->out_size *
                  (double)p->c.out_channels * (double)(p->c.batch * p->c.groups) / (double)units;
    /* some four million multiplications are 20 µs */
    kelp_op_parallel(args->env, units, work < 2e6 ? (int64_t)(2e6 / (work + 1)) + 1 : 1, run_range,
                     p);
    return NULL;
}

const kelp_op_kernel kelp_op_ConvBf16 = {.struct_size = sizeof(kelp_op_kernel),
                                         .plan_bytes = sizeof(conv_plan),
                                         .unaligned_inputs = 2,
                                         .create = kelp_bf16_conv_create,
                                         .destroy = kelp_bf16_conv_destroy,
                                         .reshape = conv_reshape,
                                         .invoke = conv_invoke};
