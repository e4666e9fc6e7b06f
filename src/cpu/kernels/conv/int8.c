/* SPDX-License-Identifier: Apache-2.0 */
/* int8 convolutions over NHWC images. Source: ONNX operator specification, QLinearConv. */
#include "base/assert.h"
#include "cpu/kernels/conv/conv_int8.h"
#include "cpu/kernels/tuning.h"

#include <string.h>

#define ROWS KELP_INT8_CONV_ROWS /* output positions of a unit */

/* ---- sizes ---- */
bool kelp_conv_int8_plan_images(kelp_conv_int8 *conv) {
    const kelp_conv_window *w = &conv->shape.window;
    int64_t channels = conv->shape.groups * conv->shape.in_channels;
    conv->padded = false;
    conv->padded_bytes = channels;
    for (int i = 0; i < KELP_WINDOW_AXES; i++) {
        /* exactly the pixels that windows read, also beyond the padding */
        int64_t padded_size =
            (w->out[i] - 1) * w->stride[i] + (w->kernel[i] - 1) * w->dilation[i] + 1;
        conv->padded_size[i] = KELP_MAX((int64_t)0, padded_size);
        conv->padded = conv->padded || w->before[i] != 0 || conv->padded_size[i] != w->in[i];
        if (!kelp_i64_mul(conv->padded_bytes, conv->padded_size[i], &conv->padded_bytes))
            return false;
    }
    conv->image_bytes = w->in_size * channels;
    conv->window_bytes = w->kernel_size * conv->shape.in_channels;
    return true;
}

/* Adds `count` blocks of `bytes`, rounded up to cache lines, to *inout_end. */
static bool add_bytes(int64_t *inout_end, int64_t count, int64_t bytes) {
    int64_t all;
    return kelp_i64_mul(count, bytes, &all) && kelp_i64_add(all, 63, &all) &&
           kelp_i64_add(*inout_end, all / 64 * 64, inout_end);
}

bool kelp_conv_int8_reserve(kelp_conv_int8 *conv, const kelp_conv_int8_algorithm *algorithm) {
    int64_t batch = conv->shape.batch, end = 0;
    if (!add_bytes(&end, batch, conv->image_bytes))
        return false;
    conv->padded_offset = end;
    if (conv->padded && !add_bytes(&end, batch, conv->padded_bytes))
        return false;
    conv->gathered_offset = end;
    if ((algorithm->shared_bytes != NULL && !add_bytes(&end, 1, algorithm->shared_bytes(conv))) ||
        (algorithm->worker_bytes != NULL &&
         !add_bytes(&end, conv->threads, algorithm->worker_bytes(conv))))
        return false;
    conv->scratch_bytes = end;
    return true;
}

/* ---- images ---- */
/* Transposes units of some positions of an image. */
static void transpose_range(void *userp, int64_t begin, int64_t end, int worker) {
    const kelp_conv_int8 *conv = userp;
    int64_t channels = conv->shape.groups * conv->shape.in_channels,
            size = conv->shape.window.in_size;
    int64_t parts = kelp_divide_up(size, KELP_INT8_CONV_TRANSPOSE);
    const uint8_t *x = conv->x;
    uint8_t *plain = conv->scratch;
    (void)worker;
    for (int64_t unit = begin; unit < end; unit++) {
        int64_t image = unit / parts, first = unit % parts * KELP_INT8_CONV_TRANSPOSE;
        conv->kernels->transpose(plain + image * conv->image_bytes + first * channels, channels,
                                 x + image * conv->image_bytes + first, size, channels,
                                 KELP_MIN((int64_t)KELP_INT8_CONV_TRANSPOSE, size - first),
                                 conv->flip);
    }
}

/* Pads units of one row of a padded image. */
static void pad_range(void *userp, int64_t begin, int64_t end, int worker) {
    const kelp_conv_int8 *conv = userp;
    const kelp_conv_window *w = &conv->shape.window;
    int64_t channels = conv->shape.groups * conv->shape.in_channels,
            rows = conv->padded_size[0] * conv->padded_size[1];
    int64_t width = conv->padded_size[2],
            left = KELP_MIN(width, KELP_MAX((int64_t)0, w->before[2]));
    int64_t from = KELP_MAX((int64_t)0, -w->before[2]);
    int64_t inside = KELP_MAX((int64_t)0, KELP_MIN(width - left, w->in[2] - from));
    (void)worker;
    for (int64_t unit = begin; unit < end; unit++) {
        int64_t image = unit / rows, z = unit % rows / conv->padded_size[1] - w->before[0];
        int64_t y = unit % conv->padded_size[1] - w->before[1];
        bool there = z >= 0 && z < w->in[0] && y >= 0 && y < w->in[1] && inside > 0;
        uint8_t *to = (uint8_t *)conv->scratch + conv->padded_offset + unit * width * channels;
        if (!there) {
            memset(to, conv->padding, (size_t)(width * channels));
            continue;
        }
        const uint8_t *row = (const uint8_t *)conv->scratch + image * conv->image_bytes +
                             ((z * w->in[1] + y) * w->in[2] + from) * channels;
        memset(to, conv->padding, (size_t)(left * channels));
        memcpy(to + left * channels, row, (size_t)(inside * channels));
        memset(to + (left + inside) * channels, conv->padding,
               (size_t)((width - left - inside) * channels));
    }
}

static const uint8_t *image_of(const kelp_conv_int8 *conv, int64_t image) {
    const uint8_t *scratch = conv->scratch;
    return conv->padded ? scratch + conv->padded_offset + image * conv->padded_bytes
                        : scratch + image * conv->image_bytes;
}

void kelp_conv_int8_run(const kelp_op_env *env, const kelp_conv_int8_algorithm *algorithm,
                        kelp_conv_int8 *conv) {
    const kelp_conv_shape *s = &conv->shape;
    int64_t channels = s->groups * s->in_channels;
    int64_t parts = kelp_divide_up(s->window.in_size, KELP_INT8_CONV_TRANSPOSE);
    KELP_ASSERT(conv->x != NULL && conv->gemm.y != NULL && conv->scratch != NULL);
    KELP_ASSERT(conv->depthwise ? conv->weights.taps != NULL : conv->weights.panels != NULL);
    kelp_op_parallel(
        env, s->batch * parts,
        KELP_GRAIN_ELEMENTS * 4 / (KELP_INT8_CONV_TRANSPOSE * KELP_MAX((int64_t)1, channels)) + 1,
        transpose_range, conv);
    if (conv->padded)
        kelp_op_parallel(env, s->batch * conv->padded_size[0] * conv->padded_size[1],
                         kelp_cpu_grain(KELP_GRAIN_ELEMENTS * 4, conv->padded_size[2] * channels),
                         pad_range, conv);
    algorithm->run(env, conv);
}

/* Returns the offset of the window at output position `position` in a padded image. */
static int64_t window_at(const kelp_conv_int8 *conv, int64_t position) {
    const kelp_conv_window *w = &conv->shape.window;
    int64_t z = position / (w->out[1] * w->out[2]), y = position / w->out[2] % w->out[1];
    int64_t x = position % w->out[2];
    return ((z * w->stride[0] * conv->padded_size[1] + y * w->stride[1]) * conv->padded_size[2] +
            x * w->stride[2]) *
           conv->shape.groups * conv->shape.in_channels;
}

/* Gathers `rows` windows of one group. */
static void gather_rows(const kelp_conv_int8 *conv, const uint8_t *image, int64_t group,
                        int64_t first, int64_t rows, uint8_t *to) {
    const kelp_conv_window *w = &conv->shape.window;
    int64_t channels = conv->shape.groups * conv->shape.in_channels, each = conv->shape.in_channels;
    bool run = conv->shape.groups == 1 && w->dilation[2] == 1;
    int64_t taps = run ? 1 : w->kernel[2], bytes = run ? each * w->kernel[2] : each;
    for (int64_t i = 0; i < rows; i++) {
        const uint8_t *from = image + window_at(conv, first + i) + group * each;
        for (int64_t a = 0; a < w->kernel[0]; a++)
            for (int64_t b = 0; b < w->kernel[1]; b++)
                for (int64_t c = 0; c < taps; c++, to += bytes)
                    memcpy(to,
                           from +
                               ((a * w->dilation[0] * conv->padded_size[1] + b * w->dilation[1]) *
                                    conv->padded_size[2] +
                                c * w->dilation[2]) *
                                   channels,
                           (size_t)bytes);
    }
}

/* ---- GEMM ---- */
/* Returns the GEMM of one group, whose results begin at output position `first` of an image. */
static kelp_int8_gemm of_group(const kelp_conv_int8 *conv, int64_t image, int64_t group,
                               int64_t first) {
    kelp_int8_gemm g = conv->gemm;
    int64_t columns = conv->depthwise ? conv->shape.groups : conv->shape.out_channels;
    int64_t channel = group * columns;
    size_t each = kelp_dtype_bits(g.finish.dtype) / 8;
    g.y = (char *)g.y + (size_t)((image * conv->shape.groups * conv->shape.out_channels + channel) *
                                     conv->shape.window.out_size +
                                 first) *
                            each;
    g.b.n = columns;
    g.b.panels = conv->weights.panels + (size_t)group * conv->weights.group_bytes;
    g.b.balance += channel;
    g.b.zeros = g.b.zeros != NULL ? g.b.zeros + channel : NULL;
    g.finish.scale = g.finish.scale != NULL ? g.finish.scale + channel : NULL;
    g.finish.bias = g.finish.bias != NULL ? g.finish.bias + channel : NULL;
    g.finish.addend = g.finish.addend != NULL ? g.finish.addend + channel : NULL;
    return g;
}

static int64_t parts_of(const kelp_conv_int8 *conv) {
    return kelp_divide_up(conv->shape.window.out_size, ROWS);
}

/* Runs a GEMM of `count` output positions in blocks of columns. */
static void multiply(const kelp_conv_int8 *conv, kelp_int8_gemm *g, int64_t count) {
    int64_t columns = conv->shape.out_channels;
    g->m = count;
    for (int64_t column = 0; column < columns; column += KELP_INT8_TRANSPOSED_COLUMNS)
        kelp_int8_gemm_block(conv->kernels, g, 0, column, count,
                             KELP_MIN((int64_t)KELP_INT8_TRANSPOSED_COLUMNS, columns - column));
}

/* Runs units, each ROWS positions of one image, whose windows are read in place. */
static void in_place_range(void *userp, int64_t begin, int64_t end, int worker) {
    const kelp_conv_int8 *conv = userp;
    int64_t parts = parts_of(conv);
    (void)worker;
    for (int64_t unit = begin; unit < end; unit++) {
        int64_t first = unit % parts * ROWS, image = unit / parts;
        kelp_int8_gemm g = of_group(conv, image, 0, first);
        g.a = image_of(conv, image) + window_at(conv, first);
        g.lda = conv->shape.window.stride[2] * conv->shape.in_channels;
        multiply(conv, &g, KELP_MIN((int64_t)ROWS, conv->shape.window.out_size - first));
    }
}

static void im2row_range(void *userp, int64_t begin, int64_t end, int worker) {
    const kelp_conv_int8 *conv = userp;
    int64_t parts = parts_of(conv), groups = conv->shape.groups;
    uint8_t *rows =
        (uint8_t *)conv->scratch + conv->gathered_offset + worker * ROWS * conv->window_bytes;
    for (int64_t unit = begin; unit < end; unit++) {
        int64_t first = unit % parts * ROWS, group = unit / parts % groups;
        int64_t image = unit / parts / groups;
        int64_t count = KELP_MIN((int64_t)ROWS, conv->shape.window.out_size - first);
        kelp_int8_gemm g = of_group(conv, image, group, first);
        gather_rows(conv, image_of(conv, image), group, first, count, rows);
        g.a = rows;
        g.lda = conv->window_bytes;
        multiply(conv, &g, count);
    }
}

/* Returns true if windows are contiguous in the image, at equal distances. */
static bool is_contiguous(const kelp_conv_int8 *conv) {
    const kelp_conv_window *w = &conv->shape.window;
    if (conv->depthwise || conv->shape.groups != 1 || w->kernel[0] != 1 || w->kernel[1] != 1 ||
        (w->kernel[2] > 1 && w->dilation[2] != 1))
        return false;
    bool line = w->out[0] == 1 && w->out[1] == 1;
    bool points = w->kernel[2] == 1 && !conv->padded && w->stride[0] == 1 && w->stride[1] == 1 &&
                  w->stride[2] == 1;
    return line || points;
}

static bool is_applicable_im2row(const kelp_conv_int8 *conv) {
    return !conv->depthwise;
}

static int64_t rows_bytes(const kelp_conv_int8 *conv) {
    return conv->window_bytes <= INT64_MAX / ROWS ? conv->window_bytes * ROWS : INT64_MAX;
}

static void run_gemm(const kelp_op_env *env, kelp_conv_int8 *conv,
                     void (*fn)(void *userp, int64_t begin, int64_t end, int worker)) {
    const kelp_conv_shape *s = &conv->shape;
    int64_t work = ROWS * conv->window_bytes * s->out_channels;
    kelp_op_parallel(env, s->batch * s->groups * parts_of(conv),
                     kelp_cpu_grain(KELP_GRAIN_NARROW_TILES, work), fn, conv);
}

static void run_in_place(const kelp_op_env *env, kelp_conv_int8 *conv) {
    KELP_ASSERT(conv->shape.groups == 1);
    run_gemm(env, conv, in_place_range);
}

static void run_im2row(const kelp_op_env *env, kelp_conv_int8 *conv) {
    run_gemm(env, conv, im2row_range);
}

const kelp_conv_int8_algorithm kelp_conv_int8_in_place = {
    .name = "int8_in_place", .is_applicable = is_contiguous, .run = run_in_place};
const kelp_conv_int8_algorithm kelp_conv_int8_im2row = {.name = "int8_im2row",
                                                        .is_applicable = is_applicable_im2row,
                                                        .worker_bytes = rows_bytes,
                                                        .run = run_im2row};

/* ---- depthwise ---- */
static int64_t *taps_of(const kelp_conv_int8 *conv) {
    return (int64_t *)(void *)((char *)conv->scratch + conv->gathered_offset);
}

/* Runs units, each ROWS positions of one image; the columns are the groups. */
static void depthwise_range(void *userp, int64_t begin, int64_t end, int worker) {
    const kelp_conv_int8 *conv = userp;
    int64_t parts = parts_of(conv), channels = conv->shape.groups;
    const int64_t *taps = taps_of(conv);
    (void)worker;
    for (int64_t unit = begin; unit < end; unit++) {
        int64_t image = unit / parts, first = unit % parts * ROWS;
        int64_t count = KELP_MIN((int64_t)ROWS, conv->shape.window.out_size - first);
        kelp_int8_gemm g = of_group(conv, image, 0, first);
        for (int64_t c = 0; c < channels; c += KELP_INT8_TRANSPOSED_COLUMNS) {
            int32_t sums[ROWS * KELP_INT8_TRANSPOSED_COLUMNS];
            int64_t width = KELP_MIN((int64_t)KELP_INT8_TRANSPOSED_COLUMNS, channels - c);
            for (int64_t i = 0; i < count; i++)
                conv->kernels->taps(
                    sums + i * width, image_of(conv, image) + window_at(conv, first + i) + c, taps,
                    conv->shape.window.kernel_size, conv->weights.taps + c, channels, width);
            kelp_int8_gemm_finish(conv->kernels, &g, 0, c, count, width, sums);
        }
    }
}

static void list_taps(const kelp_conv_int8 *conv, int64_t *out) {
    const kelp_conv_window *w = &conv->shape.window;
    for (int64_t t = 0; t < w->kernel_size; t++) {
        int64_t a = t / (w->kernel[1] * w->kernel[2]), b = t / w->kernel[2] % w->kernel[1];
        out[t] = ((a * w->dilation[0] * conv->padded_size[1] + b * w->dilation[1]) *
                      conv->padded_size[2] +
                  t % w->kernel[2] * w->dilation[2]) *
                 conv->shape.groups;
    }
}

static bool is_applicable_depthwise(const kelp_conv_int8 *conv) {
    return conv->depthwise;
}

static int64_t taps_bytes(const kelp_conv_int8 *conv) {
    int64_t bytes;
    return kelp_i64_mul(conv->shape.window.kernel_size, (int64_t)sizeof(int64_t), &bytes)
               ? bytes
               : INT64_MAX;
}

static void run_depthwise(const kelp_op_env *env, kelp_conv_int8 *conv) {
    const kelp_conv_shape *s = &conv->shape;
    list_taps(conv, taps_of(conv));
    kelp_op_parallel(
        env, s->batch * parts_of(conv),
        kelp_cpu_grain(KELP_GRAIN_DEPTHWISE_INT8, ROWS * s->groups * s->window.kernel_size),
        depthwise_range, conv);
}

const kelp_conv_int8_algorithm kelp_conv_int8_depthwise = {.name = "int8_depthwise",
                                                           .is_applicable = is_applicable_depthwise,
                                                           .shared_bytes = taps_bytes,
                                                           .run = run_depthwise};
