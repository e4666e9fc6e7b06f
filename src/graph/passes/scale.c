/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Folds operators that scale and shift the input channels of a convolution with constant weights:
 * Mul of a scalar or of one constant per channel into the weights, and Add into the bias if there
 * is no zero padding, which Add would not shift. With zero padding, x * s + t is rewritten as (x +
 * t / s) * s first, so that the Mul can be folded. Sums are computed in double precision.
 */
#include "base/assert.h"
#include "graph/passes/passes.h"

#include <math.h>
#include <string.h>

static bool is_weight(const kelp_value *value) {
    return value != NULL && value->constant != NULL && value->constant->dtype == KELP_F32;
}

/* Returns true for one value per output channel. The kernel reports other shapes. */
static bool is_bias(const kelp_value *value, const kelp_tensor *weights) {
    return is_weight(value) && kelp_tensor_elements(value->constant) == weights->shape[0];
}

static bool pads(const kelp_node *conv) {
    const int64_t *list = NULL;
    size_t count = kelp_node_attr_i64s(conv, "pads", &list);
    const char *automatic = kelp_node_attr_string(conv, "auto_pad", "NOTSET", NULL);
    for (size_t i = 0; i < count; i++)
        if (list[i] != 0)
            return true;
    return strcmp(automatic, "NOTSET") != 0 && strcmp(automatic, "VALID") != 0;
}

/* Returns the constant per channel of `node`, a Mul or Add, and its other operand; NULL when there
 * is none. */
static kelp_value *operand(const kelp_node *node, const kelp_operator *op, int64_t channels,
                           kelp_value **out_x) {
    if (node == NULL || node->opset_version < 7 || node->input_count != 2 ||
        kelp_match_producer(node->outputs[0], op) != node)
        return NULL;
    for (int k = 0; k < 2; k++) {
        kelp_value *x = node->inputs[k], *other = node->inputs[1 - k];
        if (x == NULL || x->constant != NULL || x->dtype != KELP_F32 || x->rank < 3 ||
            !kelp_match_channels(other, x->rank, channels) ||
            (x->shape[1] != channels && kelp_tensor_elements(other->constant) != 1))
            continue; /* a single channel would be broadcast to the number of constants */
        *out_x = x;
        return other;
    }
    return NULL;
}

typedef struct filters {
    int64_t groups, outputs, inputs, kernel; /* inputs of a group; elements of the kernel */
} filters;

static bool read_filters(const kelp_node *conv, filters *out) {
    const kelp_tensor *weights = conv->inputs[1]->constant;
    out->groups = kelp_node_attr_i64(conv, "group", 1);
    if (weights->rank < 3 || out->groups < 1 || weights->shape[0] % out->groups != 0)
        return false;
    out->outputs = weights->shape[0];
    out->inputs = weights->shape[1];
    out->kernel = 1;
    for (int32_t i = 2; i < weights->rank; i++)
        out->kernel *= weights->shape[i];
    return true;
}

/* Multiplies weights by the scales of their input channels. */
static kelp_status *scale_weights(kelp_block *block, const filters *w, kelp_value *scale,
                                  kelp_value **inout_weights) {
    float *data;
    KELP_ASSERT(w->groups > 0 && w->outputs % w->groups == 0);
    KELP_TRY(kelp_pass_own_f32(block, *inout_weights, inout_weights, &data));
    for (int64_t o = 0; o < w->outputs; o++)
        for (int64_t i = 0; i < w->inputs; i++) {
            int64_t group = o / (w->outputs / w->groups);
            double by = kelp_match_channel_at(scale->constant, group * w->inputs + i);
            float *at = data + (o * w->inputs + i) * w->kernel;
            for (int64_t k = 0; k < w->kernel; k++)
                at[k] = (float)((double)at[k] * by);
        }
    return NULL;
}

/* Adds the contribution of shifted inputs to the bias. */
static kelp_status *shift_bias(kelp_block *block, const filters *w, const kelp_value *weights,
                               const kelp_value *shift, kelp_value **inout_bias) {
    const kelp_tensor *old = *inout_bias != NULL ? (*inout_bias)->constant : NULL;
    float *data;
    KELP_TRY(kelp_pass_new_f32(block, weights->name, 1, &w->outputs, inout_bias, &data));
    for (int64_t o = 0; o < w->outputs; o++) {
        double sum = old != NULL ? kelp_pass_f32_at(old, o) : 0;
        for (int64_t i = 0; i < w->inputs; i++) {
            int64_t group = o / (w->outputs / w->groups), at = (o * w->inputs + i) * w->kernel;
            double by = kelp_match_channel_at(shift->constant, group * w->inputs + i);
            for (int64_t k = 0; k < w->kernel; k++)
                sum += by * kelp_pass_f32_at(weights->constant, at + k);
        }
        data[o] = (float)sum;
    }
    return NULL;
}

static kelp_status *rewrite(kelp_block *block, kelp_node *conv, kelp_value *x, kelp_value *weights,
                            kelp_value *bias) {
    kelp_value *inputs[3] = {x, weights, bias};
    kelp_node *changed = NULL;
    KELP_TRY(kelp_block_insert_node(block, conv, KELP_OP(Conv), conv->opset_version, conv->name,
                                    inputs, bias != NULL ? 3 : 2, conv->outputs, 1,
                                    conv->attributes, &changed));
    conv->removed = true;
    return NULL;
}

/* Rewrites x * s + t before a convolution with padding as (x + t / s) * s, and folds the Mul. */
static kelp_status *swap(kelp_block *block, kelp_node *conv, kelp_node *add, const filters *w,
                         bool *out_done) {
    kelp_value *scaled = NULL, *x = NULL, *sum = NULL, *weights = conv->inputs[1];
    kelp_value *shift = operand(add, KELP_OP(Add), w->groups * w->inputs, &scaled), *moved = NULL;
    if (shift == NULL || !kelp_used_once(scaled))
        return NULL;
    kelp_node *mul = scaled->producer, *earlier = NULL;
    kelp_value *scale = operand(mul, KELP_OP(Mul), w->groups * w->inputs, &x);
    if (scale == NULL || kelp_tensor_elements(scale->constant) != 1 ||
        kelp_tensor_elements(shift->constant) != 1)
        return NULL;
    double by = kelp_pass_f32_at(scale->constant, 0);
    double to = kelp_pass_f32_at(shift->constant, 0) / by;
    if (by == 0 || !isfinite(by) || !(fabs(to) < 1e6))
        return NULL;
    float *data;
    int64_t one = 1;
    KELP_TRY(kelp_pass_new_f32(block, shift->name, 1, &one, &moved, &data));
    *data = (float)to;
    KELP_TRY(kelp_block_add_value(block, scaled->name, &sum));
    sum->kind = KELP_VALUE_TENSOR;
    sum->dtype = KELP_F32;
    sum->rank = x->rank;
    memcpy(sum->shape, x->shape, sizeof sum->shape);
    memcpy(sum->symbols, x->symbols, sizeof sum->symbols);
    kelp_value *inputs[2] = {x, moved};
    KELP_TRY(kelp_block_insert_node(block, add, KELP_OP(Add), add->opset_version, add->name, inputs,
                                    2, &sum, 1, NULL, &earlier));
    KELP_TRY(scale_weights(block, w, scale, &weights));
    *out_done = true;
    return rewrite(block, conv, sum, weights, conv->input_count > 2 ? conv->inputs[2] : NULL);
}

static kelp_status *fold_scale(kelp_block *block, kelp_node *conv, bool *out_done) {
    if (conv->input_count < 2 || kelp_match_producer(conv->outputs[0], KELP_OP(Conv)) != conv)
        return NULL;
    kelp_value *weights = conv->inputs[1], *bias = conv->input_count > 2 ? conv->inputs[2] : NULL;
    kelp_value *before = conv->inputs[0], *x = NULL;
    filters w;
    if (!is_weight(weights) || before == NULL || !kelp_used_once(before) ||
        before->producer == NULL || !read_filters(conv, &w) ||
        (bias != NULL && !is_bias(bias, weights->constant)))
        return NULL;
    kelp_value *scale = operand(before->producer, KELP_OP(Mul), w.groups * w.inputs, &x);
    if (scale != NULL && x->rank == weights->constant->rank) {
        KELP_TRY(scale_weights(block, &w, scale, &weights));
        *out_done = true;
        return rewrite(block, conv, x, weights, bias);
    }
    kelp_value *shift = operand(before->producer, KELP_OP(Add), w.groups * w.inputs, &x);
    if (shift == NULL || x->rank != weights->constant->rank)
        return NULL;
    if (pads(conv))
        return swap(block, conv, before->producer, &w, out_done);
    KELP_TRY(shift_bias(block, &w, weights, shift, &bias));
    *out_done = true;
    return rewrite(block, conv, x, weights, bias);
}

/* The producer may be folded too; repeats until nothing changes. */
kelp_status *kelp_pass_scale(kelp_block *block) {
    return kelp_pass_each(block, fold_scale);
}
