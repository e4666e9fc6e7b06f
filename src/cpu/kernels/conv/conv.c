/* SPDX-License-Identifier: Apache-2.0 */
/* Properties of convolutions that several algorithms ask for. */
#include "cpu/kernels/conv/conv.h"

bool kelp_conv_fits_int32(const kelp_conv *conv) {
    const kelp_conv_shape *s = &conv->shape;
    return s->batch <= INT32_MAX && s->window.in_size <= INT32_MAX &&
           s->window.out_size <= INT32_MAX && s->window.kernel_size <= INT32_MAX &&
           s->in_channels <= INT32_MAX && s->out_channels <= INT32_MAX;
}

bool kelp_conv_is_pointwise(const kelp_conv *conv) {
    const kelp_conv_window *w = &conv->shape.window;
    bool pointwise = w->kernel_size == 1;
    for (int i = 0; i < KELP_WINDOW_AXES; i++)
        pointwise = pointwise && w->stride[i] == 1 && w->before[i] == 0 && w->after[i] == 0;
    return pointwise;
}

void kelp_conv_select_kernels(kelp_conv *conv) {
    conv->kernels = kelp_conv_kernels_get();
    conv->gemm = kelp_gemm_kernels_get();
    conv->sliding = kelp_sliding_kernels_get();
}
