/* SPDX-License-Identifier: Apache-2.0 */
/* Slices, numbers read and written whatever the locale, hashes. */
#include "base/str.h"

#include "base/checked.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

static void slices(void **state) {
    (void)state;
    assert_true(kelp_str_equal_nocase(KELP_STR("Content-Type"), KELP_STR("content-tYPE")));
    assert_false(kelp_str_equal_nocase(KELP_STR("a"), KELP_STR("ab")));
    assert_false(kelp_str_equal_nocase(KELP_STR("@"), KELP_STR("`")));
    assert_int_equal(kelp_hex_value('0'), 0);
    assert_int_equal(kelp_hex_value('f'), 15);
    assert_int_equal(kelp_hex_value('A'), 10);
    assert_int_equal(kelp_hex_value('g'), -1);
    assert_int_equal(kelp_hex_value('\0'), -1);
    assert_true(kelp_str_is(kelp_str_trim(KELP_STR(" \t a b\r\n")), "a b"));
    assert_int_equal(kelp_str_trim(KELP_STR(" \n ")).length, 0);
    assert_int_equal(kelp_str_trim((kelp_str){NULL, 0}).length, 0);
    assert_true(kelp_str_equal((kelp_str){NULL, 0}, KELP_STR("")));
}

static void integers(void **state) {
    (void)state;
    int64_t i;
    uint64_t u;
    assert_true(kelp_parse_i64(KELP_STR("-9223372036854775808"), &i) && i == INT64_MIN);
    assert_true(kelp_parse_i64(KELP_STR("9223372036854775807"), &i) && i == INT64_MAX);
    assert_true(kelp_parse_i64(KELP_STR("007"), &i) && i == 7);
    assert_true(kelp_parse_u64(KELP_STR("18446744073709551615"), &u) && u == UINT64_MAX);
    static const char *const bad[] = {"",
                                      "-",
                                      "+1",
                                      " 1",
                                      "1 ",
                                      "1.0",
                                      "0x1",
                                      "1e3",
                                      "--1",
                                      "9223372036854775808",
                                      "-9223372036854775809"};
    for (size_t n = 0; n < KELP_COUNT(bad); n++)
        assert_false(kelp_parse_i64(kelp_str_from(bad[n]), &i));
    assert_false(kelp_parse_u64(KELP_STR("18446744073709551616"), &u));
    assert_false(kelp_parse_u64(KELP_STR("-1"), &u));
    assert_false(kelp_parse_u64((kelp_str){NULL, 0}, &u));
}

/* The C library, in the C locale, is the judge. */
static void assert_reads(const char *text) {
    double found;
    if (!kelp_parse_f64(kelp_str_from(text), &found))
        fail_msg("'%s' was rejected", text);
    double expected = strtod(text, NULL);
    if (memcmp(&found, &expected, sizeof(found)) != 0)
        fail_msg("'%s': expected %a, found %a", text, expected, found);
}

static void floats_are_rounded_right(void **state) {
    (void)state;
    static const char *const texts[] = {
        "0",
        "-0",
        "0.0",
        "-0.0e5",
        "1",
        "+1",
        "1.",
        ".5",
        "-.5e1",
        "0.1",
        "1e22",
        "1e23",
        "9007199254740993",
        "9007199254740992",
        "9007199254740993.0000000000000000000001",
        "123456789012345678",
        "1234567890123456789",
        "12345678901234567890123",
        "1.7976931348623157e308",
        "1.7976931348623158e308",
        "1.7976931348623159e308",
        "1e309",
        "-1e400",
        "1e-400",
        "5e-324",
        "2.4703282292062327e-324",
        "2.4703282292062328e-324",
        "2.2250738585072014e-308",
        "2.2250738585072011e-308",
        "2.2250738585072012e-308",
        "6.631236871469758276785396630275967242079e-316",
        "0.000000000000000000000000000000001",
        "1e0000000000000000000001",
        "1e-0",
        "1e99999999999999999999999",
        "1e-99999999999999999999",
        "0e99999999999999999999",
        "3.141592653589793238462643383279502884197",
        "8.5e-1",
        "1e-7",
        "0.3",
        "0.30000000000000004",
        "4.35",
        "100",
        "7.0064923216240853546186479164495e-46",
    };
    for (size_t n = 0; n < KELP_COUNT(texts); n++)
        assert_reads(texts[n]);
}

static void long_floats(void **state) {
    (void)state;
    /* Half way between two doubles, decided by a digit far beyond those that are kept. */
    char text[3000];
    int length = snprintf(text, sizeof(text), "9007199254740993.");
    memset(text + length, '0', 2000);
    text[length + 2000] = '\0';
    assert_reads(text);
    text[length + 1999] = '1';
    assert_reads(text);
    memset(text, '0', 2500);
    memcpy(text, "0.", 2);
    memcpy(text + 2400, "123e2400", 9);
    assert_reads(text);
    memset(text, '9', 2500);
    memcpy(text + 2500, "e-2400", 7);
    assert_reads(text);
    /* 1 + 2^-53 exactly, 54 digits, and the same with something behind. */
    assert_reads("1.00000000000000011102230246251565404236316680908203125");
    assert_reads("1.000000000000000111022302462515654042363166809082031250001");
    assert_reads("1.00000000000000011102230246251565404236316680908203124999");
}

static void other_words(void **state) {
    (void)state;
    double value;
    assert_true(kelp_parse_f64(KELP_STR("inf"), &value) && value == INFINITY);
    assert_true(kelp_parse_f64(KELP_STR("-inf"), &value) && value == -INFINITY);
    assert_true(kelp_parse_f64(KELP_STR("Infinity"), &value) && value == INFINITY);
    assert_true(kelp_parse_f64(KELP_STR("-Infinity"), &value) && value == -INFINITY);
    assert_true(kelp_parse_f64(KELP_STR("nan"), &value) && isnan(value));
    assert_true(kelp_parse_f64(KELP_STR("NaN"), &value) && isnan(value));
    static const char *const bad[] = {"",    "-",       "+",   ".",  "e5",    "1e",
                                      "1e+", "1.2.3",   "1,5", " 1", "1 ",    "0x10",
                                      "1f",  "infinit", "--1", "-.", "1e5.5", "1_0"};
    for (size_t n = 0; n < KELP_COUNT(bad); n++)
        assert_false(kelp_parse_f64(kelp_str_from(bad[n]), &value));
    assert_false(kelp_parse_f64((kelp_str){NULL, 0}, &value));
    assert_false(kelp_parse_f64((kelp_str){"1\0", 2}, &value));
}

static void assert_writes(double value, const char *expected) {
    char text[32];
    size_t length = kelp_format_f64(value, text);
    assert_string_equal(text, expected);
    assert_int_equal(length, strlen(expected));
}

static void floats_are_written_short(void **state) {
    (void)state;
    assert_writes(0.1, "0.1");
    assert_writes(1e22, "1e+22");
    assert_writes(3.0, "3.0");
    assert_writes(0.0, "0.0");
    assert_writes(-0.0, "-0.0");
    assert_writes(-17.0, "-17.0");
    assert_writes(0.1 + 0.2, "0.30000000000000004");
    assert_writes(1.0 / 3.0, "0.3333333333333333");
    assert_writes(123456.789, "123456.789");
    assert_writes(9007199254740992.0, "9007199254740992.0");
    assert_writes(1e16, "1e+16");
    assert_writes(1.5e16, "1.5e+16");
    assert_writes(0.0001, "0.0001");
    assert_writes(0.00001, "1e-05");
    assert_writes(-2.5e-7, "-2.5e-07");
    assert_writes(5e-324, "5e-324");
    assert_writes(2.2250738585072014e-308, "2.2250738585072014e-308");
    assert_writes(-1.7976931348623157e308, "-1.7976931348623157e+308");
    assert_writes(NAN, "NaN");
    assert_writes(INFINITY, "Infinity");
    assert_writes(-INFINITY, "-Infinity");
}

static void any_float_reads_back(void **state) {
    (void)state;
    uint64_t bits = 88172645463325252u;
    for (int n = 0; n < 200000; n++) {
        bits ^= bits << 13;
        bits ^= bits >> 7;
        bits ^= bits << 17;
        double value;
        uint64_t pattern = n % 8 == 0 ? bits & UINT64_C(0x800FFFFFFFFFFFFF) : bits;
        memcpy(&value, &pattern, sizeof(value));
        if (n % 8 == 1)
            value = (double)(int64_t)(bits >> 40) / 1000.0;
        if (!isfinite(value))
            continue;
        char text[32];
        double back;
        size_t length = kelp_format_f64(value, text);
        assert_true(length < sizeof(text));
        assert_true(kelp_parse_f64((kelp_str){text, length}, &back));
        if (memcmp(&back, &value, sizeof(value)) != 0)
            fail_msg("%a was written '%s' and read %a", value, text, back);
        if (n % 16 == 0)
            assert_reads(text);
    }
}

static void the_radix_is_a_point(void **state) {
    (void)state;
    static const char *const texts[][2] = {{"1.5", "1.5"},
                                           {"-2,25", "-2.25"},
                                           {"3\xd9\xab"
                                            "5e-07",
                                            "3.5e-07"},
                                           {"12", "12"},
                                           {"-inf", "-inf"}};
    for (size_t i = 0; i < KELP_COUNT(texts); i++) {
        char text[16];
        strcpy(text, texts[i][0]);
        assert_int_equal(kelp_plain_radix(text), strlen(texts[i][1]));
        assert_string_equal(text, texts[i][1]);
    }
}

static void the_locale_has_no_say(void **state) {
    (void)state;
    static const char *const commas[] = {"de_DE.UTF-8", "de_DE.utf8", "fr_FR.UTF-8", "de_DE"};
    bool set = false;
    for (size_t n = 0; n < KELP_COUNT(commas) && !set; n++)
        set = setlocale(LC_ALL, commas[n]) != NULL;
    if (!set)
        skip();
    double value;
    assert_true(kelp_parse_f64(KELP_STR("0.30000000000000004"), &value));
    assert_writes(value, "0.30000000000000004");
    assert_false(kelp_parse_f64(KELP_STR("0,5"), &value));
    setlocale(LC_ALL, "C");
}

static void hashes(void **state) {
    (void)state;
    /* Test vectors of draft-eastlake-fnv. */
    assert_true(kelp_hash_str(KELP_STR("")) == UINT64_C(0xcbf29ce484222325));
    assert_true(kelp_hash_str(KELP_STR("a")) == UINT64_C(0xaf63dc4c8601ec8c));
    assert_true(kelp_hash_str(KELP_STR("foobar")) == UINT64_C(0x85944171f73967e8));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(slices),
        cmocka_unit_test(integers),
        cmocka_unit_test(floats_are_rounded_right),
        cmocka_unit_test(long_floats),
        cmocka_unit_test(other_words),
        cmocka_unit_test(floats_are_written_short),
        cmocka_unit_test(any_float_reads_back),
        cmocka_unit_test(the_radix_is_a_point),
        cmocka_unit_test(the_locale_has_no_say),
        cmocka_unit_test(hashes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
