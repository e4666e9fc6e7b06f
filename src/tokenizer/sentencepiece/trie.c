/* SPDX-License-Identifier: Apache-2.0 */
#include "tokenizer/sentencepiece/trie.h"

#include "base/alloc.h"
#include "base/assert.h"

static size_t slot_of(const kelp_trie *t, uint32_t parent, uint8_t byte) {
    uint64_t key = ((uint64_t)parent << 8 | byte) * 0x9e3779b97f4a7c15u;
    size_t mask = t->edge_capacity - 1, at = (key ^ key >> 32) & mask;
    while (t->edges[at].used && (t->edges[at].parent != parent || t->edges[at].byte != byte))
        at = (at + 1) & mask;
    return at;
}

static kelp_status *add_node(kelp_trie *t, uint32_t *out) {
    KELP_TRY(kelp_grow(t->allocator, (void **)&t->values, &t->node_capacity, t->node_count + 1,
                       sizeof *t->values));
    *out = (uint32_t)t->node_count;
    t->values[t->node_count++] = -1;
    return NULL;
}

static kelp_status *rehash(kelp_trie *t, size_t capacity) {
    kelp_trie_edge *old = t->edges, *edges = NULL;
    size_t old_capacity = t->edge_capacity;
    KELP_TRY(kelp_alloc_zero(t->allocator, capacity, sizeof *edges, (void **)&edges));
    t->edges = edges;
    t->edge_capacity = capacity;
    for (size_t i = 0; i < old_capacity; i++)
        if (old[i].used)
            edges[slot_of(t, old[i].parent, old[i].byte)] = old[i];
    if (old != NULL)
        kelp_free(t->allocator, old, old_capacity * sizeof *old);
    return NULL;
}

kelp_status *kelp_trie_init(kelp_trie *trie, kelp_allocator allocator) {
    uint32_t root;
    *trie = (kelp_trie){.allocator = allocator};
    kelp_status *status = rehash(trie, 64);
    if (status == NULL)
        status = add_node(trie, &root);
    if (status != NULL)
        kelp_trie_deinit(trie);
    return status;
}

void kelp_trie_deinit(kelp_trie *trie) {
    if (trie->edges != NULL)
        kelp_free(trie->allocator, trie->edges, trie->edge_capacity * sizeof *trie->edges);
    if (trie->values != NULL)
        kelp_free(trie->allocator, trie->values, trie->node_capacity * sizeof *trie->values);
    *trie = (kelp_trie){.allocator = trie->allocator};
}

kelp_status *kelp_trie_put(kelp_trie *trie, kelp_str text, int32_t value) {
    uint32_t node = KELP_TRIE_ROOT;
    KELP_ASSERT(value >= 0);
    for (size_t i = 0; i < text.length; i++) {
        if (2 * (trie->edge_count + 1) > trie->edge_capacity)
            KELP_TRY(rehash(trie, 2 * trie->edge_capacity));
        kelp_trie_edge *edge = &trie->edges[slot_of(trie, node, (uint8_t)text.data[i])];
        if (!edge->used) {
            uint32_t child;
            KELP_TRY(add_node(trie, &child));
            *edge = (kelp_trie_edge){node, child, (uint8_t)text.data[i], true};
            trie->edge_count++;
        }
        node = edge->child;
    }
    trie->values[node] = value;
    return NULL;
}

uint32_t kelp_trie_next(const kelp_trie *trie, uint32_t node, uint8_t byte) {
    const kelp_trie_edge *edge = &trie->edges[slot_of(trie, node, byte)];
    return edge->used ? edge->child : KELP_TRIE_NONE;
}

size_t kelp_trie_longest(const kelp_trie *trie, kelp_str text) {
    size_t longest = 0;
    uint32_t node = KELP_TRIE_ROOT;
    for (size_t i = 0; i < text.length && trie->edge_count > 0; i++) {
        node = kelp_trie_next(trie, node, (uint8_t)text.data[i]);
        if (node == KELP_TRIE_NONE)
            break;
        if (trie->values[node] >= 0)
            longest = i + 1;
    }
    return longest;
}
