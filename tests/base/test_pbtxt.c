/* SPDX-License-Identifier: Apache-2.0 */
/* The text format: configurations as people write them, all spellings of values, errors with their
 * place. */
#include "base/text/pbtxt.h"

#include "base/checked.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

static kelp_pbtxt *parse(kelp_arena *arena, const char *text) {
    kelp_pbtxt *root = NULL;
    kelp_status *status = kelp_pbtxt_parse(arena, "c.pbtxt", text, strlen(text), &root);
    if (status != NULL)
        fail_msg("'%s': %s", text, kelp_status_message(status));
    return root;
}

static void assert_message(kelp_status *status, const char *message) {
    if (status == NULL)
        fail_msg("no error, expected '%s'", message);
    assert_int_equal(kelp_status_code(status), KELP_INVALID_ARGUMENT);
    assert_string_equal(kelp_status_message(status), message);
    kelp_status_free(status);
}

static void assert_refused(const char *text, size_t length, const char *message) {
    kelp_arena arena;
    kelp_pbtxt *root = NULL;
    /* exactly as long as the text, so that a sanitizer sees a read behind it */
    char *copy = malloc(length > 0 ? length : 1);
    assert_non_null(copy);
    memcpy(copy, text, length);
    kelp_arena_init(&arena, kelp_allocator_system(), 0);
    assert_message(kelp_pbtxt_parse(&arena, "c.pbtxt", copy, length, &root), message);
    kelp_arena_deinit(&arena);
    free(copy);
}

/* name=text, {} around messages: the tree on one line. */
static void print(const kelp_pbtxt *fields, char *out, size_t size) {
    for (const kelp_pbtxt *at = fields; at != NULL; at = at->next) {
        size_t used = strlen(out);
        if (at->type == KELP_PBTXT_MESSAGE) {
            (void)snprintf(out + used, size - used, "%.*s{", KELP_STR_ARG(at->name));
            print(at->child, out, size);
            used = strlen(out);
            (void)snprintf(out + used, size - used, "}");
        } else {
            const char *quote = at->type == KELP_PBTXT_STRING ? "\"" : "";
            (void)snprintf(out + used, size - used, "%.*s=%s%.*s%s ", KELP_STR_ARG(at->name), quote,
                           KELP_STR_ARG(at->text), quote);
        }
    }
}

static void assert_tree(const char *text, const char *expected) {
    char printed[1024] = "";
    kelp_arena arena;
    kelp_arena_init(&arena, kelp_allocator_system(), 0);
    print(parse(&arena, text)->child, printed, sizeof(printed));
    assert_string_equal(printed, expected);
    kelp_arena_deinit(&arena);
}

static void model_configuration(void **state) {
    (void)state;
    assert_tree("# a model\n"
                "name: \"simple\"\n"
                "platform: 'onnxruntime_onnx'\n"
                "max_batch_size: 8\n"
                "input [\n  {\n    name: \"x\" # the first\n    data_type: TYPE_INT32\n"
                "    dims: [ 16, -1 ]\n  },\n  { name: \"y\" dims: 4 }\n]\n"
                "instance_group { kind: KIND_CPU; count: 2, }\n"
                "parameters: < key: 'k' value: { string_value: \"a\" 'b'\n \"c\" } >\n",
                "name=\"simple\" platform=\"onnxruntime_onnx\" max_batch_size=8 "
                "input{name=\"x\" data_type=TYPE_INT32 dims=16 dims=-1 }"
                "input{name=\"y\" dims=4 }"
                "instance_group{kind=KIND_CPU count=2 }"
                "parameters{key=\"k\" value{string_value=\"abc\" }}");
}

static void shapes_of_the_grammar(void **state) {
    (void)state;
    assert_tree("", "");
    assert_tree(" # only a comment", "");
    assert_tree("a:1b", "a=1b "); /* one word: that it is no number shows when it is read */
    assert_tree("a:1;b:2,c:3 d:4", "a=1 b=2 c=3 d=4 ");
    assert_tree("a: [] b: [ 'x' , \"y\" ] c <> d {}", "b=\"x\" b=\"y\" c{}d{}");
    assert_tree("a: [{b:1},<c:2>], d [ {} , {e [{}]} ]", "a{b=1 }a{c=2 }d{}d{e{}}");
    assert_tree("a: - # minus\n 5 b: -inf", "a=-5 b=-inf ");
    assert_tree("[x.y/z.W] { v: 1 } [q.r]: 2", "[x.y/z.W]{v=1 }[q.r]=2 ");
    assert_tree("f: 1.5e-3f g: .5 h: 1E+10", "f=1.5e-3f g=.5 h=1E+10 ");
}

static void string_escapes(void **state) {
    (void)state;
    kelp_arena arena;
    kelp_arena_init(&arena, kelp_allocator_system(), 0);
    kelp_pbtxt *root =
        parse(&arena, "s: '\\n\\t\\r\\\\\\'\\\"\\x41\\xfF\\101\\0' \"\\u00e9\\U0001F600"
                      "\\ud83d\\ude00\" s: ''");
    assert_true(
        kelp_str_equal(root->child->text, KELP_STR("\n\t\r\\'\"A\xff"
                                                   "A\0\xc3\xa9\xf0\x9f\x98\x80\xf0\x9f\x98\x80")));
    assert_int_equal(root->child->next->text.length, 0);
    kelp_arena_deinit(&arena);
}

/* Memory follows the text: many short strings on one line, and one of many literals. */
static void long_lines(void **state) {
    (void)state;
    enum { STRINGS = 20000 };
    size_t length = (size_t)STRINGS * 6;
    char *text = malloc(length + 1);
    kelp_arena arena;
    kelp_pbtxt *root = NULL;
    assert_non_null(text);
    for (size_t i = 0; i < STRINGS; i++)
        memcpy(text + 6 * i, "s:'x' ", 6);
    kelp_arena_init(&arena, kelp_allocator_system(), 0);
    assert_null(kelp_pbtxt_parse(&arena, "c.pbtxt", text, length, &root));
    size_t count = 0;
    for (const kelp_pbtxt *at = root->child; at != NULL; at = at->next)
        count++;
    assert_int_equal(count, STRINGS);
    assert_true(arena.used_bytes < (size_t)STRINGS * 256);
    kelp_arena_clear(&arena);
    memcpy(text, "s:", 2);
    for (size_t i = 2; i + 4 <= length; i += 4)
        memcpy(text + i, "'y'\n", 4);
    assert_null(kelp_pbtxt_parse(&arena, "c.pbtxt", text, length - 2, &root));
    assert_int_equal(root->child->text.length, (length - 2) / 4);
    kelp_arena_deinit(&arena);
    free(text);
}

static void errors_name_their_place(void **state) {
    (void)state;
    static const struct {
        const char *text, *message;
    } cases[] = {
        {"a", "1:2: expected ':' or '{' after a field's name, found the end of the file"},
        {"a 1", "1:3: expected ':' or '{' after a field's name, found '1'"},
        {"a:\n  ?", "2:3: expected a value, found '?'"},
        {"1a: 2", "1:1: expected a field's name, found '1a'"},
        {"a: 1 }", "1:6: expected a field's name, found '}'"},
        {", a: 1", "1:1: expected a field's name, found ','"},
        {"a {, b: 1}", "1:4: expected a field's name, found ','"},
        {"a: 1,, b: 2", "1:6: expected a field's name, found ','"},
        {"a {\n b: 1\n", "3:1: expected '}', found the end of the file"},
        {"a < b: 1 }", "1:10: expected a field's name, found '}'"},
        {"a: [1 2]", "1:7: expected ',' or ']' in a list, found '2'"},
        {"a: [1,]", "1:7: expected a value, found ']'"},
        {"a [1]", "1:4: expected '{' or ']' in a list without ':', found '1'"},
        {"a: [{} word]", "1:8: expected ',' or ']' in a list, found 'word'"},
        {"a: 'x", "1:6: expected the closing quote of a string, found the end of the file"},
        {"a: 'x\ny'", "1:6: expected the closing quote of a string on its line, found byte 0x0a"},
        {"a: '\\q'", "1:7: expected an escape that the text format knows, found '''"},
        {"a: '\\", "1:6: expected an escape, found the end of the file"},
        {"a: '\\ud800'", "1:11: expected both halves of a surrogate pair, found '''"},
        {"a: -", "1:5: expected a value, found the end of the file"},
        {"[a.b", "1:5: expected ']' after an extension's name, found the end of the file"},
        {"a: \xc3", "1:4: expected a value, found byte 0xc3"},
    };
    for (size_t i = 0; i < KELP_COUNT(cases); i++) {
        char message[160];
        (void)snprintf(message, sizeof(message), "c.pbtxt:%s", cases[i].message);
        assert_refused(cases[i].text, strlen(cases[i].text), message);
    }
    assert_refused("a\0: 1", 5,
                   "c.pbtxt:1:2: expected ':' or '{' after a field's name, found byte "
                   "0x00");
}

static void depth_has_a_limit(void **state) {
    (void)state;
    char text[2 * 101];
    kelp_arena arena;
    kelp_pbtxt *root = NULL;
    for (size_t i = 0; i < 101; i++)
        memcpy(text + 2 * i, "a{", 2);
    assert_refused(text, sizeof(text),
                   "c.pbtxt:1:202: expected messages nested at most 100 deep, found '{'");
    memset(text + 200, ' ', 2);
    assert_refused(text, sizeof(text), "c.pbtxt:1:203: expected '}', found the end of the file");
    for (size_t i = 0; i < 50; i++)
        memcpy(text + 100 + i, "}", 1);
    kelp_arena_init(&arena, kelp_allocator_system(), 0);
    assert_null(kelp_pbtxt_parse(&arena, "c.pbtxt", text, 150, &root));
    kelp_arena_deinit(&arena);
}

static void places_of_fields(void **state) {
    (void)state;
    kelp_arena arena;
    kelp_arena_init(&arena, kelp_allocator_system(), 0);
    const kelp_pbtxt *at = parse(&arena, "a: 1\n  dims: [ 7,\n 8 ]")->child->next->next;
    assert_int_equal(at->line, 2);
    assert_int_equal(at->column, 3);
    assert_int_equal(at->value_line, 3);
    assert_int_equal(at->value_column, 2);
    kelp_arena_deinit(&arena);
}

static const kelp_pbtxt *value(kelp_arena *arena, const char *text) {
    return parse(arena, text)->child;
}

static void whole_numbers(void **state) {
    (void)state;
    kelp_arena arena;
    int64_t i = 0;
    uint64_t u = 0;
    kelp_arena_init(&arena, kelp_allocator_system(), 0);
    assert_null(
        kelp_pbtxt_i64("c", value(&arena, "n: -9223372036854775808"), INT64_MIN, INT64_MAX, &i));
    assert_true(i == INT64_MIN);
    assert_null(kelp_pbtxt_i64("c", value(&arena, "n: 0x7F"), 0, 255, &i));
    assert_int_equal(i, 127);
    assert_null(kelp_pbtxt_i64("c", value(&arena, "n: -017"), -99, 0, &i));
    assert_int_equal(i, -15);
    assert_null(kelp_pbtxt_u64("c", value(&arena, "n: 18446744073709551615"), UINT64_MAX, &u));
    assert_true(u == UINT64_MAX);
    assert_message(kelp_pbtxt_i64("c", value(&arena, "\n max: x"), INT32_MIN, INT32_MAX, &i),
                   "c:2:7: field 'max': expected a whole number from -2147483648 to 2147483647, "
                   "found 'x'");
    assert_message(kelp_pbtxt_i64("c", value(&arena, "max: 9"), 0, 8, &i),
                   "c:1:6: field 'max': expected a whole number from 0 to 8, found '9'");
    assert_message(kelp_pbtxt_i64("c", value(&arena, "m: 9223372036854775808"), 0, INT64_MAX, &i),
                   "c:1:4: field 'm': expected a whole number from 0 to 9223372036854775807, found "
                   "'9223372036854775808'");
    assert_message(kelp_pbtxt_u64("c", value(&arena, "m: -1"), 5, &u),
                   "c:1:4: field 'm': expected a whole number from 0 to 5, found '-1'");
    assert_message(kelp_pbtxt_u64("c", value(&arena, "m: '1'"), 5, &u),
                   "c:1:4: field 'm': expected a whole number from 0 to 5, found \"1\"");
    assert_message(kelp_pbtxt_i64("c", value(&arena, "m { }"), 0, 5, &i),
                   "c:1:3: field 'm': expected a whole number from 0 to 5, found a message");
    assert_message(kelp_pbtxt_i64("c", value(&arena, "m: 08"), 0, 9, &i),
                   "c:1:4: field 'm': expected a whole number from 0 to 9, found '08'");
    kelp_arena_deinit(&arena);
}

static void other_scalars(void **state) {
    (void)state;
    static const struct {
        const char *text;
        double expected;
    } numbers[] = {{"n: 1.5f", 1.5},     {"n: -2F", -2.0},     {"n: 0x1F", 31.0},
                   {"n: -0x10", -16.0},  {"n: inf", INFINITY}, {"n: -Infinity", -INFINITY},
                   {"n: INF", INFINITY}, {"n: .25", 0.25},     {"n: 3.", 3.0},
                   {"n: 1e-2", 0.01},    {"n: 7", 7.0}};
    kelp_arena arena;
    double f = 0;
    bool b = false;
    kelp_str s = {0};
    kelp_arena_init(&arena, kelp_allocator_system(), 0);
    for (size_t i = 0; i < KELP_COUNT(numbers); i++) {
        assert_null(kelp_pbtxt_f64("c", value(&arena, numbers[i].text), &f));
        assert_true(f == numbers[i].expected);
    }
    assert_null(kelp_pbtxt_f64("c", value(&arena, "n: nan"), &f));
    assert_true(isnan(f));
    assert_message(kelp_pbtxt_f64("c", value(&arena, "n: f"), &f),
                   "c:1:4: field 'n': expected a number, found 'f'");
    assert_message(kelp_pbtxt_f64("c", value(&arena, "n {}"), &f),
                   "c:1:3: field 'n': expected a number, found a message");
    assert_null(kelp_pbtxt_bool("c", value(&arena, "b: true"), &b));
    assert_true(b);
    assert_null(kelp_pbtxt_bool("c", value(&arena, "b: 0"), &b));
    assert_false(b);
    assert_message(kelp_pbtxt_bool("c", value(&arena, "b: yes"), &b),
                   "c:1:4: field 'b': expected true or false, found 'yes'");
    assert_null(kelp_pbtxt_string("c", value(&arena, "s: 'v'"), &s));
    assert_true(kelp_str_is(s, "v"));
    assert_message(kelp_pbtxt_string("c", value(&arena, "s: v"), &s),
                   "c:1:4: field 's': expected a string in quotes, found 'v'");
    kelp_arena_deinit(&arena);
}

static void no_memory_is_a_status(void **state) {
    (void)state;
    kelp_arena arena;
    kelp_pbtxt *root = NULL;
    kelp_arena_init(&arena, kelp_allocator_system(), 64);
    arena.limit_bytes = 256;
    kelp_status *status = kelp_pbtxt_parse(&arena, "c", "a:1 b:2 c:3 d:4 e:5", 19, &root);
    assert_int_equal(kelp_status_code(status), KELP_RESOURCE_EXHAUSTED);
    kelp_status_free(status);
    kelp_arena_deinit(&arena);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(model_configuration),     cmocka_unit_test(shapes_of_the_grammar),
        cmocka_unit_test(string_escapes),          cmocka_unit_test(long_lines),
        cmocka_unit_test(errors_name_their_place), cmocka_unit_test(depth_has_a_limit),
        cmocka_unit_test(places_of_fields),        cmocka_unit_test(whole_numbers),
        cmocka_unit_test(other_scalars),           cmocka_unit_test(no_memory_is_a_status),
    };
    return cmocka_run_group_tests_name("base.pbtxt", tests, NULL, NULL);
}
