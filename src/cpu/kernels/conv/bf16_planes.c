/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bfloat16 convolutions of floats. A strip of the input is copied to planes of pairs of channels,
 * with zeros as borders and one plane for each remainder of the rows by the stride. In them each
 * kernel position is an offset, and 32 consecutive output positions, also across the end of a row,
 * are two vectors: the planes are the panels of a GEMM, and windows are not copied.
 *
 * The columns of the planes are divided as follows: either one plane for each remainder by the
 * stride, which is wider than the rows of the result, so that the sums between the rows are dropped
 * when the result is copied, or, for short rows and many output channels, one plane for each column
 * of the kernel, which is as wide as the result.
 */
#include "base/assert.h"
#include "cpu/kernels/conv/conv_bf16.h"
#include "cpu/kernels/gemm/gemm_bf16.h"
#include "cpu/kernels/layout/layout_kernels.h"
#include "cpu/kernels/tuning.h"

#define TILE KELP_BF16_COLUMNS
#define VECTOR 16
/* Maximum columns after the last whole vector that are summed separately, along the depth. */
#define MAX_REST 6
#define BLOCK KELP_BF16_BLOCK_CHANNELS
#define MAX_EXTENT (1 << 20)

typedef kelp_conv_bf16_planes planes_blocking;

/* ---- sizes ---- */
/* Returns the rows of a phase that `strip` output rows read. */
static int64_t phase_rows(const kelp_conv_window *w, int64_t strip) {
    return strip + (w->kernel[1] - 1) * w->dilation[1] / w->stride[1];
}

/* Returns the output positions of a strip, including those between its rows. */
static int64_t positions(const kelp_conv_bf16 *conv, const planes_blocking *p, int64_t rows) {
    return (rows - 1) * p->width + conv->shape.window.out[2];
}

/* Returns the number of columns that are summed separately. */
static int64_t rest_of(int64_t columns) {
    int64_t rest = columns % VECTOR;
    return columns > VECTOR && rest <= MAX_REST ? rest : 0;
}

/* Returns the work of `columns` columns, in vectors. */
static double vectors_of(int64_t columns) {
    int64_t rest = rest_of(columns);
    return (double)kelp_divide_up(columns - rest, VECTOR) + 0.1 * (double)rest;
}

/* Returns true if sums are stored directly in the result. */
static bool is_direct(const kelp_conv_bf16 *conv, const planes_blocking *p) {
    return p->width == conv->shape.window.out[2];
}

/* Estimates the cycles of the GEMM, of filling the planes and of copying the result. */
static double strip_cost(const kelp_conv_bf16 *conv, const planes_blocking *p, int64_t strip) {
    const kelp_conv_window *w = &conv->shape.window;
    int64_t whole = w->out[1] / strip, rest = w->out[1] % strip;
    double vectors = (double)whole * vectors_of(positions(conv, p, strip));
    int64_t rows = whole * phase_rows(w, strip);
    if (rest > 0) {
        vectors += vectors_of(positions(conv, p, rest));
        rows += phase_rows(w, rest);
    }
    double result = vectors * (double)(conv->shape.out_channels * w->kernel_size * p->pairs);
    double planes = (double)(rows * p->width * p->row_phases * p->pairs) *
                    (1.5 + 0.5 * (double)(p->column_planes - 1));
    double copies = is_direct(conv, p) ? 0 : (double)(conv->shape.out_channels * w->out_size);
    return result + planes + copies;
}

/* Chooses the rows of a strip so that planes and result stay in cache and vectors are full.
 * Returns the cost. */
static double choose_strip(const kelp_conv_bf16 *conv, planes_blocking *p) {
    const kelp_conv_window *w = &conv->shape.window;
    int64_t row_bytes = p->pairs * p->row_phases * p->column_planes * p->width * 4;
    int64_t limit = KELP_BF16_PLANES_BYTES / KELP_MAX((int64_t)1, row_bytes) - phase_rows(w, 0);
    limit =
        KELP_MIN(limit, KELP_BF16_PLANES_BYTES /
                            (4 * KELP_MIN(conv->shape.out_channels, (int64_t)BLOCK) * p->width));
    limit = KELP_MAX(limit, kelp_divide_up(2 * TILE, p->width));
    limit = KELP_MAX((int64_t)1, KELP_MIN(limit, w->out[1]));
    double best = 0;
    for (int64_t strip = limit, tries = 0; strip > 0 && tries < 64; strip--, tries++) {
        double cost = strip_cost(conv, p, strip);
        if (tries == 0 || cost < best * 0.99) {
            best = cost;
            p->strip = strip;
        }
    }
    return best;
}

static double choose_planes(const kelp_conv_bf16 *conv, planes_blocking *p, bool expanded) {
    const kelp_conv_window *w = &conv->shape.window;
    p->expanded = expanded;
    p->column_planes =
        expanded ? w->kernel[2] : KELP_MIN(w->stride[2], (w->kernel[2] - 1) * w->dilation[2] + 1);
    p->width = w->out[2];
    if (!expanded)
        p->width += (w->kernel[2] - 1) * w->dilation[2] / w->stride[2];
    return choose_strip(conv, p);
}

/* Divides the output channels, then the strips, until all threads have work. */
static void choose_parts(const kelp_conv_bf16 *conv, planes_blocking *p, int64_t threads) {
    const kelp_conv_window *w = &conv->shape.window;
    p->across = 1;
    int64_t units = conv->shape.batch * conv->shape.groups * kelp_divide_up(w->out[1], p->strip);
    if (threads > 1 && units < 2 * threads)
        p->across = KELP_MIN(kelp_divide_up(2 * threads, units),
                             kelp_divide_up(conv->shape.out_channels, BLOCK));
    units *= p->across;
    if (threads > 1 && units < 2 * threads && p->strip > 1)
        p->strip =
            kelp_divide_up(w->out[1], KELP_MIN(w->out[1], kelp_divide_up(w->out[1], p->strip) *
                                                              kelp_divide_up(2 * threads, units)));
}

static bool reserve(kelp_conv_bf16 *conv) {
    planes_blocking *p = &conv->blocking.planes;
    const kelp_conv_window *w = &conv->shape.window;
    int64_t limit = 0, all = 0, threads = conv->threads;
    p->pairs = kelp_divide_up(conv->shape.in_channels, 2);
    p->row_phases = KELP_MIN(w->stride[1], (w->kernel[1] - 1) * w->dilation[1] + 1);
    if (w->kernel[1] > MAX_EXTENT || w->kernel[2] > MAX_EXTENT || w->dilation[1] > MAX_EXTENT ||
        w->dilation[2] > MAX_EXTENT ||
        !kelp_i64_add(w->out[2], (w->kernel[2] - 1) * w->dilation[2] / w->stride[2], &limit) ||
        !kelp_i64_mul(limit, phase_rows(w, w->out[1]), &all) ||
        !kelp_i64_mul(all, p->row_phases * KELP_MAX(w->stride[2], w->kernel[2]), &all) ||
        !kelp_i64_mul(all, p->pairs * 4, &all) ||
        !kelp_i64_mul(w->out_size, conv->shape.out_channels * w->kernel_size, &all) ||
        !kelp_i64_mul(all, p->pairs, &all))
        return false;
    if (choose_planes(conv, p, true) > choose_planes(conv, p, false))
        choose_planes(conv, p, false);
    else
        choose_planes(conv, p, true);
    choose_parts(conv, p, threads);
    p->phase = phase_rows(w, p->strip) * p->width;
    p->plane = kelp_bf16_row_step(p->row_phases * p->column_planes * p->phase);
    int64_t result = kelp_round_up(positions(conv, p, p->strip), TILE) *
                     KELP_MIN(conv->shape.out_channels, (int64_t)BLOCK);
    if (!kelp_i64_mul(p->pairs, p->plane, &p->planes_pairs))
        return false;
    p->planes_pairs += 2 * TILE; /* vectors read beyond the last */
    p->column_offset = p->planes_pairs;
    p->planes_pairs += kelp_bf16_row_step(p->pairs * w->kernel_size);
    if (is_direct(conv, p))
        result = 0;
    p->weights_step = kelp_conv_bf16_row_step(conv->shape.in_channels, w->kernel_size);
    conv->shared_bytes = kelp_round_up(w->kernel_size * (int64_t)sizeof(int64_t), 64);
    return kelp_i64_mul(p->planes_pairs + result, (int64_t)sizeof(kelp_bf16_pair),
                        &conv->worker_bytes);
}

/* ---- planes ---- */
/* Computes the positions [*out_first, *out_last) of [0, count) with position * stride + shift
 * in [0, in). */
static void inside(int64_t count, int64_t stride, int64_t shift, int64_t in, int64_t *out_first,
                   int64_t *out_last) {
    *out_first = shift >= 0 ? 0 : KELP_MIN(count, kelp_divide_up(-shift, stride));
    *out_last = in - shift <= 0 ? 0 : KELP_MIN(count, (in - shift - 1) / stride + 1);
    *out_last = KELP_MAX(*out_first, *out_last);
}

/* Fills the planes of one pair of channels. */
static void fill_pair(const kelp_conv_bf16 *conv, const float *even, const float *odd, int64_t row,
                      int64_t strip, kelp_bf16_pair *to) {
    const planes_blocking *p = &conv->blocking.planes;
    const kelp_conv_window *w = &conv->shape.window;
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
            conv->kernels->pairs(even + at, odd != NULL ? odd + at : NULL, w->stride[1] * w->in[2],
                                 w->stride[2], high, wide, to + top * p->width + left, p->width);
        }
}

static void fill_taps(const kelp_conv_bf16 *conv, int64_t *taps) {
    const planes_blocking *p = &conv->blocking.planes;
    const kelp_conv_window *w = &conv->shape.window;
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
    int64_t image, group, row, rows, channel, channels; /* the channel within its group */
} part;

static part part_of(const kelp_conv_bf16 *conv, int64_t unit) {
    const planes_blocking *p = &conv->blocking.planes;
    int64_t strips = kelp_divide_up(conv->shape.window.out[1], p->strip),
            each = kelp_divide_up(conv->shape.out_channels, p->across);
    part u = {.channel = unit % p->across * each, .row = unit / p->across % strips * p->strip};
    u.channels = KELP_MAX((int64_t)0, KELP_MIN(each, conv->shape.out_channels - u.channel));
    u.rows = KELP_MIN(p->strip, conv->shape.window.out[1] - u.row);
    u.group = unit / p->across / strips % conv->shape.groups;
    u.image = unit / p->across / strips / conv->shape.groups;
    return u;
}

static const int64_t *taps_of(const kelp_conv_bf16 *conv) {
    return conv->scratch;
}

/* Computes column `at` alone: gathers its window in the order of the weights, and multiplies it
 * by each row of them. */
static void multiply_column(const kelp_conv_bf16 *conv, const kelp_bf16_pair *rows,
                            int64_t channels, kelp_bf16_pair *planes, int64_t at, float *c,
                            int64_t ldc) {
    const planes_blocking *p = &conv->blocking.planes;
    const int64_t *taps = taps_of(conv);
    kelp_bf16_pair *column = planes + p->column_offset, *to = column;
    for (int64_t s = 0; s < p->pairs; s++)
        for (int64_t t = 0; t < conv->shape.window.kernel_size; t++)
            *to++ = planes[s * p->plane + taps[t] + at];
    conv->kernels->dots(rows, p->weights_step, channels, column,
                        p->pairs * conv->shape.window.kernel_size, c + at, ldc);
}

static void multiply(const kelp_conv_bf16 *conv, const part *u, kelp_bf16_pair *planes, float *c,
                     int64_t ldc) {
    const planes_blocking *p = &conv->blocking.planes;
    int64_t taps = conv->shape.window.kernel_size,
            slice = KELP_MAX((int64_t)1, KELP_BF16_SLICE_PAIRS / taps);
    int64_t columns = positions(conv, p, u->rows), whole = columns - rest_of(columns);
    const kelp_bf16_pair *rows =
        conv->weights + (u->group * conv->shape.out_channels + u->channel) * p->weights_step;
    for (int64_t s = 0; s < p->pairs; s += slice)
        for (int64_t at = 0; at < whole; at += TILE)
            conv->kernels->gemm_block(&(kelp_bf16_block){.a = rows + s * taps,
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
                                                         .tap = taps_of(conv),
                                                         .accumulate = s > 0});
    for (int64_t at = whole; at < columns; at++)
        multiply_column(conv, rows, u->channels, planes, at, c, ldc);
}

/* Applies bias, residual and activation to `count` results at `to` of one output channel. */
static void finish_row(const kelp_conv_bf16 *conv, float *y, int64_t to, int64_t channel,
                       int64_t count) {
    const kelp_elementwise_kernels *elementwise = kelp_elementwise_kernels_get();
    const float *bias = conv->bias, *residual = conv->residual;
    if (bias == NULL && residual == NULL && conv->act == KELP_ACT_NONE)
        return;
    elementwise->finish(y, NULL, bias != NULL ? bias[channel] : 0.0f,
                        residual != NULL ? residual + to : NULL, count, conv->act);
}

/* Computes some output channels of a strip. */
static void run_block(const kelp_conv_bf16 *conv, const part *u, kelp_bf16_pair *planes,
                      float *result) {
    const kelp_layout_kernels *layout = kelp_layout_kernels_get();
    const planes_blocking *p = &conv->blocking.planes;
    const kelp_conv_window *w = &conv->shape.window;
    int64_t channel = u->group * conv->shape.out_channels + u->channel, count = u->rows * w->out[2];
    int64_t to =
        (u->image * conv->shape.groups * conv->shape.out_channels + channel) * w->out_size +
        u->row * w->out[2];
    int64_t ld = kelp_round_up(positions(conv, p, u->rows), TILE);
    float *y = (float *)conv->y + to;
    bool direct = is_direct(conv, p);
    multiply(conv, u, planes, direct ? y : result, direct ? w->out_size : ld);
    for (int64_t c = 0; c < u->channels; c++, to += w->out_size) {
        float *done = y + c * w->out_size;
        if (!direct)
            layout->copy_rows(done, w->out[2], result + c * ld, p->width, u->rows, w->out[2]);
        finish_row(conv, done, to, channel + c, count);
    }
}

static void run_part(const kelp_conv_bf16 *conv, const part *u, kelp_bf16_pair *planes) {
    const planes_blocking *p = &conv->blocking.planes;
    const kelp_conv_window *w = &conv->shape.window;
    const float *x = (const float *)conv->x + (u->image * conv->shape.groups + u->group) *
                                                  conv->shape.in_channels * w->in_size;
    for (int64_t s = 0; s < p->pairs; s++, x += 2 * w->in_size)
        fill_pair(conv, x, 2 * s + 1 < conv->shape.in_channels ? x + w->in_size : NULL, u->row,
                  u->rows, planes + s * p->plane);
    part block = *u;
    for (int64_t c = 0; c < u->channels; c += BLOCK) {
        block.channel = u->channel + c;
        block.channels = KELP_MIN((int64_t)BLOCK, u->channels - c);
        run_block(conv, &block, planes, (float *)(void *)(planes + p->planes_pairs));
    }
}

static void run_range(void *userp, int64_t begin, int64_t end, int worker) {
    const kelp_conv_bf16 *conv = userp;
    kelp_bf16_pair *planes =
        (void *)((char *)conv->scratch + conv->shared_bytes + worker * conv->worker_bytes);
    for (int64_t unit = begin; unit < end; unit++) {
        part u = part_of(conv, unit);
        if (u.channels > 0)
            run_part(conv, &u, planes);
    }
}

static bool is_applicable(const kelp_conv_bf16 *conv) {
    return !conv->x_is_bf16 && !conv->y_is_bf16 && !conv->residual_is_bf16;
}

static void run(const kelp_op_env *env, kelp_conv_bf16 *conv) {
    const kelp_conv_shape *s = &conv->shape;
    const planes_blocking *p = &conv->blocking.planes;
    const kelp_conv_window *w = &s->window;
    KELP_ASSERT(p->strip > 0 && p->across > 0 && conv->weights != NULL);
    KELP_ASSERT(conv->x != NULL && conv->y != NULL && conv->scratch != NULL);
    fill_taps(conv, conv->scratch);
    int64_t units = s->batch * s->groups * kelp_divide_up(w->out[1], p->strip) * p->across;
    double work = (double)s->in_channels * (double)w->kernel_size * (double)w->out_size *
                  (double)s->out_channels * (double)(s->batch * s->groups) / (double)units;
    kelp_op_parallel(env, units, kelp_cpu_grain_f64(KELP_GRAIN_NARROW_TILES, work), run_range,
                     conv);
}

const kelp_conv_bf16_algorithm kelp_conv_bf16_planes_gemm = {.name = "bf16_planes_gemm",
                                                             .layout = KELP_CONV_BF16_ROWS,
                                                             .is_applicable = is_applicable,
                                                             .reserve = reserve,
                                                             .run = run};
