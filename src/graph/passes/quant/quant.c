/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fuses GEMMs and convolutions between DequantizeLinear and QuantizeLinear:
 *
 *   MatMul, Gemm or Conv (DequantizeLinear(x), DequantizeLinear(w)[, bias])
 *     [→ QuantizeLinear → DequantizeLinear] [→ Add of one constant per column] [→ activation]
 *     [→ QuantizeLinear]
 *
 * to kelp::QMatMul or kelp::QConv, which multiplies the integers. Intermediate results are rounded
 * as before. Runs before constant weights are dequantized. Source of the form: Jacob et al.,
 * "Quantization and Training of Neural Networks for Efficient Integer-Arithmetic-Only Inference",
 * 2018.
 */
#include "base/assert.h"
#include "base/checked.h"
#include "graph/passes/quant/quant.h"

#include <math.h>
#include <string.h>

bool kelp_quant_is_op(const kelp_node *node, const kelp_operator *op) {
    return node != NULL && !node->removed && node->op == op;
}

kelp_value *kelp_quant_input(const kelp_node *node, size_t index) {
    return index < node->input_count ? node->inputs[index] : NULL;
}

void kelp_quant_take(kelp_quant_chain *c, kelp_node *node) {
    KELP_ASSERT(c->count < KELP_COUNT(c->nodes));
    c->nodes[c->count++] = node;
    c->last = node;
}

static kelp_value *result(const kelp_quant_chain *c) {
    KELP_ASSERT(c->last != NULL && c->last == c->nodes[c->count - 1]);
    return c->last->outputs[0];
}

kelp_node *kelp_quant_next(const kelp_quant_chain *c) {
    return kelp_used_once(result(c)) ? kelp_value_only_user(result(c)) : NULL;
}

/* ---- scales and zero points ---- */
static bool is_byte(kelp_dtype dtype) {
    return dtype == KELP_U8 || dtype == KELP_I8;
}

static bool plain_attributes(const kelp_node *node) {
    return kelp_node_attr_i64(node, "block_size", 0) == 0 &&
           kelp_node_attr_i64(node, "precision", 0) == 0;
}

/* Returns true for one constant float scale and no zero point, or a constant one of type u8 or s8.
 */
static bool has_single_scale(const kelp_node *node) {
    const kelp_value *scale = kelp_quant_input(node, 1), *zero = kelp_quant_input(node, 2);
    return scale != NULL && scale->constant != NULL && scale->constant->dtype == KELP_F32 &&
           kelp_tensor_elements(scale->constant) == 1 && plain_attributes(node) &&
           (zero == NULL || (zero->constant != NULL && is_byte(zero->constant->dtype) &&
                             kelp_tensor_elements(zero->constant) == 1));
}

static bool same_constant(const kelp_value *a, const kelp_value *b) {
    if (a == b)
        return true;
    KELP_ASSERT((a == NULL || a->constant != NULL) && (b == NULL || b->constant != NULL));
    return a != NULL && b != NULL && a->constant->dtype == b->constant->dtype &&
           memcmp(a->constant->data, b->constant->data, kelp_tensor_bytes(a->constant)) == 0;
}

static bool undoes(const kelp_node *dequantize, const kelp_node *quantize) {
    return kelp_quant_is_op(dequantize, KELP_OP(DequantizeLinear)) &&
           has_single_scale(dequantize) &&
           same_constant(dequantize->inputs[1], quantize->inputs[1]) &&
           same_constant(kelp_quant_input(dequantize, 2), kelp_quant_input(quantize, 2)) &&
           kelp_node_attr_i64(dequantize, "output_dtype", 0) == 0;
}

/* Returns the DequantizeLinear with a single scale that produces the value, or NULL. */
static kelp_node *dequantized(const kelp_value *value) {
    kelp_node *node = kelp_match_producer(value, KELP_OP(DequantizeLinear));
    return node != NULL && is_byte(node->inputs[0]->dtype) && has_single_scale(node) &&
                   kelp_node_attr_i64(node, "output_dtype", 0) == 0
               ? node
               : NULL;
}

/* Matches constant weights with one scale, or with one scale for each index of `axis`. */
static kelp_node *dequantized_weights(const kelp_value *value, int64_t axis) {
    kelp_node *node = kelp_match_producer(value, KELP_OP(DequantizeLinear));
    if (node == NULL || node->inputs[0]->constant == NULL ||
        !is_byte(node->inputs[0]->constant->dtype) || !plain_attributes(node) ||
        kelp_node_attr_i64(node, "output_dtype", 0) != 0)
        return NULL;
    if (has_single_scale(node))
        return node;
    const kelp_tensor *weights = node->inputs[0]->constant;
    const kelp_value *scale = node->inputs[1], *zero = kelp_quant_input(node, 2);
    int64_t along = kelp_node_attr_i64(node, "axis", 1);
    if (along < 0)
        along += weights->rank;
    bool fits =
        along == axis && scale->constant != NULL && scale->constant->dtype == KELP_F32 &&
        scale->constant->rank == 1 && scale->constant->shape[0] == weights->shape[axis] &&
        (zero == NULL || (zero->constant != NULL && zero->constant->dtype == weights->dtype &&
                          kelp_tensor_elements(zero->constant) == weights->shape[axis]));
    return fits ? node : NULL;
}

/* ---- nodes after the GEMM ---- */
static bool wants_bytes(const kelp_node *node) {
    return kelp_quant_is_op(node, KELP_OP(MatMul)) || kelp_quant_is_op(node, KELP_OP(Gemm)) ||
           kelp_quant_is_op(node, KELP_OP(Conv));
}

static bool is_quantize(const kelp_node *node, const kelp_value *x) {
    if (!kelp_quant_is_op(node, KELP_OP(QuantizeLinear)) || node->inputs[0] != x ||
        !has_single_scale(node))
        return false;
    int64_t to = kelp_node_attr_i64(node, "output_dtype", 0);
    return node->inputs[0]->dtype == KELP_F32 &&
           (kelp_quant_input(node, 2) != NULL || to == 0 || to == KELP_U8);
}

/* Returns true when the chain ends with a quantized result. */
static bool follow_rounding(kelp_quant_chain *c) {
    kelp_node *quantize = kelp_quant_next(c);
    if (quantize == NULL || !is_quantize(quantize, result(c)))
        return false;
    kelp_node *back =
        kelp_used_once(quantize->outputs[0]) ? kelp_value_only_user(quantize->outputs[0]) : NULL;
    kelp_node *reader = back != NULL && undoes(back, quantize) && kelp_used_once(back->outputs[0])
                            ? kelp_value_only_user(back->outputs[0])
                            : NULL;
    kelp_quant_take(c, quantize);
    if (reader == NULL || wants_bytes(reader)) {
        c->inputs[KELP_Q_Y] = quantize->inputs[1];
        c->inputs[KELP_Q_Y_ZERO] = kelp_quant_input(quantize, 2);
        return true;
    }
    c->inputs[KELP_Q_STEP] = quantize->inputs[1];
    c->inputs[KELP_Q_STEP_ZERO] = kelp_quant_input(quantize, 2);
    kelp_quant_take(c, back);
    return false;
}

/* Returns true for constants along the last axis of length `columns`. */
static bool is_row(const kelp_value *value, int64_t columns) {
    if (value == NULL || value->constant == NULL || value->constant->dtype != KELP_F32)
        return false;
    const kelp_tensor *row = value->constant;
    return row->rank >= 1 && kelp_tensor_elements(row) == columns &&
           row->shape[row->rank - 1] == columns;
}

static void follow_add(kelp_quant_chain *c, int64_t columns) {
    kelp_node *add = kelp_quant_next(c);
    if (!kelp_quant_is_op(add, KELP_OP(Add)) || columns <= 0)
        return;
    const kelp_value *sum = result(c);
    kelp_value *other = add->inputs[0] == sum ? add->inputs[1] : add->inputs[0];
    if (!is_row(other, columns) || sum->rank < other->constant->rank)
        return;
    c->inputs[KELP_Q_ADDEND] = other;
    kelp_quant_take(c, add);
}

static void follow_activation(kelp_quant_chain *c) {
    static const struct {
        const kelp_operator *op;
        const char *name;
    } rows[] = {{KELP_OP(Relu), "relu"},
                {KELP_OP(Tanh), "tanh"},
                {KELP_OP(Sigmoid), "sigmoid"},
                {KELP_OP(Gelu), "gelu"}};
    kelp_node *node = kelp_quant_next(c);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        if (!kelp_quant_is_op(node, rows[i].op))
            continue;
        c->activation = rows[i].name;
        if (i == 3 && strcmp(kelp_node_attr_string(node, "approximate", "none", NULL), "tanh") == 0)
            c->activation = "gelu_tanh";
        kelp_quant_take(c, node);
        return;
    }
}

void kelp_quant_follow_floats(kelp_quant_chain *c, int64_t columns) {
    follow_add(c, columns);
    follow_activation(c);
}

void kelp_quant_follow(kelp_quant_chain *c, int64_t columns) {
    if (follow_rounding(c))
        return;
    kelp_quant_follow_floats(c, columns);
    kelp_node *quantize = kelp_quant_next(c);
    if (quantize != NULL && c->inputs[KELP_Q_Y] == NULL && is_quantize(quantize, result(c))) {
        c->inputs[KELP_Q_Y] = quantize->inputs[1];
        c->inputs[KELP_Q_Y_ZERO] = kelp_quant_input(quantize, 2);
        kelp_quant_take(c, quantize);
    }
}

/* ---- operands ---- */
static void take_operand(kelp_quant_chain *c, int at, const kelp_node *dequantize) {
    c->inputs[at] = dequantize->inputs[0];
    c->inputs[at + 1] = dequantize->inputs[1];
    c->inputs[at + 2] = kelp_quant_input(dequantize, 2);
}

static bool start_matmul(kelp_node *node, kelp_quant_chain *c, int64_t *out_columns) {
    kelp_node *x = dequantized(node->inputs[0]);
    kelp_node *w = dequantized_weights(node->inputs[1], 1);
    *out_columns = 0;
    if (w != NULL && w->inputs[0]->constant->rank == 2)
        *out_columns = w->inputs[0]->constant->shape[1];
    else
        w = dequantized(node->inputs[1]);
    if (x == NULL || w == NULL)
        return false;
    take_operand(c, KELP_Q_X, x);
    take_operand(c, KELP_Q_W, w);
    return true;
}

/* Transposes [n, k] to [k, n]. */
static kelp_status *transposed(kelp_block *block, const kelp_value *from, kelp_value **out) {
    const kelp_tensor *old = from->constant;
    kelp_arena *arena = &block->graph->arena;
    int64_t shape[2] = {old->shape[1], old->shape[0]};
    KELP_TRY(kelp_block_add_value(block, from->name, out));
    kelp_tensor *tensor = KELP_ARENA_NEW(arena, kelp_tensor);
    uint8_t *data = kelp_arena_alloc(arena, kelp_tensor_bytes(old), 64);
    if (tensor == NULL || data == NULL)
        return KELP_ERROR(KELP_RESOURCE_EXHAUSTED, "out of memory for weights '%s'", from->name);
    KELP_TRY(kelp_tensor_init(tensor, old->dtype, 2, shape, data));
    for (int64_t i = 0; i < shape[0]; i++)
        for (int64_t j = 0; j < shape[1]; j++)
            data[i * shape[1] + j] = ((const uint8_t *)old->data)[j * shape[0] + i];
    (*out)->constant = tensor;
    (*out)->kind = KELP_VALUE_TENSOR;
    (*out)->dtype = old->dtype;
    (*out)->rank = 2;
    memcpy((*out)->shape, shape, sizeof shape);
    return NULL;
}

static kelp_status *start_gemm(kelp_block *block, kelp_node *node, kelp_quant_chain *c,
                               bool *out_fits) {
    bool transpose = kelp_node_attr_i64(node, "transB", 0) != 0;
    kelp_node *x = dequantized(node->inputs[0]);
    kelp_node *w = dequantized_weights(node->inputs[1], transpose ? 0 : 1);
    kelp_value *bias = kelp_quant_input(node, 2);
    *out_fits = false;
    if (x == NULL || w == NULL || w->inputs[0]->constant->rank != 2 ||
        kelp_node_attr_i64(node, "transA", 0) != 0 ||
        kelp_node_attr_f32(node, "alpha", 1.0f) != 1.0f ||
        (bias != NULL && kelp_node_attr_f32(node, "beta", 1.0f) != 1.0f))
        return NULL;
    int64_t columns = w->inputs[0]->constant->shape[transpose ? 0 : 1];
    if (bias != NULL) {
        const kelp_node *from = kelp_match_producer(bias, KELP_OP(DequantizeLinear));
        const kelp_value *source = from != NULL ? from->inputs[0] : bias;
        if (source->constant == NULL || source->constant->rank != 1 ||
            kelp_tensor_elements(source->constant) != columns || bias->dtype != KELP_F32)
            return NULL;
    }
    take_operand(c, KELP_Q_X, x);
    take_operand(c, KELP_Q_W, w);
    c->inputs[KELP_Q_BIAS] = bias;
    if (transpose)
        KELP_TRY(transposed(block, w->inputs[0], &c->inputs[KELP_Q_W]));
    *out_fits = true;
    return NULL;
}

static float f32_at(const kelp_tensor *tensor, int64_t index) {
    KELP_ASSERT(tensor->dtype == KELP_F32 && index < kelp_tensor_elements(tensor));
    float value; /* weights may be unaligned */
    memcpy(&value, (const char *)tensor->data + (size_t)index * sizeof value, sizeof value);
    return value;
}

/* Returns the integers of a bias whose scale is the product of the operands' scales; otherwise the
 * float bias. */
static kelp_value *integer_bias(kelp_value *bias, const kelp_quant_chain *c) {
    const kelp_node *from = kelp_match_producer(bias, KELP_OP(DequantizeLinear));
    if (from == NULL || from->inputs[0]->constant == NULL ||
        from->inputs[0]->constant->dtype != KELP_I32 || from->inputs[1]->constant == NULL ||
        from->inputs[1]->constant->dtype != KELP_F32)
        return bias;
    const kelp_tensor *scale = from->inputs[1]->constant, *w = c->inputs[KELP_Q_W_SCALE]->constant;
    const kelp_value *zero = kelp_quant_input(from, 2);
    int64_t scales = kelp_tensor_elements(scale), ws = kelp_tensor_elements(w);
    float x = f32_at(c->inputs[KELP_Q_X_SCALE]->constant, 0);
    if (scales != ws)
        return bias;
    for (int64_t i = 0; i < scales; i++) {
        float wanted = x * f32_at(w, i);
        if (!(fabsf(f32_at(scale, i) - wanted) <= 1e-5f * fabsf(wanted)))
            return bias;
    }
    if (zero != NULL) {
        if (zero->constant == NULL || zero->constant->dtype != KELP_I32)
            return bias;
        for (size_t i = 0; i < kelp_tensor_bytes(zero->constant); i++)
            if (((const uint8_t *)zero->constant->data)[i] != 0)
                return bias;
    }
    return from->inputs[0];
}

static bool start_conv(kelp_node *node, kelp_quant_chain *c) {
    kelp_node *x = dequantized(node->inputs[0]);
    kelp_node *w = dequantized_weights(node->inputs[1], 0);
    kelp_value *bias = kelp_quant_input(node, 2);
    if (x == NULL || w == NULL || w->inputs[0]->constant->rank < 3 ||
        w->inputs[0]->constant->rank > 5)
        return false;
    take_operand(c, KELP_Q_X, x);
    take_operand(c, KELP_Q_W, w);
    c->inputs[KELP_Q_BIAS] = bias != NULL ? integer_bias(bias, c) : NULL;
    return bias == NULL || c->inputs[KELP_Q_BIAS] != bias || bias->dtype == KELP_F32;
}

kelp_status *kelp_quant_replace_by(kelp_block *block, kelp_quant_chain *c, const kelp_operator *op,
                                   kelp_value *const *inputs, size_t count, kelp_attr *attributes) {
    kelp_node *fused = NULL;
    KELP_TRY(kelp_block_insert_node(block, c->last, op, 1, c->nodes[0]->name, inputs, count,
                                    c->last->outputs, 1, attributes, &fused));
    if (c->activation != NULL)
        KELP_TRY(kelp_node_set_string(fused, "activation", c->activation));
    for (size_t i = 0; i < c->count; i++)
        c->nodes[i]->removed = true;
    kelp_block_sweep(block);
    kelp_block_count_uses(block);
    return NULL;
}

kelp_status *kelp_quant_replace(kelp_block *block, kelp_quant_chain *c, const kelp_operator *op,
                                kelp_attr *attributes) {
    size_t count = KELP_Q_INPUTS;
    while (c->inputs[count - 1] == NULL)
        count--;
    return kelp_quant_replace_by(block, c, op, c->inputs, count, attributes);
}

static kelp_status *fuse(kelp_block *block, kelp_node *node, bool *out_done) {
    kelp_quant_chain c = {.last = NULL};
    bool conv = kelp_quant_is_op(node, KELP_OP(Conv)), fits = false;
    int64_t columns = 0;
    kelp_quant_take(&c, node);
    if (conv)
        fits = start_conv(node, &c);
    else if (kelp_quant_is_op(node, KELP_OP(Gemm)))
        KELP_TRY(start_gemm(block, node, &c, &fits));
    else
        fits = start_matmul(node, &c, &columns);
    *out_done = fits && result(&c)->dtype == KELP_F32;
    if (!*out_done)
        return NULL;
    kelp_quant_follow(&c, columns);
    return kelp_quant_replace(block, &c, conv ? KELP_OP_KELP(QConv) : KELP_OP_KELP(QMatMul),
                              conv ? node->attributes : NULL);
}

kelp_status *kelp_pass_quant(kelp_block *block) {
    for (size_t i = 0; i < block->node_count; i++) {
        kelp_node *node = block->nodes[i];
        bool done = false;
        if (!wants_bytes(node) || node->output_count != 1 || node->input_count < 2 ||
            node->inputs[0] == NULL || node->inputs[1] == NULL)
            continue;
        KELP_TRY(fuse(block, node, &done));
        if (done)
            i--; /* the next node is now at this index */
    }
    return NULL;
}
