/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Engines built ahead of time on NVIDIA's TensorRT-RTX, on a machine without a GPU, through tables
 * of methods only. Without the library: skipped (77), with the paths that were tried.
 */
#include "fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "support/check_status.h"

/* ---- networks ---- */
static void dynamic_batch_builds_with_two_profiles(void **state) {
    (void)state;
    build one, two;
    size_t first, second;
    build_begin(&one);
    add_dense(&one, TRT_DATA_TYPE_FLOAT, 16, 8);
    add_profile(&one, "x", dims(2, 1, 16, 0, 0), dims(2, 4, 16, 0, 0), dims(2, 32, 16, 0, 0));
    build_engine(&one);
    engine_data(&one, &first);
    assert_true(first > 1000);
    build_begin(&two);
    add_dense(&two, TRT_DATA_TYPE_FLOAT, 16, 8);
    add_profile(&two, "x", dims(2, 1, 16, 0, 0), dims(2, 1, 16, 0, 0), dims(2, 1, 16, 0, 0));
    add_profile(&two, "x", dims(2, 1, 16, 0, 0), dims(2, 8, 16, 0, 0), dims(2, 64, 16, 0, 0));
    assert_int_equal(trt_config_get_nb_optimization_profiles(two.m, two.config), 2);
    build_engine(&two);
    engine_data(&two, &second);
    assert_true(second > first);
    build_end(&two);
    build_end(&one);
}

static void builds_are_reproducible(void **state) {
    (void)state;
    build b[2];
    size_t size[2];
    const uint8_t *data[2];
    for (int i = 0; i < 2; i++) {
        build_begin(&b[i]);
        add_dense(&b[i], TRT_DATA_TYPE_FLOAT, 16, 8);
        add_profile(&b[i], "x", dims(2, 1, 16, 0, 0), dims(2, 4, 16, 0, 0), dims(2, 8, 16, 0, 0));
        build_engine(&b[i]);
        data[i] = engine_data(&b[i], &size[i]);
    }
    assert_int_equal(size[0], size[1]);
    assert_memory_equal(data[0], data[1], size[0]);
    build_end(&b[0]);
    build_end(&b[1]);
}

static void missing_profile_is_reported(void **state) {
    (void)state;
    build b;
    build_begin(&b);
    add_dense(&b, TRT_DATA_TYPE_FLOAT, 16, 8);
    expect_failure(trt_build(library, b.log, b.builder, b.network, b.config, NULL, &b.engine),
                   KELP_INVALID_ARGUMENT, "profile");
    build_end(&b);
}

/* An invalid layer: the message of the library names the defect. */
static void invalid_layer_is_reported(void **state) {
    (void)state;
    build b;
    build_begin(&b);
    trt_dims wide = dims(2, 4, 16, 0, 0), odd = dims(2, 5, 3, 0, 0);
    trt_tensor *x = trt_network_add_input(b.m, b.network, "x", TRT_DATA_TYPE_FLOAT, &wide);
    trt_tensor *y = trt_network_add_input(b.m, b.network, "y", TRT_DATA_TYPE_FLOAT, &odd);
    trt_matrix_multiply_layer *product = trt_network_add_matrix_multiply(
        b.m, b.network, x, TRT_MATRIX_OPERATION_NONE, y, TRT_MATRIX_OPERATION_NONE);
    expect_failure(
        trt_check_layer(library, b.log, trt_as_layer(product), "a product"), KELP_INVALID_ARGUMENT,
        "cannot add a product of 'x' [4,16], 'y' [5,3]: ITensor::getDimensions: Error Code 4: API "
        "Usage Error ((Unnamed Layer* 0) [Matrix Multiply]: last dimension of input0 = 16");
    /* A second input with the same name. */
    assert_null(trt_network_add_input(b.m, b.network, "x", TRT_DATA_TYPE_FLOAT, &wide));
    expect_failure(trt_check_layer(library, b.log, NULL, "an input"), KELP_INVALID_ARGUMENT,
                   "cannot add an input: INetworkDefinition::addInput");
    build_end(&b);
}

/* ---- compute capabilities ---- */
static void build_for(const int *capabilities, size_t count, trt_data_type type) {
    build b;
    size_t size;
    build_begin(&b);
    add_dense(&b, type, 16, 8);
    add_profile(&b, "x", dims(2, 1, 16, 0, 0), dims(2, 4, 16, 0, 0), dims(2, 32, 16, 0, 0));
    check_ok(trt_set_compute_capabilities(library, b.log, b.config, capabilities, count));
    assert_int_equal(trt_config_get_nb_compute_capabilities(b.m, b.config), count);
    build_engine(&b);
    assert_memory_equal(engine_data(&b, &size), "vtrt", 4);
    build_end(&b);
}

static void several_compute_capabilities_build(void **state) {
    (void)state;
    const int ampere[] = {86}, ada[] = {89}, blackwell[] = {121}, turing[] = {75};
    const int many[] = {80, 86, 89, 120};
    build_for(ampere, 1, TRT_DATA_TYPE_FLOAT);
    build_for(ada, 1, TRT_DATA_TYPE_FLOAT);
    build_for(blackwell, 1, TRT_DATA_TYPE_FLOAT);
    build_for(many, 4, TRT_DATA_TYPE_FLOAT);
    build_for(turing, 1, TRT_DATA_TYPE_HALF);
}

static void invalid_compute_capabilities_are_reported(void **state) {
    (void)state;
    needs_no_gpu(); /* "current" is invalid */
    const int turing[] = {75}, current[] = {TRT_COMPUTE_CAPABILITY_CURRENT}, unknown[] = {42};
    build b;
    build_begin(&b);
    add_dense(&b, TRT_DATA_TYPE_FLOAT, 16, 8);
    add_profile(&b, "x", dims(2, 1, 16, 0, 0), dims(2, 4, 16, 0, 0), dims(2, 32, 16, 0, 0));
    check_ok(trt_set_compute_capabilities(library, b.log, b.config, turing, 1));
    kelp_status *status =
        trt_build(library, b.log, b.builder, b.network, b.config, NULL, &b.engine);
    if (library->version >= 10700)
        expect_failure(status, KELP_INTERNAL, "FP32 GEMM is not supported");
    else
        check_ok(status);
    trt_destroy(b.engine);
    b.engine = NULL;
    /* The current GPU, which does not exist. */
    status = trt_set_compute_capabilities(library, b.log, b.config, current, 1);
    if (status == NULL)
        status = trt_build(library, b.log, b.builder, b.network, b.config, NULL, &b.engine);
    expect_failure(status, KELP_UNAVAILABLE, "Cuda Runtime");
    expect_failure(trt_set_compute_capabilities(library, b.log, b.config, unknown, 1),
                   KELP_INVALID_ARGUMENT, "4.2");
    build_end(&b);
}

/* ---- flags ---- */
static kelp_status *build_with_flag(trt_builder_flag flag) {
    build b;
    build_begin(&b);
    add_dense(&b, TRT_DATA_TYPE_FLOAT, 16, 8);
    add_profile(&b, "x", dims(2, 1, 16, 0, 0), dims(2, 4, 16, 0, 0), dims(2, 32, 16, 0, 0));
    trt_config_set_flag(b.m, b.config, flag);
    assert_true(trt_config_get_flag(b.m, b.config, flag));
    kelp_status *status =
        trt_build(library, b.log, b.builder, b.network, b.config, NULL, &b.engine);
    build_end(&b);
    return status;
}

static void flags_that_need_no_gpu_build(void **state) {
    (void)state;
    check_ok(build_with_flag(TRT_BUILDER_FLAG_REFIT_INDIVIDUAL));
    check_ok(build_with_flag(TRT_BUILDER_FLAG_WEIGHT_STREAMING));
    check_ok(build_with_flag(TRT_BUILDER_FLAG_MONITOR_MEMORY));
}

static void flags_that_need_a_gpu_are_reported(void **state) {
    (void)state;
    needs_no_gpu();
    expect_failure(build_with_flag(TRT_BUILDER_FLAG_REFIT), KELP_INTERNAL, "CUDA");
    expect_failure(build_with_flag(TRT_BUILDER_FLAG_STRIP_PLAN), KELP_INTERNAL, "CUDA");
    expect_failure(build_with_flag(TRT_BUILDER_FLAG_VERSION_COMPATIBLE), KELP_UNAVAILABLE, "lean");
}

static void limits_can_be_read_back(void **state) {
    (void)state;
    build b;
    build_begin(&b);
    trt_config_set_memory_pool_limit(b.m, b.config, TRT_MEMORY_POOL_TYPE_WORKSPACE, 1u << 20);
    assert_int_equal(
        trt_config_get_memory_pool_limit(b.m, b.config, TRT_MEMORY_POOL_TYPE_WORKSPACE), 1 << 20);
    trt_config_set_builder_optimization_level(b.m, b.config, 2);
    assert_int_equal(trt_config_get_builder_optimization_level(b.m, b.config), 2);
    assert_true(trt_builder_set_max_threads(b.m, b.builder, 2));
    assert_int_equal(trt_builder_get_max_threads(b.m, b.builder), 2);
    build_end(&b);
}

/* ---- progress ---- */
typedef struct seen {
    int phases, finished, steps, stop_after;
    bool nested;
} seen;

static void phase_starts(void *userp, const char *phase, const char *parent, int32_t steps) {
    seen *s = userp;
    assert_non_null(phase);
    assert_true(steps >= 0);
    s->phases++;
    s->nested = s->nested || parent != NULL;
}

static bool step_done(void *userp, const char *phase, int32_t step) {
    seen *s = userp;
    (void)phase, (void)step;
    return ++s->steps != s->stop_after;
}

static void phase_ends(void *userp, const char *phase) {
    (void)phase;
    ((seen *)userp)->finished++;
}

static kelp_status *build_watched(seen *s) {
    build b;
    trt_progress progress;
    build_begin(&b);
    add_dense(&b, TRT_DATA_TYPE_FLOAT, 16, 8);
    add_profile(&b, "x", dims(2, 1, 16, 0, 0), dims(2, 4, 16, 0, 0), dims(2, 32, 16, 0, 0));
    trt_progress_init(&progress);
    progress.start = phase_starts;
    progress.step = step_done;
    progress.finish = phase_ends;
    progress.userp = s;
    kelp_status *status =
        trt_build(library, b.log, b.builder, b.network, b.config, &progress, &b.engine);
    build_end(&b);
    return status;
}

static void progress_is_reported_and_cancels(void **state) {
    (void)state;
    seen whole = {0}, cut = {.stop_after = 1};
    check_ok(build_watched(&whole));
    assert_true(whole.phases > 1 && whole.steps > 1 && whole.nested);
    assert_int_equal(whole.phases, whole.finished);
    expect_failure(build_watched(&cut), KELP_CANCELLED, "cancelled");
    assert_true(cut.steps < whole.steps);
}

/* ---- running without a GPU ---- */
static void loading_without_a_gpu_is_reported(void **state) {
    (void)state;
    needs_no_gpu();
    build b;
    size_t size;
    trt_runtime *runtime;
    trt_engine *engine = NULL;
    build_begin(&b);
    add_dense(&b, TRT_DATA_TYPE_FLOAT, 16, 8);
    add_profile(&b, "x", dims(2, 1, 16, 0, 0), dims(2, 4, 16, 0, 0), dims(2, 32, 16, 0, 0));
    build_engine(&b);
    const uint8_t *data = engine_data(&b, &size);
    check_ok(trt_create_runtime(library, b.log, &runtime));
    assert_int_equal(trt_runtime_get_engine_header_size(b.m, runtime), 64);
    uint64_t diagnostics = 99;
    assert_int_equal(
        trt_runtime_get_engine_validity(b.m, runtime, data, (int64_t)size, &diagnostics),
        TRT_ENGINE_VALIDITY_INVALID);
    expect_failure(trt_deserialize(library, b.log, runtime, data, size, &engine), KELP_UNAVAILABLE,
                   "Cuda Runtime");
    expect_failure(trt_deserialize(library, b.log, runtime, data, 10, &engine), KELP_INTERNAL,
                   "bufferSize >= minBufferSize");
    expect_failure(trt_deserialize(library, b.log, runtime, data + 8, size - 8, &engine),
                   KELP_INVALID_ARGUMENT, "incompatible serialization version");
    trt_destroy(runtime);
    build_end(&b);
}

/* ---- the library ---- */
static void library_describes_itself(void **state) {
    (void)state;
    char text[4200];
    trt_library_describe(library, text, sizeof text);
    assert_non_null(strstr(text, "TensorRT"));
    assert_non_null(library->parser_path);
    assert_null(library->parser_reason);
    assert_int_equal(library->methods->flavor, library->flavor);
}

static void tables_of_another_version_can_be_forced(void **state) {
    (void)state;
    trt_library *again = NULL;
    trt_library_options options = {.path = library->path, .table = "rtx-1.6"};
    check_ok(trt_library_open(kelp_allocator_system(), &options, &again));
    assert_string_equal(again->methods->name, "rtx-1.6");
    expect_failure(trt_require(again, TRT_M_engine_create_weights_manager), KELP_UNIMPLEMENTED,
                   "does not support ICudaEngine::createWeightsManager (supported by: rtx-1.7)");
    trt_library_destroy(again);
    options.table = "enterprise-11.4";
    expect_failure(trt_library_open(kelp_allocator_system(), &options, &again), KELP_NOT_FOUND,
                   "are for another library");
    options.table = "rtx-0.1";
    expect_failure(trt_library_open(kelp_allocator_system(), &options, &again), KELP_NOT_FOUND,
                   "unknown tables 'rtx-0.1'");
}

int run_network_tests(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(library_describes_itself),
        cmocka_unit_test(tables_of_another_version_can_be_forced),
        cmocka_unit_test(dynamic_batch_builds_with_two_profiles),
        cmocka_unit_test(builds_are_reproducible),
        cmocka_unit_test(missing_profile_is_reported),
        cmocka_unit_test(invalid_layer_is_reported),
        cmocka_unit_test(several_compute_capabilities_build),
        cmocka_unit_test(invalid_compute_capabilities_are_reported),
        cmocka_unit_test(flags_that_need_no_gpu_build),
        cmocka_unit_test(flags_that_need_a_gpu_are_reported),
        cmocka_unit_test(limits_can_be_read_back),
        cmocka_unit_test(progress_is_reported_and_cancels),
        cmocka_unit_test(loading_without_a_gpu_is_reported),
    };
    return cmocka_run_group_tests_name("networks", tests, NULL, NULL);
}

/* ---- the runtime of the enterprise library, which needs a GPU at creation ---- */
static void enterprise_without_a_gpu_is_reported(void **state) {
    (void)state;
    needs_no_gpu();
    trt_log *log;
    trt_runtime *runtime;
    trt_builder *builder;
    assert_string_equal(library->methods->name, "enterprise-11.4");
    check_ok(trt_log_create(kelp_allocator_system(), TRT_SEVERITY_VERBOSE, NULL, NULL, &log));
    expect_failure(trt_create_runtime(library, log, &runtime), KELP_UNAVAILABLE,
                   "CUDA initialization failure");
    assert_null(runtime);
    expect_failure(trt_create_builder(library, log, &builder), KELP_UNIMPLEMENTED,
                   "can only run engines");
    expect_failure(
        trt_require(library, TRT_M_runtime_cache_serialize), KELP_UNIMPLEMENTED,
        "TensorRT 11.4.0 does not support IRuntimeCache::serialize (supported by: rtx-1.5, "
        "rtx-1.6, rtx-1.7)");
    trt_log_destroy(log);
}

static int run_enterprise_tests(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(enterprise_without_a_gpu_is_reported)};
    return cmocka_run_group_tests_name("enterprise", tests, NULL, NULL);
}

int main(void) {
    kelp_status *status = trt_library_open(kelp_allocator_system(), NULL, &library);
    if (status != NULL) {
        bool absent = kelp_status_code(status) == KELP_NOT_FOUND;
        printf("%s: %s\n", absent ? "skipped" : "failed", kelp_status_message(status));
        kelp_status_free(status);
        return absent ? 77 : 1;
    }
    char text[4200];
    trt_library_describe(library, text, sizeof text);
    printf("%s\n", text);
    int failed = library->flavor == TRT_FLAVOR_ENTERPRISE
                     ? run_enterprise_tests()
                     : run_network_tests() + run_layer_tests() + run_onnx_tests();
    trt_library_destroy(library);
    return failed != 0;
}
