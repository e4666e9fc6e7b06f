/* SPDX-License-Identifier: Apache-2.0 */
#include "tokenizer/merges.h"

#include "base/alloc.h"
#include "base/assert.h"
#include "base/buf.h"
#include "base/checked.h"
#include "tokenizer/tokenizer.h"

static uint64_t hash(uint32_t left, uint32_t right) {
    uint64_t key = ((uint64_t)right << 32 | left) * 0x9e3779b97f4a7c15u;
    return key ^ key >> 29;
}

/* Returns the slot of a pair, or the empty slot where it belongs. */
static uint32_t *slot_of(const kelp_merges *m, uint32_t left, uint32_t right) {
    size_t mask = m->slot_count - 1, at = hash(left, right) & mask;
    for (;; at = (at + 1) & mask) {
        uint32_t index = m->slots[at];
        if (index == 0 || (m->items[index - 1].left == left && m->items[index - 1].right == right))
            return &m->slots[at];
    }
}

static const kelp_merge *find(const kelp_merges *m, uint32_t left, uint32_t right) {
    if (m->slot_count == 0)
        return NULL;
    uint32_t index = *slot_of(m, left, right);
    return index > 0 ? &m->items[index - 1] : NULL;
}

static uint32_t id_of(const kelp_vocabulary *vocabulary, kelp_str token) {
    int64_t id = kelp_vocabulary_id(vocabulary, token);
    return id == KELP_TOKEN_NONE ? KELP_MERGE_NONE : (uint32_t)id;
}

/* Adds the pair of the tokens in front of and after byte `left` of `text`, which is overwritten. */
static kelp_status *add_pair(kelp_merges *m, const kelp_vocabulary *vocabulary, char *text,
                             size_t length, size_t left, uint32_t *inout_rank) {
    char *right = text + left + 1;
    size_t right_length = length - left - 1;
    kelp_merge merge = {id_of(vocabulary, (kelp_str){text, left}),
                        id_of(vocabulary, (kelp_str){right, right_length}), 0, (*inout_rank)++};
    memmove(text + left, right, right_length);
    merge.id = id_of(vocabulary, (kelp_str){text, length - 1});
    uint32_t *slot = slot_of(m, merge.left, merge.right);
    if (*slot == 0) {
        KELP_ASSERT(m->count < m->capacity);
        *slot = (uint32_t)++m->count;
    }
    m->items[*slot - 1] = merge;
    return NULL;
}

/* Reads one line; `text` is a copy of which carriage returns are removed. */
static kelp_status *read_line(kelp_merges *m, const kelp_vocabulary *vocabulary, char *text,
                              size_t length, size_t line, uint32_t *inout_rank) {
    char *space = memchr(text, ' ', length);
    if (length == 0 || (*text == '#' && *inout_rank == 0))
        return NULL;
    if (space == NULL)
        return KELP_ERROR(KELP_INVALID_ARGUMENT,
                          "line %zu of the merges is malformed: expected two tokens, found '%.*s'",
                          line, KELP_STR_ARG(((kelp_str){text, length})));
    return add_pair(m, vocabulary, text, length, (size_t)(space - text), inout_rank);
}

static kelp_status *read_lines(kelp_merges *m, kelp_str text, const kelp_vocabulary *vocabulary,
                               char *copy) {
    uint32_t rank = 0;
    for (size_t at = 0, length = 0, line = 1; at <= text.length; at++) {
        if (at == text.length || text.data[at] == '\n') {
            KELP_TRY(read_line(m, vocabulary, copy, length, line++, &rank));
            length = 0;
        } else if (text.data[at] != '\r') {
            copy[length++] = text.data[at];
        }
    }
    return NULL;
}

/* Allocates memory for `count` pairs. */
static kelp_status *reserve(kelp_merges *m, size_t count) {
    m->capacity = count;
    if (m->capacity >= UINT32_MAX / 4)
        return kelp_status_oom();
    size_t slots = 16;
    while (slots < 2 * m->capacity)
        slots *= 2;
    KELP_TRY(kelp_alloc_zero(m->allocator, slots, sizeof *m->slots, (void **)&m->slots));
    m->slot_count = slots;
    return kelp_alloc_zero(m->allocator, m->capacity, sizeof *m->items, (void **)&m->items);
}

kelp_status *kelp_merges_init(kelp_merges *out, kelp_allocator allocator, kelp_str text,
                              const kelp_vocabulary *vocabulary) {
    char *copy = NULL;
    size_t lines = 1;
    for (size_t i = 0; i < text.length; i++)
        lines += text.data[i] == '\n';
    *out = (kelp_merges){.allocator = allocator};
    kelp_status *status = reserve(out, lines);
    if (status == NULL)
        status = kelp_alloc(allocator, text.length + 1, (void **)&copy);
    if (status == NULL)
        status = read_lines(out, text, vocabulary, copy);
    if (copy != NULL)
        kelp_free(allocator, copy, text.length + 1);
    if (status != NULL)
        kelp_merges_deinit(out);
    return status;
}

/* Appends the tokens of an item, with a space between them. `*out_left` is the length of the first
 * one. */
static kelp_status *join(const kelp_json *item, size_t index, kelp_buf *out, size_t *out_left) {
    const kelp_json *left = item->child, *right = left != NULL ? left->next : NULL;
    bool is_pair = item->type == KELP_JSON_ARRAY && item->count == 2 &&
                   left->type == KELP_JSON_STRING && right->type == KELP_JSON_STRING;
    kelp_buf_clear(out);
    if (is_pair) {
        kelp_buf_append_str(out, left->string);
        kelp_buf_append_char(out, ' ');
        kelp_buf_append_str(out, right->string);
        *out_left = left->string.length;
        return kelp_buf_status(out);
    }
    const char *space = item->type == KELP_JSON_STRING && item->string.length > 0
                            ? memchr(item->string.data, ' ', item->string.length)
                            : NULL;
    if (space == NULL)
        return KELP_ERROR(KELP_INVALID_ARGUMENT,
                          "'model.merges[%zu]' is malformed: expected a text of two tokens or an "
                          "array of two texts, found %s",
                          index, kelp_json_type_name(item->type));
    kelp_buf_append_str(out, item->string);
    *out_left = (size_t)(space - item->string.data);
    return kelp_buf_status(out);
}

static kelp_status *read_items(kelp_merges *m, const kelp_json *merges,
                               const kelp_vocabulary *vocabulary) {
    uint32_t rank = 0;
    size_t index = 0, left = 0;
    kelp_buf text;
    kelp_status *status = NULL;
    kelp_buf_init(&text, m->allocator);
    for (const kelp_json *item = merges->child; item != NULL && status == NULL; item = item->next) {
        status = join(item, index++, &text, &left);
        if (status == NULL)
            status = add_pair(m, vocabulary, text.data, text.length, left, &rank);
    }
    kelp_buf_deinit(&text);
    return status;
}

kelp_status *kelp_merges_init_json(kelp_merges *out, kelp_allocator allocator,
                                   const kelp_json *merges, const kelp_vocabulary *vocabulary) {
    *out = (kelp_merges){.allocator = allocator};
    if (merges == NULL || merges->type != KELP_JSON_ARRAY)
        return KELP_ERROR(KELP_INVALID_ARGUMENT, "%s", "'model.merges' is not an array");
    kelp_status *status = reserve(out, KELP_MAX(merges->count, 1));
    if (status == NULL)
        status = read_items(out, merges, vocabulary);
    if (status != NULL)
        kelp_merges_deinit(out);
    return status;
}

void kelp_merges_deinit(kelp_merges *merges) {
    if (merges->slots != NULL)
        kelp_free(merges->allocator, merges->slots, merges->slot_count * sizeof *merges->slots);
    if (merges->items != NULL)
        kelp_free(merges->allocator, merges->items, merges->capacity * sizeof *merges->items);
    *merges = (kelp_merges){.allocator = merges->allocator};
}

/* ---- application ---- */
/* A pair that may be merged: valid as long as the part at `at` and its next one have these ids. */
typedef struct candidate {
    const kelp_merge *merge;
    uint32_t at;
} candidate;

/* A heap of candidates, the first one to merge on top, and those that wait because their rank is
 * lower than the rank that is being merged. */
typedef struct queue {
    candidate *heap, *waiting;
    size_t heap_count, waiting_count;
} queue;

static bool before(candidate a, candidate b) {
    return a.merge->rank != b.merge->rank ? a.merge->rank < b.merge->rank : a.at < b.at;
}

static void heap_push(queue *q, candidate item) {
    size_t at = q->heap_count++;
    for (; at > 0 && before(item, q->heap[(at - 1) / 2]); at = (at - 1) / 2)
        q->heap[at] = q->heap[(at - 1) / 2];
    q->heap[at] = item;
}

static candidate heap_pop(queue *q) {
    candidate top = q->heap[0], last = q->heap[--q->heap_count];
    size_t at = 0;
    for (size_t child; (child = 2 * at + 1) < q->heap_count; at = child) {
        if (child + 1 < q->heap_count && before(q->heap[child + 1], q->heap[child]))
            child++;
        if (!before(q->heap[child], last))
            break;
        q->heap[at] = q->heap[child];
    }
    q->heap[at] = last;
    return top;
}

/* Adds the pair that begins at `at`, if it has a merge. */
static void add(const kelp_merges *m, queue *q, const kelp_part *parts, uint32_t at,
                uint32_t rank) {
    if (at == KELP_MERGE_NONE || parts[at].next == KELP_MERGE_NONE)
        return;
    const kelp_merge *merge = find(m, parts[at].id, parts[parts[at].next].id);
    if (merge == NULL)
        return;
    if (merge->rank < rank)
        q->waiting[q->waiting_count++] = (candidate){merge, at};
    else
        heap_push(q, (candidate){merge, at});
}

static void merge_at(kelp_part *parts, const candidate *c) {
    kelp_part *left = &parts[c->at], *right = &parts[left->next];
    left->id = c->merge->id;
    left->end = right->end;
    left->next = right->next;
    right->id = KELP_MERGE_NONE; /* no longer a part: it has no neighbours */
    right->next = right->previous = KELP_MERGE_NONE;
    if (left->next != KELP_MERGE_NONE)
        parts[left->next].previous = c->at;
}

static bool is_valid(const kelp_part *parts, const candidate *c) {
    const kelp_part *left = &parts[c->at];
    return left->next != KELP_MERGE_NONE && left->id == c->merge->left &&
           parts[left->next].id == c->merge->right;
}

kelp_status *kelp_merges_apply(const kelp_merges *merges, kelp_allocator allocator,
                               kelp_part *parts, size_t count) {
    size_t bytes;
    candidate *memory = NULL;
    /* each merge adds at most two candidates */
    if (count < 2 || merges->count == 0)
        return NULL;
    if (count >= UINT32_MAX / 8 || !kelp_size_mul(6 * count, sizeof *memory, &bytes))
        return kelp_status_oom();
    KELP_TRY(kelp_alloc(allocator, bytes, (void **)&memory));
    queue q = {memory, memory + 3 * count, 0, 0};
    for (uint32_t i = 0; i + 1 < count; i++)
        add(merges, &q, parts, i, 0);
    uint32_t rank = 0;
    while (q.heap_count > 0 || q.waiting_count > 0) {
        if (q.waiting_count > 0 && (q.heap_count == 0 || q.heap[0].merge->rank > rank)) {
            while (q.waiting_count > 0)
                heap_push(&q, q.waiting[--q.waiting_count]);
        }
        candidate c = heap_pop(&q);
        if (!is_valid(parts, &c))
            continue;
        rank = c.merge->rank;
        merge_at(parts, &c);
        add(merges, &q, parts, parts[c.at].previous, rank);
        add(merges, &q, parts, c.at, rank);
    }
    kelp_free(allocator, memory, bytes);
    return NULL;
}
