/* SPDX-License-Identifier: Apache-2.0 */
/* Byte-level BPE: places in the text, merges in order of rank, text of ids, long words, failures.
 */
#include "tokenizer/tokenizer.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "support/check_status.h"
#include "support/failing_allocator.h"

#define VOCABULARY                                                                      \
    "{\"a\": 0, \"b\": 1, \"c\": 2, \"ab\": 3, \"bc\": 4, \"abc\": 5, \"\\u0120\": 6, " \
    "\"\\u00c3\": 7, "                                                                  \
    "\"\\u00a9\": 8, \"</s>\": 9, \"c</w>\": 10, \"bc</w>\": 11}"

static const kelp_added_token special[] = {{{"</s>", 4}, 0, false}, {{"<s>", 3}, 0, false}};
static const kelp_added_token added[] = {
    {{"a a", 3}, 40, false}, {{"a", 1}, 41, false}, {{"a a", 3}, 42, false}};

static kelp_status *create(kelp_allocator allocator, const char *merges, bool ends_words,
                           size_t added_count, kelp_tokenizer **out) {
    kelp_bpe_options options = {.vocabulary = KELP_STR(VOCABULARY),
                                .merges = kelp_str_from(merges),
                                .special = special,
                                .special_count = 2,
                                .added = added,
                                .added_count = added_count,
                                .ends_words = ends_words};
    return kelp_bpe_create(allocator, &options, out);
}

static void check(const char *merges, bool ends_words, size_t added_count, const char *text,
                  const size_t (*expected)[3], size_t count) {
    kelp_tokenizer *tokenizer = NULL;
    kelp_token_list tokens;
    check_ok(create(kelp_allocator_system(), merges, ends_words, added_count, &tokenizer));
    kelp_token_list_init(&tokens, kelp_allocator_system());
    check_ok(kelp_tokenizer_encode(tokenizer, kelp_str_from(text), &tokens));
    assert_int_equal(tokens.count, count);
    for (size_t i = 0; i < count; i++) {
        assert_int_equal(tokens.items[i].id, expected[i][0]);
        assert_int_equal(tokens.items[i].begin, expected[i][1]);
        assert_int_equal(tokens.items[i].end, expected[i][2]);
    }
    kelp_token_list_deinit(&tokens);
    kelp_tokenizer_destroy(tokenizer);
}

static void merges_apply_in_order_of_rank(void **state) {
    (void)state;
    check("b c\na b\na bc", false, 0, "abcab abc",
          (const size_t[][3]){{5, 0, 3}, {3, 3, 5}, {6, 5, 6}, {5, 6, 9}}, 4);
    check("a b\nb c", false, 0, "aabcbc",
          (const size_t[][3]){{0, 0, 1}, {3, 1, 3}, {2, 3, 4}, {4, 4, 6}}, 4);
}

/* ---- comparison with a simple implementation ---- */
enum { LETTERS = 4, TOKENS = 40, LONGEST = 8 };

typedef struct table {
    char tokens[TOKENS]
               [LONGEST + 1]; /* the letters, then the results of the merges in order of rank */
    int left[TOKENS], right[TOKENS];
    uint32_t seed;
} table;

static uint32_t dice(table *t, uint32_t sides) {
    t->seed = t->seed * 1664525u + 1013904223u;
    return (t->seed >> 8) % sides;
}

static bool contains(const table *t, int count, const char *token) {
    for (int i = 0; i < count; i++)
        if (strcmp(t->tokens[i], token) == 0)
            return true;
    return false;
}

static void make_table(table *t, kelp_buf *vocabulary, kelp_buf *merges) {
    for (int i = 0; i < LETTERS; i++)
        snprintf(t->tokens[i], sizeof t->tokens[i], "%c", 'a' + i);
    for (int i = LETTERS; i < TOKENS;) {
        char made[2 * LONGEST + 1];
        int left = (int)dice(t, (uint32_t)i), right = (int)dice(t, (uint32_t)i);
        snprintf(made, sizeof made, "%s%s", t->tokens[left], t->tokens[right]);
        if (strlen(made) > LONGEST || contains(t, i, made))
            continue;
        strcpy(t->tokens[i], made);
        t->left[i] = left;
        t->right[i] = right;
        kelp_buf_printf(merges, "%s %s\n", t->tokens[left], t->tokens[right]);
        i++;
    }
    kelp_buf_printf(vocabulary, "{");
    for (int i = 0; i < TOKENS; i++)
        kelp_buf_printf(vocabulary, "%s\"%s\": %d", i > 0 ? ", " : "", t->tokens[i], i);
    kelp_buf_printf(vocabulary, "}");
}

/* Merges the first pair of the lowest rank until there is none. Returns the number of tokens. */
static size_t merge(const table *t, int *ids, size_t count) {
    for (;;) {
        int best = TOKENS;
        size_t at = 0;
        for (size_t i = 0; i + 1 < count; i++)
            for (int rank = LETTERS; rank < best; rank++)
                if (t->left[rank] == ids[i] && t->right[rank] == ids[i + 1]) {
                    best = rank;
                    at = i;
                }
        if (best == TOKENS)
            return count;
        ids[at] = best;
        memmove(&ids[at + 1], &ids[at + 2], (count - at - 2) * sizeof *ids);
        count--;
    }
}

static void random_words_have_the_tokens_of_a_simple_implementation(void **state) {
    (void)state;
    for (uint32_t seed = 1; seed <= 20; seed++) {
        table t = {.seed = seed};
        kelp_buf vocabulary, merges;
        kelp_tokenizer *tokenizer = NULL;
        kelp_buf_init(&vocabulary, kelp_allocator_system());
        kelp_buf_init(&merges, kelp_allocator_system());
        make_table(&t, &vocabulary, &merges);
        kelp_bpe_options options = {.vocabulary = kelp_str_from(kelp_buf_cstr(&vocabulary)),
                                    .merges = kelp_str_from(kelp_buf_cstr(&merges))};
        check_ok(kelp_bpe_create(kelp_allocator_system(), &options, &tokenizer));
        for (int word = 0; word < 50; word++) {
            char text[64];
            int ids[64];
            size_t length = 1 + dice(&t, 60);
            for (size_t i = 0; i < length; i++) {
                ids[i] = (int)dice(&t, LETTERS);
                text[i] = (char)('a' + ids[i]);
            }
            size_t count = merge(&t, ids, length);
            kelp_token_list tokens;
            kelp_token_list_init(&tokens, kelp_allocator_system());
            check_ok(kelp_tokenizer_encode(tokenizer, (kelp_str){text, length}, &tokens));
            assert_int_equal(tokens.count, count);
            for (size_t i = 0; i < count; i++)
                assert_int_equal(tokens.items[i].id, ids[i]);
            kelp_token_list_deinit(&tokens);
        }
        kelp_tokenizer_destroy(tokenizer);
        kelp_buf_deinit(&merges);
        kelp_buf_deinit(&vocabulary);
    }
}

static void tokens_have_the_bytes_of_the_text(void **state) {
    (void)state;
    check("x y", false, 0, "a \xC3\xA9<s>b",
          (const size_t[][3]){{0, 0, 1}, {6, 1, 2}, {7, 2, 4}, {8, 2, 4}, {12, 4, 7}, {1, 7, 8}},
          6);
    check("b c</w>", true, 0, "  A \t BC ", (const size_t[][3]){{SIZE_MAX, 2, 3}, {11, 6, 8}}, 2);
}

static void the_longest_added_token_counts(void **state) {
    (void)state;
    check("a b", false, 3, "a a ab a",
          (const size_t[][3]){{42, 0, 3}, {6, 3, 4}, {41, 4, 5}, {1, 5, 6}, {6, 6, 7}, {41, 7, 8}},
          6);
}

static void ids_become_text(void **state) {
    (void)state;
    const int64_t ids[] = {9, 5, 6, 7, 8, 99, 11};
    kelp_tokenizer *tokenizer = NULL;
    kelp_buf out;
    kelp_buf_init(&out, kelp_allocator_system());
    check_ok(create(kelp_allocator_system(), "a b", true, 0, &tokenizer));
    check_ok(kelp_tokenizer_decode(tokenizer, ids, 7, &(kelp_decode_options){0}, &out));
    assert_string_equal(kelp_buf_cstr(&out), "</s>abc \xC3\xA9"
                                             "bc ");
    kelp_buf_deinit(&out);
    kelp_tokenizer_destroy(tokenizer);
}

static void a_long_word_takes_no_quadratic_time(void **state) {
    (void)state;
    const size_t length = 200000;
    char *text = malloc(length);
    kelp_tokenizer *tokenizer = NULL;
    kelp_token_list tokens;
    assert_non_null(text);
    for (size_t i = 0; i < length; i++)
        text[i] = "abc"[i % 3];
    check_ok(create(kelp_allocator_system(), "b c\na bc", false, 0, &tokenizer));
    kelp_token_list_init(&tokens, kelp_allocator_system());
    check_ok(kelp_tokenizer_encode(tokenizer, (kelp_str){text, length}, &tokens));
    assert_int_equal(tokens.count, length / 3 + length % 3);
    kelp_token_list_deinit(&tokens);
    kelp_tokenizer_destroy(tokenizer);
    free(text);
}

static void malformed_merges_are_rejected(void **state) {
    (void)state;
    kelp_tokenizer *tokenizer = NULL;
    expect_failure(create(kelp_allocator_system(), "#version\na b\nab", false, 0, &tokenizer),
                   KELP_INVALID_ARGUMENT, "line 3 of the merges is malformed: expected two tokens");
    assert_null(tokenizer);
}

static kelp_status *create_and_encode(kelp_allocator allocator, bool ends_words) {
    kelp_tokenizer *tokenizer = NULL;
    kelp_token_list tokens;
    KELP_TRY(create(allocator, "b c\na bc", ends_words, 3, &tokenizer));
    kelp_token_list_init(&tokens, allocator);
    kelp_status *status = kelp_tokenizer_encode(tokenizer, KELP_STR("bcb abcb</s> c"), &tokens);
    kelp_token_list_deinit(&tokens);
    kelp_tokenizer_destroy(tokenizer);
    return status;
}

static void each_failed_allocation_is_a_status(void **state) {
    (void)state;
    for (uint64_t n = 1;; n++) {
        test_failing memory;
        test_failing_init(&memory, n);
        kelp_status *status = create_and_encode(test_failing_allocator(&memory), n % 2 == 0);
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
        cmocka_unit_test(merges_apply_in_order_of_rank),
        cmocka_unit_test(random_words_have_the_tokens_of_a_simple_implementation),
        cmocka_unit_test(tokens_have_the_bytes_of_the_text),
        cmocka_unit_test(the_longest_added_token_counts),
        cmocka_unit_test(ids_become_text),
        cmocka_unit_test(a_long_word_takes_no_quadratic_time),
        cmocka_unit_test(malformed_merges_are_rejected),
        cmocka_unit_test(each_failed_allocation_is_a_status),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
