/* SPDX-License-Identifier: Apache-2.0 */
/* Batched models: joined items, groups, outputs, failures, memory. */
#include "compute/small_provider.h"
#include "support/failing_allocator.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#include "support/check_status.h"

#define COUNT 4

typedef struct session {
    kelp_runtime *runtime;
    kelp_compute_model *model;
    kelp_infer_item items[COUNT];
    kelp_tensor in[COUNT], out[COUNT];
    float data[COUNT][8], results[COUNT][8];
} session;

static kelp_status *load(session *s, const char *name, kelp_allocator allocator) {
    kelp_runtime_options options = {.struct_size = sizeof options, .allocator = allocator};
    kelp_artifact artifact = {.data = "", .size_bytes = 1, .label = name, .batched = true};
    memset(s, 0, sizeof *s);
    memset(&test_small, 0, sizeof test_small);
    KELP_TRY(kelp_runtime_create(&options, &s->runtime));
    KELP_TRY(kelp_compute_register(s->runtime, test_small_backend(name)));
    KELP_TRY(kelp_compute_load(s->runtime, name, &artifact, &s->model));
    return kelp_compute_init(s->model);
}

/* Item i has i + 1 elements, of which the last is 10 * i. */
static void fill(session *s) {
    for (int i = 0; i < COUNT; i++) {
        const int64_t size = i + 1;
        for (int k = 0; k <= i; k++)
            s->data[i][k] = (float)(10 * k);
        check_ok(kelp_tensor_init(&s->in[i], KELP_F32, 1, &size, s->data[i]));
        s->out[i] = (kelp_tensor){0};
        s->items[i] = (kelp_infer_item){.inputs = &s->in[i], .outputs = &s->out[i]};
    }
}

static void begin(session *s, const char *name) {
    check_ok(load(s, name, kelp_allocator_system()));
    fill(s);
}

static void end(session *s) {
    kelp_compute_destroy(s->model);
    kelp_runtime_release(s->runtime);
    assert_int_equal(test_small.models, 0);
}

static void check_result(const session *s, int i) {
    check_ok(s->items[i].status);
    assert_int_equal(s->out[i].shape[0], i + 1);
    for (int k = 0; k <= i; k++)
        assert_true(((const float *)s->out[i].data)[k] == (float)(20 * k));
}

static void items_of_different_sizes_run_once(void **state) {
    (void)state;
    session s;
    begin(&s, "plain");
    for (int i = 0; i < COUNT; i += 2) /* the others get views */
        check_ok(kelp_tensor_init(&s.out[i], KELP_F32, 1, s.in[i].shape, s.results[i]));
    check_ok(kelp_compute_infer_batch(s.model, s.items, COUNT, KELP_BATCH_EACH));
    assert_int_equal(test_small.ones, 1);
    for (int i = 0; i < COUNT; i++)
        check_result(&s, i);
    assert_ptr_equal(s.out[2].data, s.results[2]);
    kelp_compute_copies copies = kelp_compute_copies_of(s.model);
    assert_int_equal(copies.inputs, COUNT);
    assert_int_equal(copies.input_bytes, 10 * sizeof(float));
    assert_int_equal(copies.outputs, 2);
    assert_int_equal(copies.output_bytes, 4 * sizeof(float));
    end(&s);
}

static void adjacent_inputs_are_not_copied(void **state) {
    (void)state;
    session s;
    float all[10];
    begin(&s, "plain");
    float *next = all;
    for (int i = 0; i < COUNT; i++) {
        memcpy(next, s.data[i], (size_t)(i + 1) * sizeof *next);
        s.in[i].data = next;
        next += i + 1;
    }
    check_ok(kelp_compute_infer_batch(s.model, s.items, COUNT, KELP_BATCH_STOP_AT_FIRST));
    assert_int_equal(test_small.ones, 1);
    assert_ptr_equal(test_small.last_input, all);
    for (int i = 0; i < COUNT; i++)
        check_result(&s, i);
    assert_int_equal(kelp_compute_copies_of(s.model).inputs, 0);
    assert_int_equal(kelp_compute_copies_of(s.model).outputs, 0);
    end(&s);
}

static void strided_items_join(void **state) {
    (void)state;
    session s;
    float wide[3] = {0, 5, 10};
    begin(&s, "plain");
    s.in[1].data = wide;
    s.in[1].strides[0] = 2;
    check_ok(kelp_compute_infer_batch(s.model, s.items, COUNT, KELP_BATCH_EACH));
    assert_int_equal(test_small.ones, 1);
    for (int i = 0; i < COUNT; i++)
        check_result(&s, i);
    end(&s);
}

static void single_items_are_not_copied(void **state) {
    (void)state;
    session s;
    begin(&s, "plain");
    check_ok(kelp_compute_infer_batch(s.model, &s.items[2], 1, KELP_BATCH_EACH));
    check_result(&s, 2);
    assert_ptr_equal(test_small.last_input, s.data[2]);
    check_ok(kelp_compute_infer_batch(s.model, NULL, 0, KELP_BATCH_EACH));
    assert_int_equal(test_small.ones, 1);
    end(&s);
}

/* Items with rows of 2 elements and of 3 elements. */
static void items_that_do_not_fit_run_in_groups(void **state) {
    (void)state;
    session s;
    begin(&s, "rows");
    for (int mode = 0; mode < 2; mode++) {
        fill(&s);
        test_small.ones = 0;
        for (int i = 0; i < COUNT; i++) {
            const int64_t shape[2] = {i / 2 + 1, 2 + i % 2};
            for (int k = 0; k < 8; k++)
                s.data[i][k] = (float)(100 * i + k);
            check_ok(kelp_tensor_init(&s.in[i], KELP_F32, 2, shape, s.data[i]));
        }
        check_ok(kelp_compute_infer_batch(s.model, s.items, COUNT, (kelp_batch_mode)mode));
        assert_int_equal(test_small.ones, mode == KELP_BATCH_EACH ? 2 : COUNT);
        for (int i = 0; i < COUNT; i++) {
            assert_int_equal(s.out[i].shape[0], i / 2 + 1);
            assert_int_equal(s.out[i].shape[1], 2 + i % 2);
            for (int64_t k = 0; k < kelp_tensor_elements(&s.out[i]); k++)
                assert_true(((const float *)s.out[i].data)[k] == 2 * s.data[i][k]);
        }
    }
    end(&s);
}

/* The joined inference fails, and the items then run one by one. */
static void failing_item_fails_alone(void **state) {
    (void)state;
    session s;
    begin(&s, "plain");
    s.data[2][0] = -1;
    check_ok(kelp_compute_infer_batch(s.model, s.items, COUNT, KELP_BATCH_EACH));
    expect_failure(s.items[2].status, KELP_UNAVAILABLE, "an element is -1");
    for (int i = 0; i < COUNT; i++)
        if (i != 2)
            check_result(&s, i);
    fill(&s);
    s.data[2][0] = -1;
    expect_failure(kelp_compute_infer_batch(s.model, s.items, COUNT, KELP_BATCH_STOP_AT_FIRST),
                   KELP_UNAVAILABLE, "item 2 of a batch of 4");
    check_result(&s, 0);
    check_result(&s, 1);
    assert_null(s.out[3].data);
    end(&s);
}

static void item_that_fails_the_checks_does_not_split_the_batch(void **state) {
    (void)state;
    session s;
    begin(&s, "plain");
    s.in[1].dtype = KELP_I32;
    check_ok(kelp_compute_infer_batch(s.model, s.items, COUNT, KELP_BATCH_EACH));
    expect_failure(s.items[1].status, KELP_INVALID_ARGUMENT, "expected float32, found int32");
    assert_int_equal(test_small.ones, 1);
    check_result(&s, 0);
    check_result(&s, 2);
    check_result(&s, 3);
    end(&s);
}

static void too_small_output_fails_alone(void **state) {
    (void)state;
    session s;
    begin(&s, "plain");
    const int64_t two = 2;
    check_ok(kelp_tensor_init(&s.out[3], KELP_F32, 1, &two, s.results[3]));
    check_ok(kelp_compute_infer_batch(s.model, s.items, COUNT, KELP_BATCH_EACH));
    assert_int_equal(test_small.ones, 1);
    expect_failure(s.items[3].status, KELP_OUT_OF_RANGE, "expected 16 bytes, found 8");
    check_result(&s, 2);
    end(&s);
}

static void outputs_that_do_not_follow_the_batch_end_joining(void **state) {
    (void)state;
    session s;
    begin(&s, "sum");
    for (int round = 0; round < 2; round++) {
        fill(&s);
        test_small.ones = 0;
        check_ok(kelp_compute_infer_batch(s.model, s.items, COUNT, KELP_BATCH_EACH));
        assert_int_equal(test_small.ones, round == 0 ? 1 + COUNT : COUNT);
        for (int i = 0; i < COUNT; i++) {
            check_ok(s.items[i].status);
            assert_true(*(const float *)s.out[i].data == (float)(10 * i * (i + 1) / 2));
        }
    }
    end(&s);
}

static void model_with_a_fixed_dimension_is_rejected(void **state) {
    (void)state;
    session s;
    expect_failure(load(&s, "fixed", kelp_allocator_system()), KELP_INVALID_ARGUMENT,
                   "expected a dynamic first dimension of output 'y', found shape [3]");
    assert_int_equal(test_small.models, 0);
    kelp_runtime_release(s.runtime);
}

static void forks_join_too(void **state) {
    (void)state;
    session s;
    kelp_compute_model *fork = NULL;
    begin(&s, "plain");
    check_ok(kelp_compute_fork(s.model, &fork));
    check_ok(kelp_compute_init(fork));
    check_ok(kelp_compute_infer_batch(fork, s.items, COUNT, KELP_BATCH_EACH));
    assert_int_equal(test_small.ones, 1);
    assert_int_equal(kelp_compute_copies_of(s.model).inputs, 0);
    assert_int_equal(kelp_compute_copies_of(fork).inputs, COUNT);
    kelp_compute_destroy(fork);
    end(&s);
}

static void own_infer_batch_replaces_joining(void **state) {
    (void)state;
    session s;
    begin(&s, "batch");
    for (int i = 0; i < COUNT; i++)
        check_ok(kelp_tensor_init(&s.out[i], KELP_F32, 1, s.in[i].shape, s.results[i]));
    check_ok(kelp_compute_infer_batch(s.model, s.items, COUNT, KELP_BATCH_EACH));
    assert_int_equal(test_small.batches, 1);
    assert_int_equal(test_small.ones, 0);
    end(&s);
}

/* Strings of a group must survive the next group. */
static void strings_join_and_are_kept(void **state) {
    (void)state;
    session s;
    kelp_string a[2] = {{"apple", 5}, {"bean", 4}}, b[1] = {{"corn", 4}}, c[1] = {{"date", 4}};
    const int64_t two = 2, one = 1;
    begin(&s, "strings");
    check_ok(kelp_tensor_init(&s.in[0], KELP_STRING, 1, &two, a));
    check_ok(kelp_tensor_init(&s.in[1], KELP_STRING, 1, &one, b));
    check_ok(kelp_tensor_init(&s.in[2], KELP_STRING, 1, &one, c));
    check_ok(kelp_compute_infer_batch(s.model, s.items, 3, KELP_BATCH_EACH));
    assert_int_equal(test_small.ones, 1);
    assert_memory_equal(((const kelp_string *)s.out[0].data)[1].data, "b", 1);
    assert_memory_equal(((const kelp_string *)s.out[2].data)[0].data, "d", 1);
    end(&s);
    kelp_artifact single = {.data = "", .size_bytes = 1};
    memset(s.out, 0, sizeof s.out);
    check_ok(kelp_runtime_create(NULL, &s.runtime));
    check_ok(kelp_compute_register(s.runtime, test_small_backend("strings")));
    check_ok(kelp_compute_load(s.runtime, "strings", &single, &s.model)); /* not batched */
    check_ok(kelp_compute_init(s.model));
    check_ok(kelp_compute_infer_batch(s.model, s.items, 3, KELP_BATCH_EACH));
    assert_int_equal(test_small.ones, 4);
    assert_memory_equal(((const kelp_string *)s.out[0].data)[1].data, "b", 1);
    assert_memory_equal(((const kelp_string *)s.out[1].data)[0].data, "c", 1);
    assert_memory_equal(((const kelp_string *)s.out[2].data)[0].data, "d", 1);
    end(&s);
}

static void arrays_join(void **state) {
    (void)state;
    session s;
    begin(&s, "plain");
    check_ok(kelp_compute_infer_arrays(s.model, s.in, COUNT, s.out, COUNT));
    assert_int_equal(test_small.ones, 1);
    for (int i = 0; i < COUNT; i++)
        check_result(&s, i);
    end(&s);
}

/* ---- memory ---- */
static void repeated_batches_do_not_allocate(void **state) {
    (void)state;
    session s;
    test_failing memory;
    test_failing_init(&memory, 0);
    check_ok(load(&s, "plain", test_failing_allocator(&memory)));
    uint64_t before = 0;
    for (int round = 0; round < 50; round++) {
        fill(&s);
        check_ok(kelp_compute_infer_batch(s.model, s.items, COUNT, KELP_BATCH_EACH));
        check_ok(kelp_compute_infer_batch(s.model, s.items, 2, KELP_BATCH_STOP_AT_FIRST));
        if (round == 0)
            before = memory.calls;
    }
    assert_int_equal(memory.calls, before);
    end(&s);
    test_failing_deinit(&memory);
}

static kelp_status *whole_batch(session *s, kelp_allocator allocator) {
    KELP_TRY(load(s, "rows", allocator));
    for (int i = 0; i < COUNT; i++) {
        const int64_t shape[2] = {1, 1 + i % 2};
        KELP_TRY(kelp_tensor_init(&s->in[i], KELP_F32, 2, shape, s->data[i]));
        s->items[i] = (kelp_infer_item){.inputs = &s->in[i], .outputs = &s->out[i]};
    }
    KELP_TRY(kelp_compute_infer_batch(s->model, s->items, COUNT, KELP_BATCH_EACH));
    kelp_status *status = NULL;
    for (int i = 0; i < COUNT; i++) {
        if (status == NULL)
            status = s->items[i].status;
        else
            kelp_status_free(s->items[i].status);
    }
    return status;
}

static void failed_allocations_are_reported(void **state) {
    (void)state;
    for (uint64_t n = 1;; n++) {
        session s;
        test_failing memory;
        test_failing_init(&memory, n);
        kelp_status *status = whole_batch(&s, test_failing_allocator(&memory));
        kelp_compute_destroy(s.model);
        kelp_runtime_release(s.runtime);
        test_failing_check(&memory);
        bool failed = memory.failed;
        test_failing_deinit(&memory);
        if (!failed) {
            check_ok(status);
            return;
        }
        if (status != NULL) /* items that cannot be joined run one by one */
            assert_int_equal(kelp_status_code(status), KELP_RESOURCE_EXHAUSTED);
        kelp_status_free(status);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(items_of_different_sizes_run_once),
        cmocka_unit_test(adjacent_inputs_are_not_copied),
        cmocka_unit_test(strided_items_join),
        cmocka_unit_test(single_items_are_not_copied),
        cmocka_unit_test(items_that_do_not_fit_run_in_groups),
        cmocka_unit_test(failing_item_fails_alone),
        cmocka_unit_test(item_that_fails_the_checks_does_not_split_the_batch),
        cmocka_unit_test(too_small_output_fails_alone),
        cmocka_unit_test(outputs_that_do_not_follow_the_batch_end_joining),
        cmocka_unit_test(model_with_a_fixed_dimension_is_rejected),
        cmocka_unit_test(forks_join_too),
        cmocka_unit_test(own_infer_batch_replaces_joining),
        cmocka_unit_test(strings_join_and_are_kept),
        cmocka_unit_test(arrays_join),
        cmocka_unit_test(repeated_batches_do_not_allocate),
        cmocka_unit_test(failed_allocations_are_reported),
    };
    return cmocka_run_group_tests_name("compute.batch", tests, NULL, NULL);
}
