/* SPDX-License-Identifier: Apache-2.0 */
/* Convolutions of many small images, side by side in vectors. */
#include "cpu/kernels/conv/interleaved.h"

#define MOST_PIXELS 64
#define MOST_TAPS 25

/* The taps of output (row, column) that lie inside; gives how many. */
static int32_t inside(const kelp_window *w, int64_t row, int64_t column, int32_t *index,
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

bool kelp_conv_lanes_pays(const kelp_window *w, const kelp_simd *simd, int64_t batch,
                          int64_t in_channels, int64_t out_channels) {
    int64_t lanes = simd->tile_columns, used = 0;
    int32_t index[MOST_TAPS], offset[MOST_TAPS];
    if (w->in[0] != 1 || w->out[0] != 1 || w->kernel[0] != 1 || w->before[0] != 0 ||
        w->kernel_size > MOST_TAPS || w->in_size > MOST_PIXELS || w->out_size > MOST_PIXELS ||
        in_channels * w->kernel_size < 64 || out_channels < 8 || batch < lanes ||
        in_channels > 4096 || out_channels > 4096)
        return false;
    for (int64_t o = 0; o < w->out_size; o++)
        used += inside(w, o / w->out[2], o % w->out[2], index, offset);
    /* the last vectors may be filled in part */
    int64_t filled = (batch + lanes - 1) / lanes * lanes;
    return used * filled * 5 <= w->out_size * w->kernel_size * batch * 4;
}

int64_t kelp_conv_lanes_floats(const kelp_window *w, const kelp_simd *simd, int64_t in_channels,
                               int64_t out_channels) {
    int64_t in = 0, out = 0;
    if (!kelp_i64_mul(in_channels, w->in_size, &in) ||
        !kelp_i64_mul(out_channels, w->out_size, &out) || !kelp_i64_add(in, out, &in) ||
        !kelp_i64_mul(in, simd->tile_columns, &in))
        return -1;
    return in;
}

/* A unit is as many images as the vectors hold. */
static void lanes_range(void *userp, int64_t begin, int64_t end, int worker) {
    const kelp_conv_lanes *p = userp;
    const kelp_window *w = p->w;
    int64_t lanes = p->simd->tile_columns;
    int64_t in = p->in_channels * w->in_size, out = p->out_channels * w->out_size;
    float *x = p->buffer + worker * p->buffer_floats, *y = x + in * lanes;
    int32_t index[MOST_TAPS], offset[MOST_TAPS];
    for (int64_t unit = begin; unit < end; unit++) {
        int64_t first = unit * lanes, images = KELP_MIN(lanes, p->batch - first);
        if (images < lanes)
            memset(x, 0, (size_t)(in * lanes) * sizeof *x);
        p->simd->turn(x, lanes, p->x + first * in, in, images, in);
        for (int64_t o = 0; o < w->out_size; o++) {
            int32_t taps = inside(w, o / w->out[2], o % w->out[2], index, offset);
            p->simd->lanes(&(kelp_lanes){.w = p->weights,
                                         .x = x,
                                         .y = y + o * lanes,
                                         .m = p->out_channels,
                                         .depth = p->in_channels * w->kernel_size,
                                         .channels = p->in_channels,
                                         .kernel = w->kernel_size,
                                         .plane = w->in_size,
                                         .y_step = w->out_size * lanes,
                                         .taps = taps,
                                         .tap_index = index,
                                         .tap_offset = offset});
        }
        for (int64_t c = 0; c < p->out_channels; c++)
            if (p->bias != NULL || p->act != KELP_ACT_NONE)
                p->simd->finish(y + c * w->out_size * lanes, NULL,
                                p->bias != NULL ? p->bias[c] : 0.0f, NULL, w->out_size * lanes,
                                p->act);
        p->simd->turn(p->y + first * out, out, y, lanes, out, images);
    }
}

void kelp_conv_lanes_run(const kelp_op_env *env, kelp_conv_lanes *job) {
    int64_t lanes = job->simd->tile_columns;
    int64_t work = job->in_channels * job->out_channels * job->w->kernel_size * job->w->out_size;
    kelp_op_parallel(env, (job->batch + lanes - 1) / lanes,
                     1000000 / KELP_MAX((int64_t)1, work * lanes) + 1, lanes_range, job);
}
