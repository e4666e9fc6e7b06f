/* SPDX-License-Identifier: Apache-2.0 */
/* ONNX messages as structs: what is borrowed, what is decoded, and how wrong ones are refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "onnx/model.h"
#include "onnx/onnx_writer.h"

typedef struct fixture {
    kelp_arena arena;
    kelp_onnx_reader reader;
    kelp_onnx_model model;
} fixture;

static kelp_status *read_model(fixture *f, const pb *model) {
    kelp_arena_init(&f->arena, kelp_allocator_system(), 0);
    f->reader =
        (kelp_onnx_reader){.arena = &f->arena,
                           .data = &f->arena,
                           .label = "m.onnx",
                           .limits = {.nodes = 1000, .depth = 8, .external_bytes = 1 << 20}};
    return kelp_onnx_read(&f->reader, (kelp_str){model->data, model->length}, &f->model);
}

static void expect_words(kelp_status *status, const char *words) {
    char text[512];
    assert_non_null(status);
    kelp_status_format(status, text, sizeof text);
    if (strstr(text, words) == NULL)
        fail_msg("expected '%s' in: %s", words, text);
    kelp_status_free(status);
}

static void refused(const pb *model, const char *words) {
    fixture f;
    expect_words(read_model(&f, model), words);
    kelp_arena_deinit(&f.arena);
}

static void refused_tensor(const pb *tensor, const char *words) {
    pb graph = {0};
    pb_add_initializer(&graph, tensor);
    pb model = pb_model(&graph, 17);
    refused(&model, words);
}

static void a_model_is_read(void **state) {
    (void)state;
    fixture f;
    pb graph = {0}, node = pb_node("Concat", "x - y", "z"), meta = {0};
    pb_attr_int(&node, "axis", -1);
    pb_attr_ints(&node, "list", 3, (int64_t[]){1, -2, INT64_MAX});
    pb_add_node(&graph, &node);
    pb_text(&graph, 2, "main");
    pb_add_input(&graph, "x", "float32[2,n,?]");
    pb_add_output(&graph, "z", "int64");
    pb model = pb_model(&graph, 17);
    pb_text(&model, 2, "kelp tests");
    pb_import(&model, "ai.onnx.ml", 3);
    pb_text(&meta, 1, "key");
    pb_text(&meta, 2, "value");
    pb_message(&model, 14, &meta);
    assert_null(read_model(&f, &model));
    const kelp_onnx_graph *g = &f.model.graph;
    assert_true(kelp_str_is(f.model.producer_name, "kelp tests"));
    assert_int_equal(f.model.import_count, 2);
    assert_int_equal(f.model.imports[1].version, 3);
    assert_true(kelp_str_is(f.model.metadata[1], "value"));
    assert_true(kelp_str_is(g->name, "main"));
    assert_int_equal(g->nodes[0].input_count, 3);
    assert_int_equal(g->nodes[0].inputs[1].length, 0);
    assert_int_equal(g->nodes[0].attrs[0].i, -1);
    assert_int_equal(g->nodes[0].attrs[1].count, 3);
    assert_true(g->nodes[0].attrs[1].ints[2] == INT64_MAX);
    assert_int_equal(g->inputs[0].type.rank, 3);
    assert_int_equal(g->inputs[0].type.shape[0], 2);
    assert_int_equal(g->inputs[0].type.shape[1], -1);
    assert_true(kelp_str_is(g->inputs[0].type.symbols[1], "n"));
    assert_int_equal(g->inputs[0].type.symbols[2].length, 0);
    assert_int_equal(g->outputs[0].type.rank, -1);
    /* names are where they lay in the file */
    assert_in_range((uintptr_t)g->name.data, (uintptr_t)model.data,
                    (uintptr_t)model.data + model.length);
    kelp_arena_deinit(&f.arena);
}

static void packed_numbers_are_the_same_as_unpacked(void **state) {
    (void)state;
    fixture f;
    pb graph = {0}, node = pb_node("X", "", "y"), attr = {0}, packed = {0}, floats = {0};
    pb_varint(&packed, 5);
    pb_varint(&packed, (uint64_t)-6);
    pb_text(&attr, 1, "ints");
    pb_int(&attr, 8, 4);
    pb_message(&attr, 8, &packed);
    pb_int(&attr, 20, 7);
    pb_message(&node, 5, &attr);
    float values[2] = {0.5f, -2.0f};
    pb_text(&floats, 1, "floats");
    pb_bytes(&floats, 7, values, sizeof values);
    pb_float(&floats, 7, 3.0f);
    pb_int(&floats, 20, 6);
    pb_message(&node, 5, &floats);
    pb_add_node(&graph, &node);
    pb model = pb_model(&graph, 17);
    assert_null(read_model(&f, &model));
    const kelp_onnx_attr *attrs = f.model.graph.nodes[0].attrs;
    assert_int_equal(attrs[0].count, 3);
    assert_int_equal(attrs[0].ints[0], 4);
    assert_int_equal(attrs[0].ints[2], -6);
    assert_int_equal(attrs[1].count, 3);
    assert_true(attrs[1].floats[1] == -2.0f && attrs[1].floats[2] == 3.0f);
    kelp_arena_deinit(&f.arena);
}

static const kelp_tensor *read_tensor(fixture *f, const pb *tensor) {
    pb graph = {0};
    pb_add_initializer(&graph, tensor);
    pb model = pb_model(&graph, 17);
    static pb kept; /* the bytes are borrowed */
    kept = model;
    kelp_status *status = read_model(f, &kept);
    if (status != NULL)
        fail_msg("%s", kelp_status_message(status));
    return &f->model.graph.initializers[0].tensor;
}

static pb typed_tensor(kelp_dtype dtype, int64_t elements) {
    pb tensor = {0};
    pb_int(&tensor, 1, (uint64_t)elements);
    pb_int(&tensor, 2, (uint64_t)dtype);
    pb_text(&tensor, 8, "w");
    return tensor;
}

static void typed_data_is_decoded(void **state) {
    (void)state;
    fixture f;
    pb t = typed_tensor(KELP_I8, 3), packed = {0};
    pb_varint(&packed, (uint64_t)-1);
    pb_varint(&packed, 5);
    pb_message(&t, 5, &packed);
    pb_int(&t, 5, 127);
    assert_memory_equal(read_tensor(&f, &t)->data, "\xff\x05\x7f", 3);
    kelp_arena_deinit(&f.arena);

    t = typed_tensor(KELP_F16, 2);
    pb_int(&t, 5, 0x3c00);
    pb_int(&t, 5, 0xc000);
    assert_memory_equal(read_tensor(&f, &t)->data, "\x00\x3c\x00\xc0", 4);
    kelp_arena_deinit(&f.arena);

    t = typed_tensor(KELP_I64, 2);
    pb_int(&t, 7, (uint64_t)INT64_MIN);
    pb_int(&t, 7, 1);
    int64_t longs[2] = {INT64_MIN, 1};
    assert_memory_equal(read_tensor(&f, &t)->data, longs, sizeof longs);
    kelp_arena_deinit(&f.arena);

    t = typed_tensor(KELP_U32, 1);
    pb_int(&t, 11, UINT32_MAX);
    assert_memory_equal(read_tensor(&f, &t)->data, "\xff\xff\xff\xff", 4);
    kelp_arena_deinit(&f.arena);

    float parts[4] = {1, 2, 3, 4};
    t = typed_tensor(KELP_C64, 2);
    pb_bytes(&t, 4, parts, sizeof parts);
    assert_memory_equal(read_tensor(&f, &t)->data, parts, sizeof parts);
    kelp_arena_deinit(&f.arena);

    t = typed_tensor(KELP_U4, 3); /* two a byte, a byte each number */
    pb_int(&t, 5, 0x21);
    pb_int(&t, 5, 0x03);
    assert_memory_equal(read_tensor(&f, &t)->data, "\x21\x03", 2);
    kelp_arena_deinit(&f.arena);

    t = typed_tensor(KELP_STRING, 2);
    pb_text(&t, 6, "a string");
    pb_bytes(&t, 6, "nul\0inside", 10);
    const kelp_string *strings = read_tensor(&f, &t)->data;
    assert_int_equal(strings[0].length, 8);
    assert_memory_equal(strings[1].data, "nul\0inside", 10);
    kelp_arena_deinit(&f.arena);
}

static void raw_data_is_borrowed_wherever_it_lies(void **state) {
    (void)state;
    for (int shift = 0; shift < 8; shift++) {
        fixture f;
        char name[16] = "wwwwwwww";
        float data[2] = {1.25f, -3.0f}, found[2];
        name[shift] = '\0';
        pb t = pb_tensor(name, KELP_F32, 1, (int64_t[]){2}, data, sizeof data);
        const kelp_tensor *tensor = read_tensor(&f, &t);
        assert_int_equal(tensor->flags, KELP_TENSOR_READ_ONLY);
        memcpy(found, tensor->data, sizeof found);
        assert_true(found[0] == 1.25f && found[1] == -3.0f);
        kelp_arena_deinit(&f.arena);
    }
}

static void tensors_that_do_not_fit_their_shape_are_refused(void **state) {
    (void)state;
    pb t = pb_tensor("w", KELP_F32, 1, (int64_t[]){3}, "12345678", 8);
    refused_tensor(&t, "graph.initializer[0]: tensor 'w': raw_data: expected 12 bytes of float32, "
                       "found 8");
    t = pb_tensor("w", (kelp_dtype)77, 1, (int64_t[]){2}, "12", 2);
    refused_tensor(&t, "data_type: expected a data type, found 77");
    t = pb_tensor("w", KELP_U8, 1, (int64_t[]){-5}, "12", 2);
    refused_tensor(&t, "dims[0]: expected a dimension, found -5");
    t = pb_tensor("w", KELP_U8, 2, (int64_t[]){1LL << 40, 1LL << 40}, "12", 2);
    refused_tensor(&t, "dims: the number of elements overflows");
    t = typed_tensor(KELP_I32, 2);
    pb_int(&t, 5, 1);
    refused_tensor(&t, "expected 2 values of int32, found 1");
    t = typed_tensor(KELP_I32, 0);
    pb_int(&t, 5, 1);
    refused_tensor(&t, "expected 0 values of int32, found 1");
    t = typed_tensor(KELP_F32, 1);
    pb_bytes(&t, 4, "12345", 5);
    refused_tensor(&t, "malformed packed numbers");
    t = typed_tensor(KELP_F32, 1);
    pb_text(&t, 3, "");
    refused_tensor(&t, "segment");
    t = typed_tensor(KELP_F32, 1);
    pb_text(&t, 9, "1234567");
    t.length -= 2;
    refused_tensor(&t, "malformed");
    int64_t many[KELP_MAX_RANK + 1];
    for (int i = 0; i <= KELP_MAX_RANK; i++)
        many[i] = 1;
    t = pb_tensor("w", KELP_U8, KELP_MAX_RANK + 1, many, "1", 1);
    refused_tensor(&t, "dims: expected at most 16");
}

static void errors_name_the_path(void **state) {
    (void)state;
    pb graph = {0}, inner = {0}, node = pb_node("If", "c", "y"), bad = pb_node("", "a", "b");
    pb_add_node(&inner, &bad);
    pb_attr_graph(&node, "then_branch", &inner);
    pb fine = pb_node("Relu", "x", "c");
    pb_add_node(&graph, &fine);
    pb_add_node(&graph, &node);
    pb model = pb_model(&graph, 17);
    refused(&model, "m.onnx: graph.node[1].attribute[0] 'then_branch'.g.node[0]: op_type: expected "
                    "one, found none");
}

static void wrong_wire_types_are_refused(void **state) {
    (void)state;
    pb graph = {0}, node = pb_node("Relu", "x", "y"), attr = {0}, model;
    pb_int(&attr, 1, 7);
    pb_message(&node, 5, &attr);
    pb_add_node(&graph, &node);
    model = pb_model(&graph, 17);
    refused(&model, "graph.node[0].attribute[0]: field 1: expected bytes");
    graph.length = 0;
    pb_int(&graph, 2, 3);
    model = pb_model(&graph, 17);
    refused(&model, "graph: field 2: expected bytes");
    graph.length = 0;
    pb_int(&graph, 1, 3);
    model = pb_model(&graph, 17);
    refused(&model, "graph.node[0]: message: expected bytes");
    model.length = 0;
    pb_text(&model, 1, "ten");
    refused(&model, "ir_version: expected a number");
}

static void models_without_the_essentials_are_refused(void **state) {
    (void)state;
    pb graph = {0}, model = {0};
    refused(&model, "m.onnx: empty");
    pb_int(&model, 1, 10);
    pb_import(&model, "", 17);
    refused(&model, "graph: expected one, found none");
    pb_message(&model, 7, &graph);
    pb_message(&model, 7, &graph);
    refused(&model, "graph: expected one, found two");
    model.length = 0;
    pb_message(&model, 7, &graph);
    refused(&model, "ir_version: expected 1 or more, found 0");
    pb_int(&model, 1, 10);
    refused(&model, "opset_import: expected at least one, found none");
    pb_import(&model, "", 0);
    refused(&model, "opset_import[0]: version: expected 1 or more, found 0");
}

static void graphs_nest_as_deep_as_the_limit_says(void **state) {
    (void)state;
    for (int depth = 6; depth < 12; depth++) {
        fixture f;
        pb graph = {0};
        for (int i = 0; i < depth; i++) {
            pb node = pb_node("If", "c", "y"), outer = {0};
            pb_attr_graph(&node, "then_branch", &graph);
            pb_add_node(&outer, &node);
            graph = outer;
        }
        pb model = pb_model(&graph, 17);
        kelp_status *status = read_model(&f, &model);
        assert_int_equal(kelp_status_code(status), depth <= 8 ? KELP_OK : KELP_RESOURCE_EXHAUSTED);
        kelp_status_free(status);
        kelp_arena_deinit(&f.arena);
    }
}

static void nodes_are_counted(void **state) {
    (void)state;
    fixture f;
    pb graph = {0}, node = {0};
    pb_text(&node, 4, "A");
    for (int i = 0; i < 1001; i++)
        pb_add_node(&graph, &node);
    pb model = pb_model(&graph, 17);
    kelp_status *status = read_model(&f, &model);
    assert_int_equal(kelp_status_code(status), KELP_RESOURCE_EXHAUSTED);
    expect_words(status, "more than 1000 nodes");
    kelp_arena_deinit(&f.arena);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_model_is_read),
        cmocka_unit_test(packed_numbers_are_the_same_as_unpacked),
        cmocka_unit_test(typed_data_is_decoded),
        cmocka_unit_test(raw_data_is_borrowed_wherever_it_lies),
        cmocka_unit_test(tensors_that_do_not_fit_their_shape_are_refused),
        cmocka_unit_test(errors_name_the_path),
        cmocka_unit_test(wrong_wire_types_are_refused),
        cmocka_unit_test(models_without_the_essentials_are_refused),
        cmocka_unit_test(graphs_nest_as_deep_as_the_limit_says),
        cmocka_unit_test(nodes_are_counted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
