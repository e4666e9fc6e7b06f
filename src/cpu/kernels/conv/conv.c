/* SPDX-License-Identifier: Apache-2.0 */
/* The ordered lists of algorithms, and properties of convolutions that several algorithms need. */
#include "cpu/kernels/conv/conv.h"

#include "cpu/kernels/conv/conv_bf16.h"
#include "cpu/kernels/conv/conv_int8.h"

/* ---- algorithms, in order of preference ---- */
const kelp_conv_algorithm *const kelp_conv_algorithms[KELP_CONV_ALGORITHMS] = {
    &kelp_conv_reference_f64, &kelp_conv_depthwise_image, &kelp_conv_depthwise_padded,
    &kelp_conv_im2row_few,    &kelp_conv_interleaved,     &kelp_conv_winograd_4x4,
    &kelp_conv_winograd_2x2,  &kelp_conv_winograd_1d,     &kelp_conv_im2row,
    &kelp_conv_direct_gemm,   &kelp_conv_pointwise,       &kelp_conv_depthwise_rows,
    &kelp_conv_im2col_gemm,
};

static const kelp_conv_bf16_algorithm *const bf16_algorithms[] = {
    &kelp_conv_bf16_nhwc_gemm, &kelp_conv_bf16_im2row, &kelp_conv_bf16_planes_gemm};

static const kelp_conv_int8_algorithm *const int8_algorithms[] = {
    &kelp_conv_int8_depthwise, &kelp_conv_int8_in_place, &kelp_conv_int8_im2row};

const kelp_conv_bf16_algorithm *kelp_conv_bf16_choose(const kelp_conv_bf16 *conv) {
    size_t i = 0;
    while (!bf16_algorithms[i]->is_applicable(conv)) /* the last one always is */
        i++;
    return bf16_algorithms[i];
}

const kelp_conv_int8_algorithm *kelp_conv_int8_choose(const kelp_conv_int8 *conv) {
    size_t i = 0;
    while (!int8_algorithms[i]->is_applicable(conv)) /* the last one is where the first is not */
        i++;
    return int8_algorithms[i];
}

/* ---- properties ---- */

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
