/* SPDX-License-Identifier: Apache-2.0 */
/* Division of text into words, before BPE: the expressions of tokenizers in use. */
#ifndef KELP_TOKENIZER_PRETOKENS_H_
#define KELP_TOKENIZER_PRETOKENS_H_

#include "tokenizer/unicode.h"

#define KELP_PRETOKEN_RULES 20

/* Alternatives of an expression; the first one that matches counts. */
typedef struct kelp_pretokens {
    uint8_t rules[KELP_PRETOKEN_RULES];
    size_t count;
} kelp_pretokens;

/* Returns the expressions of GPT-2 and Llama 3. */
kelp_pretokens kelp_pretokens_gpt2(void);
kelp_pretokens kelp_pretokens_llama(void);
/* Reads an expression that consists of known alternatives, in any order. UNIMPLEMENTED for others.
 */
kelp_status *kelp_pretokens_init(kelp_pretokens *out, kelp_allocator allocator,
                                 kelp_str expression) KELP_MUST_USE;
/* Returns the number of characters of the first word; 0 if there is none. `*out_skipped` is the
 * number of characters in front of it that belong to no word. */
size_t kelp_pretoken_next(const kelp_pretokens *pretokens, const kelp_char *chars, size_t count,
                          size_t *out_skipped);

#endif
