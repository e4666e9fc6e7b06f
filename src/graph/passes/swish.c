/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fuses x times a gate of x as exporters write it. The gate is a sigmoid (SiLU), or its piecewise
 * linear approximation (HardSwish): HardSigmoid, or clip(x + 3, 0, 6) / 6, where the division may
 * come before or after the multiplication.
 * Source: Howard et al., "Searching for MobileNetV3", 2019; Elfwing, Uchibe and Doya,
 * "Sigmoid-Weighted Linear Units", 2017.
 */
#include "base/assert.h"
#include "graph/passes/passes.h"

#include <math.h>

/* Returns x of x / 6, or NULL. */
static kelp_value *match_sixth(const kelp_value *value) {
    kelp_node *div = kelp_match_producer(value, KELP_OP(Div));
    if (div != NULL && kelp_match_scalar_near(div->inputs[1], 6.0))
        return div->inputs[0];
    kelp_node *mul = kelp_match_producer(value, KELP_OP(Mul));
    for (int k = 0; mul != NULL && k < 2; k++)
        if (kelp_match_scalar_near(mul->inputs[k], 1.0 / 6))
            return mul->inputs[1 - k];
    return NULL;
}

/* Returns x of clip(x + 3, 0, 6), or NULL. */
static kelp_value *match_clipped(const kelp_value *value) {
    kelp_node *clip = kelp_match_producer(value, KELP_OP(Clip));
    if (clip == NULL || !kelp_match_relu6(clip) || !kelp_used_once(value))
        return NULL;
    kelp_node *add = kelp_match_producer(clip->inputs[0], KELP_OP(Add));
    for (int k = 0; add != NULL && k < 2; k++)
        if (kelp_match_scalar_near(add->inputs[k], 3.0))
            return add->inputs[1 - k];
    return NULL;
}

/* Returns x of a gate with one use, or NULL; `*out_sigmoid` is true for a sigmoid. */
static kelp_value *match_gate(const kelp_value *value, bool *out_sigmoid) {
    if (value == NULL || !kelp_used_once(value))
        return NULL;
    kelp_node *sigmoid = kelp_match_producer(value, KELP_OP(Sigmoid));
    *out_sigmoid = sigmoid != NULL;
    if (sigmoid != NULL)
        return sigmoid->inputs[0];
    kelp_node *hard = kelp_match_producer(value, KELP_OP(HardSigmoid));
    if (hard != NULL && fabsf(kelp_node_attr_f32(hard, "alpha", 0.2f) - 1.0f / 6) < 1e-5f &&
        kelp_node_attr_f32(hard, "beta", 0.5f) == 0.5f)
        return hard->inputs[0];
    kelp_value *six = match_sixth(value);
    return six != NULL ? match_clipped(six) : NULL;
}

/* Matches `mul` as x times a gate of x, or as x times the clipped sum before a division by 6, which
 * is then `*inout_last`. */
static kelp_value *match_gated(const kelp_node *mul, kelp_node **inout_last, bool *out_sigmoid) {
    for (int k = 0; k < 2; k++)
        if (mul->inputs[1 - k] != NULL &&
            match_gate(mul->inputs[k], out_sigmoid) == mul->inputs[1 - k])
            return mul->inputs[1 - k];
    kelp_node *next =
        kelp_used_once(mul->outputs[0]) ? kelp_value_only_user(mul->outputs[0]) : NULL;
    if (next == NULL || next->output_count != 1 || match_sixth(next->outputs[0]) != mul->outputs[0])
        return NULL;
    *inout_last = next;
    *out_sigmoid = false;
    for (int k = 0; k < 2; k++)
        if (mul->inputs[1 - k] != NULL && match_clipped(mul->inputs[k]) == mul->inputs[1 - k])
            return mul->inputs[1 - k];
    return NULL;
}

static kelp_status *fuse(kelp_block *block, kelp_node *mul, bool *out_done) {
    kelp_node *last = mul, *fused = NULL;
    bool sigmoid = false;
    if (mul->output_count != 1 || mul->input_count != 2 ||
        kelp_match_producer(mul->outputs[0], KELP_OP(Mul)) != mul)
        return NULL;
    kelp_value *x = match_gated(mul, &last, &sigmoid);
    if (x == NULL || x->dtype != KELP_F32 || x->rank != last->outputs[0]->rank)
        return NULL; /* a constant of higher rank would raise the rank of the result */
    KELP_ASSERT(mul->index <= last->index);
    KELP_TRY(kelp_block_insert_node(
        block, last, sigmoid ? KELP_OP_MS(QuickGelu) : KELP_OP(HardSwish), sigmoid ? 1 : 14,
        last->name, &x, 1, last->outputs, 1, NULL, &fused));
    if (sigmoid)
        KELP_TRY(kelp_node_set_f32(fused, "alpha", 1.0f));
    mul->removed = true;
    last->removed = true;
    *out_done = true;
    return NULL;
}

kelp_status *kelp_pass_swish(kelp_block *block) {
    return kelp_pass_each(block, fuse);
}
