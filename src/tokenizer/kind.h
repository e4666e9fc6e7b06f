/* SPDX-License-Identifier: Apache-2.0 */
/* What all tokenizers consist of. */
#ifndef KELP_TOKENIZER_KIND_H_
#define KELP_TOKENIZER_KIND_H_

#include "tokenizer/tokenizer.h"
#include "tokenizer/vocabulary.h"

/* The functions of one kind of tokenizer. */
typedef struct kelp_tokenizer_kind {
    size_t size_bytes; /* of the struct that begins with a kelp_tokenizer */
    kelp_status *(*encode)(const kelp_tokenizer *tokenizer, kelp_str text,
                           kelp_token_list *inout_tokens);
    kelp_status *(*decode)(const kelp_tokenizer *tokenizer, const int64_t *ids, size_t count,
                           const kelp_decode_options *options, kelp_buf *out);
    void (*deinit)(kelp_tokenizer *tokenizer); /* NULL: only the vocabulary is freed */
} kelp_tokenizer_kind;

/* The first member of each tokenizer. */
struct kelp_tokenizer {
    const kelp_tokenizer_kind *kind;
    kelp_allocator allocator;
    kelp_vocabulary vocabulary;
};

/* Allocates a zeroed tokenizer with an empty vocabulary. */
kelp_status *kelp_tokenizer_new(kelp_allocator allocator, const kelp_tokenizer_kind *kind,
                                kelp_tokenizer **out) KELP_MUST_USE;

/* Returns true if the id is in options->skipped. */
bool kelp_decode_skips(const kelp_decode_options *options, int64_t id);

#endif
