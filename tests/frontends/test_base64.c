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

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(padded_and_unpadded_base64_is_decoded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
