/* SPDX-License-Identifier: Apache-2.0 */
/* Special and added tokens, which are recognized in a text before it is divided into words. */
#ifndef KELP_TOKENIZER_ADDED_H_
#define KELP_TOKENIZER_ADDED_H_

#include "tokenizer/tokenizer.h"
#include "tokenizer/unicode.h"

typedef struct kelp_added_item {
    kelp_char *chars;
    size_t count; /* characters: at least 1 */
    int64_t id;
    bool strips_after;
    size_t order; /* number of the token in the list before it was sorted */
} kelp_added_item;

/* A list of tokens. */
typedef struct kelp_added {
    kelp_allocator allocator;
    kelp_added_item *items;
    size_t count, capacity;
} kelp_added;

void kelp_added_init(kelp_added *added, kelp_allocator allocator);
void kelp_added_deinit(kelp_added *added);
/* Appends a token. */
kelp_status *kelp_added_append(kelp_added *added, const kelp_added_token *token) KELP_MUST_USE;
/* Sorts the tokens for kelp_added_next; of equal tokens, the last one counts. */
void kelp_added_sort(kelp_added *added);

/* A part of a text: characters begin … end - 1. */
typedef struct kelp_added_span {
    size_t begin, end;
    int64_t id; /* of the token, or KELP_TOKEN_NONE */
    bool strips_after;
} kelp_added_span;

/* Finds the longest token of a sorted list that begins at character `at`. */
bool kelp_added_at(const kelp_added *added, const kelp_char *chars, size_t count, size_t at,
                   kelp_added_span *out);
/* Finds the next token of a sorted list from character `at` on, the longest one that begins at the
 * first possible place. Returns false if there is none. */
bool kelp_added_next(const kelp_added *added, const kelp_char *chars, size_t count, size_t at,
                     kelp_added_span *out);
/* Finds the next occurrence of one token in characters at … end - 1. */
bool kelp_added_find(const kelp_added_item *item, const kelp_char *chars, size_t at, size_t end,
                     kelp_added_span *out);

#endif
