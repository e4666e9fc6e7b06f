/* SPDX-License-Identifier: Apache-2.0 */
/* bfloat16 convolutions with few output positions: windows are gathered and are the rows of a GEMM
 * whose columns are the output channels. */
#include "base/assert.h"
#include "cpu/kernels/conv/conv_bf16.h"
#include "cpu/kernels/gemm/gemm_bf16.h"
#include "cpu/kernels/layout/layout_kernels.h"
#include "cpu/kernels/tuning.h"

#define MIN_OUT_CHANNELS 16

static int64_t positions_of(const kelp_conv_bf16 *conv) {
    return conv->shape.batch * conv->shape.window.out_size;
}

static int64_t depth_of(const kelp_conv_bf16 *conv) {
    return conv->shape.in_channels * conv->shape.window.kernel_size;
}

static bool is_applicable(const kelp_conv_bf16 *conv) {
    return !conv->x_is_bf16 && !conv->y_is_bf16 && !conv->residual_is_bf16 &&
           conv->shape.groups == 1 && positions_of(conv) <= KELP_BF16_FEW_POSITIONS &&
           conv->shape.out_channels >= MIN_OUT_CHANNELS;
}

static bool reserve(kelp_conv_bf16 *conv) {
    int64_t bytes = 0, pairs = kelp_bf16_gemm_scratch(positions_of(conv), depth_of(conv));
    if (!kelp_i64_mul(positions_of(conv), depth_of(conv) + conv->shape.out_channels, &bytes) ||
        !kelp_i64_mul(bytes, (int64_t)sizeof(float), &bytes) || !kelp_i64_add(bytes, 63, &bytes) ||
        !kelp_i64_mul(pairs, (int64_t)sizeof(kelp_bf16_pair), &conv->worker_bytes))
        return false;
    conv->shared_bytes = bytes / 64 * 64;
    return true;
}

/* Gathers the window of output position `at`: channels, then taps. */
static void gather(const kelp_conv_shape *s, const float *x, int64_t at, float *to) {
    const kelp_conv_window *w = &s->window;
    int64_t row = at / w->out[2] * w->stride[1] - w->before[1];
    int64_t column = at % w->out[2] * w->stride[2] - w->before[2];
    for (int64_t c = 0; c < s->in_channels; c++, x += w->in_size)
        for (int64_t a = 0; a < w->kernel[1]; a++)
            for (int64_t b = 0; b < w->kernel[2]; b++, to++) {
                int64_t y = row + a * w->dilation[1], z = column + b * w->dilation[2];
                if (y < 0 || y >= w->in[1] || z < 0 || z >= w->in[2])
                    *to = 0.0f;
                else
                    *to = x[y * w->in[2] + z];
            }
}

static void run(const kelp_op_env *env, kelp_conv_bf16 *conv) {
    const kelp_elementwise_kernels *elementwise = kelp_elementwise_kernels_get();
    const kelp_layout_kernels *layout = kelp_layout_kernels_get();
    const kelp_conv_shape *s = &conv->shape;
    int64_t depth = depth_of(conv), size = s->window.out_size, count = positions_of(conv);
    int64_t plane = s->out_channels * size, image = s->in_channels * s->window.in_size;
    float *rows = conv->scratch, *result = rows + count * depth, *y = conv->y;
    KELP_ASSERT(s->groups == 1 && conv->weights != NULL && conv->scratch != NULL);
    for (int64_t i = 0; i < count; i++)
        gather(s, (const float *)conv->x + i / size * image, i % size, rows + i * depth);
    kelp_bf16_gemm_run(
        env, &(kelp_bf16_gemm){.a = rows,
                               .panels = conv->weights,
                               .c = result,
                               .m = count,
                               .n = s->out_channels,
                               .k = depth,
                               .lda = depth,
                               .ldc = s->out_channels,
                               .bias = conv->bias,
                               .act = conv->residual == NULL ? conv->act : KELP_ACT_NONE,
                               .scratch = (void *)((char *)conv->scratch + conv->shared_bytes)});
    for (int64_t i = 0; i < s->batch; i++)
        layout->transpose(y + i * plane, size, result + i * plane, s->out_channels, size,
                          s->out_channels);
    if (conv->residual != NULL)
        elementwise->finish(y, NULL, 0.0f, conv->residual, count * s->out_channels, conv->act);
}

const kelp_conv_bf16_algorithm kelp_conv_bf16_im2row = {.name = "bf16_im2row",
                                                        .layout = KELP_CONV_BF16_PANELS,
                                                        .is_applicable = is_applicable,
                                                        .reserve = reserve,
                                                        .run = run};
