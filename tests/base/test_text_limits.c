/* SPDX-License-Identifier: Apache-2.0 */
/* Text at the limits of its formats: surrogates, texts that end early, malformed UTF-8, and parsers
 * without memory. */
#include "base/checked.h"
#include "base/log.h"
#include "base/text/json.h"
#include "base/text/pbtxt.h"
#include "support/failing_allocator.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Parses a copy that has exactly the text's length, so that reads after its end are found. */
static kelp_status *parse_json(kelp_arena *arena, const char *text, kelp_json **out) {
    size_t length = strlen(text);
    char *copy = malloc(length);
    assert_non_null(copy);
    memcpy(copy, text, length);
    kelp_status *status = kelp_json_parse(arena, "t.json", copy, length, out);
    free(copy);
    return status;
}

static void assert_rejected(kelp_status *status, const char *part) {
    assert_int_equal(kelp_status_code(status), KELP_INVALID_ARGUMENT);
    if (strstr(kelp_status_message(status), part) == NULL)
        fail_msg("expected '%s' in '%s'", part, kelp_status_message(status));
    kelp_status_free(status);
}

static void halves_of_surrogate_pairs_are_rejected(void **state) {
    (void)state;
    static const char *const json[] = {"\"\\ud800\\u0041\"", "\"\\ud800\\udbff\"",
                                       "\"\\ud800\\ue000\"", "\"\\ud800\\uzzzz\"",
                                       "\"\\ud800\\nabcd\"", "\"\\ud800\""};
    for (size_t i = 0; i < KELP_COUNT(json); i++) {
        kelp_arena arena;
        kelp_json *tree = NULL;
        kelp_arena_init(&arena, kelp_allocator_system(), 0);
        assert_rejected(parse_json(&arena, json[i], &tree), "the low half of a surrogate pair");
        kelp_arena_deinit(&arena);
    }
    static const char *const pbtxt[] = {"a: '\\ud800\\u0041'", "a: '\\ud800\\udbff'",
                                        "a: '\\ud800\\ue000'", "a: '\\udc00\\udc00'",
                                        "a: '\\ud800\\udc0'"};
    for (size_t i = 0; i < KELP_COUNT(pbtxt); i++) {
        kelp_arena arena;
        kelp_pbtxt *root = NULL;
        kelp_arena_init(&arena, kelp_allocator_system(), 0);
        assert_rejected(kelp_pbtxt_parse(&arena, "c.pbtxt", pbtxt[i], strlen(pbtxt[i]), &root),
                        "both halves of a surrogate pair");
        kelp_arena_deinit(&arena);
    }
}

static void surrogate_pairs_are_one_character(void **state) {
    (void)state;
    static const struct {
        const char *escapes, *utf8;
    } cases[] = {{"\\ud800\\udc00", "\xf0\x90\x80\x80"},
                 {"\\ud83d\\ude00", "\xf0\x9f\x98\x80"},
                 {"\\udbff\\udfff", "\xf4\x8f\xbf\xbf"},
                 {"\\ud7ff\\ue000", "\xed\x9f\xbf\xee\x80\x80"}};
    for (size_t i = 0; i < KELP_COUNT(cases); i++) {
        kelp_arena arena;
        kelp_json *tree = NULL;
        kelp_pbtxt *root = NULL;
        char text[64];
        kelp_arena_init(&arena, kelp_allocator_system(), 0);
        (void)snprintf(text, sizeof text, "\"%s\"", cases[i].escapes);
        assert_null(parse_json(&arena, text, &tree));
        assert_int_equal(tree->string.length, strlen(cases[i].utf8));
        assert_memory_equal(tree->string.data, cases[i].utf8, tree->string.length);
        (void)snprintf(text, sizeof text, "a: '%s'", cases[i].escapes);
        assert_null(kelp_pbtxt_parse(&arena, "c.pbtxt", text, strlen(text), &root));
        assert_int_equal(root->child->text.length, strlen(cases[i].utf8));
        assert_memory_equal(root->child->text.data, cases[i].utf8, root->child->text.length);
        kelp_arena_deinit(&arena);
    }
}

/* Every beginning of a document is rejected without a read after its end. */
static void texts_that_end_early_are_rejected(void **state) {
    (void)state;
    const char *whole = "{\"a\\u00e4\\ud83d\\ude00\" : [1, -2.5e+3, true, false, null], \"b\":{}}";
    for (size_t length = 1; length < strlen(whole); length++) {
        kelp_arena arena;
        kelp_json *tree = NULL;
        char text[80];
        kelp_arena_init(&arena, kelp_allocator_system(), 0);
        (void)snprintf(text, sizeof text, "%.*s", (int)length, whole);
        assert_rejected(parse_json(&arena, text, &tree), "t.json:1:");
        kelp_arena_deinit(&arena);
    }
}

static void words_are_values(void **state) {
    (void)state;
    kelp_arena arena;
    kelp_json *tree = NULL;
    kelp_arena_init(&arena, kelp_allocator_system(), 0);
    assert_null(parse_json(&arena, "[true,false]", &tree));
    assert_true(tree->child->boolean);
    assert_false(tree->child->next->boolean);
    kelp_arena_deinit(&arena);
}

static void parsers_report_each_failed_allocation(void **state) {
    (void)state;
    static const char pbtxt[] = "name: \"a long text that needs an allocation of its own\"\n"
                                "input [ { dims: [1, 2] label: 'two' \"parts\" } ]\n"
                                "[an.extension.with.a.long.name] { x: 0x10 }\n";
    static const char json[] = "{\"a key that is long\":[1,2,{\"b\":\"a\\u0041 and more\"}],"
                               "\"c\":\"text of some length\"}";
    for (int is_json = 0; is_json < 2; is_json++) {
        for (uint64_t n = 1;; n++) {
            test_failing memory;
            kelp_arena arena;
            kelp_pbtxt *root = NULL;
            kelp_json *tree = NULL;
            test_failing_init(&memory, n);
            kelp_arena_init(&arena, test_failing_allocator(&memory), 1);
            kelp_status *status =
                is_json ? kelp_json_parse(&arena, "t.json", json, sizeof json - 1, &tree)
                        : kelp_pbtxt_parse(&arena, "c.pbtxt", pbtxt, sizeof pbtxt - 1, &root);
            bool failed = memory.failed;
            kelp_arena_deinit(&arena);
            test_failing_check(&memory);
            test_failing_deinit(&memory);
            if (!failed) {
                assert_null(status);
                assert_true(n > 5);
                break;
            }
            assert_int_equal(kelp_status_code(status), KELP_RESOURCE_EXHAUSTED);
            kelp_status_free(status);
        }
    }
}

static void strings_of_c_are_written_as_json(void **state) {
    (void)state;
    kelp_buf buf;
    kelp_json_writer writer;
    kelp_buf_init(&buf, kelp_allocator_system());
    kelp_json_writer_init(&writer, &buf);
    kelp_json_begin_array(&writer);
    kelp_json_put_cstr(&writer, "a \"b\"");
    kelp_json_put_cstr(&writer, "");
    kelp_json_end_array(&writer);
    assert_string_equal(kelp_buf_cstr(&buf), "[\"a \\\"b\\\"\",\"\"]");
    kelp_buf_deinit(&buf);
}

/* In a log line in JSON, well-formed UTF-8 is kept and each other byte is escaped. */
static void log_lines_are_valid_utf8(void **state) {
    (void)state;
    static const struct {
        const char *text;
        bool is_valid;
    } cases[] = {{"\xc2\x80", true},
                 {"\xdf\xbf", true},
                 {"\xe0\xa0\x80", true},
                 {"\xed\x9f\xbf", true},
                 {"\xee\x80\x80", true},
                 {"\xf0\x90\x80\x80", true},
                 {"\xf4\x8f\xbf\xbf", true},
                 {"\xc1\xbf", false},
                 {"\xe0\x9f\xbf", false},
                 {"\xed\xa0\x80", false},
                 {"\xf0\x8f\xbf\xbf", false},
                 {"\xf4\x90\x80\x80", false},
                 {"\xf5\x80\x80\x80", false},
                 {"\xc3(", false},
                 {"\xe2\x82(", false},
                 {"\xe2(\xa1", false},
                 {"\x80", false}};
    for (size_t i = 0; i < KELP_COUNT(cases); i++) {
        char line[256];
        const char *text = cases[i].text;
        kelp_log_format_line(KELP_LOG_JSON, true, KELP_LOG_INFO, "f.c", 1, text, strlen(text), line,
                             sizeof line);
        bool kept = strstr(line, text) != NULL;
        if (kept != cases[i].is_valid)
            fail_msg("case %zu: %s", i, line);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(halves_of_surrogate_pairs_are_rejected),
        cmocka_unit_test(surrogate_pairs_are_one_character),
        cmocka_unit_test(texts_that_end_early_are_rejected),
        cmocka_unit_test(words_are_values),
        cmocka_unit_test(parsers_report_each_failed_allocation),
        cmocka_unit_test(strings_of_c_are_written_as_json),
        cmocka_unit_test(log_lines_are_valid_utf8),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
