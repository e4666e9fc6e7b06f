/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The arithmetic of windows that slide along a spatial axis: output sizes and padding of
 * convolutions, transposed convolutions and pooling. Sizes are in elements. Functions return false
 * for numbers that are out of range, also if they overflow. Source: ONNX operator specification,
 * Conv, ConvTranspose and MaxPool.
 */
#ifndef KELP_OPERATOR_WINDOW_H_
#define KELP_OPERATOR_WINDOW_H_

#include "base/checked.h"

/* One spatial axis. */
typedef struct kelp_window_axis {
    int64_t in, kernel;
    int64_t stride, dilation; /* at least 1 */
    int64_t before, after;    /* padding; negative padding crops the input */
} kelp_window_axis;

/* The attribute auto_pad. */
typedef enum kelp_auto_pad {
    KELP_AUTO_PAD_NOTSET, /* the padding of the attribute pads */
    KELP_AUTO_PAD_VALID,  /* no padding */
    KELP_AUTO_PAD_SAME_UPPER,
    KELP_AUTO_PAD_SAME_LOWER
} kelp_auto_pad;

/* Parses the attribute; unknown text is NOTSET. */
kelp_auto_pad kelp_auto_pad_parse(const char *text);

/* Computes the number of elements from the first to the last that one window reads, and the
 * difference between the padded input and this span, which is negative if the kernel does not fit.
 */
bool kelp_window_span(const kelp_window_axis *axis, int64_t *out_span, int64_t *out_slack);

/* Computes the output size and sets the padding of `pad`. `ceil_mode` rounds up unless the last
 * window would start after the input and the padding before it. Returns false if the kernel does
 * not fit or a number is out of range. */
bool kelp_window_output(kelp_window_axis *inout, kelp_auto_pad pad, bool ceil_mode,
                        int64_t *out_size);

/* Computes the padding to add after the input so that rounding down yields the output size of
 * rounding up. */
bool kelp_window_round_up(const kelp_window_axis *axis, int64_t *out_padding);

/* The attributes that only transposed convolutions have. */
typedef struct kelp_window_transposed {
    int64_t output_padding;
    int64_t output_size; /* attribute output_shape; negative: not set */
} kelp_window_transposed;

/* Computes the output size of a transposed convolution and sets the padding of `pad` or of the
 * output size. Returns false if the output is empty or a number is out of range. */
bool kelp_window_transposed_output(kelp_window_axis *inout, kelp_auto_pad pad,
                                   kelp_window_transposed transposed, int64_t *out_size);

#endif
