/* SPDX-License-Identifier: Apache-2.0 */
/* ONNX models through NVIDIA's parser, and its errors for invalid models. */
#include "fixture.h"

#include "base/alloc.h"
#include "base/fs.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "support/check_status.h"

#define MODELS KELP_SOURCE_DIR "/tests/data/models/"

static void parse_begin(build *b) {
    build_begin(b);
    check_ok(trt_create_parser(library, b->log, b->network, &b->parser));
}

/* In a child, so that both builds start from the same memory: the order of what NVIDIA's builder
 * writes follows the addresses of its objects. */
static void build_in_child(const char *model, const trt_dims *ends, const char *out) {
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        build b;
        size_t size;
        parse_begin(&b);
        check_ok(trt_parse_file(library, b.log, b.parser, model));
        trt_tensor *input = trt_network_get_input(b.m, b.network, 0);
        add_profile(&b, trt_tensor_get_name(b.m, input), ends[0], ends[1], ends[2]);
        build_engine(&b);
        const uint8_t *data = engine_data(&b, &size);
        kelp_status *status = kelp_fs_write(out, data, size);
        build_end(&b);
        _exit(status != NULL);
    }
    int code = -1;
    assert_int_equal(waitpid(child, &code, 0), child);
    assert_true(WIFEXITED(code) && WEXITSTATUS(code) == 0);
}

static void check_model(const char *model, trt_dims min, trt_dims opt, trt_dims max) {
    const trt_dims ends[] = {min, opt, max};
    const char *names[] = {"first.plan", "second.plan"};
    kelp_buf plans[2];
    build_in_child(model, ends, names[0]);
    build_in_child(model, ends, names[1]);
    for (int i = 0; i < 2; i++) {
        kelp_buf_init(&plans[i], kelp_allocator_system());
        check_ok(kelp_fs_read(names[i], 0, &plans[i]));
        assert_int_equal(unlink(names[i]), 0);
    }
    assert_true(plans[0].length > 100000);
    assert_memory_equal(plans[0].data, "vtrt", 4);
    assert_int_equal(plans[0].length, plans[1].length);
    assert_memory_equal(plans[0].data, plans[1].data, plans[0].length);
    kelp_buf_deinit(&plans[0]);
    kelp_buf_deinit(&plans[1]);
}

static void builds_of_models_are_reproducible(void **state) {
    (void)state;
    check_model(MODELS "mlp_f32.onnx", dims(2, 1, 6, 0, 0), dims(2, 8, 6, 0, 0),
                dims(2, 64, 6, 0, 0));
    check_model(KELP_SOURCE_DIR "/examples/models/digits/1/model.onnx", dims(4, 1, 1, 8, 8),
                dims(4, 4, 1, 8, 8), dims(4, 16, 1, 8, 8));
    check_model(MODELS "dynamic_reshape.onnx", dims(3, 1, 1, 12, 0), dims(3, 2, 5, 12, 0),
                dims(3, 4, 9, 12, 0));
    check_model(MODELS "conv_pool.onnx", dims(4, 1, 3, 16, 16), dims(4, 2, 3, 24, 32),
                dims(4, 4, 3, 32, 48));
}

static void network_of_a_model_can_be_read(void **state) {
    (void)state;
    build b;
    parse_begin(&b);
    check_ok(trt_parse_file(library, b.log, b.parser, MODELS "mlp_f32.onnx"));
    assert_int_equal(trt_network_get_nb_inputs(b.m, b.network), 1);
    trt_tensor *x = trt_network_get_input(b.m, b.network, 0);
    trt_dims shape = trt_tensor_get_dimensions(b.m, x);
    assert_string_equal(trt_tensor_get_name(b.m, x), "x");
    assert_int_equal(trt_tensor_get_type(b.m, x), TRT_DATA_TYPE_FLOAT);
    assert_int_equal(shape.rank, 2);
    assert_int_equal(shape.d[0], -1);
    assert_int_equal(shape.d[1], 6);
    assert_string_equal(trt_tensor_get_dimension_name(b.m, x, 0), "batch");
    assert_true(trt_network_get_nb_layers(b.m, b.network) >= 3);
    build_end(&b);
}

static void model_from_bytes_reads_its_external_data(void **state) {
    (void)state;
    build b;
    kelp_buf bytes;
    kelp_buf_init(&bytes, kelp_allocator_system());
    check_ok(kelp_fs_read(MODELS "external_data.onnx", 0, &bytes));
    parse_begin(&b);
    check_ok(
        trt_parse(library, b.log, b.parser, bytes.data, bytes.length, MODELS "external_data.onnx"));
    kelp_buf_deinit(&bytes);
    build_end(&b);
}

static void errors_name_the_node(void **state) {
    (void)state;
    build b;
    parse_begin(&b);
    expect_failure(trt_parse_file(library, b.log, b.parser, MODELS "custom_op.onnx"),
                   KELP_UNIMPLEMENTED, "node 1 'mine' (Twice): unknown operator: ");
    build_end(&b);
    parse_begin(&b);
    expect_failure(trt_parse(library, b.log, b.parser, "not a model", 11, NULL),
                   KELP_INVALID_ARGUMENT, "not a model: ");
    build_end(&b);
    parse_begin(&b);
    expect_failure(trt_parse_file(library, b.log, b.parser, MODELS "no such file.onnx"),
                   KELP_INVALID_ARGUMENT, "no such file.onnx");
    build_end(&b);
}

typedef struct parts {
    int count;
    int64_t nodes[8];
} parts;

static void keep_part(void *userp, bool certain, const int64_t *nodes, int64_t count) {
    parts *p = userp;
    (void)certain;
    for (int64_t i = 0; i < count && p->count < 8; i++)
        p->nodes[p->count++] = nodes[i];
}

static void unsupported_subgraphs_are_listed(void **state) {
    (void)state;
    build b;
    kelp_buf bytes;
    parts found = {0};
    bool all = true;
    char *reasons = NULL;
    kelp_buf_init(&bytes, kelp_allocator_system());
    check_ok(kelp_fs_read(MODELS "custom_op.onnx", 0, &bytes));
    parse_begin(&b);
    assert_true(trt_parser_supports_operator(b.m, b.parser, "Conv"));
    assert_false(trt_parser_supports_operator(b.m, b.parser, "Twice"));
    check_ok(trt_supports_model(library, b.log, b.builder, bytes.data, bytes.length,
                                MODELS "custom_op.onnx", keep_part, &found, &all, &reasons));
    /* Abs, Twice, Neg */
    assert_false(all);
    assert_int_equal(found.count, 2);
    assert_int_equal(found.nodes[0], 0);
    assert_int_equal(found.nodes[1], 2);
    assert_non_null(strstr(reasons, "node 1 'mine' (Twice): unknown operator"));
    kelp_free_string(kelp_allocator_system(), reasons);
    kelp_buf_clear(&bytes);
    check_ok(kelp_fs_read(MODELS "mlp_f32.onnx", 0, &bytes));
    check_ok(trt_supports_model(library, b.log, b.builder, bytes.data, bytes.length,
                                MODELS "mlp_f32.onnx", NULL, NULL, &all, &reasons));
    assert_true(all);
    assert_string_equal(reasons, "");
    kelp_free_string(kelp_allocator_system(), reasons);
    kelp_buf_deinit(&bytes);
    build_end(&b);
}

int run_onnx_tests(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(network_of_a_model_can_be_read),
        cmocka_unit_test(builds_of_models_are_reproducible),
        cmocka_unit_test(model_from_bytes_reads_its_external_data),
        cmocka_unit_test(errors_name_the_node),
        cmocka_unit_test(unsupported_subgraphs_are_listed),
    };
    return cmocka_run_group_tests_name("onnx", tests, NULL, NULL);
}
