/* SPDX-License-Identifier: Apache-2.0 */
/* BPE: the tokenizer, and the state of one call of encode. */
#ifndef KELP_TOKENIZER_BPE_H_
#define KELP_TOKENIZER_BPE_H_

#include "tokenizer/added.h"
#include "tokenizer/kind.h"
#include "tokenizer/merges.h"
#include "tokenizer/pretokens.h"

typedef struct kelp_bpe {
    kelp_tokenizer base;
    kelp_merges merges;
    kelp_added special, added;
    kelp_pretokens words;
    bool ends_words, marks_spaces, marks_start, one_word; /* as in kelp_bpe_options */
    struct {
        char text[2];
        uint8_t length;
        uint32_t id, id_at_end; /* of the byte alone, and with the end of a word */
    } bytes[256];
} kelp_bpe;

typedef struct kelp_bpe_encoder {
    const kelp_bpe *b;
    kelp_token_list *out;
    kelp_char *chars; /* normalized */
    size_t char_capacity, char_count;
    kelp_char *marked;       /* one part of the text with marks; NULL without marks */
    const kelp_char *source; /* the characters that `begins` refers to */
    char *key;               /* the word in the alphabet of the vocabulary */
    kelp_part *parts;        /* of the word; one for each byte */
    uint32_t *begins;        /* of each byte: the character */
    size_t byte_capacity;
    size_t word;
} kelp_bpe_encoder;

/* Appends a token of the word that has the units `first` to `last` of encoder->begins. */
kelp_status *kelp_bpe_push(kelp_bpe_encoder *encoder, uint32_t id, size_t first, size_t last,
                           size_t length, bool after_space) KELP_MUST_USE;

/* ---- tokens with marks instead of spaces ---- */
/* Encodes characters begin … end - 1, which have no added or special token. */
kelp_status *kelp_bpe_encode_marked(kelp_bpe_encoder *encoder, size_t begin,
                                    size_t end) KELP_MUST_USE;
/* Makes the tokens "<0x00>" … "<0xFF>" known as the bytes, unless these are tokens themselves. */
kelp_status *kelp_bpe_add_byte_tokens(kelp_vocabulary *vocabulary) KELP_MUST_USE;
/* Appends the text of a token. */
void kelp_bpe_decode_marked(kelp_str token, kelp_buf *out);

#endif
