/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of bodies: captured values become inputs, and a branch replaces its If. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "graph/support.h"
#include "graph/text.h"

/* Adds a branch with one output; `inner` is a second node, "" for none. */
static void branch(pb *owner, const char *name, const char *op_type, const char *inputs,
                   const char *inner) {
    pb body = {0}, node = pb_node(op_type, inputs, "out"), more = pb_node(inner, "out", "end");
    pb_add_node(&body, &node);
    if (*inner != '\0')
        pb_add_node(&body, &more);
    pb_add_output(&body, *inner != '\0' ? "end" : "out", "");
    pb_attr_graph(owner, name, &body);
}

/* z = Neg(x), y = If(c) of z and x and v */
static kelp_graph *engine_graph(const char *then_inputs, const char *inner, const char *else_op,
                                const char *else_inputs) {
    pb graph = {0}, choice = pb_node("If", "c", "y"), neg = pb_node("Neg", "x", "z");
    kelp_graph *clone = NULL;
    branch(&choice, "then_branch", "Add", then_inputs, inner);
    branch(&choice, "else_branch", else_op, else_inputs, "");
    pb_add_input(&graph, "x", "float32[2,k]");
    pb_add_input(&graph, "v", "float32[6]");
    pb_add_input(&graph, "c", "bool[]");
    pb_add_node(&graph, &neg);
    pb_add_node(&graph, &choice);
    pb_add_output(&graph, "y", "");
    pb model = pb_model(&graph, 17);
    kelp_graph *g = loaded(&model);
    assert_null(kelp_graph_clone_for_engine(g, &clone));
    kelp_graph_release(g);
    assert_null(kelp_pass_captures(clone->main));
    kelp_block_count_uses(clone->main);
    return clone;
}

static kelp_block *block_of(const kelp_node *node, size_t index) {
    const kelp_attr *attr = node->attributes;
    for (; index > 0; attr = attr->next)
        index -= attr->blocks != NULL;
    while (attr->blocks == NULL)
        attr = attr->next;
    return attr->blocks[0];
}

static void captured_values_become_inputs_of_the_node_and_its_blocks(void **state) {
    (void)state;
    kelp_graph *graph = engine_graph("z x", "", "Relu", "z");
    const kelp_node *node = graph->main->nodes[1];
    assert_int_equal(kelp_node_first_capture(node), 1);
    assert_int_equal(node->input_count, 3);
    assert_string_equal(node->inputs[1]->name, "z");
    assert_string_equal(node->inputs[2]->name, "x");
    for (size_t k = 0; k < 2; k++) {
        const kelp_block *block = block_of(node, k);
        assert_int_equal(block->input_count, 2);
        expect_type(block->inputs[0], "float32[2,k]");
        expect_type(block->inputs[1], "float32[2,k]");
        assert_string_equal(block->inputs[1]->name, "x");
        assert_true(block->inputs[0]->is_input);
        assert_ptr_equal(block->inputs[0]->block, block);
        assert_ptr_equal(block->nodes[0]->inputs[0], block->inputs[0]);
    }
    kelp_graph_release(graph);
}

/* A branch that no longer reads a value. */
static void unused_captures_are_dropped(void **state) {
    (void)state;
    kelp_graph *graph = engine_graph("x z", "", "Relu", "z");
    kelp_node *node = graph->main->nodes[1];
    kelp_block *then = block_of(node, 0);
    assert_string_equal(node->inputs[1]->name, "x");
    then->nodes[0]->inputs[0] = then->inputs[1]; /* z + z */
    kelp_block_count_uses(graph->main);
    uint32_t before = node->inputs[1]->use_count;
    kelp_value *x = node->inputs[1];
    kelp_node_drop_captures(node);
    assert_int_equal(node->input_count, 2);
    assert_string_equal(node->inputs[1]->name, "z");
    assert_int_equal(x->use_count, before - 1);
    for (size_t k = 0; k < 2; k++) {
        assert_int_equal(block_of(node, k)->input_count, 1);
        assert_string_equal(block_of(node, k)->inputs[0]->name, "z");
    }
    kelp_node_drop_captures(node); /* all are used */
    assert_int_equal(node->input_count, 2);
    kelp_graph_release(graph);
}

static void captures_that_become_constant_are_shared(void **state) {
    (void)state;
    static const int64_t two = 2;
    static float items[2] = {1, 2};
    kelp_tensor tensor;
    kelp_graph *graph = engine_graph("x z", "", "Relu", "z");
    kelp_node *node = graph->main->nodes[1];
    assert_null(kelp_tensor_init(&tensor, KELP_F32, 1, &two, items));
    kelp_value *z = node->inputs[2];
    z->constant = &tensor;
    z->rank = 1;
    z->shape[0] = 2;
    kelp_node_share_constants(node);
    assert_int_equal(node->input_count, 2);
    for (size_t k = 0; k < 2; k++) {
        const kelp_block *block = block_of(node, k);
        assert_int_equal(block->input_count, 1);
        const kelp_value *local = block->nodes[0]->inputs[1 - k];
        assert_ptr_equal(local->constant, &tensor);
        assert_false(local->is_input);
        expect_type(local, "float32[2]");
    }
    kelp_graph_release(graph);
}

static void take(kelp_graph *graph, size_t index) {
    kelp_node *node = graph->main->nodes[1];
    assert_null(kelp_node_take_branch(node, block_of(node, index)));
    assert_true(node->removed);
    kelp_block_sweep(graph->main);
    kelp_block_count_uses(graph->main);
    check_block(graph->main);
}

static void a_branch_replaces_its_if(void **state) {
    (void)state;
    kelp_graph *graph = engine_graph("z x", "Tanh", "Relu", "z");
    take(graph, 0);
    assert_string_equal(nodes_as_text(graph->main),
                        "z=Neg(x)#Neg; out=Add(z,x)#Add; y=Tanh(out)#Tanh");
    expect_type(graph->main->outputs[0], "float32[2,k]");
    for (size_t i = 0; i < graph->main->value_count; i++) {
        const kelp_value *value = graph->main->values[i];
        assert_ptr_equal(value->block, graph->main);
        assert_int_equal(value->is_output, strcmp(value->name, "y") == 0 && value->use_count > 0);
    }
    kelp_graph_release(graph);
    graph = engine_graph("z x", "Tanh", "Relu", "z");
    take(graph, 1);
    assert_string_equal(nodes_as_text(graph->main), "z=Neg(x)#Neg; y=Relu(z)#Relu");
    kelp_graph_release(graph);
}

static void the_shape_of_the_branch_is_known_afterwards(void **state) {
    (void)state;
    kelp_graph *graph = engine_graph("z x", "", "Relu", "v"); /* another rank */
    expect_type(graph->main->outputs[0], "float32");
    take(graph, 0);
    expect_type(graph->main->outputs[0], "float32[2,k]");
    kelp_graph_release(graph);
}

/* A branch whose output is a captured value. */
static void a_branch_may_return_a_value_from_outside(void **state) {
    (void)state;
    pb graph = {0}, yes = {0}, no = {0}, choice = pb_node("If", "c", "y");
    pb neg = pb_node("Neg", "x", "z"), relu = pb_node("Relu", "z", "out");
    kelp_graph *clone = NULL;
    pb_add_output(&yes, "z", "");
    pb_add_node(&no, &relu);
    pb_add_output(&no, "out", "");
    pb_attr_graph(&choice, "then_branch", &yes);
    pb_attr_graph(&choice, "else_branch", &no);
    pb_add_input(&graph, "x", "float32[2,k]");
    pb_add_input(&graph, "c", "bool[]");
    pb_add_node(&graph, &neg);
    pb_add_node(&graph, &choice);
    pb_add_output(&graph, "y", "");
    pb_add_output(&graph, "z", "");
    pb model = pb_model(&graph, 17);
    kelp_graph *g = loaded(&model);
    assert_null(kelp_graph_clone_for_engine(g, &clone));
    kelp_graph_release(g);
    assert_null(kelp_pass_captures(clone->main));
    kelp_block_count_uses(clone->main);
    take(clone, 0);
    assert_string_equal(nodes_as_text(clone->main), "z=Neg(x)#Neg; y=Identity(z)#If");
    kelp_graph_release(clone);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(captured_values_become_inputs_of_the_node_and_its_blocks),
        cmocka_unit_test(unused_captures_are_dropped),
        cmocka_unit_test(captures_that_become_constant_are_shared),
        cmocka_unit_test(a_branch_replaces_its_if),
        cmocka_unit_test(the_shape_of_the_branch_is_known_afterwards),
        cmocka_unit_test(a_branch_may_return_a_value_from_outside),
    };
    return cmocka_run_group_tests_name("bodies", tests, NULL, NULL);
}
