/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Replaces the MatMul of one-one_hot_rows rows and a constant matrix by a lookup of rows. The rows
 * come from OneHot, or from Cast(Equal(indices, [0, 1, 2, …])). An index outside the columns
 * selects the last row of the table, which is zero.
 *
 *   MatMul(one-one_hot_rows rows, weights)  becomes  kelp::Lookup(indices, table).
 *
 * Elementwise operators that follow, also with one operand per column, are applied to the table and
 * become constant: a table usually has fewer rows than the input has indices.
 *
 * Results are bit-identical if the weights are finite, because zero times them is zero.
 */
#include "base/assert.h"
#include "graph/passes/passes.h"

#include <math.h>
#include <string.h>

/* Maximum rows of a table that is recomputed for each operator that is folded into it. */
#define MAX_ROWS 4096

typedef struct one_hot_rows {
    kelp_value *indices;
    int64_t columns;
    bool wrap;      /* negative indices count from the end */
    bool last_axis; /* the indices have an axis of dimension 1 in place of the columns */
} one_hot_rows;

static bool is_index(const kelp_value *value) {
    return value != NULL && value->constant == NULL && value->rank >= 0 &&
           (value->dtype == KELP_I32 || value->dtype == KELP_I64);
}

static bool match_one_hot(const kelp_value *value, one_hot_rows *out) {
    const kelp_node *node = kelp_match_producer(value, KELP_OP(OneHot));
    if (node == NULL || node->input_count < 3 || !is_index(node->inputs[0]))
        return false;
    int64_t depth, axis = kelp_node_attr_i64(node, "axis", -1);
    size_t count = 0;
    const kelp_tensor *values = node->inputs[2] != NULL ? node->inputs[2]->constant : NULL;
    if (!kelp_match_i64s(node->inputs[1], &depth, 1, &count) || count != 1 || values == NULL ||
        values->dtype != KELP_F32 || kelp_tensor_elements(values) != 2 ||
        (axis != -1 && axis != node->inputs[0]->rank))
        return false;
    float off_on[2];
    memcpy(off_on, values->data, sizeof off_on);
    *out = (one_hot_rows){.indices = node->inputs[0], .columns = depth, .wrap = true};
    return off_on[0] == 0.0f && off_on[1] == 1.0f;
}

/* Returns true for [0, 1, 2, …] along the last axis. */
static bool counts_up(const kelp_value *value) {
    const kelp_tensor *tensor = value->constant;
    if (tensor == NULL || tensor->rank < 1 ||
        (tensor->dtype != KELP_I32 && tensor->dtype != KELP_I64) ||
        kelp_tensor_elements(tensor) != tensor->shape[tensor->rank - 1])
        return false;
    for (int64_t i = 0; i < tensor->shape[tensor->rank - 1]; i++) {
        int32_t narrow = 0;
        int64_t item = 0;
        if (tensor->dtype == KELP_I32)
            memcpy(&narrow, (const char *)tensor->data + 4 * i, 4);
        else
            memcpy(&item, (const char *)tensor->data + 8 * i, 8);
        if (item + narrow != i)
            return false;
    }
    return true;
}

static bool match_equal(const kelp_value *value, one_hot_rows *out) {
    const kelp_node *cast = kelp_match_producer(value, KELP_OP(Cast));
    const kelp_node *equal =
        cast != NULL ? kelp_match_producer(cast->inputs[0], KELP_OP(Equal)) : NULL;
    if (equal == NULL || kelp_node_attr_i64(cast, "to", 0) != KELP_F32)
        return false;
    for (int k = 0; k < 2; k++) {
        kelp_value *indices = equal->inputs[k], *numbers = equal->inputs[1 - k];
        if (!is_index(indices) || numbers == NULL || !counts_up(numbers) ||
            indices->rank < numbers->constant->rank || indices->shape[indices->rank - 1] != 1)
            continue;
        *out = (one_hot_rows){.indices = indices, .last_axis = true};
        out->columns = numbers->constant->shape[numbers->constant->rank - 1];
        return true;
    }
    return false;
}

/* Creates a table of the weights and a row of zeros; NULL when a weight is not finite. */
static kelp_status *make_table(kelp_block *block, const kelp_value *weights, kelp_value **out) {
    const kelp_tensor *from = weights->constant;
    int64_t shape[2] = {from->shape[0] + 1, from->shape[1]}, count = kelp_tensor_elements(from);
    float *table;
    *out = NULL;
    for (int64_t i = 0; i < count; i++)
        if (!isfinite(kelp_pass_f32_at(from, i)))
            return NULL;
    KELP_TRY(kelp_pass_new_f32(block, weights->name, 2, shape, out, &table));
    memset(table + count, 0, (size_t)shape[1] * sizeof *table);
    if (count > 0)
        memcpy(table, from->data, (size_t)count * sizeof *table);
    for (int64_t i = 0; i < count; i++)
        table[i] += 0.0f; /* the sum of a MatMul is never -0 */
    return NULL;
}

static kelp_status *replace(kelp_block *block, kelp_node *matmul, bool *out_done) {
    one_hot_rows rows;
    const kelp_value *weights = matmul->inputs[1];
    kelp_value *inputs[2] = {NULL, NULL};
    kelp_node *lookup = NULL;
    *out_done = false;
    if (matmul->inputs[0] == NULL || weights == NULL || weights->constant == NULL ||
        weights->constant->rank != 2 || weights->constant->dtype != KELP_F32 ||
        (!match_one_hot(matmul->inputs[0], &rows) && !match_equal(matmul->inputs[0], &rows)) ||
        rows.columns != weights->constant->shape[0] || rows.columns > MAX_ROWS ||
        (!rows.last_axis && rows.indices->rank < 1))
        return NULL; /* MatMul of a single row gives a vector, which Lookup does not produce */
    inputs[0] = rows.indices;
    KELP_TRY(make_table(block, weights, &inputs[1]));
    if (inputs[1] == NULL)
        return NULL;
    KELP_TRY(kelp_block_insert_node(block, matmul, KELP_OP_KELP(Lookup), 1, matmul->name, inputs, 2,
                                    matmul->outputs, 1, NULL, &lookup));
    KELP_TRY(kelp_node_set_i64(lookup, "wrap", rows.wrap));
    KELP_TRY(kelp_node_set_i64(lookup, "last_axis", rows.last_axis));
    matmul->removed = true;
    *out_done = true;
    return NULL;
}

/* Returns true for unary elementwise operators. */
static bool is_elementwise(const kelp_node *node) {
    static const kelp_operator *const ops[] = {
        KELP_OP(Relu), KELP_OP(Tanh), KELP_OP(Sigmoid),   KELP_OP(Gelu),
        KELP_OP(Erf),  KELP_OP(Neg),  KELP_OP(HardSwish), KELP_OP(HardSigmoid)};
    if (node->input_count != 1 || node->output_count != 1)
        return false;
    for (size_t i = 0; i < sizeof ops / sizeof ops[0]; i++)
        if (node->op == ops[i])
            return true;
    return false;
}

/* Returns the constant operand of Add, Sub, Mul or Div, if it is a scalar or has one value per
 * column. */
static kelp_value *column_operand(const kelp_node *node, const kelp_value *x, int64_t width) {
    static const kelp_operator *const ops[] = {KELP_OP(Add), KELP_OP(Sub), KELP_OP(Mul),
                                               KELP_OP(Div)};
    if (node->input_count != 2 || node->opset_version < 7)
        return NULL;
    kelp_value *other = node->inputs[0] == x ? node->inputs[1] : node->inputs[0];
    if (other == NULL || other->constant == NULL || other->constant->dtype != KELP_F32 ||
        other->constant->rank > x->rank)
        return NULL;
    int64_t count = kelp_tensor_elements(other->constant);
    int32_t rank = other->constant->rank;
    bool fits = count == 1 || (count == width && other->constant->shape[rank - 1] == width);
    for (size_t i = 0; fits && i < sizeof ops / sizeof ops[0]; i++)
        if (node->op == ops[i])
            return other;
    return NULL;
}

/* Applies the only reader of the rows to the table instead. */
static kelp_status *fold_reader(kelp_block *block, kelp_node *lookup, bool *out_done) {
    kelp_value *rows = lookup->outputs[0], *table = lookup->inputs[1], *changed = NULL;
    kelp_node *next = kelp_used_once(rows) ? kelp_value_only_user(rows) : NULL, *early = NULL;
    kelp_value *inputs[2] = {NULL, NULL}, *operand = NULL;
    *out_done = false;
    if (next == NULL)
        return NULL;
    KELP_ASSERT(lookup->input_count == 2 && table->rank == 2);
    if (!is_elementwise(next)) {
        operand = column_operand(next, rows, table->shape[1]);
        if (operand == NULL)
            return NULL;
        const kelp_tensor *old = operand->constant;
        int64_t count = kelp_tensor_elements(old);
        float *data;
        KELP_TRY(kelp_pass_new_f32(block, operand->name, 1, &count, &operand, &data));
        if (count > 0)
            memcpy(data, old->data, (size_t)count * sizeof *data);
    }
    for (size_t i = 0; i < next->input_count; i++)
        inputs[i] = next->inputs[i] == rows ? table : operand;
    KELP_TRY(kelp_block_add_value(block, next->outputs[0]->name, &changed));
    changed->kind = KELP_VALUE_TENSOR;
    changed->dtype = KELP_F32;
    changed->rank = 2;
    memcpy(changed->shape, table->shape, sizeof changed->shape);
    KELP_TRY(kelp_block_insert_node(block, lookup, next->op, next->opset_version, next->name,
                                    inputs, next->input_count, &changed, 1, next->attributes,
                                    &early));
    inputs[0] = lookup->inputs[0];
    inputs[1] = changed;
    KELP_TRY(kelp_block_insert_node(block, lookup, KELP_OP_KELP(Lookup), 1, lookup->name, inputs, 2,
                                    next->outputs, 1, lookup->attributes, &early));
    lookup->removed = true;
    next->removed = true;
    *out_done = true;
    return NULL;
}

static kelp_status *fuse(kelp_block *block, kelp_node *node, bool *out_done) {
    if (kelp_match_producer(node->outputs[0], KELP_OP(MatMul)) == node)
        return replace(block, node, out_done);
    if (kelp_match_producer(node->outputs[0], KELP_OP_KELP(Lookup)) == node)
        return fold_reader(block, node, out_done);
    return NULL;
}

kelp_status *kelp_pass_lookup(kelp_block *block) {
    return kelp_pass_each(block, fuse);
}
