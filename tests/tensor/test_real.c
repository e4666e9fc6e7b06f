/* SPDX-License-Identifier: Apache-2.0 */
/* Typed loads and stores: all number types, at offsets, rounded and saturated. */
#include "tensor/real.h"

#include "base/checked.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <string.h>

static const kelp_dtype types[] = {KELP_U8,   KELP_I8,  KELP_U16, KELP_I16,  KELP_U32,
                                   KELP_I32,  KELP_U64, KELP_I64, KELP_BOOL, KELP_F16,
                                   KELP_BF16, KELP_F32, KELP_F64};

static void elements_in_the_middle_are_loaded_and_stored(void **state) {
    (void)state;
    for (size_t t = 0; t < KELP_COUNT(types); t++) {
        char data[9 * 8] = {0};
        const float ones[] = {1, 1};
        const double more[] = {0, 1};
        float f32[4];
        double f64[4];
        assert_true(kelp_real_takes(types[t]));
        kelp_real_store_f32(types[t], data, 2, 2, ones);
        kelp_real_store_f64(types[t], data, 4, 2, more);
        kelp_real_load_f32(types[t], data, 1, 4, f32);
        kelp_real_load_f64(types[t], data, 3, 4, f64);
        const float expected_f32[] = {0, 1, 1, 0};
        const double expected_f64[] = {1, 0, 1, 0};
        assert_memory_equal(f32, expected_f32, sizeof f32);
        assert_memory_equal(f64, expected_f64, sizeof f64);
    }
    assert_false(kelp_real_takes(KELP_STRING));
    assert_false(kelp_real_takes(KELP_F8E4M3FN));
}

static void integers_are_rounded_and_saturated(void **state) {
    (void)state;
    const float from[] = {-1000.0f, -0.5f, 1.5f, 2.5f, 1e30f, NAN};
    int8_t i8[6];
    uint8_t u8[6];
    kelp_real_store_f32(KELP_I8, i8, 0, 6, from);
    kelp_real_store_f32(KELP_U8, u8, 0, 6, from);
    const int8_t expected_i8[] = {-128, 0, 2, 2, 127, 0};
    const uint8_t expected_u8[] = {0, 0, 2, 2, 255, 0};
    assert_memory_equal(i8, expected_i8, sizeof i8);
    assert_memory_equal(u8, expected_u8, sizeof u8);
}

static void float_represents_types_of_up_to_16_bits(void **state) {
    (void)state;
    for (size_t t = 0; t < KELP_COUNT(types); t++) {
        bool fits = kelp_dtype_bits(types[t]) < 32 || types[t] == KELP_F32;
        assert_int_equal(kelp_real_fits_f32(types[t]), fits);
    }
}

static void tensors_are_loaded_and_stored(void **state) {
    (void)state;
    int16_t data[4] = {1, 2, 3, 4};
    int64_t shape[] = {4};
    kelp_tensor tensor;
    float values[2];
    assert_null(kelp_tensor_init(&tensor, KELP_I16, 1, shape, data));
    kelp_tensor_load_f32(&tensor, 2, 2, values);
    assert_true(values[0] == 3 && values[1] == 4);
    kelp_tensor_store_f32(&tensor, 0, 2, values);
    kelp_tensor_set_f64(&tensor, 3, -7.0);
    const int16_t expected[] = {3, 4, 3, -7};
    assert_memory_equal(data, expected, sizeof data);
}

static void values_are_rounded_to_short_floats(void **state) {
    (void)state;
    assert_true(kelp_real_round(KELP_F16, 1.0f + 0x1p-12f) == 1.0f);
    assert_true(kelp_real_round(KELP_F16, 1.0f + 0x1p-10f) == 1.0f + 0x1p-10f);
    assert_true(isinf(kelp_real_round(KELP_F16, 1e6f)));
    assert_true(kelp_real_round(KELP_BF16, 1.0f + 0x1p-10f) == 1.0f);
    assert_true(kelp_real_round(KELP_BF16, 1.0f + 0x1p-7f) == 1.0f + 0x1p-7f);
    assert_true(kelp_real_round(KELP_F32, 1.0f + 0x1p-20f) == 1.0f + 0x1p-20f);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(elements_in_the_middle_are_loaded_and_stored),
        cmocka_unit_test(integers_are_rounded_and_saturated),
        cmocka_unit_test(float_represents_types_of_up_to_16_bits),
        cmocka_unit_test(tensors_are_loaded_and_stored),
        cmocka_unit_test(values_are_rounded_to_short_floats),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
