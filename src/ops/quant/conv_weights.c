/* SPDX-License-Identifier: Apache-2.0 */
/* Weights of convolutions of 8-bit integers. */
#include "ops/quant/conv_weights.h"

#include "ops/quant/epilogue.h"

bool kelp_int8_conv_shape_of(const kelp_tensor *weights, const kelp_tensor *zero, int64_t groups,
                             kelp_int8_conv_shape *out) {
    if (weights->rank < 3 || (weights->dtype != KELP_U8 && weights->dtype != KELP_I8) ||
        groups < 1 || weights->shape[0] % groups != 0)
        return false;
    int64_t zeros = zero != NULL ? kelp_tensor_elements(zero) : 1;
    if ((zeros != 1 && zeros != weights->shape[0]) ||
        (zero != NULL && zero->dtype != weights->dtype))
        return false;
    *out = (kelp_int8_conv_shape){groups, weights->shape[1], weights->shape[0] / groups,
                                  kelp_ops_product(weights->shape, 2, weights->rank), false};
    out->depthwise = groups > 1 && out->in_channels == 1 && out->out_channels == 1;
    return true;
}

static bool group_size(const kelp_int8_conv_shape *s, int64_t *out_depth, size_t *out_bytes) {
    if (!kelp_i64_mul(s->in_channels, s->taps, out_depth))
        return false;
    return s->depthwise ? kelp_size_mul((size_t)s->taps, sizeof(int16_t), out_bytes)
                        : kelp_int8_weights_size(*out_depth, s->out_channels, out_bytes) &&
                              kelp_size_align(*out_bytes, 64, out_bytes);
}

/* Panels of the groups; the turned weights of one group; balance and zeros of all. */
bool kelp_int8_conv_weights_size(const kelp_int8_conv_shape *s, size_t *out_bytes) {
    int64_t depth;
    size_t each, all, turned, more;
    return group_size(s, &depth, &each) && kelp_size_mul(each, (size_t)s->groups, &all) &&
           kelp_size_align(all, 64, &all) &&
           kelp_size_mul((size_t)depth, (size_t)s->out_channels, &turned) &&
           kelp_size_align(turned, 64, &turned) && kelp_size_add(all, turned, &all) &&
           kelp_size_mul((size_t)(s->groups * s->out_channels), 2 * sizeof(int32_t), &more) &&
           kelp_size_add(all, more, out_bytes);
}

static int32_t byte_at(const kelp_tensor *tensor, int64_t index) {
    return tensor->dtype == KELP_I8 ? ((const int8_t *)tensor->data)[index]
                                    : ((const uint8_t *)tensor->data)[index];
}

static void lay_depthwise(const kelp_int8_conv_shape *s, const kelp_tensor *weights,
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

void kelp_int8_conv_weights_lay(const kelp_int8 *loops, const kelp_int8_conv_shape *s,
                                const kelp_tensor *weights, const kelp_tensor *zero, void *memory,
                                kelp_int8_conv_weights *out) {
    int64_t depth = 0, n = s->out_channels;
    size_t each = 0, all = 0, turned_bytes = 0;
    (void)group_size(s, &depth, &each); /* fits, or there were no memory */
    (void)kelp_size_align(each * (size_t)s->groups, 64, &all);
    (void)kelp_size_align((size_t)(depth * n), 64, &turned_bytes);
    int8_t *panels = memory;
    uint8_t *turned = (uint8_t *)memory + all;
    int32_t *balance = (int32_t *)(void *)(turned + turned_bytes), *zeros = balance + s->groups * n;
    bool any = false;
    *out = (kelp_int8_conv_weights){.panels = panels, .group_bytes = each, .balance = balance};
    if (s->depthwise) {
        out->taps = memory;
        lay_depthwise(s, weights, zero, memory, balance);
        return;
    }
    for (int64_t g = 0; g < s->groups; g++) {
        const uint8_t *from = (const uint8_t *)weights->data + g * n * depth;
        kelp_int8_weights laid;
        /* of each output channel: channels by taps become taps by channels */
        for (int64_t j = 0; s->taps > 1 && j < n; j++)
            loops->turn(turned + j * depth, s->in_channels, from + j * depth, s->taps,
                        s->in_channels, s->taps, 0);
        kelp_int8_matrix matrix = {.data = s->taps > 1 ? turned : from,
                                   .dtype = weights->dtype,
                                   .k = depth,
                                   .n = n,
                                   .row_stride = 1,
                                   .column_stride = depth,
                                   .zero = zero,
                                   .zero_first = g * n};
        if (zero != NULL && kelp_tensor_elements(zero) == 1)
            matrix.zero_first = 0;
        kelp_int8_weights_lay(loops, &matrix, panels + (size_t)g * each, &laid);
        for (int64_t j = 0; j < n; j++) {
            balance[g * n + j] = laid.balance[j];
            zeros[g * n + j] = laid.zeros != NULL ? laid.zeros[j] : laid.zero;
            any = any || zeros[g * n + j] != zeros[0];
        }
    }
    out->zeros = any ? zeros : NULL;
    out->zero = s->groups * n > 0 ? zeros[0] : 0;
}
