/* SPDX-License-Identifier: Apache-2.0 */
/* Convolutions in double, straight from their definition. Source: ONNX operator specification, Conv
 * and ConvTranspose. */
#include "base/assert.h"
#include "cpu/kernels/conv/conv.h"

/* Converts a flat index to coordinates. */
static void unravel(const int64_t *sizes, int64_t index, int64_t *out) {
    for (int i = KELP_WINDOW_AXES; i-- > 0; index /= sizes[i])
        out[i] = index % sizes[i];
}

/* Returns the flat index that tap `tap` of window `at` reads; -1 outside the image. */
static int64_t place(const kelp_conv_window *w, const int64_t *at, const int64_t *tap,
                     const int64_t *sizes) {
    int64_t offset = 0;
    for (int i = 0; i < KELP_WINDOW_AXES; i++) {
        int64_t x = at[i] * w->stride[i] - w->before[i] + tap[i] * w->dilation[i];
        if (x < 0 || x >= sizes[i])
            return -1;
        offset = offset * sizes[i] + x;
    }
    return offset;
}

/* Operands are double: the parameters declare them as the usual float. */
static double bias_at(const kelp_conv *conv, int64_t channel) {
    const kelp_double_u *bias = (const void *)conv->bias;
    return bias != NULL ? bias[channel] : 0;
}

static void conv_planes(void *userp, int64_t begin, int64_t end, int worker) {
    const kelp_conv *conv = userp;
    const kelp_conv_shape *s = &conv->shape;
    const kelp_conv_window *w = &s->window;
    int64_t channels = s->groups * s->out_channels, at[3], tap[3];
    (void)worker;
    for (int64_t plane = begin; plane < end; plane++) {
        int64_t channel = plane % channels;
        const double *x = (const double *)(const void *)conv->x +
                          (plane / channels * s->groups + channel / s->out_channels) *
                              s->in_channels * w->in_size;
        const kelp_double_u *weights =
            (const kelp_double_u *)conv->weights + channel * s->in_channels * w->kernel_size;
        double *y = (double *)(void *)conv->y + plane * w->out_size;
        for (int64_t o = 0; o < w->out_size; o++) {
            double sum = bias_at(conv, channel);
            unravel(w->out, o, at);
            for (int64_t k = 0; k < w->kernel_size; k++) {
                unravel(w->kernel, k, tap);
                int64_t from = place(w, at, tap, w->in);
                for (int64_t c = 0; c < s->in_channels && from >= 0; c++)
                    sum += x[c * w->in_size + from] * weights[c * w->kernel_size + k];
            }
            y[o] = sum;
        }
    }
}

static void transposed_planes(void *userp, int64_t begin, int64_t end, int worker) {
    const kelp_conv *conv = userp;
    const kelp_conv_shape *s = &conv->shape;
    const kelp_conv_window *w = &s->window;
    int64_t channels = s->groups * s->out_channels, at[3], tap[3];
    (void)worker;
    for (int64_t plane = begin; plane < end; plane++) {
        int64_t channel = plane % channels, group = channel / s->out_channels;
        int64_t input = (plane / channels * s->groups + group) * s->in_channels;
        const double *x = (const double *)(const void *)conv->x + input * w->in_size;
        /* [input channel, output channel of the group, kernel] */
        const kelp_double_u *weights =
            (const kelp_double_u *)conv->weights +
            (group * s->in_channels * s->out_channels + channel % s->out_channels) * w->kernel_size;
        double *y = (double *)(void *)conv->y + plane * w->out_size;
        for (int64_t o = 0; o < w->out_size; o++)
            y[o] = bias_at(conv, channel);
        for (int64_t i = 0; i < w->in_size; i++) {
            unravel(w->in, i, at);
            for (int64_t k = 0; k < w->kernel_size; k++) {
                unravel(w->kernel, k, tap);
                int64_t to = place(w, at, tap, w->out);
                for (int64_t c = 0; c < s->in_channels && to >= 0; c++)
                    y[to] +=
                        x[c * w->in_size + i] * weights[c * s->out_channels * w->kernel_size + k];
            }
        }
    }
}

static bool is_applicable(const kelp_conv *conv) {
    return conv->is_f64;
}

static int64_t planes_of(const kelp_conv *conv) {
    KELP_ASSERT(conv->is_f64 && conv->x != NULL && conv->weights != NULL && conv->y != NULL);
    return conv->shape.batch * conv->shape.groups * conv->shape.out_channels;
}

static void run(const kelp_op_env *env, kelp_conv *conv) {
    kelp_op_parallel(env, planes_of(conv), 1, conv_planes, conv);
}

void kelp_conv_transpose_reference_f64(const kelp_op_env *env, kelp_conv *conv) {
    kelp_op_parallel(env, planes_of(conv), 1, transposed_planes, conv);
}

const kelp_conv_algorithm kelp_conv_reference_f64 = {
    .name = "reference_f64", .is_applicable = is_applicable, .run = run};
