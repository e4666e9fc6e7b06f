/* SPDX-License-Identifier: Apache-2.0 */
/* Convolutions in double, straight from their definition. Source: ONNX operator specification, Conv
 * and ConvTranspose. */
#include "cpu/kernels/conv/reference.h"

#include "cpu/kernels/simd/simd.h"

/* Position `index` of extents into coordinates. */
static void unravel(const int64_t *extents, int64_t index, int64_t *out) {
    for (int i = KELP_WINDOW_AXES; i-- > 0; index /= extents[i])
        out[i] = index % extents[i];
}

/* Where tap `tap` at window `at` lies among `extents`; -1 outside. */
static int64_t place(const kelp_window *w, const int64_t *at, const int64_t *tap,
                     const int64_t *extents) {
    int64_t offset = 0;
    for (int i = 0; i < KELP_WINDOW_AXES; i++) {
        int64_t x = at[i] * w->stride[i] - w->before[i] + tap[i] * w->dilation[i];
        if (x < 0 || x >= extents[i])
            return -1;
        offset = offset * extents[i] + x;
    }
    return offset;
}

static double bias_at(const kelp_conv_wide *p, int64_t channel) {
    const kelp_tensor *bias = kelp_ops_in(p->args, 2);
    return bias != NULL ? ((const kelp_double_u *)bias->data)[channel] : 0;
}

static void conv_planes(void *userp, int64_t begin, int64_t end, int worker) {
    const kelp_conv_wide *p = userp;
    const kelp_window *w = p->w;
    int64_t channels = p->groups * p->out_channels, at[3], tap[3];
    (void)worker;
    for (int64_t plane = begin; plane < end; plane++) {
        int64_t channel = plane % channels;
        const double *x = (const double *)p->args->inputs[0]->data +
                          (plane / channels * p->groups + channel / p->out_channels) *
                              p->in_channels * w->in_size;
        const kelp_double_u *weights = (const kelp_double_u *)p->args->inputs[1]->data +
                                       channel * p->in_channels * w->kernel_size;
        double *y = (double *)p->args->outputs[0]->data + plane * w->out_size;
        for (int64_t o = 0; o < w->out_size; o++) {
            double sum = bias_at(p, channel);
            unravel(w->out, o, at);
            for (int64_t k = 0; k < w->kernel_size; k++) {
                unravel(w->kernel, k, tap);
                int64_t from = place(w, at, tap, w->in);
                for (int64_t c = 0; c < p->in_channels && from >= 0; c++)
                    sum += x[c * w->in_size + from] * weights[c * w->kernel_size + k];
            }
            y[o] = sum;
        }
    }
}

static void transposed_planes(void *userp, int64_t begin, int64_t end, int worker) {
    const kelp_conv_wide *p = userp;
    const kelp_window *w = p->w;
    int64_t channels = p->groups * p->out_channels, at[3], tap[3];
    (void)worker;
    for (int64_t plane = begin; plane < end; plane++) {
        int64_t channel = plane % channels, group = channel / p->out_channels;
        int64_t input = (plane / channels * p->groups + group) * p->in_channels;
        const double *x = (const double *)p->args->inputs[0]->data + input * w->in_size;
        /* [input channel, output channel of the group, kernel] */
        const kelp_double_u *weights =
            (const kelp_double_u *)p->args->inputs[1]->data +
            (group * p->in_channels * p->out_channels + channel % p->out_channels) * w->kernel_size;
        double *y = (double *)p->args->outputs[0]->data + plane * w->out_size;
        for (int64_t o = 0; o < w->out_size; o++)
            y[o] = bias_at(p, channel);
        for (int64_t i = 0; i < w->in_size; i++) {
            unravel(w->in, i, at);
            for (int64_t k = 0; k < w->kernel_size; k++) {
                unravel(w->kernel, k, tap);
                int64_t to = place(w, at, tap, w->out);
                for (int64_t c = 0; c < p->in_channels && to >= 0; c++)
                    y[to] +=
                        x[c * w->in_size + i] * weights[c * p->out_channels * w->kernel_size + k];
            }
        }
    }
}

void kelp_conv_wide_run(const kelp_conv_wide *job) {
    kelp_conv_wide copy = *job;
    kelp_op_parallel(job->args->env, job->batch * job->groups * job->out_channels, 1, conv_planes,
                     &copy);
}

void kelp_conv_wide_transposed_run(const kelp_conv_wide *job) {
    kelp_conv_wide copy = *job;
    kelp_op_parallel(job->args->env, job->batch * job->groups * job->out_channels, 1,
                     transposed_planes, &copy);
}
