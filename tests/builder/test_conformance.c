/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Engine providers, one suite for each: images, inputs and outputs, bindings, profiles, runs,
 * streams, optional features, memory. The argument is the provider's name. Exits with 77 where the
 * provider is not available. Every provider builds y = relu(x) with two profiles of x; the provider
 * `null` returns zeros.
 */
#include "support.h"
#include "support/failing_allocator.h"

#include <kelp/engine_provider.h>

#include <stdio.h>

#define SKIPPED 77

static const char *provider;
static bool computes;        /* the results are relu(x) */
static bool on_host;         /* all of its memory is from the runtime's allocator */
static test_failing *memory; /* of the next runtime; NULL: the system's */

/* ---- the subject ---- */
static kelp_status *add_profile(kelp_builder_config *config, int64_t least, int64_t usual,
                                int64_t most) {
    const int64_t rows[3] = {least, usual, most};
    size_t index = 0;
    KELP_TRY(kelp_builder_config_add_profile(config, &index));
    for (int which = 0; which < 3; which++) {
        const int64_t shape[2] = {rows[which], 4};
        KELP_TRY(kelp_builder_config_set_profile_shape(config, index, "x",
                                                       (kelp_profile_selector)which, 2, shape));
    }
    return NULL;
}

static kelp_status *try_build(bench *b, kelp_blob **out_image) {
    kelp_net_tensor *x = NULL;
    kelp_layer *relu = NULL;
    kelp_runtime_options options = {.struct_size = sizeof options, .threads = 1};
    if (memory != NULL)
        options.allocator = test_failing_allocator(memory);
    KELP_TRY(kelp_runtime_create(&options, &b->runtime));
    KELP_TRY(kelp_builder_create(b->runtime, provider, &b->builder));
    KELP_TRY(kelp_builder_create_network(b->builder, &b->network));
    KELP_TRY(kelp_builder_create_config(b->builder, &b->config));
    KELP_TRY(kelp_network_add_input(b->network, "x", KELP_F32, dims(2, -1, 4), &x));
    KELP_TRY(kelp_network_add_activation(b->network, x, KELP_ACTIVATION_RELU, 0, 0, &relu));
    KELP_TRY(kelp_net_tensor_set_name(out_of(relu), "y"));
    KELP_TRY(kelp_network_mark_output(b->network, out_of(relu)));
    KELP_TRY(add_profile(b->config, 1, 2, 4));
    KELP_TRY(add_profile(b->config, 3, 4, 8));
    return kelp_builder_build(b->builder, b->network, b->config, out_image);
}

static void open_engine(bench *b) {
    kelp_blob *image = NULL;
    *b = (bench){0};
    check_ok(try_build(b, &image));
    check_ok(kelp_engine_load(b->runtime, kelp_blob_data(image), kelp_blob_size(image), "image",
                              free_plan, image, &b->engine));
    check_ok(kelp_context_create(b->engine, &b->context));
}

static void fill(float *x, size_t count) {
    for (size_t i = 0; i < count; i++)
        x[i] = i % 2 == 0 ? (float)i + 1 : -(float)i;
}

static void check_result(const float *x, const float *y, size_t count) {
    for (size_t i = 0; i < count; i++)
        assert_float_equal(y[i], computes && x[i] > 0 ? x[i] : 0, 0);
}

static void check_rows(const kelp_context *context, int64_t rows) {
    const kelp_tensor *y = kelp_context_output(context, 0);
    assert_int_equal(y->dtype, KELP_F32);
    assert_int_equal(y->rank, 2);
    assert_int_equal(y->shape[0], rows);
    assert_int_equal(y->shape[1], 4);
}

/* ---- images ---- */
static void images_are_recognized(void **state) {
    (void)state;
    bench b = {0};
    kelp_blob *image = NULL;
    kelp_engine *engine = NULL;
    static const char other[64] = "the image of some other provider";
    check_ok(try_build(&b, &image));
    assert_true(kelp_plan_is_known(b.runtime, kelp_blob_data(image), kelp_blob_size(image)));
    assert_false(kelp_plan_is_known(b.runtime, other, sizeof other));
    expect_failure(kelp_engine_load(b.runtime, other, sizeof other, "other", NULL, NULL, &engine),
                   KELP_INVALID_ARGUMENT, "other");
    kelp_blob_release(image);
    bench_close(&b);
}

static void count_release(void *userp) {
    ++*(int *)userp;
}

static void bytes_of_an_image_are_released_once(void **state) {
    (void)state;
    bench b = {0};
    kelp_blob *image = NULL;
    kelp_engine *engine = NULL;
    int released = 0;
    check_ok(try_build(&b, &image));
    const void *data = kelp_blob_data(image);
    check_ok(kelp_engine_load(b.runtime, data, kelp_blob_size(image), "image", count_release,
                              &released, &engine));
    kelp_engine_release(engine);
    assert_int_equal(released, 1);
    kelp_status *status =
        kelp_engine_load(b.runtime, data, 16, "cut short", count_release, &released, &engine);
    assert_non_null(status);
    kelp_status_free(status);
    assert_int_equal(released, 2);
    kelp_blob_release(image);
    bench_close(&b);
}

/* ---- inputs and outputs ---- */
static void inputs_and_outputs_are_described(void **state) {
    (void)state;
    bench b;
    open_engine(&b);
    assert_string_equal(kelp_engine_provider_name(b.engine), provider);
    assert_int_equal(kelp_engine_input_count(b.engine), 1);
    assert_int_equal(kelp_engine_output_count(b.engine), 1);
    const kelp_io_info *x = kelp_engine_input(b.engine, 0);
    assert_string_equal(x->name, "x");
    assert_int_equal(x->dtype, KELP_F32);
    assert_int_equal(x->rank, 2);
    assert_int_equal(x->shape[0], -1);
    assert_int_equal(x->shape[1], 4);
    assert_int_equal(kelp_engine_find_output(b.engine, "y"), 0);
    assert_true(kelp_engine_find_input(b.engine, "y") == SIZE_MAX);
    assert_null(kelp_engine_input(b.engine, 1));
    assert_null(kelp_context_output(b.context, 1));
    bench_close(&b);
}

static void wrong_bindings_are_rejected(void **state) {
    (void)state;
    bench b;
    float x[40] = {0};
    const int64_t wide[2] = {2, 5}, high[2] = {5, 4}, fits[2] = {2, 4};
    kelp_tensor tensor;
    open_engine(&b);
    check_ok(kelp_tensor_init(&tensor, KELP_I32, 2, fits, x));
    expect_failure(kelp_context_set_input(b.context, 0, &tensor), KELP_INVALID_ARGUMENT,
                   "input 'x' has the wrong type: expected float32, found int32");
    check_ok(kelp_tensor_init(&tensor, KELP_F32, 2, wide, x));
    expect_failure(kelp_context_set_input(b.context, 0, &tensor), KELP_INVALID_ARGUMENT,
                   "input 'x' has the wrong shape: expected [-1,4], found [2,5]");
    check_ok(kelp_tensor_init(&tensor, KELP_F32, 2, high, x));
    expect_failure(kelp_context_set_input(b.context, 0, &tensor), KELP_INVALID_ARGUMENT,
                   "profile 0: expected from [1,4] to [4,4], found [5,4]; profile 1 accepts it");
    check_ok(kelp_tensor_init(&tensor, KELP_F32, 2, fits, x));
    expect_failure(kelp_context_set_input(b.context, 1, &tensor), KELP_INVALID_ARGUMENT, "input 1");
    expect_failure(kelp_context_set_output(b.context, 1, x, sizeof x), KELP_INVALID_ARGUMENT,
                   "output 1");
    bench_close(&b);
}

static void unbound_inputs_are_rejected(void **state) {
    (void)state;
    bench b;
    kelp_capture *recording = NULL;
    open_engine(&b);
    expect_failure(kelp_context_prepare(b.context), KELP_FAILED_PRECONDITION, "input 'x'");
    expect_failure(kelp_context_invoke(b.context), KELP_FAILED_PRECONDITION, "is not bound");
    kelp_status *status = kelp_context_capture(b.context, &recording);
    if (kelp_status_code(status) != KELP_UNIMPLEMENTED)
        assert_int_equal(kelp_status_code(status), KELP_FAILED_PRECONDITION);
    kelp_status_free(status);
    bench_close(&b);
}

static void profiles_bound_shapes_and_unbind_inputs(void **state) {
    (void)state;
    bench b;
    kelp_shape shape;
    float x[32], y[32];
    open_engine(&b);
    assert_int_equal(kelp_engine_profile_count(b.engine), 2);
    assert_true(kelp_engine_profile_shape(b.engine, 1, 0, KELP_PROFILE_MAX, &shape));
    assert_int_equal(shape.d[0], 8);
    fill(x, 32);
    bind(b.context, 0, KELP_F32, dims(2, 2, 4), x);
    expect_failure(kelp_context_set_profile(b.context, 2), KELP_OUT_OF_RANGE, "the engine has 2");
    check_ok(kelp_context_set_profile(b.context, 1));
    expect_failure(kelp_context_invoke(b.context), KELP_FAILED_PRECONDITION, "is not bound");
    bind(b.context, 0, KELP_F32, dims(2, 8, 4), x);
    check_ok(kelp_context_set_output(b.context, 0, y, sizeof y));
    check_ok(kelp_context_invoke(b.context));
    check_rows(b.context, 8);
    check_result(x, y, 32);
    bench_close(&b);
}

/* ---- runs ---- */
static void prepare_computes_output_shapes(void **state) {
    (void)state;
    bench b;
    float x[12] = {0};
    open_engine(&b);
    for (int rows = 3; rows > 0; rows--) {
        bind(b.context, 0, KELP_F32, dims(2, rows, 4), x);
        check_ok(kelp_context_prepare(b.context));
        check_rows(b.context, rows);
        assert_null(kelp_context_output(b.context, 0)->data);
    }
    bench_close(&b);
}

static void bound_outputs_are_written(void **state) {
    (void)state;
    bench b;
    float x[8], y[8];
    open_engine(&b);
    fill(x, 8);
    bind(b.context, 0, KELP_F32, dims(2, 2, 4), x);
    check_ok(kelp_context_invoke(b.context)); /* the context's memory */
    check_rows(b.context, 2);
    check_result(x, kelp_context_output(b.context, 0)->data, 8);
    check_ok(kelp_context_set_output(b.context, 0, y, sizeof y));
    check_ok(kelp_context_invoke(b.context));
    assert_ptr_equal(kelp_context_output(b.context, 0)->data, y);
    check_result(x, y, 8);
    check_ok(kelp_context_set_output(b.context, 0, y, sizeof y - 1));
    expect_failure(kelp_context_invoke(b.context), KELP_OUT_OF_RANGE, "'y'");
    check_ok(kelp_context_set_output(b.context, 0, NULL, 0));
    check_ok(kelp_context_invoke(b.context));
    check_result(x, kelp_context_output(b.context, 0)->data, 8);
    bench_close(&b);
}

static void *place(void *userp, size_t index, const kelp_tensor *output, size_t size_bytes) {
    assert_int_equal(index, 0);
    assert_int_equal(output->shape[0] * 4 * (int64_t)sizeof(float), size_bytes);
    return userp;
}

static void output_allocators_are_called(void **state) {
    (void)state;
    bench b;
    float x[8], y[8];
    open_engine(&b);
    fill(x, 8);
    bind(b.context, 0, KELP_F32, dims(2, 2, 4), x);
    check_ok(kelp_context_set_output_allocator(b.context, 0, place, y));
    check_ok(kelp_context_invoke(b.context));
    assert_ptr_equal(kelp_context_output(b.context, 0)->data, y);
    check_result(x, y, 8);
    check_ok(kelp_context_set_output_allocator(b.context, 0, place, NULL));
    expect_failure(kelp_context_invoke(b.context), KELP_RESOURCE_EXHAUSTED, "'y'");
    check_ok(kelp_context_set_output_allocator(b.context, 0, NULL, NULL));
    check_ok(kelp_context_invoke(b.context));
    bench_close(&b);
}

static void outputs_are_on_the_host_by_default(void **state) {
    (void)state;
    bench b;
    open_engine(&b);
    check_ok(kelp_context_set_output_device(b.context, 0, (DLDevice){kDLCPU, 0}));
    expect_failure(kelp_context_set_output_device(b.context, 0, (DLDevice){kDLVulkan, 0}),
                   KELP_INVALID_ARGUMENT, "'y'");
    expect_failure(kelp_context_set_output_device(b.context, 1, (DLDevice){kDLCPU, 0}),
                   KELP_INVALID_ARGUMENT, "output 1");
    bench_close(&b);
}

static void contexts_are_independent_and_keep_their_engine(void **state) {
    (void)state;
    bench b;
    kelp_context *other = NULL;
    float x[8], y[8], z[4];
    open_engine(&b);
    check_ok(kelp_context_create(b.engine, &other));
    kelp_engine_release(b.engine);
    b.engine = NULL;
    fill(x, 8);
    bind(b.context, 0, KELP_F32, dims(2, 2, 4), x);
    bind(other, 0, KELP_F32, dims(2, 1, 4), x);
    check_ok(kelp_context_set_output(b.context, 0, y, sizeof y));
    check_ok(kelp_context_set_output(other, 0, z, sizeof z));
    check_ok(kelp_context_invoke(b.context));
    check_ok(kelp_context_invoke(other));
    check_rows(b.context, 2);
    check_rows(other, 1);
    check_result(x, y, 8);
    check_result(x, z, 4);
    kelp_context_destroy(other);
    bench_close(&b);
}

static void cancellation_without_a_run_is_ignored(void **state) {
    (void)state;
    bench b;
    float x[4];
    open_engine(&b);
    fill(x, 4);
    bind(b.context, 0, KELP_F32, dims(2, 1, 4), x);
    kelp_context_cancel(b.context);
    check_ok(kelp_context_invoke(b.context));
    bench_close(&b);
}

static void streams_run_in_order_and_report_failures(void **state) {
    (void)state;
    bench b;
    kelp_stream *stream = NULL;
    kelp_event *event = NULL;
    float x[4], y[4];
    open_engine(&b);
    check_ok(kelp_stream_create(b.runtime, &stream));
    check_ok(kelp_event_create(kelp_runtime_allocator(b.runtime), &event));
    check_ok(kelp_context_enqueue(b.context, stream, NULL));
    expect_failure(kelp_stream_synchronize(stream), KELP_FAILED_PRECONDITION, "is not bound");
    fill(x, 4);
    bind(b.context, 0, KELP_F32, dims(2, 1, 4), x);
    check_ok(kelp_context_set_output(b.context, 0, y, sizeof y));
    check_ok(kelp_context_enqueue(b.context, stream, event));
    assert_true(kelp_event_wait(event, UINT64_MAX));
    check_result(x, y, 4);
    check_ok(kelp_stream_synchronize(stream));
    kelp_event_destroy(event);
    kelp_stream_destroy(stream);
    bench_close(&b);
}

/* ---- optional features ---- */
static void works_or_is_named(kelp_status *status) {
    if (kelp_status_code(status) == KELP_UNIMPLEMENTED) {
        expect_failure(status, KELP_UNIMPLEMENTED, provider);
        return;
    }
    check_ok(status);
}

static void ignore(void *userp, const char *text, size_t length) {
    (void)userp, (void)text, (void)length;
}

static void ignore_time(void *userp, size_t step, const char *op_type, const char *name,
                        const char *algorithm, uint64_t duration_ns) {
    (void)userp, (void)step, (void)op_type, (void)name, (void)algorithm, (void)duration_ns;
}

static void features_work_or_are_unimplemented(void **state) {
    (void)state;
    bench b;
    size_t bytes = 0;
    float x[4], y[4];
    kelp_capture *recording = NULL;
    open_engine(&b);
    fill(x, 4);
    bind(b.context, 0, KELP_F32, dims(2, 1, 4), x);
    check_ok(kelp_context_set_output(b.context, 0, y, sizeof y));
    works_or_is_named(kelp_engine_inspect(b.engine, false, ignore, NULL));
    works_or_is_named(kelp_engine_inspect(b.engine, true, ignore, NULL));
    works_or_is_named(kelp_engine_workspace_bytes(b.engine, 1, &bytes));
    expect_failure(kelp_engine_workspace_bytes(b.engine, 2, &bytes), KELP_OUT_OF_RANGE,
                   "profile 2");
    works_or_is_named(kelp_engine_streamable_weights(b.engine, &bytes));
    works_or_is_named(kelp_engine_write_runtime_cache(b.engine, ignore, NULL));
    works_or_is_named(kelp_context_set_profiler(b.context, ignore_time, NULL));
    works_or_is_named(kelp_context_set_profiler(b.context, NULL, NULL));
    works_or_is_named(kelp_context_set_workspace(b.context, NULL, 0));
    works_or_is_named(kelp_context_capture(b.context, &recording));
    if (recording != NULL) {
        memset(y, 0x7f, sizeof y);
        check_ok(kelp_capture_replay(recording));
        check_result(x, y, 4);
    }
    kelp_context_destroy(b.context);
    b.context = NULL;
    if (recording != NULL)
        expect_failure(kelp_capture_replay(recording), KELP_FAILED_PRECONDITION, "destroyed");
    kelp_capture_destroy(recording);
    bench_close(&b);
}

/* ---- memory ---- */
static void repeated_runs_do_not_allocate(void **state) {
    (void)state;
    bench b;
    float x[8], y[8];
    test_failing counted;
    if (!on_host)
        skip();
    test_failing_init(&counted, 0);
    memory = &counted;
    open_engine(&b);
    fill(x, 8);
    uint64_t before = 0;
    for (int i = 0; i < 10; i++) {
        bind(b.context, 0, KELP_F32, dims(2, 1 + i % 2, 4), x);
        check_ok(kelp_context_set_output(b.context, 0, y, sizeof y));
        check_ok(kelp_context_invoke(b.context));
        before = i == 1 ? counted.calls : before; /* both shapes were used before */
    }
    assert_int_equal(counted.calls, before);
    bench_close(&b);
    memory = NULL;
    test_failing_check(&counted);
    test_failing_deinit(&counted);
}

static kelp_status *whole_way(bench *b) {
    kelp_blob *image = NULL;
    kelp_tensor tensor;
    static float x[8];
    const int64_t shape[2] = {2, 4};
    KELP_TRY(try_build(b, &image));
    KELP_TRY(kelp_engine_load(b->runtime, kelp_blob_data(image), kelp_blob_size(image), "image",
                              free_plan, image, &b->engine));
    KELP_TRY(kelp_context_create(b->engine, &b->context));
    KELP_TRY(kelp_tensor_init(&tensor, KELP_F32, 2, shape, x));
    KELP_TRY(kelp_context_set_input(b->context, 0, &tensor));
    return kelp_context_invoke(b->context);
}

static void failed_allocations_are_reported(void **state) {
    (void)state;
    if (!on_host)
        skip();
    for (uint64_t n = 1;; n++) {
        test_failing failing;
        bench b = {0};
        test_failing_init(&failing, n);
        memory = &failing;
        kelp_status *status = whole_way(&b);
        if (b.runtime != NULL)
            bench_close(&b);
        memory = NULL;
        test_failing_check(&failing);
        bool failed = failing.failed;
        test_failing_deinit(&failing);
        if (!failed) {
            check_ok(status);
            break;
        }
        assert_non_null(status);
        kelp_status_free(status);
    }
}

static bool is_available(void) {
    bench b = {0};
    kelp_blob *image = NULL;
    kelp_status *status = try_build(&b, &image);
    bool available = kelp_status_code(status) != KELP_UNAVAILABLE;
    if (!available)
        fprintf(stderr, "%s\n", kelp_status_message(status));
    kelp_status_free(status);
    kelp_blob_release(image);
    bench_close(&b);
    return available;
}

int main(int argc, char **argv) {
    provider = argc > 1 ? argv[1] : "cpu";
    computes = strcmp(provider, "null") != 0;
    on_host = strcmp(provider, "tensorrt") != 0;
    if (!is_available())
        return SKIPPED;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(images_are_recognized),
        cmocka_unit_test(bytes_of_an_image_are_released_once),
        cmocka_unit_test(inputs_and_outputs_are_described),
        cmocka_unit_test(wrong_bindings_are_rejected),
        cmocka_unit_test(unbound_inputs_are_rejected),
        cmocka_unit_test(profiles_bound_shapes_and_unbind_inputs),
        cmocka_unit_test(prepare_computes_output_shapes),
        cmocka_unit_test(bound_outputs_are_written),
        cmocka_unit_test(output_allocators_are_called),
        cmocka_unit_test(outputs_are_on_the_host_by_default),
        cmocka_unit_test(contexts_are_independent_and_keep_their_engine),
        cmocka_unit_test(cancellation_without_a_run_is_ignored),
        cmocka_unit_test(streams_run_in_order_and_report_failures),
        cmocka_unit_test(features_work_or_are_unimplemented),
        cmocka_unit_test(repeated_runs_do_not_allocate),
        cmocka_unit_test(failed_allocations_are_reported),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
