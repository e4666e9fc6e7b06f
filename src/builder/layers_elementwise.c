/* SPDX-License-Identifier: Apache-2.0 */
/* Elementwise layers and constants. */
#include "base/assert.h"
#include "builder/emit.h"

/* Inputs and parsed models have no nodes. These functions complete the table and are not called. */
kelp_status *kelp_emit_INPUT(kelp_emit *e) {
    return kelp_emit_fail(e, "an input layer has no nodes");
}

kelp_status *kelp_emit_PARSED(kelp_emit *e) {
    return kelp_emit_fail(e, "a parsed model has no nodes of its own");
}

/* ---- constant ---- */
kelp_status *kelp_emit_CONSTANT(kelp_emit *e) {
    kelp_value *value = NULL;
    KELP_TRY(kelp_emit_check_shape(e, &e->layer->params.constant.dims, "dims"));
    KELP_TRY(kelp_emit_weights(e, &e->layer->params.constant.weights, "weights",
                               e->layer->params.constant.dims.rank,
                               e->layer->params.constant.dims.d, &value));
    kelp_emit_result(e, value);
    return NULL;
}

kelp_status *kelp_network_add_constant(kelp_network *network, kelp_shape dims, kelp_weights weights,
                                       kelp_layer **out) {
    kelp_layer_params params = {.constant = {dims, weights}};
    return kelp_network_append(network, KELP_LAYER_CONSTANT, NULL, 0, 0, &params, NULL, out);
}

/* ---- activation ---- */
static kelp_status *with_attr(kelp_emit *e, const kelp_operator *op, kelp_value *x,
                              const char *name_a, float a, const char *name_b, float b,
                              kelp_value **out) {
    kelp_node *node = NULL;
    KELP_TRY(kelp_emit_node(e, op, &x, 1, out, &node));
    if (name_a != NULL)
        KELP_TRY(kelp_node_set_f32(node, name_a, a));
    return name_b != NULL ? kelp_node_set_f32(node, name_b, b) : NULL;
}

/* Computes outer * fn(inner * x). */
static kelp_status *scaled(kelp_emit *e, const kelp_operator *op, kelp_dtype dtype, kelp_value *x,
                           float outer, float inner, kelp_value **out) {
    kelp_value *factor = NULL;
    KELP_TRY(kelp_emit_scalar(e, dtype, inner, &factor));
    KELP_TRY(kelp_emit_2(e, KELP_OP(Mul), x, factor, &x));
    KELP_TRY(kelp_emit_1(e, op, x, &x));
    KELP_TRY(kelp_emit_scalar(e, dtype, outer, &factor));
    return kelp_emit_2(e, KELP_OP(Mul), x, factor, out);
}

kelp_status *kelp_emit_activate(kelp_emit *e, kelp_activation type, float alpha, float beta,
                                kelp_dtype dtype, kelp_value *x, kelp_value **out) {
    kelp_node *node = NULL;
    kelp_value *min = NULL, *max = NULL;
    switch (type) {
    case KELP_ACTIVATION_RELU:
        return kelp_emit_1(e, KELP_OP(Relu), x, out);
    case KELP_ACTIVATION_SIGMOID:
        return kelp_emit_1(e, KELP_OP(Sigmoid), x, out);
    case KELP_ACTIVATION_TANH:
        return kelp_emit_1(e, KELP_OP(Tanh), x, out);
    case KELP_ACTIVATION_LEAKY_RELU:
        return with_attr(e, KELP_OP(LeakyRelu), x, "alpha", alpha, NULL, 0, out);
    case KELP_ACTIVATION_ELU:
        return with_attr(e, KELP_OP(Elu), x, "alpha", alpha, NULL, 0, out);
    case KELP_ACTIVATION_SELU:
        return with_attr(e, KELP_OP(Selu), x, "alpha", alpha, "gamma", beta, out);
    case KELP_ACTIVATION_SOFTSIGN:
        return kelp_emit_1(e, KELP_OP(Softsign), x, out);
    case KELP_ACTIVATION_SOFTPLUS:
        return scaled(e, KELP_OP(Softplus), dtype, x, alpha, beta, out);
    case KELP_ACTIVATION_CLIP:
        KELP_TRY(kelp_emit_scalar(e, dtype, alpha, &min));
        KELP_TRY(kelp_emit_scalar(e, dtype, beta, &max));
        return kelp_emit_3(e, KELP_OP(Clip), x, min, max, out);
    case KELP_ACTIVATION_HARD_SIGMOID:
        return with_attr(e, KELP_OP(HardSigmoid), x, "alpha", alpha, "beta", beta, out);
    case KELP_ACTIVATION_SCALED_TANH:
        return scaled(e, KELP_OP(Tanh), dtype, x, alpha, beta, out);
    case KELP_ACTIVATION_THRESHOLDED_RELU:
        return with_attr(e, KELP_OP(ThresholdedRelu), x, "alpha", alpha, NULL, 0, out);
    case KELP_ACTIVATION_GELU_ERF:
        return kelp_emit_1(e, KELP_OP(Gelu), x, out);
    case KELP_ACTIVATION_GELU_TANH:
        KELP_TRY(kelp_emit_node(e, KELP_OP(Gelu), &x, 1, out, &node));
        return kelp_node_set_string(node, "approximate", "tanh");
    }
    return kelp_emit_fail(e, "invalid activation %d", (int)type);
}

kelp_status *kelp_emit_ACTIVATION(kelp_emit *e) {
    kelp_value *y = NULL;
    kelp_activation type = e->layer->params.activation.type;
    if (type != KELP_ACTIVATION_RELU && type != KELP_ACTIVATION_CLIP)
        KELP_TRY(kelp_emit_check_float(e, 0));
    KELP_TRY(kelp_emit_activate(e, type, e->layer->params.activation.alpha,
                                e->layer->params.activation.beta, e->inputs[0]->dtype, e->inputs[0],
                                &y));
    kelp_emit_result(e, y);
    return NULL;
}

kelp_status *kelp_network_add_activation(kelp_network *network, kelp_net_tensor *input,
                                         kelp_activation type, float alpha, float beta,
                                         kelp_layer **out) {
    kelp_layer_params params = {.activation = {type, alpha, beta}};
    return kelp_network_append(network, KELP_LAYER_ACTIVATION, &input, 1, 1, &params, NULL, out);
}

/* ---- unary ---- */
kelp_status *kelp_emit_UNARY(kelp_emit *e) {
    static const kelp_operator *const ops[] = {
        [KELP_UNARY_EXP] = KELP_OP(Exp),     [KELP_UNARY_LOG] = KELP_OP(Log),
        [KELP_UNARY_SQRT] = KELP_OP(Sqrt),   [KELP_UNARY_RECIP] = KELP_OP(Reciprocal),
        [KELP_UNARY_ABS] = KELP_OP(Abs),     [KELP_UNARY_NEG] = KELP_OP(Neg),
        [KELP_UNARY_SIN] = KELP_OP(Sin),     [KELP_UNARY_COS] = KELP_OP(Cos),
        [KELP_UNARY_TAN] = KELP_OP(Tan),     [KELP_UNARY_SINH] = KELP_OP(Sinh),
        [KELP_UNARY_COSH] = KELP_OP(Cosh),   [KELP_UNARY_ASIN] = KELP_OP(Asin),
        [KELP_UNARY_ACOS] = KELP_OP(Acos),   [KELP_UNARY_ATAN] = KELP_OP(Atan),
        [KELP_UNARY_ASINH] = KELP_OP(Asinh), [KELP_UNARY_ACOSH] = KELP_OP(Acosh),
        [KELP_UNARY_ATANH] = KELP_OP(Atanh), [KELP_UNARY_CEIL] = KELP_OP(Ceil),
        [KELP_UNARY_FLOOR] = KELP_OP(Floor), [KELP_UNARY_ERF] = KELP_OP(Erf),
        [KELP_UNARY_NOT] = KELP_OP(Not),     [KELP_UNARY_SIGN] = KELP_OP(Sign),
        [KELP_UNARY_ROUND] = KELP_OP(Round), [KELP_UNARY_ISINF] = KELP_OP(IsInf),
        [KELP_UNARY_ISNAN] = KELP_OP(IsNaN)};
    kelp_unary op = e->layer->params.unary;
    kelp_value *y = NULL;
    if ((unsigned)op >= sizeof ops / sizeof ops[0])
        return kelp_emit_fail(e, "invalid unary operation %d", (int)op);
    if (op == KELP_UNARY_NOT)
        KELP_TRY(kelp_emit_check_dtype(e, 0, KELP_BOOL));
    else if (op != KELP_UNARY_ABS && op != KELP_UNARY_NEG && op != KELP_UNARY_SIGN)
        KELP_TRY(kelp_emit_check_float(e, 0));
    KELP_TRY(kelp_emit_1(e, ops[op], e->inputs[0], &y));
    kelp_emit_result(e, y);
    return NULL;
}

kelp_status *kelp_network_add_unary(kelp_network *network, kelp_net_tensor *input, kelp_unary op,
                                    kelp_layer **out) {
    kelp_layer_params params = {.unary = op};
    return kelp_network_append(network, KELP_LAYER_UNARY, &input, 1, 1, &params, NULL, out);
}

/* ---- elementwise ---- */
/* Divides rounding towards minus infinity. Div of integers rounds towards zero; the result of Mod
 * has the sign of the divisor. */
static kelp_status *floor_div(kelp_emit *e, kelp_value *a, kelp_value *b, kelp_value **out) {
    kelp_value *remainder = NULL;
    if (kelp_emit_is_float(a->dtype)) {
        KELP_TRY(kelp_emit_2(e, KELP_OP(Div), a, b, &a));
        return kelp_emit_1(e, KELP_OP(Floor), a, out);
    }
    KELP_TRY(kelp_emit_2(e, KELP_OP(Mod), a, b, &remainder));
    KELP_TRY(kelp_emit_2(e, KELP_OP(Sub), a, remainder, &a));
    return kelp_emit_2(e, KELP_OP(Div), a, b, out);
}

kelp_status *kelp_emit_ELEMENTWISE(kelp_emit *e) {
    static const kelp_operator *const ops[] = {
        [KELP_ELEMENTWISE_SUM] = KELP_OP(Add),         [KELP_ELEMENTWISE_PROD] = KELP_OP(Mul),
        [KELP_ELEMENTWISE_MAX] = KELP_OP(Max),         [KELP_ELEMENTWISE_MIN] = KELP_OP(Min),
        [KELP_ELEMENTWISE_SUB] = KELP_OP(Sub),         [KELP_ELEMENTWISE_DIV] = KELP_OP(Div),
        [KELP_ELEMENTWISE_POW] = KELP_OP(Pow),         [KELP_ELEMENTWISE_FLOOR_DIV] = KELP_OP(Div),
        [KELP_ELEMENTWISE_AND] = KELP_OP(And),         [KELP_ELEMENTWISE_OR] = KELP_OP(Or),
        [KELP_ELEMENTWISE_XOR] = KELP_OP(Xor),         [KELP_ELEMENTWISE_EQUAL] = KELP_OP(Equal),
        [KELP_ELEMENTWISE_GREATER] = KELP_OP(Greater), [KELP_ELEMENTWISE_LESS] = KELP_OP(Less)};
    kelp_elementwise op = e->layer->params.elementwise;
    kelp_value *y = NULL;
    if ((unsigned)op >= sizeof ops / sizeof ops[0])
        return kelp_emit_fail(e, "invalid elementwise operation %d", (int)op);
    KELP_TRY(kelp_emit_check_same_dtype(e, 0, 1));
    KELP_TRY(kelp_emit_check_broadcast(e, 0, 1));
    if (op == KELP_ELEMENTWISE_AND || op == KELP_ELEMENTWISE_OR || op == KELP_ELEMENTWISE_XOR)
        KELP_TRY(kelp_emit_check_dtype(e, 0, KELP_BOOL));
    if (op == KELP_ELEMENTWISE_FLOOR_DIV)
        KELP_TRY(floor_div(e, e->inputs[0], e->inputs[1], &y));
    else
        KELP_TRY(kelp_emit_node(e, ops[op], e->inputs, 2, &y, NULL));
    kelp_emit_result(e, y);
    return NULL;
}

kelp_status *kelp_network_add_elementwise(kelp_network *network, kelp_net_tensor *a,
                                          kelp_net_tensor *b, kelp_elementwise op,
                                          kelp_layer **out) {
    kelp_net_tensor *inputs[2] = {a, b};
    kelp_layer_params params = {.elementwise = op};
    return kelp_network_append(network, KELP_LAYER_ELEMENTWISE, inputs, 2, 2, &params, NULL, out);
}

/* ---- scale ---- */
static kelp_status *apply_coefficient(kelp_emit *e, const kelp_weights *weights, const char *role,
                                      const kelp_operator *op, kelp_value **inout) {
    const kelp_layer_params *p = &e->layer->params;
    const kelp_value *x = e->inputs[0];
    KELP_ASSERT(p->scale.mode == KELP_SCALE_UNIFORM || x->rank >= 0); /* kelp_emit_SCALE checked */
    int64_t shape[KELP_MAX_RANK];
    int32_t rank = 0;
    kelp_value *value = NULL;
    if (weights->count == 0)
        return NULL;
    for (int32_t i = p->scale.axis; p->scale.mode != KELP_SCALE_UNIFORM && i < x->rank; i++) {
        bool one = p->scale.mode == KELP_SCALE_CHANNEL && i > p->scale.axis;
        if (!one && x->shape[i] < 0)
            return kelp_emit_fail(e, "axis %d of the input must be fixed", i);
        shape[rank++] = one ? 1 : x->shape[i];
    }
    KELP_TRY(kelp_emit_weights(e, weights, role, rank, shape, &value));
    KELP_TRY(kelp_emit_cast(e, value, x->dtype, &value));
    return kelp_emit_2(e, op, *inout, value, inout);
}

kelp_status *kelp_emit_SCALE(kelp_emit *e) {
    const kelp_layer_params *p = &e->layer->params;
    kelp_value *y = e->inputs[0];
    KELP_TRY(kelp_emit_check_float(e, 0));
    if (p->scale.mode != KELP_SCALE_UNIFORM) {
        if (y->rank < 0)
            return kelp_emit_fail(e, "the input's rank must be known");
        KELP_TRY(kelp_emit_check_axis(e, 0, p->scale.axis));
    }
    KELP_TRY(apply_coefficient(e, &p->scale.scale, "scale", KELP_OP(Mul), &y));
    KELP_TRY(apply_coefficient(e, &p->scale.shift, "shift", KELP_OP(Add), &y));
    KELP_TRY(apply_coefficient(e, &p->scale.power, "power", KELP_OP(Pow), &y));
    if (y == e->inputs[0])
        KELP_TRY(kelp_emit_1(e, KELP_OP(Identity), y, &y));
    kelp_emit_result(e, y);
    return NULL;
}

kelp_status *kelp_network_add_scale(kelp_network *network, kelp_net_tensor *input,
                                    kelp_scale_mode mode, kelp_weights shift, kelp_weights scale,
                                    kelp_weights power, int32_t axis, kelp_layer **out) {
    kelp_layer_params params = {.scale = {mode, shift, scale, power, axis}};
    return kelp_network_append(network, KELP_LAYER_SCALE, &input, 1, 1, &params, NULL, out);
}

/* ---- parametric relu, select, identity, cast ---- */
kelp_status *kelp_emit_PARAMETRIC_RELU(kelp_emit *e) {
    kelp_value *y = NULL;
    KELP_TRY(kelp_emit_check_float(e, 0));
    KELP_TRY(kelp_emit_check_same_dtype(e, 0, 1));
    KELP_TRY(kelp_emit_check_broadcast(e, 0, 1));
    KELP_TRY(kelp_emit_node(e, KELP_OP(PRelu), e->inputs, 2, &y, NULL));
    kelp_emit_result(e, y);
    return NULL;
}

kelp_status *kelp_network_add_parametric_relu(kelp_network *network, kelp_net_tensor *input,
                                              kelp_net_tensor *slope, kelp_layer **out) {
    kelp_net_tensor *inputs[2] = {input, slope};
    kelp_layer_params params = {.unary = 0};
    return kelp_network_append(network, KELP_LAYER_PARAMETRIC_RELU, inputs, 2, 2, &params, NULL,
                               out);
}

kelp_status *kelp_emit_SELECT(kelp_emit *e) {
    kelp_value *y = NULL;
    KELP_TRY(kelp_emit_check_dtype(e, 0, KELP_BOOL));
    KELP_TRY(kelp_emit_check_same_dtype(e, 1, 2));
    KELP_TRY(kelp_emit_check_broadcast(e, 0, 1));
    KELP_TRY(kelp_emit_check_broadcast(e, 0, 2));
    KELP_TRY(kelp_emit_check_broadcast(e, 1, 2));
    KELP_TRY(kelp_emit_node(e, KELP_OP(Where), e->inputs, 3, &y, NULL));
    kelp_emit_result(e, y);
    return NULL;
}

kelp_status *kelp_network_add_select(kelp_network *network, kelp_net_tensor *condition,
                                     kelp_net_tensor *then_input, kelp_net_tensor *else_input,
                                     kelp_layer **out) {
    kelp_net_tensor *inputs[3] = {condition, then_input, else_input};
    kelp_layer_params params = {.unary = 0};
    return kelp_network_append(network, KELP_LAYER_SELECT, inputs, 3, 3, &params, NULL, out);
}

kelp_status *kelp_emit_IDENTITY(kelp_emit *e) {
    kelp_value *y = NULL;
    KELP_TRY(kelp_emit_1(e, KELP_OP(Identity), e->inputs[0], &y));
    kelp_emit_result(e, y);
    return NULL;
}

kelp_status *kelp_network_add_identity(kelp_network *network, kelp_net_tensor *input,
                                       kelp_layer **out) {
    kelp_layer_params params = {.unary = 0};
    return kelp_network_append(network, KELP_LAYER_IDENTITY, &input, 1, 1, &params, NULL, out);
}

kelp_status *kelp_emit_CAST(kelp_emit *e) {
    kelp_value *y = NULL;
    kelp_node *node = NULL;
    kelp_dtype to = e->layer->params.cast;
    if (kelp_dtype_bits(to) == 0)
        return kelp_emit_fail(e, "invalid element type %d", (int)to);
    KELP_TRY(kelp_emit_node(e, KELP_OP(Cast), e->inputs, 1, &y, &node));
    KELP_TRY(kelp_node_set_i64(node, "to", to));
    kelp_emit_result(e, y);
    return NULL;
}

kelp_status *kelp_network_add_cast(kelp_network *network, kelp_net_tensor *input, kelp_dtype to,
                                   kelp_layer **out) {
    kelp_layer_params params = {.cast = to};
    return kelp_network_append(network, KELP_LAYER_CAST, &input, 1, 1, &params, NULL, out);
}
