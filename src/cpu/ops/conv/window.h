/* SPDX-License-Identifier: Apache-2.0 */
/* Attributes and shapes of sliding windows, for convolutions and pools. */
#ifndef KELP_CPU_OPS_CONV_WINDOW_H_
#define KELP_CPU_OPS_CONV_WINDOW_H_

#include "cpu/kernels/sliding/window.h"
#include "cpu/ops/kernel.h"

/* The values that an attribute may have. */
typedef struct kelp_window_range {
    int64_t min, max; /* inclusive */
} kelp_window_range;
/* Reads value `index` of attribute `name`, a list of `count` values. Without the attribute,
 * `*inout_value` does not change. INVALID_ARGUMENT: the list has another length, or the value is
 * out of range. */
kelp_status *kelp_window_attr(const kelp_op_args *args, const char *name, size_t count,
                              size_t index, kelp_window_range range,
                              int64_t *inout_value) KELP_MUST_USE;

/* Initializes the window of input [N, C, spatial…] from the spatial dimensions of the kernel and
 * the attributes strides, dilations, pads, auto_pad, ceil_mode. INVALID_ARGUMENT: they do not
 * match. */
kelp_status *kelp_window_init(kelp_conv_window *window, const kelp_op_args *args,
                              const kelp_tensor *input, const int64_t *kernel,
                              int32_t axes) KELP_MUST_USE;
/* Sets shape [N, channels, output spatial…] and returns its rank. */
int32_t kelp_window_shape(const kelp_conv_window *window, int64_t batch, int64_t channels,
                          int64_t *out_shape);

#endif
