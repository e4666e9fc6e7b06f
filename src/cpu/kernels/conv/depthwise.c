/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Depthwise convolutions: one input channel in each group. Windows are summed directly; over two
 * axes they slide over the image itself, or over a padded copy of some of its rows.
 */
#include "base/assert.h"
#include "cpu/kernels/conv/conv.h"
#include "cpu/kernels/sliding/padded.h"
#include "cpu/kernels/tuning.h"
#include "cpu/kernels/vector/vector_kernels.h"

#define MAX_OUT_CHANNELS 4 /* of a group: for more, a GEMM of the windows is faster */

/* ---- choice ---- */
static bool is_depthwise(const kelp_conv *conv) {
    return conv->shape.in_channels == 1 && conv->shape.out_channels <= MAX_OUT_CHANNELS;
}

static bool is_applicable_padded(const kelp_conv *conv) {
    return is_depthwise(conv) && kelp_padded_fits(&conv->shape.window);
}

static bool is_applicable_image(const kelp_conv *conv) {
    return is_applicable_padded(conv) && conv->sliding->weighted_image != NULL &&
           kelp_padded_keeps_width(&conv->shape.window);
}

static bool reserve_image(kelp_conv *conv) {
    conv->blocking.depthwise.strip = kelp_padded_strip(&conv->shape.window);
    return true;
}

static bool reserve_padded(kelp_conv *conv) {
    conv->blocking.depthwise.strip = kelp_padded_strip(&conv->shape.window);
    conv->worker_floats = kelp_padded_floats(&conv->shape.window, conv->blocking.depthwise.strip);
    return conv->worker_floats >= 0;
}

/* ---- two axes ---- */
typedef struct strip {
    int64_t channel, first, rows;
    int64_t to; /* of the result, and of the residual */
    const float *x;
} strip;

/* A unit is a strip of rows of one output channel. */
static strip strip_at(const kelp_conv *conv, int64_t unit) {
    const kelp_conv_shape *s = &conv->shape;
    const kelp_conv_window *w = &s->window;
    int64_t height = conv->blocking.depthwise.strip, strips = kelp_divide_up(w->out[1], height);
    int64_t plane = unit / strips, channels = s->groups * s->out_channels;
    strip at = {.channel = plane % channels, .first = unit % strips * height};
    int64_t input = plane / channels * s->groups + at.channel / s->out_channels;
    at.rows = KELP_MIN(height, w->out[1] - at.first);
    at.to = plane * w->out_size + at.first * w->out[2];
    at.x = conv->x + input * w->in_size;
    return at;
}

static kelp_sliding_weighted windows_at(const kelp_conv *conv, const strip *at) {
    return (kelp_sliding_weighted){.w = (const kelp_float_u *)conv->weights +
                                        at->channel * conv->shape.window.kernel_size,
                                   .y = conv->y + at->to};
}

static void finish(const kelp_conv *conv, const strip *at) {
    const kelp_elementwise_kernels *elementwise = kelp_elementwise_kernels_get();
    if (conv->bias == NULL && conv->residual == NULL && conv->act == KELP_ACT_NONE)
        return;
    elementwise->finish(conv->y + at->to, NULL, kelp_conv_bias(conv, at->channel),
                        conv->residual != NULL ? conv->residual + at->to : NULL,
                        at->rows * conv->shape.window.out[2], conv->act);
}

static void image_strips(void *userp, int64_t begin, int64_t end, int worker) {
    const kelp_conv *conv = userp;
    bool finishes = conv->residual == NULL && kelp_act_is_light(conv->act);
    (void)worker;
    for (int64_t unit = begin; unit < end; unit++) {
        strip at = strip_at(conv, unit);
        kelp_sliding_image image = {.windows = windows_at(conv, &at)};
        kelp_padded_image(&conv->shape.window, at.x, at.first, at.rows, &image.windows);
        if (finishes) {
            image.bias = kelp_conv_bias(conv, at.channel);
            image.act = conv->act;
        }
        conv->sliding->weighted_image(&image);
        if (!finishes)
            finish(conv, &at);
    }
}

static void padded_strips(void *userp, int64_t begin, int64_t end, int worker) {
    const kelp_conv *conv = userp;
    float *tile = kelp_conv_worker_scratch(conv, worker);
    for (int64_t unit = begin; unit < end; unit++) {
        strip at = strip_at(conv, unit);
        kelp_sliding_weighted windows = windows_at(conv, &at);
        windows.x = tile;
        kelp_padded_fill(&conv->shape.window, at.x, at.first, at.rows, 0.0f, tile,
                         &windows.geometry);
        conv->sliding->weighted(&windows);
        finish(conv, &at);
    }
}

/* Returns the rows whose work justifies another thread. */
static int64_t rows_grain(const kelp_conv *conv) {
    const kelp_conv_window *w = &conv->shape.window;
    return kelp_cpu_grain(KELP_GRAIN_DEPTHWISE, w->kernel_size * w->out[2]);
}

static void run_strips(const kelp_op_env *env, kelp_conv *conv,
                       void (*fn)(void *userp, int64_t begin, int64_t end, int worker)) {
    const kelp_conv_shape *s = &conv->shape;
    int64_t height = conv->blocking.depthwise.strip;
    KELP_ASSERT(is_depthwise(conv) && height > 0);
    KELP_ASSERT(conv->worker_floats == 0 || conv->scratch != NULL);
    int64_t strips = kelp_divide_up(s->window.out[1], height);
    kelp_op_parallel(env, s->batch * s->groups * s->out_channels * strips,
                     rows_grain(conv) / height + 1, fn, conv);
}

static void run_image(const kelp_op_env *env, kelp_conv *conv) {
    run_strips(env, conv, image_strips);
}

static void run_padded(const kelp_op_env *env, kelp_conv *conv) {
    run_strips(env, conv, padded_strips);
}

/* ---- three axes ---- */
static void sum_row(const kelp_conv *conv, const float *x, const kelp_float_u *weights,
                    const int64_t *at, float *y) {
    const kelp_vector_kernels *vector = kelp_vector_kernels_get();
    const kelp_conv_window *w = &conv->shape.window;
    memset(y, 0, (size_t)w->out[2] * sizeof *y);
    for (int64_t a = 0; a < w->kernel[0]; a++)
        for (int64_t b = 0; b < w->kernel[1]; b++) {
            int64_t z = at[0] * w->stride[0] - w->before[0] + a * w->dilation[0];
            int64_t r = at[1] * w->stride[1] - w->before[1] + b * w->dilation[1];
            if (z < 0 || z >= w->in[0] || r < 0 || r >= w->in[1])
                continue;
            const float *row = x + (z * w->in[1] + r) * w->in[2];
            for (int64_t c = 0; c < w->kernel[2]; c++) {
                int64_t shift = c * w->dilation[2] - w->before[2], stride = w->stride[2];
                int64_t first = shift < 0 ? kelp_divide_up(-shift, stride) : 0;
                int64_t last = w->in[2] - shift <= 0 ? 0 : (w->in[2] - shift - 1) / stride + 1;
                last = KELP_MIN(last, w->out[2]);
                if (first < last)
                    vector->axpy(y + first, row + first * stride + shift,
                                 weights[(a * w->kernel[1] + b) * w->kernel[2] + c], stride,
                                 last - first);
            }
        }
}

static void rows_range(void *userp, int64_t begin, int64_t end, int worker) {
    const kelp_elementwise_kernels *elementwise = kelp_elementwise_kernels_get();
    const kelp_conv *conv = userp;
    const kelp_conv_shape *s = &conv->shape;
    const kelp_conv_window *w = &s->window;
    int64_t rows = w->out[0] * w->out[1], channels = s->groups * s->out_channels;
    (void)worker;
    for (int64_t unit = begin; unit < end; unit++) {
        int64_t row = unit % rows, plane = unit / rows, channel = plane % channels;
        int64_t image = plane / channels, at[2] = {row / w->out[1], row % w->out[1]};
        int64_t input = image * s->groups + channel / s->out_channels;
        int64_t to = plane * w->out_size + row * w->out[2];
        sum_row(conv, conv->x + input * w->in_size,
                (const kelp_float_u *)conv->weights + channel * w->kernel_size, at, conv->y + to);
        elementwise->finish(conv->y + to, NULL, kelp_conv_bias(conv, channel),
                            conv->residual != NULL ? conv->residual + to : NULL, w->out[2],
                            conv->act);
    }
}

static void run_rows(const kelp_op_env *env, kelp_conv *conv) {
    const kelp_conv_shape *s = &conv->shape;
    KELP_ASSERT(is_depthwise(conv));
    kelp_op_parallel(env,
                     s->window.out[0] * s->window.out[1] * s->batch * s->groups * s->out_channels,
                     rows_grain(conv), rows_range, conv);
}

const kelp_conv_algorithm kelp_conv_depthwise_image = {.name = "depthwise_image",
                                                       .is_applicable = is_applicable_image,
                                                       .reserve = reserve_image,
                                                       .run = run_image};
const kelp_conv_algorithm kelp_conv_depthwise_padded = {.name = "depthwise_padded",
                                                        .is_applicable = is_applicable_padded,
                                                        .reserve = reserve_padded,
                                                        .run = run_padded};
const kelp_conv_algorithm kelp_conv_depthwise_rows = {
    .name = "depthwise_rows", .is_applicable = is_depthwise, .run = run_rows};
