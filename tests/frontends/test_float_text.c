/* SPDX-License-Identifier: Apache-2.0 */
/* The fast conversion of floats returns the same text as the general one. */
#include "frontends/v2/float_text.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static void check(kelp_buf *out, float value) {
    char expected[40];
    expected[kelp_format_f64((double)value, expected)] = 0;
    kelp_buf_clear(out);
    kelp_v2_append_float(out, value);
    const char *text = kelp_buf_cstr(out);
    if (strcmp(text, expected) != 0)
        fail_msg("%a: expected %s, found %s", (double)value, expected, text);
}

static void special_values_have_the_general_text(void **state) {
    (void)state;
    static const float values[] = {0.0f,          -0.0f,
                                   1.0f,          -1.0f,
                                   0.1f,          0.5f,
                                   10.0f,         100.0f,
                                   123456.789f,   16777216.0f,
                                   1e-4f,         9.99e-5f,
                                   1e14f,         999999986991104.0f,
                                   1e15f,         1e16f,
                                   3.4028235e38f, 1e-45f,
                                   0.3f,          2.0f / 3.0f,
                                   1.1f,          8388608.5f,
                                   8388607.5f,    0.0001220703125f,
                                   NAN,           INFINITY};
    kelp_buf out;
    kelp_buf_init(&out, kelp_allocator_system());
    for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++)
        check(&out, values[i]);
    for (int e = -126; e < 128; e++) { /* powers of two and their neighbours */
        check(&out, ldexpf(1.0f, e));
        check(&out, nextafterf(ldexpf(1.0f, e), 0.0f));
        check(&out, nextafterf(ldexpf(1.0f, e), INFINITY));
    }
    for (int e = -45; e < 39; e++)
        check(&out, strtof((char[]){'1', 'e', e < 0 ? '-' : '+', (char)('0' + abs(e) / 10),
                                    (char)('0' + abs(e) % 10), 0},
                           NULL));
    kelp_buf_deinit(&out);
}

static void random_values_have_the_general_text(void **state) {
    (void)state;
    kelp_buf out;
    kelp_buf_init(&out, kelp_allocator_system());
    uint32_t x = 12345;
    for (int i = 0; i < 300000; i++) {
        x = x * 1664525u + 1013904223u;
        uint32_t bits = x;
        if (i % 2) /* exponents of the fast range */
            bits = (x & 0x807fffffu) | (uint32_t)(113 + (x >> 8) % 64) << 23;
        float value;
        memcpy(&value, &bits, sizeof(value));
        check(&out, value);
    }
    kelp_buf_deinit(&out);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(special_values_have_the_general_text),
        cmocka_unit_test(random_values_have_the_general_text),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
