/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The provider `tensorrt` through the public interface, with NVIDIA's TensorRT-RTX and without a
 * GPU: plans are built ahead of time, and functions that need a device fail with NVIDIA's message.
 * Without the library: skipped (77), with the searched paths.
 */
#include "provider_fixture.h"

#include <kelp/engine_provider.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#define MODELS KELP_SOURCE_DIR "/tests/data/models/"

static kelp_runtime *probe; /* of main */
static bool has_gpu;

static float numbers[4096]; /* weights must remain valid as long as their network */

/* y = relu(x * w + b), x [-1, 16]. */
static void add_dense(bench *b) {
    kelp_layer *w = NULL, *bias = NULL, *product = NULL, *sum = NULL, *relu = NULL;
    kelp_net_tensor *x = NULL;
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        numbers[i] = (float)((i * 37 + 11) % 101) / 101.0f - 0.5f;
    check_ok(kelp_network_add_input(b->network, "x", KELP_F32, shape(2, -1, 16, 0, 0), &x));
    check_ok(kelp_network_add_constant(b->network, shape(2, 16, 8, 0, 0),
                                       (kelp_weights){KELP_F32, numbers, 128, "w"}, &w));
    check_ok(kelp_network_add_constant(b->network, shape(2, 1, 8, 0, 0),
                                       (kelp_weights){KELP_F32, numbers + 7, 8, "b"}, &bias));
    check_ok(kelp_network_add_matrix_multiply(b->network, x, KELP_MATRIX_NONE,
                                              kelp_layer_output(w, 0), KELP_MATRIX_NONE, &product));
    check_ok(kelp_network_add_elementwise(b->network, kelp_layer_output(product, 0),
                                          kelp_layer_output(bias, 0), KELP_ELEMENTWISE_SUM, &sum));
    check_ok(kelp_network_add_activation(b->network, kelp_layer_output(sum, 0),
                                         KELP_ACTIVATION_RELU, 0.0f, 0.0f, &relu));
    check_ok(kelp_layer_set_name(product, "product"));
    check_ok(kelp_net_tensor_set_name(kelp_layer_output(relu, 0), "y"));
    check_ok(kelp_network_mark_output(b->network, kelp_layer_output(relu, 0)));
}

static void add_profile(bench *b, const char *input, kelp_shape min, kelp_shape opt,
                        kelp_shape max) {
    size_t index = 0;
    const kelp_shape ends[] = {min, opt, max};
    check_ok(kelp_builder_config_add_profile(b->config, &index));
    for (int i = 0; i < 3; i++)
        check_ok(kelp_builder_config_set_profile_shape(
            b->config, index, input, (kelp_profile_selector)i, ends[i].rank, ends[i].d));
}

static void add_batch(bench *b, int64_t most) {
    add_profile(b, "x", shape(2, 1, 16, 0, 0), shape(2, most / 2 + 1, 16, 0, 0),
                shape(2, most, 16, 0, 0));
}

static kelp_status *build(bench *b) {
    return kelp_builder_build(b->builder, b->network, b->config, &b->plan);
}

/* ---- networks ---- */
static void dynamic_batch_builds_with_two_profiles(void **state) {
    (void)state;
    bench one, two;
    bench_open(&one);
    add_dense(&one);
    add_batch(&one, 32);
    bench_build(&one);
    bench_open(&two);
    add_dense(&two);
    add_batch(&two, 1);
    add_batch(&two, 64);
    bench_build(&two);
    assert_true(kelp_blob_size(two.plan) > kelp_blob_size(one.plan));
    bench_close(&two);
    bench_close(&one);
}

static void missing_profile_is_reported(void **state) {
    (void)state;
    bench b;
    bench_open(&b);
    add_dense(&b);
    expect_failure(build(&b), KELP_FAILED_PRECONDITION, "profile");
    bench_close(&b);
}

/* Checks that only NVIDIA's library does: its message, with the name of the layer. */
static void invalid_layer_is_reported(void **state) {
    (void)state;
    bench b;
    kelp_net_tensor *x = NULL;
    kelp_layer *layer = NULL;
    bench_open(&b);
    check_ok(kelp_network_add_input(b.network, "x", KELP_F64, shape(2, 4, 16, 0, 0), &x));
    check_ok(kelp_network_add_identity(b.network, x, &layer));
    check_ok(kelp_network_mark_output(b.network, kelp_layer_output(layer, 0)));
    kelp_status *status = build(&b);
    assert_int_equal(kelp_status_domain(status), KELP_DOMAIN_NETWORK);
    expect_failure(status, KELP_UNIMPLEMENTED, "'x': TensorRT does not support type");
    bench_close(&b);
    bench_open(&b);
    check_ok(kelp_network_add_input(b.network, "x", KELP_I32, shape(2, 4, 16, 0, 0), &x));
    check_ok(kelp_network_add_unary(b.network, x, KELP_UNARY_ABS, &layer));
    check_ok(kelp_network_mark_output(b.network, x));
    check_ok(kelp_network_mark_output(b.network, kelp_layer_output(layer, 0)));
    expect_failure(build(&b), KELP_UNIMPLEMENTED, "'x' is both an input and an output");
    bench_close(&b);
}

/* ---- models ---- */
static void bench_model(bench *b, const char *path) {
    bench_open(b);
    kelp_network_release(b->network);
    b->network = NULL;
    check_ok(kelp_builder_parse_file(b->builder, path, &b->network));
}

static void models_build(void **state) {
    (void)state;
    static const struct {
        const char *path, *input;
        kelp_shape min, opt, max;
    } models[] = {
        {MODELS "mlp_f32.onnx", "x", {2, {1, 6}}, {2, {8, 6}}, {2, {64, 6}}},
        {MODELS "conv_pool.onnx",
         NULL,
         {4, {1, 3, 16, 16}},
         {4, {2, 3, 24, 32}},
         {4, {4, 3, 32, 48}}},
        {MODELS "dynamic_reshape.onnx", NULL, {3, {1, 1, 12}}, {3, {2, 5, 12}}, {3, {4, 9, 12}}},
        {KELP_SOURCE_DIR "/examples/models/digits/1/model.onnx",
         NULL,
         {4, {1, 1, 8, 8}},
         {4, {4, 1, 8, 8}},
         {4, {16, 1, 8, 8}}},
    };
    for (size_t i = 0; i < sizeof models / sizeof *models; i++) {
        bench b;
        bench_model(&b, models[i].path);
        assert_true(kelp_builder_supports(b.builder, b.network, NULL));
        const char *name = kelp_net_tensor_name(kelp_network_input(b.network, 0));
        if (models[i].input != NULL)
            assert_string_equal(name, models[i].input);
        add_profile(&b, name, models[i].min, models[i].opt, models[i].max);
        bench_build(&b);
        bench_close(&b);
    }
}

static void layers_can_be_added_after_a_model(void **state) {
    (void)state;
    bench b;
    kelp_layer *layer = NULL;
    bench_model(&b, MODELS "mlp_f32.onnx");
    kelp_net_tensor *y = kelp_network_output(b.network, 0);
    check_ok(kelp_network_unmark_output(b.network, y));
    check_ok(kelp_network_add_unary(b.network, y, KELP_UNARY_EXP, &layer));
    check_ok(kelp_net_tensor_set_name(kelp_layer_output(layer, 0), "exp"));
    check_ok(kelp_network_mark_output(b.network, kelp_layer_output(layer, 0)));
    add_profile(&b, "x", shape(2, 1, 6, 0, 0), shape(2, 8, 6, 0, 0), shape(2, 64, 6, 0, 0));
    bench_build(&b);
    bench_close(&b);
}

static size_t read_file(const char *path, char *out, size_t capacity) {
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    size_t length = fread(out, 1, capacity, file);
    fclose(file);
    return length;
}

static void model_from_bytes_builds(void **state) {
    (void)state;
    static char bytes[1 << 20];
    bench b;
    size_t length = read_file(MODELS "mlp_f32.onnx", bytes, sizeof bytes);
    bench_open(&b);
    kelp_network_release(b.network);
    b.network = NULL;
    check_ok(kelp_builder_parse_bytes(b.builder, bytes, length, "bytes", NULL, NULL, &b.network));
    add_profile(&b, "x", shape(2, 1, 6, 0, 0), shape(2, 8, 6, 0, 0), shape(2, 64, 6, 0, 0));
    bench_build(&b);
    bench_close(&b);
}

static void unsupported_nodes_are_listed(void **state) {
    (void)state;
    bench b;
    kelp_network *network = NULL;
    bench_open(&b);
    kelp_status *status = kelp_builder_parse_file(b.builder, MODELS "custom_op.onnx", &network);
    assert_int_equal(kelp_status_domain(status), KELP_DOMAIN_NETWORK);
    expect_failure(status, KELP_UNIMPLEMENTED, "node 1 'mine' (Twice): unknown operator");
    expect_failure(kelp_builder_parse_file(b.builder, MODELS "no such file.onnx", &network),
                   KELP_NOT_FOUND, "no such file.onnx");
    bench_close(&b);
}

/* ---- the same bytes ---- */
/* In a child, so that both builds start from the same memory: the order of what NVIDIA's builder
 * writes follows the addresses of its objects. */
static void build_in_child(const char *out) {
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        bench b;
        bench_model(&b, MODELS "conv_pool.onnx");
        add_profile(&b, kelp_net_tensor_name(kelp_network_input(b.network, 0)),
                    shape(4, 1, 3, 16, 16), shape(4, 2, 3, 24, 32), shape(4, 4, 3, 32, 48));
        kelp_status *status = build(&b);
        if (status == NULL)
            status = kelp_blob_save(b.plan, out);
        _exit(status != NULL);
    }
    int code = -1;
    assert_int_equal(waitpid(child, &code, 0), child);
    assert_true(WIFEXITED(code) && WEXITSTATUS(code) == 0);
}

static void builds_are_reproducible(void **state) {
    (void)state;
    static char first[4 << 20], second[4 << 20];
    build_in_child("first.plan");
    build_in_child("second.plan");
    size_t length = read_file("first.plan", first, sizeof first);
    assert_true(length > 100000 && length < sizeof first);
    assert_int_equal(read_file("second.plan", second, sizeof second), length);
    assert_memory_equal(first, second, length);
    unlink("first.plan");
    unlink("second.plan");
}

/* ---- configurations ---- */
static void several_compute_capabilities_build(void **state) {
    (void)state;
    static const int sets[][4] = {{86}, {89}, {121}, {80, 86, 89, 120}};
    for (size_t i = 0; i < sizeof sets / sizeof *sets; i++) {
        bench b;
        bench_open(&b);
        add_dense(&b);
        add_batch(&b, 32);
        for (int k = 0; k < 4 && sets[i][k] != 0; k++)
            check_ok(kelp_builder_config_add_compute_capability(b.config, sets[i][k]));
        bench_build(&b);
        bench_close(&b);
    }
}

static void invalid_compute_capabilities_are_reported(void **state) {
    (void)state;
    bench b;
    bench_open(&b);
    add_dense(&b);
    add_batch(&b, 32);
    check_ok(kelp_builder_config_add_compute_capability(b.config, 42));
    kelp_status *status = build(&b);
    assert_int_equal(kelp_status_domain(status), KELP_DOMAIN_PARAMETER);
    expect_failure(status, KELP_INVALID_ARGUMENT, "4.2");
    /* NVIDIA's number of the current GPU is not a valid compute capability. */
    expect_failure(kelp_builder_config_add_compute_capability(b.config, 1), KELP_INVALID_ARGUMENT,
                   "10 * major + minor");
    bench_close(&b);
}

static kelp_status *build_with(uint32_t flags, const char *refittable) {
    bench b;
    bench_open(&b);
    add_dense(&b);
    add_batch(&b, 32);
    if (refittable != NULL)
        check_ok(kelp_network_mark_refittable(b.network, refittable));
    check_ok(kelp_builder_config_set_flags(b.config, flags));
    kelp_status *status = build(&b);
    bench_close(&b);
    return status;
}

static void flags_that_need_no_gpu_build(void **state) {
    (void)state;
    check_ok(build_with(KELP_BUILD_WEIGHT_STREAMING, NULL));
    check_ok(build_with(KELP_BUILD_MONITOR_MEMORY | KELP_BUILD_DETAILED | KELP_BUILD_TF32, NULL));
    expect_failure(build_with(KELP_BUILD_REFIT_INDIVIDUAL, NULL), KELP_FAILED_PRECONDITION,
                   "flag REFIT_INDIVIDUAL has no effect: no weights of network");
    expect_failure(build_with(KELP_BUILD_REFIT_INDIVIDUAL, "none of them"), KELP_NOT_FOUND,
                   "no refittable weights 'none of them'");
}

static void flags_that_need_a_gpu_are_reported(void **state) {
    (void)state;
    if (has_gpu)
        skip();
    expect_failure(build_with(KELP_BUILD_REFIT, NULL), KELP_INTERNAL, "CUDA");
    expect_failure(build_with(KELP_BUILD_REFIT_INDIVIDUAL, "w"), KELP_INTERNAL, "CUDA");
    expect_failure(build_with(KELP_BUILD_STRIP_WEIGHTS, NULL), KELP_INTERNAL, "CUDA");
    expect_failure(build_with(KELP_BUILD_VERSION_COMPATIBLE, NULL), KELP_UNAVAILABLE, "lean");
}

static void unsupported_features_fail(void **state) {
    (void)state;
    bench b;
    bench_open(&b);
    add_dense(&b);
    add_batch(&b, 32);
    expect_failure(kelp_builder_config_set_flags(b.config, KELP_BUILD_BF16), KELP_UNIMPLEMENTED,
                   "'tensorrt' does not support builder flag BF16");
    check_ok(kelp_builder_config_set_memory_limit(b.config, KELP_POOL_WORKSPACE, 64 << 20));
    check_ok(kelp_builder_config_set_optimization_level(b.config, 2));
    bench_build(&b);
    bench_close(&b);
}

/* An input that determines a shape: the profile limits its values. */
static void value_profiles_build(void **state) {
    (void)state;
    bench b;
    kelp_net_tensor *x = NULL;
    kelp_layer *layer = NULL;
    kelp_slice options = {.struct_size = sizeof options};
    size_t index = 0;
    bench_open(&b);
    check_ok(kelp_network_add_input(b.network, "x", KELP_F32, shape(1, 16, 0, 0, 0), &x));
    check_ok(
        kelp_network_add_input(b.network, "size", KELP_I64, shape(1, 1, 0, 0, 0), &options.size));
    check_ok(kelp_network_add_slice(b.network, x, shape(1, 0, 0, 0, 0), shape(1, 0, 0, 0, 0),
                                    shape(1, 1, 0, 0, 0), &options, &layer));
    check_ok(kelp_network_mark_output(b.network, kelp_layer_output(layer, 0)));
    check_ok(kelp_builder_config_add_profile(b.config, &index));
    for (int64_t i = 0; i < 3; i++) {
        const int64_t value = 1 + i * 4;
        check_ok(kelp_builder_config_set_profile_values(b.config, index, "size",
                                                        (kelp_profile_selector)i, &value, 1));
    }
    bench_build(&b);
    bench_close(&b);
}

/* ---- progress ---- */
typedef struct seen {
    int calls, nested, stop_after;
} seen;

static bool watch(void *userp, const char *phase, const char *parent, int step, int steps) {
    seen *s = userp;
    assert_non_null(phase);
    assert_true(step >= 0 && step <= steps);
    s->nested += parent != NULL;
    return ++s->calls != s->stop_after;
}

static void progress_is_reported_and_cancels(void **state) {
    (void)state;
    seen whole = {0};
    bench b;
    bench_open(&b);
    add_dense(&b);
    add_batch(&b, 32);
    kelp_builder_config_set_progress(b.config, watch, &whole);
    bench_build(&b);
    assert_true(whole.calls > 4 && whole.nested > 0);
    for (int after = 1; after <= whole.calls / 2; after += 2) {
        seen cut = {.stop_after = after};
        kelp_blob *plan = NULL;
        kelp_builder_config_set_progress(b.config, watch, &cut);
        expect_failure(kelp_builder_build(b.builder, b.network, b.config, &plan), KELP_CANCELLED,
                       "cancelled");
        assert_null(plan);
    }
    bench_close(&b);
}

/* ---- running ---- */
static void loading_without_a_gpu_is_reported(void **state) {
    (void)state;
    bench b;
    kelp_engine *engine = NULL;
    if (has_gpu)
        skip();
    bench_open(&b);
    add_dense(&b);
    add_batch(&b, 32);
    bench_build(&b);
    const char *data = kelp_blob_data(b.plan);
    kelp_status *status = kelp_engine_load(b.runtime, data, kelp_blob_size(b.plan), "dense.plan",
                                           NULL, NULL, &engine);
    assert_int_equal(kelp_status_domain(status), KELP_DOMAIN_DEVICE);
    expect_failure(status, KELP_UNAVAILABLE, "Cuda Runtime");
    status = kelp_engine_load(b.runtime, data, 10, "short.plan", NULL, NULL, &engine);
    assert_int_equal(kelp_status_domain(status), KELP_DOMAIN_RUNTIME);
    expect_failure(status, KELP_INTERNAL, "cannot load plan 'short.plan'");
    bench_close(&b);
}

/* Build, load and run, with a GPU that supports the plan. */
static void plan_runs_on_a_gpu(void **state) {
    (void)state;
    bench b;
    kelp_engine *engine = NULL;
    kelp_context *context = NULL;
    kelp_tensor x;
    float in[3 * 16];
    if (!has_gpu) {
        printf("skipped: a plan is not run, since there is no GPU\n");
        skip();
    }
    bench_open(&b);
    add_dense(&b);
    add_batch(&b, 32);
    bench_build(&b);
    check_ok(kelp_engine_load(b.runtime, kelp_blob_data(b.plan), kelp_blob_size(b.plan), "dense",
                              NULL, NULL, &engine));
    check_ok(kelp_context_create(engine, &context));
    for (int i = 0; i < 48; i++)
        in[i] = (float)i / 48.0f;
    const int64_t dims[] = {3, 16};
    check_ok(kelp_tensor_init(&x, KELP_F32, 2, dims, in));
    check_ok(kelp_context_set_input(context, 0, &x));
    check_ok(kelp_context_invoke(context));
    const kelp_tensor *y = kelp_context_output(context, 0);
    assert_int_equal(y->shape[0], 3);
    assert_int_equal(y->shape[1], 8);
    for (int row = 0; row < 3; row++)
        for (int column = 0; column < 8; column++) {
            float sum = numbers[7 + column];
            for (int k = 0; k < 16; k++)
                sum += in[row * 16 + k] * numbers[k * 8 + column];
            sum = sum > 0.0f ? sum : 0.0f;
            float found = ((const float *)y->data)[row * 8 + column];
            assert_true(found - sum < 0.01f && sum - found < 0.01f);
        }
    kelp_context_destroy(context);
    kelp_engine_release(engine);
    bench_close(&b);
}

/* ---- installed library ---- */
static void collect(void *userp, const char *text, size_t length) {
    strncat(userp, text, length);
}

static const kelp_engine_provider *find_provider(const kelp_runtime *runtime) {
    for (size_t i = 0; i < kelp_engine_provider_count(runtime); i++)
        if (strcmp(kelp_engine_provider_at(runtime, i)->name, "tensorrt") == 0)
            return kelp_engine_provider_at(runtime, i);
    return NULL;
}

static void installed_library_is_described(void **state) {
    (void)state;
    char text[20000] = "";
    const kelp_engine_provider *provider = find_provider(probe);
    check_ok(provider->describe(provider->self, probe, collect, text));
    assert_non_null(strstr(text, "library    TensorRT"));
    assert_non_null(strstr(text, "parser "));
    assert_non_null(strstr(text, "driver "));
}

static int run_all(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(installed_library_is_described),
        cmocka_unit_test(dynamic_batch_builds_with_two_profiles),
        cmocka_unit_test(missing_profile_is_reported),
        cmocka_unit_test(invalid_layer_is_reported),
        cmocka_unit_test(models_build),
        cmocka_unit_test(layers_can_be_added_after_a_model),
        cmocka_unit_test(model_from_bytes_builds),
        cmocka_unit_test(unsupported_nodes_are_listed),
        cmocka_unit_test(builds_are_reproducible),
        cmocka_unit_test(several_compute_capabilities_build),
        cmocka_unit_test(invalid_compute_capabilities_are_reported),
        cmocka_unit_test(flags_that_need_no_gpu_build),
        cmocka_unit_test(flags_that_need_a_gpu_are_reported),
        cmocka_unit_test(unsupported_features_fail),
        cmocka_unit_test(value_profiles_build),
        cmocka_unit_test(progress_is_reported_and_cancels),
        cmocka_unit_test(loading_without_a_gpu_is_reported),
        cmocka_unit_test(plan_runs_on_a_gpu),
    };
    return cmocka_run_group_tests_name("provider tensorrt", tests, NULL, NULL);
}

/* With `absent`: there is no library, and the error is checked. */
static int run_absent(void) {
    kelp_builder *builder = NULL;
    char text[4000];
    kelp_status *status = kelp_builder_create(probe, "tensorrt", &builder);
    kelp_status_format(status, text, sizeof text);
    bool good = kelp_status_code(status) == KELP_UNAVAILABLE &&
                kelp_status_domain(status) == KELP_DOMAIN_BUILDER &&
                strstr(text, "docs/platforms.md") != NULL && strstr(text, "/nowhere") != NULL;
    printf("%s\n", text);
    kelp_status_free(status);
    return good ? 0 : 1;
}

int main(int argc, char **argv) {
    kelp_runtime_options options = {.struct_size = sizeof options, .threads = 1};
    kelp_builder *builder = NULL;
    kelp_status *status = kelp_runtime_create(&options, &probe);
    int failed = status != NULL;
    if (status == NULL && argc > 1 && strcmp(argv[1], "absent") == 0) {
        failed = run_absent();
    } else if (status == NULL) {
        status = kelp_builder_create(probe, "tensorrt", &builder);
        char text[20000] = "";
        const kelp_engine_provider *provider = find_provider(probe);
        if (status != NULL) {
            printf("skipped: %s\n", kelp_status_message(status));
            failed = 77;
        } else {
            kelp_status_free(provider->describe(provider->self, probe, collect, text));
            has_gpu = strstr(text, "device ") != NULL;
            failed = run_all() + run_layer_tests();
        }
    }
    kelp_status_free(status);
    kelp_builder_release(builder);
    if (probe != NULL)
        kelp_runtime_release(probe);
    return failed == 77 ? 77 : failed != 0;
}
