/* SPDX-License-Identifier: Apache-2.0 */
#include "frontends/tensor/base64.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static void padded_and_unpadded_base64_is_decoded(void **state) {
    (void)state;
    char out[16];
    size_t n;
    assert_true(kelp_v2_base64_decode(KELP_STR("aGVsbG8="), out, &n));
    assert_int_equal(n, 5);
    assert_memory_equal(out, "hello", 5);
    assert_true(kelp_v2_base64_decode(KELP_STR("aGVsbG8"), out, &n));
    assert_int_equal(n, 5);
    assert_true(kelp_v2_base64_decode(KELP_STR(""), out, &n));
    assert_int_equal(n, 0);
    assert_false(kelp_v2_base64_decode(KELP_STR("a"), out, &n));
    assert_false(kelp_v2_base64_decode(KELP_STR("a*=="), out, &n));
}

/* Encoders break lines, and end the last one after the padding. */
static void line_ends_are_ignored(void **state) {
    static const char *const texts[] = {"aGVs\nbG8=\n", "aGVs\r\nbG8=\r\n", "aGVsbG8\n",
                                        "\naGVsbG8="};
    (void)state;
    char out[16];
    size_t n;
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        assert_true(kelp_v2_base64_decode(kelp_str_from(texts[i]), out, &n));
        assert_int_equal(n, 5);
        assert_memory_equal(out, "hello", 5);
    }
    assert_true(kelp_v2_base64_decode(KELP_STR("\n"), out, &n));
    assert_int_equal(n, 0);
    assert_false(kelp_v2_base64_decode(KELP_STR("a\n"), out, &n));
    assert_false(kelp_v2_base64_decode(KELP_STR("aG=\nVsbG8="), out, &n));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(padded_and_unpadded_base64_is_decoded),
        cmocka_unit_test(line_ends_are_ignored),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
