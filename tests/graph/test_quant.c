/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of the passes over quantized operators. */
#include "passes_support.h"

/* Adds a constant of zeros, except the first element, a float 1 or a byte `first`. */
static kelp_value *constant(model *m, kelp_dtype dtype, int32_t rank, int64_t a, int64_t b,
                            uint8_t first) {
    int64_t shape[2] = {a, b};
    kelp_value *v = value(m, dtype, rank);
    kelp_tensor *tensor = KELP_ARENA_NEW(&m->graph->arena, kelp_tensor);
    assert_null(kelp_tensor_init(tensor, dtype, rank, shape, NULL));
    tensor->data = kelp_arena_alloc(&m->graph->arena, kelp_tensor_bytes(tensor), 64);
    memset(tensor->data, 0, kelp_tensor_bytes(tensor));
    if (dtype == KELP_F32)
        *(float *)tensor->data = 1.0f;
    else
        *(uint8_t *)tensor->data = first;
    v->constant = tensor;
    memcpy(v->shape, tensor->shape, sizeof v->shape);
    return v;
}

static kelp_value *node(model *m, const kelp_operator *op, kelp_dtype dtype, kelp_value *a,
                        kelp_value *b, kelp_value *c) {
    kelp_value *inputs[3] = {a, b, c}, *out = value(m, dtype, a->rank);
    assert_null(kelp_block_add_node(m->block, op, 17, op->name, inputs,
                                    c   ? 3
                                    : b ? 2
                                        : 1,
                                    &out, 1, NULL, NULL));
    return out;
}

static kelp_value *quantize(model *m, kelp_value *x, uint8_t zero) {
    return node(m, KELP_OP(QuantizeLinear), KELP_U8, x, constant(m, KELP_F32, 0, 1, 1, 0),
                constant(m, KELP_U8, 0, 1, 1, zero));
}

static kelp_value *dequantize(model *m, kelp_value *x, uint8_t zero) {
    return node(m, KELP_OP(DequantizeLinear), KELP_F32, x, constant(m, KELP_F32, 0, 1, 1, 0),
                constant(m, x->dtype, 0, 1, 1, zero));
}

static void set_output(model *m, kelp_value *y) {
    m->block->outputs = KELP_ARENA_ARRAY(&m->graph->arena, 1, kelp_value *);
    m->block->outputs[0] = y;
    m->block->output_count = 1;
    y->is_output = true;
}

/* Runs the passes and compares the operators of the remaining nodes, in order. */
static void expect(model *m, const char *expected) {
    char found[256] = "";
    assert_null(kelp_passes_run_quant(m->block));
    for (size_t i = 0; i < m->block->node_count; i++) {
        strcat(found, i > 0 ? " " : "");
        strcat(found, m->block->nodes[i]->op->name);
    }
    assert_string_equal(found, expected);
    kelp_graph_release(m->graph);
}

static kelp_value *weights(model *m, int64_t k, int64_t n) {
    return dequantize(m, constant(m, KELP_I8, 2, k, n, 3), 0);
}

static void a_matmul_between_quantize_nodes_is_fused(void **state) {
    (void)state;
    model m = make();
    kelp_value *x = dequantize(&m, quantize(&m, value(&m, KELP_F32, 2), 7), 7);
    kelp_value *y =
        quantize(&m, node(&m, KELP_OP(MatMul), KELP_F32, x, weights(&m, 4, 6), NULL), 9);
    set_output(&m, dequantize(&m, y, 9));
    expect(&m, "QuantizeLinear QMatMul DequantizeLinear");
}

static void an_intermediate_rounding_is_kept_in_the_fused_node(void **state) {
    (void)state;
    model m = make();
    kelp_value *x = dequantize(&m, quantize(&m, value(&m, KELP_F32, 2), 7), 7);
    kelp_value *y = node(&m, KELP_OP(MatMul), KELP_F32, x, weights(&m, 4, 6), NULL);
    y = dequantize(&m, quantize(&m, y, 9), 9);
    y = node(&m, KELP_OP(Add), KELP_F32, y, constant(&m, KELP_F32, 1, 6, 1, 0), NULL);
    set_output(&m, quantize(&m, node(&m, KELP_OP(Relu), KELP_F32, y, NULL, NULL), 9));
    expect(&m, "QuantizeLinear QMatMul");
}

static void a_quantized_result_between_two_matmuls_stays_quantized(void **state) {
    (void)state;
    model m = make();
    kelp_value *x = dequantize(&m, quantize(&m, value(&m, KELP_F32, 2), 7), 7);
    kelp_value *y = node(&m, KELP_OP(MatMul), KELP_F32, x, weights(&m, 4, 6), NULL);
    y = dequantize(&m, quantize(&m, y, 9), 9);
    set_output(&m, node(&m, KELP_OP(MatMul), KELP_F32, y, weights(&m, 6, 2), NULL));
    expect(&m, "QuantizeLinear QMatMul QMatMul");
}

static void another_zero_point_prevents_an_intermediate_rounding(void **state) {
    (void)state;
    model m = make();
    kelp_value *x = dequantize(&m, quantize(&m, value(&m, KELP_F32, 2), 7), 7);
    kelp_value *y = node(&m, KELP_OP(MatMul), KELP_F32, x, weights(&m, 4, 6), NULL);
    y = dequantize(&m, quantize(&m, y, 9), 8); /* dequantized with another zero point */
    set_output(&m, node(&m, KELP_OP(Relu), KELP_F32, y, NULL, NULL));
    expect(&m, "QuantizeLinear QMatMul DequantizeLinear Relu");
}

static void a_matmul_of_floats_and_small_weights_is_not_fused(void **state) {
    (void)state;
    model m = make();
    kelp_value *x = value(&m, KELP_F32, 2);
    /* constant folding dequantizes small weights */
    set_output(&m, node(&m, KELP_OP(MatMul), KELP_F32, x, weights(&m, 4, 6), NULL));
    expect(&m, "DequantizeLinear MatMul");
}

static void large_weights_stay_in_8_bits(void **state) {
    (void)state;
    model m = make();
    kelp_value *y =
        node(&m, KELP_OP(MatMul), KELP_F32, value(&m, KELP_F32, 2), weights(&m, 256, 300), NULL);
    y = node(&m, KELP_OP(Add), KELP_F32, y, constant(&m, KELP_F32, 1, 300, 1, 0), NULL);
    set_output(&m, node(&m, KELP_OP(Tanh), KELP_F32, y, NULL, NULL));
    expect(&m, "WeightMatMul");
}

static void a_matmul_of_dynamically_quantized_input_is_fused(void **state) {
    (void)state;
    model m = make();
    kelp_value *x = value(&m, KELP_F32, 2), *out[3];
    out[0] = value(&m, KELP_U8, 2);
    out[1] = value(&m, KELP_F32, 0);
    out[2] = value(&m, KELP_U8, 0);
    assert_null(kelp_block_add_node(m.block, KELP_OP(DynamicQuantizeLinear), 17, "d", &x, 1, out, 3,
                                    NULL, NULL));
    kelp_value *y = node(&m, KELP_OP(MatMulInteger), KELP_I32, out[0],
                         constant(&m, KELP_I8, 2, 4, 6, 1), out[2]);
    y = node(&m, KELP_OP(Cast), KELP_F32, y, NULL, NULL);
    assert_null(kelp_node_set_i64(y->producer, "to", KELP_F32));
    kelp_value *scale =
        node(&m, KELP_OP(Mul), KELP_F32, out[1], constant(&m, KELP_F32, 0, 1, 1, 0), NULL);
    y = node(&m, KELP_OP(Mul), KELP_F32, y, scale, NULL);
    set_output(&m, node(&m, KELP_OP(Add), KELP_F32, y, constant(&m, KELP_F32, 1, 6, 1, 0), NULL));
    expect(&m, "DynamicQuantizeLinear QMatMul");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_matmul_between_quantize_nodes_is_fused),
        cmocka_unit_test(an_intermediate_rounding_is_kept_in_the_fused_node),
        cmocka_unit_test(a_quantized_result_between_two_matmuls_stays_quantized),
        cmocka_unit_test(another_zero_point_prevents_an_intermediate_rounding),
        cmocka_unit_test(a_matmul_of_floats_and_small_weights_is_not_fused),
        cmocka_unit_test(large_weights_stay_in_8_bits),
        cmocka_unit_test(a_matmul_of_dynamically_quantized_input_is_fused),
    };
    return cmocka_run_group_tests_name("quant", tests, NULL, NULL);
}
