/* SPDX-License-Identifier: Apache-2.0 */
/* SentencePiece: places in the text, text of ids, malformed models, failures. */
#include "base/wire/protobuf_write.h"
#include "tokenizer/tokenizer.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>

#include "support/check_status.h"
#include "support/failing_allocator.h"

enum { NORMAL = 1, UNKNOWN = 2, CONTROL = 3, USER = 4, UNUSED = 5 };
enum { UNIGRAM = 1, BPE = 2, CHAR = 4 };

static void put_piece(kelp_buf *model, const char *text, float score, int64_t type) {
    kelp_buf piece;
    kelp_buf_init(&piece, kelp_allocator_system());
    kelp_protobuf_put_text(&piece, 1, text);
    kelp_protobuf_put_f32(&piece, 2, score);
    kelp_protobuf_put_i64(&piece, 3, type);
    kelp_protobuf_put_message(model, 1, &piece);
    kelp_buf_deinit(&piece);
}

/* Writes a model; free it with kelp_buf_deinit. */
static kelp_buf write_model(int64_t algorithm) {
    kelp_buf model, trainer;
    kelp_buf_init(&model, kelp_allocator_system());
    kelp_buf_init(&trainer, kelp_allocator_system());
    put_piece(&model, "<unk>", 0, UNKNOWN);
    put_piece(&model, "<s>", 0, CONTROL);
    put_piece(&model, "a", -2, NORMAL);
    put_piece(&model, "b", -2, NORMAL);
    put_piece(&model, "ab", -1, NORMAL);
    put_piece(&model, "\xE2\x96\x81", -1, NORMAL);
    put_piece(&model, "abab", 0, UNUSED);
    put_piece(&model, "<m>", 0, USER);
    kelp_protobuf_put_i64(&trainer, 3, algorithm);
    kelp_protobuf_put_message(&model, 2, &trainer);
    kelp_buf_deinit(&trainer);
    check_ok(kelp_buf_status(&model));
    return model;
}

static kelp_tokenizer *create(int64_t algorithm) {
    kelp_buf model = write_model(algorithm);
    kelp_tokenizer *tokenizer = NULL;
    check_ok(kelp_sentencepiece_create(kelp_allocator_system(),
                                       (kelp_str){model.data, model.length}, &tokenizer));
    kelp_buf_deinit(&model);
    return tokenizer;
}

static void tokens_have_the_bytes_of_the_text(void **state) {
    (void)state;
    const char text[] = "  abab  <m>zz\xFF";
    const size_t expected[][3] = {{5, 2, 2}, {4, 2, 4},  {4, 4, 6},
                                  {5, 6, 8}, {7, 8, 11}, {0, 11, 14}};
    for (int64_t algorithm = UNIGRAM; algorithm <= BPE; algorithm++) {
        kelp_tokenizer *tokenizer = create(algorithm);
        kelp_token_list tokens;
        kelp_token_list_init(&tokens, kelp_allocator_system());
        check_ok(kelp_tokenizer_encode(tokenizer, kelp_str_from(text), &tokens));
        assert_int_equal(tokens.count, 6);
        for (size_t i = 0; i < tokens.count; i++) {
            assert_int_equal(tokens.items[i].id, expected[i][0]);
            assert_int_equal(tokens.items[i].begin, expected[i][1]);
            assert_int_equal(tokens.items[i].end, expected[i][2]);
        }
        kelp_token_list_deinit(&tokens);
        kelp_tokenizer_destroy(tokenizer);
    }
}

static void ids_become_text(void **state) {
    (void)state;
    const int64_t ids[] = {1, 5, 2, 5, 4, 0, 7}, skipped[] = {7};
    int64_t start, end;
    kelp_tokenizer *tokenizer = create(UNIGRAM);
    kelp_decode_options how = {.skipped = skipped, .skipped_count = 1};
    kelp_buf out;
    kelp_buf_init(&out, kelp_allocator_system());
    check_ok(kelp_tokenizer_decode(tokenizer, ids, 7, &how, &out));
    assert_string_equal(kelp_buf_cstr(&out), "a ab \xE2\x81\x87 ");
    kelp_sentencepiece_ends(tokenizer, &start, &end);
    assert_int_equal(start, 1);
    assert_int_equal(end, KELP_TOKEN_NONE);
    assert_int_equal(kelp_tokenizer_id(tokenizer, KELP_STR("ab")), 4);
    assert_true(kelp_str_is(kelp_tokenizer_token(tokenizer, 1), "<s>"));
    kelp_buf_deinit(&out);
    kelp_tokenizer_destroy(tokenizer);
}

static void a_long_text_takes_no_quadratic_time(void **state) {
    (void)state;
    const size_t length = 200000;
    char *text = malloc(length);
    assert_non_null(text);
    for (size_t i = 0; i < length; i++)
        text[i] = "ab"[i % 2];
    for (int64_t algorithm = UNIGRAM; algorithm <= BPE; algorithm++) {
        kelp_tokenizer *tokenizer = create(algorithm);
        kelp_token_list tokens;
        kelp_token_list_init(&tokens, kelp_allocator_system());
        check_ok(kelp_tokenizer_encode(tokenizer, (kelp_str){text, length}, &tokens));
        assert_int_equal(tokens.count, length / 2 + 1);
        kelp_token_list_deinit(&tokens);
        kelp_tokenizer_destroy(tokenizer);
    }
    free(text);
}

static void truncated_models_are_rejected_or_read(void **state) {
    (void)state;
    kelp_buf model = write_model(UNIGRAM);
    for (size_t length = 0; length < model.length; length++) {
        kelp_tokenizer *tokenizer = NULL;
        kelp_status *status = kelp_sentencepiece_create(kelp_allocator_system(),
                                                        (kelp_str){model.data, length}, &tokenizer);
        if (status != NULL) {
            assert_int_equal(kelp_status_code(status), KELP_INVALID_ARGUMENT);
            assert_null(tokenizer);
        }
        kelp_status_free(status);
        kelp_tokenizer_destroy(tokenizer);
    }
    kelp_buf_deinit(&model);
}

static kelp_status *create_and_use(kelp_allocator allocator, kelp_str model) {
    const int64_t ids[] = {1, 5, 2, 0};
    kelp_tokenizer *tokenizer = NULL;
    kelp_token_list tokens;
    kelp_buf out;
    KELP_TRY(kelp_sentencepiece_create(allocator, model, &tokenizer));
    kelp_token_list_init(&tokens, allocator);
    kelp_buf_init(&out, allocator);
    kelp_status *status = kelp_tokenizer_encode(tokenizer, KELP_STR(" abab <m> zz"), &tokens);
    if (status == NULL)
        status = kelp_tokenizer_decode(tokenizer, ids, 4, &(kelp_decode_options){0}, &out);
    kelp_buf_deinit(&out);
    kelp_token_list_deinit(&tokens);
    kelp_tokenizer_destroy(tokenizer);
    return status;
}

static void each_failed_allocation_is_a_status(void **state) {
    (void)state;
    for (int64_t algorithm = UNIGRAM; algorithm <= CHAR; algorithm++) {
        kelp_buf model = write_model(algorithm == 3 ? UNIGRAM : algorithm);
        bool failed = true;
        for (uint64_t n = 1; failed; n++) {
            test_failing memory;
            test_failing_init(&memory, n);
            kelp_status *status = create_and_use(test_failing_allocator(&memory),
                                                 (kelp_str){model.data, model.length});
            test_failing_check(&memory);
            failed = memory.failed;
            test_failing_deinit(&memory);
            assert_int_equal(status != NULL, failed);
            if (status != NULL)
                assert_int_equal(kelp_status_code(status), KELP_RESOURCE_EXHAUSTED);
            kelp_status_free(status);
        }
        kelp_buf_deinit(&model);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tokens_have_the_bytes_of_the_text),
        cmocka_unit_test(ids_become_text),
        cmocka_unit_test(a_long_text_takes_no_quadratic_time),
        cmocka_unit_test(truncated_models_are_rejected_or_read),
        cmocka_unit_test(each_failed_allocation_is_a_status),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
