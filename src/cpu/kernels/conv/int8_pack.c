/* SPDX-License-Identifier: Apache-2.0 */
/* Packing of int8 weights for a GEMM whose rows are NHWC windows: position by position, the
 * channels of each. */
#include "base/assert.h"
#include "cpu/kernels/conv/conv_int8.h"

bool kelp_conv_int8_weights_shape_of(const kelp_tensor *weights, const kelp_tensor *zero,
                                     int64_t groups, kelp_conv_int8_weights_shape *out) {
    if (weights->rank < 3 || (weights->dtype != KELP_U8 && weights->dtype != KELP_I8) ||
        groups < 1 || weights->shape[0] % groups != 0)
        return false;
    int64_t zeros = zero != NULL ? kelp_tensor_elements(zero) : 1;
    if ((zeros != 1 && zeros != weights->shape[0]) ||
        (zero != NULL && zero->dtype != weights->dtype))
        return false;
    *out = (kelp_conv_int8_weights_shape){.groups = groups,
                                          .in_channels = weights->shape[1],
                                          .out_channels = weights->shape[0] / groups,
                                          .taps = 1};
    for (int32_t i = 2; i < weights->rank; i++)
        out->taps *= weights->shape[i];
    out->depthwise = groups > 1 && out->in_channels == 1 && out->out_channels == 1;
    return true;
}

static bool group_size(const kelp_conv_int8_weights_shape *s, int64_t *out_depth,
                       size_t *out_bytes) {
    if (!kelp_i64_mul(s->in_channels, s->taps, out_depth))
        return false;
    return s->depthwise ? kelp_size_mul((size_t)s->taps, sizeof(int16_t), out_bytes)
                        : kelp_int8_weights_size(*out_depth, s->out_channels, out_bytes) &&
                              kelp_size_align(*out_bytes, 64, out_bytes);
}

/* Packed weights are the panels of each group, then balance and zeros of all. The buffer holds
 * the transposed weights of one group. */
bool kelp_conv_int8_packed_size(const kelp_conv_int8_weights_shape *s, size_t *out_bytes,
                                size_t *out_buffer_bytes) {
    int64_t depth;
    size_t each, all, transposed, more;
    return group_size(s, &depth, &each) && kelp_size_mul(each, (size_t)s->groups, &all) &&
           kelp_size_align(all, 64, &all) &&
           kelp_size_mul((size_t)depth, (size_t)s->out_channels, &transposed) &&
           kelp_size_align(transposed, 64, out_buffer_bytes) &&
           kelp_size_mul((size_t)(s->groups * s->out_channels), 2 * sizeof(int32_t), &more) &&
           kelp_size_add(all, more, &all) && kelp_size_align(all, 64, out_bytes);
}

static size_t balance_offset(const kelp_conv_int8_weights_shape *s, size_t *out_each) {
    int64_t depth = 0;
    size_t all = 0;
    (void)group_size(s, &depth, out_each); /* packed_size succeeded */
    (void)kelp_size_align(*out_each * (size_t)s->groups, 64, &all);
    return all;
}

static int32_t byte_at(const kelp_tensor *tensor, int64_t index) {
    return tensor->dtype == KELP_I8 ? ((const int8_t *)tensor->data)[index]
                                    : ((const uint8_t *)tensor->data)[index];
}

static void lay_depthwise(const kelp_conv_int8_weights_shape *s, const kelp_tensor *weights,
                          const kelp_tensor *zero, int16_t *to, int32_t *balance) {
    bool many = zero != NULL && kelp_tensor_elements(zero) > 1;
    for (int64_t c = 0; c < s->groups; c++) {
        int32_t less = zero != NULL ? byte_at(zero, many ? c : 0) : 0;
        balance[c] = 0;
        for (int64_t t = 0; t < s->taps; t++) {
            int32_t w = byte_at(weights, c * s->taps + t) - less;
            to[t * s->groups + c] = (int16_t)w;
            balance[c] += w;
        }
    }
}

void kelp_conv_int8_pack(const kelp_int8_kernels *kernels, const kelp_conv_int8_weights_shape *s,
                         const kelp_tensor *weights, const kelp_tensor *zero, void *memory,
                         void *buffer) {
    int64_t depth = s->in_channels * s->taps, n = s->out_channels;
    size_t each = 0, offset = balance_offset(s, &each);
    int8_t *panels = memory;
    uint8_t *transposed = buffer;
    int32_t *balance = (int32_t *)(void *)((char *)memory + offset),
            *zeros = balance + s->groups * n;
    if (s->depthwise) {
        lay_depthwise(s, weights, zero, memory, balance);
        return;
    }
    for (int64_t g = 0; g < s->groups; g++) {
        const uint8_t *from = (const uint8_t *)weights->data + g * n * depth;
        kelp_int8_weights laid;
        /* transpose [channels, taps] of each output channel to [taps, channels] */
        for (int64_t j = 0; s->taps > 1 && j < n; j++)
            kernels->transpose(transposed + j * depth, s->in_channels, from + j * depth, s->taps,
                               s->in_channels, s->taps, 0);
        kelp_int8_matrix matrix = {.data = s->taps > 1 ? transposed : from,
                                   .dtype = weights->dtype,
                                   .k = depth,
                                   .n = n,
                                   .row_stride = 1,
                                   .column_stride = depth,
                                   .zero = zero,
                                   .zero_first = g * n};
        if (zero != NULL && kelp_tensor_elements(zero) == 1)
            matrix.zero_first = 0;
        kelp_int8_weights_pack(kernels, &matrix, panels + (size_t)g * each, &laid);
        for (int64_t j = 0; j < n; j++) {
            balance[g * n + j] = laid.balance[j];
            zeros[g * n + j] = laid.zeros != NULL ? laid.zeros[j] : laid.zero;
        }
    }
}

void kelp_conv_int8_packed_view(const kelp_conv_int8_weights_shape *s, const void *memory,
                                kelp_conv_int8_weights *out) {
    int64_t channels = s->groups * s->out_channels;
    size_t each = 0, offset = balance_offset(s, &each);
    const int32_t *balance = (const int32_t *)(const void *)((const char *)memory + offset);
    const int32_t *zeros = balance + channels;
    bool any = false;
    *out = (kelp_conv_int8_weights){.panels = memory, .group_bytes = each, .balance = balance};
    if (s->depthwise) {
        out->taps = memory;
        return;
    }
    for (int64_t j = 0; j < channels; j++)
        any = any || zeros[j] != zeros[0];
    out->zeros = any ? zeros : NULL;
    out->zero = channels > 0 ? zeros[0] : 0;
}
