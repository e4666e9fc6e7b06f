/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fuses layer normalization as exporters write it for opsets without the operator: d = x - mean(x),
 * d / sqrt(mean(d * d) + epsilon) * scale + bias, with one constant per column. Source: Ba, Kiros
 * and Hinton, "Layer Normalization", 2016.
 */
#include "base/assert.h"
#include "graph/passes/passes.h"

#include <string.h>

/* Returns the input of a ReduceMean over the last axis with keepdims, or NULL. */
static kelp_value *match_mean(const kelp_value *value) {
    const kelp_node *mean = kelp_match_producer(value, KELP_OP(ReduceMean));
    if (mean == NULL || mean->inputs[0] == NULL || mean->inputs[0]->rank < 1 ||
        kelp_node_attr_i64(mean, "keepdims", 1) == 0)
        return NULL;
    int64_t axis = 0;
    const int64_t *list = NULL;
    size_t count = kelp_node_attr_i64s(mean, "axes", &list);
    if (count == 1)
        axis = list[0];
    else if (count != 0 || mean->input_count < 2 ||
             !kelp_match_i64s(mean->inputs[1], &axis, 1, &count) || count != 1)
        return NULL;
    return axis == -1 || axis == mean->inputs[0]->rank - 1 ? mean->inputs[0] : NULL;
}

/* A constant of higher rank than the other operand would raise the rank of the result. */
static bool match_number(const kelp_value *value, int32_t max_rank, double *out) {
    return kelp_match_scalar(value, out) && value->constant->rank <= max_rank;
}

static bool is_square_of(const kelp_value *value, const kelp_value *d) {
    double exponent = 0;
    const kelp_node *mul = kelp_match_producer(value, KELP_OP(Mul));
    const kelp_node *power = kelp_match_producer(value, KELP_OP(Pow));
    if (mul != NULL)
        return mul->inputs[0] == d && mul->inputs[1] == d;
    return power != NULL && power->inputs[0] == d &&
           match_number(power->inputs[1], d->rank, &exponent) &&
           kelp_match_scalar_near(power->inputs[1], 2.0);
}

/* Returns d of d / sqrt(mean(d * d) + epsilon), or NULL. */
static kelp_value *match_quotient(const kelp_node *div, double *out_epsilon) {
    kelp_value *d = div->inputs[0];
    const kelp_node *root = kelp_match_producer(div->inputs[1], KELP_OP(Sqrt));
    const kelp_node *add = root != NULL ? kelp_match_producer(root->inputs[0], KELP_OP(Add)) : NULL;
    for (int k = 0; add != NULL && k < 2; k++) {
        const kelp_value *square = match_mean(add->inputs[1 - k]);
        if (d != NULL && match_number(add->inputs[k], d->rank, out_epsilon) && square != NULL &&
            is_square_of(square, d))
            return d;
    }
    return NULL;
}

/* Returns the constant, one value per column, that the only reader of `value` combines with it by
 * `op`. */
static kelp_value *column_of(const kelp_value *value, const kelp_operator *op, int64_t columns,
                             kelp_node **out_node) {
    kelp_node *node = kelp_used_once(value) ? kelp_value_only_user(value) : NULL;
    *out_node = node;
    if (node == NULL || node->input_count != 2 || node->opset_version < 7 ||
        kelp_match_producer(node->outputs[0], op) != node)
        return NULL;
    kelp_value *other = node->inputs[0] == value ? node->inputs[1] : node->inputs[0];
    const kelp_tensor *constant = other != NULL ? other->constant : NULL;
    return constant != NULL && constant->dtype == KELP_F32 && constant->rank == 1 &&
                   constant->shape[0] == columns
               ? other
               : NULL;
}

static kelp_status *fuse(kelp_block *block, kelp_node *div, bool *out_done) {
    double epsilon = 0;
    if (kelp_match_producer(div->outputs[0], KELP_OP(Div)) != div)
        return NULL;
    const kelp_value *d = match_quotient(div, &epsilon);
    const kelp_node *sub = kelp_match_producer(d, KELP_OP(Sub));
    if (sub == NULL)
        return NULL;
    kelp_value *x = sub->inputs[0];
    if (x == NULL || x->dtype != KELP_F32 || x->rank < 1 || match_mean(sub->inputs[1]) != x)
        return NULL;
    kelp_node *mul = NULL, *add = NULL, *norm = NULL;
    int64_t columns = x->shape[x->rank - 1];
    kelp_value *scale = column_of(div->outputs[0], KELP_OP(Mul), columns, &mul);
    kelp_value *shift =
        scale != NULL ? column_of(mul->outputs[0], KELP_OP(Add), columns, &add) : NULL;
    if (scale == NULL || !(epsilon >= 0))
        return NULL;
    KELP_ASSERT(scale->constant != NULL && (shift == NULL || shift->constant != NULL));
    kelp_node *last = shift != NULL ? add : mul;
    kelp_value *inputs[3] = {x, scale, shift};
    KELP_TRY(kelp_block_insert_node(block, last, KELP_OP(LayerNormalization), 17, last->name,
                                    inputs, shift != NULL ? 3 : 2, last->outputs, 1, NULL, &norm));
    KELP_TRY(kelp_node_set_i64(norm, "axis", -1));
    KELP_TRY(kelp_node_set_f32(norm, "epsilon", (float)epsilon));
    mul->removed = true;
    last->removed = true;
    *out_done = true;
    return NULL;
}

kelp_status *kelp_pass_layer_norm(kelp_block *block) {
    return kelp_pass_each(block, fuse);
}
