/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Copies windows to a matrix (im2col). Long rows are copied one by one. For short rows the calls
 * would cost more than the bytes: each channel is first copied to a plane padded with zeros, from
 * which every kernel position reads whole vectors without a condition.
 */
#include "cpu/kernels/conv/unroll.h"

#include "base/checked.h"
#include "cpu/kernels/layout/layout_kernels.h"
#include "cpu/kernels/tuning.h"

#include <string.h>

static bool is_padded(const kelp_conv_window *w) {
    return w->kernel[0] == 1 && w->in[0] == 1 && w->out[0] == 1 && w->before[0] == 0 &&
           w->out[2] <= KELP_IM2COL_SHORT_ROW;
}

/* Return the rows and columns of the padded plane that `rows` output rows read. */
static int64_t padded_rows(const kelp_conv_window *w, int64_t rows) {
    return (rows - 1) * w->stride[1] + (w->kernel[1] - 1) * w->dilation[1] + 1;
}

static int64_t padded_columns(const kelp_conv_window *w) {
    return (w->out[2] - 1) * w->stride[2] + (w->kernel[2] - 1) * w->dilation[2] + 1;
}

int64_t kelp_unroll_plane(const kelp_conv_window *w, int64_t rows, int64_t images) {
    int64_t floats = 0;
    if (!is_padded(w) || !kelp_i64_mul(padded_rows(w, rows), padded_columns(w), &floats) ||
        !kelp_i64_mul(floats, images, &floats))
        return 0;
    return floats + 4 * KELP_UNROLL_SLACK; /* vectors read beyond the end */
}

static void unroll_padded(const kelp_unroll *u) {
    const kelp_layout_kernels *layout = kelp_layout_kernels_get();
    const kelp_conv_window *w = u->w;
    int64_t high = padded_rows(w, u->rows), wide = padded_columns(w), size = high * wide;
    int64_t top = u->row * w->stride[1] - w->before[1], left = -w->before[2];
    int64_t first = KELP_MAX((int64_t)0, -top), last = KELP_MIN(high, w->in[1] - top);
    int64_t begin = KELP_MAX((int64_t)0, -left), end = KELP_MIN(wide, w->in[2] - left);
    const float *x = u->x + (top + first) * w->in[2] + left + begin;
    float *inside = u->plane + first * wide + begin, *to = u->matrix;
    memset(u->plane, 0, (size_t)kelp_unroll_plane(w, u->rows, u->images) * sizeof *u->plane);
    for (int64_t c = 0; c < u->channels; c++, x += w->in_size) {
        if (first < last && begin < end)
            for (int64_t i = 0; i < u->images; i++)
                layout->copy_rows(inside + i * size, wide, x + i * u->image_step, w->in[2],
                                  last - first, end - begin);
        for (int64_t b = 0; b < w->kernel[1]; b++)
            for (int64_t k = 0; k < w->kernel[2]; k++, to += u->ld)
                layout->gather_rows(to, u->plane + b * w->dilation[1] * wide + k * w->dilation[2],
                                    u->images, size, u->rows, w->stride[1] * wide, w->out[2],
                                    w->stride[2]);
    }
}

/* Copies the input of one kernel position for one row of output positions. */
static void unroll_row(const kelp_conv_window *w, const float *x, const int64_t *at,
                       const int64_t *tap, float *to) {
    int64_t z = at[0] * w->stride[0] - w->before[0] + tap[0] * w->dilation[0];
    int64_t y = at[1] * w->stride[1] - w->before[1] + tap[1] * w->dilation[1];
    int64_t shift = tap[2] * w->dilation[2] - w->before[2], count = w->out[2];
    if (z < 0 || z >= w->in[0] || y < 0 || y >= w->in[1]) {
        memset(to, 0, (size_t)count * sizeof *to);
        return;
    }
    const float *row = x + (z * w->in[1] + y) * w->in[2];
    if (w->stride[2] == 1) {
        int64_t first = KELP_MIN(count, KELP_MAX((int64_t)0, -shift));
        int64_t last = KELP_MAX(first, KELP_MIN(count, w->in[2] - shift));
        memset(to, 0, (size_t)first * sizeof *to);
        memcpy(to + first, row + first + shift, (size_t)(last - first) * sizeof *to);
        memset(to + last, 0, (size_t)(count - last) * sizeof *to);
        return;
    }
    for (int64_t i = 0; i < count; i++) {
        int64_t source = i * w->stride[2] + shift;
        to[i] = source >= 0 && source < w->in[2] ? row[source] : 0.0f;
    }
}

void kelp_unroll_run(const kelp_unroll *u) {
    const kelp_conv_window *w = u->w;
    int64_t tap[3], row[2] = {u->depth, 0};
    float *to = u->matrix;
    if (is_padded(w)) {
        unroll_padded(u);
        return;
    }
    for (int64_t c = 0; c < u->channels; c++)
        for (tap[0] = 0; tap[0] < w->kernel[0]; tap[0]++)
            for (tap[1] = 0; tap[1] < w->kernel[1]; tap[1]++)
                for (tap[2] = 0; tap[2] < w->kernel[2]; tap[2]++, to += u->ld)
                    for (int64_t i = 0; i < u->images * u->rows; i++) {
                        const float *x = u->x + i / u->rows * u->image_step + c * w->in_size;
                        row[1] = u->row + i % u->rows;
                        unroll_row(w, x, row, tap, to + i * w->out[2]);
                    }
}
