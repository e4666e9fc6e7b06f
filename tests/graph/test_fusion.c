/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of the passes over float operators. */
#include "passes_support.h"

#include <math.h>

/* Adds a constant whose elements are all `item`. */
static kelp_value *floats(model *m, float item, int32_t rank, int64_t a, int64_t b, int64_t c) {
    int64_t shape[3] = {a, b, c};
    kelp_value *v = NULL;
    float *data = NULL;
    assert_null(kelp_pass_new_f32(m->block, "w", rank, shape, &v, &data));
    for (int64_t i = 0; i < kelp_tensor_elements(v->constant); i++)
        data[i] = item;
    v->is_own = false;
    return v;
}

static kelp_value *counting(model *m, int64_t count) {
    kelp_value *v = value(m, KELP_I64, 1);
    kelp_tensor *tensor = KELP_ARENA_NEW(&m->graph->arena, kelp_tensor);
    int64_t *data = KELP_ARENA_ARRAY(&m->graph->arena, (size_t)count, int64_t);
    assert_null(kelp_tensor_init(tensor, KELP_I64, 1, &count, data));
    for (int64_t i = 0; i < count; i++)
        data[i] = i;
    v->constant = tensor;
    v->shape[0] = count;
    return v;
}

static kelp_value *node(model *m, const kelp_operator *op, kelp_dtype dtype, int32_t rank,
                        kelp_value *a, kelp_value *b) {
    kelp_value *inputs[2] = {a, b}, *out = value(m, dtype, rank);
    assert_null(kelp_block_add_node(m->block, op, 17, op->name, inputs, b != NULL ? 2 : 1, &out, 1,
                                    NULL, NULL));
    return out;
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
    assert_null(kelp_passes_run(m->block));
    for (size_t i = 0; i < m->block->node_count; i++) {
        strcat(found, i > 0 ? " " : "");
        strcat(found, m->block->nodes[i]->op->name);
    }
    assert_string_equal(found, expected);
}

/* Adds one-hot rows [n,columns]: the comparison of indices [n,1] with 0, 1, 2, … */
static kelp_value *one_hot(model *m, int64_t columns) {
    kelp_value *indices = value(m, KELP_I64, 2);
    indices->shape[1] = 1;
    kelp_value *equal = node(m, KELP_OP(Equal), KELP_BOOL, 2, indices, counting(m, columns));
    kelp_value *cast = node(m, KELP_OP(Cast), KELP_F32, 2, equal, NULL);
    assert_null(kelp_node_set_i64(cast->producer, "to", KELP_F32));
    return cast;
}

static void matmul_of_one_hot_rows_becomes_lookup(void **state) {
    (void)state;
    model m = make();
    kelp_value *rows =
        node(&m, KELP_OP(MatMul), KELP_F32, 2, one_hot(&m, 4), floats(&m, 2.0f, 2, 4, 3, 0));
    set_output(&m, rows);
    expect(&m, "Lookup");
    const kelp_tensor *table = m.block->nodes[0]->inputs[1]->constant;
    assert_int_equal(table->shape[0], 5);
    assert_true(((const float *)table->data)[11] == 2.0f);
    assert_true(((const float *)table->data)[12] == 0.0f); /* the row of indices out of range */
    kelp_graph_release(m.graph);
}

static void elementwise_operators_are_applied_to_the_table(void **state) {
    (void)state;
    model m = make();
    kelp_value *y =
        node(&m, KELP_OP(MatMul), KELP_F32, 2, one_hot(&m, 4), floats(&m, 2.0f, 2, 4, 3, 0));
    y = node(&m, KELP_OP(Add), KELP_F32, 2, y, floats(&m, 1.0f, 1, 3, 0, 0));
    set_output(&m, node(&m, KELP_OP(Tanh), KELP_F32, 2, y, NULL));
    expect(&m, "Add Tanh Lookup");
    assert_non_null(m.block->nodes[0]->inputs[0]->constant);
    assert_non_null(m.block->nodes[0]->inputs[1]->constant);
    kelp_graph_release(m.graph);
}

static void infinite_weights_prevent_a_lookup(void **state) {
    (void)state;
    model m = make();
    set_output(&m, node(&m, KELP_OP(MatMul), KELP_F32, 2, one_hot(&m, 4),
                        floats(&m, INFINITY, 2, 4, 3, 0)));
    expect(&m, "Equal Cast MatMul");
    kelp_graph_release(m.graph);
}

static void gelu_by_tanh_is_fused(void **state) {
    (void)state;
    model m = make();
    kelp_value *x = value(&m, KELP_F32, 2);
    kelp_value *y = node(&m, KELP_OP(Mul), KELP_F32, 2, x, x);
    y = node(&m, KELP_OP(Mul), KELP_F32, 2, y, x);
    y = node(&m, KELP_OP(Mul), KELP_F32, 2, floats(&m, 0.044715f, 0, 0, 0, 0), y);
    y = node(&m, KELP_OP(Add), KELP_F32, 2, x, y);
    y = node(&m, KELP_OP(Mul), KELP_F32, 2, y, floats(&m, 0.7978845608f, 0, 0, 0, 0));
    y = node(&m, KELP_OP(Tanh), KELP_F32, 2, y, NULL);
    y = node(&m, KELP_OP(Add), KELP_F32, 2, y, floats(&m, 1.0f, 0, 0, 0, 0));
    y = node(&m, KELP_OP(Mul), KELP_F32, 2, floats(&m, 0.5f, 0, 0, 0, 0), y);
    set_output(&m, node(&m, KELP_OP(Mul), KELP_F32, 2, x, y));
    expect(&m, "Gelu");
    assert_string_equal(kelp_node_attr_string(m.block->nodes[0], "approximate", "", NULL), "tanh");
    kelp_graph_release(m.graph);
}

static void convolve(int64_t padding, float scale, const char *expected, float weight) {
    model m = make();
    kelp_value *x = value(&m, KELP_F32, 3), *w = floats(&m, 3.0f, 3, 2, 4, 5);
    kelp_value *y = node(&m, KELP_OP(Mul), KELP_F32, 3, x, floats(&m, scale, 1, 1, 0, 0));
    y = node(&m, KELP_OP(Add), KELP_F32, 3, y, floats(&m, 1.0f, 1, 1, 0, 0));
    y = node(&m, KELP_OP(Conv), KELP_F32, 3, y, w);
    int64_t pads[2] = {padding, padding};
    assert_null(kelp_node_set_i64s(y->producer, "pads", pads, 2));
    set_output(&m, y);
    expect(&m, expected);
    const kelp_node *conv = m.block->nodes[m.block->node_count - 1];
    assert_true(*(const float *)conv->inputs[1]->constant->data == weight);
    assert_true(*(const float *)w->constant->data ==
                3.0f); /* the weights of the model are unchanged */
    kelp_graph_release(m.graph);
}

static void mul_and_add_before_a_convolution_are_folded(void **state) {
    (void)state;
    convolve(0, 2.0f, "Conv", 6.0f);
    convolve(1, 2.0f, "Add Conv", 6.0f);     /* zeros are not shifted */
    convolve(1, 0.0f, "Mul Add Conv", 3.0f); /* the scale 0 has no reciprocal */
}

static kelp_value *mean(model *m, kelp_value *x, int64_t axis) {
    kelp_value *y = node(m, KELP_OP(ReduceMean), KELP_F32, 2, x, NULL);
    assert_null(kelp_node_set_i64s(y->producer, "axes", &axis, 1));
    return y;
}

/* Builds a layer normalization. With an exponent rank above 0, Pow computes the square. */
static void normalize(int64_t axis, int32_t epsilon_rank, int32_t exponent_rank,
                      const char *expected) {
    model m = make();
    kelp_value *x = value(&m, KELP_F32, 2);
    x->shape[1] = 6;
    kelp_value *d = node(&m, KELP_OP(Sub), KELP_F32, 2, x, mean(&m, x, axis));
    kelp_value *y = exponent_rank > 0 ? node(&m, KELP_OP(Pow), KELP_F32, exponent_rank, d,
                                             floats(&m, 2.0f, exponent_rank, 1, 1, 1))
                                      : node(&m, KELP_OP(Mul), KELP_F32, 2, d, d);
    y = mean(&m, y, -1);
    y = node(&m, KELP_OP(Add), KELP_F32, 2, y, floats(&m, 1e-5f, epsilon_rank, 1, 1, 1));
    y = node(&m, KELP_OP(Div), KELP_F32, 2, d, node(&m, KELP_OP(Sqrt), KELP_F32, 2, y, NULL));
    y = node(&m, KELP_OP(Mul), KELP_F32, 2, floats(&m, 2.0f, 1, 6, 0, 0), y);
    set_output(&m, node(&m, KELP_OP(Add), KELP_F32, 2, y, floats(&m, 1.0f, 1, 6, 0, 0)));
    expect(&m, expected);
    kelp_graph_release(m.graph);
}

static void layer_normalization_is_fused(void **state) {
    (void)state;
    normalize(-1, 0, 0, "LayerNormalization");
    normalize(-1, 2, 2, "LayerNormalization");
    normalize(0, 0, 0, "ReduceMean Sub Mul ReduceMean Add Sqrt Div Mul Add");
    /* constants that raise the rank of the result */
    normalize(-1, 3, 0, "ReduceMean Sub Mul ReduceMean Add Sqrt Div Mul Add");
    normalize(-1, 0, 3, "ReduceMean Sub Pow ReduceMean Add Sqrt Div Mul Add");
}

static void multiplication_by_one_is_removed(void **state) {
    (void)state;
    model m = make();
    kelp_value *x = value(&m, KELP_F32, 2);
    kelp_value *y = node(&m, KELP_OP(Mul), KELP_F32, 2, floats(&m, 1.0f, 1, 1, 0, 0), x);
    set_output(&m, node(&m, KELP_OP(Tanh), KELP_F32, 2, y, NULL));
    expect(&m, "Tanh");
    kelp_graph_release(m.graph);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(matmul_of_one_hot_rows_becomes_lookup),
        cmocka_unit_test(elementwise_operators_are_applied_to_the_table),
        cmocka_unit_test(infinite_weights_prevent_a_lookup),
        cmocka_unit_test(gelu_by_tanh_is_fused),
        cmocka_unit_test(mul_and_add_before_a_convolution_are_folded),
        cmocka_unit_test(layer_normalization_is_fused),
        cmocka_unit_test(multiplication_by_one_is_removed),
    };
    return cmocka_run_group_tests_name("fusion", tests, NULL, NULL);
}
