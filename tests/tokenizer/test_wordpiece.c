/* SPDX-License-Identifier: Apache-2.0 */
/* WordPiece: tokens with their places in the text, text of ids, malformed vocabularies. */
#include "tokenizer/tokenizer.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "support/check_status.h"
#include "support/failing_allocator.h"

static kelp_wordpiece_options options(const char *vocabulary) {
    return (kelp_wordpiece_options){
        .vocabulary = kelp_str_from(vocabulary),
        .is_json = *vocabulary == '{',
        .separators = "\n",
        .unknown = KELP_STR("[UNK]"),
        .continuation = KELP_STR("##"),
        .max_word_chars = 20,
        .words = {.lower_case = true, .strip_accents = true, .split_punctuation = true},
    };
}

static kelp_tokenizer *create(const char *vocabulary) {
    kelp_wordpiece_options o = options(vocabulary);
    kelp_tokenizer *tokenizer = NULL;
    check_ok(kelp_wordpiece_create(kelp_allocator_system(), &o, &tokenizer));
    return tokenizer;
}

static void tokens_have_the_bytes_of_the_text(void **state) {
    (void)state;
    const char text[] = "  \xC3\x89t\xC3\xA9s! \xE6\x97\xA5";
    const size_t expected[][4] = {{1, 2, 5, 0}, {2, 5, 8, 0}, {3, 8, 9, 1}, {0, 10, 13, 2}};
    kelp_tokenizer *tokenizer = create("[UNK]\net\n##es\n!");
    kelp_token_list tokens;
    kelp_token_list_init(&tokens, kelp_allocator_system());
    check_ok(kelp_tokenizer_encode(tokenizer, kelp_str_from(text), &tokens));
    assert_int_equal(tokens.count, 4);
    for (size_t i = 0; i < tokens.count; i++) {
        assert_int_equal(tokens.items[i].id, expected[i][0]);
        assert_int_equal(tokens.items[i].begin, expected[i][1]);
        assert_int_equal(tokens.items[i].end, expected[i][2]);
        assert_int_equal(tokens.items[i].word, expected[i][3]);
    }
    kelp_token_list_deinit(&tokens);
    kelp_tokenizer_destroy(tokenizer);
}

/* U+0300 to U+036F are accents. Of the Greek capitals, the reference lowers those up to U+03A0. */
static void accents_are_removed_and_capitals_lowered(void **state) {
    (void)state;
    const char text[] = "e\xCC\x80 a\xCD\xAF \xCD\xB0 \xCE\xA0 \xCE\xA1";
    const int64_t expected[] = {1, 2, 0, 3, 4};
    kelp_tokenizer *tokenizer = create("[UNK]\ne\na\n\xCF\x80\n\xCE\xA1");
    kelp_token_list tokens;
    kelp_token_list_init(&tokens, kelp_allocator_system());
    check_ok(kelp_tokenizer_encode(tokenizer, kelp_str_from(text), &tokens));
    assert_int_equal(tokens.count, 5);
    for (size_t i = 0; i < tokens.count; i++)
        assert_int_equal(tokens.items[i].id, expected[i]);
    kelp_token_list_deinit(&tokens);
    kelp_tokenizer_destroy(tokenizer);
}

static void a_vocabulary_without_the_unknown_token_gives_none(void **state) {
    (void)state;
    kelp_tokenizer *tokenizer = create("{\"a\": 7}");
    kelp_token_list tokens;
    kelp_token_list_init(&tokens, kelp_allocator_system());
    check_ok(kelp_tokenizer_encode(tokenizer, KELP_STR("a b"), &tokens));
    assert_int_equal(tokens.count, 2);
    assert_int_equal(tokens.items[0].id, 7);
    assert_int_equal(tokens.items[1].id, KELP_TOKEN_NONE);
    assert_int_equal(kelp_tokenizer_id(tokenizer, KELP_STR("a")), 7);
    assert_int_equal(kelp_tokenizer_id(tokenizer, KELP_STR("b")), KELP_TOKEN_NONE);
    assert_true(kelp_str_is(kelp_tokenizer_token(tokenizer, 7), "a"));
    assert_null(kelp_tokenizer_token(tokenizer, 3).data);
    assert_null(kelp_tokenizer_token(tokenizer, -1).data);
    assert_null(kelp_tokenizer_token(tokenizer, 8).data);
    kelp_token_list_deinit(&tokens);
    kelp_tokenizer_destroy(tokenizer);
    kelp_tokenizer_destroy(NULL);
}

static void ids_become_text(void **state) {
    (void)state;
    const int64_t ids[] = {2, 1, 2, 0, 9, 3, 1}, skipped[] = {0};
    kelp_decode_options how = {.skipped = skipped, .skipped_count = 1, .clean_up_spaces = true};
    kelp_tokenizer *tokenizer = create("[CLS]\net\n##es\n!\n\xC4\xA1"); /* U+0121 is no '!' */
    const int64_t letters[] = {1, 4, 1, 3};
    kelp_buf out;
    kelp_buf_init(&out, kelp_allocator_system());
    check_ok(kelp_tokenizer_decode(tokenizer, ids, 7, &how, &out));
    assert_string_equal(kelp_buf_cstr(&out), "etes [UNK]! et");
    kelp_buf_clear(&out);
    check_ok(kelp_tokenizer_decode(tokenizer, letters, 4, &how, &out));
    assert_string_equal(kelp_buf_cstr(&out), "et \xC4\xA1 et!");
    kelp_buf_clear(&out);
    how = (kelp_decode_options){0};
    check_ok(kelp_tokenizer_decode(tokenizer, ids, 7, &how, &out));
    assert_string_equal(kelp_buf_cstr(&out), "etes [CLS] [UNK] ! et");
    kelp_buf_deinit(&out);
    kelp_tokenizer_destroy(tokenizer);
}

static void malformed_vocabularies_are_rejected(void **state) {
    (void)state;
    const struct {
        const char *vocabulary, *why;
    } cases[] = {{"{\"a\": 1.5}", "token 'a' has an invalid id: expected an integer"},
                 {"{\"a\": -1}", "token 'a' has an invalid id: expected 0 to"},
                 {"{\"a\": 1} x", "line 1"},
                 {"{\"a\"", "line 1"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        kelp_wordpiece_options o = options(cases[i].vocabulary);
        kelp_tokenizer *tokenizer = NULL;
        expect_failure(kelp_wordpiece_create(kelp_allocator_system(), &o, &tokenizer),
                       KELP_INVALID_ARGUMENT, cases[i].why);
        assert_null(tokenizer);
    }
}

static kelp_status *create_and_encode(kelp_allocator allocator) {
    kelp_wordpiece_options o = options("{\"a\": 0, \"\\u0062\": 1, \"##c\": 2}");
    kelp_tokenizer *tokenizer = NULL;
    kelp_token_list tokens;
    KELP_TRY(kelp_wordpiece_create(allocator, &o, &tokenizer));
    kelp_token_list_init(&tokens, allocator);
    kelp_status *status = kelp_tokenizer_encode(tokenizer, KELP_STR("a bc !"), &tokens);
    if (status == NULL) {
        const int64_t ids[] = {0, 1, 2};
        kelp_buf out;
        kelp_buf_init(&out, allocator);
        status = kelp_tokenizer_decode(tokenizer, ids, 3, &(kelp_decode_options){0}, &out);
        kelp_buf_deinit(&out);
    }
    kelp_token_list_deinit(&tokens);
    kelp_tokenizer_destroy(tokenizer);
    return status;
}

static void each_failed_allocation_is_a_status(void **state) {
    (void)state;
    for (uint64_t n = 1;; n++) {
        test_failing memory;
        test_failing_init(&memory, n);
        kelp_status *status = create_and_encode(test_failing_allocator(&memory));
        test_failing_check(&memory);
        bool failed = memory.failed;
        test_failing_deinit(&memory);
        if (!failed) {
            check_ok(status);
            return;
        }
        assert_non_null(status);
        assert_int_equal(kelp_status_code(status), KELP_RESOURCE_EXHAUSTED);
        kelp_status_free(status);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tokens_have_the_bytes_of_the_text),
        cmocka_unit_test(accents_are_removed_and_capitals_lowered),
        cmocka_unit_test(a_vocabulary_without_the_unknown_token_gives_none),
        cmocka_unit_test(ids_become_text),
        cmocka_unit_test(malformed_vocabularies_are_rejected),
        cmocka_unit_test(each_failed_allocation_is_a_status),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
