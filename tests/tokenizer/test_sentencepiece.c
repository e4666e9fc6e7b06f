/* SPDX-License-Identifier: Apache-2.0 */
/* SentencePiece: places in the text, text of ids, malformed models, failures. */
#include "base/wire/protobuf_write.h"
#include "tokenizer/tokenizer.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>

#include "support/check_status.h"
#include "support/failing_allocator.h"

enum { NORMAL = 1, UNKNOWN = 2, CONTROL = 3, USER = 4, UNUSED = 5 };
enum { BYTE = 6 };
enum { UNIGRAM = 1, BPE = 2, WORD = 3, CHAR = 4 };

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

/* ---- options of the model ---- */
typedef struct field {
    uint32_t number; /* 0: none */
    int64_t value;
} field;

/* Fields of the model: of the trainer (2) and of the normalizer (3). */
typedef struct options {
    field trainer, normalizer;
    int byte_pieces; /* <0x00> and following, with ids from 8 */
    int user_pieces; /* [000] and following, with the ids after those */
    bool fallback;
} options;

static kelp_tokenizer *create_with(const options *o, kelp_code code, const char *error) {
    kelp_buf model = write_model(UNIGRAM), trainer, normalizer;
    kelp_tokenizer *tokenizer = NULL;
    kelp_buf_init(&trainer, kelp_allocator_system());
    kelp_buf_init(&normalizer, kelp_allocator_system());
    for (int i = 0; i < o->byte_pieces; i++) {
        char name[8];
        snprintf(name, sizeof name, "<0x%02X>", i);
        put_piece(&model, name, -5, BYTE);
    }
    for (int i = 0; i < o->user_pieces; i++) {
        char name[8];
        snprintf(name, sizeof name, "[%03d]", i);
        put_piece(&model, name, 0, USER);
    }
    kelp_protobuf_put_i64(&trainer, 35, o->fallback);
    if (o->trainer.number != 0)
        kelp_protobuf_put_i64(&trainer, o->trainer.number, o->trainer.value);
    if (o->normalizer.number != 0)
        kelp_protobuf_put_i64(&normalizer, o->normalizer.number, o->normalizer.value);
    kelp_protobuf_put_message(&model, 2, &trainer);
    kelp_protobuf_put_message(&model, 3, &normalizer);
    kelp_status *status = kelp_sentencepiece_create(
        kelp_allocator_system(), (kelp_str){model.data, model.length}, &tokenizer);
    if (error != NULL)
        expect_failure(status, code, error);
    else
        check_ok(status);
    kelp_buf_deinit(&normalizer);
    kelp_buf_deinit(&trainer);
    kelp_buf_deinit(&model);
    return tokenizer;
}

static void options_of_the_model_apply(void **state) {
    static const struct {
        options options;
        const char *text;
        int64_t ids[8]; /* until -1 */
    } cases[] = {
        {{.byte_pieces = 0}, " a  b ", {5, 2, 5, 3, -1}},
        {{.normalizer = {3, 0}}, "ab", {4, -1}}, /* no space at the start */
        {{.normalizer = {4, 0}}, "a  b", {5, 2, 5, 5, 3, -1}},
        {{.normalizer = {5, 0}}, "a b", {0, 2, 0, 3, -1}}, /* spaces are no U+2581 */
        {{.trainer = {24, 1}}, "a b", {2, 5, 3, 5, -1}},   /* a space at the end */
        {{.byte_pieces = 256, .fallback = true}, "az", {5, 2, 8 + 'z', -1}},
        {{.byte_pieces = 256, .fallback = true}, "\xC3\xA9", {5, 8 + 0xC3, 8 + 0xA9, -1}},
        {{.byte_pieces = 256}, "az", {5, 2, 0, -1}},
        {{.user_pieces = 400}, "a[000][399]b[40", {5, 2, 8, 407, 3, 0, -1}},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        kelp_tokenizer *tokenizer = create_with(&cases[i].options, KELP_OK, NULL);
        kelp_token_list tokens;
        size_t count = 0;
        kelp_token_list_init(&tokens, kelp_allocator_system());
        check_ok(kelp_tokenizer_encode(tokenizer, kelp_str_from(cases[i].text), &tokens));
        while (cases[i].ids[count] >= 0)
            count++;
        if (tokens.count != count)
            fail_msg("case %zu: expected %zu tokens, found %zu", i, count, tokens.count);
        for (size_t k = 0; k < count; k++)
            if (tokens.items[k].id != cases[i].ids[k])
                fail_msg("case %zu: token %zu is %lld", i, k, (long long)tokens.items[k].id);
        kelp_token_list_deinit(&tokens);
        kelp_tokenizer_destroy(tokenizer);
    }
}

static void bytes_become_text(void **state) {
    static const struct {
        int64_t ids[6]; /* until -1 */
        const char *text;
    } cases[] = {
        {{5, 8 + 0xC3, 8 + 0xA9, 2, -1},
         "\xC3\xA9"
         "a"},
        {{8 + 0xE2, 8 + 0x82, 8 + 0xAC, -1}, "\xE2\x82\xAC"},
        {{8 + 0xE2, 8 + 0x82, 2, -1},
         "\xEF\xBF\xBD\xEF\xBF\xBD"
         "a"},
        {{8 + 'z', 8 + 0xFF, 8 + 'z', -1}, "z\xEF\xBF\xBDz"},
        {{8 + 'z', 8 + 0, 8 + 'z', -1}, "z"}, /* NUL ends the compared text */
    };
    (void)state;
    const options all = {.byte_pieces = 256, .fallback = true};
    kelp_tokenizer *tokenizer = create_with(&all, KELP_OK, NULL);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        size_t count = 0;
        kelp_buf out;
        kelp_buf_init(&out, kelp_allocator_system());
        while (cases[i].ids[count] >= 0)
            count++;
        check_ok(
            kelp_tokenizer_decode(tokenizer, cases[i].ids, count, &(kelp_decode_options){0}, &out));
        assert_string_equal(kelp_buf_cstr(&out), cases[i].text);
        kelp_buf_deinit(&out);
    }
    kelp_tokenizer_destroy(tokenizer);
}

static void unsupported_options_are_rejected(void **state) {
    static const struct {
        options options;
        kelp_code code;
        const char *error;
    } cases[] = {
        {{.fallback = true}, KELP_INVALID_ARGUMENT, "byte_fallback needs 256 byte pieces"},
        {{.fallback = true, .byte_pieces = 255}, KELP_INVALID_ARGUMENT, "needs 256 byte pieces"},
        {{.trainer = {3, WORD}}, KELP_UNIMPLEMENTED, "expected unigram, bpe or char, found word"},
        {{.trainer = {3, 9}}, KELP_UNIMPLEMENTED, "found an unknown type"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        assert_null(create_with(&cases[i].options, cases[i].code, cases[i].error));
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
        cmocka_unit_test(options_of_the_model_apply),
        cmocka_unit_test(bytes_become_text),
        cmocka_unit_test(unsupported_options_are_rejected),
        cmocka_unit_test(a_long_text_takes_no_quadratic_time),
        cmocka_unit_test(truncated_models_are_rejected_or_read),
        cmocka_unit_test(each_failed_allocation_is_a_status),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
