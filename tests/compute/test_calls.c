/* SPDX-License-Identifier: Apache-2.0 */
/* Checks and conversions around a provider's model: counts, limits, types, placement, batches. */
#include "compute/small_provider.h"
#include "support/failing_allocator.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#include "support/check_status.h"

typedef struct session {
    kelp_runtime *runtime;
    kelp_compute_model *model;
} session;

static kelp_status *load(session *s, const char *name, kelp_allocator allocator) {
    kelp_runtime_options options = {.struct_size = sizeof options, .allocator = allocator};
    kelp_artifact artifact = {.data = "", .size_bytes = 1, .label = name};
    memset(s, 0, sizeof *s);
    memset(&test_small, 0, sizeof test_small);
    KELP_TRY(kelp_runtime_create(&options, &s->runtime));
    KELP_TRY(kelp_compute_register(s->runtime, test_small_backend(name)));
    KELP_TRY(kelp_compute_load(s->runtime, name, &artifact, &s->model));
    return kelp_compute_init(s->model);
}

static void begin(session *s, const char *name) {
    check_ok(load(s, name, kelp_allocator_system()));
}

static void end(session *s) {
    kelp_compute_destroy(s->model);
    kelp_runtime_release(s->runtime);
    assert_int_equal(test_small.models, 0);
}

static kelp_tensor floats(float *data, int64_t count) {
    kelp_tensor tensor;
    check_ok(kelp_tensor_init(&tensor, KELP_F32, 1, &count, data));
    return tensor;
}

/* ---- batches ---- */
static void fill(kelp_infer_item *items, kelp_tensor *in, kelp_tensor *out, float (*data)[2],
                 size_t count) {
    for (size_t i = 0; i < count; i++) {
        data[i][0] = (float)i;
        data[i][1] = 10;
        in[i] = floats(data[i], 2);
        out[i] = (kelp_tensor){0};
        items[i] = (kelp_infer_item){.inputs = &in[i], .outputs = &out[i]};
    }
}

static void infer_batch_of_the_provider_is_called(void **state) {
    (void)state;
    session s;
    kelp_infer_item items[5];
    kelp_tensor in[5], out[5];
    float data[5][2], results[5][2];
    begin(&s, "batch");
    fill(items, in, out, data, 5);
    for (int i = 0; i < 5; i++)
        out[i] = floats(results[i], 2);
    check_ok(kelp_compute_infer_batch(s.model, items, 5, KELP_BATCH_STOP_AT_FIRST));
    assert_int_equal(test_small.batches, 1);
    assert_int_equal(test_small.longest, 5);
    assert_int_equal(test_small.ones, 0);
    for (int i = 0; i < 5; i++) {
        assert_true(results[i][0] == 2 * (float)i);
        assert_true(results[i][1] == 20);
    }
    end(&s);
}

static void default_batch_calls_infer_for_each_item(void **state) {
    (void)state;
    session s;
    kelp_infer_item items[3];
    kelp_tensor in[3], out[3];
    float data[3][2];
    begin(&s, "plain");
    fill(items, in, out, data, 3);
    check_ok(kelp_compute_infer_batch(s.model, items, 3, KELP_BATCH_STOP_AT_FIRST));
    assert_int_equal(test_small.ones, 3);
    end(&s);
}

/* Both modes of a batch, with an item that fails the checks and one that fails in the inference. */
static void modes(const char *provider) {
    session s;
    kelp_infer_item items[5];
    kelp_tensor in[5], out[5];
    float data[5][2], results[5][2] = {{0}};
    begin(&s, provider);
    for (int mode = 0; mode < 2; mode++) {
        fill(items, in, out, data, 5);
        for (int i = 0; i < 5; i++)
            out[i] = floats(memset(results[i], 0, sizeof results[i]), 2);
        in[2].dtype = KELP_I32;
        data[4][0] = -1;
        if (mode == 0) {
            expect_failure(kelp_compute_infer_batch(s.model, items, 5, KELP_BATCH_STOP_AT_FIRST),
                           KELP_INVALID_ARGUMENT, "item 2 of a batch of 5");
            assert_true(results[0][1] == 20 && results[1][1] == 20);
            assert_true(results[3][1] == 0);
            continue;
        }
        check_ok(kelp_compute_infer_batch(s.model, items, 5, KELP_BATCH_EACH));
        expect_failure(items[2].status, KELP_INVALID_ARGUMENT, "expected float32, found int32");
        expect_failure(items[4].status, KELP_UNAVAILABLE,
                       "an element is -1"); /* the provider's code */
        assert_null(items[0].status);
        assert_null(items[3].status);
        assert_true(results[3][1] == 20);
    }
    end(&s);
}

/* A batch of one item has the same two modes. */
static void batch_of_one_item_stops_or_continues(void **state) {
    session s;
    kelp_infer_item item;
    kelp_tensor in, out;
    float data[1][2];
    (void)state;
    begin(&s, "plain");
    fill(&item, &in, &out, data, 1);
    data[0][0] = -1;
    expect_failure(kelp_compute_infer_batch(s.model, &item, 1, KELP_BATCH_STOP_AT_FIRST),
                   KELP_UNAVAILABLE, "item 0 of a batch of 1");
    assert_null(item.status);
    check_ok(kelp_compute_infer_batch(s.model, &item, 1, KELP_BATCH_EACH));
    expect_failure(item.status, KELP_UNAVAILABLE, "an element is -1");
    end(&s);
}

static void default_batch_stops_or_continues(void **state) {
    (void)state;
    modes("plain");
}

static void infer_batch_of_the_provider_stops_or_continues(void **state) {
    (void)state;
    modes("batch");
}

static void arrays_of_different_lengths_fail(void **state) {
    (void)state;
    session s;
    kelp_tensor in[40], out[40];
    float data[40][2], results[40][2];
    begin(&s, "batch");
    for (int i = 0; i < 40; i++) {
        data[i][0] = (float)i;
        data[i][1] = 1;
        in[i] = floats(data[i], 2);
        out[i] = floats(results[i], 2);
    }
    expect_failure(kelp_compute_infer_arrays(s.model, in, 3, out, 2), KELP_INVALID_ARGUMENT,
                   "the arrays differ in length: 3 inputs, 2 outputs");
    assert_int_equal(test_small.items, 0);
    check_ok(kelp_compute_infer_arrays(s.model, in, 40, out, 40));
    assert_int_equal(test_small.items, 40);
    for (int i = 0; i < 40; i++)
        assert_true(results[i][0] == 2 * (float)i);
    end(&s);
}

static void second_init_does_not_reach_the_provider(void **state) {
    (void)state;
    session s;
    float data[1] = {4};
    kelp_tensor in = floats(data, 1), out = {0};
    kelp_infer_item item = {.inputs = &in, .outputs = &out};
    begin(&s, "plain");
    check_ok(kelp_compute_infer_one(s.model, &item));
    check_ok(kelp_compute_init(s.model));
    assert_int_equal(test_small.inits, 1);
    assert_true(*(const float *)out.data == 8);
    end(&s);
}

/* ---- limits and types ---- */
static void inputs_beyond_the_limits_fail(void **state) {
    (void)state;
    session s;
    kelp_infer_item items[3];
    kelp_tensor in[3], out[3];
    float data[3][2], many[5] = {0};
    begin(&s, "narrow");
    fill(items, in, out, data, 3);
    expect_failure(kelp_compute_infer_batch(s.model, items, 3, KELP_BATCH_EACH), KELP_OUT_OF_RANGE,
                   "the batch has 3 items: provider 'narrow' accepts at most 2");
    check_ok(kelp_compute_infer_batch(s.model, items, 2, KELP_BATCH_EACH));
    in[0] = floats(many, 5);
    expect_failure(kelp_compute_infer_one(s.model, &items[0]), KELP_OUT_OF_RANGE,
                   "20 bytes: the model");
    end(&s);
}

static void undeclared_output_type_fails(void **state) {
    (void)state;
    session s;
    expect_failure(load(&s, "types", kelp_allocator_system()), KELP_UNIMPLEMENTED,
                   "output 'y' is of float64");
    assert_int_equal(test_small.models, 0);
    kelp_runtime_release(s.runtime);
}

/* ---- placement ---- */
static void placement_of_tensors_is_classified(void **state) {
    (void)state;
    float data[6] = {0};
    kelp_tensor tensor = floats(data, 6);
    static const struct {
        DLDeviceType type;
        int32_t id;
        kelp_placements accepted;
        kelp_placing expected;
    } rows[] = {
        {kDLCPU, 0, 0, KELP_PLACING_ZERO_COPY},
        {kDLCPU, 0, KELP_PLACED_HOST, KELP_PLACING_ZERO_COPY},
        {kDLCUDAHost, 0, KELP_PLACED_HOST, KELP_PLACING_ZERO_COPY},
        {kDLCUDAManaged, 0, KELP_PLACED_HOST, KELP_PLACING_ZERO_COPY},
        {kDLCUDAManaged, 0, KELP_PLACED_SHARED, KELP_PLACING_ZERO_COPY},
        {kDLCUDA, 3, KELP_PLACED_DEVICE(3), KELP_PLACING_ZERO_COPY},
        {kDLCUDA, 3, KELP_PLACED_DEVICE(2), KELP_PLACING_IMPOSSIBLE},
        {kDLCUDA, 16, KELP_PLACED_DEVICE(0), KELP_PLACING_IMPOSSIBLE}, /* no overflow */
        {kDLCUDA, 0, KELP_PLACED_HOST, KELP_PLACING_IMPOSSIBLE},
        {kDLCPU, 0, KELP_PLACED_DEVICE(0), KELP_PLACING_IMPOSSIBLE},
        {kDLVulkan, 0, KELP_PLACED_HOST, KELP_PLACING_IMPOSSIBLE},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        tensor.device = (DLDevice){rows[i].type, rows[i].id};
        assert_int_equal(kelp_compute_decide_placement(rows[i].accepted, &tensor),
                         rows[i].expected);
    }
    tensor.device = (DLDevice){kDLCPU, 0};
    tensor.strides[0] = 2;
    assert_int_equal(kelp_compute_decide_placement(0, &tensor), KELP_PLACING_ADAPT);
    assert_int_equal(kelp_compute_decide_placement(KELP_PLACED_DEVICE(0), &tensor),
                     KELP_PLACING_IMPOSSIBLE);
}

static void compact_tensors_are_not_copied(void **state) {
    (void)state;
    session s;
    float data[6] = {1, 2, 3, 4, 5, 6}, result[3];
    kelp_tensor in = floats(data, 3), out = floats(result, 3);
    kelp_infer_item item = {.inputs = &in, .outputs = &out};
    begin(&s, "plain");
    check_ok(kelp_compute_infer_one(s.model, &item));
    assert_ptr_equal(test_small.last_input, data);
    assert_ptr_equal(out.data, result);
    assert_int_equal(kelp_compute_copies_of(s.model).inputs, 0);
    in.strides[0] = 2;
    check_ok(kelp_compute_infer_one(s.model, &item));
    assert_ptr_not_equal(test_small.last_input, data);
    assert_int_equal(kelp_compute_copies_of(s.model).inputs, 1);
    assert_int_equal(kelp_compute_copies_of(s.model).input_bytes, 3 * sizeof *data);
    assert_int_equal(kelp_compute_copies_of(s.model).outputs, 0);
    assert_true(result[0] == 2 && result[1] == 6 && result[2] == 10);
    in.strides[0] = -1; /* backward from the third */
    in.data = data + 2;
    check_ok(kelp_compute_infer_one(s.model, &item));
    assert_true(result[0] == 6 && result[1] == 4 && result[2] == 2);
    in.device = (DLDevice){kDLCUDA, 1};
    expect_failure(kelp_compute_infer_one(s.model, &item), KELP_UNIMPLEMENTED,
                   "input 'x' is on a device that provider 'plain' cannot read");
    in = floats(data, 3);
    out.device = (DLDevice){kDLCUDA, 0};
    expect_failure(kelp_compute_infer_one(s.model, &item), KELP_UNIMPLEMENTED, "output 'y'");
    end(&s);
}

/* ---- memory ---- */
static kelp_status *whole_scenario(kelp_allocator allocator) {
    session s;
    float data[6] = {1, 2, 3, 4, 5, 6}, result[3];
    kelp_tensor in = floats(data, 3), out = floats(result, 3);
    kelp_infer_item item = {.inputs = &in, .outputs = &out};
    kelp_compute_model *fork = NULL;
    in.strides[0] = 2;
    kelp_status *status = load(&s, "plain", allocator);
    if (status == NULL)
        status = kelp_compute_infer_one(s.model, &item);
    if (status == NULL)
        status = kelp_compute_fork(s.model, &fork);
    kelp_compute_destroy(fork);
    kelp_compute_destroy(s.model);
    kelp_runtime_release(s.runtime);
    return status;
}

static void failed_allocations_are_reported(void **state) {
    (void)state;
    for (uint64_t n = 1;; n++) {
        test_failing memory;
        test_failing_init(&memory, n);
        kelp_status *status = whole_scenario(test_failing_allocator(&memory));
        test_failing_check(&memory);
        bool failed = memory.failed;
        test_failing_deinit(&memory);
        assert_int_equal(test_small.models, 0);
        if (!failed) {
            check_ok(status);
            break;
        }
        assert_non_null(status);
        kelp_status_free(status);
    }
}

static void repeated_calls_do_not_allocate(void **state) {
    (void)state;
    session s;
    test_failing memory;
    float data[6] = {1, 2, 3, 4, 5, 6};
    kelp_tensor in = floats(data, 3), out = {0};
    kelp_infer_item item = {.inputs = &in, .outputs = &out};
    test_failing_init(&memory, 0);
    check_ok(load(&s, "batch", test_failing_allocator(&memory)));
    in.strides[0] = 2;
    check_ok(kelp_compute_infer_one(s.model, &item));
    check_ok(kelp_compute_infer_batch(s.model, &item, 1, KELP_BATCH_EACH));
    uint64_t before = memory.calls;
    for (int i = 0; i < 100; i++) {
        out.data = NULL;
        in.strides[0] = 1 + i % 2;
        check_ok(kelp_compute_infer_one(s.model, &item));
        check_ok(kelp_compute_infer_batch(s.model, &item, 1, KELP_BATCH_EACH));
    }
    assert_int_equal(memory.calls, before);
    end(&s);
    test_failing_deinit(&memory);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(infer_batch_of_the_provider_is_called),
        cmocka_unit_test(default_batch_calls_infer_for_each_item),
        cmocka_unit_test(batch_of_one_item_stops_or_continues),
        cmocka_unit_test(default_batch_stops_or_continues),
        cmocka_unit_test(infer_batch_of_the_provider_stops_or_continues),
        cmocka_unit_test(arrays_of_different_lengths_fail),
        cmocka_unit_test(second_init_does_not_reach_the_provider),
        cmocka_unit_test(inputs_beyond_the_limits_fail),
        cmocka_unit_test(undeclared_output_type_fails),
        cmocka_unit_test(placement_of_tensors_is_classified),
        cmocka_unit_test(compact_tensors_are_not_copied),
        cmocka_unit_test(failed_allocations_are_reported),
        cmocka_unit_test(repeated_calls_do_not_allocate),
    };
    return cmocka_run_group_tests_name("compute.calls", tests, NULL, NULL);
}
