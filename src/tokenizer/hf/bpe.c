/* SPDX-License-Identifier: Apache-2.0 */
/* BPE models of tokenizer.json. */
#include "base/alloc.h"
#include "base/checked.h"
#include "tokenizer/hf/model.h"
#include "tokenizer/pretokens.h"

/* Returns the class without "Tokenizer". */
static kelp_str model_name(const kelp_hf_config *config) {
    kelp_str name = config->tokenizer_class;
    name.length -= strlen("Tokenizer");
    return name;
}

/* ---- how text is divided into words ---- */
static kelp_status *check_type(kelp_str type) {
    static const char *const known[] = {"BertPreTokenizer", "ByteLevel",  "CharDelimiterSplit",
                                        "Digits",           "Metaspace",  "PreTokenizer",
                                        "Punctuation",      "Sequence",   "Split",
                                        "UnicodeScripts",   "Whitespace", "WhitespaceSplit"};
    for (size_t i = 0; i < KELP_COUNT(known); i++)
        if (kelp_str_is(type, known[i]))
            return NULL;
    return KELP_ERROR(KELP_UNIMPLEMENTED, "the pre_tokenizer '%.*s' is unsupported",
                      KELP_STR_ARG(type));
}

/* Finds the expression of the last Split of a sequence. As in onnxruntime-extensions, an item
 * without an expression ends the sequence, and other pre-tokenizers have no effect. */
static kelp_status *find_expression(const kelp_json *root, kelp_str *out) {
    const kelp_json *pre = kelp_hf_member(root, "pre_tokenizer");
    const kelp_json *list = kelp_hf_member(pre, "pretokenizers");
    kelp_str type = {NULL, 0};
    KELP_TRY(kelp_hf_text(pre, "type", &type));
    if (type.data != NULL)
        KELP_TRY(check_type(type));
    for (const kelp_json *item = list != NULL ? list->child : NULL; item != NULL;
         item = item->next) {
        kelp_str expression = {NULL, 0};
        type = (kelp_str){NULL, 0};
        KELP_TRY(kelp_hf_text(item, "type", &type));
        if (type.data == NULL)
            break;
        KELP_TRY(check_type(type));
        if (!kelp_str_is(type, "Split"))
            continue;
        KELP_TRY(kelp_hf_text(kelp_hf_member(item, "pattern"), "Regex", &expression));
        if (expression.data == NULL)
            break;
        *out = expression;
    }
    return NULL;
}

static kelp_status *read_words(const kelp_json *root, kelp_str name, kelp_allocator allocator,
                               kelp_pretokens *out) {
    kelp_str expression = {NULL, 0};
    KELP_TRY(find_expression(root, &expression));
    if (expression.length > 0)
        return kelp_pretokens_init(out, allocator, expression);
    *out = kelp_str_is(name, "Llama") ? kelp_pretokens_llama() : kelp_pretokens_gpt2();
    return NULL;
}

/* The decoder shows whether tokens have marks instead of spaces. */
static kelp_status *read_marks(const kelp_json *root, kelp_bpe_options *inout) {
    const kelp_json *list = kelp_hf_member(kelp_hf_member(root, "decoder"), "decoders");
    if (list == NULL || list->type != KELP_JSON_ARRAY)
        return NULL;
    for (const kelp_json *item = list->child; item != NULL; item = item->next) {
        kelp_str type = {"", 0}, target = {"", 0}, content = {"", 0};
        KELP_TRY(kelp_hf_text(item, "type", &type));
        if (kelp_str_is(type, "Replace")) {
            KELP_TRY(kelp_hf_text(kelp_hf_member(item, "pattern"), "String", &target));
            inout->marks_spaces = inout->marks_spaces || kelp_str_is(target, "\xE2\x96\x81");
        } else if (kelp_str_is(type, "Strip")) {
            KELP_TRY(kelp_hf_text(item, "content", &content));
            inout->marks_start = inout->marks_start || kelp_str_is(content, " ");
        }
    }
    return NULL;
}

/* ---- added tokens, and tokens at the ends of sequences ---- */
static void set_id(const kelp_hf_config *config, const kelp_added_token *token,
                   kelp_hf_model *out) {
    /* a token with several roles has the first one */
    if (kelp_str_equal(token->text, config->start))
        out->start = token->id;
    else if (kelp_str_equal(token->text, config->end))
        out->end = token->id;
    else if (kelp_str_equal(token->text, config->padding))
        out->padding = token->id;
}

/* Reads the tokens in reverse, so that the first one of equal ones counts. `tokens` has a capacity
 * of list->count. */
static kelp_status *read_added(const kelp_json *list, const kelp_hf_config *config,
                               kelp_added_token *tokens, kelp_hf_model *out) {
    size_t at = list->count;
    bool special;
    for (const kelp_json *item = list->child; item != NULL; item = item->next)
        KELP_TRY(kelp_hf_added_token(item, &tokens[--at], &special));
    for (size_t i = 0; i < list->count; i++)
        set_id(config, &tokens[i], out);
    return NULL;
}

/* Returns true if a key or a string contains the text. */
static bool mentions(const kelp_json *json, kelp_str text) {
    if (text.length == 0)
        return true;
    if (json->type == KELP_JSON_STRING && json->string.length > 0 &&
        memmem(json->string.data, json->string.length, text.data, text.length) != NULL)
        return true;
    for (const kelp_json *item = json->child; item != NULL; item = item->next)
        if ((item->key.length > 0 &&
             memmem(item->key.data, item->key.length, text.data, text.length) != NULL) ||
            mentions(item, text))
            return true;
    return false;
}

static void read_ends(const kelp_json *root, const kelp_hf_config *config, kelp_hf_model *out) {
    const kelp_json *processor = kelp_json_get(root, "post_processor");
    out->adds_start = config->adds_start;
    out->adds_end = config->adds_end;
    if (config->adds_start || config->start.length == 0 || processor == NULL)
        return;
    out->adds_start = out->adds_start || mentions(processor, config->start);
    out->adds_end = out->adds_end || mentions(processor, config->end);
}

kelp_status *kelp_hf_create_bpe(kelp_allocator allocator, const kelp_hf_config *config,
                                const kelp_json *root, kelp_hf_model *out) {
    const kelp_json *list = kelp_hf_member(root, "added_tokens");
    kelp_pretokens words;
    kelp_added_token *added = NULL;
    kelp_str name = model_name(config);
    kelp_bpe_options options = {.words = &words, .model = kelp_hf_member(root, "model")};
    options.one_word = kelp_str_is(name, "Gemma");
    options.ends_words = out->is_clip = kelp_str_is(name, "CLIP");
    if (options.model == NULL)
        return KELP_ERROR(KELP_INVALID_ARGUMENT, "%s", "'model' is missing");
    KELP_TRY(read_marks(root, &options));
    KELP_TRY(read_words(root, name, allocator, &words));
    read_ends(root, config, out);
    out->dropped = KELP_TOKEN_NONE;
    if (options.marks_spaces) /* as in onnxruntime-extensions, without a token at the end */
        out->adds_end = false;
    size_t count = list != NULL && list->type == KELP_JSON_ARRAY ? list->count : 0;
    KELP_TRY(kelp_alloc_zero(allocator, count + 1, sizeof *added, (void **)&added));
    kelp_status *status = count > 0 ? read_added(list, config, added, out) : NULL;
    options.added = added;
    options.added_count = count;
    if (status == NULL)
        status = kelp_bpe_create(allocator, &options, &out->tokenizer);
    kelp_free(allocator, added, (count + 1) * sizeof *added);
    return status;
}
