/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Winograd's convolution. A block of tiles is laid out with channels together, so that vectors are
 * full even where images are small, and transformed to 36 or 16 matrices [tiles, input channels], 6
 * for a kernel along one axis; each is multiplied by its part of the weights, and what comes out is
 * transformed back. Source: Lavin and Gray, "Fast Algorithms for Convolutional Neural Networks",
 * 2015; the points are said in simd/winograd.inc.
 */
#include "cpu/kernels/conv/winograd.h"

#include "cpu/kernels/gemm/gemm.h"
#include "cpu/kernels/conv/im2row.h"

#define POINTS 6                  /* along an axis */
#define SMALL_POINTS 4            /* of tiles of 2 x 2 */
#define BLOCK_FLOATS 196608       /* of both sides' parts: most of a second-level cache */
#define HELD_WEIGHTS (1 << 17)    /* floats that stay in a second-level cache */
#define NEAR_WEIGHTS (1 << 19)    /* more come from far beyond it */
#define LARGEST_WEIGHTS (1 << 24) /* floats: up to four times as many as the model's own */
#define PACK_CHANNELS 8

static int64_t divided_up(int64_t a, int64_t b) {
    return (a + b - 1) / b;
}

static bool are_far(const kelp_conv_tiles *t, int64_t in) {
    return in * t->outputs * t->parts > NEAR_WEIGHTS;
}

/* Of weights, beyond what stays in a second-level cache. */
static int64_t moved(int64_t weights) {
    return KELP_MAX((int64_t)0, weights - HELD_WEIGHTS);
}

/* Estimates are in cycles of a core that multiplies one vector at a time, and reads two floats from
 * memory, or four of what it read shortly before; half of the reading of weights that fit a cache
 * goes on behind the products. */
static int64_t reading(int64_t weights, int64_t times) {
    return moved(weights) * (weights > NEAR_WEIGHTS ? times + 1 : 1) / 4;
}

static int64_t direct_cycles(const kelp_window *w, int64_t lanes, int64_t in, int64_t out) {
    int64_t weights = w->kernel_size * in * divided_up(out, 2) * 2;
    return w->out_size * weights / lanes + reading(weights, 1);
}

static int64_t cycles(const kelp_window *w, const kelp_conv_tiles *t, int64_t lanes, int64_t in,
                      int64_t out) {
    int64_t ins = divided_up(in, lanes), outs = divided_up(out, lanes);
    int64_t tiles = divided_up(w->out[1], t->tall) * divided_up(w->out[2], t->wide);
    int64_t products = tiles * t->parts * in * outs;
    int64_t once = t->parts == POINTS          ? ins * 17 + outs * 13
                   : t->points == SMALL_POINTS ? ins * 60 + outs * 40
                                               : ins * 200 + outs * 150;
    int64_t moves = in * t->parts / 2 + out * t->tall * t->wide / 2;
    return products + tiles * (once + moves) + reading(in * t->outputs * t->parts, t->blocks);
}

/* Outputs of a tile along an axis: with the taps before them they reach as many pixels as there
 * are points. */
static bool tile_extents(const kelp_window *w, int64_t points, kelp_conv_tiles *t) {
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

static bool is_plain(const kelp_window *w) {
    return w->kernel[0] == 1 && w->in[0] == 1 && w->out[0] == 1 && w->before[0] == 0 &&
           w->stride[1] == 1 && w->stride[2] == 1 && w->dilation[1] == 1 && w->dilation[2] == 1 &&
           w->out_size <= 1 << 28;
}

/* Blocks that fill the cache, as many for each thread; weights that do not stay in a cache are read
 * for more tiles at once, and threads share them by output channels. */
static void divide(const kelp_window *w, int64_t lanes, int64_t batch, int64_t in, int threads,
                   kelp_conv_tiles *t) {
    int64_t high = divided_up(w->out[1], t->tall), wide = divided_up(w->out[2], t->wide);
    bool far = are_far(t, in);
    int64_t most = KELP_MAX(far ? (int64_t)24 : (int64_t)12,
                            BLOCK_FLOATS / t->parts / (t->inputs + t->outputs));
    t->columns = divided_up(wide, most);
    t->across = divided_up(wide, t->columns);
    int64_t bands = t->columns > 1 ? high : divided_up(high, KELP_MAX(1, most / t->across));
    int64_t vectors = t->outputs / lanes, slices = 1;
    if (threads > 1 && batch * bands * t->columns < 4 * threads && batch % threads != 0) {
        if (far) {
            slices = KELP_MIN((int64_t)threads, vectors);
        } else {
            if (high == 1)
                t->columns = KELP_MIN(wide, divided_up(t->columns, threads) * threads);
            bands = KELP_MIN(high, divided_up(bands, threads) * threads);
            t->across = divided_up(wide, t->columns);
        }
    }
    t->down = divided_up(high, bands);
    t->blocks = divided_up(high, t->down) * t->columns;
    t->slice = divided_up(vectors, slices) * lanes;
    t->slices = divided_up(t->outputs, t->slice);
}

static int64_t input_rows(const kelp_conv_tiles *t, int64_t down) {
    return t->tall * down + (t->tall > 1 ? t->points - t->tall : 0);
}

static int64_t input_columns(const kelp_conv_tiles *t, int64_t across) {
    return t->wide * across + (t->wide > 1 ? t->points - t->wide : 0);
}

static void reserve(kelp_conv_tiles *t) {
    int64_t tiles = t->down * t->across;
    t->image_floats = input_rows(t, t->down) * input_columns(t, t->across) * t->inputs;
    /* an odd number of cache lines, so that the parts of a tile do not meet in the same sets */
    t->in_step = (divided_up(tiles * t->inputs, 16) | 1) * 16;
    t->out_step = (divided_up(tiles * t->slice, 16) | 1) * 16;
    t->parts_floats = t->parts * KELP_MAX(t->in_step, t->slice); /* then the outputs */
    t->parts_floats = KELP_MAX(t->parts_floats, t->tall * t->wide * tiles * t->slice);
    t->worker_floats = t->image_floats + t->parts_floats + t->parts * t->out_step;
    t->worker_floats = divided_up(t->worker_floats, 16) * 16;
}

bool kelp_conv_winograd_pays(const kelp_window *w, const kelp_simd *simd, int64_t batch,
                             int64_t in_channels, int64_t out_channels, int threads,
                             kelp_conv_tiles *out) {
    static const int64_t points[] = {POINTS, SMALL_POINTS};
    int64_t lanes = simd->tile_columns / 2, least = INT64_MAX;
    *out = (kelp_conv_tiles){0};
    if (!is_plain(w) || in_channels < 8 || out_channels < 8 || in_channels > 4096 ||
        out_channels > 4096)
        return false;
    int64_t direct = direct_cycles(w, lanes, in_channels, out_channels);
    for (size_t i = 0; i < KELP_COUNT(points); i++) {
        kelp_conv_tiles t = {.inputs = divided_up(in_channels, lanes) * lanes,
                             .outputs = divided_up(out_channels, lanes) * lanes};
        if (!tile_extents(w, points[i], &t) || in_channels * t.outputs * t.parts > LARGEST_WEIGHTS)
            continue;
        divide(w, lanes, batch, in_channels, threads, &t);
        int64_t takes = cycles(w, &t, lanes, in_channels, out_channels);
        /* memory has a price: more of it has to save the time that reading it twice takes */
        int64_t costs = takes + moved(in_channels * t.outputs * t.parts);
        if (takes * 8 >= direct * 7 || costs >= least)
            continue;
        least = costs;
        *out = t;
    }
    if (out->parts == 0)
        return false;
    reserve(out);
    return true;
}

/* ---- weights ---- */
static int64_t parts_of(int64_t taps, int64_t points) {
    return taps == 9 ? points * points : points;
}

bool kelp_conv_winograd_size(const kelp_simd *simd, int64_t taps, int64_t points,
                             int64_t in_channels, int64_t out_channels, size_t *out_floats) {
    size_t floats;
    return kelp_gemm_packed_size(simd, in_channels, out_channels, &floats) &&
           kelp_size_mul(floats, (size_t)parts_of(taps, points), out_floats);
}

void kelp_conv_winograd_pack(const kelp_simd *simd, int64_t taps, int64_t points,
                             const void *weights, int64_t in_channels, int64_t out_channels,
                             float *out) {
    const kelp_float_u *from = weights;
    float given[PACK_CHANNELS * 9 * KELP_SIMD_COLUMNS];
    int64_t width = simd->tile_columns, panels = divided_up(out_channels, width);
    int64_t step = panels * in_channels * width, stride = in_channels * taps;
    for (int64_t m = 0; m < out_channels; m += width)
        for (int64_t c = 0, count; c < in_channels; c += count, out += count * width) {
            count = KELP_MIN((int64_t)PACK_CHANNELS, in_channels - c);
            kelp_conv_turn(simd, from + m * stride + c * taps, stride,
                           KELP_MIN(width, out_channels - m), count * taps, given);
            simd->winograd_weights(given, taps, parts_of(taps, points), count, out, step);
        }
}

/* ---- run ---- */
/* Tiles at an output's row and column; at the image's ends there may be fewer than elsewhere. */
typedef struct block {
    int64_t row, column, down, across;
} block;

static block block_at(const kelp_conv_winograd *job, int64_t index) {
    const kelp_conv_tiles *t = job->tiles;
    block b = {.row = index / t->columns * t->tall * t->down,
               .column = index % t->columns * t->wide * t->across};
    b.down = KELP_MIN(t->down, divided_up(job->w->out[1] - b.row, t->tall));
    b.across = KELP_MIN(t->across, divided_up(job->w->out[2] - b.column, t->wide));
    return b;
}

/* What the block reads, pixel by pixel. */
static void gather(const kelp_conv_winograd *job, const float *x, const block *b, float *image) {
    const kelp_window *w = job->w;
    const kelp_conv_tiles *t = job->tiles;
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
        job->simd->turn(to + begin * t->inputs, t->inputs, x + (top + r) * w->in[2] + left + begin,
                        w->in_size, job->in_channels, end - begin);
        memset(to + end * t->inputs, 0, (size_t)((wide - end) * t->inputs) * sizeof *to);
    }
}

/* `tiles` of each part by the weights of output channels from `first`, as many as a slice has. */
static void multiply(const kelp_conv_winograd *job, const float *from, int64_t tiles, int64_t first,
                     float *to) {
    const kelp_conv_tiles *t = job->tiles;
    const kelp_simd *simd = job->simd;
    int64_t width = simd->tile_columns, outs = KELP_MIN(t->slice, t->outputs - first);
    int64_t panels = divided_up(t->outputs, width), size = job->in_channels * width;
    for (int64_t part = 0; part < t->parts; part++, from += t->in_step, to += t->out_step)
        for (int64_t j = 0, n; j < outs; j += n) { /* a slice may begin within a panel */
            int64_t panel = part * panels + (first + j) / width, skipped = (first + j) % width;
            n = KELP_MIN(width - skipped, outs - j);
            simd->gemm(&(kelp_gemm_block){.a = from,
                                          .b = job->panels + panel * size + skipped,
                                          .c = to + j,
                                          .lda = t->inputs,
                                          .ldb = width,
                                          .ldc = outs,
                                          .m = tiles,
                                          .n = n,
                                          .k = job->in_channels});
        }
}

/* Pixels of `step` floats to the planes of `channels` channels from `first` of image `at`. */
static void scatter(const kelp_conv_winograd *job, const float *image, int64_t step, const block *b,
                    int64_t first, int64_t channels, int64_t at) {
    const kelp_window *w = job->w;
    const kelp_conv_tiles *t = job->tiles;
    int64_t rows = KELP_MIN(t->tall * b->down, w->out[1] - b->row), wide = t->wide * b->across;
    int64_t columns = KELP_MIN(wide, w->out[2] - b->column);
    int64_t begin = (at * job->out_channels + first) * w->out_size + b->row * w->out[2] + b->column;
    float *y = job->y + begin;
    const float *residual = job->residual != NULL ? job->residual + begin : NULL;
    for (int64_t r = 0; r < rows; r++)
        job->simd->turn(y + r * w->out[2], w->out_size, image + r * wide * step, step, columns,
                        channels);
    if (job->bias == NULL && residual == NULL && job->act == KELP_ACT_NONE)
        return;
    bool whole = columns == w->out[2];
    for (int64_t c = 0; c < channels; c++)
        for (int64_t r = 0; r < (whole ? 1 : rows); r++) {
            int64_t to = c * w->out_size + r * w->out[2];
            job->simd->finish(y + to, NULL, job->bias != NULL ? job->bias[first + c] : 0.0f,
                              residual != NULL ? residual + to : NULL,
                              whole ? rows * columns : columns, job->act);
        }
}

/* A unit is a block of an image's tiles, and a slice of the output channels; each unit transforms
 * its input, which is little beside its products. */
static void blocks(void *userp, int64_t begin, int64_t end, int worker) {
    const kelp_conv_winograd *job = userp;
    const kelp_conv_tiles *t = job->tiles;
    float *image = job->buffer + worker * t->worker_floats;
    float *parts = image + t->image_floats, *products = parts + t->parts_floats;
    for (int64_t unit = begin; unit < end; unit++) {
        int64_t at = unit / t->blocks % job->batch;
        int64_t first = unit / t->blocks / job->batch * t->slice;
        int64_t outs = KELP_MIN(t->slice, t->outputs - first);
        block b = block_at(job, unit % t->blocks);
        kelp_winograd moved = {.image = image,
                               .parts = parts,
                               .tall = t->tall,
                               .wide = t->wide,
                               .down = b.down,
                               .across = b.across,
                               .channels = t->inputs,
                               .step = t->in_step};
        gather(job, job->x + at * job->in_channels * job->w->in_size, &b, image);
        job->simd->winograd_in(&moved);
        multiply(job, parts, b.down * b.across, first, products);
        moved.image = parts;
        moved.parts = products;
        moved.channels = outs;
        moved.step = t->out_step;
        job->simd->winograd_out(&moved);
        scatter(job, parts, outs, &b, first, KELP_MIN(outs, job->out_channels - first), at);
    }
}

void kelp_conv_winograd_run(const kelp_op_env *env, const kelp_conv_winograd *job) {
    const kelp_conv_tiles *t = job->tiles;
    kelp_conv_winograd copy = *job;
    int64_t work = t->down * t->across * t->parts * t->inputs * t->slice;
    kelp_op_parallel(env, job->batch * t->blocks * t->slices,
                     800000 / KELP_MAX((int64_t)1, work) + 1, blocks, &copy);
}
