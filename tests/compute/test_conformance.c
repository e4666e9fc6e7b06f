/* SPDX-License-Identifier: Apache-2.0 */
/* Compute providers, one suite for each: life cycle, shapes, batches, forks, refusals. A shape that
 * a provider knows only by running, and the words of a foreign library, are left out by capability.
 */
#include <kelp/compute.h>

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#include "support/check_status.h"

#define DIGITS KELP_SOURCE_DIR "/examples/models/digits/1/model.onnx"

static const char *provider;

static void open_model(kelp_runtime **out_runtime, kelp_compute_model **out_model) {
    kelp_artifact artifact = {.path = DIGITS};
    check_ok(kelp_runtime_create(NULL, out_runtime));
    check_ok(kelp_compute_load(*out_runtime, provider, &artifact, out_model));
    check_ok(kelp_compute_init(*out_model));
}

static void make_input(kelp_tensor *tensor, float *data, int64_t batch) {
    const int64_t shape[4] = {batch, 1, 8, 8};
    for (int64_t i = 0; i < batch * 64; i++)
        data[i] = (float)(i % 13) / 13.0f;
    check_ok(kelp_tensor_init(tensor, KELP_F32, 4, shape, data));
}

static void metadata_is_the_models(void **state) {
    (void)state;
    kelp_runtime *runtime;
    kelp_compute_model *model;
    open_model(&runtime, &model);
    const kelp_compute_metadata *metadata = kelp_compute_metadata_of(model);
    assert_int_equal(metadata->input_count, 1);
    assert_int_equal(metadata->output_count, 2);
    assert_string_equal(metadata->inputs[0].name, "image");
    assert_string_equal(metadata->outputs[0].name, "probabilities");
    assert_int_equal(metadata->outputs[1].dtype, KELP_I64);
    assert_int_equal(metadata->preferred_input, KELP_MEMORY_HOST);
    kelp_compute_destroy(model);
    kelp_runtime_release(runtime);
}

static void shapes_are_known_before_running(void **state) {
    (void)state;
    kelp_runtime *runtime;
    kelp_compute_model *model;
    float data[3 * 64];
    kelp_tensor input, outputs[2] = {0};
    open_model(&runtime, &model);
    make_input(&input, data, 3);
    kelp_infer_item item = {.inputs = &input, .outputs = outputs};
    check_ok(kelp_compute_infer_shapes(model, &item));
    float room[30];
    memset(room, 0xff, sizeof room);
    if (outputs[0].rank == -1) { /* only running tells */
        const int64_t shape[2] = {3, 10};
        check_ok(kelp_tensor_init(&outputs[0], KELP_F32, 2, shape, NULL));
        outputs[1] = (kelp_tensor){0};
    } else {
        assert_int_equal(outputs[0].rank, 2);
        assert_int_equal(outputs[0].shape[0], 3);
        assert_int_equal(outputs[0].shape[1], 10);
        assert_int_equal(outputs[1].shape[0], 3);
    }
    outputs[0].data = room;
    check_ok(kelp_compute_infer_one(model, &item));
    assert_ptr_equal(outputs[0].data, room);
    for (int i = 0; i < 30; i++)
        assert_true(room[i] >= 0.0f && room[i] <= 1.0f);
    assert_non_null(outputs[1].data);
    kelp_compute_destroy(model);
    kelp_runtime_release(runtime);
}

static void a_batch_stops_or_goes_on(void **state) {
    (void)state;
    kelp_runtime *runtime;
    kelp_compute_model *model;
    float data[64];
    kelp_tensor inputs[3], outputs[3][2] = {0};
    open_model(&runtime, &model);
    for (int i = 0; i < 3; i++)
        make_input(&inputs[i], data, 1);
    inputs[1].dtype = KELP_F64;
    kelp_infer_item items[3];
    for (int i = 0; i < 3; i++)
        items[i] = (kelp_infer_item){.inputs = &inputs[i], .outputs = outputs[i]};
    expect_failure(kelp_compute_infer_batch(model, items, 3, KELP_BATCH_STOP_AT_FIRST),
                   KELP_INVALID_ARGUMENT, "item 1 of a batch of 3");
    assert_int_equal(outputs[0][0].rank, 2);
    assert_int_equal(outputs[2][0].rank, 0);
    check_ok(kelp_compute_infer_batch(model, items, 3, KELP_BATCH_EACH));
    assert_null(items[0].status);
    assert_null(items[2].status);
    expect_failure(items[1].status, KELP_INVALID_ARGUMENT, "expected float32, found float64");
    assert_int_equal(outputs[2][0].rank, 2);
    kelp_compute_destroy(model);
    kelp_runtime_release(runtime);
}

static void forks_drain_and_reset(void **state) {
    (void)state;
    kelp_runtime *runtime;
    kelp_compute_model *model, *fork = NULL;
    float data[64];
    kelp_tensor input, outputs[2] = {0}, again[2] = {0};
    open_model(&runtime, &model);
    make_input(&input, data, 1);
    check_ok(kelp_compute_fork(model, &fork));
    check_ok(kelp_compute_init(fork));
    kelp_infer_item item = {.inputs = &input, .outputs = outputs};
    check_ok(kelp_compute_infer_one(model, &item));
    float first[10];
    memcpy(first, outputs[0].data, sizeof first);
    check_ok(kelp_compute_drain(model));
    check_ok(kelp_compute_reset(model));
    kelp_compute_destroy(model);
    kelp_runtime_release(runtime); /* the fork keeps what it needs */
    kelp_infer_item second = {.inputs = &input, .outputs = again};
    check_ok(kelp_compute_infer_one(fork, &second));
    assert_memory_equal(again[0].data, first, sizeof first);
    kelp_compute_destroy(fork);
}

static void unknown_providers_and_artifacts_are_named(void **state) {
    (void)state;
    kelp_runtime *runtime = NULL;
    kelp_compute_model *model = NULL;
    kelp_artifact artifact = {.path = DIGITS}, nothing = {0},
                  absent = {.path = KELP_TEST_DATA "/no-such-model.onnx"};
    check_ok(kelp_runtime_create(NULL, &runtime));
    expect_failure(kelp_compute_load(runtime, "abacus", &artifact, &model), KELP_NOT_FOUND,
                   "there is no compute backend 'abacus': found cpu, null, onnxruntime, kernels");
    expect_failure(kelp_compute_load(runtime, provider, &nothing, &model), KELP_INVALID_ARGUMENT,
                   "neither a path nor bytes");
    expect_failure(kelp_compute_load(runtime, provider, &absent, &model), KELP_NOT_FOUND,
                   "no-such-model.onnx");
    kelp_runtime_release(runtime);
}

static int suite(const char *name) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(metadata_is_the_models),
        cmocka_unit_test(shapes_are_known_before_running),
        cmocka_unit_test(a_batch_stops_or_goes_on),
        cmocka_unit_test(forks_drain_and_reset),
        cmocka_unit_test(unknown_providers_and_artifacts_are_named),
    };
    provider = name;
    return cmocka_run_group_tests_name(name, tests, NULL, NULL);
}

/* The provider's name is the argument. */
int main(int argc, char **argv) {
    return argc == 2 ? suite(argv[1]) : 2;
}
