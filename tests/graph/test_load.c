/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of loading ONNX models: order, names, captures, defaults, functions, external data. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "graph/ir.h"
#include "graph/support.h"

static void add(pb *graph, const char *op_type, const char *inputs, const char *outputs) {
    pb node = pb_node(op_type, inputs, outputs);
    pb_add_node(graph, &node);
}

static void nodes_are_sorted_topologically(void **state) {
    (void)state;
    pb graph = {0};
    add(&graph, "Exp", "b", "y");
    add(&graph, "Neg", "a", "b");
    add(&graph, "Abs", "x", "a");
    pb_add_input(&graph, "x", "float32[n]");
    pb_add_output(&graph, "y", "");
    pb model = pb_model(&graph, 17);
    kelp_graph *g = loaded(&model);
    const kelp_block *block = kelp_graph_main(g);
    assert_string_equal(kelp_node_op_type(kelp_block_node(block, 0)), "Abs");
    assert_string_equal(kelp_node_op_type(kelp_block_node(block, 1)), "Neg");
    assert_string_equal(kelp_node_op_type(kelp_block_node(block, 2)), "Exp");
    expect_type(kelp_block_output(block, 0), "float32[n]");
    assert_null(kelp_block_node(block, 3));
    kelp_graph_release(g);
}

/* The branch reads a value of the outer graph whose producer follows the node in the file. */
static void captures_are_produced_before_the_node(void **state) {
    (void)state;
    pb graph = {0}, inner = {0}, branch = pb_node("If", "c", "y");
    add(&inner, "Neg", "late", "p");
    pb_add_output(&inner, "p", "");
    pb_attr_graph(&branch, "then_branch", &inner);
    pb_attr_graph(&branch, "else_branch", &inner);
    pb_add_node(&graph, &branch);
    add(&graph, "Abs", "x", "late");
    pb_add_input(&graph, "x", "float32[3]");
    pb_add_input(&graph, "c", "bool[]");
    pb_add_output(&graph, "y", "");
    pb model = pb_model(&graph, 17);
    kelp_graph *g = loaded(&model);
    const kelp_block *block = kelp_graph_main(g);
    assert_string_equal(kelp_node_op_type(kelp_block_node(block, 0)), "Abs");
    const kelp_block *then_branch = kelp_node_attr_block(kelp_block_node(block, 1), "then_branch");
    assert_ptr_equal(kelp_node_input(kelp_block_node(then_branch, 0), 0), value_named(g, "late"));
    assert_int_equal(value_named(g, "late")->use_count, 2);
    kelp_graph_release(g);
}

static void a_body_that_reads_the_output_of_its_node_is_a_cycle(void **state) {
    (void)state;
    pb graph = {0}, inner = {0}, branch = pb_node("If", "c", "y");
    add(&inner, "Neg", "y", "p");
    pb_add_output(&inner, "p", "");
    pb_attr_graph(&branch, "then_branch", &inner);
    pb_attr_graph(&branch, "else_branch", &inner);
    pb_add_node(&graph, &branch);
    pb_add_input(&graph, "c", "bool[]");
    pb_add_output(&graph, "y", "");
    pb model = pb_model(&graph, 17);
    expect_rejected(&model, KELP_INVALID_ARGUMENT, "node 'If' (If)");
}

static void names_with_nul_bytes_are_rejected(void **state) {
    (void)state;
    pb graph = {0}, node = {0};
    pb_text(&node, 1, "x");
    pb_bytes(&node, 2, "y\0z", 3);
    pb_text(&node, 4, "Abs");
    pb_add_node(&graph, &node);
    pb_add_input(&graph, "x", "float32");
    pb_add_output(&graph, "y", "");
    pb model = pb_model(&graph, 17);
    expect_rejected(&model, KELP_INVALID_ARGUMENT,
                    "the name of value 'y' of graph '' contains a NUL byte");
}

static void names_are_unique_and_have_a_producer(void **state) {
    (void)state;
    pb graph = {0}, model;
    add(&graph, "Abs", "x", "y");
    pb_add_input(&graph, "x", "float32");
    pb_add_input(&graph, "x", "float32");
    pb_add_output(&graph, "y", "");
    model = pb_model(&graph, 17);
    expect_rejected(&model, KELP_INVALID_ARGUMENT, "value 'x' of graph '' is defined twice");
    graph.length = 0;
    add(&graph, "Abs", "x", "x");
    pb_add_input(&graph, "x", "float32");
    pb_add_output(&graph, "x", "");
    model = pb_model(&graph, 17);
    expect_rejected(&model, KELP_INVALID_ARGUMENT, "value 'x' of graph '' is defined twice");
    graph.length = 0;
    add(&graph, "Abs", "nobody", "y");
    pb_add_output(&graph, "y", "");
    model = pb_model(&graph, 17);
    expect_rejected(&model, KELP_INVALID_ARGUMENT, "input 'nobody' of node 'Abs' (Abs)");
    graph.length = 0;
    add(&graph, "Abs", "x", "a");
    pb_add_input(&graph, "x", "float32");
    model = pb_model(&graph, 17);
    expect_rejected(&model, KELP_INVALID_ARGUMENT, "graph.output: expected at least one");
}

static void an_initializer_is_the_default_of_its_input(void **state) {
    (void)state;
    pb graph = {0};
    pb tensor = pb_tensor("w", KELP_F32, 1, (int64_t[]){2}, "\0\0\x80\x3f\0\0\0\x40", 8);
    add(&graph, "Mul", "x w", "y");
    pb_add_initializer(&graph, &tensor);
    pb_add_input(&graph, "x", "float32[2]");
    pb_add_input(&graph, "w", "float32[2]");
    pb_add_output(&graph, "y", "");
    pb model = pb_model(&graph, 17);
    kelp_graph *g = loaded(&model);
    const kelp_block *block = kelp_graph_main(g);
    assert_int_equal(kelp_block_input_count(block), 1);
    assert_string_equal(kelp_value_name(kelp_block_input(block, 0)), "x");
    const kelp_tensor *constant = kelp_value_constant(value_named(g, "w"));
    float found[2];
    memcpy(found, constant->data, sizeof found);
    assert_true(found[0] == 1.0f && found[1] == 2.0f);
    assert_int_equal(kelp_graph_get_info(g).parameter_count, 2);
    assert_int_equal(kelp_graph_get_info(g).parameter_bytes, 8);
    kelp_graph_release(g);
}

static void attributes_are_read_by_type(void **state) {
    (void)state;
    pb graph = {0}, node = pb_node("Anything", "x -", "y - z");
    pb_text(&node, 7, "com.example");
    pb_attr_int(&node, "i", -7);
    pb_attr_ints(&node, "list", 2, (int64_t[]){3, 4});
    pb_attr_text(&node, "s", "text");
    pb_add_node(&graph, &node);
    pb_add_input(&graph, "x", "float32");
    pb_add_output(&graph, "y", "");
    pb model = pb_model(&graph, 17);
    pb_import(&model, "com.example", 3);
    kelp_graph *g = loaded(&model);
    const kelp_node *n = kelp_block_node(kelp_graph_main(g), 0);
    const int64_t *list = NULL;
    size_t length = 0;
    assert_string_equal(kelp_node_domain(n), "com.example");
    assert_int_equal(kelp_node_opset_version(n), 3);
    assert_int_equal(kelp_node_input_count(n), 2);
    assert_null(kelp_node_input(n, 1));
    assert_int_equal(kelp_node_output_count(n), 3);
    assert_null(kelp_node_output(n, 1));
    assert_int_equal(kelp_node_attr_count(n), 3);
    assert_string_equal(kelp_node_attr_name(n, 2), "s");
    assert_int_equal(kelp_node_attr_i64(n, "i", 0), -7);
    assert_int_equal(kelp_node_attr_i64(n, "absent", 9), 9);
    assert_int_equal(kelp_node_attr_i64s(n, "list", &list), 2);
    assert_int_equal(list[1], 4);
    assert_string_equal(kelp_node_attr_string(n, "s", "", &length), "text");
    assert_int_equal(length, 4);
    assert_string_equal(kelp_node_attr_string(n, "absent", "else", &length), "else");
    assert_int_equal(kelp_node_attr_type(n, "list"), KELP_ATTR_INTS);
    assert_int_equal(kelp_node_attr_type(n, "absent"), KELP_ATTR_NONE);
    kelp_graph_release(g);
}

static void nodes_are_checked_against_their_schema(void **state) {
    (void)state;
    static const struct {
        const char *op_type, *inputs, *attr, *text;
    } wrong[] = {
        {"Abs", "x x", NULL, "expected at most 1 inputs, found 2"},
        {"Add", "x", NULL, "'B' is missing"},
        {"Gemm", "- x", NULL, "input 0 ('A') is required but omitted"},
        {"Concat", "x x", NULL, "attribute 'axis' (int) is required but missing"},
        {"Abs", "x", "sharpness", "attribute 'sharpness' does not exist in this operator"},
        {"Concat", "x x", "axis", "attribute 'axis': expected int, found string"},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        pb graph = {0}, node = pb_node(wrong[i].op_type, wrong[i].inputs, "y");
        if (wrong[i].attr != NULL)
            pb_attr_text(&node, wrong[i].attr, "0");
        pb_add_node(&graph, &node);
        pb_add_input(&graph, "x", "float32[2,2]");
        pb_add_output(&graph, "y", "");
        pb model = pb_model(&graph, 17);
        expect_rejected(&model, KELP_INVALID_ARGUMENT, wrong[i].text);
    }
    pb graph = {0}, clip = pb_node("Clip", "x - -", "y"); /* optional inputs may be omitted */
    pb_add_node(&graph, &clip);
    pb_add_input(&graph, "x", "float32");
    pb_add_output(&graph, "y", "");
    pb model = pb_model(&graph, 17);
    kelp_graph_release(loaded(&model));
}

static void duplicate_and_reserved_attributes_are_rejected(void **state) {
    (void)state;
    pb graph = {0}, node = pb_node("Concat", "x x", "y");
    pb_attr_int(&node, "axis", 0);
    pb_attr_int(&node, "axis", 1);
    pb_add_node(&graph, &node);
    pb_add_input(&graph, "x", "float32[2,2]");
    pb_add_output(&graph, "y", "");
    pb model = pb_model(&graph, 17);
    expect_rejected(&model, KELP_INVALID_ARGUMENT, "attribute 'axis' appears twice");
    /* it is the index of the first captured input and was read from the file */
    pb other = {0}, custom = pb_node("Custom", "x", "y");
    pb_text(&custom, 7, "com.example");
    pb_attr_int(&custom, "kelp.captures", 1000);
    pb_add_node(&other, &custom);
    pb_add_input(&other, "x", "float32[2,2]");
    pb_add_output(&other, "y", "");
    model = pb_model(&other, 17);
    pb_import(&model, "com.example", 1);
    expect_rejected(&model, KELP_INVALID_ARGUMENT,
                    "attribute 'kelp.captures' in graph '' is reserved");
}

static void add_of_domain(pb *graph, const char *op_type, const char *domain, const char *inputs,
                          const char *outputs) {
    pb node = pb_node(op_type, inputs, outputs);
    pb_text(&node, 7, domain);
    pb_add_node(graph, &node);
}

static void operators_have_one_record_per_domain_and_name(void **state) {
    (void)state;
    pb graph = {0};
    add_of_domain(&graph, "Relu", "", "x", "a");
    add_of_domain(&graph, "Relu", "ai.onnx", "a", "b");
    add_of_domain(&graph, "Relu", "com.example", "b", "c");
    add_of_domain(&graph, "Relu", "com.example", "c", "d");
    add_of_domain(&graph, "Relu", "com.example.more", "d", "e");
    add_of_domain(&graph, "Custom", "com.example", "e", "f");
    add_of_domain(&graph, "Gelu", "com.microsoft", "f", "y");
    pb_add_input(&graph, "x", "float32[3]");
    pb_add_output(&graph, "y", "");
    pb model = pb_model(&graph, 17);
    pb_import(&model, "com.example", 1);
    pb_import(&model, "com.example.more", 1);
    pb_import(&model, "com.microsoft", 1);
    kelp_graph *g = loaded(&model), *copy = NULL;
    kelp_node *const *nodes = g->main->nodes;
    assert_ptr_equal(nodes[0]->op, KELP_OP(Relu));
    assert_ptr_equal(nodes[1]->op, KELP_OP(Relu));
    assert_int_equal(nodes[2]->op->id, KELP_OPERATOR_COUNT);
    assert_string_equal(nodes[2]->op->name, "Relu");
    assert_string_equal(nodes[2]->op->domain, "com.example");
    assert_ptr_equal(nodes[3]->op, nodes[2]->op);
    assert_ptr_not_equal(nodes[4]->op, nodes[2]->op);
    assert_ptr_not_equal(nodes[5]->op, nodes[2]->op);
    assert_ptr_equal(nodes[6]->op, KELP_OP_MS(Gelu));
    assert_null(kelp_graph_clone_for_engine(g, &copy));
    for (size_t i = 0; i < g->main->node_count; i++)
        assert_ptr_equal(copy->main->nodes[i]->op, nodes[i]->op);
    kelp_graph_release(copy);
    kelp_graph_release(g);
}

static void imports_must_agree(void **state) {
    (void)state;
    pb graph = {0};
    add(&graph, "Abs", "x", "y");
    pb_add_input(&graph, "x", "float32");
    pb_add_output(&graph, "y", "");
    pb model = pb_model(&graph, 17);
    pb_import(&model, "ai.onnx", 17); /* equal imports are ignored */
    kelp_graph_release(loaded(&model));
    pb_import(&model, "", 18);
    expect_rejected(&model, KELP_INVALID_ARGUMENT, "opset_import[2]: domain '' version 18");
}

static void malformed_sparse_initializers_are_rejected(void **state) {
    (void)state;
    pb graph = {0}, sparse = {0};
    add(&graph, "Abs", "x", "y");
    pb_message(&graph, 15, &sparse);
    pb_add_input(&graph, "x", "float32");
    pb_add_output(&graph, "y", "");
    pb model = pb_model(&graph, 17);
    expect_rejected(&model, KELP_INVALID_ARGUMENT, "graph.sparse_initializer[0]: malformed");
}

/* ---- external data ---- */
static pb external_model(const char *location) {
    pb graph = {0}, tensor = {0}, entry = {0};
    pb_int(&tensor, 1, 4);
    pb_int(&tensor, 2, KELP_U8);
    pb_text(&tensor, 8, "w");
    pb_text(&entry, 1, "location");
    pb_text(&entry, 2, location);
    pb_message(&tensor, 13, &entry);
    pb_int(&tensor, 14, 1);
    pb_add_initializer(&graph, &tensor);
    add(&graph, "Identity", "w", "y");
    pb_add_output(&graph, "y", "");
    return pb_model(&graph, 17);
}

static void write_file(const char *path, const char *text) {
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    assert_int_equal(fputs(text, file) >= 0, 1);
    assert_int_equal(fclose(file), 0);
}

static void links_out_of_the_directory_are_rejected(void **state) {
    (void)state;
    char root[] = "/tmp/kelp-load-XXXXXX", path[128], inside[128], secret[128], link_path[128];
    assert_non_null(mkdtemp(root));
    snprintf(path, sizeof path, "%s/model", root);
    snprintf(inside, sizeof inside, "%s/model/inside", root);
    snprintf(secret, sizeof secret, "%s/secret", root);
    snprintf(link_path, sizeof link_path, "%s/model/link", root);
    char command[300];
    snprintf(command, sizeof command, "mkdir %s && ln -s ../secret %s", path, link_path);
    assert_int_equal(system(command), 0);
    write_file(secret, "1234");
    write_file(inside, "5678");
    static const struct {
        const char *location;
        kelp_code code;
    } cases[] = {{"inside", KELP_OK},
                 {"./inside", KELP_OK},
                 {"link", KELP_PERMISSION_DENIED},
                 {"../secret", KELP_PERMISSION_DENIED},
                 {"", KELP_PERMISSION_DENIED},
                 {"/etc/passwd", KELP_PERMISSION_DENIED},
                 {"absent", KELP_NOT_FOUND}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        pb model = external_model(cases[i].location);
        kelp_graph *graph = NULL;
        kelp_status *status =
            kelp_graph_load_bytes(kelp_allocator_system(), model.data, model.length, "m.onnx", path,
                                  NULL, NULL, NULL, &graph);
        assert_int_equal(kelp_status_code(status), cases[i].code);
        if (status == NULL)
            assert_memory_equal(kelp_value_constant(value_named(graph, "w"))->data, "5678", 4);
        kelp_status_free(status);
        kelp_graph_release(graph);
    }
    pb model = external_model("inside");
    expect_rejected(&model, KELP_INVALID_ARGUMENT, "the model was loaded without a directory");
    unlink(link_path);
    unlink(inside);
    unlink(secret);
    rmdir(path);
    rmdir(root);
}

static void count_release(void *userp) {
    ++*(int *)userp;
}

static void the_bytes_are_released_once(void **state) {
    (void)state;
    int released = 0;
    kelp_graph *graph = NULL;
    pb part = {0};
    add(&part, "Abs", "x", "y");
    pb_add_input(&part, "x", "float32");
    pb_add_output(&part, "y", "");
    pb model = pb_model(&part, 17);
    assert_null(kelp_graph_load_bytes(kelp_allocator_system(), model.data, model.length, "m.onnx",
                                      NULL, count_release, &released, NULL, &graph));
    kelp_graph_release(kelp_graph_retain(graph));
    assert_int_equal(released, 0);
    kelp_graph_release(graph);
    assert_int_equal(released, 1);
    expect_error(kelp_graph_load_bytes(kelp_allocator_system(), "", 0, "m.onnx", NULL,
                                       count_release, &released, NULL, &graph),
                 KELP_INVALID_ARGUMENT, "m.onnx: empty");
    assert_int_equal(released, 2);
}

static void models_beyond_the_limits_are_rejected(void **state) {
    (void)state;
    pb graph = {0};
    for (char c = 'a'; c < 'z'; c++)
        add(&graph, "Abs", (char[]){c, 0}, (char[]){(char)(c + 1), 0});
    pb_add_input(&graph, "a", "float32");
    pb_add_output(&graph, "z", "");
    pb model = pb_model(&graph, 17);
    static const kelp_graph_limits limits[] = {{.file_bytes = 100}, {.nodes = 10}};
    for (size_t i = 0; i < 2; i++) {
        kelp_graph *g = NULL;
        kelp_status *status =
            kelp_graph_load_bytes(kelp_allocator_system(), model.data, model.length, "m.onnx", NULL,
                                  NULL, NULL, &limits[i], &g);
        expect_error(status, KELP_RESOURCE_EXHAUSTED, i == 0 ? "limit of 100" : "than 10 nodes");
    }
    kelp_graph *g = NULL;
    expect_error(kelp_graph_load_file(kelp_allocator_system(), "/no/such/model.onnx", NULL, &g),
                 KELP_NOT_FOUND, "/no/such/model.onnx");
}

static void files_that_are_no_models_are_named(void **state) {
    (void)state;
    static const struct {
        const char *text;
        size_t length;
        const char *message;
    } files[] = {
        {"version https://git-lfs.github.com/spec/v1\noid sha256:0\n", 57,
         "expected an ONNX ModelProto, found a pointer of Git LFS"},
        {"<!DOCTYPE html><html>", 21, "found an HTML page"},
        {"<html><head>", 12, "found an HTML page"},
        {"PK\003\004\024\0\0\0\010\0", 10, "found a zip archive"},
        {"\037\213\010\0\0\0\0\0", 8, "found a file compressed with gzip"},
        {"not a model", 11, "near byte 1 of 11: expected an ONNX ModelProto"},
    };
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        kelp_graph *graph = NULL;
        expect_error(kelp_graph_load_bytes(kelp_allocator_system(), files[i].text, files[i].length,
                                           "m.onnx", NULL, NULL, NULL, NULL, &graph),
                     KELP_INVALID_ARGUMENT, files[i].message);
        assert_null(graph);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nodes_are_sorted_topologically),
        cmocka_unit_test(captures_are_produced_before_the_node),
        cmocka_unit_test(a_body_that_reads_the_output_of_its_node_is_a_cycle),
        cmocka_unit_test(names_with_nul_bytes_are_rejected),
        cmocka_unit_test(names_are_unique_and_have_a_producer),
        cmocka_unit_test(an_initializer_is_the_default_of_its_input),
        cmocka_unit_test(attributes_are_read_by_type),
        cmocka_unit_test(nodes_are_checked_against_their_schema),
        cmocka_unit_test(duplicate_and_reserved_attributes_are_rejected),
        cmocka_unit_test(operators_have_one_record_per_domain_and_name),
        cmocka_unit_test(imports_must_agree),
        cmocka_unit_test(malformed_sparse_initializers_are_rejected),
        cmocka_unit_test(links_out_of_the_directory_are_rejected),
        cmocka_unit_test(the_bytes_are_released_once),
        cmocka_unit_test(models_beyond_the_limits_are_rejected),
        cmocka_unit_test(files_that_are_no_models_are_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
