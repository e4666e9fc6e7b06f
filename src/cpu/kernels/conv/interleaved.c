/* SPDX-License-Identifier: Apache-2.0 */
/* Convolutions of batches of small images, one image in each lane of a vector, so that taps outside
 * the image are skipped. */
#include "base/assert.h"
#include "cpu/kernels/conv/conv.h"
#include "cpu/kernels/layout/layout_kernels.h"
#include "cpu/kernels/tuning.h"

#define MAX_PIXELS 64
#define MAX_TAPS 25
#define MIN_DEPTH 64
#define MIN_OUT_CHANNELS 8
#define MAX_CHANNELS 4096

/* Lists the taps of output (row, column) that are inside the image. Returns their number. */
static int32_t inside(const kelp_conv_window *w, int64_t row, int64_t column, int32_t *index,
                      int32_t *offset) {
    int32_t count = 0;
    for (int64_t a = 0; a < w->kernel[1]; a++)
        for (int64_t b = 0; b < w->kernel[2]; b++) {
            int64_t y = row * w->stride[1] - w->before[1] + a * w->dilation[1];
            int64_t x = column * w->stride[2] - w->before[2] + b * w->dilation[2];
            if (y < 0 || y >= w->in[1] || x < 0 || x >= w->in[2])
                continue;
            index[count] = (int32_t)(a * w->kernel[2] + b);
            offset[count++] = (int32_t)(y * w->in[2] + x);
        }
    return count;
}

static bool is_applicable(const kelp_conv *conv) {
    const kelp_conv_window *w = &conv->shape.window;
    return conv->shape.groups == 1 && kelp_conv_fits_int32(conv) && !kelp_conv_is_pointwise(conv) &&
           !conv->has_residual && w->in[0] == 1 && w->out[0] == 1 && w->kernel[0] == 1 &&
           w->before[0] == 0 && w->kernel_size <= MAX_TAPS && w->in_size <= MAX_PIXELS &&
           w->out_size <= MAX_PIXELS;
}

/* Padding must be at least a fifth of the work, and the batch must fill most lanes. */
static bool is_profitable(const kelp_conv *conv) {
    const kelp_conv_shape *s = &conv->shape;
    const kelp_conv_window *w = &s->window;
    int64_t lanes = conv->kernels->tile_columns, used = 0;
    int32_t index[MAX_TAPS], offset[MAX_TAPS];
    if (s->in_channels * w->kernel_size < MIN_DEPTH || s->out_channels < MIN_OUT_CHANNELS ||
        s->batch < lanes || s->in_channels > MAX_CHANNELS || s->out_channels > MAX_CHANNELS)
        return false;
    for (int64_t o = 0; o < w->out_size; o++)
        used += inside(w, o / w->out[2], o % w->out[2], index, offset);
    /* the last vectors may be filled in part */
    int64_t filled = kelp_round_up(s->batch, lanes);
    return used * filled * 5 <= w->out_size * w->kernel_size * s->batch * 4;
}

static bool reserve(kelp_conv *conv) {
    const kelp_conv_shape *s = &conv->shape;
    int64_t in = 0, out = 0;
    return kelp_i64_mul(s->in_channels, s->window.in_size, &in) &&
           kelp_i64_mul(s->out_channels, s->window.out_size, &out) && kelp_i64_add(in, out, &in) &&
           kelp_i64_mul(in, conv->kernels->tile_columns, &conv->worker_floats);
}

/* Runs units, each as many images as a pair of vectors has lanes. */
static void lanes_range(void *userp, int64_t begin, int64_t end, int worker) {
    const kelp_elementwise_kernels *elementwise = kelp_elementwise_kernels_get();
    const kelp_layout_kernels *layout = kelp_layout_kernels_get();
    const kelp_conv *conv = userp;
    const kelp_conv_window *w = &conv->shape.window;
    int64_t lanes = conv->kernels->tile_columns;
    int64_t in = conv->shape.in_channels * w->in_size, out = conv->shape.out_channels * w->out_size;
    float *x = kelp_conv_worker_scratch(conv, worker), *y = x + in * lanes;
    int32_t index[MAX_TAPS], offset[MAX_TAPS];
    for (int64_t unit = begin; unit < end; unit++) {
        int64_t first = unit * lanes, images = KELP_MIN(lanes, conv->shape.batch - first);
        if (images < lanes)
            memset(x, 0, (size_t)(in * lanes) * sizeof *x);
        layout->transpose(x, lanes, conv->x + first * in, in, images, in);
        for (int64_t o = 0; o < w->out_size; o++) {
            int32_t taps = inside(w, o / w->out[2], o % w->out[2], index, offset);
            conv->kernels->interleaved(
                &(kelp_conv_lanes){.w = conv->weights,
                                   .x = x,
                                   .y = y + o * lanes,
                                   .m = conv->shape.out_channels,
                                   .depth = conv->shape.in_channels * w->kernel_size,
                                   .channels = conv->shape.in_channels,
                                   .kernel = w->kernel_size,
                                   .plane = w->in_size,
                                   .y_step = w->out_size * lanes,
                                   .taps = taps,
                                   .tap_index = index,
                                   .tap_offset = offset});
        }
        for (int64_t c = 0; c < conv->shape.out_channels; c++)
            if (conv->bias != NULL || conv->act != KELP_ACT_NONE)
                elementwise->finish(y + c * w->out_size * lanes, NULL, kelp_conv_bias(conv, c),
                                    NULL, w->out_size * lanes, conv->act);
        layout->transpose(conv->y + first * out, out, y, lanes, out, images);
    }
}

static void run(const kelp_op_env *env, kelp_conv *conv) {
    const kelp_conv_shape *s = &conv->shape;
    int64_t lanes = conv->kernels->tile_columns;
    KELP_ASSERT(s->groups == 1 && conv->residual == NULL && conv->scratch != NULL);
    int64_t work = s->in_channels * s->out_channels * s->window.kernel_size * s->window.out_size;
    kelp_op_parallel(env, kelp_divide_up(s->batch, lanes),
                     kelp_cpu_grain(KELP_GRAIN_TILES, work * lanes), lanes_range, conv);
}

const kelp_conv_algorithm kelp_conv_interleaved = {.name = "interleaved",
                                                   .is_applicable = is_applicable,
                                                   .is_profitable = is_profitable,
                                                   .reserve = reserve,
                                                   .run = run};
