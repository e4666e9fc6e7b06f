/* SPDX-License-Identifier: Apache-2.0 */
/* BPE of SentencePiece: merges the neighbours whose piece has the highest score. */
#include "base/alloc.h"
#include "base/assert.h"
#include "base/checked.h"
#include "base/map.h"
#include "tokenizer/sentencepiece/spm.h"

#define NONE UINT32_MAX

typedef struct symbol {
    uint32_t begin, end; /* empty: merged into another */
    uint32_t previous, next;
    bool is_user; /* user-defined pieces are not merged */
} symbol;

/* Neighbours that can be merged; valid as long as both have this size together. */
typedef struct pair {
    float score;
    uint32_t left, right, size;
} pair;

typedef struct merger {
    const kelp_spm *spm;
    kelp_str text;
    kelp_allocator allocator;
    symbol *symbols;
    size_t symbol_count, symbol_capacity;
    pair *heap;
    size_t heap_count, heap_capacity;
    kelp_map splits; /* unused pieces: the length of their left part */
} merger;

static bool before(const pair *a, const pair *b) {
    return a->score != b->score ? a->score > b->score : a->left < b->left;
}

static kelp_status *heap_push(merger *m, pair item) {
    KELP_TRY(kelp_grow(m->allocator, (void **)&m->heap, &m->heap_capacity, m->heap_count + 1,
                       sizeof *m->heap));
    size_t at = m->heap_count++;
    for (; at > 0 && before(&item, &m->heap[(at - 1) / 2]); at = (at - 1) / 2)
        m->heap[at] = m->heap[(at - 1) / 2];
    m->heap[at] = item;
    return NULL;
}

static pair heap_pop(merger *m) {
    pair top = m->heap[0], last = m->heap[--m->heap_count];
    size_t at = 0;
    for (size_t child; (child = 2 * at + 1) < m->heap_count; at = child) {
        if (child + 1 < m->heap_count && before(&m->heap[child + 1], &m->heap[child]))
            child++;
        if (!before(&m->heap[child], &last))
            break;
        m->heap[at] = m->heap[child];
    }
    m->heap[at] = last;
    return top;
}

static kelp_str text_of(const merger *m, uint32_t begin, uint32_t end) {
    return (kelp_str){m->text.data + begin, end - begin};
}

/* Adds two neighbours, if together they are a piece. */
static kelp_status *add(merger *m, uint32_t left, uint32_t right) {
    if (left == NONE || right == NONE || m->symbols[left].is_user || m->symbols[right].is_user)
        return NULL;
    const symbol *a = &m->symbols[left], *b = &m->symbols[right];
    kelp_str piece = text_of(m, a->begin, b->end);
    int64_t id = kelp_vocabulary_id(&m->spm->base.vocabulary, piece);
    if (id == KELP_TOKEN_NONE)
        return NULL;
    if (m->spm->pieces[id].type == KELP_SPM_UNUSED)
        KELP_TRY(kelp_map_put(&m->splits, piece, (void *)(uintptr_t)(a->end - a->begin)));
    return heap_push(m, (pair){m->spm->pieces[id].score, left, right, (uint32_t)piece.length});
}

static kelp_status *merge_all(merger *m) {
    while (m->heap_count > 0) {
        pair top = heap_pop(m);
        symbol *left = &m->symbols[top.left], *right = &m->symbols[top.right];
        if (left->begin == left->end || right->begin == right->end ||
            left->end - left->begin + right->end - right->begin != top.size)
            continue;
        left->end = right->end;
        left->next = right->next;
        if (right->next != NONE)
            m->symbols[right->next].previous = top.left;
        right->begin = right->end;
        KELP_TRY(add(m, left->previous, top.left));
        KELP_TRY(add(m, top.left, left->next));
    }
    return NULL;
}

/* Adds a piece; an unused one is divided into the parts that it was merged from. The stack has the
 * right parts that wait; each is shorter than the piece. */
static kelp_status *push_used(merger *m, uint32_t begin, uint32_t end, kelp_spm_spans *out) {
    kelp_spm_spans stack = {.allocator = m->allocator};
    kelp_status *status = kelp_spm_push(&stack, begin, end, 0);
    while (status == NULL && stack.count > 0) {
        kelp_spm_span span = stack.items[--stack.count];
        kelp_str piece = text_of(m, span.begin, span.end);
        int32_t id = kelp_spm_id(m->spm, piece);
        uintptr_t left = m->spm->pieces[id].type == KELP_SPM_UNUSED
                             ? (uintptr_t)kelp_map_get(&m->splits, piece)
                             : 0;
        if (left == 0) {
            status = kelp_spm_push(out, span.begin, span.end, id);
            continue;
        }
        status = kelp_spm_push(&stack, span.begin + left, span.end, 0);
        if (status == NULL)
            status = kelp_spm_push(&stack, span.begin, span.begin + left, 0);
    }
    if (stack.items != NULL)
        kelp_free(stack.allocator, stack.items, stack.capacity * sizeof *stack.items);
    return status;
}

static kelp_status *divide(merger *m, kelp_spm_spans *out) {
    for (size_t at = 0; at < m->text.length;) {
        symbol s = {.begin = (uint32_t)at};
        at +=
            kelp_spm_prefix(m->spm, (kelp_str){m->text.data + at, m->text.length - at}, &s.is_user);
        s.end = (uint32_t)at;
        s.previous = m->symbol_count > 0 ? (uint32_t)m->symbol_count - 1 : NONE;
        s.next = at < m->text.length ? (uint32_t)m->symbol_count + 1 : NONE;
        KELP_TRY(kelp_grow(m->allocator, (void **)&m->symbols, &m->symbol_capacity,
                           m->symbol_count + 1, sizeof *m->symbols));
        m->symbols[m->symbol_count++] = s;
    }
    for (uint32_t i = 1; i < m->symbol_count; i++)
        KELP_TRY(add(m, i - 1, i));
    KELP_TRY(merge_all(m));
    for (uint32_t i = 0; i != NONE; i = m->symbols[i].next)
        KELP_TRY(push_used(m, m->symbols[i].begin, m->symbols[i].end, out));
    return NULL;
}

kelp_status *kelp_spm_bpe(const kelp_spm *spm, kelp_str text, kelp_spm_spans *out) {
    merger m = {.spm = spm, .text = text, .allocator = out->allocator};
    if (text.length == 0)
        return NULL;
    kelp_map_init(&m.splits, out->allocator);
    kelp_status *status = divide(&m, out);
    kelp_map_deinit(&m.splits);
    if (m.symbols != NULL)
        kelp_free(m.allocator, m.symbols, m.symbol_capacity * sizeof *m.symbols);
    if (m.heap != NULL)
        kelp_free(m.allocator, m.heap, m.heap_capacity * sizeof *m.heap);
    return status;
}

kelp_status *kelp_spm_chars(const kelp_spm *spm, kelp_str text, kelp_spm_spans *out) {
    for (size_t at = 0; at < text.length;) {
        kelp_str rest = {text.data + at, text.length - at};
        size_t length = kelp_spm_prefix(spm, rest, NULL);
        KELP_TRY(
            kelp_spm_push(out, at, at + length, kelp_spm_id(spm, (kelp_str){rest.data, length})));
        at += length;
    }
    return NULL;
}
