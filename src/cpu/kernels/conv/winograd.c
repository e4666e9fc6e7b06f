/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Winograd's convolution. A block of tiles is copied to NHWC, so that vectors are full even for
 * small images, and transformed to 36 or 16 matrices [tiles, input channels], or 6 for a kernel
 * along one axis. Each is multiplied by its part of the weights, and the results are transformed
 * back. Source: Lavin and Gray, "Fast Algorithms for Convolutional Neural Networks", 2015;
 * winograd.inc has the points.
 */
#include "base/assert.h"
#include "cpu/kernels/conv/conv.h"
#include "cpu/kernels/gemm/gemm.h"
#include "cpu/kernels/layout/layout_kernels.h"
#include "cpu/kernels/tuning.h"

#define POINTS 6       /* along an axis */
#define SMALL_POINTS 4 /* of tiles of 2 x 2 */
#define PACK_CHANNELS 8
#define MIN_CHANNELS 8
#define MAX_CHANNELS 4096

static bool are_far(const kelp_conv_winograd *t, int64_t in) {
    return in * t->outputs * t->parts > KELP_WINOGRAD_NEAR_FLOATS;
}

/* Returns the floats of weights that do not stay in a second-level cache. */
static int64_t moved(int64_t weights) {
    return KELP_MAX((int64_t)0, weights - KELP_WINOGRAD_HELD_FLOATS);
}

/* Estimates the time of reading weights. All estimates are in cycles of a core that multiplies
 * one vector per cycle, and reads two floats from memory, or four that it has read recently.
 * Half of the reading of weights that fit a cache overlaps with the multiplications. */
static int64_t reading(int64_t weights, int64_t times) {
    return moved(weights) * (weights > KELP_WINOGRAD_NEAR_FLOATS ? times + 1 : 1) / 4;
}

static int64_t gemm_cycles(const kelp_conv_window *w, int64_t lanes, int64_t in, int64_t out) {
    int64_t weights = w->kernel_size * in * kelp_round_up(out, 2);
    return w->out_size * weights / lanes + reading(weights, 1);
}

static int64_t cycles(const kelp_conv_window *w, const kelp_conv_winograd *t, int64_t lanes,
                      int64_t in, int64_t out) {
    int64_t ins = kelp_divide_up(in, lanes), outs = kelp_divide_up(out, lanes);
    int64_t tiles = kelp_divide_up(w->out[1], t->tall) * kelp_divide_up(w->out[2], t->wide);
    int64_t results = tiles * t->parts * in * outs;
    int64_t once = t->parts == POINTS          ? ins * 17 + outs * 13
                   : t->points == SMALL_POINTS ? ins * 60 + outs * 40
                                               : ins * 200 + outs * 150;
    int64_t moves = in * t->parts / 2 + out * t->tall * t->wide / 2;
    return results + tiles * (once + moves) + reading(in * t->outputs * t->parts, t->blocks);
}

/* Sets the outputs of a tile along each axis, which read `points` pixels. Returns false for
 * other kernels. */
static bool tile_sizes(const kelp_conv_window *w, int64_t points, kelp_conv_winograd *t) {
    int64_t down = w->kernel[1], across = w->kernel[2];
    bool square = down == 3 && across == 3;
    bool line = (down == 1 && (across == 3 || across == 5) && w->before[1] == 0) ||
                (across == 1 && (down == 3 || down == 5) && w->before[2] == 0);
    t->points = points;
    t->tall = down > 1 ? points + 1 - down : 1;
    t->wide = across > 1 ? points + 1 - across : 1;
    t->parts = square ? points * points : points;
    return (square && w->out[1] >= 2 && w->out[2] >= 2) || (line && points == POINTS);
}

static bool has_unit_steps(const kelp_conv_window *w) {
    return w->kernel[0] == 1 && w->in[0] == 1 && w->out[0] == 1 && w->before[0] == 0 &&
           w->stride[1] == 1 && w->stride[2] == 1 && w->dilation[1] == 1 && w->dilation[2] == 1 &&
           w->out_size > 0 && w->out_size <= 1 << 28;
}

/* Chooses blocks that fill the cache, an equal number for each thread. Weights that do not stay
 * in a cache are read for more tiles at once, and threads divide them by output channels. */
static void divide(const kelp_conv_window *w, int64_t lanes, int64_t batch, int64_t in, int threads,
                   kelp_conv_winograd *t) {
    int64_t high = kelp_divide_up(w->out[1], t->tall), wide = kelp_divide_up(w->out[2], t->wide);
    bool far = are_far(t, in);
    int64_t limit = KELP_MAX(far ? (int64_t)24 : (int64_t)12,
                             KELP_WINOGRAD_BLOCK_FLOATS / t->parts / (t->inputs + t->outputs));
    t->columns = kelp_divide_up(wide, limit);
    t->across = kelp_divide_up(wide, t->columns);
    int64_t bands = t->columns > 1 ? high : kelp_divide_up(high, KELP_MAX(1, limit / t->across));
    int64_t vectors = t->outputs / lanes, slices = 1;
    if (threads > 1 && batch * bands * t->columns < 4 * threads && batch % threads != 0) {
        if (far) {
            slices = KELP_MIN((int64_t)threads, vectors);
        } else {
            if (high == 1)
                t->columns = KELP_MIN(wide, kelp_round_up(t->columns, threads));
            bands = KELP_MIN(high, kelp_round_up(bands, threads));
            t->across = kelp_divide_up(wide, t->columns);
        }
    }
    t->down = kelp_divide_up(high, bands);
    t->blocks = kelp_divide_up(high, t->down) * t->columns;
    t->slice = kelp_divide_up(vectors, slices) * lanes;
    t->slices = kelp_divide_up(t->outputs, t->slice);
}

static int64_t input_rows(const kelp_conv_winograd *t, int64_t down) {
    return t->tall * down + (t->tall > 1 ? t->points - t->tall : 0);
}

static int64_t input_columns(const kelp_conv_winograd *t, int64_t across) {
    return t->wide * across + (t->wide > 1 ? t->points - t->wide : 0);
}

/* Estimates the cost with `points` along an axis, in cycles; INT64_MAX where a GEMM of the windows
 * is as good. Sets the blocking otherwise. */
static int64_t estimate(const kelp_conv *conv, int64_t points, kelp_conv_winograd *out) {
    const kelp_conv_window *w = &conv->shape.window;
    int64_t lanes = conv->gemm->tile_columns / 2;
    int64_t ins = conv->shape.in_channels, outs = conv->shape.out_channels;
    *out = (kelp_conv_winograd){.inputs = kelp_round_up(ins, lanes),
                                .outputs = kelp_round_up(outs, lanes)};
    if (!tile_sizes(w, points, out) || ins * out->outputs * out->parts > KELP_WINOGRAD_MAX_FLOATS)
        return INT64_MAX;
    divide(w, lanes, conv->shape.batch, ins, conv->threads, out);
    int64_t takes = cycles(w, out, lanes, ins, outs);
    if (takes * 8 >= gemm_cycles(w, lanes, ins, outs) * 7)
        return INT64_MAX;
    /* more memory must save at least the time of reading it twice */
    return takes + moved(ins * out->outputs * out->parts);
}

static bool is_square(const kelp_conv *conv) {
    return conv->shape.window.kernel[1] == 3 && conv->shape.window.kernel[2] == 3;
}

static bool is_applicable(const kelp_conv *conv) {
    const kelp_conv_shape *s = &conv->shape;
    return s->groups == 1 && kelp_conv_fits_int32(conv) && has_unit_steps(&s->window) &&
           s->in_channels >= MIN_CHANNELS && s->out_channels >= MIN_CHANNELS &&
           s->in_channels <= MAX_CHANNELS && s->out_channels <= MAX_CHANNELS;
}

static bool is_applicable_square(const kelp_conv *conv) {
    return is_applicable(conv) && is_square(conv);
}

static bool is_applicable_1d(const kelp_conv *conv) {
    return is_applicable(conv) && !is_square(conv);
}

/* Compares the two sizes of tiles with each other. */
static bool is_profitable_4x4(const kelp_conv *conv) {
    kelp_conv_winograd blocking;
    int64_t cost = estimate(conv, POINTS, &blocking);
    return cost != INT64_MAX && cost <= estimate(conv, SMALL_POINTS, &blocking);
}

static bool is_profitable_2x2(const kelp_conv *conv) {
    kelp_conv_winograd blocking;
    int64_t cost = estimate(conv, SMALL_POINTS, &blocking);
    return cost < estimate(conv, POINTS, &blocking);
}

static bool is_profitable_1d(const kelp_conv *conv) {
    kelp_conv_winograd blocking;
    return estimate(conv, POINTS, &blocking) != INT64_MAX;
}

static bool reserve_for(kelp_conv *conv, int64_t points) {
    kelp_conv_winograd *t = &conv->blocking.winograd;
    (void)estimate(conv, points, t);
    int64_t tiles = t->down * t->across;
    t->image_floats = input_rows(t, t->down) * input_columns(t, t->across) * t->inputs;
    /* an odd number of cache lines, so that the parts of a tile do not map to the same sets */
    t->in_step = (kelp_divide_up(tiles * t->inputs, 16) | 1) * 16;
    t->out_step = (kelp_divide_up(tiles * t->slice, 16) | 1) * 16;
    t->parts_floats = t->parts * KELP_MAX(t->in_step, t->slice); /* then the outputs */
    t->parts_floats = KELP_MAX(t->parts_floats, t->tall * t->wide * tiles * t->slice);
    conv->worker_floats = t->image_floats + t->parts_floats + t->parts * t->out_step;
    conv->worker_floats = kelp_round_up(conv->worker_floats, 16);
    return true;
}

static bool reserve(kelp_conv *conv) {
    return reserve_for(conv, POINTS);
}

static bool reserve_small(kelp_conv *conv) {
    return reserve_for(conv, SMALL_POINTS);
}

/* ---- weights ---- */
static int64_t parts_of(int64_t taps, int64_t points) {
    return taps == 9 ? points * points : points;
}

bool kelp_conv_winograd_size(const kelp_gemm_kernels *kernels, int64_t taps, int64_t points,
                             int64_t in_channels, int64_t out_channels, size_t *out_floats) {
    size_t floats;
    return kelp_gemm_packed_size(kernels, in_channels, out_channels, &floats) &&
           kelp_size_mul(floats, (size_t)parts_of(taps, points), out_floats);
}

void kelp_conv_winograd_pack(const kelp_conv_kernels *kernels, int64_t taps, int64_t points,
                             const void *weights, int64_t in_channels, int64_t out_channels,
                             float *out) {
    const kelp_float_u *from = weights;
    float untransformed[PACK_CHANNELS * 9 * KELP_GEMM_MAX_TILE_COLUMNS];
    int64_t width = kernels->tile_columns, panels = kelp_divide_up(out_channels, width);
    int64_t step = panels * in_channels * width, stride = in_channels * taps;
    for (int64_t m = 0; m < out_channels; m += width)
        for (int64_t c = 0, count; c < in_channels; c += count, out += count * width) {
            count = KELP_MIN((int64_t)PACK_CHANNELS, in_channels - c);
            kelp_conv_transpose_weights(width, from + m * stride + c * taps, stride,
                                        KELP_MIN(width, out_channels - m), count * taps,
                                        untransformed);
            kernels->winograd_weights(untransformed, taps, parts_of(taps, points), count, out,
                                      step);
        }
}

/* ---- run ---- */
/* Tiles at a row and column of the output; blocks at the end of the image may be smaller. */
typedef struct block {
    int64_t row, column, down, across;
} block;

static block block_at(const kelp_conv *conv, int64_t index) {
    const kelp_conv_winograd *t = &conv->blocking.winograd;
    block b = {.row = index / t->columns * t->tall * t->down,
               .column = index % t->columns * t->wide * t->across};
    b.down = KELP_MIN(t->down, kelp_divide_up(conv->shape.window.out[1] - b.row, t->tall));
    b.across = KELP_MIN(t->across, kelp_divide_up(conv->shape.window.out[2] - b.column, t->wide));
    return b;
}

/* Copies the input of a block to NHWC. */
static void gather(const kelp_conv *conv, const float *x, const block *b, float *image) {
    const kelp_layout_kernels *layout = kelp_layout_kernels_get();
    const kelp_conv_window *w = &conv->shape.window;
    const kelp_conv_winograd *t = &conv->blocking.winograd;
    int64_t high = input_rows(t, b->down), wide = input_columns(t, b->across);
    int64_t top = b->row - w->before[1], left = b->column - w->before[2];
    int64_t begin = KELP_MAX((int64_t)0, -left), end = KELP_MIN(wide, w->in[2] - left);
    for (int64_t r = 0; r < high; r++) {
        float *to = image + r * wide * t->inputs;
        if (top + r < 0 || top + r >= w->in[1] || begin >= end) {
            memset(to, 0, (size_t)(wide * t->inputs) * sizeof *to);
            continue;
        }
        memset(to, 0, (size_t)(begin * t->inputs) * sizeof *to);
        layout->transpose(to + begin * t->inputs, t->inputs,
                          x + (top + r) * w->in[2] + left + begin, w->in_size,
                          conv->shape.in_channels, end - begin);
        memset(to + end * t->inputs, 0, (size_t)((wide - end) * t->inputs) * sizeof *to);
    }
}

/* Multiplies `tiles` of each part by the weights of one slice of output channels from `first`. */
static void multiply(const kelp_conv *conv, const float *from, int64_t tiles, int64_t first,
                     float *to) {
    const kelp_gemm_kernels *gemm = conv->gemm;
    const kelp_conv_winograd *t = &conv->blocking.winograd;
    int64_t width = gemm->tile_columns, outs = KELP_MIN(t->slice, t->outputs - first);
    int64_t panels = kelp_divide_up(t->outputs, width), size = conv->shape.in_channels * width;
    for (int64_t part = 0; part < t->parts; part++, from += t->in_step, to += t->out_step)
        for (int64_t j = 0, n; j < outs; j += n) { /* a slice may begin within a panel */
            int64_t panel = part * panels + (first + j) / width, skipped = (first + j) % width;
            n = KELP_MIN(width - skipped, outs - j);
            gemm->block(&(kelp_gemm_block){.a = from,
                                           .b = conv->packed_weights + panel * size + skipped,
                                           .c = to + j,
                                           .lda = t->inputs,
                                           .ldb = width,
                                           .ldc = outs,
                                           .m = tiles,
                                           .n = n,
                                           .k = conv->shape.in_channels});
        }
}

/* Transposes pixels of `step` floats to NCHW: `channels` channels from `first` of image `at`. */
static void scatter(const kelp_conv *conv, const float *image, int64_t step, const block *b,
                    int64_t first, int64_t channels, int64_t at) {
    const kelp_elementwise_kernels *elementwise = kelp_elementwise_kernels_get();
    const kelp_layout_kernels *layout = kelp_layout_kernels_get();
    const kelp_conv_window *w = &conv->shape.window;
    const kelp_conv_winograd *t = &conv->blocking.winograd;
    int64_t rows = KELP_MIN(t->tall * b->down, w->out[1] - b->row), wide = t->wide * b->across;
    int64_t columns = KELP_MIN(wide, w->out[2] - b->column);
    int64_t begin =
        (at * conv->shape.out_channels + first) * w->out_size + b->row * w->out[2] + b->column;
    float *y = conv->y + begin;
    const float *residual = conv->residual != NULL ? conv->residual + begin : NULL;
    for (int64_t r = 0; r < rows; r++)
        layout->transpose(y + r * w->out[2], w->out_size, image + r * wide * step, step, columns,
                          channels);
    if (conv->bias == NULL && residual == NULL && conv->act == KELP_ACT_NONE)
        return;
    bool whole = columns == w->out[2];
    for (int64_t c = 0; c < channels; c++)
        for (int64_t r = 0; r < (whole ? 1 : rows); r++) {
            int64_t to = c * w->out_size + r * w->out[2];
            elementwise->finish(y + to, NULL, conv->bias != NULL ? conv->bias[first + c] : 0.0f,
                                residual != NULL ? residual + to : NULL,
                                whole ? rows * columns : columns, conv->act);
        }
}

/* Runs units, each one block of tiles of an image and one slice of the output channels. Each
 * transforms its own input, which is little work next to its multiplications. */
static void blocks(void *userp, int64_t begin, int64_t end, int worker) {
    const kelp_conv *conv = userp;
    const kelp_conv_winograd *t = &conv->blocking.winograd;
    float *image = kelp_conv_worker_scratch(conv, worker);
    float *parts = image + t->image_floats, *results = parts + t->parts_floats;
    for (int64_t unit = begin; unit < end; unit++) {
        int64_t at = unit / t->blocks % conv->shape.batch;
        int64_t first = unit / t->blocks / conv->shape.batch * t->slice;
        int64_t outs = KELP_MIN(t->slice, t->outputs - first);
        block b = block_at(conv, unit % t->blocks);
        kelp_conv_winograd_tiles moved = {.image = image,
                                          .parts = parts,
                                          .tall = t->tall,
                                          .wide = t->wide,
                                          .down = b.down,
                                          .across = b.across,
                                          .channels = t->inputs,
                                          .step = t->in_step};
        gather(conv, conv->x + at * conv->shape.in_channels * conv->shape.window.in_size, &b,
               image);
        conv->kernels->winograd_in(&moved);
        multiply(conv, parts, b.down * b.across, first, results);
        moved.image = parts;
        moved.parts = results;
        moved.channels = outs;
        moved.step = t->out_step;
        conv->kernels->winograd_out(&moved);
        scatter(conv, parts, outs, &b, first, KELP_MIN(outs, conv->shape.out_channels - first), at);
    }
}

static void run(const kelp_op_env *env, kelp_conv *conv) {
    const kelp_conv_winograd *t = &conv->blocking.winograd;
    KELP_ASSERT(t->blocks > 0 && t->slices > 0 && conv->worker_floats > 0);
    KELP_ASSERT(conv->x != NULL && conv->packed_weights != NULL && conv->scratch != NULL);
    int64_t work = t->down * t->across * t->parts * t->inputs * t->slice;
    kelp_op_parallel(env, conv->shape.batch * t->blocks * t->slices,
                     kelp_cpu_grain(KELP_GRAIN_WINOGRAD, work), blocks, conv);
}

const kelp_conv_algorithm kelp_conv_winograd_4x4 = {.name = "winograd_4x4",
                                                    .layout = KELP_CONV_WINOGRAD_6,
                                                    .is_applicable = is_applicable_square,
                                                    .is_profitable = is_profitable_4x4,
                                                    .reserve = reserve,
                                                    .run = run};
const kelp_conv_algorithm kelp_conv_winograd_2x2 = {.name = "winograd_2x2",
                                                    .layout = KELP_CONV_WINOGRAD_4,
                                                    .is_applicable = is_applicable_square,
                                                    .is_profitable = is_profitable_2x2,
                                                    .reserve = reserve_small,
                                                    .run = run};
const kelp_conv_algorithm kelp_conv_winograd_1d = {.name = "winograd_1d",
                                                   .layout = KELP_CONV_WINOGRAD_6,
                                                   .is_applicable = is_applicable_1d,
                                                   .is_profitable = is_profitable_1d,
                                                   .reserve = reserve,
                                                   .run = run};
