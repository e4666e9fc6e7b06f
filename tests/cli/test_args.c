/* SPDX-License-Identifier: Apache-2.0 */
/* Command lines as users type them. */
#include "base/checked.h"
#include "cli/args.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

typedef struct options {
    kelp_arg_list positionals;
    bool flag;
    int64_t number;
    double real;
    const char *mode;
    kelp_arg_list words;
} options;

static const kelp_arg_spec specs[] = {
    {.name = "exit-on-error",
     .kind = KELP_OPTION_BOOL,
     .offset = offsetof(options, flag),
     .help = "a flag"},
    {.name = "http-port",
     .letter = 'p',
     .kind = KELP_ARG_I64,
     .offset = offsetof(options, number),
     .value = "PORT",
     .help = "a number",
     .min = 0,
     .max = 65535},
    {.name = "seconds",
     .kind = KELP_ARG_F64,
     .offset = offsetof(options, real),
     .value = "S",
     .help = "a real number"},
    {.name = "mode",
     .kind = KELP_OPTION_TEXT,
     .offset = offsetof(options, mode),
     .value = "MODE",
     .choices = "none|all",
     .help = "a choice"},
    {.name = "input",
     .kind = KELP_OPTION_LIST,
     .offset = offsetof(options, words),
     .value = "WORD",
     .help = "words, with a help text that is long enough to be broken into a second line when it "
             "is shown to people"},
};

static const kelp_command command = {
    .name = "try",
    .summary = "a command",
    .usage = "FILE",
    .examples = "  kelp try x",
    .positional = "FILE",
    .max_positionals = 1,
    .tables = KELP_ARG_TABLE(specs),
    .options_bytes = sizeof(options),
};

#define WORDS(...)                          \
    (char **)(const char *[]){__VA_ARGS__}, \
        (int)(sizeof((const char *[]){__VA_ARGS__}) / sizeof(char *))

static void accept(char **words, int count, options *out) {
    bool help = true;
    *out = (options){0};
    kelp_status *status = kelp_args_parse(&command, count, words, out, &help);
    if (status)
        fail_msg("%s", kelp_status_message(status));
    assert_false(help);
}

static void refuse(char **words, int count, const char *message) {
    bool help = false;
    options o = {0};
    kelp_status *status = kelp_args_parse(&command, count, words, &o, &help);
    assert_non_null(status);
    assert_int_equal(kelp_status_code(status), KELP_INVALID_ARGUMENT);
    assert_string_equal(kelp_status_message(status), message);
    kelp_status_free(status);
    kelp_args_deinit(&command, &o);
}

static void values_in_all_forms(void **state) {
    (void)state;
    options o;
    accept(WORDS("--http-port", "8000", "--seconds=2.5", "--mode=all", "file"), &o);
    assert_int_equal(o.number, 8000);
    assert_true(o.real == 2.5);
    assert_string_equal(o.mode, "all");
    assert_string_equal(o.positionals.items[0], "file");
    kelp_args_deinit(&command, &o);
    accept(WORDS("-p", "1"), &o);
    assert_int_equal(o.number, 1);
    accept(WORDS("-p2"), &o);
    assert_int_equal(o.number, 2);
    accept(WORDS("-p=3"), &o);
    assert_int_equal(o.number, 3);
}

static void booleans_stand_alone_or_take_a_word(void **state) {
    (void)state;
    options o;
    accept(WORDS("--exit-on-error"), &o);
    assert_true(o.flag);
    accept(WORDS("--exit-on-error", "false"), &o);
    assert_false(o.flag);
    accept(WORDS("--exit-on-error=0"), &o);
    assert_false(o.flag);
    accept(WORDS("--exit-on-error", "file"), &o);
    assert_true(o.flag);
    assert_int_equal(o.positionals.count, 1);
    kelp_args_deinit(&command, &o);
}

static void lists_keep_their_order(void **state) {
    (void)state;
    options o;
    accept(WORDS("--input", "a=1", "--input=b=2", "--", "--input"), &o);
    assert_int_equal(o.words.count, 2);
    assert_string_equal(o.words.items[0], "a=1");
    assert_string_equal(o.words.items[1], "b=2");
    assert_string_equal(o.positionals.items[0], "--input");
    kelp_args_deinit(&command, &o);
}

static void errors_name_the_option(void **state) {
    (void)state;
    refuse(WORDS("--htp-port", "1"), "unknown option '--htp-port'; did you mean '--http-port'?");
    refuse(WORDS("--http_port=1"), "unknown option '--http_port'; did you mean '--http-port'?");
    refuse(WORDS("--http"), "unknown option '--http'; did you mean '--http-port'?");
    refuse(WORDS("--zzzzzzzzzz"), "unknown option '--zzzzzzzzzz'");
    refuse(WORDS("-z"), "unknown option '-z'");
    refuse(WORDS("--http-port"), "option '--http-port' needs a value, PORT");
    refuse(WORDS("--http-port", "x"), "option '--http-port': expected an integer, found 'x'");
    refuse(WORDS("--http-port", "65536"),
           "option '--http-port': expected 0 to 65535, found '65536'");
    refuse(WORDS("--mode", "some"), "option '--mode': expected none|all, found 'some'");
    refuse(WORDS("--mode", "non"), "option '--mode': expected none|all, found 'non'");
    refuse(WORDS("--exit-on-error=maybe"),
           "option '--exit-on-error': expected true or false, found 'maybe'");
    refuse(WORDS("--seconds", "fast"), "option '--seconds': expected a number, found 'fast'");
    refuse(WORDS("a", "b"), "unexpected argument 'b'");
}

static const char *word_at(const void *words, size_t i) {
    return ((const char *const *)words)[i];
}

/* A word in another case is nearer than one that it begins. */
static void nearest_words(void **state) {
    static const char *const words[] = {"models", "model", "run", "inspect", NULL};
    (void)state;
    assert_string_equal(kelp_args_nearest("MODEL", word_at, words), "model");
    assert_string_equal(kelp_args_nearest("mod", word_at, words), "models");
    assert_string_equal(kelp_args_nearest("ran", word_at, words), "run");
    assert_string_equal(kelp_args_nearest("inspekt", word_at, words), "inspect");
    assert_null(kelp_args_nearest("serve", word_at, words));
}

static void help_shows_every_option(void **state) {
    (void)state;
    bool help = false;
    options o = {0};
    assert_null(kelp_args_parse(&command, 1, (char **)(const char *[]){"--help"}, &o, &help));
    assert_true(help);
    kelp_buf text;
    kelp_buf_init(&text, kelp_allocator_system());
    kelp_args_help(&command, &text);
    const char *shown = kelp_buf_cstr(&text);
    assert_non_null(shown);
    for (size_t i = 0; i < KELP_COUNT(specs); i++)
        assert_non_null(strstr(shown, specs[i].name));
    assert_non_null(strstr(shown, "-p, --http-port PORT"));
    assert_non_null(strstr(shown, "kelp try x"));
    kelp_buf_deinit(&text);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values_in_all_forms),
        cmocka_unit_test(booleans_stand_alone_or_take_a_word),
        cmocka_unit_test(lists_keep_their_order),
        cmocka_unit_test(errors_name_the_option),
        cmocka_unit_test(nearest_words),
        cmocka_unit_test(help_shows_every_option),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
