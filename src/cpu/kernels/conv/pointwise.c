/* SPDX-License-Identifier: Apache-2.0 */
/* Kernels of size 1: an image is a matrix [input channels, positions] as it is. */
#include "base/assert.h"
#include "cpu/kernels/conv/conv.h"
#include "cpu/kernels/gemm/gemm.h"

static void run(const kelp_op_env *env, kelp_conv *conv) {
    const kelp_conv_shape *s = &conv->shape;
    const kelp_conv_window *w = &s->window;
    KELP_ASSERT(w->kernel_size == 1 && w->in_size == w->out_size);
    for (int64_t image = 0; image < s->batch * s->groups; image++) {
        int64_t group = image % s->groups, to = image * s->out_channels * w->out_size;
        kelp_gemm job = {
            .a = (const kelp_float_u *)conv->weights + group * s->out_channels * s->in_channels,
            .b = conv->x + image * s->in_channels * w->in_size,
            .c = conv->y + to,
            .m = s->out_channels,
            .n = w->out_size,
            .k = s->in_channels,
            .lda = s->in_channels,
            .ldb = w->in_size,
            .ldc = w->out_size,
            .row_bias = conv->bias != NULL ? conv->bias + group * s->out_channels : NULL,
            .residual = conv->residual != NULL ? conv->residual + to : NULL,
            .act = conv->act};
        kelp_gemm_run(env, &job, 1);
    }
}

const kelp_conv_algorithm kelp_conv_pointwise = {
    .name = "pointwise_gemm", .is_applicable = kelp_conv_is_pointwise, .run = run};
