/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bfloat16 convolutions over NHWC. The pixels that one kernel position reads for a row of outputs
 * are equally spaced, so that they are the left operand of a GEMM in place; a panel of 32 output
 * channels is the right one. Only images with borders are copied to a padded tile, and floats
 * (NCHW) are transposed to one. Results are finished with bias, residual and activation in the
 * registers; floats are transposed to NCHW after that.
 */
#include "base/assert.h"
#include "cpu/kernels/conv/conv_bf16.h"
#include "cpu/kernels/layout/layout_kernels.h"
#include "cpu/kernels/tuning.h"

#define PANEL KELP_BF16_COLUMNS
/* Pixels and pairs of channels that are transposed at a time. */
#define TRANSPOSED 64
#define MAX_SIZE (1 << 20)

typedef struct unit {
    int64_t image, row, rows, column, columns; /* of the result */
    int64_t channel, channels;
} unit;

/* Address of the first pixel of a unit, and distances in elements of bfloat16. */
typedef struct place {
    const uint16_t *first;
    int64_t pixel, row;
} place;

/* ---- sizes ---- */
/* Returns the input along an axis that `count` outputs read. */
static int64_t seen(const kelp_conv_window *w, int axis, int64_t count) {
    return (count - 1) * w->stride[axis] + (w->kernel[axis] - 1) * w->dilation[axis] + 1;
}

static bool has_borders(const kelp_conv_window *w) {
    return w->before[1] > 0 || w->before[2] > 0 || seen(w, 1, w->out[1]) > w->in[1] ||
           seen(w, 2, w->out[2]) > w->in[2];
}

/* Makes the image one row if each pixel of the result reads one pixel of input. */
static void flatten(kelp_conv_window *w) {
    kelp_window_make_row(w);
    if (w->kernel_size != 1 || w->stride[1] != 1 || w->stride[2] != 1 || has_borders(w) ||
        w->in[1] != w->out[1] || w->in[2] != w->out[2])
        return;
    w->in[2] = w->out[2] = w->out_size;
    w->in[1] = w->out[1] = 1;
}

/* Returns the bytes of input that a row of the result adds, or a column if there is one row. */
static int64_t line_bytes(const kelp_conv_bf16_nhwc *p) {
    const kelp_conv_window *w = &p->w;
    return w->out[1] > 1 ? w->stride[1] * w->in[2] * p->channels * 2
                         : w->stride[2] * p->channels * 2;
}

/* Chooses strips that stay in cache, then divides the longer side until all threads have units. */
static void choose_units(kelp_conv_bf16_nhwc *p, const kelp_conv_bf16 *conv, int64_t threads) {
    const kelp_conv_window *w = &p->w;
    int64_t lines = w->out[1] > 1 ? w->out[1] : w->out[2];
    int64_t min_lines =
        w->out[1] > 1 ? kelp_divide_up(2 * KELP_BF16_ROWS, w->out[2]) : 4 * KELP_BF16_ROWS;
    int64_t strip = KELP_MAX(min_lines, KELP_BF16_NHWC_BYTES / KELP_MAX((int64_t)1, line_bytes(p)));
    int64_t panels = kelp_divide_up(conv->shape.out_channels, PANEL),
            wanted = threads > 1 ? KELP_BF16_UNITS * threads : 1;
    int64_t strips = kelp_divide_up(lines, KELP_MIN(strip, lines));
    int64_t weights = conv->shape.out_channels * p->channels * w->kernel_size;
    bool across_first = weights > w->in_size * p->channels;
    p->across = 1;
    if (across_first)
        p->across = KELP_MIN(panels, kelp_divide_up(wanted, conv->shape.batch * strips));
    if (conv->shape.batch * strips * p->across < wanted)
        strips = KELP_MAX(strips, KELP_MIN(kelp_divide_up(wanted, conv->shape.batch * p->across),
                                           kelp_divide_up(lines, min_lines)));
    if (!across_first)
        p->across = KELP_MIN(panels, kelp_divide_up(wanted, conv->shape.batch * strips));
    strip = kelp_divide_up(lines, strips);
    p->rows = w->out[1] > 1 ? strip : 1;
    p->columns = w->out[1] > 1 ? w->out[2] : strip;
    p->down = kelp_divide_up(w->out[1], p->rows);
    p->across_image = kelp_divide_up(w->out[2], p->columns);
    p->part = kelp_divide_up(panels, p->across);
    p->across = kelp_divide_up(panels, p->part);
}

static bool sizes_fit(const kelp_conv_window *w, int64_t channels, int64_t out_channels) {
    int64_t all = 0;
    for (int axis = 1; axis <= 2; axis++)
        if (w->kernel[axis] > MAX_SIZE || w->dilation[axis] > MAX_SIZE ||
            w->stride[axis] > MAX_SIZE || w->before[axis] > MAX_SIZE ||
            w->out[axis] > INT64_MAX >> 24)
            return false;
    return kelp_i64_mul(seen(w, 1, w->out[1]), seen(w, 2, w->out[2]), &all) &&
           kelp_i64_mul(all, channels, &all) && kelp_i64_mul(all, 16, &all) &&
           kelp_i64_mul(w->out_size, out_channels + PANEL, &all) && kelp_i64_mul(all, 16, &all);
}

static int64_t to_lines(int64_t bytes) {
    return kelp_round_up(bytes, 64);
}

static bool is_applicable(const kelp_conv_bf16 *conv) {
    return conv->x_is_bf16 || conv->y_is_bf16 || conv->residual_is_bf16;
}

static bool reserve(kelp_conv_bf16 *conv) {
    kelp_conv_bf16_nhwc *p = &conv->blocking.nhwc;
    const kelp_conv_shape *s = &conv->shape;
    KELP_ASSERT(s->groups == 1);
    *p = (kelp_conv_bf16_nhwc){.w = s->window, .channels = kelp_round_up(s->in_channels, 2)};
    if (!sizes_fit(&p->w, p->channels, s->out_channels))
        return false;
    flatten(&p->w);
    p->padded = !conv->x_is_bf16 || has_borders(&p->w);
    choose_units(p, conv, conv->threads);
    p->taps = p->w.dilation[2] == 1 ? p->w.kernel[1] : p->w.kernel_size;
    p->wide = p->padded ? seen(&p->w, 2, p->columns) : p->w.in[2];
    p->tile = p->padded ? to_lines(seen(&p->w, 1, p->rows) * p->wide * p->channels * 2) : 0;
    bool floats = !conv->y_is_bf16 || (conv->act != KELP_ACT_NONE && conv->act != KELP_ACT_RELU);
    p->result_bytes = floats ? to_lines(p->rows * p->columns * PANEL * (int64_t)sizeof(float)) : 0;
    conv->worker_bytes =
        p->tile + KELP_MAX(p->result_bytes, (int64_t)(TRANSPOSED * TRANSPOSED * sizeof(float)));
    conv->shared_bytes = to_lines(p->taps * (int64_t)sizeof(int64_t));
    return true;
}

/* ---- tile ---- */
/* Converts `count` pixels of NCHW floats at x to NHWC bfloat16 at `to`. */
static void to_nhwc(const kelp_conv_bf16 *conv, const float *x, int64_t count, uint16_t *to,
                    void *scratch) {
    const kelp_layout_kernels *layout = kelp_layout_kernels_get();
    int64_t channels = conv->shape.in_channels, plane = conv->shape.window.in_size,
            pairs = conv->blocking.nhwc.channels / 2;
    kelp_bf16_pair *some = scratch;
    for (int64_t at = 0; at < count; at += TRANSPOSED) {
        int64_t wide = KELP_MIN((int64_t)TRANSPOSED, count - at);
        for (int64_t s = 0; s < pairs; s += TRANSPOSED) {
            int64_t high = KELP_MIN((int64_t)TRANSPOSED, pairs - s);
            for (int64_t i = 0; i < high; i++) {
                const float *even = x + 2 * (s + i) * plane + at;
                bool both = 2 * (s + i) + 1 < channels;
                conv->kernels->pairs(even, both ? even + plane : NULL, 0, 1, 1, wide,
                                     some + i * TRANSPOSED, 0);
            }
            layout->transpose((float *)(void *)(to + at * conv->blocking.nhwc.channels + 2 * s),
                              pairs, (const float *)(const void *)some, TRANSPOSED, high, wide);
        }
    }
}

/* Copies the input of a unit to a tile, with zeros as padding. */
static void fill_tile(const kelp_conv_bf16 *conv, const unit *u, uint16_t *tile, void *scratch) {
    const kelp_conv_window *w = &conv->blocking.nhwc.w;
    int64_t channels = conv->blocking.nhwc.channels, high = seen(w, 1, u->rows),
            wide = conv->blocking.nhwc.wide;
    int64_t y = u->row * w->stride[1] - w->before[1], x = u->column * w->stride[2] - w->before[2];
    int64_t left = KELP_MIN(wide, KELP_MAX((int64_t)0, -x));
    int64_t right = KELP_MAX(left, KELP_MIN(wide, w->in[2] - x));
    for (int64_t r = 0; r < high; r++, y++) {
        uint16_t *to = tile + r * wide * channels;
        bool inside = y >= 0 && y < w->in[1] && right > left;
        int64_t first = inside ? left : wide, last = inside ? right : wide;
        memset(to, 0, (size_t)(first * channels) * sizeof *to);
        memset(to + last * channels, 0, (size_t)((wide - last) * channels) * sizeof *to);
        if (!inside)
            continue;
        int64_t at = y * w->in[2] + x + left;
        to += left * channels;
        if (conv->x_is_bf16)
            memcpy(to, (const uint16_t *)conv->x + (u->image * w->in_size + at) * channels,
                   (size_t)((right - left) * channels) * sizeof *to);
        else
            to_nhwc(conv,
                    (const float *)conv->x + u->image * w->in_size * conv->shape.in_channels + at,
                    right - left, to, scratch);
    }
}

/* ---- run ---- */
static unit unit_of(const kelp_conv_bf16 *conv, int64_t index) {
    const kelp_conv_bf16_nhwc *p = &conv->blocking.nhwc;
    unit u = {.channel = index % p->across * p->part * PANEL};
    index /= p->across;
    u.channels = KELP_MIN(p->part * PANEL, conv->shape.out_channels - u.channel);
    u.column = index % p->across_image * p->columns;
    u.columns = KELP_MIN(p->columns, p->w.out[2] - u.column);
    index /= p->across_image;
    u.row = index % p->down * p->rows;
    u.rows = KELP_MIN(p->rows, p->w.out[1] - u.row);
    u.image = index / p->down;
    return u;
}

static void fill_taps(const kelp_conv_bf16_nhwc *p, int64_t *taps) {
    const kelp_conv_window *w = &p->w;
    for (int64_t a = 0; a < w->kernel[1]; a++)
        for (int64_t b = 0; b < p->taps / w->kernel[1]; b++)
            *taps++ = (a * w->dilation[1] * p->wide + b * w->dilation[2]) * p->channels;
}

/* Stores the results of a panel, NHWC floats, in y: NHWC bfloat16 or NCHW floats. */
static void put_floats(const kelp_conv_bf16 *conv, const unit *u, int64_t channel, int64_t count,
                       float *from) {
    const kelp_elementwise_kernels *elementwise = kelp_elementwise_kernels_get();
    const kelp_layout_kernels *layout = kelp_layout_kernels_get();
    int64_t pixels = u->rows * u->columns, size = conv->shape.window.out_size;
    int64_t first = u->row * conv->blocking.nhwc.w.out[2] + u->column;
    bool add = conv->residual != NULL && !conv->residual_is_bf16;
    bool ends = conv->act != KELP_ACT_NONE && (add || conv->act != KELP_ACT_RELU);
    if (conv->y_is_bf16) {
        uint16_t *to = (uint16_t *)conv->y + (u->image * size + first) * conv->shape.out_channels;
        elementwise->finish(from, NULL, 0.0f, NULL, pixels * PANEL, conv->act);
        for (int64_t i = 0; i < pixels; i++)
            conv->kernels->narrow(from + i * PANEL, count,
                                  (void *)(to + i * conv->shape.out_channels + channel));
        return;
    }
    int64_t at = (u->image * conv->shape.out_channels + channel) * size + first;
    layout->transpose((float *)conv->y + at, size, from, PANEL, pixels, count);
    for (int64_t c = 0; c < count && (add || ends); c++, at += size)
        elementwise->finish((float *)conv->y + at, NULL, 0.0f,
                            add ? (const float *)conv->residual + at : NULL, pixels, conv->act);
}

static void run_panel(const kelp_conv_bf16 *conv, const unit *u, const place *x, int64_t channel,
                      float *floats_of_panel) {
    const kelp_conv_window *w = &conv->blocking.nhwc.w;
    int64_t out = conv->shape.out_channels, pairs = conv->blocking.nhwc.channels / 2;
    int64_t to = (u->image * w->out_size + u->row * w->out[2] + u->column) * out + channel;
    bool floats = conv->blocking.nhwc.result_bytes > 0;
    kelp_bf16_pixels pixels = {.b = conv->weights + channel * pairs * w->kernel_size,
                               .pixel = x->pixel,
                               .m = u->columns,
                               .n = KELP_MIN((int64_t)PANEL, u->channel + u->channels - channel),
                               .steps = pairs * w->kernel_size / conv->blocking.nhwc.taps,
                               .taps = conv->blocking.nhwc.taps,
                               .tap = conv->scratch,
                               .bias = conv->bias != NULL ? conv->bias + channel : NULL,
                               .residual_step = out,
                               .c_step = floats ? PANEL : out,
                               .relu = conv->act == KELP_ACT_RELU &&
                                       (conv->residual == NULL || conv->residual_is_bf16)};
    for (int64_t r = 0; r < u->rows; r++, to += w->out[2] * out) {
        pixels.a = x->first + r * x->row;
        pixels.residual = conv->residual_is_bf16 ? (const uint16_t *)conv->residual + to : NULL;
        pixels.c = floats ? floats_of_panel + r * u->columns * PANEL : NULL;
        pixels.half = floats ? NULL : (uint16_t *)conv->y + to;
        conv->kernels->pixels(&pixels);
    }
    if (floats)
        put_floats(conv, u, channel, pixels.n, floats_of_panel);
}

/* Runs one unit. `fresh`: the tile does not hold its input yet. */
static void run_unit(const kelp_conv_bf16 *conv, const unit *u, bool fresh, char *scratch) {
    const kelp_conv_bf16_nhwc *p = &conv->blocking.nhwc;
    const kelp_conv_window *w = &p->w;
    place x = {.pixel = w->stride[2] * p->channels, .row = w->stride[1] * p->wide * p->channels};
    if (p->padded) {
        if (fresh)
            fill_tile(conv, u, (uint16_t *)(void *)scratch, scratch + p->tile);
        x.first = (const uint16_t *)(const void *)scratch;
    } else {
        int64_t at = u->row * w->stride[1] * w->in[2] + u->column * w->stride[2];
        x.first = (const uint16_t *)conv->x + (u->image * w->in_size + at) * p->channels;
    }
    for (int64_t c = 0; c < u->channels; c += PANEL)
        run_panel(conv, u, &x, u->channel + c, (float *)(void *)(scratch + p->tile));
}

static void run_range(void *userp, int64_t begin, int64_t end, int worker) {
    const kelp_conv_bf16 *conv = userp;
    char *scratch = (char *)conv->scratch + conv->shared_bytes + worker * conv->worker_bytes;
    for (int64_t index = begin; index < end; index++) {
        unit u = unit_of(conv, index);
        run_unit(conv, &u, index == begin || index % conv->blocking.nhwc.across == 0, scratch);
    }
}

static void run(const kelp_op_env *env, kelp_conv_bf16 *conv) {
    const kelp_conv_bf16_nhwc *p = &conv->blocking.nhwc;
    KELP_ASSERT(conv->shape.groups == 1 && p->channels % 2 == 0 && conv->weights != NULL);
    KELP_ASSERT(conv->x != NULL && conv->y != NULL && conv->scratch != NULL);
    fill_taps(p, conv->scratch);
    int64_t units = conv->shape.batch * p->down * p->across_image * p->across;
    double work = (double)p->channels * (double)p->w.kernel_size * (double)p->w.out_size *
                  (double)conv->shape.out_channels * (double)conv->shape.batch / (double)units;
    kelp_op_parallel(env, units, kelp_cpu_grain_f64(KELP_GRAIN_NARROW_TILES, work), run_range,
                     conv);
}

const kelp_conv_bf16_algorithm kelp_conv_bf16_nhwc_gemm = {.name = "bf16_nhwc_gemm",
                                                           .layout = KELP_CONV_BF16_TAPS_FIRST,
                                                           .is_applicable = is_applicable,
                                                           .reserve = reserve,
                                                           .run = run};
