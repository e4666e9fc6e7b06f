/* SPDX-License-Identifier: Apache-2.0 */
/* The text of floats: the shortest that reads back, and reading it. */
#include "frontends/tensor/float_read.h"
#include "frontends/tensor/float_text.h"
#include "frontends/tensor/vectors.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define RANDOM_VALUES 200000

static uint32_t next_random(uint32_t *state) {
    *state = *state * 1664525u + 1013904223u;
    return *state ^ *state >> 15;
}

static float float_of(uint32_t bits) {
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

/* Counts significant digits, without zeros at both ends. */
static int significant_digits(const char *text) {
    int count = 0, zeros = 0;
    for (; *text && *text != 'e'; text++) {
        if (*text < '0' || *text > '9' || (count == 0 && *text == '0'))
            continue;
        count++;
        zeros = *text == '0' ? zeros + 1 : 0;
    }
    return count - zeros;
}

/* Returns the smallest number of digits that reads back. */
static int needed_digits(float value) {
    char text[40];
    for (int precision = 1; precision < 9; precision++) {
        snprintf(text, sizeof text, "%.*e", precision - 1, (double)value);
        if (strtof(text, NULL) == value)
            return precision;
    }
    return 9;
}

static void check(kelp_buf *out, float value) {
    kelp_buf_clear(out);
    kelp_v2_append_float(out, value);
    const char *text = kelp_buf_cstr(out);
    float again = strtof(text, NULL);
    if (memcmp(&again, &value, sizeof value) != 0)
        fail_msg("%a: %s reads back as %a", (double)value, text, (double)again);
    if ((float)strtod(text, NULL) != value)
        fail_msg("%a: %s reads back differently as a double", (double)value, text);
    /* integers and subnormal numbers may have all their digits */
    if (fabsf(value) >= 0x1p-126f && value != truncf(value) &&
        significant_digits(text) > needed_digits(value))
        fail_msg("%a: %s is too long", (double)value, text);
}

static void the_form_is_that_of_doubles(void **state) {
    (void)state;
    static const struct {
        float value;
        const char *text;
    } rows[] = {{0.0f, "0.0"},
                {-0.0f, "-0.0"},
                {1.0f, "1.0"},
                {-3.0f, "-3.0"},
                {0.1f, "0.1"},
                {0.5f, "0.5"},
                {123456.789f, "123456.79"},
                {16777216.0f, "16777216.0"},
                {2.0f / 3.0f, "0.6666667"},
                {1e-4f, "0.0001"},
                {9.99e-5f, "9.99e-05"},
                {1.5e-5f, "1.5e-05"},
                {1e15f, "1000000000000000.0"},
                {1e16f, "1e+16"},
                {3.4028235e38f, "3.4028235e+38"},
                {1e-45f, "1e-45"},
                {1.1754944e-38f, "1.1754944e-38"},
                {NAN, "NaN"},
                {INFINITY, "Infinity"},
                {-INFINITY, "-Infinity"}};
    kelp_buf out;
    kelp_buf_init(&out, kelp_allocator_system());
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        kelp_buf_clear(&out);
        kelp_v2_append_float(&out, rows[i].value);
        assert_string_equal(kelp_buf_cstr(&out), rows[i].text);
    }
    kelp_buf_deinit(&out);
}

static void the_shortest_text_reads_back(void **state) {
    (void)state;
    uint32_t random = 12345;
    kelp_buf out;
    kelp_buf_init(&out, kelp_allocator_system());
    for (int e = -149; e < 128; e++) { /* powers of two and their neighbours */
        check(&out, ldexpf(1.0f, e));
        check(&out, nextafterf(ldexpf(1.0f, e), 0.0f));
        check(&out, nextafterf(ldexpf(1.0f, e), INFINITY));
    }
    for (int i = 0; i < RANDOM_VALUES; i++) {
        uint32_t bits = next_random(&random);
        if (i % 2) /* usual exponents */
            bits = (bits & 0x807fffffu) | (uint32_t)(113 + (bits >> 8) % 40) << 23;
        if (isfinite(float_of(bits)))
            check(&out, float_of(bits));
    }
    kelp_buf_deinit(&out);
}

static void arrays_have_commas(void **state) {
    (void)state;
    unsigned char bytes[1 + 200 * sizeof(float)];
    kelp_buf one, all;
    kelp_buf_init(&one, kelp_allocator_system());
    kelp_buf_init(&all, kelp_allocator_system());
    for (size_t count = 0; count <= 200; count = count < 3 ? count + 1 : count * 2 - 1) {
        kelp_buf_clear(&one);
        kelp_buf_clear(&all);
        for (size_t i = 0; i < count; i++) {
            float value = 0.1f * (float)i;
            memcpy(bytes + 1 + i * sizeof value, &value, sizeof value);
            if (i)
                kelp_buf_append_char(&one, ',');
            kelp_v2_append_float(&one, value);
        }
        kelp_v2_append_floats(&all, bytes + 1, count); /* not aligned */
        assert_string_equal(kelp_buf_cstr(&all), kelp_buf_cstr(&one));
    }
    kelp_buf_deinit(&one);
    kelp_buf_deinit(&all);
}

/* Arrays are written in steps of several values, which may be of different kinds. */
static void arrays_have_the_text_of_their_values(void **state) {
    (void)state;
    enum { COUNT = 1000 };
    static uint32_t bits[COUNT];
    uint32_t random = 4711;
    kelp_buf one, all;
    kelp_buf_init(&one, kelp_allocator_system());
    kelp_buf_init(&all, kelp_allocator_system());
    for (int round = 0; round < RANDOM_VALUES / COUNT; round++) {
        size_t count = next_random(&random) % COUNT + 1;
        kelp_buf_clear(&one);
        kelp_buf_clear(&all);
        for (size_t i = 0; i < count; i++) {
            bits[i] = next_random(&random);
            if (bits[i] % 8 == 0) /* zeros, powers of two and infinity; subnormal numbers and NaN */
                bits[i] &= bits[i] & 8 ? 0xff800000u : 0x800fffffu | (0 - (bits[i] >> 4 & 1)) << 23;
            if (i)
                kelp_buf_append_char(&one, ',');
            kelp_v2_append_float(&one, float_of(bits[i]));
        }
        kelp_v2_append_floats(&all, bits, count);
        assert_string_equal(kelp_buf_cstr(&all), kelp_buf_cstr(&one));
    }
    kelp_buf_deinit(&one);
    kelp_buf_deinit(&all);
}

/* ---- reading ---- */

/* Reads one number, which must end at the end of the text. The text is in memory of its own size,
 * so that sanitizers find reads past its end. */
static void reads_as(const char *text, float expected) {
    size_t length = strlen(text), position = 0;
    char *copy = malloc(length + (length == 0));
    float value = 0;
    assert_non_null(copy);
    memcpy(copy, text, length);
    size_t count = kelp_v2_read_floats(copy, length, &position, &value, 1);
    free(copy);
    if (count != 1 || position != length || memcmp(&value, &expected, sizeof value) != 0)
        fail_msg("%s: read %zu of %zu characters as %a, expected %a", text, position, length,
                 (double)value, (double)expected);
}

static void numbers_are_rounded_correctly(void **state) {
    (void)state;
    static const char *const texts[] = {"0",
                                        "-0",
                                        "0.0",
                                        "1",
                                        "-1.5",
                                        "16777217",
                                        "16777219",
                                        "0.1",
                                        "3.14159",
                                        "123456789",
                                        "0.30000001",
                                        "9999999999999999999",
                                        "0.00000001",
                                        "4294967296.5",
                                        "33554434",
                                        "33554435",
                                        "1.00000006",
                                        "16777217.0000000001",
                                        "16777216.9999999999",
                                        "0.6438289880752563",
                                        "0.1000000014901161194",
                                        "67108863.00000000001"};
    uint32_t random = 7;
    char text[64];
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
        reads_as(texts[i], strtof(texts[i], NULL));
    for (int i = 0; i < RANDOM_VALUES; i++) {
        uint32_t kind = next_random(&random) % 4, bits = next_random(&random);
        float value = float_of((bits & 0x807fffffu) | (uint32_t)(117 + (bits >> 8) % 34) << 23);
        float next = nextafterf(value, INFINITY);
        if (kind == 0) /* as languages print a float */
            snprintf(text, sizeof text, "%.*f", (int)(bits % 10), (double)value);
        else if (kind == 1) /* near a midpoint */
            snprintf(text, sizeof text, "%.*f", 10, ((double)value + (double)next) / 2);
        else
            snprintf(text, sizeof text, "%u.%0*u", bits % 1000, 1 + (int)(bits % 9),
                     next_random(&random) % 10);
        if (strlen(text) <= 19)
            reads_as(text, strtof(text, NULL));
    }
}

static void other_forms_are_left_to_the_caller(void **state) {
    (void)state;
    static const char *const texts[] = {"",
                                        "-",
                                        "01",
                                        "-01",
                                        "1.",
                                        ".5",
                                        "1e5",
                                        "1E5",
                                        "1.0e5",
                                        "NaN",
                                        "x",
                                        "]",
                                        "[1",
                                        "+1",
                                        "--1",
                                        "1.-",
                                        "\"1\"",
                                        "12345678901234567890",
                                        "0.12345678901234567890"};
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        size_t position = 0;
        float value;
        if (kelp_v2_read_floats(texts[i], strlen(texts[i]), &position, &value, 1) != 0 || position)
            fail_msg("%s was read", texts[i]);
    }
}

/* Numbers inside of an array, which have others before and after them. */
static void numbers_in_arrays_are_rounded_correctly(void **state) {
    (void)state;
    enum { NUMBERS = 20000, TEXT = 40 };
    static const char *const separators[] = {",", ", ", " ,", " , "};
    static float expected[NUMBERS], found[NUMBERS];
    uint32_t random = 99;
    kelp_buf text;
    kelp_buf_init(&text, kelp_allocator_system());
    for (int i = 0; i < NUMBERS; i++) {
        char number[TEXT];
        uint32_t whole = next_random(&random), digits = next_random(&random) % 20;
        snprintf(number, sizeof number, "%s%u", whole & 1 ? "-" : "",
                 whole % 3 ? whole / 3 % 10 : whole / 3 % 1000);
        size_t length = strlen(number);
        if (digits > 0)
            number[length++] = '.';
        for (uint32_t k = 0; k < digits && length < 20; k++)
            number[length++] = (char)('0' + (next_random(&random) >> 8) % 10);
        number[length] = '\0';
        expected[i] = strtof(number, NULL);
        if (i > 0)
            kelp_buf_append_cstr(&text, separators[i < NUMBERS / 2 ? 0 : whole >> 8 & 3]);
        kelp_buf_append_cstr(&text, number);
    }
    assert_false(text.failed);
    char *copy = malloc(text.length); /* of its own size, for sanitizers */
    assert_non_null(copy);
    memcpy(copy, text.data, text.length);
    for (size_t count = 0, position = 0; count < NUMBERS;) {
        size_t n = kelp_v2_read_floats(copy, text.length, &position, found + count, 100);
        assert_int_not_equal(n, 0);
        count += n;
        while (position < text.length && (copy[position] == ' ' || copy[position] == ','))
            position++;
    }
    free(copy);
    for (size_t i = 0; i < NUMBERS; i++)
        if (memcmp(&found[i], &expected[i], sizeof found[i]) != 0)
            fail_msg("number %zu is %a, expected %a", i, (double)found[i], (double)expected[i]);
    kelp_buf_deinit(&text);
}

static void arrays_are_read_up_to_another_form(void **state) {
    (void)state;
    const char *text = "[1, 2.5 ,\n-3,1e2,5]";
    float values[8];
    size_t position = 1;
    assert_int_equal(kelp_v2_read_floats(text, strlen(text), &position, values, 8), 3);
    assert_int_equal(position, 12);
    assert_true(values[0] == 1.0f && values[1] == 2.5f && values[2] == -3.0f);
    position = 1;
    assert_int_equal(kelp_v2_read_floats(text, strlen(text), &position, values, 2), 2);
    assert_int_equal(position, 7);
    position = 17;
    assert_int_equal(kelp_v2_read_floats(text, strlen(text), &position, values, 8), 1);
    assert_int_equal(position, 18);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_form_is_that_of_doubles),
        cmocka_unit_test(the_shortest_text_reads_back),
        cmocka_unit_test(arrays_have_commas),
        cmocka_unit_test(arrays_have_the_text_of_their_values),
        cmocka_unit_test(numbers_are_rounded_correctly),
        cmocka_unit_test(numbers_in_arrays_are_rounded_correctly),
        cmocka_unit_test(other_forms_are_left_to_the_caller),
        cmocka_unit_test(arrays_are_read_up_to_another_form),
    };
    int failed = cmocka_run_group_tests_name("with vectors", tests, NULL, NULL);
    kelp_v2_allow_vectors(false);
    return failed + cmocka_run_group_tests_name("without vectors", tests, NULL, NULL);
}
