/* SPDX-License-Identifier: Apache-2.0 */
/* Division of text into words, for BPE. */
#ifndef KELP_TOKENIZER_PRETOKENS_H_
#define KELP_TOKENIZER_PRETOKENS_H_

#include "tokenizer/unicode.h"

/* Returns the number of characters of the word that begins at chars[0]: at least 1. `count` is at
 * least 1. Source: the expression of GPT-2, 's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+|
 * ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+ */
size_t kelp_pretoken_gpt2(const kelp_char *chars, size_t count);

#endif
