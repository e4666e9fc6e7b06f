/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fuses integer GEMMs and convolutions whose first operand is quantized dynamically, as weight
 * quantizers write them:
 *
 *   q, s, z = DynamicQuantizeLinear(x)
 *   Mul(Cast(MatMulInteger or ConvInteger(q, w, z, wz)), Mul(s, ws)) [→ Add of a bias]
 *     [→ activation]
 *
 * to kelp::QMatMul or kelp::QConv.
 */
#include "graph/passes/quant/quant.h"

#include <string.h>

/* Matches s · ws, where ws has one float or one for each of `columns`, or s alone. */
static bool match_scales(const kelp_value *value, int64_t columns, kelp_quant_chain *c) {
    const kelp_value *s = c->inputs[KELP_Q_X_SCALE];
    if (value == s)
        return true;
    const kelp_node *mul = kelp_match_producer(value, KELP_OP(Mul));
    if (mul == NULL || (mul->inputs[0] != s && mul->inputs[1] != s))
        return false;
    kelp_value *other = mul->inputs[0] == s ? mul->inputs[1] : mul->inputs[0];
    const kelp_tensor *scale = other->constant;
    if (scale == NULL || scale->dtype != KELP_F32)
        return false;
    int64_t count = kelp_tensor_elements(scale);
    if (count != 1 && (count != columns || scale->shape[scale->rank - 1] != count))
        return false;
    c->inputs[KELP_Q_W_SCALE] = other;
    return true;
}

/* Matches one constant per output channel. */
static void follow_bias(kelp_quant_chain *c, int64_t channels) {
    kelp_node *add = kelp_quant_next(c);
    if (!kelp_quant_is_op(add, KELP_OP(Add)))
        return;
    kelp_value *other = add->inputs[0] == c->last->outputs[0] ? add->inputs[1] : add->inputs[0];
    const kelp_tensor *bias = other->constant, *w = c->inputs[KELP_Q_W]->constant;
    if (bias == NULL || bias->dtype != KELP_F32 || kelp_tensor_elements(bias) != channels ||
        bias->rank < w->rank - 1 || bias->rank > w->rank ||
        bias->shape[bias->rank - (w->rank - 1)] != channels)
        return;
    c->inputs[KELP_Q_BIAS] = other;
    kelp_quant_take(c, add);
}

static bool match(kelp_node *node, bool conv, kelp_quant_chain *c) {
    kelp_node *from = kelp_match_producer(node->inputs[0], KELP_OP(DynamicQuantizeLinear));
    const kelp_tensor *w = node->inputs[1]->constant;
    if (from == NULL || from->output_count < 3 || node->input_count < 3 ||
        node->inputs[2] != from->outputs[2] || w == NULL || (conv ? w->rank < 3 : w->rank != 2))
        return false;
    int64_t columns = conv ? w->shape[0] : w->shape[1];
    c->inputs[KELP_Q_X] = node->inputs[0];
    c->inputs[KELP_Q_X_SCALE] = from->outputs[1];
    c->inputs[KELP_Q_X_ZERO] = from->outputs[2];
    c->inputs[KELP_Q_W] = node->inputs[1];
    c->inputs[KELP_Q_W_ZERO] = kelp_quant_input(node, 3);
    kelp_quant_take(c, node);
    kelp_node *cast = kelp_quant_next(c);
    if (!kelp_quant_is_op(cast, KELP_OP(Cast)) || kelp_node_attr_i64(cast, "to", 0) != KELP_F32)
        return false;
    kelp_quant_take(c, cast);
    kelp_node *mul = kelp_quant_next(c);
    if (!kelp_quant_is_op(mul, KELP_OP(Mul)))
        return false;
    const kelp_value *scales = mul->inputs[0] == cast->outputs[0] ? mul->inputs[1] : mul->inputs[0];
    /* scales along the last axis are per column only in a MatMul */
    if (!match_scales(scales, conv ? 1 : columns, c))
        return false;
    kelp_quant_take(c, mul);
    if (conv)
        follow_bias(c, columns);
    kelp_quant_follow(c, conv ? 0 : columns);
    return true;
}

kelp_status *kelp_pass_quant_dynamic(kelp_block *block) {
    for (size_t i = 0; i < block->node_count; i++) {
        kelp_node *node = block->nodes[i];
        kelp_quant_chain c = {.last = NULL};
        bool conv = kelp_quant_is_op(node, KELP_OP(ConvInteger));
        if ((!conv && !kelp_quant_is_op(node, KELP_OP(MatMulInteger))) || !match(node, conv, &c))
            continue;
        KELP_TRY(kelp_quant_replace(block, &c, conv ? KELP_OP_KELP(QConv) : KELP_OP_KELP(QMatMul),
                                    conv ? node->attributes : NULL));
        i--; /* the next node is now at this index */
    }
    return NULL;
}
