/* SPDX-License-Identifier: Apache-2.0 */
/* Attributes and shapes of sliding windows, for convolutions and pools. */
#ifndef KELP_CPU_OPS_CONV_WINDOW_H_
#define KELP_CPU_OPS_CONV_WINDOW_H_

#include "cpu/kernels/sliding/window.h"
#include "cpu/ops/kernel.h"

typedef struct kelp_window_range {
    int64_t least, most;
} kelp_window_range;
/* Value `index` of the list that attribute `name` is, of `count` values; when there is none,
 * `*inout_value` stays. INVALID_ARGUMENT names the attribute, what was expected and what was found.
 */
kelp_status *kelp_window_attr(const kelp_op_args *args, const char *name, size_t count,
                              size_t index, kelp_window_range range,
                              int64_t *inout_value) KELP_MUST_USE;

/* From input [N, C, spatial…], kernel extents (its spatial part) and the attributes strides,
 * dilations, pads, auto_pad, ceil_mode. */
kelp_status *kelp_window_init(kelp_conv_window *window, const kelp_op_args *args,
                              const kelp_tensor *input, const int64_t *kernel,
                              int32_t axes) KELP_MUST_USE;
/* Shape [N, channels, out spatial…]. */
int32_t kelp_window_shape(const kelp_conv_window *window, int64_t batch, int64_t channels,
                          int64_t *out_shape);

#endif
