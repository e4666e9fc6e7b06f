/* SPDX-License-Identifier: Apache-2.0 */
/* Images with their padding around them. */
#include "ops/nn/frame.h"

bool kelp_frame_fits(const kelp_window *w) {
    return w->kernel[0] == 1 && w->in[0] == 1 && w->out[0] == 1 && w->before[0] == 0;
}

static int64_t rows_of(const kelp_window *w, int64_t rows) {
    return (rows - 1) * w->stride[1] + (w->kernel[1] - 1) * w->dilation[1] + 1;
}

static int64_t columns_of(const kelp_window *w) {
    return (w->out[2] - 1) * w->stride[2] + (w->kernel[2] - 1) * w->dilation[2] + 1;
}

int64_t kelp_frame_strip(const kelp_window *w) {
    int64_t fitting = 8192 / KELP_MAX((int64_t)1, columns_of(w)) / w->stride[1];
    return KELP_MAX((int64_t)1, KELP_MIN(w->out[1], fitting));
}

int64_t kelp_frame_floats(const kelp_window *w, int64_t rows) {
    int64_t floats = 0;
    if (!kelp_i64_mul(rows_of(w, rows), columns_of(w), &floats) ||
        !kelp_i64_add(floats, KELP_FRAME_SLACK, &floats))
        return -1;
    return floats;
}

void kelp_frame_fill(const kelp_window *w, const kelp_simd *simd, const float *x, int64_t first,
                     int64_t rows, float border, float *frame, kelp_slide *out) {
    int64_t high = rows_of(w, rows), wide = columns_of(w);
    int64_t top = first * w->stride[1] - w->before[1], left = -w->before[2];
    int64_t r0 = KELP_MAX((int64_t)0, -top), r1 = KELP_MIN(high, w->in[1] - top);
    int64_t c0 = KELP_MAX((int64_t)0, -left), c1 = KELP_MIN(wide, w->in[2] - left);
    bool inside = r0 < r1 && c0 < c1;
    if (!inside)
        r0 = r1 = 0;
    out->first = r0;
    out->last = r1;
    /* padding is what the copy below leaves; sums never look at whole rows of zeros */
    for (int64_t r = border == 0.0f ? r0 : 0; r < (border == 0.0f ? r1 : high); r++) {
        float *row = frame + r * wide;
        bool kept = r >= r0 && r < r1;
        for (int64_t c = 0; c < (kept ? c0 : wide); c++)
            row[c] = border;
        for (int64_t c = c1; kept && c < wide; c++)
            row[c] = border;
    }
    for (int64_t i = 0; i < KELP_FRAME_SLACK && border != 0.0f; i++)
        frame[high * wide + i] = border;
    if (inside)
        simd->copy_rows(frame + r0 * wide + c0, wide, x + (top + r0) * w->in[2] + left + c0,
                        w->in[2], r1 - r0, c1 - c0);
    out->x = frame;
    out->rows = rows;
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
