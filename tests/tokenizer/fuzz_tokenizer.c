/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fuzzer of tokenizers: the first byte selects the kind, the bytes up to the first 0xFF are the
 * vocabulary or model (of BPE: the vocabulary, 0xFE and the merges; of SentencePiece and
 * tokenizer.json: up to the last 0xFF), and the rest is text. Each
 * input is rejected or encoded, with places within the text, and decoded.
 */
#include "tokenizer/tokenizer.h"

#include <stdio.h>
#include <stdlib.h>

#define SEPARATOR 0xFF
#define MERGES 0xFE
#define BPE 0x80 /* kinds from here on */
#define SENTENCEPIECE 0xF0
#define HF_MODEL 0xF8 /* kinds from here on */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static kelp_status *create_bpe(uint8_t kind, kelp_str model, kelp_tokenizer **out) {
    static const kelp_added_token special[] = {{{"</s>", 4}, 0, false}, {{"<s>", 3}, 0, false}};
    static const kelp_added_token added[] = {{{"ab", 2}, 7, false}, {{"a", 1}, 8, false}};
    const char *end = model.length > 0 ? memchr(model.data, MERGES, model.length) : NULL;
    size_t length = end != NULL ? (size_t)(end - model.data) : model.length;
    kelp_bpe_options options = {.vocabulary = {model.data, length},
                                .special = special,
                                .special_count = 2,
                                .added = added,
                                .added_count = (kind & 1) != 0 ? 2 : 0,
                                .ends_words = (kind & 2) != 0};
    if (end != NULL)
        options.merges = (kelp_str){end + 1, model.length - length - 1};
    return kelp_bpe_create(kelp_allocator_system(), &options, out);
}

static kelp_status *create_hf(uint8_t kind, kelp_str model, kelp_tokenizer **out) {
    static const char *const classes[] = {"GPT2Tokenizer",
                                          "LlamaTokenizer",
                                          "GemmaTokenizer",
                                          "CLIPTokenizer",
                                          "T5Tokenizer",
                                          "ChatGLMTokenizer",
                                          "",
                                          "PreTrainedTokenizerFast"};
    char config[100];
    kelp_hf_model hf;
    snprintf(config, sizeof config, "{\"tokenizer_class\": \"%s\", \"bos_token\": \"<s>\"}",
             classes[kind - HF_MODEL]);
    kelp_status *status =
        kelp_hf_model_create(kelp_allocator_system(), kelp_str_from(config), model, &hf);
    *out = hf.tokenizer;
    return status;
}

static kelp_status *create(uint8_t kind, kelp_str model, kelp_tokenizer **out) {
    if (kind >= HF_MODEL)
        return create_hf(kind, model, out);
    if (kind == SENTENCEPIECE)
        return kelp_sentencepiece_create(kelp_allocator_system(), model, out);
    if (kind >= BPE)
        return create_bpe(kind, model, out);
    kelp_wordpiece_options wordpiece = {
        .vocabulary = model,
        .is_json = (kind & 1) != 0,
        .separators = "\r\n",
        .unknown = KELP_STR("[UNK]"),
        .continuation = KELP_STR("##"),
        .max_word_chars = 100,
        .words = {.rule = (kelp_word_rule)(kind / 2 % 3),
                  .lower_case = true,
                  .strip_accents = true,
                  .split_cjk = true,
                  .split_punctuation = true,
                  .remove_control = true},
    };
    return kelp_wordpiece_create(kelp_allocator_system(), &wordpiece, out);
}

static void use(const kelp_tokenizer *tokenizer, kelp_str text) {
    kelp_token_list tokens;
    kelp_buf out;
    int64_t ids[64];
    size_t count = 0;
    kelp_token_list_init(&tokens, kelp_allocator_system());
    kelp_buf_init(&out, kelp_allocator_system());
    kelp_status_free(kelp_tokenizer_encode(tokenizer, text, &tokens));
    for (size_t i = 0; i < tokens.count; i++) {
        const kelp_text_token *token = &tokens.items[i];
        if (token->begin > token->end || token->end > text.length)
            abort();
        if (count < sizeof ids / sizeof *ids)
            ids[count++] = token->id;
    }
    kelp_decode_options options = {.skipped = ids, .skipped_count = count > 1, true};
    kelp_status_free(kelp_tokenizer_decode(tokenizer, ids, count, &options, &out));
    kelp_buf_deinit(&out);
    kelp_token_list_deinit(&tokens);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    kelp_tokenizer *tokenizer = NULL;
    if (size == 0)
        return 0;
    const uint8_t *end = data[0] >= SENTENCEPIECE ? memrchr(data + 1, SEPARATOR, size - 1)
                                                  : memchr(data + 1, SEPARATOR, size - 1);
    size_t length = end != NULL ? (size_t)(end - data) - 1 : size - 1;
    kelp_str model = {(const char *)data + 1, length};
    kelp_str text = end != NULL ? (kelp_str){(const char *)end + 1, size - length - 2} : model;
    kelp_status *status = create(data[0], model, &tokenizer);
    if (status == NULL)
        use(tokenizer, text);
    kelp_status_free(status);
    kelp_tokenizer_destroy(tokenizer);
    return 0;
}
