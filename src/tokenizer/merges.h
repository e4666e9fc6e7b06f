/* SPDX-License-Identifier: Apache-2.0 */
/* Merges of BPE: which pairs of tokens become one token, in which order. */
#ifndef KELP_TOKENIZER_MERGES_H_
#define KELP_TOKENIZER_MERGES_H_

#include "base/text/json.h"
#include "tokenizer/vocabulary.h"

#define KELP_MERGE_NONE UINT32_MAX /* the id of a token that the vocabulary lacks */

typedef struct kelp_merge {
    uint32_t left, right; /* ids of the pair */
    uint32_t id;          /* id of the merged token */
    uint32_t rank;        /* lower ranks are merged first */
} kelp_merge;

typedef struct kelp_merges {
    kelp_allocator allocator;
    kelp_merge *items;
    uint32_t *slots; /* a hash table of indexes into items + 1; 0: empty */
    size_t count, capacity, slot_count;
} kelp_merges;

/* Reads "LEFT RIGHT" lines. A later merge of the same pair replaces the earlier one. */
kelp_status *kelp_merges_init(kelp_merges *out, kelp_allocator allocator, kelp_str text,
                              const kelp_vocabulary *vocabulary) KELP_MUST_USE;
/* Reads the "merges" of a tokenizer.json: an array of "LEFT RIGHT" or ["LEFT", "RIGHT"]. */
kelp_status *kelp_merges_init_json(kelp_merges *out, kelp_allocator allocator,
                                   const kelp_json *merges,
                                   const kelp_vocabulary *vocabulary) KELP_MUST_USE;
void kelp_merges_deinit(kelp_merges *merges);

/* A part of a word. */
typedef struct kelp_part {
    uint32_t id;
    uint32_t begin, end;     /* what it covers, in units of the caller */
    uint32_t previous, next; /* indexes of the neighbours; KELP_MERGE_NONE: none */
} kelp_part;

/* Merges the parts of a word, which are linked in order: all occurrences of the pair of lowest rank
 * from left to right, again and again. The first part stays the first. `allocator` provides
 * temporary memory. */
kelp_status *kelp_merges_apply(const kelp_merges *merges, kelp_allocator allocator,
                               kelp_part *parts, size_t count) KELP_MUST_USE;

#endif
