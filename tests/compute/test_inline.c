/* SPDX-License-Identifier: Apache-2.0 */
/* The inline interface: the same life cycle, batches and limits, with error codes. */
#include "gesture.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

static const uint8_t artifact[GESTURE_BYTES] = {'G', 'S', 1200 & 255, 1200 >> 8};
static const acceleration still = {0, 0, 9.8f}, broken = {1e9f, 0, 0};

static void calls_follow_the_life_cycle(void **state) {
    (void)state;
    gesture model = {0};
    gesture_kind kind = GESTURE_BROKEN;
    assert_int_equal(gesture_infer_one(&model, &still, &kind), KELP_FAILED_PRECONDITION);
    assert_int_equal(kind, GESTURE_BROKEN);
    assert_int_equal(gesture_init(&model), KELP_FAILED_PRECONDITION); /* not loaded */
    assert_int_equal(gesture_load(&model, artifact, sizeof artifact), KELP_OK);
    assert_int_equal(gesture_infer_one(&model, &still, &kind), KELP_FAILED_PRECONDITION);
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
    assert_int_equal(gesture_load(&model, artifact, sizeof artifact), KELP_OK);
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
    assert_int_equal(gesture_load(&model, artifact, sizeof artifact), KELP_OK);
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

static void models_are_described(void **state) {
    (void)state;
    kelp_inline_capabilities capabilities = gesture_capabilities();
    kelp_inline_metadata metadata = gesture_metadata();
    assert_int_equal(capabilities.max_batch, 16);
    assert_int_equal(capabilities.dtype_mask, 1 << KELP_F32);
    assert_false(capabilities.device_streams);
    assert_int_equal(metadata.preferred_input, KELP_MEMORY_HOST);
    assert_int_equal(metadata.max_input_bytes, sizeof(acceleration));
    assert_int_equal(metadata.max_output_bytes, 0);
    assert_int_equal(metadata.input_bytes, sizeof(acceleration));
    assert_int_equal(metadata.output_bytes, sizeof(gesture_kind));
}

static void models_are_loaded_from_borrowed_bytes(void **state) {
    (void)state;
    static const uint8_t wrong[GESTURE_BYTES] = {'G', 'X', 0, 0};
    uint8_t low[GESTURE_BYTES] = {'G', 'S', 100, 0};
    gesture_kind kinds[4];
    const acceleration inputs[4] = {still, still, still, still};
    gesture model = {0};
    assert_int_equal(gesture_load(&model, wrong, sizeof wrong), KELP_INVALID_ARGUMENT);
    assert_int_equal(gesture_load(&model, artifact, 3), KELP_INVALID_ARGUMENT);
    assert_int_equal(gesture_load(&model, artifact, 0), KELP_INVALID_ARGUMENT);
    assert_int_equal(gesture_load(&model, NULL, 4), KELP_INVALID_ARGUMENT);
    assert_null(model.bytes);
    assert_int_equal(gesture_load(&model, low, sizeof low), KELP_OK);
    assert_ptr_equal(model.bytes, low);
    assert_int_equal(gesture_init(&model), KELP_OK);
    assert_int_equal(gesture_infer_batch(&model, inputs, 4, kinds, 4, KELP_INLINE_EACH, NULL, NULL),
                     KELP_OK);
    assert_int_equal(kinds[3], GESTURE_SHAKE); /* beyond 1 m/s² */
}

typedef struct adder {
    int sum;
} adder;

static inline kelp_code adder_step(adder *self, const int *input, int *output) {
    *output = self->sum += *input;
    return KELP_OK;
}

static const kelp_inline_info narrow = {.max_output_bytes = 1};
KELP_COMPUTE_INLINE(adder, adder, int, int, narrow, kelp_inline_no_bytes, kelp_inline_nothing,
                    adder_step, kelp_inline_nothing, kelp_inline_nothing);

static void model_without_an_artifact_has_no_bytes(void **state) {
    (void)state;
    adder model = {0};
    int one = 1, sum = 0;
    assert_int_equal(adder_load(&model, NULL, 0), KELP_OK);
    assert_int_equal(adder_load(&model, "x", 1), KELP_INVALID_ARGUMENT);
    assert_int_equal(adder_init(&model), KELP_OK);
    assert_int_equal(adder_capabilities().max_batch, 0);
    assert_int_equal(adder_metadata().max_output_bytes, 1);
    assert_int_equal(adder_infer_one(&model, &one, &sum), KELP_OUT_OF_RANGE); /* of the output */
    assert_int_equal(
        adder_infer_batch(&model, &one, 1, &sum, 1, KELP_INLINE_STOP_AT_FIRST, NULL, NULL),
        KELP_OUT_OF_RANGE);
    assert_int_equal(adder_drain(&model), KELP_OK);
    assert_int_equal(adder_reset_model(&model), KELP_OK);
    assert_int_equal(model.sum, 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(calls_follow_the_life_cycle),
        cmocka_unit_test(batch_stops_or_continues_after_a_failure),
        cmocka_unit_test(wrong_counts_and_large_inputs_fail),
        cmocka_unit_test(models_are_described),
        cmocka_unit_test(models_are_loaded_from_borrowed_bytes),
        cmocka_unit_test(model_without_an_artifact_has_no_bytes),
    };
    return cmocka_run_group_tests_name("compute.inline", tests, NULL, NULL);
}
