/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ConvBf16 between nodes of its kind: channels lie side by side, so that a kernel position is a
 * pixel further on, and a row of output pixels times a panel of 32 output channels is a product of
 * what lies there already. Only borders are copied into a frame, and floats, channel after channel
 * as other nodes leave them, turned into one. Results go where the next such node reads them, with
 * bias, residual and activation, from the registers; or, as floats, they are turned.
 */
#include "cpu/ops/conv/conv_bf16.h"

#define PANEL KELP_BF16_COLUMNS
/* Bytes of input a unit works on while panels come and go: a part of the second cache. */
#define STRIP_BYTES (384 << 10)
/* Units for each thread: one that is held up leaves the others little to wait for. */
#define UNITS 8
/* Pixels and pairs of channels that are turned at a time. */
#define TURN 64

typedef struct job {
    const kelp_bf16_conv *conv;
    const kelp_bf16_pixel_plan *p;
    const kelp_op_args *args;
    const kelp_bf16 *table;
    const kelp_simd *simd;
    const int64_t *taps;
} job;

typedef struct unit {
    int64_t image, row, rows, column, columns; /* of the result */
    int64_t channel, channels;
} unit;

/* Where the pixels of a unit lie, in elements of bfloat16. */
typedef struct place {
    const uint16_t *first;
    int64_t pixel, row;
} place;

static int64_t divide_up(int64_t value, int64_t by) {
    return (value + by - 1) / by;
}

/* ---- sizes ---- */
/* Input along an axis that `count` outputs see. */
static int64_t seen(const kelp_window *w, int axis, int64_t count) {
    return (count - 1) * w->stride[axis] + (w->kernel[axis] - 1) * w->dilation[axis] + 1;
}

static bool has_borders(const kelp_window *w) {
    return w->before[1] > 0 || w->before[2] > 0 || seen(w, 1, w->out[1]) > w->in[1] ||
           seen(w, 2, w->out[2]) > w->in[2];
}

/* One pixel of input for each of the result: rows need not be told apart. */
static void straighten(kelp_window *w) {
    kelp_window_lay_down(w);
    if (w->kernel_size != 1 || w->stride[1] != 1 || w->stride[2] != 1 || has_borders(w) ||
        w->in[1] != w->out[1] || w->in[2] != w->out[2])
        return;
    w->in[2] = w->out[2] = w->out_size;
    w->in[1] = w->out[1] = 1;
}

/* Bytes of input that a row of the result adds, or a column where there is one row. */
static int64_t line_bytes(const kelp_bf16_pixel_plan *p) {
    const kelp_window *w = &p->w;
    return w->out[1] > 1 ? w->stride[1] * w->in[2] * p->channels * 2
                         : w->stride[2] * p->channels * 2;
}

/* Strips that stay in cache; then parts of the longer side until all threads have some. */
static void choose_units(kelp_bf16_pixel_plan *p, const kelp_bf16_conv *conv, int64_t threads) {
    const kelp_window *w = &p->w;
    int64_t lines = w->out[1] > 1 ? w->out[1] : w->out[2];
    int64_t least = w->out[1] > 1 ? divide_up(2 * KELP_BF16_ROWS, w->out[2]) : 4 * KELP_BF16_ROWS;
    int64_t strip = KELP_MAX(least, STRIP_BYTES / KELP_MAX((int64_t)1, line_bytes(p)));
    int64_t panels = divide_up(conv->out_channels, PANEL),
            wanted = threads > 1 ? UNITS * threads : 1;
    int64_t strips = divide_up(lines, KELP_MIN(strip, lines));
    int64_t weights = conv->out_channels * p->channels * w->kernel_size;
    bool across_first = weights > w->in_size * p->channels;
    p->across = 1;
    if (across_first)
        p->across = KELP_MIN(panels, divide_up(wanted, conv->batch * strips));
    if (conv->batch * strips * p->across < wanted)
        strips = KELP_MAX(
            strips, KELP_MIN(divide_up(wanted, conv->batch * p->across), divide_up(lines, least)));
    if (!across_first)
        p->across = KELP_MIN(panels, divide_up(wanted, conv->batch * strips));
    strip = divide_up(lines, strips);
    p->rows = w->out[1] > 1 ? strip : 1;
    p->columns = w->out[1] > 1 ? w->out[2] : strip;
    p->down = divide_up(w->out[1], p->rows);
    p->beside = divide_up(w->out[2], p->columns);
    p->part = divide_up(panels, p->across);
    p->across = divide_up(panels, p->part);
}

static kelp_status *too_large(const kelp_op_args *args) {
    return kelp_ops_bad_shapes(args, args->inputs[0], args->inputs[1], "the kernel is too large");
}

static bool sizes_fit(const kelp_window *w, int64_t channels, int64_t out_channels) {
    int64_t all = 0;
    for (int axis = 1; axis <= 2; axis++)
        if (w->kernel[axis] > 1 << 20 || w->dilation[axis] > 1 << 20 || w->stride[axis] > 1 << 20 ||
            w->before[axis] > 1 << 20 || w->out[axis] > INT64_MAX >> 24)
            return false;
    return kelp_i64_mul(seen(w, 1, w->out[1]), seen(w, 2, w->out[2]), &all) &&
           kelp_i64_mul(all, channels, &all) && kelp_i64_mul(all, 16, &all) &&
           kelp_i64_mul(w->out_size, out_channels + PANEL, &all) && kelp_i64_mul(all, 16, &all);
}

static int64_t to_lines(int64_t bytes) {
    return divide_up(bytes, 64) * 64;
}

kelp_status *kelp_bf16_pixels_reshape(const kelp_bf16_conv *conv, const void *state,
                                      kelp_op_args *args, kelp_bf16_pixel_plan *p) {
    int64_t all = 0, threads = kelp_op_env_threads(args->env);
    const kelp_tensor *residual = kelp_ops_in(args, 3);
    if (conv->groups != 1 || (conv->x_half && conv->in_channels % 2 != 0) ||
        (conv->half && (conv->out_channels % 2 != 0 || (residual != NULL && !conv->residual_half))))
        return kelp_ops_bad_shapes(args, args->inputs[0], args->inputs[1],
                                   "bfloat16 in between takes even channels of one group");
    p->w = conv->w;
    p->channels = divide_up(conv->in_channels, 2) * 2;
    if (!sizes_fit(&p->w, p->channels, conv->out_channels))
        return too_large(args);
    straighten(&p->w);
    p->framed = !conv->x_half || has_borders(&p->w);
    KELP_TRY(kelp_bf16_conv_taps_first(state, &p->panels));
    choose_units(p, conv, threads);
    p->taps = p->w.dilation[2] == 1 ? p->w.kernel[1] : p->w.kernel_size;
    p->wide = p->framed ? seen(&p->w, 2, p->columns) : p->w.in[2];
    p->frame = p->framed ? to_lines(seen(&p->w, 1, p->rows) * p->wide * p->channels * 2) : 0;
    bool as_floats = !conv->half || (conv->act != KELP_ACT_NONE && conv->act != KELP_ACT_RELU);
    p->turned = as_floats ? to_lines(p->rows * p->columns * PANEL * (int64_t)sizeof(float)) : 0;
    p->worker_bytes = p->frame + KELP_MAX(p->turned, (int64_t)(TURN * TURN * sizeof(float)));
    if (!kelp_i64_mul(p->worker_bytes, threads, &all))
        return too_large(args);
    KELP_TRY(kelp_ops_scratch(args, p->taps, sizeof(int64_t), &p->taps_offset));
    return kelp_ops_scratch(args, all, 1, &p->offset);
}

/* ---- frame ---- */
/* `count` pixels of floats from x on, a plane for each channel, become pixels of pairs at `to`. */
static void turn_pixels(const job *j, const float *x, int64_t count, uint16_t *to, void *room) {
    int64_t channels = j->conv->in_channels, plane = j->conv->w.in_size, pairs = j->p->channels / 2;
    kelp_bf16_pair *some = room;
    for (int64_t at = 0; at < count; at += TURN) {
        int64_t wide = KELP_MIN((int64_t)TURN, count - at);
        for (int64_t s = 0; s < pairs; s += TURN) {
            int64_t high = KELP_MIN((int64_t)TURN, pairs - s);
            for (int64_t i = 0; i < high; i++) {
                const float *even = x + 2 * (s + i) * plane + at;
                bool both = 2 * (s + i) + 1 < channels;
                j->table->pairs(even, both ? even + plane : NULL, 0, 1, 1, wide, some + i * TURN,
                                0);
            }
            j->simd->turn((float *)(void *)(to + at * j->p->channels + 2 * s), pairs,
                          (const float *)(const void *)some, TURN, high, wide);
        }
    }
}

/* What a unit sees of the input, zeros around it. */
static void fill_frame(const job *j, const unit *u, uint16_t *frame, void *room) {
    const kelp_window *w = &j->p->w;
    int64_t channels = j->p->channels, high = seen(w, 1, u->rows), wide = j->p->wide;
    int64_t y = u->row * w->stride[1] - w->before[1], x = u->column * w->stride[2] - w->before[2];
    int64_t left = KELP_MIN(wide, KELP_MAX((int64_t)0, -x));
    int64_t right = KELP_MAX(left, KELP_MIN(wide, w->in[2] - x));
    const kelp_tensor *input = j->args->inputs[0];
    for (int64_t r = 0; r < high; r++, y++) {
        uint16_t *to = frame + r * wide * channels;
        bool inside = y >= 0 && y < w->in[1] && right > left;
        int64_t first = inside ? left : wide, last = inside ? right : wide;
        memset(to, 0, (size_t)(first * channels) * sizeof *to);
        memset(to + last * channels, 0, (size_t)((wide - last) * channels) * sizeof *to);
        if (!inside)
            continue;
        int64_t at = y * w->in[2] + x + left;
        to += left * channels;
        if (j->conv->x_half)
            memcpy(to, (const uint16_t *)input->data + (u->image * w->in_size + at) * channels,
                   (size_t)((right - left) * channels) * sizeof *to);
        else
            turn_pixels(
                j, (const float *)input->data + u->image * w->in_size * j->conv->in_channels + at,
                right - left, to, room);
    }
}

/* ---- run ---- */
static unit unit_of(const job *j, int64_t index) {
    const kelp_bf16_pixel_plan *p = j->p;
    unit u = {.channel = index % p->across * p->part * PANEL};
    index /= p->across;
    u.channels = KELP_MIN(p->part * PANEL, j->conv->out_channels - u.channel);
    u.column = index % p->beside * p->columns;
    u.columns = KELP_MIN(p->columns, p->w.out[2] - u.column);
    index /= p->beside;
    u.row = index % p->down * p->rows;
    u.rows = KELP_MIN(p->rows, p->w.out[1] - u.row);
    u.image = index / p->down;
    return u;
}

static void fill_taps(const kelp_bf16_pixel_plan *p, int64_t *taps) {
    const kelp_window *w = &p->w;
    for (int64_t a = 0; a < w->kernel[1]; a++)
        for (int64_t b = 0; b < p->taps / w->kernel[1]; b++)
            *taps++ = (a * w->dilation[1] * p->wide + b * w->dilation[2]) * p->channels;
}

/* Results of a panel, as floats one pixel after the other, become the result's. */
static void put_floats(const job *j, const unit *u, int64_t channel, int64_t count, float *from) {
    const kelp_bf16_conv *conv = j->conv;
    const kelp_tensor *residual = kelp_ops_in(j->args, 3), *y = j->args->outputs[0];
    int64_t pixels = u->rows * u->columns, size = conv->w.out_size;
    int64_t first = u->row * j->p->w.out[2] + u->column;
    bool add = residual != NULL && !conv->residual_half;
    bool ends = conv->act != KELP_ACT_NONE && (add || conv->act != KELP_ACT_RELU);
    if (conv->half) {
        uint16_t *to = (uint16_t *)y->data + (u->image * size + first) * conv->out_channels;
        j->simd->finish(from, NULL, 0.0f, NULL, pixels * PANEL, conv->act);
        for (int64_t i = 0; i < pixels; i++)
            j->table->narrow(from + i * PANEL, count,
                             (void *)(to + i * conv->out_channels + channel));
        return;
    }
    int64_t at = (u->image * conv->out_channels + channel) * size + first;
    j->simd->turn((float *)y->data + at, size, from, PANEL, pixels, count);
    for (int64_t c = 0; c < count && (add || ends); c++, at += size)
        j->simd->finish((float *)y->data + at, NULL, 0.0f,
                        add ? (const float *)residual->data + at : NULL, pixels, conv->act);
}

static void run_panel(const job *j, const unit *u, const place *x, int64_t channel, float *turned) {
    const kelp_bf16_conv *conv = j->conv;
    const kelp_window *w = &j->p->w;
    const kelp_tensor *bias = kelp_ops_in(j->args, 2), *residual = kelp_ops_in(j->args, 3);
    int64_t out = conv->out_channels, pairs = j->p->channels / 2;
    int64_t to = (u->image * w->out_size + u->row * w->out[2] + u->column) * out + channel;
    bool floats = j->p->turned > 0;
    kelp_bf16_pixels product = {.b = j->p->panels + channel * pairs * w->kernel_size,
                                .pixel = x->pixel,
                                .m = u->columns,
                                .n = KELP_MIN((int64_t)PANEL, u->channel + u->channels - channel),
                                .steps = pairs * w->kernel_size / j->p->taps,
                                .taps = j->p->taps,
                                .tap = j->taps,
                                .bias = bias != NULL ? (const float *)bias->data + channel : NULL,
                                .residual_step = out,
                                .c_step = floats ? PANEL : out,
                                .relu = conv->act == KELP_ACT_RELU &&
                                        (residual == NULL || conv->residual_half)};
    for (int64_t r = 0; r < u->rows; r++, to += w->out[2] * out) {
        product.a = x->first + r * x->row;
        product.residual = conv->residual_half ? (const uint16_t *)residual->data + to : NULL;
        product.c = floats ? turned + r * u->columns * PANEL : NULL;
        product.half = floats ? NULL : (uint16_t *)j->args->outputs[0]->data + to;
        j->table->pixels(&product);
    }
    if (floats)
        put_floats(j, u, channel, product.n, turned);
}

/* `fresh`: the frame does not hold this input yet. */
static void run_unit(const job *j, const unit *u, bool fresh, char *room) {
    const kelp_bf16_pixel_plan *p = j->p;
    const kelp_window *w = &p->w;
    place x = {.pixel = w->stride[2] * p->channels, .row = w->stride[1] * p->wide * p->channels};
    if (p->framed) {
        if (fresh)
            fill_frame(j, u, (uint16_t *)(void *)room, room + p->frame);
        x.first = (const uint16_t *)(const void *)room;
    } else {
        int64_t at = u->row * w->stride[1] * w->in[2] + u->column * w->stride[2];
        x.first =
            (const uint16_t *)j->args->inputs[0]->data + (u->image * w->in_size + at) * p->channels;
    }
    for (int64_t c = 0; c < u->channels; c += PANEL)
        run_panel(j, u, &x, u->channel + c, (float *)(void *)(room + p->frame));
}

static void run_range(void *userp, int64_t begin, int64_t end, int worker) {
    const job *j = userp;
    char *room = (char *)j->args->scratch + j->p->offset + worker * j->p->worker_bytes;
    for (int64_t index = begin; index < end; index++) {
        unit u = unit_of(j, index);
        run_unit(j, &u, index == begin || index % j->p->across == 0, room);
    }
}

void kelp_bf16_pixels_run(const kelp_bf16_conv *conv, const kelp_bf16_pixel_plan *p,
                          const kelp_op_args *args) {
    int64_t *taps = (int64_t *)(void *)((char *)args->scratch + p->taps_offset);
    job j = {.conv = conv,
             .p = p,
             .args = args,
             .table = kelp_bf16_get(),
             .simd = kelp_simd_get(),
             .taps = taps};
    fill_taps(p, taps);
    int64_t units = conv->batch * p->down * p->beside * p->across;
    double work = (double)p->channels * (double)p->w.kernel_size * (double)p->w.out_size *
                  (double)conv->out_channels * (double)conv->batch / (double)units;
    /* some four million multiplications are 20 µs */
    kelp_op_parallel(args->env, units, work < 2e6 ? (int64_t)(2e6 / (work + 1)) + 1 : 1, run_range,
                     &j);
}
