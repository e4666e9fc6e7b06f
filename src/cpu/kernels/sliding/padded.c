/* SPDX-License-Identifier: Apache-2.0 */
/* Padded tiles of images. */
#include "cpu/kernels/sliding/padded.h"

#include "base/assert.h"
#include "base/checked.h"
#include "cpu/kernels/layout/layout_kernels.h"
#include "cpu/kernels/tuning.h"

bool kelp_padded_fits(const kelp_conv_window *w) {
    return w->kernel[0] == 1 && w->in[0] == 1 && w->out[0] == 1 && w->before[0] == 0;
}

static int64_t rows_of(const kelp_conv_window *w, int64_t rows) {
    return (rows - 1) * w->stride[1] + (w->kernel[1] - 1) * w->dilation[1] + 1;
}

static int64_t columns_of(const kelp_conv_window *w) {
    return (w->out[2] - 1) * w->stride[2] + (w->kernel[2] - 1) * w->dilation[2] + 1;
}

int64_t kelp_padded_strip(const kelp_conv_window *w) {
    int64_t fitting = KELP_PADDED_TILE_FLOATS / KELP_MAX((int64_t)1, columns_of(w)) / w->stride[1];
    return KELP_MAX((int64_t)1, KELP_MIN(w->out[1], fitting));
}

int64_t kelp_padded_floats(const kelp_conv_window *w, int64_t rows) {
    int64_t floats = 0;
    if (!kelp_i64_mul(rows_of(w, rows), columns_of(w), &floats) ||
        !kelp_i64_add(floats, KELP_PADDED_SLACK, &floats))
        return -1;
    return floats;
}

static void describe(const kelp_conv_window *w, int64_t wide, kelp_sliding_geometry *out) {
    out->width = w->out[2];
    out->row_step = w->stride[1] * wide;
    out->stride = w->stride[2];
    out->tap_rows = w->kernel[1];
    out->taps = w->kernel[2];
    out->tap_row_step = w->dilation[1] * wide;
    out->tap_step = w->dilation[2];
    out->rows_apart = w->stride[1];
    out->tap_rows_apart = w->dilation[1];
}

void kelp_padded_fill(const kelp_conv_window *w, const float *x, int64_t first, int64_t rows,
                      float border, float *tile, kelp_sliding_geometry *out) {
    int64_t high = rows_of(w, rows), wide = columns_of(w);
    int64_t top = first * w->stride[1] - w->before[1], left = -w->before[2];
    int64_t r0 = KELP_MAX((int64_t)0, -top), r1 = KELP_MIN(high, w->in[1] - top);
    int64_t c0 = KELP_MAX((int64_t)0, -left), c1 = KELP_MIN(wide, w->in[2] - left);
    bool inside = r0 < r1 && c0 < c1;
    if (!inside)
        r0 = r1 = 0;
    out->first = r0;
    out->last = r1;
    /* the copy below fills the rest; rows without input are not read */
    for (int64_t r = r0; r < r1; r++) {
        float *row = tile + r * wide;
        for (int64_t c = 0; c < c0; c++)
            row[c] = border;
        for (int64_t c = c1; c < wide; c++)
            row[c] = border;
    }
    if (inside)
        kelp_layout_kernels_get()->copy_rows(tile + r0 * wide + c0, wide,
                                             x + (top + r0) * w->in[2] + left + c0, w->in[2],
                                             r1 - r0, c1 - c0);
    out->rows = rows;
    describe(w, wide, out);
}

bool kelp_padded_pool_image(const kelp_conv_window *w, const float *x, int64_t plane,
                            int64_t planes, kelp_sliding_pool *out) {
    int64_t end = plane * w->in_size + (w->in[1] - 1) * w->in[2] - w->before[2] + columns_of(w);
    if (!kelp_sliding_takes_unpadded(w->kernel[2], w->stride[2], w->dilation[2]) ||
        plane * w->in_size < w->before[2] || end > planes * w->in_size - 31)
        return false;
    out->x = x + (plane * w->in_size - w->before[1] * w->in[2] - w->before[2]);
    out->unpadded = true;
    out->begin = w->before[2];
    out->end = w->before[2] + w->in[2];
    out->geometry.rows = w->out[1];
    out->geometry.first = w->before[1];
    out->geometry.last = w->before[1] + w->in[1];
    describe(w, w->in[2], &out->geometry);
    return true;
}

bool kelp_padded_keeps_width(const kelp_conv_window *w) {
    int64_t size = w->kernel[2];
    return (size == 3 || size == 5) && w->kernel[1] == size && w->stride[2] == 1 &&
           w->dilation[1] == 1 && w->dilation[2] == 1 && w->before[2] == size / 2 &&
           w->out[2] == w->in[2] && (w->stride[1] == 1 || w->stride[1] == 2);
}

void kelp_padded_image(const kelp_conv_window *w, const float *x, int64_t first, int64_t rows,
                       kelp_sliding_weighted *out) {
    int64_t top = first * w->stride[1] - w->before[1];
    KELP_ASSERT(kelp_padded_keeps_width(w));
    out->x = x + top * w->in[2];
    out->geometry.rows = rows;
    out->geometry.first = -top;
    out->geometry.last = w->in[1] - top;
    describe(w, w->in[2], &out->geometry);
}
