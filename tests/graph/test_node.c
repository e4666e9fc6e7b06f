/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of single nodes: graphs that are created from a description, and signatures. */
#include "graph/signature.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "graph/support.h"
#include "graph/text.h"

/* ---- descriptions ---- */
static void a_described_node_has_its_attributes(void **state) {
    (void)state;
    static const int64_t ints[3] = {5, -6, 7};
    static const float floats[2] = {0.5f, -1};
    static const kelp_string strings[2] = {{"one", 3}, {"two", 3}};
    float items[2] = {3, 4};
    kelp_tensor tensor, x, z;
    int64_t two = 2;
    assert_null(kelp_tensor_init(&tensor, KELP_F32, 1, &two, items));
    assert_null(kelp_tensor_init(&x, KELP_F16, 1, &two, NULL));
    assert_null(kelp_tensor_init(&z, KELP_STRING, 0, NULL, NULL));
    const kelp_node_attribute attributes[] = {
        {.name = "i", .type = KELP_ATTR_INT, .i = -3, .f = 9},
        {.name = "f", .type = KELP_ATTR_FLOAT, .f = 0.25f, .i = 9},
        {.name = "s", .type = KELP_ATTR_STRING, .s = {"text", 4}},
        {.name = "ints", .type = KELP_ATTR_INTS, .ints = ints, .count = 3, .floats = floats},
        {.name = "floats", .type = KELP_ATTR_FLOATS, .floats = floats, .count = 2, .ints = ints},
        {.name = "strings", .type = KELP_ATTR_STRINGS, .strings = strings, .count = 2},
        {.name = "tensor", .type = KELP_ATTR_TENSOR, .tensor = &tensor},
        {.name = "none", .type = KELP_ATTR_INTS},
    };
    const kelp_tensor *const inputs[3] = {&x, NULL, &z};
    kelp_node_desc desc = {.struct_size = sizeof desc,
                           .domain = "com.example",
                           .name = "Custom",
                           .version = 4,
                           .inputs = inputs,
                           .input_count = 3,
                           .output_count = 2,
                           .attributes = attributes,
                           .attribute_count = 8};
    kelp_graph *graph = NULL;
    assert_null(kelp_graph_create_node(kelp_allocator_system(), &desc, NULL, &graph));
    const kelp_node *node = kelp_block_node(kelp_graph_main(graph), 0);
    const int64_t *found_ints = NULL;
    const float *found_floats = NULL;
    const kelp_string *found_strings = NULL;
    assert_string_equal(kelp_node_op_type(node), "Custom");
    assert_string_equal(kelp_node_domain(node), "com.example");
    assert_int_equal(kelp_graph_opset_version(graph, "com.example"), 4);
    assert_int_equal(kelp_node_attr_count(node), 8);
    assert_int_equal(kelp_node_attr_i64(node, "i", 0), -3);
    assert_true(kelp_node_attr_f32(node, "f", 0) == 0.25f);
    assert_string_equal(kelp_node_attr_string(node, "s", "", NULL), "text");
    assert_int_equal(kelp_node_attr_i64s(node, "ints", &found_ints), 3);
    assert_memory_equal(found_ints, ints, sizeof ints);
    assert_int_equal(kelp_node_attr_f32s(node, "floats", &found_floats), 2);
    assert_memory_equal(found_floats, floats, sizeof floats);
    assert_int_equal(kelp_node_attr_strings(node, "strings", &found_strings), 2);
    assert_memory_equal(found_strings[1].data, "two", 3);
    assert_memory_equal(kelp_node_attr_tensor(node, "tensor")->data, items, sizeof items);
    assert_int_equal(kelp_node_attr_type(node, "none"), KELP_ATTR_INTS);
    assert_int_equal(kelp_node_input_count(node), 3);
    expect_type(kelp_node_input(node, 0), "float16[2]");
    assert_null(kelp_node_input(node, 1));
    expect_type(kelp_node_input(node, 2), "string[]");
    assert_int_equal(kelp_node_output_count(node), 2);
    assert_int_equal(kelp_block_input_count(kelp_graph_main(graph)), 2);
    assert_int_equal(kelp_block_output_count(kelp_graph_main(graph)), 2);
    kelp_graph_release(graph);
}

static void incomplete_descriptions_are_rejected(void **state) {
    (void)state;
    kelp_tensor x;
    int64_t two = 2;
    assert_null(kelp_tensor_init(&x, KELP_F32, 1, &two, NULL));
    const kelp_tensor *const inputs[1] = {&x};
    const kelp_node_attribute wrong[] = {{.name = NULL, .type = KELP_ATTR_INT},
                                         {.name = "", .type = KELP_ATTR_INT},
                                         {.name = "a", .type = KELP_ATTR_NONE},
                                         {.name = "a", .type = KELP_ATTR_GRAPH},
                                         {.name = "a", .type = KELP_ATTR_TENSOR},
                                         {.name = "a", .type = KELP_ATTR_STRING, .s = {NULL, 1}},
                                         {.name = "a", .type = KELP_ATTR_INTS, .count = 1},
                                         {.name = "a", .type = KELP_ATTR_FLOATS, .count = 1},
                                         {.name = "a", .type = KELP_ATTR_STRINGS, .count = 1}};
    const kelp_node_desc good = {.struct_size = sizeof good,
                                 .name = "Relu",
                                 .version = 14,
                                 .inputs = inputs,
                                 .input_count = 1,
                                 .output_count = 1};
    kelp_graph *graph = NULL;
    assert_null(kelp_graph_create_node(kelp_allocator_system(), &good, NULL, &graph));
    expect_type(kelp_block_output(kelp_graph_main(graph), 0), "float32[2]");
    kelp_graph_release(graph);
    for (int i = 0; i < 6; i++) {
        kelp_node_desc desc = good;
        if (i == 0)
            desc.struct_size--;
        if (i == 1)
            desc.name = NULL;
        if (i == 2)
            desc.name = "";
        if (i == 3)
            desc.version = 0;
        if (i == 4)
            desc.inputs = NULL;
        if (i == 5)
            desc.attribute_count = 1;
        expect_error(kelp_graph_create_node(kelp_allocator_system(), &desc, NULL, &graph),
                     KELP_INVALID_ARGUMENT, "the description of a node is incomplete");
    }
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        kelp_node_desc desc = good;
        desc.attributes = &wrong[i];
        desc.attribute_count = 1;
        expect_error(kelp_graph_create_node(kelp_allocator_system(), &desc, NULL, &graph),
                     KELP_INVALID_ARGUMENT, "attribute 0 (");
    }
    x.dtype = KELP_LIST;
    expect_error(kelp_graph_create_node(kelp_allocator_system(), &good, NULL, &graph),
                 KELP_INVALID_ARGUMENT, "input 0 is not a tensor");
    x.dtype = KELP_F32;
    x.rank = KELP_MAX_RANK + 1;
    expect_error(kelp_graph_create_node(kelp_allocator_system(), &good, NULL, &graph),
                 KELP_INVALID_ARGUMENT, "input 0 is not a tensor");
    kelp_node_desc wide = good;
    wide.input_count = 0;
    wide.inputs = NULL;
    expect_error(kelp_graph_create_node(kelp_allocator_system(), &wide, NULL, &graph),
                 KELP_INVALID_ARGUMENT, "cannot create a node of 'Relu'");
}

/* ---- signatures ---- */
#define X "x:f32[2,3]; z:f32[3]; i:i64[2]; "

/* A node, its operator's signature, and why it does not match; NULL: it matches. */
static const struct {
    const char *text, *signature, *problem;
} rows[] = {
    {X "y=any.Custom(x)", "out y: float32[...s], x: float32[...s]", NULL},
    {X "y=any.Custom(x,z)", "out y: float32[...s], x: float32[...s]",
     "it has 2 inputs: expected at most 1"},
    {X "y=any.Custom(x)", "out y: float32[2]", "it has 1 inputs: expected 0"},
    {X "y,v=any.Custom(x)", "out y: float32[...s], x: float32[...s]",
     "it has 2 outputs: expected at most 1"},
    {X "y=any.Custom(x)", "out y: float32[...s], x: float32[...s], w: float32[...s]",
     "input 1 ('w') is missing"},
    {X "y=any.Custom(x,_)", "out y: float32[...s], x: float32[...s], w: float32[...s]",
     "input 1 ('w') is missing"},
    {X "y=any.Custom(_,x)", "out y: float32[...s], w: float32[...s], x: float32[...s]",
     "input 0 ('w') is missing"},
    {X "y=any.Custom(x)", "out y: float32[...s], x: float32[...s], optional w: float32[...s]",
     NULL},
    {X "y=any.Custom(x,_)", "out y: float32[...s], x: float32[...s], optional w: float32[...s]",
     NULL},
    {X "y=any.Custom(x)", "out y: float32[...s], out v: float32[1], x: float32[...s]",
     "output 1 ('v') is missing"},
    {X "y=any.Custom(x)", "out y: float32[...s], optional out v: float32[1], x: float32[...s]",
     NULL},
    {X "y=any.Custom(i)", "out y: float32[...s], x: float32[...s]",
     "input 0 ('x', value 'i'): expected type float32, found int64"},
    {X "y=any.Custom(x)", "out y: float32[n], x: float32[n]", "input 0 ('x', value 'x'): "},
    {X "y:f64[2]=any.Custom(x)", "out y: float32[n], x: float32[n, ?]",
     "output 0 ('y', value 'y'): expected type float32, found float64"},
    {X "y:f32[9]=any.Custom(x)", "out y: float32[n], x: float32[n, ?]", NULL},
    /* variadic tensors */
    {X "y=any.Custom(x,x,x)", "out y: float32[...s], variadic x: float32[...s]", NULL},
    {X "y=any.Custom(x,x,z)", "out y: float32[...s], variadic x: float32[...s]",
     "input 2 ('x', value 'z'): "},
    {X "y=any.Custom(x,x,i)", "out y: float32[...s], variadic x: float32[...s]",
     "input 2 ('x', value 'i'): expected type float32, found int64"},
    {X "y=any.Custom()", "out y: float32[2], variadic x: float32[...s]",
     "input 0 ('x') is missing"},
    {X "y=any.Custom()", "out y: float32[2], optional variadic x: float32[...s]", NULL},
    {X "y=any.Custom(x,_,x)", "out y: float32[...s], variadic x: float32[...s]",
     "input 1 ('x') is missing"},
    {X "y=any.Custom(z,x,x)", "out y: float32[...s], z: float32[3], variadic x: float32[...s]",
     NULL},
    {X "y=any.Custom(z)", "out y: float32[2], z: float32[3], variadic x: float32[...s]",
     "input 1 ('x') is missing"},
    {X "y,v=any.Custom(x)", "variadic out y: float32[...s], x: float32[...s]", NULL},
    {X "y=any.Custom(x)", "variadic out y: float32[...s], x: float32[...s]", NULL},
    /* attributes */
    {X "y=any.Custom(x){k=3}", "out y: float32[k], x: float32[?, ?], k: int64", NULL},
    {X "y=any.Custom(x)", "out y: float32[k], x: float32[?, ?], k: int64",
     "attribute 'k' is missing: expected int"},
    {X "y=any.Custom(x)", "out y: float32[k], x: float32[k, ?], k: int64", NULL},
    {X "y=any.Custom(x)", "out y: float32[a, k], x: float32[a, k], k: int64", NULL},
    {X "y=any.Custom(x)", "out y: float32[j], x: float32[j, ?], k: int64",
     "attribute 'k' is missing: expected int"},
    {X "y=any.Custom(x)", "out y: float32[k], x: float32[?, ?], optional w: float32[k], k: int64",
     "attribute 'k' is missing: expected int"},
    {X "y=any.Custom(x){k=2}", "out y: float32[k], x: float32[k, ?], k: int64", NULL},
    {X "y=any.Custom(x){k=3}", "out y: float32[k], x: float32[k, ?], k: int64",
     "expected dimension 'k' of axis 0 to be 3"},
    {X "y=any.Custom(x){k=1.5}", "out y: float32[2], x: float32[?, ?], k: int64",
     "attribute 'k' has the wrong type: expected int, found float"},
    {X "y=any.Custom(x){k=5000000000}", "out y: float32[2], x: float32[?, ?], k: int32",
     "attribute 'k': "},
    {X "y=any.Custom(x){x=3}", "out y: float32[2], x: float32[?, ?]",
     "attribute 'x' is not in the operator's signature"},
    {X "y=any.Custom(x){other=3}", "out y: float32[2], x: float32[?, ?], k: int64 = 1",
     "attribute 'other' is not in the operator's signature"},
    {X "y=any.Custom(x)", "out y: float32[2], x: float32[?, ?], k: int64 = 1", NULL},
    {X "y=any.Custom(x){k=word}", "out y: float32[2], x: float32[?, ?], k: string", NULL},
    {X "y=any.Custom(x){k=[1,2]}", "out y: float32[2], x: float32[?, ?], optional k: ints", NULL},
};

static void nodes_match_signatures_or_the_reason_is_told(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        kelp_graph *graph = graph_from_text(rows[i].text);
        kelp_signature signature;
        kelp_signature_facts facts;
        kelp_signature_problem problem = {""};
        assert_null(kelp_signature_parse(&graph->arena, rows[i].signature, &signature));
        bool good = kelp_node_matches(graph->main->nodes[0], &signature, &facts, &problem);
        if (good != (rows[i].problem == NULL) ||
            (!good && strstr(problem.text, rows[i].problem) == NULL))
            fail_msg("%s with '%s': expected '%s', found '%s'", rows[i].text, rows[i].signature,
                     rows[i].problem != NULL ? rows[i].problem : "", problem.text);
        kelp_graph_release(graph);
    }
}

static void lists_do_not_match_tensors(void **state) {
    (void)state;
    static const struct {
        kelp_value_kind kind;
        const char *name;
    } kinds[] = {{KELP_VALUE_SEQUENCE, "a sequence"},
                 {KELP_VALUE_OPTIONAL, "an optional"},
                 {KELP_VALUE_MAP, "a map"},
                 {KELP_VALUE_SPARSE, "a sparse tensor"}};
    kelp_graph *graph = graph_from_text(X "y=any.Custom(x)");
    kelp_signature signature;
    kelp_signature_facts facts;
    kelp_signature_problem problem;
    assert_null(kelp_signature_parse(&graph->arena, "out y: any[...], x: any[...]", &signature));
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        char text[64];
        snprintf(text, sizeof text, "expected a tensor, found %s", kinds[i].name);
        for (int out = 0; out < 2; out++) {
            graph->main->nodes[0]->inputs[0]->kind = out ? KELP_VALUE_TENSOR : kinds[i].kind;
            graph->main->nodes[0]->outputs[0]->kind = out ? kinds[i].kind : KELP_VALUE_TENSOR;
            assert_false(kelp_node_matches(graph->main->nodes[0], &signature, &facts, &problem));
            assert_non_null(strstr(problem.text, out ? "output 0" : "input 0"));
            assert_non_null(strstr(problem.text, text));
        }
    }
    kelp_graph_release(graph);
}

static const kelp_signature *signature_of(void *userp, const kelp_node *node) {
    return strcmp(kelp_node_op_type(node), "Custom") == 0 ? userp : NULL;
}

static void signatures_determine_types_of_outputs(void **state) {
    (void)state;
    kelp_graph *graph = graph_from_text("x:f32[n,3]; z:f16; y,_,v=any.Custom(x,z){k=5}; w=Relu(y)");
    kelp_signature signature;
    assert_null(
        kelp_signature_parse(&graph->arena,
                             "out y: T[k, n], optional out u: T[n], out v: S[...], x: T[n, ?], "
                             "z: S[...], k: int64",
                             &signature));
    /* outputs are declared without a type */
    assert_null(kelp_block_infer_signatures(graph->main, signature_of, &signature));
    expect_type(value_named(graph, "y"), "float32[5,n]");
    expect_type(value_named(graph, "v"), "float16");
    expect_type(value_named(graph, "w"), "float32[5,n]");
    kelp_graph_release(graph);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_described_node_has_its_attributes),
        cmocka_unit_test(incomplete_descriptions_are_rejected),
        cmocka_unit_test(nodes_match_signatures_or_the_reason_is_told),
        cmocka_unit_test(lists_do_not_match_tensors),
        cmocka_unit_test(signatures_determine_types_of_outputs),
    };
    return cmocka_run_group_tests_name("node", tests, NULL, NULL);
}
