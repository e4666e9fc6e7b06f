/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/window.h"

#include "base/assert.h"

#include <string.h>

kelp_auto_pad kelp_auto_pad_parse(const char *text) {
    static const struct {
        const char *text;
        kelp_auto_pad pad;
    } names[] = {{"VALID", KELP_AUTO_PAD_VALID},
                 {"SAME_UPPER", KELP_AUTO_PAD_SAME_UPPER},
                 {"SAME_LOWER", KELP_AUTO_PAD_SAME_LOWER}};
    for (size_t i = 0; i < KELP_COUNT(names); i++)
        if (strcmp(names[i].text, text) == 0)
            return names[i].pad;
    return KELP_AUTO_PAD_NOTSET;
}

static bool is_same(kelp_auto_pad pad) {
    return pad == KELP_AUTO_PAD_SAME_UPPER || pad == KELP_AUTO_PAD_SAME_LOWER;
}

/* The larger half of an odd total is after the input for UPPER. */
static void split_padding(kelp_window_axis *axis, bool upper, int64_t total) {
    KELP_ASSERT(total >= 0);
    int64_t half = total / 2;
    axis->before = upper ? half : total - half;
    axis->after = total - axis->before;
}

static bool span_of(const kelp_window_axis *axis, int64_t *out) {
    return axis->kernel >= 1 && axis->stride >= 1 && axis->dilation >= 1 && axis->in >= 0 &&
           kelp_i64_mul(axis->kernel - 1, axis->dilation, out) && kelp_i64_add(*out, 1, out);
}

bool kelp_window_span(const kelp_window_axis *axis, int64_t *out_span, int64_t *out_slack) {
    int64_t padded;
    return span_of(axis, out_span) && kelp_i64_add(axis->in, axis->before, &padded) &&
           kelp_i64_add(padded, axis->after, &padded) && kelp_i64_sub(padded, *out_span, out_slack);
}

static bool same_output(kelp_window_axis *axis, bool upper, int64_t *out_size) {
    int64_t span, total;
    int64_t size = axis->in / axis->stride + (axis->in % axis->stride != 0);
    if (!span_of(axis, &span) || !kelp_i64_mul(size - 1, axis->stride, &total) ||
        !kelp_i64_add(total, span, &total) || !kelp_i64_sub(total, axis->in, &total))
        return false;
    split_padding(axis, upper, total > 0 ? total : 0);
    *out_size = size;
    return true;
}

bool kelp_window_output(kelp_window_axis *inout, kelp_auto_pad pad, bool ceil_mode,
                        int64_t *out_size) {
    int64_t span, slack, last;
    if (inout->stride < 1 || inout->in < 0)
        return false;
    if (is_same(pad))
        return same_output(inout, pad == KELP_AUTO_PAD_SAME_UPPER, out_size);
    if (pad == KELP_AUTO_PAD_VALID)
        inout->before = inout->after = 0;
    if (!kelp_window_span(inout, &span, &slack) || slack < 0 || slack == INT64_MAX)
        return false;
    int64_t size = slack / inout->stride + 1;
    if (ceil_mode) {
        size += slack % inout->stride != 0;
        if (!kelp_i64_mul(size - 1, inout->stride, &last))
            return false;
        size -= last >= inout->in + inout->before;
    }
    KELP_ASSERT(size >= 1 || ceil_mode);
    *out_size = size;
    return true;
}

bool kelp_window_round_up(const kelp_window_axis *axis, int64_t *out_padding) {
    int64_t span, slack;
    if (!kelp_window_span(axis, &span, &slack))
        return false;
    bool partial = slack > 0 && slack % axis->stride != 0;
    *out_padding = partial ? axis->stride - slack % axis->stride : 0;
    return true;
}

bool kelp_window_transposed_output(kelp_window_axis *inout, kelp_auto_pad pad,
                                   kelp_window_transposed transposed, int64_t *out_size) {
    int64_t span, full, size = transposed.output_size;
    if (inout->in < 1 || !span_of(inout, &span) ||
        !kelp_i64_mul(inout->in - 1, inout->stride, &full) || !kelp_i64_add(full, span, &full) ||
        !kelp_i64_add(full, transposed.output_padding, &full))
        return false;
    if (pad == KELP_AUTO_PAD_VALID)
        inout->before = inout->after = 0;
    if (size < 0 && is_same(pad) && !kelp_i64_mul(inout->in, inout->stride, &size))
        return false;
    if (size >= 0) {
        int64_t total = full > size ? full - size : 0;
        split_padding(inout, pad == KELP_AUTO_PAD_SAME_UPPER, total);
        inout->after = full - size - inout->before; /* negative for a size above `full` */
    }
    if (!kelp_i64_sub(full, inout->before, &full) || !kelp_i64_sub(full, inout->after, &full))
        return false;
    *out_size = full;
    return full >= 1;
}
