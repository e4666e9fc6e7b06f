/* SPDX-License-Identifier: Apache-2.0 */
/* tokenizer_config.json and tokenizer.json of transformers: what both kinds of models share. */
#ifndef KELP_TOKENIZER_HF_MODEL_H_
#define KELP_TOKENIZER_HF_MODEL_H_

#include "base/text/json.h"
#include "tokenizer/tokenizer.h"

/* tokenizer_config.json. */
typedef struct kelp_hf_config {
    kelp_str tokenizer_class; /* without "Fast" */
    kelp_str start, end, unknown, padding;
    bool adds_start, adds_end;
} kelp_hf_config;

/* Reads the text of a member; `*out` is unchanged if the object lacks it or it is null.
 * INVALID_ARGUMENT for another type. */
kelp_status *kelp_hf_text(const kelp_json *object, const char *key, kelp_str *inout) KELP_MUST_USE;
/* The same for a bool. */
kelp_status *kelp_hf_flag(const kelp_json *object, const char *key, bool *inout) KELP_MUST_USE;
/* Returns a member, or NULL if the object lacks it or it is null. */
const kelp_json *kelp_hf_member(const kelp_json *object, const char *key);
/* Reads an item of "added_tokens". */
kelp_status *kelp_hf_added_token(const kelp_json *item, kelp_added_token *out,
                                 bool *out_special) KELP_MUST_USE;

/* Creates a BPE tokenizer. */
kelp_status *kelp_hf_create_bpe(kelp_allocator allocator, const kelp_hf_config *config,
                                const kelp_json *root, kelp_hf_model *out) KELP_MUST_USE;
/* Creates a unigram tokenizer. */
kelp_status *kelp_hf_create_unigram(kelp_allocator allocator, const kelp_hf_config *config,
                                    const kelp_json *root, kelp_hf_model *out) KELP_MUST_USE;

#endif
