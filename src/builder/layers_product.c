/* SPDX-License-Identifier: Apache-2.0 */
/* Matrix multiplication, einsum, attention and mixture of experts. */
#include "base/assert.h"
#include "base/checked.h"
#include "builder/emit.h"

#include <string.h>

/* ---- matrix multiply ---- */
/* Prepares an operand for ONNX's MatMul: transposes a matrix and adds an axis to a vector, which
 * the caller removes. */
static kelp_status *operand(kelp_emit *e, size_t input, kelp_matrix_op op, bool is_left,
                            kelp_value **out) {
    kelp_value *value = e->inputs[input], *axes = NULL;
    int32_t rank = value->rank;
    int64_t perm[KELP_MAX_RANK], axis = is_left ? -2 : -1;
    kelp_node *node = NULL;
    *out = value;
    KELP_TRY(kelp_emit_check_rank(e, input, op == KELP_MATRIX_VECTOR ? 1 : 2, KELP_MAX_RANK));
    if (op == KELP_MATRIX_VECTOR) {
        KELP_TRY(kelp_emit_i64s(e, &axis, 1, &axes));
        return kelp_emit_2(e, KELP_OP(Unsqueeze), value, axes, out);
    }
    if (op != KELP_MATRIX_TRANSPOSE)
        return op == KELP_MATRIX_NONE ? NULL : kelp_emit_fail(e, "invalid matrix operation %d", op);
    if (rank < 0)
        return kelp_emit_fail(e, "the rank of a transposed operand must be known");
    KELP_ASSERT(rank >= 2 && rank <= KELP_MAX_RANK); /* kelp_emit_check_rank checked it */
    for (int32_t i = 0; i < rank; i++)
        perm[i] = i;
    perm[rank - 2] = rank - 1;
    perm[rank - 1] = rank - 2;
    KELP_TRY(kelp_emit_node(e, KELP_OP(Transpose), &value, 1, out, &node));
    return kelp_node_set_i64s(node, "perm", perm, (size_t)rank);
}

static kelp_status *check_matrices(const kelp_emit *e) {
    const kelp_layer_params *p = &e->layer->params;
    const kelp_value *a = e->inputs[0], *b = e->inputs[1];
    int32_t batch_a = a->rank - (p->matrix.a == KELP_MATRIX_VECTOR ? 1 : 2),
            batch_b = b->rank - (p->matrix.b == KELP_MATRIX_VECTOR ? 1 : 2);
    char first[160], second[160];
    if (a->rank < 0 || b->rank < 0 || batch_a < 0 || batch_b < 0)
        return NULL;
    kelp_shape_format(a->rank, a->shape, first, sizeof first);
    kelp_shape_format(b->rank, b->shape, second, sizeof second);
    if (batch_a != batch_b)
        return kelp_emit_fail(
            e, "operands %s and %s have %d and %d batch dimensions: expected the same number",
            first, second, batch_a, batch_b);
    int64_t inner_a = a->shape[p->matrix.a == KELP_MATRIX_TRANSPOSE ? a->rank - 2 : a->rank - 1],
            inner_b = b->shape[p->matrix.b == KELP_MATRIX_NONE ? b->rank - 2 : b->rank - 1];
    if (inner_a >= 0 && inner_b >= 0 && inner_a != inner_b)
        return kelp_emit_fail(e, "%s and %s do not match: inner dimensions are %lld and %lld",
                              first, second, (long long)inner_a, (long long)inner_b);
    return NULL;
}

kelp_status *kelp_emit_MATRIX_MULTIPLY(kelp_emit *e) {
    const kelp_layer_params *p = &e->layer->params;
    kelp_value *a = NULL, *b = NULL, *y = NULL, *axes = NULL;
    int64_t added_axes[2];
    size_t count = 0;
    KELP_TRY(kelp_emit_check_same_dtype(e, 0, 1));
    KELP_TRY(operand(e, 0, p->matrix.a, true, &a));
    KELP_TRY(operand(e, 1, p->matrix.b, false, &b));
    KELP_TRY(check_matrices(e));
    KELP_TRY(kelp_emit_2(e, KELP_OP(MatMul), a, b, &y));
    if (p->matrix.a == KELP_MATRIX_VECTOR)
        added_axes[count++] = -2;
    if (p->matrix.b == KELP_MATRIX_VECTOR)
        added_axes[count++] = -1;
    if (count > 0) {
        KELP_TRY(kelp_emit_i64s(e, added_axes, count, &axes));
        KELP_TRY(kelp_emit_2(e, KELP_OP(Squeeze), y, axes, &y));
    }
    kelp_emit_result(e, y);
    return NULL;
}

kelp_status *kelp_network_add_matrix_multiply(kelp_network *network, kelp_net_tensor *a,
                                              kelp_matrix_op op_a, kelp_net_tensor *b,
                                              kelp_matrix_op op_b, kelp_layer **out) {
    kelp_net_tensor *inputs[2] = {a, b};
    kelp_layer_params params = {.matrix = {op_a, op_b}};
    return kelp_network_append(network, KELP_LAYER_MATRIX_MULTIPLY, inputs, 2, 2, &params, NULL,
                               out);
}

/* ---- einsum ---- */
static kelp_status *einsum(kelp_emit *e, const char *equation, kelp_value *const *inputs,
                           size_t count, kelp_value **out) {
    kelp_node *node = NULL;
    KELP_TRY(kelp_emit_node(e, KELP_OP(Einsum), inputs, count, out, &node));
    return kelp_node_set_string(node, "equation", equation);
}

kelp_status *kelp_emit_EINSUM(kelp_emit *e) {
    kelp_value *y = NULL;
    for (uint32_t i = 1; i < e->layer->input_count; i++)
        KELP_TRY(kelp_emit_check_same_dtype(e, 0, i));
    KELP_TRY(einsum(e, e->layer->params.equation, e->inputs, e->layer->input_count, &y));
    kelp_emit_result(e, y);
    return NULL;
}

kelp_status *kelp_network_add_einsum(kelp_network *network, kelp_net_tensor *const *inputs,
                                     size_t count, const char *equation, kelp_layer **out) {
    kelp_layer_params params = {
        .equation = kelp_arena_strndup(&network->arena, equation, strlen(equation))};
    if (params.equation == NULL)
        return kelp_status_oom();
    if (count == 0)
        return KELP_NETWORK_ERROR(KELP_INVALID_ARGUMENT,
                                  "einsum '%s': at least one tensor is expected", equation);
    return kelp_network_append(network, KELP_LAYER_EINSUM, inputs, count, count, &params, NULL,
                               out);
}

/* ---- attention ---- */
static kelp_status *attention_without_softmax(kelp_emit *e, kelp_value **out) {
    kelp_value *pair[2] = {e->inputs[0], e->inputs[1]}, *scores = NULL;
    if (e->layer->params.attention.causal)
        return kelp_emit_fail(e, "causal attention requires softmax");
    KELP_TRY(einsum(e, "bhqd,bhkd->bhqk", pair, 2, &scores));
    if (e->inputs[3] != NULL)
        KELP_TRY(kelp_emit_2(e, KELP_OP(Add), scores, e->inputs[3], &scores));
    return kelp_emit_2(e, KELP_OP(MatMul), scores, e->inputs[2], out);
}

kelp_status *kelp_emit_ATTENTION(kelp_emit *e) {
    kelp_value *y = NULL;
    kelp_node *node = NULL;
    for (size_t i = 0; i < 3; i++) {
        KELP_TRY(kelp_emit_check_rank(e, i, 4, 4));
        KELP_TRY(kelp_emit_check_float(e, i));
    }
    KELP_TRY(kelp_emit_check_same_dtype(e, 0, 1));
    KELP_TRY(kelp_emit_check_same_dtype(e, 0, 2));
    if (e->layer->params.attention.no_softmax) {
        KELP_TRY(attention_without_softmax(e, &y));
        kelp_emit_result(e, y);
        return NULL;
    }
    KELP_TRY(kelp_emit_node(e, KELP_OP(Attention), e->inputs, 4, &y, &node));
    KELP_TRY(kelp_node_set_f32(node, "scale", 1.0f));
    KELP_TRY(kelp_node_set_i64(node, "is_causal", e->layer->params.attention.causal));
    kelp_emit_result(e, y);
    return NULL;
}

kelp_status *kelp_network_add_attention(kelp_network *network, kelp_net_tensor *query,
                                        kelp_net_tensor *key, kelp_net_tensor *value,
                                        const kelp_attention *caller_options, kelp_layer **out) {
    kelp_attention options = {.struct_size = 0};
    if (caller_options != NULL)
        memcpy(&options, caller_options, KELP_MIN(caller_options->struct_size, sizeof options));
    kelp_net_tensor *inputs[4] = {query, key, value, options.mask};
    kelp_layer_params params = {.attention = {options.causal, options.no_softmax}};
    return kelp_network_append(network, KELP_LAYER_ATTENTION, inputs, 4, 3, &params, NULL, out);
}

/* ---- rotary embedding, cache ---- */
kelp_status *kelp_emit_ROTARY_EMBEDDING(kelp_emit *e) {
    kelp_value *inputs[4] = {e->inputs[0], e->inputs[1], e->inputs[2], e->inputs[3]}, *y = NULL;
    kelp_node *node = NULL;
    KELP_TRY(kelp_emit_check_rank(e, 0, 4, 4));
    KELP_TRY(kelp_emit_check_float(e, 0));
    KELP_TRY(kelp_emit_check_rank(e, 1, inputs[3] ? 2 : 3, inputs[3] ? 2 : 3));
    KELP_TRY(kelp_emit_check_rank(e, 2, inputs[3] ? 2 : 3, inputs[3] ? 2 : 3));
    if (inputs[3] != NULL) {
        KELP_TRY(kelp_emit_check_index(e, 3));
        KELP_TRY(kelp_emit_cast(e, inputs[3], KELP_I64, &inputs[3]));
    }
    KELP_TRY(kelp_emit_node(e, KELP_OP(RotaryEmbedding), inputs, 4, &y, &node));
    KELP_TRY(kelp_node_set_i64(node, "interleaved", e->layer->params.rotary.interleaved));
    if (e->layer->params.rotary.rotary_dims > 0)
        KELP_TRY(
            kelp_node_set_i64(node, "rotary_embedding_dim", e->layer->params.rotary.rotary_dims));
    kelp_emit_result(e, y);
    return NULL;
}

kelp_status *kelp_network_add_rotary_embedding(kelp_network *network, kelp_net_tensor *input,
                                               kelp_net_tensor *cos, kelp_net_tensor *sin,
                                               kelp_net_tensor *positions, bool interleaved,
                                               int64_t rotary_dims, kelp_layer **out) {
    kelp_net_tensor *inputs[4] = {input, cos, sin, positions};
    kelp_layer_params params = {.rotary = {interleaved, rotary_dims}};
    return kelp_network_append(network, KELP_LAYER_ROTARY_EMBEDDING, inputs, 4, 3, &params, NULL,
                               out);
}

kelp_status *kelp_emit_KV_CACHE_UPDATE(kelp_emit *e) {
    kelp_value *inputs[3] = {e->inputs[0], e->inputs[1], e->inputs[2]}, *y = NULL;
    kelp_node *node = NULL;
    KELP_TRY(kelp_emit_check_rank(e, 0, 4, 4));
    KELP_TRY(kelp_emit_check_rank(e, 1, 4, 4));
    KELP_TRY(kelp_emit_check_same_dtype(e, 0, 1));
    KELP_TRY(kelp_emit_check_index(e, 2));
    KELP_TRY(kelp_emit_cast(e, inputs[2], KELP_I64, &inputs[2]));
    KELP_TRY(kelp_emit_node(e, KELP_OP(TensorScatter), inputs, 3, &y, &node));
    KELP_TRY(kelp_node_set_i64(node, "axis", 2));
    kelp_emit_result(e, y);
    return NULL;
}

kelp_status *kelp_network_add_kv_cache_update(kelp_network *network, kelp_net_tensor *cache,
                                              kelp_net_tensor *update,
                                              kelp_net_tensor *write_indices, kelp_layer **out) {
    kelp_net_tensor *inputs[3] = {cache, update, write_indices};
    kelp_layer_params params = {.axis = 0};
    return kelp_network_append(network, KELP_LAYER_KV_CACHE_UPDATE, inputs, 3, 3, &params, NULL,
                               out);
}

/* ---- mixture of experts ---- */
enum {
    MOE_HIDDEN,
    MOE_EXPERTS,
    MOE_SCORES,
    MOE_GATE,
    MOE_UP,
    MOE_DOWN,
    MOE_GATE_BIAS,
    MOE_UP_BIAS,
    MOE_DOWN_BIAS
};

/* Multiplies hidden states by the weights of every expert and adds the bias: [b,s,e,inner]. */
static kelp_status *project(kelp_emit *e, const char *equation, kelp_value *x, size_t weights,
                            size_t bias, kelp_value **out) {
    kelp_value *pair[2] = {x, e->inputs[weights]};
    KELP_TRY(einsum(e, equation, pair, 2, out));
    if (e->inputs[bias] != NULL)
        return kelp_emit_2(e, KELP_OP(Add), *out, e->inputs[bias], out);
    return NULL;
}

/* Computes the weight of each expert for each token: [b,s,e]. */
static kelp_status *expert_weights(kelp_emit *e, kelp_value **out) {
    kelp_value *count = NULL, *values = NULL, *hot = NULL, *off = NULL, *on = NULL;
    KELP_ASSERT(e->inputs[MOE_UP]->rank == 3); /* kelp_emit_MOE checked it */
    kelp_dtype dtype = e->inputs[MOE_SCORES]->dtype;
    int64_t one = 1, experts = e->inputs[MOE_UP]->shape[0];
    kelp_value *shape = NULL;
    KELP_TRY(kelp_emit_i64(e, experts, &count));
    KELP_TRY(kelp_emit_i64s(e, &one, 1, &shape));
    KELP_TRY(kelp_emit_scalar(e, dtype, 0, &off));
    KELP_TRY(kelp_emit_scalar(e, dtype, 1, &on));
    KELP_TRY(kelp_emit_2(e, KELP_OP(Reshape), off, shape, &off));
    KELP_TRY(kelp_emit_2(e, KELP_OP(Reshape), on, shape, &on));
    kelp_value *both[2] = {off, on};
    kelp_node *node = NULL;
    KELP_TRY(kelp_emit_node(e, KELP_OP(Concat), both, 2, &values, &node));
    KELP_TRY(kelp_node_set_i64(node, "axis", 0));
    KELP_TRY(kelp_emit_3(e, KELP_OP(OneHot), e->inputs[MOE_EXPERTS], count, values, &hot));
    kelp_value *pair[2] = {hot, e->inputs[MOE_SCORES]};
    return einsum(e, "bske,bsk->bse", pair, 2, out);
}

kelp_status *kelp_emit_MOE(kelp_emit *e) {
    const kelp_layer_params *p = &e->layer->params;
    kelp_dtype dtype = e->inputs[MOE_HIDDEN]->dtype;
    kelp_value *inner = NULL, *gate = NULL, *expert_weight = NULL, *y = NULL, *active = NULL;
    for (size_t i = 0; i < 3; i++)
        KELP_TRY(kelp_emit_check_rank(e, i, 3, 3));
    KELP_TRY(kelp_emit_check_float(e, MOE_HIDDEN));
    KELP_TRY(kelp_emit_check_index(e, MOE_EXPERTS));
    KELP_TRY(kelp_emit_check_same_dtype(e, MOE_HIDDEN, MOE_SCORES));
    KELP_TRY(kelp_emit_check_rank(e, MOE_UP, 3, 3));
    KELP_TRY(kelp_emit_check_rank(e, MOE_DOWN, 3, 3));
    if (e->inputs[MOE_UP]->rank != 3 || e->inputs[MOE_UP]->shape[0] < 1)
        return kelp_emit_fail(e, "the number of experts must be known");
    KELP_TRY(project(e, "bsh,ehi->bsei", e->inputs[MOE_HIDDEN], MOE_UP, MOE_UP_BIAS, &inner));
    if (e->inputs[MOE_GATE] != NULL)
        KELP_TRY(
            project(e, "bsh,ehi->bsei", e->inputs[MOE_HIDDEN], MOE_GATE, MOE_GATE_BIAS, &gate));
    kelp_value *activation_input = gate != NULL ? gate : inner;
    if (p->moe.swish) {
        KELP_TRY(kelp_emit_1(e, KELP_OP(Sigmoid), activation_input, &active));
        KELP_TRY(kelp_emit_2(e, KELP_OP(Mul), activation_input, active, &active));
    } else {
        KELP_TRY(kelp_emit_activate(e, p->moe.activation, p->moe.alpha, p->moe.beta, dtype,
                                    activation_input, &active));
    }
    if (gate != NULL)
        KELP_TRY(kelp_emit_2(e, KELP_OP(Mul), active, inner, &active));
    KELP_TRY(project(e, "bsei,eih->bseh", active, MOE_DOWN, MOE_DOWN_BIAS, &y));
    KELP_TRY(expert_weights(e, &expert_weight));
    kelp_value *pair[2] = {y, expert_weight};
    KELP_TRY(einsum(e, "bseh,bse->bsh", pair, 2, &y));
    kelp_emit_result(e, y);
    return NULL;
}

kelp_status *kelp_network_add_moe(kelp_network *network, kelp_net_tensor *hidden,
                                  kelp_net_tensor *experts, kelp_net_tensor *scores,
                                  kelp_net_tensor *gate, kelp_net_tensor *up, kelp_net_tensor *down,
                                  const kelp_moe *caller_options, kelp_layer **out) {
    kelp_moe options = {.struct_size = 0};
    if (caller_options != NULL)
        memcpy(&options, caller_options, KELP_MIN(caller_options->struct_size, sizeof options));
    kelp_net_tensor *inputs[] = {
        hidden,          experts,          scores, gate, up, down, options.gate_bias,
        options.up_bias, options.down_bias};
    kelp_layer_params params = {
        .moe = {options.activation, options.swish, options.alpha, options.beta}};
    if (up == NULL || down == NULL)
        return KELP_NETWORK_ERROR(KELP_INVALID_ARGUMENT,
                                  "a mixture of experts needs 'up' and 'down' weights");
    return kelp_network_append(network, KELP_LAYER_MOE, inputs, 9, 3, &params, NULL, out);
}
