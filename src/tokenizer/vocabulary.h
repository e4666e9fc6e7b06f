/* SPDX-License-Identifier: Apache-2.0 */
/* Vocabularies: tokens and their ids. */
#ifndef KELP_TOKENIZER_VOCABULARY_H_
#define KELP_TOKENIZER_VOCABULARY_H_

#include "base/arena.h"
#include "base/map.h"

#define KELP_VOCABULARY_MAX_ID (1 << 26)

typedef struct kelp_vocabulary {
    kelp_allocator allocator;
    kelp_arena arena; /* texts of the tokens */
    kelp_map ids;     /* from token to id + 1 */
    kelp_str *tokens; /* by id; `data` is NULL for ids without a token */
    size_t capacity;
    int64_t end; /* largest id + 1 */
} kelp_vocabulary;

void kelp_vocabulary_init(kelp_vocabulary *vocabulary, kelp_allocator allocator);
void kelp_vocabulary_deinit(kelp_vocabulary *vocabulary);
/* Copies the token. A token that exists gets the new id; both ids then have its text. */
kelp_status *kelp_vocabulary_add(kelp_vocabulary *vocabulary, kelp_str token,
                                 int64_t id) KELP_MUST_USE;
/* Sets the text of an id, which is not copied and not found by kelp_vocabulary_id. */
kelp_status *kelp_vocabulary_set_token(kelp_vocabulary *vocabulary, kelp_str token,
                                       int64_t id) KELP_MUST_USE;
/* Adds the lines of a text that are not empty, from id 0 on. Each character of `separators` ends a
 * line. */
kelp_status *kelp_vocabulary_add_lines(kelp_vocabulary *vocabulary, kelp_str text,
                                       const char *separators) KELP_MUST_USE;
/* Adds the members of a JSON object from token to id. */
kelp_status *kelp_vocabulary_add_json(kelp_vocabulary *vocabulary, kelp_str text) KELP_MUST_USE;
/* Returns the id, or KELP_TOKEN_NONE. */
int64_t kelp_vocabulary_id(const kelp_vocabulary *vocabulary, kelp_str token);
kelp_str kelp_vocabulary_token(const kelp_vocabulary *vocabulary, int64_t id);

#endif
