/* SPDX-License-Identifier: Apache-2.0 */
/* UTF-8: encoding, decoding, invalid bytes. */
#include "base/text/utf8.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

static size_t decode(const char *text, size_t length, uint32_t *out) {
    return kelp_utf8_decode((kelp_str){text, length}, out);
}

static void decodes_what_it_encodes(void **state) {
    (void)state;
    const struct {
        uint32_t c;
        size_t size;
    } cases[] = {{0, 1},      {0x7F, 1},   {0x80, 2},   {0x7FF, 2},   {0x800, 3},
                 {0xD7FF, 3}, {0xE000, 3}, {0xFFFF, 3}, {0x10000, 4}, {0x10FFFF, 4}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[4];
        uint32_t c = 1;
        assert_int_equal(kelp_utf8_encode(cases[i].c, text), cases[i].size);
        assert_int_equal(decode(text, cases[i].size, &c), cases[i].size);
        assert_int_equal(c, cases[i].c);
        if (cases[i].size > 1)
            assert_int_equal(decode(text, cases[i].size - 1, &c), 0);
    }
}

static void rejects_invalid_bytes(void **state) {
    (void)state;
    const char *const cases[] = {"\x80",
                                 "\xC1\x80",
                                 "\xE0\x80\x80",
                                 "\xF0\x80\x80\x80",
                                 "\xED\xA0\x80",
                                 "\xF4\x90\x80\x80",
                                 "\xF5\x80\x80\x80",
                                 "\xC3"
                                 "A",
                                 "\xFF",
                                 "\xE2\x82"
                                 "A"};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        uint32_t c;
        assert_int_equal(decode(cases[i], strlen(cases[i]), &c), 0);
        assert_false(kelp_utf8_count(kelp_str_from(cases[i]), NULL));
    }
}

static void counts_characters(void **state) {
    (void)state;
    size_t count = 9;
    assert_true(kelp_utf8_count((kelp_str){NULL, 0}, &count));
    assert_int_equal(count, 0);
    assert_true(kelp_utf8_count(kelp_str_from("a\xC3\xA9\xE2\x82\xAC\xF0\x9F\x99\x82"), &count));
    assert_int_equal(count, 4);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(decodes_what_it_encodes),
        cmocka_unit_test(rejects_invalid_bytes),
        cmocka_unit_test(counts_characters),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
