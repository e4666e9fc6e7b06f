/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Unigram models of tokenizer.json: T5, XLM-RoBERTa, DeBERTa, ChatGLM. Division, scores and
 * white space are those of onnxruntime-extensions 0.15, which differ from SentencePiece.
 */
#include "base/alloc.h"
#include "base/assert.h"
#include "base/checked.h"
#include "base/text/utf8.h"
#include "tokenizer/base64.h"
#include "tokenizer/hf/model.h"
#include "tokenizer/sentencepiece/spm.h"

#include <float.h>

#define UNKNOWN_PENALTY 10.0
#define UNKNOWN UINT32_MAX /* the id of unknown text, if the model has none */

typedef struct unigram {
    kelp_spm spm;   /* vocabulary, replacements, the trie of tokens and that of added tokens */
    double *scores; /* by id; 0 for special tokens */
    size_t score_capacity;
    int64_t unknown; /* id */
    double unknown_score;
    bool is_glm; /* spaces are not merged */
} unigram;

/* ---- normalization ---- */
/* A mark precedes each word; of spaces between words, only ChatGLM keeps one each. */
static void append_text(const unigram *u, kelp_str text, bool *inout_in_word, bool *inout_marked,
                        kelp_buf *out) {
    for (size_t i = 0; i < text.length; i++) {
        char c = text.data[i];
        if (c == ' ') {
            *inout_in_word = false;
            if (u->is_glm)
                kelp_buf_append_cstr(out, KELP_SPM_SPACE);
            continue;
        }
        if (!*inout_in_word && (!u->is_glm || !*inout_marked)) {
            kelp_buf_append_cstr(out, KELP_SPM_SPACE);
            *inout_marked = true;
        }
        *inout_in_word = true;
        kelp_buf_append_char(out, c);
    }
}

static kelp_status *normalize(const unigram *u, kelp_str text, kelp_buf *out) {
    bool in_word = false, marked = false;
    for (size_t at = 0; at < text.length;) {
        kelp_str part;
        at +=
            kelp_spm_normalize_prefix(&u->spm, (kelp_str){text.data + at, text.length - at}, &part);
        append_text(u, part, &in_word, &marked, out);
    }
    return kelp_buf_status(out);
}

/* ---- the most probable division ---- */
/* The best path that ends at a byte, and its last token. */
typedef struct path {
    double score;
    uint32_t begin;
    int64_t id;
} path;

static void update(path *p, double score, size_t begin, int64_t id) {
    if (score > p->score)
        *p = (path){(double)(float)score, (uint32_t)begin, id};
}

static void extend(const unigram *u, path *paths, kelp_str text, size_t begin, size_t size) {
    bool has_single = false;
    double score = paths[begin].score;
    uint32_t node = KELP_TRIE_ROOT;
    for (size_t at = begin; at < text.length; at++) {
        node = kelp_trie_next(&u->spm.trie, node, (uint8_t)text.data[at]);
        if (node == KELP_TRIE_NONE)
            break;
        int32_t id = u->spm.trie.values[node];
        if (id < 0)
            continue;
        update(&paths[at + 1], score + u->scores[id], begin, id);
        has_single = has_single || at + 1 - begin == size;
    }
    if (!has_single)
        update(&paths[begin + size], score + u->unknown_score, begin, u->unknown);
}

/* Appends the tokens of the path; neighbouring unknown ones are one token. They are found from the
 * end on, and then reversed. */
static kelp_status *push_path(const unigram *u, const path *paths, size_t length,
                              kelp_token_list *out) {
    size_t first = out->count;
    bool after_unknown = false;
    for (size_t end = length; end > 0; end = paths[end].begin) {
        bool is_unknown = paths[end].id == u->unknown;
        if (!is_unknown || !after_unknown)
            KELP_TRY(kelp_token_list_push(out, (kelp_text_token){.id = paths[end].id}));
        after_unknown = is_unknown;
    }
    for (size_t i = first, k = out->count; i + 1 < k; i++) {
        kelp_text_token token = out->items[i];
        out->items[i] = out->items[--k];
        out->items[k] = token;
    }
    for (size_t i = first; i < out->count; i++)
        out->items[i].word = i - first;
    return NULL;
}

static kelp_status *divide(const unigram *u, kelp_str text, kelp_token_list *out) {
    path *paths = NULL;
    size_t count = text.length + 1;
    if (text.length == 0)
        return NULL;
    if (text.length >= UINT32_MAX / 32)
        return KELP_ERROR(KELP_RESOURCE_EXHAUSTED, "a text of %zu bytes is too long", text.length);
    KELP_TRY(kelp_alloc(out->allocator, count * sizeof *paths, (void **)&paths));
    for (size_t i = 0; i < count; i++)
        paths[i] = (path){i == 0 ? 0 : -DBL_MAX, 0, u->unknown};
    for (size_t at = 0; at < text.length;) {
        uint32_t c;
        size_t size = kelp_utf8_decode((kelp_str){text.data + at, text.length - at}, &c);
        size = KELP_MAX(size, 1);
        extend(u, paths, text, at, size);
        at += size;
    }
    kelp_status *status = push_path(u, paths, text.length, out);
    kelp_free(out->allocator, paths, count * sizeof *paths);
    return status;
}

static kelp_status *encode(const kelp_tokenizer *tokenizer, kelp_str text,
                           kelp_token_list *inout_tokens) {
    const unigram *u = (const unigram *)tokenizer;
    kelp_buf normalized;
    if (!kelp_utf8_count(text, NULL))
        return KELP_ERROR(KELP_INVALID_ARGUMENT, "%s", "the text is not valid UTF-8");
    kelp_buf_init(&normalized, inout_tokens->allocator);
    kelp_status *status = normalize(u, text, &normalized);
    if (status == NULL)
        status = divide(u, (kelp_str){normalized.data, normalized.length}, inout_tokens);
    kelp_buf_deinit(&normalized);
    return status;
}

static kelp_status *decode(const kelp_tokenizer *tokenizer, const int64_t *ids, size_t count,
                           const kelp_decode_options *options, kelp_buf *out) {
    const kelp_str mark = KELP_STR(KELP_SPM_SPACE);
    for (size_t i = 0; i < count; i++) {
        kelp_str token = kelp_vocabulary_token(&tokenizer->vocabulary, ids[i]);
        if (token.data == NULL || kelp_decode_skips(options, ids[i]))
            continue;
        for (size_t at = 0; at < token.length;) {
            bool is_mark = kelp_str_starts((kelp_str){token.data + at, token.length - at}, mark);
            kelp_buf_append_char(out, is_mark ? ' ' : token.data[at]);
            at += is_mark ? mark.length : 1;
        }
    }
    return NULL;
}

static void deinit(kelp_tokenizer *tokenizer) {
    unigram *u = (unigram *)tokenizer;
    kelp_trie_deinit(&u->spm.trie);
    kelp_trie_deinit(&u->spm.user);
    if (u->scores != NULL)
        kelp_free(tokenizer->allocator, u->scores, u->score_capacity * sizeof *u->scores);
}

static const kelp_tokenizer_kind kind = {
    .size_bytes = sizeof(unigram), .encode = encode, .decode = decode, .deinit = deinit};

/* ---- tokenizer.json ---- */
static int upper_hex(char c) {
    return c >= '0' && c <= '9' ? c - '0' : c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

/* Returns the token as text contains it, in `memory`. As in onnxruntime-extensions, a token of six
 * bytes with hexadecimal digits in the place of those of "<0x00>" is a byte. */
static kelp_str text_of(const unigram *u, kelp_str token, char *memory) {
    static const kelp_str blank = KELP_STR("<|blank_");
    int high = token.length == 6 ? upper_hex(token.data[3]) : -1;
    int low = token.length == 6 ? upper_hex(token.data[4]) : -1;
    size_t length = 0;
    if (high >= 0 && low >= 0) {
        *memory = (char)(high * 16 + low);
        return (kelp_str){memory, 1};
    }
    if (!u->is_glm)
        return token;
    if (kelp_str_is(token, "<n>"))
        return KELP_STR("\n");
    if (kelp_str_is(token, "<|tab|>"))
        return KELP_STR("\t");
    if (token.length != 11 || !kelp_str_starts(token, blank) || token.data[8] < '2' ||
        token.data[8] > '9')
        return token;
    for (char i = '0'; i < token.data[8]; i++, length += KELP_SPM_SPACE_LENGTH)
        memcpy(memory + length, KELP_SPM_SPACE, KELP_SPM_SPACE_LENGTH);
    return (kelp_str){memory, length};
}

static kelp_status *add_token(unigram *u, kelp_str token, double score, size_t *inout_count) {
    kelp_vocabulary *v = &u->spm.base.vocabulary;
    int64_t id = (int64_t)*inout_count;
    /* as in onnxruntime-extensions: an equal token with score 0 has no id */
    if (score == 0 && kelp_vocabulary_id(v, token) != KELP_TOKEN_NONE)
        return NULL;
    KELP_TRY(kelp_grow(u->spm.base.allocator, (void **)&u->scores, &u->score_capacity,
                       *inout_count + 1, sizeof *u->scores));
    u->scores[(*inout_count)++] = score;
    KELP_TRY(kelp_vocabulary_add(v, token, id));
    return token.length > 0 ? kelp_trie_put(&u->spm.trie, token, (int32_t)id) : NULL;
}

static kelp_status *read_vocabulary(unigram *u, const kelp_json *list, size_t *out_count) {
    char memory[9 * KELP_SPM_SPACE_LENGTH];
    size_t index = 0;
    *out_count = 0;
    if (list == NULL || list->type != KELP_JSON_ARRAY || list->count >= KELP_VOCABULARY_MAX_ID)
        return KELP_ERROR(KELP_INVALID_ARGUMENT, "%s", "'model.vocab' is not an array");
    for (const kelp_json *item = list->child; item != NULL; item = item->next, index++) {
        const kelp_json *token = item->child, *score = token != NULL ? token->next : NULL;
        if (item->type != KELP_JSON_ARRAY || score == NULL || token->type != KELP_JSON_STRING ||
            (score->type != KELP_JSON_DOUBLE && score->type != KELP_JSON_INT))
            return KELP_ERROR(KELP_INVALID_ARGUMENT,
                              "'model.vocab[%zu]' is malformed: expected [token, score]", index);
        KELP_TRY(add_token(u, text_of(u, token->string, memory), score->f64, out_count));
    }
    return NULL;
}

static kelp_status *read_added(unigram *u, const kelp_json *list, size_t count) {
    for (const kelp_json *item = list != NULL ? list->child : NULL; item != NULL;
         item = item->next) {
        kelp_added_token token;
        bool special = false;
        KELP_TRY(kelp_hf_added_token(item, &token, &special));
        KELP_TRY(kelp_trie_put(&u->spm.user, token.text, (int32_t)token.id));
        if (special && (size_t)token.id < count)
            u->scores[token.id] = 0;
    }
    return NULL;
}

static kelp_status *read_charsmap(unigram *u, const kelp_json *normalizer) {
    kelp_str map = {"", 0};
    char *bytes = NULL;
    const kelp_json *list = kelp_hf_member(normalizer, "normalizers");
    KELP_TRY(kelp_hf_text(normalizer, "precompiled_charsmap", &map));
    for (const kelp_json *item = list != NULL && map.length == 0 ? list->child : NULL; item != NULL;
         item = item->next) {
        kelp_str type = {"", 0};
        KELP_TRY(kelp_hf_text(item, "type", &type));
        if (!kelp_str_is(type, "Precompiled"))
            continue;
        KELP_TRY(kelp_hf_text(item, "precompiled_charsmap", &map));
        break;
    }
    if (map.length == 0)
        return NULL;
    KELP_TRY(kelp_alloc(u->spm.base.allocator, map.length, (void **)&bytes));
    kelp_str decoded = {bytes, 0};
    kelp_status *status =
        kelp_base64_read(map, bytes, &decoded.length)
            ? kelp_spm_read_charsmap(&u->spm, decoded)
            : KELP_ERROR(KELP_INVALID_ARGUMENT, "%s", "'precompiled_charsmap' is not base64");
    kelp_free(u->spm.base.allocator, bytes, map.length);
    return status;
}

static kelp_status *read_all(unigram *u, const kelp_json *root) {
    const kelp_json *model = kelp_hf_member(root, "model");
    const kelp_json *unknown = kelp_hf_member(model, "unk_id");
    size_t count = 0;
    double lowest = DBL_MAX;
    KELP_TRY(kelp_trie_init(&u->spm.trie, u->spm.base.allocator));
    KELP_TRY(kelp_trie_init(&u->spm.user, u->spm.base.allocator));
    KELP_TRY(read_charsmap(u, kelp_hf_member(root, "normalizer")));
    u->unknown = UNKNOWN;
    if (unknown != NULL && (unknown->type != KELP_JSON_INT || unknown->i64 < 0))
        return KELP_ERROR(KELP_INVALID_ARGUMENT, "%s", "'model.unk_id' is not an id");
    if (unknown != NULL)
        u->unknown = unknown->i64;
    KELP_TRY(read_vocabulary(u, kelp_hf_member(model, "vocab"), &count));
    for (size_t i = 0; i < count; i++)
        lowest = KELP_MIN(lowest, u->scores[i]);
    u->unknown_score = lowest - UNKNOWN_PENALTY;
    return read_added(u, kelp_hf_member(root, "added_tokens"), count);
}

static int64_t id_of(const unigram *u, kelp_str token) {
    int64_t id = kelp_vocabulary_id(&u->spm.base.vocabulary, token);
    return id != KELP_TOKEN_NONE ? id : u->unknown;
}

kelp_status *kelp_hf_create_unigram(kelp_allocator allocator, const kelp_hf_config *config,
                                    const kelp_json *root, kelp_hf_model *out) {
    kelp_tokenizer *tokenizer = NULL;
    KELP_TRY(kelp_tokenizer_new(allocator, &kind, &tokenizer));
    unigram *u = (unigram *)tokenizer;
    u->is_glm = kelp_str_is(config->tokenizer_class, "ChatGLMTokenizer");
    u->spm.trie.allocator = u->spm.user.allocator = allocator;
    kelp_status *status = read_all(u, root);
    if (status != NULL) {
        kelp_tokenizer_destroy(tokenizer);
        return status;
    }
    out->tokenizer = tokenizer;
    out->is_unigram = true;
    out->adds_start = config->adds_start;
    out->adds_end = config->adds_end;
    out->start = id_of(u, config->start);
    out->end = id_of(u, config->end);
    out->dropped = u->is_glm ? u->unknown : KELP_TOKEN_NONE;
    if (u->is_glm) {
        out->suffix_count = 2;
        out->suffix[0] = id_of(u, KELP_STR("[gMASK]"));
        out->suffix[1] = id_of(u, KELP_STR("<sop>"));
    }
    return NULL;
}
