/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of narrow floats: all codes, and values between two codes. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tensor/convert.h"

static const struct {
    kelp_dtype dtype;
    int bits;
    float largest, smallest;
    uint8_t one;
} kinds[] = {
    {KELP_F8E4M3FN, 8, 448.0f, 0x1p-9f, 0x38},  {KELP_F8E4M3FNUZ, 8, 240.0f, 0x1p-10f, 0x40},
    {KELP_F8E5M2, 8, 57344.0f, 0x1p-16f, 0x3c}, {KELP_F8E5M2FNUZ, 8, 57344.0f, 0x1p-17f, 0x40},
    {KELP_F6E2M3, 6, 7.5f, 0.125f, 0x08},       {KELP_F6E3M2, 6, 28.0f, 0.0625f, 0x0c},
    {KELP_F4E2M1, 4, 6.0f, 0.5f, 0x02}};

static void all_codes_survive_the_conversion_to_float_and_back(void **state) {
    (void)state;
    for (size_t k = 0; k < sizeof kinds / sizeof kinds[0]; k++) {
        float largest = 0, smallest = INFINITY;
        assert_true(kelp_narrow_to_f32(kinds[k].dtype, kinds[k].one) == 1.0f);
        for (int code = 0; code < 1 << kinds[k].bits; code++) {
            float value = kelp_narrow_to_f32(kinds[k].dtype, (uint8_t)code);
            uint8_t back = kelp_f32_to_narrow(kinds[k].dtype, value, false);
            if (isnan(value)) {
                assert_true(isnan(kelp_narrow_to_f32(kinds[k].dtype, back)));
                continue;
            }
            assert_int_equal(back, code);
            if (!isinf(value) && value > largest)
                largest = value;
            if (value > 0 && value < smallest)
                smallest = value;
        }
        assert_true(largest == kinds[k].largest);
        assert_true(smallest == kinds[k].smallest);
    }
}

static void overflow_saturates_or_becomes_infinity_or_nan(void **state) {
    (void)state;
    for (size_t k = 0; k < sizeof kinds / sizeof kinds[0]; k++) {
        kelp_dtype dtype = kinds[k].dtype;
        float clipped = kelp_narrow_to_f32(dtype, kelp_f32_to_narrow(dtype, -1e30f, true));
        float marked = kelp_narrow_to_f32(dtype, kelp_f32_to_narrow(dtype, 1e30f, false));
        assert_true(clipped == -kinds[k].largest);
        if (dtype == KELP_F8E5M2)
            assert_true(marked == INFINITY);
        else if (kinds[k].bits == 8)
            assert_true(isnan(marked));
        else
            assert_true(marked == kinds[k].largest);
    }
}

static void narrow_ties_go_to_even(void **state) {
    (void)state;
    assert_int_equal(kelp_f32_to_narrow(KELP_F8E4M3FN, 464.0f, false), 0x7e);
    assert_int_equal(kelp_f32_to_narrow(KELP_F8E4M3FN, 1.0625f, true), 0x38);
    assert_int_equal(kelp_f32_to_narrow(KELP_F8E4M3FN, 1.1875f, true), 0x3a);
    assert_int_equal(kelp_f32_to_narrow(KELP_F4E2M1, 2.5f, true), 0x04);
    assert_int_equal(kelp_f32_to_narrow(KELP_F4E2M1, 5.0f, true), 0x06);
    assert_int_equal(kelp_f32_to_narrow(KELP_F8E4M3FNUZ, -1e-30f, true),
                     0x00); /* the type has no -0 */
}

static void scales_are_powers_of_two(void **state) {
    (void)state;
    for (int code = 0; code < 255; code++)
        assert_int_equal(
            kelp_f32_to_narrow(KELP_F8E8M0, kelp_narrow_to_f32(KELP_F8E8M0, (uint8_t)code), true),
            code);
    assert_int_equal(kelp_f32_to_narrow(KELP_F8E8M0, 1.5f, true), 128);
    assert_true(isnan(kelp_narrow_to_f32(KELP_F8E8M0, 0xff)));
    assert_int_equal(kelp_f32_to_narrow(KELP_F8E8M0, NAN, true), 0xff);
    assert_int_equal(kelp_f32_to_narrow(KELP_F8E8M0, -1.5f, true), 128); /* the sign is dropped */
    assert_int_equal(kelp_f32_to_narrow(KELP_F8E8M0, INFINITY, true), 0xff);
    assert_int_equal(kelp_f32_to_e8m0(1.5f, true, 'd'), 127);
    assert_int_equal(kelp_f32_to_e8m0(1.5f, true, 'n'), 128);
    assert_int_equal(kelp_f32_to_e8m0(1.49f, true, 'n'), 127);
    assert_int_equal(kelp_f32_to_e8m0(0x1.8p127f, true, 'u'), 0xfe);
    assert_int_equal(kelp_f32_to_e8m0(0x1.8p127f, false, 'u'), 0xff);
    assert_int_equal(kelp_f32_to_e8m0(0x1.8p-127f, true, 'u'), 1);
    assert_int_equal(kelp_f32_to_e8m0(0, true, 'u'), 0);
}

static void nan_becomes_zero_of_the_opposite_sign_in_types_without_nan(void **state) {
    (void)state;
    assert_int_equal(kelp_f32_to_narrow(KELP_F4E2M1, NAN, true), 0x08);
    assert_int_equal(kelp_f32_to_narrow(KELP_F4E2M1, -NAN, true), 0x00);
    assert_int_equal(kelp_f32_to_narrow(KELP_F6E2M3, NAN, true), 0x20);
    assert_int_equal(kelp_f32_to_narrow(KELP_F6E3M2, -NAN, false), 0x00);
}

static void a_double_rounds_once(void **state) {
    (void)state;
    /* slightly above a tie of the narrow type; rounding to float first would yield the tie */
    assert_int_equal(kelp_f64_to_f16(1 + 0x1p-11 + 0x1p-40), 0x3c01);
    assert_int_equal(kelp_f64_to_f16(1 + 0x1p-11), 0x3c00);
    assert_int_equal(kelp_f64_to_f16(1 + 0x3p-11 - 0x1p-40), 0x3c01);
    assert_int_equal(kelp_f64_to_bf16(1 + 0x1p-8 + 0x1p-40), 0x3f81);
    assert_int_equal(kelp_f64_to_bf16(-(1 + 0x1p-8 + 0x1p-40)), 0xbf81);
    assert_int_equal(kelp_f64_to_bf16(0x1.fep127), 0x7f7f);
    assert_int_equal(kelp_f64_to_bf16(1e300), 0x7f80);
    assert_int_equal(kelp_f64_to_f16(-1e300), 0xfc00);
    assert_int_equal(kelp_f64_to_f16(1e-300), 0);
    assert_true(isnan(kelp_f16_to_f32(kelp_f64_to_f16((double)NAN))));
    assert_true(kelp_f64_to_f32_odd(0.5) == 0.5f && isinf(kelp_f64_to_f32_odd((double)INFINITY)));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_codes_survive_the_conversion_to_float_and_back),
        cmocka_unit_test(overflow_saturates_or_becomes_infinity_or_nan),
        cmocka_unit_test(narrow_ties_go_to_even),
        cmocka_unit_test(nan_becomes_zero_of_the_opposite_sign_in_types_without_nan),
        cmocka_unit_test(a_double_rounds_once),
        cmocka_unit_test(scales_are_powers_of_two),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
