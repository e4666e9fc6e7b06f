/* SPDX-License-Identifier: Apache-2.0 */
/* tokenizer_config.json, and the choice of the kind of tokenizer. */
#include "tokenizer/hf/model.h"

#include "base/alloc.h"
#include "base/checked.h"

const kelp_json *kelp_hf_member(const kelp_json *object, const char *key) {
    const kelp_json *member = kelp_json_get(object, key);
    return member != NULL && member->type != KELP_JSON_NULL ? member : NULL;
}

kelp_status *kelp_hf_text(const kelp_json *object, const char *key, kelp_str *inout) {
    const kelp_json *member = kelp_hf_member(object, key);
    if (member == NULL)
        return NULL;
    if (member->type != KELP_JSON_STRING)
        return KELP_ERROR(KELP_INVALID_ARGUMENT, "'%s' is invalid: expected a string, found %s",
                          key, kelp_json_type_name(member->type));
    *inout = member->string;
    return NULL;
}

kelp_status *kelp_hf_flag(const kelp_json *object, const char *key, bool *inout) {
    const kelp_json *member = kelp_hf_member(object, key);
    if (member == NULL)
        return NULL;
    if (member->type != KELP_JSON_BOOL)
        return KELP_ERROR(KELP_INVALID_ARGUMENT, "'%s' is invalid: expected a bool, found %s", key,
                          kelp_json_type_name(member->type));
    *inout = member->boolean;
    return NULL;
}

kelp_status *kelp_hf_added_token(const kelp_json *item, kelp_added_token *out, bool *out_special) {
    const kelp_json *id = kelp_hf_member(item, "id");
    *out = (kelp_added_token){.text = {"", 0}};
    *out_special = false;
    KELP_TRY(kelp_hf_text(item, "content", &out->text));
    KELP_TRY(kelp_hf_flag(item, "rstrip", &out->strips_after));
    KELP_TRY(kelp_hf_flag(item, "special", out_special));
    if (id == NULL || id->type != KELP_JSON_INT || id->i64 < 0 || id->i64 > INT32_MAX ||
        out->text.length == 0)
        return KELP_ERROR(KELP_INVALID_ARGUMENT, "%s",
                          "an item of 'added_tokens' is malformed: expected 'content' and 'id'");
    out->id = id->i64;
    return NULL;
}

/* ---- tokenizer_config.json ---- */
/* A token is a string, or an object with the member "content". */
static kelp_status *read_token(const kelp_json *config, const char *key, kelp_str *out) {
    const kelp_json *token = kelp_hf_member(config, key);
    return token != NULL && token->type == KELP_JSON_OBJECT ? kelp_hf_text(token, "content", out)
                                                            : kelp_hf_text(config, key, out);
}

static kelp_status *read_config(const kelp_json *json, kelp_hf_config *out) {
    kelp_str tiktoken = {"", 0};
    const kelp_json *padding = kelp_hf_member(json, "pad_token");
    *out = (kelp_hf_config){.tokenizer_class = {"", 0},
                            .start = {"", 0},
                            .end = {"", 0},
                            .unknown = {"", 0},
                            .padding = {"", 0}};
    KELP_TRY(kelp_hf_text(json, "tiktoken_file", &tiktoken));
    if (tiktoken.length > 0)
        return KELP_ERROR(KELP_UNIMPLEMENTED, "'tiktoken_file' '%.*s' is unsupported",
                          KELP_STR_ARG(tiktoken));
    KELP_TRY(kelp_hf_text(json, "tokenizer_class", &out->tokenizer_class));
    if (out->tokenizer_class.length == 0) { /* XLM-RoBERTa of fairseq */
        out->adds_start = out->adds_end = true;
        out->start = KELP_STR("<s>");
        out->end = KELP_STR("</s>");
        out->unknown = KELP_STR("<unk>");
        return NULL;
    }
    KELP_TRY(read_token(json, "bos_token", &out->start));
    KELP_TRY(read_token(json, "eos_token", &out->end));
    KELP_TRY(read_token(json, "unk_token", &out->unknown));
    if (padding != NULL && padding->type == KELP_JSON_STRING)
        out->padding = padding->string;
    KELP_TRY(kelp_hf_flag(json, "add_bos_token", &out->adds_start));
    KELP_TRY(kelp_hf_flag(json, "add_eos_token", &out->adds_end));
    if (kelp_str_is(out->tokenizer_class, "ChatGLMTokenizer"))
        out->adds_start = out->adds_end = false;
    if (kelp_str_is(out->tokenizer_class, "T5Tokenizer")) {
        out->adds_start = false;
        out->adds_end = true;
    }
    if (out->tokenizer_class.length > 4 &&
        memcmp(out->tokenizer_class.data + out->tokenizer_class.length - 4, "Fast", 4) == 0)
        out->tokenizer_class.length -= 4;
    return NULL;
}

/* ---- creation ---- */
static bool is_one_of(kelp_str text, const char *const *names, size_t count) {
    for (size_t i = 0; i < count; i++)
        if (kelp_str_is(text, names[i]))
            return true;
    return false;
}

static kelp_status *create(kelp_arena *arena, kelp_allocator allocator, kelp_str config_text,
                           kelp_str text, kelp_hf_model *out) {
    static const char *const bpe[] = {
        "PreTrainedTokenizer", "CLIPTokenizer",  "WhisperTokenizer",   "GemmaTokenizer",
        "LlamaTokenizer",      "Phi3Tokenizer",  "CodeLlamaTokenizer", "CodeGenTokenizer",
        "GPT2Tokenizer",       "Qwen2Tokenizer", "BaichuanTokenizer",  "GPTNeoXTokenizer"};
    static const char *const unigram[] = {"", "T5Tokenizer", "ChatGLMTokenizer",
                                          "XLMRobertaTokenizer", "DebertaV2Tokenizer"};
    kelp_json *config_json = NULL, *root = NULL;
    kelp_hf_config config;
    KELP_TRY(kelp_json_parse(arena, "tokenizer_config", config_text.data, config_text.length,
                             &config_json));
    kelp_status *status = read_config(config_json, &config);
    if (status != NULL)
        return KELP_ANNOTATE(status, "%s", "tokenizer_config");
    KELP_TRY(kelp_json_parse(arena, "tokenizer.json", text.data, text.length, &root));
    if (is_one_of(config.tokenizer_class, bpe, KELP_COUNT(bpe)))
        status = kelp_hf_create_bpe(allocator, &config, root, out);
    else if (is_one_of(config.tokenizer_class, unigram, KELP_COUNT(unigram)))
        status = kelp_hf_create_unigram(allocator, &config, root, out);
    else
        return KELP_ERROR(KELP_UNIMPLEMENTED, "the tokenizer_class '%.*s' is unsupported",
                          KELP_STR_ARG(config.tokenizer_class));
    return status == NULL ? NULL : KELP_ANNOTATE(status, "%s", "tokenizer.json");
}

kelp_status *kelp_hf_model_create(kelp_allocator allocator, kelp_str config, kelp_str tokenizer,
                                  kelp_hf_model *out) {
    kelp_arena arena;
    *out = (kelp_hf_model){0};
    kelp_arena_init(&arena, allocator, 1 << 16);
    kelp_status *status = create(&arena, allocator, config, tokenizer, out);
    kelp_arena_deinit(&arena);
    return status;
}
