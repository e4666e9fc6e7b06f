/* SPDX-License-Identifier: Apache-2.0 */
/* Division of text into words, for WordPiece. */
#ifndef KELP_TOKENIZER_WORDS_H_
#define KELP_TOKENIZER_WORDS_H_

#include "tokenizer/tokenizer.h"
#include "tokenizer/unicode.h"

/* Words of a text: word i has the characters ends[i - 1] … ends[i] - 1 of `chars`, with the places
 * in the text that they come from. */
typedef struct kelp_words {
    kelp_allocator allocator;
    kelp_char *chars;
    size_t *ends;
    size_t count, capacity; /* words; characters */
} kelp_words;

/* Divides a text into words. Characters are those of onnxruntime-extensions, of which only some
 * Unicode blocks have case, accents, spaces and punctuation. */
kelp_status *kelp_words_split(const kelp_word_options *options, kelp_allocator allocator,
                              kelp_str text, kelp_words *out) KELP_MUST_USE;
/* Encodes the characters begin … end - 1, with the allocator of the words; free text.data with
 * kelp_free, with a size of 4 bytes for each character. */
kelp_status *kelp_words_text(const kelp_words *words, size_t begin, size_t end,
                             kelp_str *out) KELP_MUST_USE;
void kelp_words_deinit(kelp_words *words);
/* Returns the lower case of letters of some blocks; other characters are unchanged. */
uint32_t kelp_words_lower(uint32_t c);
/* Returns true for punctuation; also used by decoders. */
bool kelp_words_is_punctuation(uint32_t c);

#endif
