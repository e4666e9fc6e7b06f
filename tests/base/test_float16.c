/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/float16.h"

/* Checks every code of both types. */
static void every_code_survives_a_round_trip(void **state) {
    (void)state;
    for (uint32_t code = 0; code < 0x10000; code++) {
        float half = kelp_f16_to_f32((uint16_t)code), brain = kelp_bf16_to_f32((uint16_t)code);
        if (isnan(half))
            assert_true(isnan(kelp_f16_to_f32(kelp_f32_to_f16(half))));
        else
            assert_int_equal(kelp_f32_to_f16(half), code);
        if (isnan(brain))
            assert_true(isnan(kelp_bf16_to_f32(kelp_f32_to_bf16(brain))));
        else
            assert_int_equal(kelp_f32_to_bf16(brain), code);
    }
}

static void f16_codes_have_the_values_of_ieee_754(void **state) {
    (void)state;
    assert_true(kelp_f16_to_f32(0x3c00) == 1.0f);
    assert_true(kelp_f16_to_f32(0xc000) == -2.0f);
    assert_true(kelp_f16_to_f32(0x7bff) == 65504.0f);
    assert_true(kelp_f16_to_f32(0x0001) == 0x1p-24f);
    assert_true(kelp_f16_to_f32(0x7c00) == INFINITY);
    assert_int_equal(kelp_f32_to_f16(65519.0f), 0x7bff);
    assert_int_equal(kelp_f32_to_f16(65520.0f), 0x7c00);
    assert_int_equal(kelp_f32_to_f16(0x1p-25f), 0x0000); /* half of the smallest */
    assert_int_equal(kelp_f32_to_f16(0x1.8p-25f), 0x0001);
}

static void ties_round_to_even(void **state) {
    (void)state;
    for (uint32_t code = 0; code + 1 < 0x7c00; code++) {
        float middle =
            (kelp_f16_to_f32((uint16_t)code) + kelp_f16_to_f32((uint16_t)(code + 1))) / 2;
        assert_int_equal(kelp_f32_to_f16(middle), code + (code & 1));
    }
    assert_int_equal(kelp_f32_to_bf16(kelp_f32_from_bits(0x3f808000u)), 0x3f80);
    assert_int_equal(kelp_f32_to_bf16(kelp_f32_from_bits(0x3f818000u)), 0x3f82);
    assert_int_equal(kelp_f32_to_bf16(kelp_f32_from_bits(0x3f808001u)), 0x3f81);
}

static void nan_stays_nan_and_small_values_round_to_zero(void **state) {
    (void)state;
    assert_true(isnan(kelp_f16_to_f32(kelp_f32_to_f16(NAN))));
    assert_true(isnan(kelp_bf16_to_f32(kelp_f32_to_bf16(kelp_f32_from_bits(0x7f800001u)))));
    assert_int_equal(kelp_f32_to_f16(-1e-10f), 0x8000);
    assert_int_equal(kelp_f32_to_f16(1.0f + 0x3p-11f), 0x3c02);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_code_survives_a_round_trip),
        cmocka_unit_test(f16_codes_have_the_values_of_ieee_754),
        cmocka_unit_test(ties_round_to_even),
        cmocka_unit_test(nan_stays_nan_and_small_values_round_to_zero),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
