/* SPDX-License-Identifier: Apache-2.0 */
/* WordPiece: the longest token that begins at each position of a word. Source: BERT. */
#include "base/alloc.h"
#include "base/assert.h"
#include "base/checked.h"
#include "base/text/utf8.h"
#include "tokenizer/kind.h"
#include "tokenizer/words.h"

#define CHAR_BYTES 4 /* of the longest character */

typedef struct wordpiece {
    kelp_tokenizer base;
    kelp_str continuation;
    size_t max_word_chars;
    int64_t unknown;
    kelp_str unknown_text;
    kelp_word_options words;
} wordpiece;

/* Finds the longest token that begins at character `begin`; at the start of a word without, and
 * elsewhere with the prefix of continuations. `key` is scratch memory for both. Returns false if
 * there is none. */
static bool longest(const wordpiece *w, const kelp_char *chars, size_t begin, size_t end, char *key,
                    int64_t *out_id, size_t *out_end) {
    size_t length = 0;
    if (begin > 0 && w->continuation.length > 0) {
        length = w->continuation.length;
        memcpy(key, w->continuation.data, length);
    }
    for (size_t i = begin; i < end; i++)
        length += kelp_utf8_encode(chars[i].c, key + length);
    for (; end > begin; end--) {
        char last[CHAR_BYTES];
        *out_id = kelp_vocabulary_id(&w->base.vocabulary, (kelp_str){key, length});
        *out_end = end;
        if (*out_id != KELP_TOKEN_NONE)
            return true;
        length -= kelp_utf8_encode(chars[end - 1].c, last);
    }
    return false;
}

static kelp_status *encode_word(const wordpiece *w, const kelp_char *chars, size_t count,
                                size_t word, char *key, kelp_token_list *out) {
    kelp_text_token token = {
        .id = w->unknown, .begin = chars[0].begin, .end = chars[count - 1].end, .word = word};
    if (count > w->max_word_chars)
        return kelp_token_list_push(out, token);
    for (size_t begin = 0, end; begin < count; begin = end) {
        token.begin = chars[begin].begin;
        if (!longest(w, chars, begin, count, key, &token.id, &end)) {
            token.id = w->unknown;
            token.end = chars[count - 1].end;
            return kelp_token_list_push(out, token);
        }
        token.end = chars[end - 1].end;
        KELP_TRY(kelp_token_list_push(out, token));
    }
    return NULL;
}

static kelp_status *encode_words(const wordpiece *w, const kelp_words *words, char *key,
                                 kelp_token_list *out) {
    for (size_t i = 0, begin = 0; i < words->count; begin = words->ends[i++])
        KELP_TRY(encode_word(w, words->chars + begin, words->ends[i] - begin, i, key, out));
    return NULL;
}

static kelp_status *wordpiece_encode(const kelp_tokenizer *tokenizer, kelp_str text,
                                     kelp_token_list *inout_tokens) {
    const wordpiece *w = (const wordpiece *)tokenizer;
    size_t key_bytes, chars = KELP_MIN(w->max_word_chars, text.length);
    kelp_words words;
    char *key = NULL;
    if (!kelp_size_mul(chars, CHAR_BYTES, &key_bytes) ||
        !kelp_size_add(key_bytes, w->continuation.length + 1, &key_bytes))
        return kelp_status_oom();
    KELP_TRY(kelp_words_split(&w->words, inout_tokens->allocator, text, &words));
    kelp_status *status = kelp_alloc(inout_tokens->allocator, key_bytes, (void **)&key);
    if (status == NULL)
        status = encode_words(w, &words, key, inout_tokens);
    kelp_words_deinit(&words);
    if (key != NULL)
        kelp_free(inout_tokens->allocator, key, key_bytes);
    return status;
}

/* ---- text of ids ---- */
static bool is_one_of(uint32_t c, const char *characters) {
    return c > 0 && c < 0x80 && strchr(characters, (int)c) != NULL;
}

/* Returns true if no space separates a token that ends with `left` from one that begins with
 * `right`. */
static bool are_joined(uint32_t left, uint32_t right) {
    static const char both[] = "-'\"/@\\";
    return is_one_of(right, "!.?,~:}]>)") || is_one_of(left, "{[<($") || is_one_of(left, both) ||
           is_one_of(right, both) || (left > 0x80 && kelp_words_is_punctuation(left)) ||
           (right > 0x80 && kelp_words_is_punctuation(right));
}

static uint32_t first_char(kelp_str text) {
    return text.length > 0 ? kelp_char_at(text, 0).c : 0;
}

static uint32_t last_char(kelp_str text) {
    uint32_t c = 0;
    for (size_t at = 0; at < text.length;) {
        kelp_char x = kelp_char_at(text, at);
        c = x.c;
        at = x.end;
    }
    return c;
}

static kelp_status *wordpiece_decode(const kelp_tokenizer *tokenizer, const int64_t *ids,
                                     size_t count, const kelp_decode_options *options,
                                     kelp_buf *out) {
    const wordpiece *w = (const wordpiece *)tokenizer;
    size_t begin = out->length;
    kelp_str before = {NULL, 0}; /* the previous token */
    for (size_t i = 0; i < count; i++) {
        kelp_str token = kelp_vocabulary_token(&tokenizer->vocabulary, ids[i]);
        bool empty = out->length == begin;
        if (kelp_decode_skips(options, ids[i]))
            continue;
        if (token.data == NULL) {
            if (!empty)
                kelp_buf_append_char(out, ' ');
            kelp_buf_append_str(out, w->unknown_text);
            continue;
        }
        bool continues = kelp_str_starts(token, w->continuation);
        if (continues && empty)
            continue; /* a word does not begin with a continuation */
        if (continues)
            token = (kelp_str){token.data + w->continuation.length,
                               token.length - w->continuation.length};
        bool joined = options->clean_up_spaces &&
                      (before.data == NULL || are_joined(last_char(before), first_char(token)));
        if (!empty && !continues && !joined)
            kelp_buf_append_char(out, ' ');
        kelp_buf_append_str(out, token);
        before = token;
    }
    return NULL;
}

static const kelp_tokenizer_kind wordpiece_kind = {
    .size_bytes = sizeof(wordpiece), .encode = wordpiece_encode, .decode = wordpiece_decode};

static kelp_status *copy_text(wordpiece *w, kelp_str text, kelp_str *out) {
    *out = (kelp_str){kelp_arena_strndup(&w->base.vocabulary.arena, text.data, text.length),
                      text.length};
    return out->data != NULL ? NULL : kelp_status_oom();
}

static kelp_status *read_vocabulary(wordpiece *w, const kelp_wordpiece_options *options) {
    kelp_vocabulary *vocabulary = &w->base.vocabulary;
    if (options->is_json)
        KELP_TRY(kelp_vocabulary_add_json(vocabulary, options->vocabulary));
    else
        KELP_TRY(kelp_vocabulary_add_lines(vocabulary, options->vocabulary, options->separators));
    w->unknown = kelp_vocabulary_id(vocabulary, options->unknown);
    KELP_TRY(copy_text(w, options->unknown, &w->unknown_text));
    return copy_text(w, options->continuation, &w->continuation);
}

kelp_status *kelp_wordpiece_create(kelp_allocator allocator, const kelp_wordpiece_options *options,
                                   kelp_tokenizer **out) {
    kelp_tokenizer *tokenizer = NULL;
    KELP_TRY(kelp_tokenizer_new(allocator, &wordpiece_kind, &tokenizer));
    wordpiece *w = (wordpiece *)tokenizer;
    w->max_word_chars = options->max_word_chars;
    w->words = options->words;
    kelp_status *status = read_vocabulary(w, options);
    if (status != NULL) {
        kelp_tokenizer_destroy(tokenizer);
        return status;
    }
    *out = tokenizer;
    return NULL;
}
