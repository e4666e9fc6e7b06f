/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Direct convolution as a product. Output positions of a strip of rows are numbered through, as
 * wide as the frame is (the few behind each row are computed and dropped), so that what one kernel
 * position sees of a channel is one run of floats: the matrix of unrolled windows is there without
 * being made. With a stride of s the frame is kept as s x s phases, within which the stride is one.
 */
#include "cpu/kernels/conv/direct.h"

#define K_SLICE 384
#define LARGEST_FRAME 196608 /* floats: most of a second-level cache */

static int64_t divided_up(int64_t a, int64_t b) {
    return (a + b - 1) / b;
}

/* Phases that kernel positions along `axis` reach; their places among those kept. */
static int64_t phases(const kelp_window *w, int axis, int64_t *places) {
    int64_t count = 0;
    for (int64_t phase = 0; phase < w->stride[axis]; phase++) {
        bool used = false;
        for (int64_t k = 0; k < w->kernel[axis]; k++)
            used = used || k * w->dilation[axis] % w->stride[axis] == phase;
        places[phase] = used ? count++ : -1;
    }
    return count;
}

/* What a strip of `rows` needs; false when a number does not fit. */
static bool lay_out(const kelp_window *w, int64_t rows, int64_t in_channels,
                    kelp_conv_frames *out) {
    int64_t last = (w->kernel[1] - 1) * w->dilation[1];
    out->strip = rows;
    out->high = rows + last / w->stride[1];
    int64_t columns = (rows - 1) * out->wide + w->out[2] + 3 * KELP_FRAME_LANES;
    int64_t together = KELP_FRAME_ROWS * KELP_FRAME_TOGETHER;
    return kelp_i64_mul(out->high * out->wide, in_channels * out->downs * out->across,
                        &out->frame_floats) &&
           kelp_i64_mul(columns, out->slice, &out->product_floats) &&
           kelp_i64_add(out->product_floats, together, &out->product_floats) &&
           out->frame_floats < INT32_MAX / 2;
}

static int64_t rounded(int64_t columns) {
    return divided_up(columns, KELP_FRAME_LANES) * KELP_FRAME_LANES;
}

/* Columns that are computed of an image in strips of `rows`. */
static int64_t computed_columns(const kelp_window *w, const kelp_conv_frames *f, int64_t rows) {
    int64_t whole = w->out[1] / rows, rest = w->out[1] % rows;
    return whole * rounded((rows - 1) * f->wide + w->out[2]) +
           (rest > 0 ? rounded((rest - 1) * f->wide + w->out[2]) : 0);
}

/* Columns that the product of unrolled windows has, of an image: its strips fill the cache. */
static int64_t unrolled_columns(const kelp_window *w, int64_t in_channels, int64_t units) {
    int64_t width = w->out[2], fitting = 131072 / (in_channels * w->kernel_size * width);
    int64_t strip = KELP_MIN(w->out[1], KELP_MIN(256 / width, fitting));
    strip = KELP_MAX((int64_t)1, strip);
    if (units > 1 && strip == w->out[1]) /* several images stand side by side */
        return w->out_size;
    return divided_up(w->out[1], strip) * rounded(strip * width);
}

/* Where there are few strips, threads share the output channels: then each reads its own weights
 * alone, and strips stay wide. Every slice fills the frame anew, which must be little work. */
static bool divisible(const kelp_window *w, int64_t out_channels, int threads) {
    int64_t slice = out_channels / threads;
    return slice >= 2 * KELP_FRAME_ROWS && slice * w->kernel_size >= 64;
}

bool kelp_conv_direct_pays(const kelp_window *w, int64_t units, int64_t in_channels,
                           int64_t out_channels, int threads, kelp_conv_frames *out) {
    int64_t places[8];
    if (w->kernel[0] != 1 || w->in[0] != 1 || w->out[0] != 1 || w->before[0] != 0 ||
        w->stride[1] > 4 || w->stride[2] > 2 || w->kernel_size > 121 || w->out_size == 0 ||
        in_channels < 1 || in_channels > 8192 || out_channels < 1 || w->in_size > INT32_MAX / 2 ||
        w->dilation[1] > 64 || w->dilation[2] > 64)
        return false;
    out->downs = phases(w, 1, places);
    out->across = phases(w, 2, places);
    int64_t wide = w->out[2] + (w->kernel[2] - 1) * w->dilation[2] / w->stride[2];
    out->bare = w->stride[1] == 1 && w->stride[2] == 1 && w->before[1] == 0 && w->before[2] == 0 &&
                w->after[1] <= 0 && w->after[2] <= 0 && w->in[2] >= wide &&
                in_channels * w->in_size < INT32_MAX / 2;
    out->wide = out->bare ? w->in[2] : wide;
    int64_t wanted = KELP_MAX((int64_t)1, KELP_MIN(w->out[1], 320 / out->wide));
    bool few = threads > 1 && units * divided_up(w->out[1], wanted) < 4 * threads;
    out->slices = few && divisible(w, out_channels, threads) ? threads : 1;
    out->slice = divided_up(out_channels, out->slices);
    if (few && out->slices == 1)
        wanted = KELP_MAX(divided_up(wanted, 2), (int64_t)KELP_MIN(w->out[1], 64 / out->wide));
    if (threads > 1 && out->slices == 1) { /* as many strips for each thread */
        int64_t strips = divided_up(w->out[1], wanted);
        wanted = divided_up(w->out[1], divided_up(strips, threads) * threads);
    }
    int64_t rows = wanted, least = computed_columns(w, out, wanted);
    for (int64_t r = wanted; r >= divided_up(wanted, 2); r--)
        if (computed_columns(w, out, r) * 128 < least * 127) {
            least = computed_columns(w, out, r);
            rows = r;
        }
    while (rows > 1 && lay_out(w, rows, in_channels, out) && out->frame_floats > LARGEST_FRAME)
        rows = divided_up(rows, 2);
    if (!lay_out(w, rows, in_channels, out) ||
        (!out->bare && out->frame_floats > 4 * LARGEST_FRAME))
        return false;
    /* columns that are dropped cost as much as those kept; unrolling costs some six products */
    if (computed_columns(w, out, out->strip) * out_channels >
        unrolled_columns(w, in_channels, units) * (out_channels + 6))
        return false;
    if (out->bare)
        out->frame_floats = 0;
    out->offset_floats = divided_up(in_channels * w->kernel_size, 16) * 16;
    out->frame_floats = divided_up(out->frame_floats, 16) * 16;
    out->product_floats = divided_up(out->product_floats, 16) * 16;
    return true;
}

static void fill_offsets(const kelp_conv_direct *job, int32_t *to) {
    const kelp_window *w = job->w;
    const kelp_conv_frames *f = job->frames;
    int64_t down[8], across[8], taps[128];
    phases(w, 1, down);
    phases(w, 2, across);
    for (int64_t a = 0, t = 0; a < w->kernel[1]; a++)
        for (int64_t b = 0; b < w->kernel[2]; b++) {
            int64_t y = a * w->dilation[1], x = b * w->dilation[2];
            int64_t phase = down[y % w->stride[1]] * f->across + across[x % w->stride[2]];
            taps[t++] = (phase * f->high + y / w->stride[1]) * f->wide + x / w->stride[2];
        }
    int64_t step = f->bare ? w->in_size : f->downs * f->across * f->high * f->wide;
    for (int64_t c = 0; c < job->in_channels; c++)
        for (int64_t t = 0; t < w->kernel_size; t++)
            *to++ = (int32_t)(c * step + taps[t]);
}

static void clear(float *to, int64_t count) {
    if (count > 0)
        memset(to, 0, (size_t)count * sizeof *to);
}

/* Columns [begin, end) of a frame's phase hold input; what is outside becomes zero. */
static void clear_around(const kelp_conv_frames *f, float *phase, int64_t first, int64_t last,
                         int64_t begin, int64_t end) {
    clear(phase, first * f->wide);
    for (int64_t r = first; r < last; r++) {
        for (int64_t i = 0; i < begin; i++)
            phase[r * f->wide + i] = 0.0f;
        for (int64_t i = end; i < f->wide; i++)
            phase[r * f->wide + i] = 0.0f;
    }
    clear(phase + last * f->wide, (f->high - last) * f->wide);
}

/* Where `count` places, `stride` apart from `from`, lie inside an extent: [*begin, *end). */
static void inside(int64_t from, int64_t stride, int64_t count, int64_t extent, int64_t *begin,
                   int64_t *end) {
    *begin = from >= 0 ? 0 : KELP_MIN(count, divided_up(-from, stride));
    *end = from >= extent ? 0 : KELP_MIN(count, (extent - 1 - from) / stride + 1);
    *end = KELP_MAX(*begin, *end);
}

/* One channel, rows phase `down` (of the input's rows, from `top`), whose phases of columns begin
 * at `to`. */
static void fill_phase(const kelp_conv_direct *job, const float *x, int64_t top,
                       const int64_t *across, float *to) {
    const kelp_window *w = job->w;
    const kelp_conv_frames *f = job->frames;
    int64_t size = f->high * f->wide, first, last, step = w->stride[1] * w->in[2];
    int64_t begin[2] = {0, 0}, end[2] = {0, 0};
    inside(top, w->stride[1], f->high, w->in[1], &first, &last);
    for (int64_t p = 0; p < w->stride[2]; p++) {
        inside(p - w->before[2], w->stride[2], f->wide, w->in[2], &begin[p], &end[p]);
        if (across[p] >= 0)
            clear_around(f, to + across[p] * size, first, last, begin[p], end[p]);
    }
    if (first == last)
        return;
    const float *row = x + (top + first * w->stride[1]) * w->in[2] - w->before[2];
    if (w->stride[2] == 1) {
        job->simd->copy_rows(to + first * f->wide + begin[0], f->wide, row + begin[0], step,
                             last - first, end[0] - begin[0]);
        return;
    }
    if (across[0] >= 0 && across[1] >= 0) {
        float *even = to + first * f->wide, *odd = even + size;
        int64_t pairs = KELP_MIN(begin[0], end[1]); /* before them an odd one may be alone */
        for (int64_t r = first; r < last; r++)
            for (int64_t i = begin[1]; i < pairs; i++)
                odd[(r - first) * f->wide + i] = row[(r - first) * step + 1 + 2 * i];
        job->simd->split_rows(even + begin[0], odd + begin[0], f->wide, row + 2 * begin[0], step,
                              last - first, end[0] - begin[0], end[1] - pairs);
        return;
    }
    for (int64_t p = 0; p < 2; p++)
        for (int64_t r = first; across[p] >= 0 && r < last; r++)
            for (int64_t i = begin[p]; i < end[p]; i++)
                to[across[p] * size + r * f->wide + i] = row[(r - first) * step + p + 2 * i];
}

static void fill_frame(const kelp_conv_direct *job, const float *x, int64_t row, float *frame) {
    const kelp_window *w = job->w;
    const kelp_conv_frames *f = job->frames;
    int64_t down[8], across[8], top = row * w->stride[1] - w->before[1];
    phases(w, 1, down);
    phases(w, 2, across);
    for (int64_t c = 0; c < job->in_channels; c++, x += w->in_size)
        for (int64_t p = 0; p < w->stride[1]; p++)
            if (down[p] >= 0) {
                fill_phase(job, x, top + p, across, frame);
                frame += f->across * f->high * f->wide;
            }
}

/* Weights that the next tile multiplies by, from memory to the second-level cache. */
static void fetch_rows(const kelp_float_u *weights, int64_t stride, int64_t rows, int64_t count) {
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < count; j += KELP_FRAME_LANES)
            __builtin_prefetch((const void *)(weights + i * stride + j), 0, 2);
}

/* Output channels from `first`. Rows of weights are brought together first: apart by a power of two
 * they would push each other out of the cache. */
static void multiply(const kelp_conv_direct *job, int64_t first, int64_t channels, const float *x,
                     int64_t columns, float *together, float *product, int64_t ldc) {
    int64_t depth = job->in_channels * job->w->kernel_size, height = job->simd->tile_rows;
    int64_t tiles = divided_up(channels, height);
    height = divided_up(channels, tiles); /* of equal height */
    const kelp_float_u *weights = (const kelp_float_u *)job->weights + first * depth;
    for (int64_t k = 0; k < depth; k += K_SLICE) {
        kelp_taps taps = {.a = together,
                          .x = x,
                          .offset = (const int32_t *)(const void *)job->buffer + k,
                          .lda = KELP_FRAME_TOGETHER,
                          .ldc = ldc,
                          .n = columns,
                          .k = KELP_MIN((int64_t)K_SLICE, depth - k),
                          .accumulate = k > 0};
        for (int64_t row = 0; row < channels; row += height) {
            taps.m = KELP_MIN(height, channels - row);
            taps.c = product + row * ldc;
            for (int64_t i = 0; i < taps.m; i++)
                memcpy(together + i * KELP_FRAME_TOGETHER, weights + (row + i) * depth + k,
                       (size_t)taps.k * sizeof *together);
            if (row + height < channels)
                fetch_rows(weights + (row + height) * depth + k, depth,
                           KELP_MIN(height, channels - row - height), taps.k);
            else
                fetch_rows(weights + k + taps.k, depth, height,
                           KELP_MIN((int64_t)K_SLICE, depth - k - taps.k));
            job->simd->taps(&taps);
        }
    }
}

/* A unit is one strip of one slice of one group of one image; those of a slice follow each other.
 */
static void strips(void *userp, int64_t begin, int64_t end, int worker) {
    const kelp_conv_direct *job = userp;
    const kelp_window *w = job->w;
    const kelp_conv_frames *f = job->frames;
    float *frame = job->buffer + f->offset_floats + worker * (f->frame_floats + f->product_floats);
    float *together = frame + f->frame_floats;
    float *product = together + KELP_FRAME_ROWS * KELP_FRAME_TOGETHER;
    int64_t strips_each = divided_up(w->out[1], f->strip);
    int64_t images = job->batch * job->groups;
    for (int64_t unit = begin; unit < end; unit++) {
        int64_t image = unit / strips_each % images, group = image % job->groups;
        int64_t skipped = unit / strips_each / images * f->slice;
        int64_t channels = KELP_MIN(f->slice, job->out_channels - skipped);
        int64_t first = group * job->out_channels + skipped;
        int64_t row = unit % strips_each * f->strip, rows = KELP_MIN(f->strip, w->out[1] - row);
        const float *x = job->x + image * job->in_channels * w->in_size;
        if (!f->bare)
            fill_frame(job, x, row, frame);
        int64_t columns = (rows - 1) * f->wide + w->out[2];
        int64_t ldc = divided_up(columns, 2 * KELP_FRAME_LANES) * 2 * KELP_FRAME_LANES;
        multiply(job, first, channels, f->bare ? x + row * f->wide : frame, columns, together,
                 product, ldc);
        int64_t to = (image * job->out_channels + skipped) * w->out_size + row * w->out[2];
        for (int64_t c = 0; c < channels; c++, to += w->out_size)
            job->simd->finish_rows(
                &(kelp_finish){.from = product + c * ldc,
                               .residual = job->residual != NULL ? job->residual + to : NULL,
                               .to = job->y + to,
                               .from_step = f->wide,
                               .to_step = w->out[2],
                               .rows = rows,
                               .width = w->out[2],
                               .bias = job->bias != NULL ? job->bias[first + c] : 0.0f},
                job->act);
    }
}

void kelp_conv_direct_run(const kelp_op_env *env, const kelp_conv_direct *job) {
    const kelp_window *w = job->w;
    const kelp_conv_frames *f = job->frames;
    kelp_conv_direct copy = *job;
    fill_offsets(job, (int32_t *)(void *)job->buffer);
    int64_t work = job->in_channels * w->kernel_size * f->slice * w->out[2] * f->strip;
    kelp_op_parallel(env, job->batch * job->groups * divided_up(w->out[1], f->strip) * f->slices,
                     1000000 / KELP_MAX((int64_t)1, work) + 1, strips, &copy);
}
