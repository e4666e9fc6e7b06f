/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Keeps large constant weights in 8 or 16 bits where they are multiplied with floats. They are
 * DequantizeLinear(w), Mul(Cast(w), scale), or Cast(w) of 16-bit floats:
 *
 *   MatMul(x, weights)[ → Add of a bias][ → activation]  becomes  kelp::WeightMatMul;
 *   Gather(weights, rows)  becomes  Mul(Cast(Gather(w, rows)), Gather(scale, rows)).
 *
 * Runs before constant folding, which converts other weights.
 */
#include "base/checked.h"
#include "graph/passes/quant/quant.h"

#include <string.h>

/* Smaller weights stay in the cache as floats, which is faster. */
#define KEEP_MIN_ELEMENTS 65536
#define KEEP_MIN_HALVES 1048576
#define KEEP_MIN_TABLE 1048576

typedef struct weights {
    kelp_value *bytes, *scale, *zero;
    int64_t axis; /* axis of the scales; -1 for a single scale */
} weights;

static bool is_bytes(const kelp_value *value) {
    return value != NULL && value->constant != NULL &&
           (value->constant->dtype == KELP_U8 || value->constant->dtype == KELP_I8);
}

static bool is_scale(const kelp_value *value) {
    return value != NULL && value->constant != NULL && value->constant->dtype == KELP_F32;
}

/* Gets the only axis along which a broadcast scale varies. */
static bool axis_of(const kelp_tensor *scale, const kelp_tensor *bytes, int64_t *out) {
    *out = -1;
    if (scale->rank > bytes->rank)
        return false;
    for (int32_t i = 0; i < scale->rank; i++) {
        int32_t axis = i + bytes->rank - scale->rank;
        if (scale->shape[i] == 1)
            continue;
        if (*out >= 0 || scale->shape[i] != bytes->shape[axis])
            return false;
        *out = axis;
    }
    return true;
}

static bool match_cast(const kelp_node *mul, weights *out) {
    for (int k = 0; k < 2; k++) {
        const kelp_node *cast = kelp_match_producer(mul->inputs[k], KELP_OP(Cast));
        kelp_value *scale = mul->inputs[1 - k];
        if (cast == NULL || !is_bytes(cast->inputs[0]) || !is_scale(scale) ||
            kelp_node_attr_i64(cast, "to", 0) != KELP_F32)
            continue;
        *out = (weights){cast->inputs[0], scale, NULL, -1};
        return axis_of(scale->constant, out->bytes->constant, &out->axis);
    }
    return false;
}

static bool match_weights(const kelp_value *value, weights *out) {
    const kelp_node *mul = kelp_match_producer(value, KELP_OP(Mul));
    if (mul != NULL)
        return match_cast(mul, out);
    const kelp_node *node = kelp_match_producer(value, KELP_OP(DequantizeLinear));
    if (node == NULL || !is_bytes(node->inputs[0]) || !is_scale(node->inputs[1]) ||
        kelp_node_attr_i64(node, "block_size", 0) != 0 ||
        kelp_node_attr_i64(node, "output_dtype", 0) != 0)
        return false;
    const kelp_tensor *bytes = node->inputs[0]->constant, *scale = node->inputs[1]->constant;
    *out = (weights){node->inputs[0], node->inputs[1], kelp_quant_input(node, 2), -1};
    if (out->zero != NULL && (!is_bytes(out->zero) || out->zero->constant->dtype != bytes->dtype))
        return false;
    if (kelp_tensor_elements(scale) == 1)
        return out->zero == NULL || kelp_tensor_elements(out->zero->constant) == 1;
    out->axis = kelp_node_attr_i64(node, "axis", 1);
    out->axis += out->axis < 0 ? bytes->rank : 0;
    return out->axis >= 0 && out->axis < bytes->rank && scale->rank == 1 &&
           scale->shape[0] == bytes->shape[out->axis] &&
           (out->zero == NULL || kelp_tensor_elements(out->zero->constant) == scale->shape[0]);
}

/* ---- MatMul ---- */
/* Gets constant 16-bit floats that are cast to float32. */
static bool match_halves(const kelp_value *value, weights *out) {
    const kelp_node *cast = kelp_match_producer(value, KELP_OP(Cast));
    const kelp_tensor *w =
        cast != NULL && cast->inputs[0] != NULL ? cast->inputs[0]->constant : NULL;
    if (w == NULL || (w->dtype != KELP_F16 && w->dtype != KELP_BF16) || w->rank != 2 ||
        kelp_tensor_elements(w) < KEEP_MIN_HALVES)
        return false;
    *out = (weights){cast->inputs[0], NULL, NULL, -1};
    return true;
}

static kelp_status *keep_matmul(kelp_block *block, kelp_node *matmul, bool *out_done) {
    weights w;
    const kelp_value *x = matmul->inputs[0];
    if (x->dtype != KELP_F32 || x->constant != NULL)
        return NULL;
    if (!match_halves(matmul->inputs[1], &w) &&
        (!match_weights(matmul->inputs[1], &w) || w.bytes->constant->rank != 2 ||
         (w.axis != 1 && w.axis != -1) ||
         kelp_tensor_elements(w.bytes->constant) < KEEP_MIN_ELEMENTS))
        return NULL;
    kelp_quant_chain c = {.last = NULL};
    kelp_quant_take(&c, matmul);
    kelp_quant_follow_floats(&c, w.bytes->constant->shape[1]);
    kelp_value *inputs[5] = {matmul->inputs[0], w.bytes, w.scale, w.zero, c.inputs[KELP_Q_ADDEND]};
    size_t count = inputs[4] != NULL ? 5 : w.zero != NULL ? 4 : w.scale != NULL ? 3 : 2;
    *out_done = true;
    return kelp_quant_replace_by(block, &c, KELP_OP_KELP(WeightMatMul), inputs, count, NULL);
}

/* ---- tables ---- */
static kelp_status *add_node(kelp_block *block, kelp_node *before, const kelp_operator *op,
                             int64_t version, kelp_value *const *inputs, size_t count,
                             kelp_dtype dtype, kelp_node **out) {
    kelp_value *output = NULL;
    KELP_TRY(kelp_block_add_value(block, before->outputs[0]->name, &output));
    output->kind = KELP_VALUE_TENSOR;
    output->dtype = dtype;
    output->rank = before->outputs[0]->rank;
    memcpy(output->shape, before->outputs[0]->shape, sizeof output->shape);
    memcpy(output->symbols, before->outputs[0]->symbols, sizeof output->symbols);
    return kelp_block_insert_node(block, before, op, version, before->name, inputs, count, &output,
                                  1, NULL, out);
}

static bool is_table(const weights *w) {
    const kelp_tensor *bytes = w->bytes->constant, *scale = w->scale->constant;
    bool column = scale->rank == 2 && scale->shape[1] == 1; /* one scale per row */
    return bytes->rank == 2 && w->zero == NULL && w->axis == 0 && column &&
           kelp_tensor_elements(bytes) >= KEEP_MIN_TABLE;
}

static kelp_status *keep_table(kelp_block *block, kelp_node *gather, bool *out_done) {
    weights w;
    kelp_node *rows = NULL, *cast = NULL, *scales = NULL, *mul = NULL;
    if (kelp_node_attr_i64(gather, "axis", 0) != 0 || gather->input_count != 2 ||
        gather->inputs[1]->constant != NULL || !match_weights(gather->inputs[0], &w) ||
        !is_table(&w))
        return NULL;
    int64_t version = gather->opset_version;
    kelp_value *from[2] = {w.bytes, gather->inputs[1]}, *by[2] = {w.scale, gather->inputs[1]};
    KELP_TRY(add_node(block, gather, KELP_OP(Gather), version, from, 2, w.bytes->constant->dtype,
                      &rows));
    KELP_TRY(add_node(block, gather, KELP_OP(Cast), version, rows->outputs, 1, KELP_F32, &cast));
    KELP_TRY(kelp_node_set_i64(cast, "to", KELP_F32));
    KELP_TRY(add_node(block, gather, KELP_OP(Gather), version, by, 2, KELP_F32, &scales));
    if (scales->outputs[0]->rank > 0) {
        scales->outputs[0]->shape[scales->outputs[0]->rank - 1] = 1;
        scales->outputs[0]->symbols[scales->outputs[0]->rank - 1] = NULL;
    }
    kelp_value *factors[2] = {cast->outputs[0], scales->outputs[0]};
    KELP_TRY(kelp_block_insert_node(block, gather, KELP_OP(Mul), version, gather->name, factors, 2,
                                    gather->outputs, 1, NULL, &mul));
    gather->removed = true;
    kelp_block_sweep(block);
    kelp_block_count_uses(block);
    *out_done = true;
    return NULL;
}

kelp_status *kelp_pass_weights(kelp_block *block) {
    for (size_t i = 0; i < block->node_count; i++) {
        kelp_node *node = block->nodes[i];
        bool done = false;
        if (kelp_quant_is_op(node, KELP_OP(MatMul)))
            KELP_TRY(keep_matmul(block, node, &done));
        else if (kelp_quant_is_op(node, KELP_OP(Gather)))
            KELP_TRY(keep_table(block, node, &done));
        if (done)
            i--; /* this index now holds the next node, or the replacement */
    }
    return NULL;
}
