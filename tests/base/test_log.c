/* SPDX-License-Identifier: Apache-2.0 */
/* Log lines as a reader, or a program that reads JSON, meets them; and the clocks they take their
 * time from. */
#include "base/log.h"

#include "base/clock.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <regex.h>
#include <string.h>

typedef struct sink {
    int calls;
    kelp_log_level level;
    int line;
    size_t length;
    char text[8192];
} sink;

static void keep(void *userp, kelp_log_level level, const char *file, int line, const char *text,
                 size_t length) {
    sink *into = userp;
    assert_non_null(strstr(file, "test_log.c"));
    into->calls++;
    into->level = level;
    into->line = line;
    into->length = length;
    memcpy(into->text, text, length < sizeof(into->text) ? length : sizeof(into->text));
}

static void level_decides(void **state) {
    (void)state;
    sink into = {0};
    kelp_logger logger = {.fn = keep, .userp = &into, .level = KELP_LOG_WARNING};
    KELP_LOGF(&logger, KELP_LOG_INFO, "not seen");
    assert_int_equal(into.calls, 0);
    KELP_LOGF(&logger, KELP_LOG_WARNING, "model '%s'", "m");
    assert_int_equal(into.calls, 1);
    assert_int_equal(into.level, KELP_LOG_WARNING);
    assert_true(into.line > 0);
    assert_int_equal(into.length, 9);
    assert_memory_equal(into.text, "model 'm'", 9);
    logger.fn = NULL;
    KELP_LOGF(&logger, KELP_LOG_ERROR, "dropped");
    KELP_LOGF(NULL, KELP_LOG_ERROR, "dropped");
    assert_int_equal(into.calls, 1);
}

static void long_messages_are_whole(void **state) {
    (void)state;
    sink into = {0};
    kelp_logger logger = {.fn = keep, .userp = &into, .level = KELP_LOG_INFO};
    for (int width = 2040; width < 2056; width++) {
        KELP_LOGF(&logger, KELP_LOG_INFO, "%*s", width, "end");
        assert_int_equal(into.length, width);
        assert_memory_equal(into.text + width - 3, "end", 3);
    }
}

static void assert_line(kelp_log_format format, const char *text, size_t length,
                        const char *pattern) {
    char line[1024];
    regex_t compiled;
    size_t needed = kelp_log_format_line(format, true, KELP_LOG_INFO, "src/base/file.c", 12, text,
                                         length, line, sizeof(line));
    assert_int_equal(needed, strlen(line));
    assert_int_equal(regcomp(&compiled, pattern, REG_EXTENDED | REG_NOSUB), 0);
    if (regexec(&compiled, line, 0, NULL, 0) != 0)
        fail_msg("%s does not match %s", line, pattern);
    regfree(&compiled);
}

static void lines_have_their_shape(void **state) {
    (void)state;
    assert_line(KELP_LOG_DEFAULT, "hello", 5,
                "^I[01][0-9][0-3][0-9] [0-2][0-9]:[0-5][0-9]:[0-6][0-9]\\.[0-9]{6} [0-9]+ "
                "file\\.c:12\\] \"hello\"\n$");
    assert_line(KELP_LOG_ISO8601, "hello", 5,
                "^20[0-9]{2}-[01][0-9]-[0-3][0-9]T[0-2][0-9]:[0-5][0-9]:[0-6][0-9]Z I [0-9]+ "
                "file\\.c:12\\] \"hello\"\n$");
    assert_line(KELP_LOG_JSON, "hello", 5,
                "^\\{\"time\":\"20[0-9T:.-]+Z\",\"level\":\"info\",\"file\":\"file\\.c\","
                "\"line\":12,\"thread\":[0-9]+,\"message\":\"hello\"\\}\n$");
}

static void assert_quoted(const char *text, size_t length, const char *expected) {
    char line[256];
    (void)kelp_log_format_line(KELP_LOG_DEFAULT, true, KELP_LOG_ERROR, "f.c", 1, text, length, line,
                               sizeof(line));
    const char *found = strchr(line, ']');
    assert_non_null(found);
    assert_string_equal(found + 2, expected);
}

/* One message is one line of valid JSON text, whatever a client managed to put into it. */
static void messages_are_quoted(void **state) {
    (void)state;
    assert_quoted("", 0, "\"\"\n");
    assert_quoted("a\"b\\c\nd\te\x01", 10, "\"a\\\"b\\\\c\\nd\\te\\u0001\"\n");
    assert_quoted("nul\0l", 5, "\"nul\\u0000l\"\n");
    assert_quoted("\xC3\xA9\xE2\x82\xAC\xF0\x9F\x98\x80", 9,
                  "\"\xC3\xA9\xE2\x82\xAC\xF0\x9F\x98\x80\"\n");
    assert_quoted("\xC3", 1, "\"\xEF\xBF\xBD\"\n");
    assert_quoted("\xFFz", 2, "\"\xEF\xBF\xBDz\"\n");
    assert_quoted("\xC0\xAF", 2, "\"\xEF\xBF\xBD\xEF\xBF\xBD\"\n");
    assert_quoted("\xED\xA0\x80", 3, "\"\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD\"\n");
}

static void small_buffers_are_terminated(void **state) {
    (void)state;
    char line[16];
    size_t needed = kelp_log_format_line(KELP_LOG_ISO8601, true, KELP_LOG_ERROR, "f.c", 1, "text",
                                         4, line, sizeof(line));
    assert_true(needed > sizeof(line));
    assert_int_equal(strlen(line), sizeof(line) - 1);
    /* The process id and the year have as many digits in the next call. */
    assert_int_equal(
        kelp_log_format_line(KELP_LOG_ISO8601, true, KELP_LOG_ERROR, "f.c", 1, "text", 4, NULL, 0),
        needed);
}

static void clocks_run(void **state) {
    (void)state;
    uint64_t before = kelp_now_ns();
    assert_true(kelp_now_ns() >= before);
    /* After 2023 and before 2200. */
    assert_true(kelp_wall_now_ns() > UINT64_C(1672531200000000000));
    assert_true(kelp_wall_now_ns() < UINT64_C(7258118400000000000));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(level_decides),
        cmocka_unit_test(long_messages_are_whole),
        cmocka_unit_test(lines_have_their_shape),
        cmocka_unit_test(messages_are_quoted),
        cmocka_unit_test(small_buffers_are_terminated),
        cmocka_unit_test(clocks_run),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
