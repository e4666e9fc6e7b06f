/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of the models in tests/data/models: valid models are loaded and cloned, invalid ones are
 * rejected with the expected message. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "graph/ir.h"
#include "graph/support.h"
#include "support/failing_allocator.h"

#define MODELS KELP_TEST_DATA "/models/"
#define DIGITS KELP_SOURCE_DIR "/examples/models/digits/1/model.onnx"

/* Invalid models and their error messages. The other models load; the readiness check rejects those
 * with unsupported operators. */
static const struct {
    const char *file, *text;
    kelp_code code;
} wrong[] = {
    {"external_escape.onnx", "is outside the model's directory", KELP_PERMISSION_DENIED},
    {"truncated.onnx", "truncated", KELP_INVALID_ARGUMENT},
    {"bad/arity.onnx",
     "node 'alone' (Add) in graph 'g': expected 2 inputs, found 1: 'B' is missing",
     KELP_INVALID_ARGUMENT},
    {"bad/attribute_missing.onnx", "attribute 'to' (int) is required but missing",
     KELP_INVALID_ARGUMENT},
    {"bad/attribute_type.onnx", "attribute 'axis': expected int, found string",
     KELP_INVALID_ARGUMENT},
    {"bad/cycle.onnx", "cycle", KELP_INVALID_ARGUMENT},
    {"bad/deep.onnx", "nested deeper than the limit of 64", KELP_RESOURCE_EXHAUSTED},
    {"bad/domain_not_imported.onnx", "'com.example', which the model does not import",
     KELP_INVALID_ARGUMENT},
    {"bad/duplicate_output.onnx", "value 'y' of graph 'g' is defined twice", KELP_INVALID_ARGUMENT},
    {"bad/empty.onnx", "empty", KELP_INVALID_ARGUMENT},
    {"bad/external_absolute.onnx", "is outside the model's directory", KELP_PERMISSION_DENIED},
    {"bad/external_length.onnx", "the shape needs 128 bytes, found 96", KELP_INVALID_ARGUMENT},
    {"bad/external_missing.onnx", "no_such_file.bin", KELP_NOT_FOUND},
    {"bad/external_offset.onnx", "has 100 bytes", KELP_INVALID_ARGUMENT},
    {"bad/external_short.onnx", "has 100 bytes", KELP_INVALID_ARGUMENT},
    {"bad/future_opset.onnx", "version 999: the newest supported version is", KELP_UNIMPLEMENTED},
    {"bad/initializer_dtype.onnx", "expected a data type, found 99", KELP_INVALID_ARGUMENT},
    {"bad/initializer_huge.onnx", "the number of elements overflows", KELP_INVALID_ARGUMENT},
    {"bad/initializer_negative.onnx", "expected a dimension, found -4", KELP_INVALID_ARGUMENT},
    {"bad/initializer_short.onnx", "expected 16 bytes of float32, found 14", KELP_INVALID_ARGUMENT},
    {"bad/missing_input.onnx", "input 'nowhere' of node 'lost' (Add)", KELP_INVALID_ARGUMENT},
    {"bad/missing_output.onnx", "output 'y' of graph 'g' is not produced by any node",
     KELP_INVALID_ARGUMENT},
    {"bad/no_graph.onnx", "graph.output: expected at least one", KELP_INVALID_ARGUMENT},
    {"bad/no_op_type.onnx", "graph.node[0]: op_type", KELP_INVALID_ARGUMENT},
    {"bad/not_onnx.onnx", "expected an ONNX ModelProto", KELP_INVALID_ARGUMENT},
    {"bad/recursive_function.onnx", "recursively", KELP_INVALID_ARGUMENT},
    {"bad/shape_mismatch.onnx", "shapes [2,4] and [5,3] cannot be multiplied",
     KELP_INVALID_ARGUMENT},
    {"bad/type_mismatch.onnx", "input 'B' is int64, but 'A' is float32", KELP_INVALID_ARGUMENT},
};

static void check_model(const char *file) {
    char path[sizeof MODELS + 1024];
    kelp_graph *graph = NULL, *clone = NULL;
    snprintf(path, sizeof path, MODELS "%s", file);
    kelp_status *status = kelp_graph_load_file(kelp_allocator_system(), path, NULL, &graph);
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++)
        if (strcmp(wrong[i].file, file) == 0) {
            assert_null(graph);
            assert_non_null(strstr(kelp_status_message(status), file));
            expect_error(status, wrong[i].code, wrong[i].text);
            return;
        }
    if (status != NULL)
        fail_msg("%s", kelp_status_message(status));
    assert_null(kelp_graph_clone_for_engine(graph, &clone));
    kelp_graph_release(graph);
    kelp_graph_release(clone);
}

static void all_models_are_loaded_or_rejected(void **state) {
    (void)state;
    char line[1024];
    size_t count = 0, bad = 0;
    FILE *index = fopen(MODELS "index.tsv", "r");
    assert_non_null(index);
    while (fgets(line, sizeof line, index) != NULL) {
        char *tab = strchr(line, '\t');
        if (line[0] == '#' || tab == NULL)
            continue;
        *tab = '\0';
        check_model(line);
        count++;
        bad += strncmp(tab + 1, "bad", 3) == 0;
    }
    fclose(index);
    assert_true(count >= 40);
    /* three of the bad models are valid, but have unsupported operators */
    assert_int_equal(bad, sizeof wrong / sizeof wrong[0] + 3);
}

static void the_digits_model_has_types_and_ranks(void **state) {
    (void)state;
    kelp_graph *graph = NULL;
    assert_null(kelp_graph_load_file(kelp_allocator_system(), DIGITS, NULL, &graph));
    kelp_graph_info info = kelp_graph_get_info(graph);
    const kelp_block *block = kelp_graph_main(graph);
    assert_string_equal(info.label, DIGITS);
    assert_int_equal(info.node_count, kelp_block_node_count(block));
    assert_true(info.parameter_count > 1000);
    assert_true(info.parameter_bytes >= 4 * info.parameter_count);
    assert_true(kelp_graph_opset_version(graph, "") > 0);
    assert_int_equal(kelp_graph_opset_version(graph, "ai.onnx"),
                     kelp_graph_opset_version(graph, ""));
    assert_int_equal(kelp_graph_opset_version(graph, "com.example"), 0);
    /* all ranks are inferred */
    for (size_t n = 0; n < kelp_block_node_count(block); n++) {
        const kelp_value *value = kelp_node_output(kelp_block_node(block, n), 0);
        assert_int_not_equal(kelp_value_dtype(value), KELP_DTYPE_INVALID);
        assert_true(kelp_value_rank(value) >= 0);
    }
    kelp_graph_release(graph);
}

static void external_data_is_loaded_from_the_directory_of_the_model(void **state) {
    (void)state;
    kelp_graph *graph = NULL;
    assert_null(
        kelp_graph_load_file(kelp_allocator_system(), MODELS "external_data.onnx", NULL, &graph));
    const kelp_block *block = kelp_graph_main(graph);
    size_t constants = 0;
    for (size_t i = 0; i < block->value_count; i++)
        constants += kelp_value_constant(block->values[i]) != NULL;
    assert_true(constants > 0);
    kelp_graph_release(graph);
}

static kelp_status *load_and_clone(kelp_allocator allocator, const char *path) {
    kelp_graph *graph = NULL, *clone = NULL;
    KELP_TRY(kelp_graph_load_file(allocator, path, NULL, &graph));
    kelp_status *status = kelp_graph_clone_for_engine(graph, &clone);
    kelp_graph_release(clone);
    kelp_graph_release(graph);
    return status;
}

static void sweep(const char *path) {
    for (uint64_t n = 1;; n++) {
        test_failing memory;
        test_failing_init(&memory, n);
        kelp_status *status = load_and_clone(test_failing_allocator(&memory), path);
        test_failing_check(&memory);
        bool failed = memory.failed;
        test_failing_deinit(&memory);
        if (!failed) {
            assert_null(status);
            assert_true(n > 5);
            return;
        }
        assert_int_equal(kelp_status_code(status), KELP_RESOURCE_EXHAUSTED);
        kelp_status_free(status);
    }
}

static void every_failed_allocation_is_reported_without_leaks(void **state) {
    (void)state;
    sweep(DIGITS);
    sweep(MODELS "control_flow.onnx");
    sweep(MODELS "external_data.onnx");
    sweep(MODELS "string_identity.onnx");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_models_are_loaded_or_rejected),
        cmocka_unit_test(the_digits_model_has_types_and_ranks),
        cmocka_unit_test(external_data_is_loaded_from_the_directory_of_the_model),
        cmocka_unit_test(every_failed_allocation_is_reported_without_leaks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
