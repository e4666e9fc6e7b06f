/* SPDX-License-Identifier: Apache-2.0 */
/* A trie of byte strings. */
#ifndef KELP_TOKENIZER_SENTENCEPIECE_TRIE_H_
#define KELP_TOKENIZER_SENTENCEPIECE_TRIE_H_

#include "base/str.h"

#include <kelp/allocator.h>

#define KELP_TRIE_ROOT 0u
#define KELP_TRIE_NONE UINT32_MAX

typedef struct kelp_trie_edge {
    uint32_t parent, child;
    uint8_t byte;
    bool used;
} kelp_trie_edge;

typedef struct kelp_trie {
    kelp_allocator allocator;
    kelp_trie_edge *edges; /* a hash table of edges, by parent and byte */
    size_t edge_count, edge_capacity;
    int32_t *values; /* by node; -1: none */
    size_t node_count, node_capacity;
} kelp_trie;

kelp_status *kelp_trie_init(kelp_trie *trie, kelp_allocator allocator) KELP_MUST_USE;
void kelp_trie_deinit(kelp_trie *trie);
/* Sets the value of a string, at least 0. */
kelp_status *kelp_trie_put(kelp_trie *trie, kelp_str text, int32_t value) KELP_MUST_USE;
/* Returns the node that `byte` leads to, or KELP_TRIE_NONE. */
uint32_t kelp_trie_next(const kelp_trie *trie, uint32_t node, uint8_t byte);
/* Returns the length of the longest string that the text begins with; 0 if there is none. */
size_t kelp_trie_longest(const kelp_trie *trie, kelp_str text);

#endif
