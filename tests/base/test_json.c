/* SPDX-License-Identifier: Apache-2.0 */
/* JSON: what clients send is read exactly, what is wrong is named with its place, what is written
 * reads back. */
#include "base/text/json.h"

#include "base/checked.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <float.h>
#include <math.h>
#include <stdlib.h>

static kelp_json *parse(kelp_arena *arena, const char *text) {
    kelp_json *tree = NULL;
    kelp_status *status = kelp_json_parse(arena, "t.json", text, strlen(text), &tree);
    if (status != NULL)
        fail_msg("'%s': %s", text, kelp_status_message(status));
    return tree;
}

static void assert_refused(const char *text, size_t length, const char *message) {
    kelp_arena arena;
    kelp_json *tree = NULL;
    /* exactly as long as the text, so that a sanitizer sees a read behind it */
    char *copy = malloc(length > 0 ? length : 1);
    assert_non_null(copy);
    memcpy(copy, text, length);
    kelp_arena_init(&arena, kelp_allocator_system(), 0);
    kelp_status *status = kelp_json_parse(&arena, "t.json", copy, length, &tree);
    if (status == NULL)
        fail_msg("'%s' is taken", text);
    assert_int_equal(kelp_status_code(status), KELP_INVALID_ARGUMENT);
    assert_string_equal(kelp_status_message(status), message);
    kelp_status_free(status);
    kelp_arena_deinit(&arena);
    free(copy);
}

static void tokens_in_order(void **state) {
    (void)state;
    const char *text = " {\"a\":[1,-2.5,true],\"b\":{},\"c\":null,\"d\":[]} ";
    static const kelp_json_type expected[] = {
        KELP_JSON_OBJECT, KELP_JSON_KEY,        KELP_JSON_ARRAY,     KELP_JSON_INT,
        KELP_JSON_DOUBLE, KELP_JSON_BOOL,       KELP_JSON_ARRAY_END, KELP_JSON_KEY,
        KELP_JSON_OBJECT, KELP_JSON_OBJECT_END, KELP_JSON_KEY,       KELP_JSON_NULL,
        KELP_JSON_KEY,    KELP_JSON_ARRAY,      KELP_JSON_ARRAY_END, KELP_JSON_OBJECT_END,
        KELP_JSON_END,    KELP_JSON_END};
    kelp_arena arena;
    kelp_json_reader reader;
    kelp_json_token token;
    kelp_arena_init(&arena, kelp_allocator_system(), 0);
    kelp_json_reader_init(&reader, &arena, text, strlen(text));
    for (size_t i = 0; i < KELP_COUNT(expected); i++) {
        assert_null(kelp_json_next(&reader, &token));
        assert_int_equal(token.type, expected[i]);
    }
    assert_int_equal(arena.used_bytes, 0); /* nothing was escaped */
    kelp_arena_deinit(&arena);
}

static void a_value_read_by_the_caller_is_skipped(void **state) {
    (void)state;
    static const char text[] = "{\"a\" : \n[1, 2] , \"b\":3}";
    kelp_arena arena;
    kelp_arena_init(&arena, kelp_allocator_system(), 0);
    kelp_json_reader reader;
    kelp_json_token token;
    kelp_json_reader_init(&reader, &arena, text, sizeof text - 1);
    assert_null(kelp_json_next(&reader, &token));
    assert_null(kelp_json_next(&reader, &token));
    assert_int_equal(token.type, KELP_JSON_KEY);
    size_t begin = kelp_json_value_offset(&reader);
    assert_int_equal(text[begin], '[');
    kelp_json_skip_to(&reader, begin + sizeof "[1, 2]" - 1);
    assert_null(kelp_json_next(&reader, &token));
    assert_true(token.type == KELP_JSON_KEY && kelp_str_is(token.string, "b"));
    kelp_json_skip_to(&reader, kelp_json_value_offset(&reader) + 1);
    assert_null(kelp_json_next(&reader, &token));
    assert_int_equal(token.type, KELP_JSON_OBJECT_END);
    assert_null(kelp_json_next(&reader, &token));
    assert_int_equal(token.type, KELP_JSON_END);
    kelp_arena_deinit(&arena);
}

static void skipping_whole_values(void **state) {
    (void)state;
    const char *text = "{\"a\":[1,{\"x\":[2]},3],\"b\":7}";
    kelp_arena arena;
    kelp_json_reader reader;
    kelp_json_token token;
    kelp_arena_init(&arena, kelp_allocator_system(), 0);
    kelp_json_reader_init(&reader, &arena, text, strlen(text));
    assert_null(kelp_json_next(&reader, &token));
    assert_null(kelp_json_next(&reader, &token));
    assert_true(kelp_str_is(token.string, "a"));
    assert_null(kelp_json_skip(&reader));
    assert_null(kelp_json_next(&reader, &token));
    assert_true(kelp_str_is(token.string, "b"));
    assert_int_equal(token.offset, 21); /* of the key, behind the comma */
    assert_null(kelp_json_next(&reader, &token));
    assert_int_equal(token.i64, 7);
    kelp_arena_deinit(&arena);
}

static void integers_are_exact(void **state) {
    (void)state;
    kelp_arena arena;
    kelp_arena_init(&arena, kelp_allocator_system(), 0);
    const kelp_json *list = parse(&arena, "[9223372036854775807,-9223372036854775808,"
                                          "9223372036854775808,18446744073709551615,"
                                          "18446744073709551616,-9223372036854775809,-0,-1]");
    const kelp_json *at = list->child;
    assert_int_equal(list->count, 8);
    assert_int_equal(at->type, KELP_JSON_INT);
    assert_true(at->i64 == INT64_MAX && at->u64 == (uint64_t)INT64_MAX);
    at = at->next;
    assert_int_equal(at->type, KELP_JSON_INT);
    assert_true(at->i64 == INT64_MIN && at->f64 == -0x1p63);
    at = at->next;
    assert_int_equal(at->type, KELP_JSON_UINT);
    assert_true(at->u64 == UINT64_C(1) << 63);
    at = at->next;
    assert_int_equal(at->type, KELP_JSON_UINT);
    assert_true(at->u64 == UINT64_MAX);
    at = at->next;
    assert_int_equal(at->type, KELP_JSON_DOUBLE);
    assert_true(at->f64 == 0x1p64);
    at = at->next;
    assert_int_equal(at->type, KELP_JSON_DOUBLE);
    assert_true(at->f64 == -0x1p63);
    at = at->next; /* an integer for who wants one, signed for who wants a float */
    assert_int_equal(at->type, KELP_JSON_INT);
    assert_true(at->i64 == 0 && at->f64 == 0.0 && signbit(at->f64));
    at = at->next;
    assert_true(at->i64 == -1 && at->f64 == -1.0);
    kelp_arena_deinit(&arena);
}

static void doubles(void **state) {
    (void)state;
    kelp_arena arena;
    kelp_arena_init(&arena, kelp_allocator_system(), 0);
    const kelp_json *at = parse(&arena, "[0.1,1e2,-1.5E-3,1.7976931348623157e308,5e-324,1e400,"
                                        "Infinity,-Infinity,NaN]")
                              ->child;
    static const double expected[] = {0.1,    100.0,    -1.5e-3,  DBL_MAX,
                                      5e-324, INFINITY, INFINITY, -INFINITY};
    for (size_t i = 0; i < KELP_COUNT(expected); i++, at = at->next) {
        assert_int_equal(at->type, KELP_JSON_DOUBLE);
        assert_true(at->f64 == expected[i]);
    }
    assert_true(isnan(at->f64));
    assert_null(at->next);
    kelp_arena_deinit(&arena);
}

/* Where the short way to a double ends, and just behind. */
static void doubles_are_rounded_once(void **state) {
    (void)state;
    kelp_arena arena;
    kelp_arena_init(&arena, kelp_allocator_system(), 0);
    const kelp_json *at = parse(&arena, "[9007199254740992.0,9007199254740993.0,9007199254740995e0,"
                                        "1e22,1e23,123e-22,123e-23,0.12345678901234567,"
                                        "1234567890123456789.5,12345678901234567890.5,"
                                        "0.00000000000000000000001,1e00000000000000000000002,"
                                        "1e-99999999999999999999,0e99999999999999999999]")
                              ->child;
    static const double expected[] = {0x1p53,
                                      0x1p53,
                                      0x1p53 + 4,
                                      1e22,
                                      1e23,
                                      123e-22,
                                      123e-23,
                                      0.12345678901234567,
                                      1234567890123456789.5,
                                      12345678901234567890.5,
                                      1e-23,
                                      100.0,
                                      0.0,
                                      0.0};
    for (size_t i = 0; i < KELP_COUNT(expected); i++, at = at->next) {
        assert_int_equal(at->type, KELP_JSON_DOUBLE);
        if (at->f64 != expected[i])
            fail_msg("number %zu: %.17g, expected %.17g", i, at->f64, expected[i]);
    }
    assert_null(at);
    at = parse(&arena, "-0.0");
    assert_true(at->type == KELP_JSON_DOUBLE && at->f64 == 0.0 && signbit(at->f64));
    kelp_arena_deinit(&arena);
}

static void strings(void **state) {
    (void)state;
    kelp_arena arena;
    const char *text = "[\"plain\",\"a\\u0000b\",\"\\ud83d\\ude00\",\"\\u00e9\\u20AC\","
                       "\"\\\"\\\\\\/\\b\\f\\n\\r\\t\",\"\"]";
    kelp_arena_init(&arena, kelp_allocator_system(), 0);
    const kelp_json *at = parse(&arena, text)->child;
    assert_ptr_equal(at->string.data, text + 2); /* borrowed */
    assert_true(kelp_str_is(at->string, "plain"));
    at = at->next;
    assert_true(kelp_str_equal(at->string, KELP_STR("a\0b")));
    at = at->next;
    assert_true(kelp_str_is(at->string, "\xf0\x9f\x98\x80"));
    at = at->next;
    assert_true(kelp_str_is(at->string, "\xc3\xa9\xe2\x82\xac"));
    at = at->next;
    assert_true(kelp_str_is(at->string, "\"\\/\b\f\n\r\t"));
    at = at->next;
    assert_int_equal(at->string.length, 0);
    kelp_arena_deinit(&arena);
}

static void duplicate_keys_stay_in_order(void **state) {
    (void)state;
    kelp_arena arena;
    kelp_arena_init(&arena, kelp_allocator_system(), 0);
    const kelp_json *object = parse(&arena, "{\"k\":1,\"x\":2,\"k\":3}");
    assert_int_equal(object->count, 3);
    assert_int_equal(kelp_json_get(object, "k")->i64, 1);
    assert_true(kelp_str_is(object->child->next->next->key, "k"));
    assert_int_equal(object->child->next->next->i64, 3);
    assert_null(kelp_json_get(object, "none"));
    assert_null(kelp_json_get(NULL, "k"));
    assert_null(kelp_json_get(object->child, "k"));
    kelp_arena_deinit(&arena);
}

static void errors_name_their_place(void **state) {
    (void)state;
    static const struct {
        const char *text, *message;
    } cases[] = {
        {"", "t.json:1:1: expected a value, found the end"},
        {"  \n ", "t.json:2:2: expected a value, found the end"},
        {"{\"a\":1,\n \"b\" 2}", "t.json:2:6: expected ':' after a key, found '2'"},
        {"[1,]", "t.json:1:4: expected a value, found ']'"},
        {"[,1]", "t.json:1:2: expected a value, found ','"},
        {"{\"a\":1,}", "t.json:1:8: expected a key, found '}'"},
        {"{a:1}", "t.json:1:2: expected a key or '}', found 'a'"},
        {"[1 2]", "t.json:1:4: expected ',' or ']' in an array, found '2'"},
        {"{\"a\":1]", "t.json:1:7: expected ',' or '}' in an object, found ']'"},
        {"[1", "t.json:1:3: expected ',' or ']' in an array, found the end"},
        {"1 2", "t.json:1:3: expected the end, found '2'"},
        {"01", "t.json:1:2: expected no digit after a leading zero, found '1'"},
        {"-", "t.json:1:2: expected a digit, found the end"},
        {"-x", "t.json:1:2: expected a digit, found 'x'"},
        {"1.", "t.json:1:3: expected a digit after the point, found the end"},
        {"1e+", "t.json:1:4: expected a digit in the exponent, found the end"},
        {"+1", "t.json:1:1: expected a value, found '+'"},
        {"tru", "t.json:1:1: expected a value, found 't'"},
        {"-Inf", "t.json:1:1: expected a value, found '-'"},
        {"'a'", "t.json:1:1: expected a value, found '''"},
        {"\"a", "t.json:1:3: expected the closing quote of a string, found the end"},
        {"\"a\\", "t.json:1:4: expected the closing quote of a string, found the end"},
        {"\"a\nb\"", "t.json:1:3: expected no control character in a string, found byte 0x0a"},
        {"\"\\q\"", "t.json:1:3: expected an escape (one of \" \\ / b f n r t u), found 'q'"},
        {"\"\\u12g4\"", "t.json:1:4: expected four hexadecimal digits, found '1'"},
        {"\"\\ud800x\"", "t.json:1:8: expected the low half of a surrogate pair, found 'x'"},
        {"\"\\udc00\"", "t.json:1:4: expected no lone low surrogate, found 'd'"},
        {"\xef\xbb\xbf{}", "t.json:1:1: expected a value, found byte 0xef"},
    };
    for (size_t i = 0; i < KELP_COUNT(cases); i++)
        assert_refused(cases[i].text, strlen(cases[i].text), cases[i].message);
    assert_refused("[\0]", 3, "t.json:1:2: expected a value, found byte 0x00");
}

static void reader_errors_name_line_and_column(void **state) {
    (void)state;
    kelp_arena arena;
    kelp_json_reader reader;
    kelp_arena_init(&arena, kelp_allocator_system(), 0);
    kelp_json_reader_init(&reader, &arena, "[\n  ?]", 6);
    kelp_status *status = kelp_json_skip(&reader);
    assert_string_equal(kelp_status_message(status),
                        "line 2 column 3: expected a value, found '?'");
    kelp_status_free(status);
    kelp_arena_deinit(&arena);
}

static void depth_has_a_limit(void **state) {
    (void)state;
    char text[2 * KELP_JSON_MAX_DEPTH + 2];
    kelp_arena arena;
    kelp_json *tree = NULL;
    kelp_arena_init(&arena, kelp_allocator_system(), 0);
    memset(text, '[', KELP_JSON_MAX_DEPTH + 1);
    memset(text + KELP_JSON_MAX_DEPTH, ']', KELP_JSON_MAX_DEPTH);
    assert_null(kelp_json_parse(&arena, "t.json", text, (size_t)2 * KELP_JSON_MAX_DEPTH, &tree));
    size_t depth = 0;
    for (const kelp_json *at = tree; at != NULL; at = at->child)
        depth++;
    assert_int_equal(depth, KELP_JSON_MAX_DEPTH);
    kelp_arena_deinit(&arena);

    memset(text, '[', KELP_JSON_MAX_DEPTH + 1);
    assert_refused(text, KELP_JSON_MAX_DEPTH + 1,
                   "t.json:1:513: expected arrays and objects at most 512 deep, found '[' below "
                   "that");
}

static void no_memory_is_a_status(void **state) {
    (void)state;
    kelp_arena arena;
    kelp_json *tree = NULL;
    kelp_arena_init(&arena, kelp_allocator_system(), 64);
    arena.limit_bytes = 256;
    kelp_status *status = kelp_json_parse(&arena, "t.json", "[1,2,3,4,5,6]", 13, &tree);
    assert_int_equal(kelp_status_code(status), KELP_RESOURCE_EXHAUSTED);
    kelp_status_free(status);
    kelp_arena_deinit(&arena);
}

static void writer_puts_commas_and_quotes(void **state) {
    (void)state;
    kelp_buf out;
    kelp_json_writer writer;
    kelp_buf_init(&out, kelp_allocator_system());
    kelp_json_writer_init(&writer, &out);
    kelp_json_begin_object(&writer);
    kelp_json_key(&writer, "a\"");
    kelp_json_begin_array(&writer);
    kelp_json_put_i64(&writer, INT64_MIN);
    kelp_json_put_u64(&writer, UINT64_MAX);
    kelp_json_begin_object(&writer);
    kelp_json_end_object(&writer);
    kelp_json_put_f64(&writer, (double)NAN);
    kelp_json_put_f64(&writer, -(double)INFINITY);
    kelp_json_put_bool(&writer, false);
    kelp_json_end_array(&writer);
    kelp_json_key(&writer, "b");
    kelp_json_put_null(&writer);
    kelp_json_key(&writer, "c");
    kelp_json_put_raw(&writer, KELP_STR("[1]"));
    kelp_json_key(&writer, "d");
    kelp_json_put_string(&writer, KELP_STR("\x01\\\n\0/\x7f\xc3\xa9"));
    kelp_json_key(&writer, "e"); /* invalid UTF-8 */
    kelp_json_put_string(&writer, KELP_STR("x\xff\xc3y\xed\xa0\x80z\xc3"));
    kelp_json_end_object(&writer);
    assert_string_equal(kelp_buf_cstr(&out),
                        "{\"a\\\"\":[-9223372036854775808,18446744073709551615,{},NaN,-Infinity,"
                        "false],\"b\":null,\"c\":[1],\"d\":\"\\u0001\\\\\\n\\u0000/\x7f\xc3\xa9\","
                        "\"e\":\"x\uFFFD\uFFFDy\uFFFD\uFFFD\uFFFDz\uFFFD\"}");
    kelp_buf_deinit(&out);
}

static void writer_nests_deeper_than_its_bits(void **state) {
    (void)state;
    enum { LEVELS = 200 };
    kelp_buf out;
    kelp_json_writer writer;
    kelp_arena arena;
    kelp_buf_init(&out, kelp_allocator_system());
    kelp_arena_init(&arena, kelp_allocator_system(), 0);
    kelp_json_writer_init(&writer, &out);
    for (int i = 0; i < LEVELS; i++) {
        kelp_json_begin_array(&writer);
        if (i + 1 < LEVELS) /* the last stays empty: no comma there, but one in the levels above */
            kelp_json_put_i64(&writer, i);
    }
    for (int i = 0; i < LEVELS; i++) {
        kelp_json_end_array(&writer);
        if (i + 1 < LEVELS)
            kelp_json_put_bool(&writer, true);
    }
    const kelp_json *at = parse(&arena, kelp_buf_cstr(&out));
    for (int i = 0; i + 1 < LEVELS; i++) {
        assert_int_equal(at->count, 3);
        assert_int_equal(at->child->i64, i);
        at = at->child->next;
    }
    assert_int_equal(at->count, 0);
    kelp_arena_deinit(&arena);
    kelp_buf_deinit(&out);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tokens_in_order),
        cmocka_unit_test(skipping_whole_values),
        cmocka_unit_test(a_value_read_by_the_caller_is_skipped),
        cmocka_unit_test(integers_are_exact),
        cmocka_unit_test(doubles),
        cmocka_unit_test(doubles_are_rounded_once),
        cmocka_unit_test(strings),
        cmocka_unit_test(duplicate_keys_stay_in_order),
        cmocka_unit_test(errors_name_their_place),
        cmocka_unit_test(reader_errors_name_line_and_column),
        cmocka_unit_test(depth_has_a_limit),
        cmocka_unit_test(no_memory_is_a_status),
        cmocka_unit_test(writer_puts_commas_and_quotes),
        cmocka_unit_test(writer_nests_deeper_than_its_bits),
    };
    return cmocka_run_group_tests_name("base.json", tests, NULL, NULL);
}
