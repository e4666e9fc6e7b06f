/* SPDX-License-Identifier: Apache-2.0 */
/* tokenizer.json: classes of tokenizers, words, marks, added tokens, ends, failures. */
#include "tokenizer/tokenizer.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "support/check_status.h"
#include "support/failing_allocator.h"

#define CONFIG(class)                                                                             \
    "{\"tokenizer_class\": \"" class "\", \"bos_token\": {\"content\": \"<s>\"}, \"eos_token\": " \
                                     "\"</s>\"}"
#define TOKENS                                                                   \
    "\"added_tokens\": [{\"id\": 20, \"content\": \"<s>\", \"special\": true}, " \
    "{\"id\": 21, \"content\": \"ab\", \"rstrip\": true}, {\"id\": 22, \"content\": \"ab\"}]"
#define BYTES                                                                              \
    "{" TOKENS ", \"post_processor\": {\"single\": [{\"id\": \"x<s>\"}]}, \"model\": "     \
    "{\"vocab\": {\"a\": 0, \"b\": 1, \"\\u0120\": 2, \"\\u0120a\": 3, \"1\": 4, \"11\": " \
    "5}, \"merges\": [\"\\u0120 a\", [\"1\", \"1\"]]}}"
#define MARKS                                                                             \
    "{\"decoder\": {\"decoders\": [{\"type\": \"Replace\", \"pattern\": {\"String\": "    \
    "\"\\u2581\"}}, {\"type\": \"Strip\", \"content\": \" \"}]}, \"model\": {\"vocab\": " \
    "{\"\\u2581\": 0, \"a\": 1, \"\\u2581a\": 2, \"<0xC3>\": 3, \"<0xA9>\": 4, "          \
    "\"<0x0A>\": 5}, \"merges\": [[\"\\u2581\", \"a\"]]}}"
#define UNIGRAM                                                                                \
    "{" TOKENS ", \"model\": {\"unk_id\": 0, \"vocab\": [[\"<unk>\", 0], [\"\\u2581a\", -1], " \
    "[\"\\u2581\", -2], [\"a\", -2], [\"aa\", -2.5], [\"</s>\", 0], [\"<0x62>\", -1]]}}"

static kelp_status *create(kelp_allocator allocator, const char *config, const char *model,
                           kelp_hf_model *out) {
    return kelp_hf_model_create(allocator, kelp_str_from(config), kelp_str_from(model), out);
}

static void check(const char *config, const char *model, const char *text, const int64_t *expected,
                  size_t count) {
    kelp_hf_model hf;
    kelp_token_list tokens;
    check_ok(create(kelp_allocator_system(), config, model, &hf));
    kelp_token_list_init(&tokens, kelp_allocator_system());
    check_ok(kelp_tokenizer_encode(hf.tokenizer, kelp_str_from(text), &tokens));
    assert_int_equal(tokens.count, count);
    for (size_t i = 0; i < count; i++)
        assert_int_equal(tokens.items[i].id, expected[i]);
    kelp_token_list_deinit(&tokens);
    kelp_tokenizer_destroy(hf.tokenizer);
}
#define CHECK(config, model, text, ...)                        \
    check(config, model, text, (const int64_t[]){__VA_ARGS__}, \
          sizeof((const int64_t[]){__VA_ARGS__}) / sizeof(int64_t))

static void byte_level_models_divide_by_their_expression(void **state) {
    (void)state;
    CHECK(CONFIG("GPT2TokenizerFast"), BYTES, " a1111a", 3, 5, 5, 0);
    CHECK(CONFIG("LlamaTokenizer"), BYTES, " a1111a", 3, 5, 4, 4, 0);
    CHECK(CONFIG("GPT2Tokenizer"), BYTES, "ab  \n a ab<s>b", 21, 0, 2, 21, 20, 1);
}

static void words_divide_at_capitals(void **state) {
    (void)state;
    static const char model[] =
        "{\"pre_tokenizer\": {\"type\": \"Sequence\", \"pretokenizers\": [{\"type\": \"Split\", "
        "\"pattern\": {\"Regex\": "
        "\"[^\\\\r\\\\n\\\\p{L}\\\\p{N}]?[\\\\p{Lu}\\\\p{Lt}\\\\p{Lm}\\\\p{Lo}\\\\p{M}]*"
        "[\\\\p{Ll}\\\\p{Lm}\\\\p{Lo}\\\\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|\\\\p{N}\"}}]}, "
        "\"model\": {\"vocab\": {\"a\": 0, \"B\": 1, \"'\": 2, \"S\": 3, \"1\": 4}, \"merges\": "
        "[]}}";
    static const size_t words[] = {0, 1, 1, 1, 1, 2, 3}; /* a Ba'S 1 1 */
    kelp_hf_model hf;
    kelp_token_list tokens;
    check_ok(create(kelp_allocator_system(), CONFIG("PreTrainedTokenizer"), model, &hf));
    kelp_token_list_init(&tokens, kelp_allocator_system());
    check_ok(kelp_tokenizer_encode(hf.tokenizer, KELP_STR("aBa'S11"), &tokens));
    assert_int_equal(tokens.count, sizeof words / sizeof *words);
    for (size_t i = 0; i < tokens.count; i++)
        assert_int_equal(tokens.items[i].word, words[i]);
    kelp_token_list_deinit(&tokens);
    kelp_tokenizer_destroy(hf.tokenizer);
}

static void models_with_marks_have_bytes(void **state) {
    (void)state;
    CHECK(CONFIG("LlamaTokenizer"), MARKS, "a\xC3\xA9 a\n", 2, 3, 4, 2, 5);
    CHECK(CONFIG("GemmaTokenizer"), MARKS, "a a", 2, 2);
    CHECK(CONFIG("LlamaTokenizer"), MARKS, " a", 0, 2);
}

static void unigram_models_choose_the_most_probable_tokens(void **state) {
    (void)state;
    CHECK(CONFIG("T5Tokenizer"), UNIGRAM, " aa  a zz b", 1, 3, 1, 2, 0, 2, 6);
    CHECK("{}", UNIGRAM, "ab", 1, 6);
    CHECK(CONFIG("ChatGLMTokenizer"), UNIGRAM, "a  a", 1, 2, 1);
}

static void ends_are_those_of_the_configuration(void **state) {
    (void)state;
    kelp_hf_model hf;
    check_ok(create(kelp_allocator_system(), CONFIG("GPT2Tokenizer"), BYTES, &hf));
    assert_true(hf.adds_start && !hf.adds_end && !hf.is_unigram && !hf.is_clip);
    assert_int_equal(hf.start, 20);
    kelp_tokenizer_destroy(hf.tokenizer);
    check_ok(create(kelp_allocator_system(), CONFIG("T5Tokenizer"), UNIGRAM, &hf));
    assert_true(!hf.adds_start && hf.adds_end && hf.is_unigram);
    assert_int_equal(hf.end, 5);
    kelp_tokenizer_destroy(hf.tokenizer);
    check_ok(create(kelp_allocator_system(), CONFIG("CLIPTokenizer"), BYTES, &hf));
    assert_true(hf.is_clip);
    kelp_tokenizer_destroy(hf.tokenizer);
    check_ok(create(kelp_allocator_system(), "{}", UNIGRAM, &hf));
    assert_true(hf.adds_start && hf.adds_end);
    assert_int_equal(hf.end, 5);
    kelp_tokenizer_destroy(hf.tokenizer);
    check_ok(create(kelp_allocator_system(), CONFIG("ChatGLMTokenizer"), UNIGRAM, &hf));
    assert_true(!hf.adds_start && !hf.adds_end);
    assert_int_equal(hf.dropped, 0);
    kelp_tokenizer_destroy(hf.tokenizer);
    check_ok(create(kelp_allocator_system(),
                    "{\"tokenizer_class\": \"GPT2Tokenizer\", \"bos_token\": \"<s>\", "
                    "\"pad_token\": \"ab\", \"add_bos_token\": true, \"add_eos_token\": true}",
                    BYTES, &hf));
    assert_true(hf.adds_start && hf.adds_end);
    assert_int_equal(hf.start, 20);
    assert_int_equal(hf.padding, 21); /* the first one of equal ones */
    kelp_tokenizer_destroy(hf.tokenizer);
}

/* Tokens that only look like those of bytes are text. */
static void tokens_of_bytes_become_text(void **state) {
    (void)state;
    static const char marks[] =
        "{\"decoder\": {\"decoders\": [{\"type\": \"Replace\", \"pattern\": {\"String\": "
        "\"\\u2581\"}}]}, \"model\": {\"vocab\": {\"\\u2581\": 0, \"abcAB1\": 1, \"<0x00>\": 2, "
        "\"<0x41>\": 3, \"<0x4G>\": 4, \"<0xG4>\": 5, \"A\": 6}, \"merges\": []}}";
    static const char unigram[] =
        "{\"model\": {\"unk_id\": 0, \"vocab\": [[\"<unk>\", 0], [\"abcAB1\", -1], [\"<0x00>\", "
        "-1], [\"<0x41>\", -1], [\"<0x4G>\", -1], [\"<0xG4>\", -1], [\"A\", -1]]}}";
    /* of unigram models, only the digits count, as in onnxruntime-extensions */
    static const struct {
        size_t length;
        const char *text;
    } expected[2] = {{22, "AabcAB1A<0x4G><0xG4>\0A"},
                     {17, "A\xAB"
                          "A<0x4G><0xG4>\0A"}};
    const int64_t ids[] = {6, 1, 3, 4, 5, 2, 6};
    for (int kind = 0; kind < 2; kind++) {
        kelp_hf_model hf;
        kelp_buf out;
        kelp_buf_init(&out, kelp_allocator_system());
        check_ok(create(kelp_allocator_system(),
                        kind == 0 ? CONFIG("LlamaTokenizer") : CONFIG("T5Tokenizer"),
                        kind == 0 ? marks : unigram, &hf));
        check_ok(kelp_tokenizer_decode(hf.tokenizer, ids, 7, &(kelp_decode_options){0}, &out));
        if (out.length != expected[kind].length ||
            memcmp(out.data, expected[kind].text, out.length) != 0)
            fail_msg("kind %d: found %zu bytes: %s", kind, out.length, kelp_buf_cstr(&out));
        kelp_buf_deinit(&out);
        kelp_tokenizer_destroy(hf.tokenizer);
    }
}

static void tokens_with_marks_become_text(void **state) {
    (void)state;
    const int64_t ids[] = {2, 3, 4, 0, 1};
    kelp_hf_model hf;
    kelp_buf out;
    kelp_buf_init(&out, kelp_allocator_system());
    check_ok(create(kelp_allocator_system(), CONFIG("LlamaTokenizer"), MARKS, &hf));
    check_ok(kelp_tokenizer_decode(hf.tokenizer, ids, 5, &(kelp_decode_options){0}, &out));
    assert_string_equal(kelp_buf_cstr(&out), " a\xC3\xA9 a");
    kelp_buf_deinit(&out);
    kelp_tokenizer_destroy(hf.tokenizer);
}

static void malformed_models_are_rejected(void **state) {
    (void)state;
    static const struct {
        const char *config, *model;
        kelp_code code;
        const char *message;
    } cases[] = {
        {"{", "{}", KELP_INVALID_ARGUMENT, "tokenizer_config:1:2"},
        {"{\"tokenizer_class\": 1}", "{}", KELP_INVALID_ARGUMENT,
         "'tokenizer_class' is invalid: expected a string"},
        {CONFIG("MarianTokenizer"), "{}", KELP_UNIMPLEMENTED,
         "the tokenizer_class 'MarianTokenizer' is unsupported"},
        {"{\"tiktoken_file\": \"a\"}", "{}", KELP_UNIMPLEMENTED,
         "'tiktoken_file' 'a' is unsupported"},
        {CONFIG("GPT2Tokenizer"), "[", KELP_INVALID_ARGUMENT, "tokenizer.json:1:2"},
        {CONFIG("GPT2Tokenizer"), "{}", KELP_INVALID_ARGUMENT, "'model' is missing"},
        {CONFIG("GPT2Tokenizer"), "{\"model\": {}}", KELP_INVALID_ARGUMENT,
         "'model.vocab' is not an object"},
        {CONFIG("GPT2Tokenizer"), "{\"model\": {\"vocab\": {\"a\": \"b\"}}}", KELP_INVALID_ARGUMENT,
         "token 'a' has an invalid id"},
        {CONFIG("GPT2Tokenizer"), "{\"model\": {\"vocab\": {}}}", KELP_INVALID_ARGUMENT,
         "'model.merges' is not an array"},
        {CONFIG("GPT2Tokenizer"), "{\"model\": {\"vocab\": {}, \"merges\": [\"a b\", [\"a\"]]}}",
         KELP_INVALID_ARGUMENT, "'model.merges[1]' is malformed"},
        {CONFIG("GPT2Tokenizer"), "{\"model\": {}, \"added_tokens\": [{\"id\": 1}]}",
         KELP_INVALID_ARGUMENT, "an item of 'added_tokens' is malformed"},
        {CONFIG("GPT2Tokenizer"), "{\"model\": {}, \"added_tokens\": [{\"content\": \"a\"}]}",
         KELP_INVALID_ARGUMENT, "an item of 'added_tokens' is malformed"},
        {CONFIG("GPT2Tokenizer"),
         "{\"model\": {}, \"added_tokens\": [{\"id\": -1, \"content\": \"a\"}]}",
         KELP_INVALID_ARGUMENT, "an item of 'added_tokens' is malformed"},
        {CONFIG("GPT2Tokenizer"),
         "{\"model\": {}, \"added_tokens\": [{\"id\": \"1\", \"content\": \"a\"}]}",
         KELP_INVALID_ARGUMENT, "an item of 'added_tokens' is malformed"},
        {CONFIG("T5Tokenizer"),
         "{\"model\": {\"vocab\": [[\"a\", 0]], \"unk_id\": 0}, \"added_tokens\": [{\"id\": 1}]}",
         KELP_INVALID_ARGUMENT, "an item of 'added_tokens' is malformed"},
        {CONFIG("GPT2Tokenizer"), "{\"model\": {}, \"pre_tokenizer\": {\"type\": \"New\"}}",
         KELP_UNIMPLEMENTED, "the pre_tokenizer 'New' is unsupported"},
        {CONFIG("GPT2Tokenizer"),
         "{\"model\": {}, \"pre_tokenizer\": {\"type\": \"Sequence\", \"pretokenizers\": "
         "[{\"type\": \"Split\", \"pattern\": {\"Regex\": \"\\\\p{N}|x+\"}}]}}",
         KELP_UNIMPLEMENTED, "'x+' is not an alternative that Kelp knows"},
        {CONFIG("T5Tokenizer"), "{}", KELP_INVALID_ARGUMENT, "'model.vocab' is not an array"},
        {CONFIG("T5Tokenizer"), "{\"model\": {\"vocab\": [[\"a\"]]}}", KELP_INVALID_ARGUMENT,
         "'model.vocab[0]' is malformed"},
        {CONFIG("T5Tokenizer"), "{\"model\": {\"vocab\": [], \"unk_id\": -1}}",
         KELP_INVALID_ARGUMENT, "'model.unk_id' is not an id"},
        {CONFIG("T5Tokenizer"), "{\"normalizer\": {\"precompiled_charsmap\": \"*\"}}",
         KELP_INVALID_ARGUMENT, "'precompiled_charsmap' is not base64"},
        {CONFIG("T5Tokenizer"), "{\"normalizer\": {\"precompiled_charsmap\": \"AAAA\"}}",
         KELP_INVALID_ARGUMENT, "the size of precompiled_charsmap is wrong"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        kelp_hf_model hf;
        expect_failure(create(kelp_allocator_system(), cases[i].config, cases[i].model, &hf),
                       cases[i].code, cases[i].message);
        assert_null(hf.tokenizer);
    }
}

static kelp_status *create_and_encode(kelp_allocator allocator, uint64_t round) {
    static const char *const configs[] = {CONFIG("GPT2Tokenizer"), CONFIG("LlamaTokenizer"),
                                          CONFIG("T5Tokenizer")};
    static const char *const models[] = {BYTES, MARKS, UNIGRAM};
    kelp_hf_model hf;
    kelp_token_list tokens;
    KELP_TRY(create(allocator, configs[round % 3], models[round % 3], &hf));
    kelp_token_list_init(&tokens, allocator);
    kelp_status *status =
        kelp_tokenizer_encode(hf.tokenizer, KELP_STR("a 11\xC3\xA9 ab  b"), &tokens);
    kelp_token_list_deinit(&tokens);
    kelp_tokenizer_destroy(hf.tokenizer);
    return status;
}

static void each_failed_allocation_is_a_status(void **state) {
    (void)state;
    for (uint64_t round = 0; round < 3; round++)
        for (uint64_t n = 1;; n++) {
            test_failing memory;
            test_failing_init(&memory, n);
            kelp_status *status = create_and_encode(test_failing_allocator(&memory), round);
            if (test_failing_ended(&memory, status))
                break;
            assert_non_null(status);
            assert_int_equal(kelp_status_code(status), KELP_RESOURCE_EXHAUSTED);
            kelp_status_free(status);
        }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(byte_level_models_divide_by_their_expression),
        cmocka_unit_test(words_divide_at_capitals),
        cmocka_unit_test(models_with_marks_have_bytes),
        cmocka_unit_test(unigram_models_choose_the_most_probable_tokens),
        cmocka_unit_test(ends_are_those_of_the_configuration),
        cmocka_unit_test(tokens_with_marks_become_text),
        cmocka_unit_test(tokens_of_bytes_become_text),
        cmocka_unit_test(malformed_models_are_rejected),
        cmocka_unit_test(each_failed_allocation_is_a_status),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
