/* SPDX-License-Identifier: Apache-2.0 */
/* Signatures of operators: registration, readiness, inference, and checks during a run. */
#include "onnx/onnx_writer.h"

#include <kelp/engine.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "support/check_status.h"

/* ---- a provider of typed operators ---- */
static const kelp_opset_op typed_ops[] = {
    {.name = "Scale",
     .since_version = 1,
     .signature = "out y: T[...s], x: T[...s], optional bias: T[1], factor: int64 = 2 "
                  "where T: float32 | int32"},
    {.name = "Join", .since_version = 1, .signature = "out y: T[n], variadic x: T[n]"},
    {.name = "Dense",
     .since_version = 1,
     .signature = "out y: float32[m, n], a: float32[m, k], b: float32[k, n], mode: string, "
                  "optional pads: ints"},
    {.name = "Ones", .since_version = 1, .signature = "out y: float32[rows, 2], rows: int32"},
    {.name = "Split",
     .since_version = 1,
     .signature = "out a: T[...s], optional out b: T[...s], x: T[...s]"}};
static const kelp_opset typed = {"com.example", 1, typed_ops, 5};

static const kelp_opset_op negative_ops[] = {
    {.name = "Neg",
     .since_version = 6,
     .signature = "out y: T[...s], x: T[...s] where T: float32"}};
static const kelp_opset negative = {"", 17, negative_ops, 1};

static const kelp_opset *opset; /* that the provider declares */
static int dispatched;
static enum { RIGHT, WRONG_TYPE, WRONG_SHAPE } results;

static const kelp_opset *extension_opsets(void *self, size_t *out_count) {
    (void)self;
    *out_count = 1;
    return opset;
}

/* Every output is input 0 times the factor. */
static kelp_status *dispatch(void *self, const kelp_op_env *env, const kelp_node *node,
                             const kelp_tensor *const *inputs, kelp_tensor *outputs,
                             kelp_completion *completion, kelp_dispatch_result *out_result) {
    (void)self, (void)completion;
    *out_result = KELP_DISPATCH_IMMEDIATE;
    dispatched++;
    static const int64_t other[2] = {5, 5};
    for (size_t k = 0; k < kelp_node_output_count(node); k++) {
        if (results != RIGHT)
            KELP_TRY(kelp_tensor_init(&outputs[k], results == WRONG_TYPE ? KELP_I64 : KELP_F32, 2,
                                      other, NULL));
        else
            KELP_TRY(kelp_tensor_init(&outputs[k], inputs[0]->dtype, inputs[0]->rank,
                                      inputs[0]->shape, NULL));
        float *to = outputs[k].data = kelp_op_env_alloc(env, kelp_tensor_bytes(&outputs[k]) + 1);
        if (to == NULL)
            return kelp_status_oom();
        for (int64_t i = 0; results == RIGHT && i < kelp_tensor_elements(inputs[0]); i++)
            to[i] =
                ((const float *)inputs[0]->data)[i] * (float)kelp_node_attr_i64(node, "factor", 2);
    }
    return NULL;
}

static const kelp_opset_backend provider = {.abi_version = KELP_OPSET_ABI_VERSION,
                                            .struct_size = sizeof provider,
                                            .name = "typed",
                                            .extension_opsets = extension_opsets,
                                            .dispatch = dispatch};

static kelp_runtime *new_runtime(const kelp_opset *declared) {
    kelp_runtime *runtime = NULL;
    opset = declared;
    check_ok(kelp_runtime_create(NULL, &runtime));
    check_ok(kelp_runtime_register_opset(runtime, &provider, NULL));
    return runtime;
}

/* ---- models ---- */
static pb custom(const char *op_type, const char *inputs, const char *outputs) {
    pb node = pb_node(op_type, inputs, outputs);
    pb_text(&node, 3, "it");
    pb_text(&node, 7, "com.example");
    return node;
}

static void keep_bytes(void *userp) {
    free(userp);
}

static kelp_graph *load(const pb *graph) {
    pb *model = malloc(sizeof *model);
    kelp_graph *loaded = NULL;
    assert_non_null(model);
    *model = pb_model(graph, 17);
    pb_import(model, "com.example", 1);
    check_ok(kelp_graph_load_bytes(kelp_allocator_system(), model->data, model->length, "written",
                                   NULL, keep_bytes, model, NULL, &loaded));
    return loaded;
}

static pb new_graph(void) {
    pb graph = {0};
    pb_text(&graph, 2, "g");
    pb_add_input(&graph, "x", "float32[2,3]");
    pb_add_input(&graph, "v", "float32[3]");
    pb_add_input(&graph, "w", "float32[4]");
    pb_add_input(&graph, "i", "int32[2,3]");
    pb_add_input(&graph, "l", "int64[2,3]");
    pb_add_input(&graph, "d", "float32[a,b]");
    pb_add_output(&graph, "y", "float32");
    return graph;
}

static kelp_graph *one_node(const pb *node) {
    pb graph = new_graph();
    pb_add_node(&graph, node);
    return load(&graph);
}

/* ---- registration ---- */
static void malformed_signature_is_rejected(void **state) {
    (void)state;
    static const kelp_opset_op ops[] = {
        {.name = "Bad", .since_version = 3, .signature = "out y: T[n], x: T[n"}};
    static const kelp_opset bad = {"com.example", 3, ops, 1};
    kelp_runtime *runtime = NULL;
    opset = &bad;
    check_ok(kelp_runtime_create(NULL, &runtime));
    const char *const says[] = {"operator 'com.example::Bad' version 3",
                                "malformed at character 20: expected ',' or ']'"};
    for (size_t i = 0; i < sizeof says / sizeof says[0]; i++)
        expect_failure(kelp_runtime_register_opset(runtime, &provider, NULL), KELP_INVALID_ARGUMENT,
                       says[i]);
    kelp_runtime_release(runtime);
}

/* ---- readiness ---- */
static void expect_not_ready(const pb *graph, const char *says) {
    kelp_runtime *runtime = new_runtime(&typed);
    kelp_graph *loaded = load(graph);
    kelp_engine *engine = NULL;
    expect_failure(kelp_opset_check_ready(kelp_runtime_opsets(runtime), loaded),
                   KELP_INVALID_ARGUMENT, says);
    expect_failure(kelp_engine_create(runtime, loaded, NULL, &engine), KELP_INVALID_ARGUMENT, says);
    kelp_graph_release(loaded);
    kelp_runtime_release(runtime);
}

static void expect_node_not_ready(const pb *node, const char *says) {
    pb graph = new_graph();
    pb_add_node(&graph, node);
    expect_not_ready(&graph, says);
}

static void nodes_are_compared_with_signatures(void **state) {
    (void)state;
    static const struct {
        const char *op_type, *inputs, *outputs, *says;
    } cases[] = {
        {"Scale", "x v w x", "y",
         "com.example::Scale version 1, node 'it', in graph 'g': it has 4 inputs: expected at most "
         "2"},
        {"Scale", "x", "y z", "it has 2 outputs: expected at most 1"},
        {"Scale", "- v", "y", "input 0 ('x') is missing"},
        {"Scale", "l", "y",
         "input 0 ('x', value 'l'): expected type float32 or int32, found int64"},
        {"Scale", "x i", "y", "input 1 ('bias', value 'i'): expected type float32, found int32"},
        {"Scale", "x x", "y", "input 1 ('bias', value 'x'): expected rank 1, found shape [2,3]"},
        {"Scale", "x v", "y", "expected axis 0 to be 1, found shape [3]"},
        {"Join", "v w", "y", "expected dimension 'n' of axis 0 to be 3, found shape [4]"},
        {"Join", "v -", "y", "input 1 ('x') is missing"},
        {"Dense", "x x", "y", "attribute 'mode' is missing: expected string"},
        {"Ones", "", "y", "attribute 'rows' is missing: expected int"},
        {"Split", "x", "- y", "output 0 ('a') is missing"},
        {"Scale", "i", "y", "output 0 ('y', value 'y'): expected type int32, found float32"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        pb node = custom(cases[i].op_type, cases[i].inputs, cases[i].outputs);
        expect_node_not_ready(&node, cases[i].says);
    }
}

static void attributes_are_compared_with_signatures(void **state) {
    (void)state;
    pb node = custom("Scale", "x", "y");
    pb_attr_text(&node, "factor", "two");
    expect_node_not_ready(&node,
                          "attribute 'factor' has the wrong type: expected int, found string");
    node = custom("Scale", "x", "y");
    pb_attr_int(&node, "faktor", 2);
    expect_node_not_ready(&node, "attribute 'faktor' is not in the operator's signature");
    node = custom("Ones", "", "y");
    pb_attr_int(&node, "rows", -1);
    expect_node_not_ready(&node, "attribute 'rows': expected the size of a dimension, found -1");
    node = custom("Dense", "x x", "y");
    pb_attr_text(&node, "mode", "m");
    pb_attr_int(&node, "pads", 1);
    expect_node_not_ready(&node, "attribute 'pads' has the wrong type: expected ints, found int");
    node = custom("Dense", "x x", "y");
    pb_attr_text(&node, "mode", "m");
    expect_node_not_ready(&node, "expected dimension 'k' of axis 0 to be 3, found shape [2,3]");
}

/* The type of 'a' is known only by the signature of the node that produces it. */
static void types_are_inferred_across_custom_operators(void **state) {
    (void)state;
    pb graph = new_graph();
    pb first = custom("Scale", "i", "a"), relu = pb_node("Abs", "a", "b"),
       last = custom("Dense", "b b", "y");
    pb_attr_text(&last, "mode", "m");
    pb_add_node(&graph, &first);
    pb_add_node(&graph, &relu);
    pb_add_node(&graph, &last);
    expect_not_ready(&graph, "input 0 ('a', value 'b'): expected type float32, found int32");
}

static void all_mismatches_are_listed(void **state) {
    (void)state;
    pb graph = new_graph();
    pb first = custom("Scale", "l", "a"), unknown = custom("Nothing", "x", "c"),
       last = custom("Scale", "x", "y z");
    pb_add_node(&graph, &first);
    pb_add_node(&graph, &unknown);
    pb_add_node(&graph, &last);
    kelp_runtime *runtime = new_runtime(&typed);
    kelp_graph *loaded = load(&graph);
    kelp_status *status = kelp_opset_check_ready(kelp_runtime_opsets(runtime), loaded);
    assert_int_equal(kelp_status_code(status), KELP_UNIMPLEMENTED);
    const char *text = kelp_status_message(status);
    assert_non_null(strstr(text, "no registered provider covers 1 of its nodes:"));
    assert_non_null(strstr(text, "com.example::Nothing version 1"));
    assert_non_null(
        strstr(text, "\n 2 of its nodes do not match the signatures of their operators:"));
    kelp_status_free(status);
    kelp_graph_release(loaded);
    kelp_runtime_release(runtime);
}

/* As many nodes of both kinds; long lists are shortened. */
static void long_lists_are_shortened(void **state) {
    (void)state;
    static const struct {
        int nodes;
        const char *more; /* NULL: all are listed */
    } cases[] = {{1, NULL}, {200, NULL}, {202, "\n  … and 2 more"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        pb graph = new_graph();
        pb unknown, wrong, last = pb_node("Abs", "x", "y");
        pb_add_node(&graph, &last);
        for (int n = 0; n < cases[i].nodes; n++) {
            char name[16];
            snprintf(name, sizeof name, "c%d", n);
            unknown = custom("Nothing", "x", name);
            pb_add_node(&graph, &unknown);
            snprintf(name, sizeof name, "a%d", n);
            wrong = custom("Scale", "l", name);
            pb_add_node(&graph, &wrong);
        }
        kelp_runtime *runtime = new_runtime(&typed);
        kelp_graph *loaded = load(&graph);
        kelp_status *status = kelp_opset_check_ready(kelp_runtime_opsets(runtime), loaded);
        assert_int_equal(kelp_status_code(status), KELP_UNIMPLEMENTED);
        const char *text = kelp_status_message(status);
        const char *first = strstr(text, "… and");
        assert_int_equal(first != NULL, cases[i].more != NULL);
        if (cases[i].more != NULL) { /* in both lists */
            assert_non_null(strstr(text, cases[i].more));
            assert_non_null(strstr(first + 1, cases[i].more));
        }
        kelp_status_free(status);
        kelp_graph_release(loaded);
        kelp_runtime_release(runtime);
    }
}

/* ---- engines ---- */
static kelp_context *new_context(kelp_runtime *runtime, kelp_graph *take_graph) {
    kelp_engine *engine = NULL;
    kelp_context *context = NULL;
    check_ok(kelp_engine_create(runtime, take_graph, NULL, &engine));
    check_ok(kelp_context_create(engine, &context));
    kelp_engine_release(engine);
    kelp_graph_release(take_graph);
    return context;
}

static float data[25] = {1, -2, 3, -4, 5, -6};

static void set_input(kelp_context *context, size_t index, kelp_dtype dtype, int32_t rank,
                      int64_t rows, int64_t columns) {
    kelp_tensor tensor;
    check_ok(kelp_tensor_init(&tensor, dtype, rank, (int64_t[2]){rows, columns}, data));
    check_ok(kelp_context_set_input(context, index, &tensor));
}

static void set_inputs(kelp_context *context, int64_t rows, int64_t columns) {
    set_input(context, 0, KELP_F32, 2, 2, 3);
    set_input(context, 1, KELP_F32, 1, 3, 0);
    set_input(context, 2, KELP_F32, 1, 4, 0);
    set_input(context, 3, KELP_I32, 2, 2, 3);
    set_input(context, 4, KELP_I64, 2, 2, 3);
    set_input(context, 5, KELP_F32, 2, rows, columns);
}

static void shapes_are_known_before_a_run(void **state) {
    (void)state;
    kelp_runtime *runtime = new_runtime(&typed);
    pb node = custom("Scale", "d", "y");
    pb_attr_int(&node, "factor", 3);
    kelp_context *context = new_context(runtime, one_node(&node));
    set_inputs(context, 4, 1);
    results = RIGHT;
    dispatched = 0;
    check_ok(kelp_context_prepare(context));
    assert_int_equal(dispatched, 0);
    const kelp_tensor *y = kelp_context_output(context, 0);
    assert_int_equal(y->rank, 2);
    assert_int_equal(y->shape[0], 4);
    check_ok(kelp_context_invoke(context));
    assert_int_equal(dispatched, 1);
    y = kelp_context_output(context, 0);
    assert_true(((const float *)y->data)[2] == 9.0f);
    kelp_context_destroy(context);
    kelp_runtime_release(runtime);
}

static void tensors_are_checked_in_each_run(void **state) {
    (void)state;
    kelp_runtime *runtime = new_runtime(&typed);
    pb node = custom("Dense", "x d", "y");
    pb_attr_text(&node, "mode", "m");
    kelp_context *context = new_context(runtime, one_node(&node));
    results = RIGHT;
    dispatched = 0;
    set_inputs(context, 4, 4);
    expect_failure(kelp_context_invoke(context), KELP_INVALID_ARGUMENT,
                   "input 1 ('b', value 'd'): expected dimension 'k' of axis 0 to be 3, found "
                   "shape [4,4]");
    assert_int_equal(dispatched, 0);
    set_inputs(context, 3, 3);
    check_ok(kelp_context_invoke(context));
    kelp_context_destroy(context);
    kelp_runtime_release(runtime);
}

static void results_are_checked(void **state) {
    (void)state;
    kelp_runtime *runtime = new_runtime(&typed);
    pb node = custom("Scale", "x", "y");
    kelp_context *context = new_context(runtime, one_node(&node));
    set_inputs(context, 1, 1);
    results = WRONG_TYPE;
    expect_failure(
        kelp_context_invoke(context), KELP_INTERNAL,
        "provider 'typed' returned a wrong tensor for 'y': expected type float32, found int64");
    results = WRONG_SHAPE;
    expect_failure(kelp_context_invoke(context), KELP_INTERNAL,
                   "expected leading dimensions [2,3], as for the other '...s', found shape [5,5]");
    results = RIGHT;
    check_ok(kelp_context_invoke(context));
    kelp_context_destroy(context);
    kelp_runtime_release(runtime);
}

/* A provider with a signature supports only matching nodes; others run on the next provider. */
static void other_providers_run_nodes_that_do_not_match(void **state) {
    (void)state;
    kelp_runtime *runtime = new_runtime(&negative);
    pb graph = {0};
    pb_text(&graph, 2, "g");
    pb_add_input(&graph, "x", "float32[2,3]");
    pb_add_input(&graph, "l", "int64[1]");
    pb_add_output(&graph, "y", "float32");
    pb_add_output(&graph, "z", "int64");
    pb first = pb_node("Neg", "x", "y"), second = pb_node("Neg", "l", "z");
    pb_add_node(&graph, &first);
    pb_add_node(&graph, &second);
    kelp_context *context = new_context(runtime, load(&graph));
    int64_t seven = 7;
    kelp_tensor tensor;
    set_input(context, 0, KELP_F32, 2, 2, 3);
    check_ok(kelp_tensor_init(&tensor, KELP_I64, 1, (int64_t[1]){1}, &seven));
    check_ok(kelp_context_set_input(context, 1, &tensor));
    results = RIGHT;
    dispatched = 0;
    check_ok(kelp_context_invoke(context));
    assert_int_equal(dispatched, 1);
    assert_true(*(const int64_t *)kelp_context_output(context, 1)->data == -7);
    kelp_context_destroy(context);
    kelp_runtime_release(runtime);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(malformed_signature_is_rejected),
        cmocka_unit_test(nodes_are_compared_with_signatures),
        cmocka_unit_test(attributes_are_compared_with_signatures),
        cmocka_unit_test(types_are_inferred_across_custom_operators),
        cmocka_unit_test(all_mismatches_are_listed),
        cmocka_unit_test(long_lists_are_shortened),
        cmocka_unit_test(shapes_are_known_before_a_run),
        cmocka_unit_test(tensors_are_checked_in_each_run),
        cmocka_unit_test(results_are_checked),
        cmocka_unit_test(other_providers_run_nodes_that_do_not_match),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
