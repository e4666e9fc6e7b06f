/* SPDX-License-Identifier: Apache-2.0 */
/* Weights of convolutions as bfloat16. */
#include "cpu/kernels/conv/conv_bf16.h"
#include "cpu/kernels/gemm/gemm_bf16.h"

int64_t kelp_conv_bf16_row_step(int64_t in_channels, int64_t taps) {
    return kelp_bf16_row_step(kelp_divide_up(in_channels, 2) * taps);
}

void kelp_conv_bf16_pack_rows(const kelp_bf16_kernels *kernels, const void *weights, int64_t taps,
                              int64_t in_channels, int64_t out_channels, kelp_bf16_pair *out) {
    int64_t step = kelp_conv_bf16_row_step(in_channels, taps);
    const kelp_float_u *from = weights;
    for (int64_t m = 0; m < out_channels; m++) {
        kelp_bf16_pair *to = out + m * step;
        for (int64_t c = 0; c < in_channels; c += 2, to += taps) {
            const kelp_float_u *even = from + (m * in_channels + c) * taps;
            kernels->pairs(even, c + 1 < in_channels ? even + taps : NULL, 0, 1, 1, taps, to, 0);
        }
    }
}

/* Copies the output channels of one panel to rows of `depth` floats and transposes [channels, taps]
 * of each to [taps, channels]. */
static void order_taps(const kelp_float_u *from, int64_t taps, int64_t channels, int64_t count,
                       int64_t depth, float *to) {
    int64_t step = depth / taps;
    memset(to, 0, (size_t)(count * depth) * sizeof *to);
    for (int64_t j = 0; j < count; j++, from += channels * taps, to += depth)
        for (int64_t t = 0; t < taps; t++)
            for (int64_t c = 0; c < channels; c++)
                to[t * step + c] = from[c * taps + t];
}

void kelp_conv_bf16_pack_taps_first(const kelp_bf16_kernels *kernels, const void *weights,
                                    int64_t taps, int64_t in_channels, int64_t out_channels,
                                    float *ordered, kelp_bf16_pair *out) {
    int64_t depth = kelp_round_up(in_channels, 2) * taps, each = in_channels * taps;
    for (int64_t n = 0; n < out_channels; n += KELP_BF16_COLUMNS) {
        int64_t count = KELP_MIN((int64_t)KELP_BF16_COLUMNS, out_channels - n);
        order_taps((const kelp_float_u *)weights + n * each, taps, in_channels, count, depth,
                   ordered);
        kelp_bf16_pack_transposed(kernels, ordered, depth, depth, count, out + n * (depth / 2));
    }
}
