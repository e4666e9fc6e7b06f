/* SPDX-License-Identifier: Apache-2.0 */
/* The inline interface: the same life cycle, batches and limits, with error codes. */
#include "gesture.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

static const acceleration still = {0, 0, 9.8f}, broken = {1e9f, 0, 0};

static void calls_follow_the_life_cycle(void **state) {
    (void)state;
    gesture model = {0};
    gesture_kind kind = GESTURE_BROKEN;
    assert_int_equal(gesture_infer_one(&model, &still, &kind), KELP_FAILED_PRECONDITION);
    assert_int_equal(kind, GESTURE_BROKEN);
    assert_int_equal(gesture_init(&model), KELP_OK);
    assert_int_equal(gesture_infer_one(&model, &still, &kind), KELP_OK);
    assert_int_equal(kind, GESTURE_NONE);
    assert_int_equal(model.seen, 1);
    assert_int_equal(gesture_drain(&model), KELP_OK);
    assert_int_equal(gesture_reset_model(&model), KELP_OK);
    assert_int_equal(model.seen, 0);
}

static void batch_stops_or_continues_after_a_failure(void **state) {
    (void)state;
    const acceleration inputs[3] = {still, broken, still};
    gesture_kind kinds[3] = {GESTURE_BROKEN, GESTURE_BROKEN, GESTURE_BROKEN};
    kelp_code codes[3];
    size_t done;
    gesture model;
    assert_int_equal(gesture_init(&model), KELP_OK);
    assert_int_equal(
        gesture_infer_batch(&model, inputs, 3, kinds, 3, KELP_INLINE_STOP_AT_FIRST, codes, &done),
        KELP_OUT_OF_RANGE);
    assert_int_equal(done, 1);
    assert_int_equal(kinds[0], GESTURE_NONE);
    assert_int_equal(kinds[2], GESTURE_BROKEN);
    assert_int_equal(
        gesture_infer_batch(&model, inputs, 3, kinds, 3, KELP_INLINE_EACH, codes, &done), KELP_OK);
    assert_int_equal(done, 2);
    assert_int_equal(codes[0], KELP_OK);
    assert_int_equal(codes[1], KELP_OUT_OF_RANGE);
    assert_int_equal(codes[2], KELP_OK);
    assert_int_equal(kinds[2], GESTURE_NONE);
}

static void wrong_counts_and_large_inputs_fail(void **state) {
    (void)state;
    acceleration inputs[17] = {{0}};
    gesture_kind kinds[17];
    size_t done = 9;
    gesture model;
    assert_int_equal(gesture_init(&model), KELP_OK);
    assert_int_equal(
        gesture_infer_batch(&model, inputs, 3, kinds, 2, KELP_INLINE_EACH, NULL, &done),
        KELP_INVALID_ARGUMENT);
    assert_int_equal(done, 0);
    assert_int_equal(
        gesture_infer_batch(&model, inputs, 17, kinds, 17, KELP_INLINE_EACH, NULL, NULL),
        KELP_OUT_OF_RANGE);
    assert_int_equal(model.seen, 0);
    assert_int_equal(
        gesture_infer_batch(&model, inputs, 16, kinds, 16, KELP_INLINE_EACH, NULL, NULL), KELP_OK);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(calls_follow_the_life_cycle),
        cmocka_unit_test(batch_stops_or_continues_after_a_failure),
        cmocka_unit_test(wrong_counts_and_large_inputs_fail),
    };
    return cmocka_run_group_tests_name("compute.inline", tests, NULL, NULL);
}
