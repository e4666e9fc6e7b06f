/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tokenizers: text to token ids and back. A tokenizer is created from the bytes of a vocabulary or
 * model, which it copies. It is immutable and thread-safe.
 *
 * Text is UTF-8. Invalid bytes are no error, and are read as onnxruntime-extensions 0.15 reads
 * them: 110xxxxx begins a character of two bytes, 1110xxxx one of three, every other byte from 0x80
 * on one of four, whatever bytes follow. Bytes after the end of the text count as 0.
 *
 * Errors: a malformed vocabulary or model is INVALID_ARGUMENT, with the line or field; exhausted
 * memory is RESOURCE_EXHAUSTED.
 */
#ifndef KELP_TOKENIZER_TOKENIZER_H_
#define KELP_TOKENIZER_TOKENIZER_H_

#include "base/buf.h"

/* The id of a piece of text that has no token, if the tokenizer has no token for unknown text. */
#define KELP_TOKEN_NONE ((int64_t)-1)

/* A token of a text. */
typedef struct kelp_text_token {
    int64_t id;
    size_t begin, end; /* bytes of the text that the token covers */
    size_t word;       /* index of the word (pre-token) that contains the token */
    size_t length;     /* BPE: bytes of the token as the vocabulary spells it, whether or not it has
                          the token; of a word that is one token, bytes of the text */
    bool after_space;  /* BPE: the word begins with a space */
    bool special;      /* a special or added token, which is a word of its own */
} kelp_text_token;

/* A growing list of tokens. */
typedef struct kelp_token_list {
    kelp_allocator allocator;
    kelp_text_token *items;
    size_t count, capacity;
} kelp_token_list;

void kelp_token_list_init(kelp_token_list *list, kelp_allocator allocator);
void kelp_token_list_deinit(kelp_token_list *list);
kelp_status *kelp_token_list_push(kelp_token_list *list, kelp_text_token token) KELP_MUST_USE;

typedef struct kelp_tokenizer kelp_tokenizer;

/* Frees the tokenizer. NULL is allowed. */
void kelp_tokenizer_destroy(kelp_tokenizer *tokenizer);
/* Appends the tokens of `text`, without tokens that begin or end a sequence. Temporary memory comes
 * from the allocator of the list. */
kelp_status *kelp_tokenizer_encode(const kelp_tokenizer *tokenizer, kelp_str text,
                                   kelp_token_list *inout_tokens) KELP_MUST_USE;
/* Returns the id of a token of the vocabulary, or KELP_TOKEN_NONE. */
int64_t kelp_tokenizer_id(const kelp_tokenizer *tokenizer, kelp_str token);
/* Returns the token of an id as it is in the vocabulary; `data` is NULL for an unknown id. The text
 * is valid as long as the tokenizer. */
kelp_str kelp_tokenizer_token(const kelp_tokenizer *tokenizer, int64_t id);

/* How ids become text. */
typedef struct kelp_decode_options {
    const int64_t *skipped; /* ids that add no text */
    size_t skipped_count;
    /* WordPiece: omits spaces next to punctuation. */
    bool clean_up_spaces;
} kelp_decode_options;

/* Appends the text of `ids`. Unknown ids add the text of the token for unknown text. */
kelp_status *kelp_tokenizer_decode(const kelp_tokenizer *tokenizer, const int64_t *ids,
                                   size_t count, const kelp_decode_options *options,
                                   kelp_buf *out) KELP_MUST_USE;

/* ---- WordPiece ---- */
typedef enum kelp_word_rule {
    KELP_WORDS_BASIC,        /* white space and the options below separate words */
    KELP_WORDS_SPACES,       /* only U+0020 separates words */
    KELP_WORDS_INNER_SPACES, /* the same, but a U+0020 at the start of a word is part of it */
} kelp_word_rule;

/* How text is divided into words before WordPiece. Only KELP_WORDS_BASIC has options. */
typedef struct kelp_word_options {
    kelp_word_rule rule;
    bool strip_accents;     /* removes accents of Latin-1 letters, and combining marks */
    bool lower_case;        /* converts letters of Latin-1, and common Greek and Cyrillic ones */
    bool split_cjk;         /* each CJK ideograph is a word */
    bool split_punctuation; /* each punctuation character is a word */
    bool remove_control;    /* removes control characters */
} kelp_word_options;

typedef struct kelp_wordpiece_options {
    kelp_str vocabulary;    /* one token per line, or a JSON object from token to id */
    bool is_json;           /* the format of `vocabulary` */
    const char *separators; /* characters that end a line */
    kelp_str unknown;       /* token of words that the vocabulary cannot express */
    kelp_str continuation;  /* prefix of tokens that are not at the start of a word */
    size_t max_word_chars;  /* longer words are unknown */
    kelp_word_options words;
} kelp_wordpiece_options;

/* Creates a tokenizer that divides each word into the longest tokens, from left to right. If the
 * rest of a word begins with no token, the tokens so far are followed by `unknown`, or
 * KELP_TOKEN_NONE if the vocabulary lacks it. Source: BERT. */
kelp_status *kelp_wordpiece_create(kelp_allocator allocator, const kelp_wordpiece_options *options,
                                   kelp_tokenizer **out) KELP_MUST_USE;

/* ---- byte-level BPE ---- */
/* A token that is recognized in the text before it is divided into words. */
typedef struct kelp_added_token {
    kelp_str text;     /* not empty */
    int64_t id;        /* special tokens: unused */
    bool strips_after; /* white space after the token is removed; special tokens: unused */
} kelp_added_token;

struct kelp_json;
struct kelp_pretokens;

typedef struct kelp_bpe_options {
    kelp_str vocabulary; /* a JSON object from token to id */
    kelp_str merges;     /* "LEFT RIGHT" per line, in order of priority; a first line with # is a
                            comment */
    /* Special tokens have the ids of the vocabulary. One that it lacks is added, with the number of
     * its tokens as the id. Earlier ones are recognized first. */
    const kelp_added_token *special;
    size_t special_count;
    const kelp_added_token *added; /* recognized before special ones; the longest one counts */
    size_t added_count;
    /* Words end with "</w>", have no spaces, and are of lower case; runs of white space count as
     * one. Source: CLIP. */
    bool ends_words;
    /* Tokens have U+2581 instead of spaces, and characters that the vocabulary lacks are the tokens
     * "<0x00>" … "<0xFF>" of their bytes. Source: Llama. */
    bool marks_spaces;
    bool marks_start; /* with marks: a mark precedes each part of text between added tokens */
    bool one_word;    /* with marks: text is not divided into words */
    /* How text is divided into words; NULL: as for GPT-2. */
    const struct kelp_pretokens *words;
    /* The object "model" of a tokenizer.json, instead of `vocabulary` and `merges`. */
    const struct kelp_json *model;
} kelp_bpe_options;

/* Creates a tokenizer that divides text into words, and merges the bytes or characters of each
 * word. A byte that the vocabulary lacks is KELP_TOKEN_NONE. Source: GPT-2. */
kelp_status *kelp_bpe_create(kelp_allocator allocator, const kelp_bpe_options *options,
                             kelp_tokenizer **out) KELP_MUST_USE;

/* ---- SentencePiece ---- */
/* Creates a tokenizer from the bytes of a model (unigram, BPE or char): a message ModelProto. A
 * word of a token is its piece. Returns UNIMPLEMENTED for models of words and denormalizers with
 * rules. Source: sentencepiece 0.1.96. */
kelp_status *kelp_sentencepiece_create(kelp_allocator allocator, kelp_str model,
                                       kelp_tokenizer **out) KELP_MUST_USE;
/* Returns the ids of the tokens that begin and end a sequence; KELP_TOKEN_NONE if there is none. */
void kelp_sentencepiece_ends(const kelp_tokenizer *tokenizer, int64_t *out_start, int64_t *out_end);

/* ---- tokenizers of transformers ---- */
/* What tokenizer_config.json and tokenizer.json describe. */
typedef struct kelp_hf_model {
    kelp_tokenizer *tokenizer;
    bool is_clip;
    bool is_unigram;
    bool adds_start, adds_end;   /* sequences begin and end with tokens */
    int64_t start, end, padding; /* ids */
    int64_t suffix[2];           /* ids that follow the text, before the end: of ChatGLM */
    size_t suffix_count;
    int64_t dropped; /* tokens of this id are not part of the sequence; KELP_TOKEN_NONE: none */
} kelp_hf_model;

/* Creates a tokenizer from the texts of tokenizer_config.json and tokenizer.json. Destroy
 * out->tokenizer. Returns UNIMPLEMENTED for tokenizer classes and expressions that are unsupported.
 * Source: onnxruntime-extensions 0.15. */
kelp_status *kelp_hf_model_create(kelp_allocator allocator, kelp_str config, kelp_str tokenizer,
                                  kelp_hf_model *out) KELP_MUST_USE;

#endif
