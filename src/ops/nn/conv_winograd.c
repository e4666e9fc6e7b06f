/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Winograd's convolution. A block of tiles is laid out with channels together, so that vectors are
 * full even where images are small, and transformed to 36 matrices [tiles, input channels]; each is
 * multiplied by its part of the weights, and what comes out is transformed back. Source: Lavin and
 * Gray, "Fast Algorithms for Convolutional Neural Networks", 2015; the points are said in
 * simd/winograd.inc.
 */
#include "ops/nn/conv_winograd.h"

#include "ops/linear/gemm.h"

#define PARTS 36
#define BLOCK_FLOATS 196608 /* of both sides' parts: most of a second-level cache */
#define LARGEST_WEIGHTS \
    (1 << 20) /* floats; larger ones would come from memory, four times as many */

static int64_t divided_up(int64_t a, int64_t b) {
    return (a + b - 1) / b;
}

/* In cycles of a core that multiplies one vector at a time. */
static bool faster(const kelp_window *w, int64_t lanes, int64_t in, int64_t out, int64_t tiles) {
    int64_t ins = divided_up(in, lanes), outs = divided_up(out, lanes);
    int64_t direct = w->out_size * 9 * in * divided_up(out, 2) * 2 / lanes;
    int64_t products = tiles * PARTS * in * outs;
    int64_t transforms = tiles * (ins * 200 + outs * 150 + in * 36 / 2 + out * 16 / 2);
    return (products + transforms) * 8 < direct * 7;
}

bool kelp_conv_winograd_pays(const kelp_window *w, const kelp_simd *simd, int64_t batch,
                             int64_t in_channels, int64_t out_channels, int threads,
                             kelp_conv_tiles *out) {
    int64_t lanes = simd->tile_columns / 2;
    if (w->kernel[0] != 1 || w->in[0] != 1 || w->out[0] != 1 || w->before[0] != 0 ||
        w->kernel[1] != 3 || w->kernel[2] != 3 || w->stride[1] != 1 || w->stride[2] != 1 ||
        w->dilation[1] != 1 || w->dilation[2] != 1 || in_channels < 8 || out_channels < 8 ||
        in_channels > 4096 || out_channels > 4096 || w->out[1] < 2 || w->out[2] < 2 ||
        w->out_size > (1 << 28))
        return false;
    *out = (kelp_conv_tiles){.inputs = divided_up(in_channels, lanes) * lanes,
                             .outputs = divided_up(out_channels, lanes) * lanes};
    int64_t high = divided_up(w->out[1], 4), wide = divided_up(w->out[2], 4);
    if (in_channels * out->outputs * PARTS > LARGEST_WEIGHTS ||
        !faster(w, lanes, in_channels, out_channels, high * wide))
        return false;
    int64_t most = KELP_MAX((int64_t)12, BLOCK_FLOATS / PARTS / (out->inputs + out->outputs));
    out->columns = divided_up(wide, most);
    out->across = divided_up(wide, out->columns);
    int64_t bands = out->columns > 1 ? high : divided_up(high, KELP_MAX(1, most / out->across));
    if (threads > 1 && batch * bands * out->columns < 4 * threads && batch % threads != 0)
        bands = KELP_MIN(high, divided_up(bands, threads) * threads);
    out->down = divided_up(high, bands);
    out->blocks = divided_up(high, out->down) * out->columns;
    int64_t tiles = out->down * out->across;
    out->image_floats = (4 * out->down + 2) * (4 * out->across + 2) * out->inputs;
    /* an odd number of cache lines, so that the parts of a tile do not meet in the same sets */
    out->in_step = (divided_up(tiles * out->inputs, 16) | 1) * 16;
    out->out_step = (divided_up(tiles * out->outputs, 16) | 1) * 16;
    out->parts_floats = PARTS * KELP_MAX(out->in_step, out->outputs); /* then the outputs */
    out->parts_floats = KELP_MAX(out->parts_floats, 16 * tiles * out->outputs);
    out->worker_floats = out->image_floats + out->parts_floats + PARTS * out->out_step;
    out->worker_floats = divided_up(out->worker_floats, 16) * 16;
    return true;
}

/* ---- weights ---- */
static const double weight_points[6][3] = {
    {1, 0, 0},
    {-2.0 / 3, -0.47140452079103168, -1.0 / 3},
    {-2.0 / 3, 0.47140452079103168, -1.0 / 3},
    {1.0 / 6, 0.23570226039551584, 1.0 / 3},
    {1.0 / 6, -0.23570226039551584, 1.0 / 3},
    {0, 0, 1},
};

bool kelp_conv_winograd_size(const kelp_simd *simd, int64_t in_channels, int64_t out_channels,
                             size_t *out_floats) {
    size_t floats;
    return kelp_gemm_packed_size(simd, in_channels, out_channels, &floats) &&
           kelp_size_mul(floats, PARTS, out_floats);
}

static void transform(const kelp_float_u *w, float *out, int64_t step) {
    double half[6][3];
    for (int i = 0; i < 6; i++)
        for (int j = 0; j < 3; j++)
            half[i][j] = weight_points[i][0] * (double)w[j] +
                         weight_points[i][1] * (double)w[3 + j] +
                         weight_points[i][2] * (double)w[6 + j];
    for (int i = 0; i < 6; i++)
        for (int j = 0; j < 6; j++)
            out[(i * 6 + j) * step] =
                (float)(half[i][0] * weight_points[j][0] + half[i][1] * weight_points[j][1] +
                        half[i][2] * weight_points[j][2]);
}

void kelp_conv_winograd_pack(const kelp_simd *simd, const void *weights, int64_t in_channels,
                             int64_t out_channels, float *out) {
    int64_t width = simd->tile_columns, panels = divided_up(out_channels, width);
    int64_t step = panels * in_channels * width;
    memset(out, 0, (size_t)(PARTS * step) * sizeof *out);
    for (int64_t m = 0; m < out_channels; m++)
        for (int64_t c = 0; c < in_channels; c++)
            transform((const kelp_float_u *)weights + (m * in_channels + c) * 9,
                      out + (m / width * in_channels + c) * width + m % width, step);
}

/* ---- run ---- */
/* What the block at output (row, column) reads, pixel by pixel. */
static void gather(const kelp_conv_winograd *job, const float *x, int64_t row, int64_t column,
                   float *image) {
    const kelp_window *w = job->w;
    const kelp_conv_tiles *t = job->tiles;
    int64_t high = 4 * t->down + 2, wide = 4 * t->across + 2;
    int64_t top = row - w->before[1], left = column - w->before[2];
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

static void multiply(const kelp_conv_winograd *job, const float *from, float *to) {
    const kelp_conv_tiles *t = job->tiles;
    const kelp_simd *simd = job->simd;
    int64_t width = simd->tile_columns;
    const float *panel = job->panels;
    for (int64_t part = 0; part < PARTS; part++, from += t->in_step, to += t->out_step)
        for (int64_t j = 0; j < job->out_channels; j += width, panel += job->in_channels * width)
            simd->gemm(&(kelp_gemm_block){.a = from,
                                          .b = panel,
                                          .c = to + j,
                                          .lda = t->inputs,
                                          .ldb = width,
                                          .ldc = t->outputs,
                                          .m = t->down * t->across,
                                          .n = KELP_MIN(width, t->outputs - j),
                                          .k = job->in_channels});
}

/* Pixels to the channels' planes. */
static void scatter(const kelp_conv_winograd *job, const float *image, int64_t row, int64_t column,
                    float *y) {
    const kelp_window *w = job->w;
    const kelp_conv_tiles *t = job->tiles;
    int64_t rows = KELP_MIN(4 * t->down, w->out[1] - row), wide = 4 * t->across;
    int64_t columns = KELP_MIN(wide, w->out[2] - column);
    y += row * w->out[2] + column;
    for (int64_t r = 0; r < rows; r++)
        job->simd->turn(y + r * w->out[2], w->out_size, image + r * wide * t->outputs, t->outputs,
                        columns, job->out_channels);
    if (job->bias == NULL && job->act == KELP_ACT_NONE)
        return;
    bool whole = columns == w->out[2];
    for (int64_t c = 0; c < job->out_channels; c++)
        for (int64_t r = 0; r < (whole ? 1 : rows); r++)
            job->simd->finish(y + c * w->out_size + r * w->out[2], NULL,
                              job->bias != NULL ? job->bias[c] : 0.0f, NULL,
                              whole ? rows * columns : columns, job->act);
}

/* A unit is a block of an image's tiles. */
static void blocks(void *userp, int64_t begin, int64_t end, int worker) {
    const kelp_conv_winograd *job = userp;
    const kelp_conv_tiles *t = job->tiles;
    float *image = job->buffer + worker * t->worker_floats;
    float *parts = image + t->image_floats, *products = parts + t->parts_floats;
    for (int64_t unit = begin; unit < end; unit++) {
        int64_t at = unit / t->blocks, block = unit % t->blocks;
        int64_t row = block / t->columns * 4 * t->down, column = block % t->columns * 4 * t->across;
        gather(job, job->x + at * job->in_channels * job->w->in_size, row, column, image);
        job->simd->winograd_in(&(kelp_winograd){.image = image,
                                                .parts = parts,
                                                .down = t->down,
                                                .across = t->across,
                                                .channels = t->inputs,
                                                .step = t->in_step});
        multiply(job, parts, products);
        job->simd->winograd_out(&(kelp_winograd){.image = parts,
                                                 .parts = products,
                                                 .down = t->down,
                                                 .across = t->across,
                                                 .channels = t->outputs,
                                                 .step = t->out_step});
        scatter(job, parts, row, column, job->y + at * job->out_channels * job->w->out_size);
    }
}

void kelp_conv_winograd_run(const kelp_op_env *env, const kelp_conv_winograd *job) {
    const kelp_conv_tiles *t = job->tiles;
    kelp_conv_winograd copy = *job;
    int64_t work = t->down * t->across * PARTS * t->inputs * t->outputs;
    kelp_op_parallel(env, job->batch * t->blocks, 800000 / KELP_MAX((int64_t)1, work) + 1, blocks,
                     &copy);
}
