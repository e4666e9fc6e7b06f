/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Direct convolution as a GEMM. The output positions of a strip of rows are numbered continuously,
 * as wide as the padded tile (the extra ones after each row are computed and dropped). One kernel
 * position of a channel then reads contiguous floats: no im2col matrix is copied. With a stride of
 * s the tile is stored as s x s phases, each with a stride of 1.
 */
#include "base/assert.h"
#include "cpu/kernels/conv/conv.h"
#include "cpu/kernels/layout/layout_kernels.h"
#include "cpu/kernels/tuning.h"

#define LANES 16 /* floats of the widest vector */
#define TILE_ROWS KELP_CONV_MAX_TILE_ROWS
#define GATHERED_STEP 400 /* floats from one row of weights to the next: 25 cache lines */
#define MAX_TAPS 121
#define MAX_DILATION 64
#define MAX_STRIDE_DOWN 4
#define MAX_STRIDE_ACROSS 2
#define MAX_PHASES 8

/* Counts the phases that kernel positions along `axis` read. Sets the index of each, -1 for the
 * others. */
static int64_t phases(const kelp_conv_window *w, int axis, int64_t *places) {
    int64_t count = 0;
    for (int64_t phase = 0; phase < w->stride[axis]; phase++) {
        bool used = false;
        for (int64_t k = 0; k < w->kernel[axis]; k++)
            used = used || k * w->dilation[axis] % w->stride[axis] == phase;
        places[phase] = used ? count++ : -1;
    }
    return count;
}

/* Computes the sizes for a strip of `rows`. Returns false on overflow. */
static bool set_strip(const kelp_conv_window *w, int64_t rows, int64_t in_channels,
                      kelp_conv_direct *out) {
    int64_t last = (w->kernel[1] - 1) * w->dilation[1];
    out->strip = rows;
    out->high = rows + last / w->stride[1];
    int64_t columns = (rows - 1) * out->wide + w->out[2] + 3 * LANES;
    int64_t gathered = TILE_ROWS * GATHERED_STEP;
    return kelp_i64_mul(out->high * out->wide, in_channels * out->downs * out->across,
                        &out->tile_floats) &&
           kelp_i64_mul(columns, out->slice, &out->result_floats) &&
           kelp_i64_add(out->result_floats, gathered, &out->result_floats) &&
           out->tile_floats < INT32_MAX / 2;
}

static int64_t rounded(int64_t columns) {
    return kelp_round_up(columns, LANES);
}

/* Counts the columns computed for one image in strips of `rows`. */
static int64_t computed_columns(const kelp_conv_window *w, const kelp_conv_direct *f,
                                int64_t rows) {
    int64_t whole = w->out[1] / rows, rest = w->out[1] % rows;
    return whole * rounded((rows - 1) * f->wide + w->out[2]) +
           (rest > 0 ? rounded((rest - 1) * f->wide + w->out[2]) : 0);
}

/* Counts the columns that im2col would compute for one image: its strips fill the cache. */
static int64_t im2col_columns(const kelp_conv_window *w, int64_t in_channels, int64_t units) {
    int64_t width = w->out[2],
            fitting = KELP_IM2COL_FLOATS / (in_channels * w->kernel_size * width);
    int64_t strip = KELP_MIN(w->out[1], KELP_MIN(KELP_IM2COL_COLUMNS / width, fitting));
    strip = KELP_MAX((int64_t)1, strip);
    if (units > 1 && strip == w->out[1]) /* several images share a matrix */
        return w->out_size;
    return kelp_divide_up(w->out[1], strip) * rounded(strip * width);
}

/* Returns true if threads may divide the output channels. With few strips, each thread then
 * reads only its own weights, and strips stay wide. Each slice fills its own tile, which must be
 * little work. */
static bool divisible(const kelp_conv_window *w, int64_t out_channels, int threads) {
    int64_t slice = out_channels / threads;
    return slice >= 2 * TILE_ROWS && slice * w->kernel_size >= KELP_DIRECT_SLICE_WORK;
}

/* Chooses the height of a strip: enough columns to fill the cache, an equal number of strips for
 * each thread, and few columns that are computed and dropped. */
static int64_t choose_strip(const kelp_conv_window *w, const kelp_conv_direct *f, int64_t wanted,
                            bool few, int threads) {
    if (few && f->slices == 1)
        wanted = KELP_MAX(kelp_divide_up(wanted, 2),
                          (int64_t)KELP_MIN(w->out[1], KELP_DIRECT_FEW_COLUMNS / f->wide));
    if (threads > 1 && f->slices == 1) { /* as many strips for each thread */
        int64_t strips = kelp_divide_up(w->out[1], wanted);
        wanted = kelp_divide_up(w->out[1], kelp_round_up(strips, threads));
    }
    int64_t rows = wanted, fewest = computed_columns(w, f, wanted);
    for (int64_t r = wanted; r >= kelp_divide_up(wanted, 2); r--)
        if (computed_columns(w, f, r) * 128 < fewest * 127) { /* worth a smaller strip */
            fewest = computed_columns(w, f, r);
            rows = r;
        }
    return rows;
}

/* Chooses the blocking. Returns false if there is none whose tile fits a cache. */
static bool choose_blocking(const kelp_conv *conv, kelp_conv_direct *out) {
    const kelp_conv_window *w = &conv->shape.window;
    int64_t in_channels = conv->shape.in_channels, out_channels = conv->shape.out_channels;
    int64_t units = conv->shape.batch * conv->shape.groups, places[MAX_PHASES];
    int threads = conv->threads;
    *out = (kelp_conv_direct){.downs = phases(w, 1, places), .across = phases(w, 2, places)};
    int64_t wide = w->out[2] + (w->kernel[2] - 1) * w->dilation[2] / w->stride[2];
    out->bare = w->stride[1] == 1 && w->stride[2] == 1 && w->before[1] == 0 && w->before[2] == 0 &&
                w->after[1] <= 0 && w->after[2] <= 0 && w->in[2] >= wide &&
                in_channels * w->in_size < INT32_MAX / 2;
    out->wide = out->bare ? w->in[2] : wide;
    int64_t wanted = KELP_MAX((int64_t)1, KELP_MIN(w->out[1], KELP_DIRECT_COLUMNS / out->wide));
    bool few = threads > 1 && units * kelp_divide_up(w->out[1], wanted) < 4 * threads;
    out->slices = few && divisible(w, out_channels, threads) ? threads : 1;
    out->slice = kelp_divide_up(out_channels, out->slices);
    int64_t rows = choose_strip(w, out, wanted, few, threads);
    while (rows > 1 && set_strip(w, rows, in_channels, out) &&
           out->tile_floats > KELP_DIRECT_TILE_FLOATS)
        rows = kelp_divide_up(rows, 2);
    return set_strip(w, rows, in_channels, out) &&
           (out->bare || out->tile_floats <= 4 * KELP_DIRECT_TILE_FLOATS);
}

static bool is_applicable(const kelp_conv *conv) {
    const kelp_conv_window *w = &conv->shape.window;
    int64_t in_channels = conv->shape.in_channels;
    return !kelp_conv_is_pointwise(conv) && kelp_conv_fits_int32(conv) && w->kernel[0] == 1 &&
           w->in[0] == 1 && w->out[0] == 1 && w->before[0] == 0 &&
           w->stride[1] <= MAX_STRIDE_DOWN && w->stride[2] <= MAX_STRIDE_ACROSS &&
           w->kernel_size <= MAX_TAPS && w->out_size > 0 && in_channels >= 1 &&
           in_channels <= KELP_DIRECT_CHANNELS && conv->shape.out_channels >= 1 &&
           w->in_size <= INT32_MAX / 2 && w->dilation[1] <= MAX_DILATION &&
           w->dilation[2] <= MAX_DILATION;
}

/* Columns that are dropped cost as much as those kept; copying a window to a matrix costs about six
 * multiplications of an output channel. */
static bool is_profitable(const kelp_conv *conv) {
    const kelp_conv_window *w = &conv->shape.window;
    kelp_conv_direct f;
    if (!choose_blocking(conv, &f))
        return false;
    int64_t in_channels = conv->shape.in_channels, out_channels = conv->shape.out_channels;
    int64_t units = conv->shape.batch * conv->shape.groups;
    return computed_columns(w, &f, f.strip) * out_channels <=
           im2col_columns(w, in_channels, units) * (out_channels + 6);
}

static bool reserve(kelp_conv *conv) {
    kelp_conv_direct *f = &conv->blocking.direct;
    if (!choose_blocking(conv, f))
        return false;
    if (f->bare)
        f->tile_floats = 0;
    f->tile_floats = kelp_round_up(f->tile_floats, 16);
    f->result_floats = kelp_round_up(f->result_floats, 16);
    conv->shared_floats =
        kelp_round_up(conv->shape.in_channels * conv->shape.window.kernel_size, 16);
    conv->worker_floats = f->tile_floats + f->result_floats;
    return true;
}

static void fill_offsets(const kelp_conv *conv, int32_t *to) {
    const kelp_conv_window *w = &conv->shape.window;
    const kelp_conv_direct *f = &conv->blocking.direct;
    int64_t down[MAX_PHASES], across[MAX_PHASES], taps[MAX_TAPS];
    phases(w, 1, down);
    phases(w, 2, across);
    for (int64_t a = 0, t = 0; a < w->kernel[1]; a++)
        for (int64_t b = 0; b < w->kernel[2]; b++) {
            int64_t y = a * w->dilation[1], x = b * w->dilation[2];
            int64_t phase = down[y % w->stride[1]] * f->across + across[x % w->stride[2]];
            taps[t++] = (phase * f->high + y / w->stride[1]) * f->wide + x / w->stride[2];
        }
    int64_t step = f->bare ? w->in_size : f->downs * f->across * f->high * f->wide;
    for (int64_t c = 0; c < conv->shape.in_channels; c++)
        for (int64_t t = 0; t < w->kernel_size; t++)
            *to++ = (int32_t)(c * step + taps[t]);
}

static void clear(float *to, int64_t count) {
    if (count > 0)
        memset(to, 0, (size_t)count * sizeof *to);
}

/* Clears the part of a phase outside rows [first, last) and columns [begin, end), which hold
 * input. */
static void clear_around(const kelp_conv_direct *f, float *phase, int64_t first, int64_t last,
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

/* Computes which of `count` positions, `stride` apart from `from`, are inside [0, size):
 * [*begin, *end). */
static void inside(int64_t from, int64_t stride, int64_t count, int64_t size, int64_t *begin,
                   int64_t *end) {
    *begin = from >= 0 ? 0 : KELP_MIN(count, kelp_divide_up(-from, stride));
    *end = from >= size ? 0 : KELP_MIN(count, (size - 1 - from) / stride + 1);
    *end = KELP_MAX(*begin, *end);
}

/* Copies every stride-th row of one channel from `top` on to its phases, which begin at `to`. */
static void fill_phase(const kelp_conv *conv, const float *x, int64_t top, const int64_t *across,
                       float *to) {
    const kelp_layout_kernels *layout = kelp_layout_kernels_get();
    const kelp_conv_window *w = &conv->shape.window;
    const kelp_conv_direct *f = &conv->blocking.direct;
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
        layout->copy_rows(to + first * f->wide + begin[0], f->wide, row + begin[0], step,
                          last - first, end[0] - begin[0]);
        return;
    }
    if (across[0] >= 0 && across[1] >= 0) {
        float *even = to + first * f->wide, *odd = even + size;
        int64_t pairs =
            KELP_MIN(begin[0], end[1]); /* before them an odd column may have no even one */
        for (int64_t r = first; r < last; r++)
            for (int64_t i = begin[1]; i < pairs; i++)
                odd[(r - first) * f->wide + i] = row[(r - first) * step + 1 + 2 * i];
        layout->split_rows(even + begin[0], odd + begin[0], f->wide, row + 2 * begin[0], step,
                           last - first, end[0] - begin[0], end[1] - pairs);
        return;
    }
    for (int64_t p = 0; p < 2; p++)
        for (int64_t r = first; across[p] >= 0 && r < last; r++)
            for (int64_t i = begin[p]; i < end[p]; i++)
                to[across[p] * size + r * f->wide + i] = row[(r - first) * step + p + 2 * i];
}

static void fill_tile(const kelp_conv *conv, const float *x, int64_t row, float *tile) {
    const kelp_conv_window *w = &conv->shape.window;
    const kelp_conv_direct *f = &conv->blocking.direct;
    int64_t down[MAX_PHASES], across[MAX_PHASES], top = row * w->stride[1] - w->before[1];
    phases(w, 1, down);
    phases(w, 2, across);
    for (int64_t c = 0; c < conv->shape.in_channels; c++, x += w->in_size)
        for (int64_t p = 0; p < w->stride[1]; p++)
            if (down[p] >= 0) {
                fill_phase(conv, x, top + p, across, tile);
                tile += f->across * f->high * f->wide;
            }
}

/* Prefetches the weights of the next tile to the second-level cache. */
static void fetch_rows(const kelp_float_u *weights, int64_t stride, int64_t rows, int64_t count) {
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < count; j += LANES)
            __builtin_prefetch((const void *)(weights + i * stride + j), 0, 2);
}

/* Multiplies the weights of output channels from `first` by the tile. The rows of weights are
 * gathered first: a power of two apart they would evict each other from the cache. */
static void multiply(const kelp_conv *conv, int64_t first, int64_t channels, const float *x,
                     int64_t columns, float *gathered, float *result, int64_t ldc) {
    int64_t depth = conv->shape.in_channels * conv->shape.window.kernel_size,
            height = conv->kernels->tile_rows;
    int64_t tiles = kelp_divide_up(channels, height);
    height = kelp_divide_up(channels, tiles); /* of equal height */
    const kelp_float_u *weights = (const kelp_float_u *)conv->weights + first * depth;
    for (int64_t k = 0; k < depth; k += KELP_GEMM_DEPTH) {
        kelp_conv_direct_block block = {.a = gathered,
                                        .x = x,
                                        .offset = (const int32_t *)(const void *)conv->scratch + k,
                                        .lda = GATHERED_STEP,
                                        .ldc = ldc,
                                        .n = columns,
                                        .k = KELP_MIN((int64_t)KELP_GEMM_DEPTH, depth - k),
                                        .accumulate = k > 0};
        for (int64_t row = 0; row < channels; row += height) {
            block.m = KELP_MIN(height, channels - row);
            block.c = result + row * ldc;
            for (int64_t i = 0; i < block.m; i++)
                memcpy(gathered + i * GATHERED_STEP, weights + (row + i) * depth + k,
                       (size_t)block.k * sizeof *gathered);
            if (row + height < channels)
                fetch_rows(weights + (row + height) * depth + k, depth,
                           KELP_MIN(height, channels - row - height), block.k);
            else
                fetch_rows(weights + k + block.k, depth, height,
                           KELP_MIN((int64_t)KELP_GEMM_DEPTH, depth - k - block.k));
            conv->kernels->direct(&block);
        }
    }
}

/* Runs units, each one strip of one slice of one group of one image. Units of a slice are
 * adjacent. */
static void strips(void *userp, int64_t begin, int64_t end, int worker) {
    const kelp_elementwise_kernels *elementwise = kelp_elementwise_kernels_get();
    const kelp_conv *conv = userp;
    const kelp_conv_window *w = &conv->shape.window;
    const kelp_conv_direct *f = &conv->blocking.direct;
    float *tile = kelp_conv_worker_scratch(conv, worker), *gathered = tile + f->tile_floats;
    float *result = gathered + TILE_ROWS * GATHERED_STEP;
    int64_t strips_each = kelp_divide_up(w->out[1], f->strip);
    int64_t images = conv->shape.batch * conv->shape.groups;
    for (int64_t unit = begin; unit < end; unit++) {
        int64_t image = unit / strips_each % images, group = image % conv->shape.groups;
        int64_t skipped = unit / strips_each / images * f->slice;
        int64_t channels = KELP_MIN(f->slice, conv->shape.out_channels - skipped);
        int64_t first = group * conv->shape.out_channels + skipped;
        int64_t row = unit % strips_each * f->strip, rows = KELP_MIN(f->strip, w->out[1] - row);
        const float *x = conv->x + image * conv->shape.in_channels * w->in_size;
        if (!f->bare)
            fill_tile(conv, x, row, tile);
        int64_t columns = (rows - 1) * f->wide + w->out[2];
        int64_t ldc = kelp_round_up(columns, 2 * LANES);
        multiply(conv, first, channels, f->bare ? x + row * f->wide : tile, columns, gathered,
                 result, ldc);
        int64_t to = (image * conv->shape.out_channels + skipped) * w->out_size + row * w->out[2];
        for (int64_t c = 0; c < channels; c++, to += w->out_size)
            elementwise->finish_rows(
                &(kelp_finish){.from = result + c * ldc,
                               .residual = conv->residual != NULL ? conv->residual + to : NULL,
                               .to = conv->y + to,
                               .from_step = f->wide,
                               .to_step = w->out[2],
                               .rows = rows,
                               .width = w->out[2],
                               .bias = conv->bias != NULL ? conv->bias[first + c] : 0.0f},
                conv->act);
    }
}

static void run(const kelp_op_env *env, kelp_conv *conv) {
    const kelp_conv_shape *shape = &conv->shape;
    const kelp_conv_window *w = &shape->window;
    const kelp_conv_direct *f = &conv->blocking.direct;
    KELP_ASSERT(f->strip > 0 && f->slice > 0 && conv->scratch != NULL);
    KELP_ASSERT(conv->x != NULL && conv->weights != NULL && conv->y != NULL);
    fill_offsets(conv, (int32_t *)(void *)conv->scratch);
    int64_t work = shape->in_channels * w->kernel_size * f->slice * w->out[2] * f->strip;
    kelp_op_parallel(env,
                     shape->batch * shape->groups * kelp_divide_up(w->out[1], f->strip) * f->slices,
                     kelp_cpu_grain(KELP_GRAIN_TILES, work), strips, conv);
}

const kelp_conv_algorithm kelp_conv_direct_gemm = {.name = "direct_gemm",
                                                   .is_applicable = is_applicable,
                                                   .is_profitable = is_profitable,
                                                   .reserve = reserve,
                                                   .run = run};
