/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of building and modifying graphs. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "graph/ir.h"

typedef struct chain {
    kelp_graph *graph;
    kelp_value *x, *a, *b, *y;
    kelp_node *first, *second, *third;
} chain;

/* x → Abs → a → Neg → b → Exp → y, and a dead Sqrt of a */
static chain make_chain(void) {
    chain c = {0};
    kelp_value *dead = NULL;
    assert_null(kelp_graph_new(kelp_allocator_system(), &c.graph));
    kelp_block *block = c.graph->main;
    assert_null(kelp_block_add_value(block, "x", &c.x));
    assert_null(kelp_block_add_value(block, "a", &c.a));
    assert_null(kelp_block_add_value(block, "b", &c.b));
    assert_null(kelp_block_add_value(block, "y", &c.y));
    assert_null(kelp_block_add_value(block, "dead", &dead));
    assert_null(
        kelp_block_add_node(block, KELP_OP(Abs), 17, "1", &c.x, 1, &c.a, 1, NULL, &c.first));
    assert_null(kelp_block_add_node(block, KELP_OP(Sqrt), 17, "d", &c.a, 1, &dead, 1, NULL, NULL));
    assert_null(
        kelp_block_add_node(block, KELP_OP(Neg), 17, "2", &c.a, 1, &c.b, 1, NULL, &c.second));
    assert_null(
        kelp_block_add_node(block, KELP_OP(Exp), 17, "3", &c.b, 1, &c.y, 1, NULL, &c.third));
    block->outputs = KELP_ARENA_ARRAY(&c.graph->arena, 1, kelp_value *);
    block->outputs[0] = c.y;
    block->output_count = 1;
    c.y->is_output = true;
    kelp_block_count_uses(block);
    return c;
}

static void dead_nodes_are_removed(void **state) {
    (void)state;
    chain c = make_chain();
    assert_int_equal(c.a->use_count, 2);
    assert_null(kelp_value_only_user(c.a));
    assert_int_equal(kelp_block_remove_dead(c.graph->main), 1);
    assert_int_equal(c.graph->main->node_count, 3);
    assert_ptr_equal(kelp_value_only_user(c.a), c.second);
    assert_int_equal(c.third->index, 2);
    assert_null(kelp_value_only_user(c.y));
    kelp_graph_release(c.graph);
}

static void a_node_is_inserted_before_another(void **state) {
    (void)state;
    chain c = make_chain();
    kelp_value *t = NULL;
    kelp_node *node = NULL;
    assert_null(kelp_block_add_value(c.graph->main, "t", &t));
    for (int i = 0; i < 40; i++) /* more than the initial capacity */
        assert_null(kelp_block_insert_node(c.graph->main, c.third, KELP_OP(Ceil), 17, "t", &c.b, 1,
                                           &t, 1, NULL, &node));
    assert_int_equal(c.graph->main->node_count, 44);
    for (size_t i = 0; i < 44; i++)
        assert_int_equal(c.graph->main->nodes[i]->index, i);
    assert_ptr_equal(t->producer, node);
    assert_ptr_equal(c.graph->main->nodes[43], c.third);
    kelp_graph_release(c.graph);
}

static void replacing_an_output_keeps_its_name(void **state) {
    (void)state;
    chain c = make_chain();
    kelp_block_replace_uses(c.graph->main, c.y, c.b);
    assert_ptr_equal(c.graph->main->outputs[0], c.b);
    assert_string_equal(c.b->name, "y");
    assert_true(c.b->is_output);
    assert_int_equal(kelp_block_remove_dead(c.graph->main), 2);
    assert_int_equal(c.graph->main->node_count, 2);
    kelp_graph_release(c.graph);
}

static void attributes_are_set_and_replaced(void **state) {
    (void)state;
    chain c = make_chain();
    const int64_t *list = NULL;
    assert_null(kelp_node_set_i64(c.first, "i", 1));
    assert_null(kelp_node_set_i64s(c.first, "list", (int64_t[]){4, 5, 6}, 3));
    assert_null(kelp_node_set_string(c.first, "s", "words"));
    assert_null(kelp_node_set_f32(c.first, "i", 2.5f));
    assert_int_equal(kelp_node_attr_count(c.first), 3);
    assert_int_equal(kelp_node_attr_type(c.first, "i"), KELP_ATTR_FLOAT);
    assert_true(kelp_node_attr_f32(c.first, "i", 0) == 2.5f);
    assert_int_equal(kelp_node_attr_i64(c.first, "i", 9), 9);
    assert_int_equal(kelp_node_attr_i64s(c.first, "list", &list), 3);
    assert_int_equal(list[2], 6);
    assert_string_equal(kelp_node_attr_string(c.first, "s", NULL, NULL), "words");
    kelp_graph_release(c.graph);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(dead_nodes_are_removed),
        cmocka_unit_test(a_node_is_inserted_before_another),
        cmocka_unit_test(replacing_an_output_keeps_its_name),
        cmocka_unit_test(attributes_are_set_and_replaced),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
