/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of the copy of a graph for an engine: functions are inlined, Constant nodes are folded, and
 * weights are shared. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "graph/ir.h"
#include "graph/support.h"

static kelp_graph *cloned(const pb *model) {
    kelp_graph *graph = loaded(model), *clone = NULL;
    kelp_status *status = kelp_graph_clone_for_engine(graph, &clone);
    if (status != NULL)
        fail_msg("%s", kelp_status_message(status));
    kelp_graph_release(graph); /* the copy retains it */
    return clone;
}

/* A function v → op_type(v, v). Its attribute `along` is the axis of a Concat. */
static pb function_of(const char *name, const char *op_type, const char *domain,
                      bool with_default) {
    pb function = {0}, import = {0}, node = pb_node(op_type, "v v", "w"), attr = {0};
    pb_text(&function, 1, name);
    pb_text(&function, 10, "kelp.test");
    pb_text(&function, 4, "v");
    pb_text(&function, 5, "w");
    if (*domain != '\0')
        pb_text(&node, 7, domain);
    if (strcmp(op_type, "Concat") == 0)
        pb_attr_ref(&node, "axis", "along", 2);
    pb_message(&function, 7, &node);
    if (with_default) {
        pb_text(&attr, 1, "along");
        pb_int(&attr, 3, 1);
        pb_int(&attr, 20, 2);
        pb_message(&function, 11, &attr);
    } else {
        pb_text(&function, 6, "along");
    }
    pb_text(&import, 1, "");
    pb_int(&import, 2, 17);
    pb_message(&function, 9, &import);
    import.length = 0;
    pb_text(&import, 1, "kelp.test");
    pb_int(&import, 2, 1);
    pb_message(&function, 9, &import);
    return function;
}

static pb model_with(pb *graph, const pb *function) {
    pb_add_input(graph, "x", "float32[2,3]");
    pb_add_output(graph, "y", "");
    pb model = pb_model(graph, 17);
    pb_import(&model, "kelp.test", 1);
    pb_message(&model, 25, function);
    return model;
}

static void functions_are_inlined_with_their_attributes(void **state) {
    (void)state;
    static const char *const expected[2] = {"float32[2,6]", "float32[4,3]"};
    for (int given = 0; given < 2; given++) {
        pb graph = {0}, call = pb_node("Twice", "x", "y");
        pb_text(&call, 7, "kelp.test");
        if (given)
            pb_attr_int(&call, "along", 0);
        pb_add_node(&graph, &call);
        pb function = function_of("Twice", "Concat", "", true);
        pb model = model_with(&graph, &function);
        kelp_graph *clone = cloned(&model);
        const kelp_block *block = kelp_graph_main(clone);
        assert_int_equal(kelp_block_node_count(block), 1);
        const kelp_node *node = kelp_block_node(block, 0);
        assert_string_equal(kelp_node_op_type(node), "Concat");
        assert_int_equal(kelp_node_attr_i64(node, "axis", -5), given ? 0 : 1);
        expect_type(kelp_block_output(block, 0), expected[given]);
        kelp_graph_release(clone);
    }
}

static void overloads_are_distinguished(void **state) {
    (void)state;
    pb graph = {0}, call = pb_node("Twice", "x", "y");
    pb_text(&call, 7, "kelp.test");
    pb_text(&call, 8, "abs");
    pb_add_node(&graph, &call);
    pb plain = function_of("Twice", "Concat", "", true);
    pb other = function_of("Twice", "Mul", "", false);
    pb_text(&other, 13, "abs");
    pb model = model_with(&graph, &plain);
    pb_message(&model, 25, &other);
    kelp_graph *clone = cloned(&model);
    const kelp_block *block = kelp_graph_main(clone);
    assert_string_equal(kelp_node_op_type(kelp_block_node(block, 0)), "Mul");
    kelp_graph_release(clone);
    pb_message(&model, 25, &other);
    expect_rejected(&model, KELP_INVALID_ARGUMENT, "'kelp.test::Twice:abs' is defined twice");
}

static void two_calls_do_not_share_names(void **state) {
    (void)state;
    pb graph = {0}, first = pb_node("Twice", "x", "a"), second = pb_node("Twice", "a", "b");
    pb add = pb_node("Relu", "b", "y");
    pb_text(&first, 7, "kelp.test");
    pb_text(&second, 7, "kelp.test");
    pb_add_node(&graph, &first);
    pb_add_node(&graph, &second);
    pb_add_node(&graph, &add);
    pb function = function_of("Twice", "Concat", "", true);
    pb model = model_with(&graph, &function);
    kelp_graph *clone = cloned(&model);
    assert_int_equal(kelp_block_node_count(kelp_graph_main(clone)), 3);
    expect_type(value_named(clone, "b"), "float32[2,12]");
    kelp_graph_release(clone);
}

static void calls_without_a_required_input_are_rejected(void **state) {
    (void)state;
    pb graph = {0}, call = pb_node("Twice", "", "y");
    pb_text(&call, 7, "kelp.test");
    pb_add_node(&graph, &call);
    pb function = function_of("Twice", "Mul", "", false);
    pb model = model_with(&graph, &function);
    kelp_graph *loading = loaded(&model), *clone = NULL;
    expect_error(kelp_graph_clone_for_engine(loading, &clone), KELP_INVALID_ARGUMENT,
                 "omits input 'v' of function 'kelp.test::Twice'");
    assert_null(clone);
    kelp_graph_release(loading);
}

static void recursive_functions_are_rejected(void **state) {
    (void)state;
    pb graph = {0}, call = pb_node("Twice", "x", "y");
    pb_text(&call, 7, "kelp.test");
    pb_add_node(&graph, &call);
    pb function = function_of("Twice", "Twice", "kelp.test", false);
    pb model = model_with(&graph, &function);
    expect_rejected(&model, KELP_INVALID_ARGUMENT, "function 'kelp.test::Twice' recursively");
}

/* F(v) = If(v) then F(v) else Identity(v) */
static void functions_that_call_themselves_in_a_branch_are_rejected(void **state) {
    (void)state;
    pb graph = {0}, yes = {0}, no = {0}, function = {0}, import = {0};
    pb call = pb_node("F", "x", "y"), inner = pb_node("F", "v", "p"),
       same = pb_node("Identity", "v", "q"), choice = pb_node("If", "v", "w");
    pb_text(&call, 7, "kelp.test");
    pb_text(&inner, 7, "kelp.test");
    pb_add_node(&graph, &call);
    pb_add_node(&yes, &inner);
    pb_add_output(&yes, "p", "");
    pb_add_node(&no, &same);
    pb_add_output(&no, "q", "");
    pb_attr_graph(&choice, "then_branch", &yes);
    pb_attr_graph(&choice, "else_branch", &no);
    pb_text(&function, 1, "F");
    pb_text(&function, 10, "kelp.test");
    pb_text(&function, 4, "v");
    pb_text(&function, 5, "w");
    pb_message(&function, 7, &choice);
    pb_text(&import, 1, "");
    pb_int(&import, 2, 17);
    pb_message(&function, 9, &import);
    import.length = 0;
    pb_text(&import, 1, "kelp.test");
    pb_int(&import, 2, 1);
    pb_message(&function, 9, &import);
    pb_add_input(&graph, "x", "bool[]");
    pb_add_output(&graph, "y", "");
    pb model = pb_model(&graph, 17);
    pb_import(&model, "kelp.test", 1);
    pb_message(&model, 25, &function);
    expect_rejected(&model, KELP_INVALID_ARGUMENT, "function 'kelp.test::F' recursively");
}

/* Sixty functions that each call the next one twice would expand to 2^60 nodes. */
static void inlining_has_a_limit(void **state) {
    (void)state;
    pb graph = {0}, call = pb_node("F0", "x", "y"), import = {0};
    pb_text(&call, 7, "kelp.test");
    pb_add_node(&graph, &call);
    pb_add_input(&graph, "x", "float32[2,3]");
    pb_add_output(&graph, "y", "");
    pb model = pb_model(&graph, 17);
    pb_import(&model, "kelp.test", 1);
    pb_text(&import, 1, "kelp.test");
    pb_int(&import, 2, 1);
    for (int i = 0; i < 40; i++) {
        pb function = {0};
        char name[8], next[8];
        snprintf(name, sizeof name, "F%d", i);
        snprintf(next, sizeof next, i < 39 ? "F%d" : "G%d", i + 1);
        pb a = pb_node(next, "v", "u"), b = pb_node(next, "u", "w");
        pb_text(&a, 7, "kelp.test");
        pb_text(&b, 7, "kelp.test");
        pb_text(&function, 1, name);
        pb_text(&function, 10, "kelp.test");
        pb_text(&function, 4, "v");
        pb_text(&function, 5, "w");
        pb_message(&function, 7, &a);
        pb_message(&function, 7, &b);
        pb_message(&function, 9, &import);
        pb_message(&model, 25, &function);
    }
    kelp_graph *g = NULL, *clone = NULL;
    kelp_graph_limits limits = {.nodes = 1000};
    assert_null(kelp_graph_load_bytes(kelp_allocator_system(), model.data, model.length, "m.onnx",
                                      NULL, NULL, NULL, &limits, &g));
    expect_error(kelp_graph_clone_for_engine(g, &clone), KELP_RESOURCE_EXHAUSTED,
                 "more than 1000 nodes");
    kelp_graph_release(g);
}

static void constant_nodes_become_constants(void **state) {
    (void)state;
    pb graph = {0}, axes = pb_node("Constant", "", "axes"),
       node = pb_node("Unsqueeze", "x axes", "y");
    pb_attr_ints(&axes, "value_ints", 2, (int64_t[]){0, -1});
    pb_add_node(&graph, &axes);
    pb_add_node(&graph, &node);
    pb_add_input(&graph, "x", "float32[n]");
    pb_add_output(&graph, "y", "");
    pb model = pb_model(&graph, 17);
    kelp_graph *clone = cloned(&model);
    const kelp_block *block = kelp_graph_main(clone);
    assert_int_equal(kelp_block_node_count(block), 1);
    const kelp_tensor *constant = kelp_value_constant(value_named(clone, "axes"));
    assert_non_null(constant);
    assert_int_equal(constant->dtype, KELP_I64);
    assert_int_equal(constant->shape[0], 2);
    assert_int_equal(((const int64_t *)constant->data)[1], -1);
    assert_true((constant->flags & KELP_TENSOR_READ_ONLY) != 0); /* as operators see it */
    expect_type(kelp_block_output(block, 0), "float32[1,n,1]");
    kelp_graph_release(clone);
}

static void one_node_becomes_a_graph(void **state) {
    (void)state;
    pb graph = {0}, node = pb_node("Concat", "x x", "y");
    pb_attr_int(&node, "axis", 1);
    pb_add_node(&graph, &node);
    pb_add_input(&graph, "x", "float32[2,3]");
    pb_add_output(&graph, "y", "");
    pb model = pb_model(&graph, 17);
    kelp_graph *g = loaded(&model), *alone = NULL;
    float data[6] = {0};
    kelp_tensor x;
    assert_null(kelp_tensor_init(&x, KELP_F32, 2, (int64_t[]){2, 3}, data));
    const kelp_tensor *inputs[2] = {&x, &x};
    assert_null(kelp_graph_of_node(kelp_allocator_system(), kelp_block_node(kelp_graph_main(g), 0),
                                   inputs, &alone));
    const kelp_block *block = kelp_graph_main(alone);
    assert_int_equal(kelp_block_input_count(block), 2);
    assert_int_equal(kelp_block_output_count(block), 1);
    assert_int_equal(kelp_node_attr_i64(kelp_block_node(block, 0), "axis", 0), 1);
    assert_int_equal(kelp_graph_opset_version(alone, ""), 17);
    expect_type(kelp_block_input(block, 1), "float32[2,3]");
    kelp_graph_release(alone);
    kelp_graph_release(g);
}

static void a_node_without_inputs_becomes_a_graph(void **state) {
    (void)state;
    pb graph = {0}, node = pb_node("RandomNormal", "", "y");
    pb_attr_ints(&node, "shape", 2, (int64_t[]){2, 3});
    pb_add_node(&graph, &node);
    pb_add_output(&graph, "y", "");
    pb model = pb_model(&graph, 17);
    kelp_graph *g = loaded(&model), *alone = NULL;
    assert_null(kelp_graph_of_node(kelp_allocator_system(), kelp_block_node(kelp_graph_main(g), 0),
                                   NULL, &alone));
    assert_int_equal(kelp_block_input_count(kelp_graph_main(alone)), 0);
    assert_int_equal(kelp_node_input_count(kelp_block_node(kelp_graph_main(alone), 0)), 0);
    kelp_graph_release(alone);
    kelp_graph_release(g);
}

/* The blocks kept a pointer to the node of the copy, which was destroyed before them. */
static void a_graph_of_a_node_leaves_the_owner_of_its_blocks(void **state) {
    (void)state;
    pb graph = {0}, yes = {0}, no = {0}, node = pb_node("If", "c", "y");
    pb relu = pb_node("Relu", "x", "p"), neg = pb_node("Neg", "x", "q");
    pb_add_node(&yes, &relu);
    pb_add_output(&yes, "p", "");
    pb_add_node(&no, &neg);
    pb_add_output(&no, "q", "");
    pb_attr_graph(&node, "then_branch", &yes);
    pb_attr_graph(&node, "else_branch", &no);
    pb_add_input(&graph, "x", "float32[2,k]");
    pb_add_input(&graph, "c", "bool[]");
    pb_add_node(&graph, &node);
    pb_add_output(&graph, "y", "");
    pb model = pb_model(&graph, 17);
    kelp_graph *g = loaded(&model), *alone = NULL;
    const kelp_node *branch = kelp_block_node(kelp_graph_main(g), 0);
    uint8_t condition = 1;
    kelp_tensor c;
    assert_null(kelp_tensor_init(&c, KELP_BOOL, 0, NULL, &condition));
    const kelp_tensor *inputs[1] = {&c};
    assert_null(kelp_graph_of_node(kelp_allocator_system(), branch, inputs, &alone));
    const kelp_block *body = kelp_node_attr_block(branch, "then_branch");
    assert_ptr_equal(
        kelp_node_attr_block(kelp_block_node(kelp_graph_main(alone), 0), "then_branch"), body);
    kelp_graph_release(alone);
    assert_ptr_equal(body->owner, branch);
    kelp_graph_release(g);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(functions_are_inlined_with_their_attributes),
        cmocka_unit_test(overloads_are_distinguished),
        cmocka_unit_test(two_calls_do_not_share_names),
        cmocka_unit_test(calls_without_a_required_input_are_rejected),
        cmocka_unit_test(recursive_functions_are_rejected),
        cmocka_unit_test(functions_that_call_themselves_in_a_branch_are_rejected),
        cmocka_unit_test(inlining_has_a_limit),
        cmocka_unit_test(constant_nodes_become_constants),
        cmocka_unit_test(one_node_becomes_a_graph),
        cmocka_unit_test(a_node_without_inputs_becomes_a_graph),
        cmocka_unit_test(a_graph_of_a_node_leaves_the_owner_of_its_blocks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
