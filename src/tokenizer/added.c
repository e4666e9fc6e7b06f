/* SPDX-License-Identifier: Apache-2.0 */
#include "tokenizer/added.h"

#include "base/alloc.h"
#include "base/assert.h"
#include "base/checked.h"

#include <stdlib.h>

void kelp_added_init(kelp_added *added, kelp_allocator allocator) {
    *added = (kelp_added){.allocator = allocator};
}

static void item_deinit(const kelp_added *a, kelp_added_item *item) {
    kelp_free(a->allocator, item->chars, item->count * sizeof *item->chars);
}

void kelp_added_deinit(kelp_added *added) {
    for (size_t i = 0; i < added->count; i++)
        item_deinit(added, &added->items[i]);
    if (added->items != NULL)
        kelp_free(added->allocator, added->items, added->capacity * sizeof *added->items);
    *added = (kelp_added){.allocator = added->allocator};
}

kelp_status *kelp_added_append(kelp_added *added, const kelp_added_token *token) {
    kelp_char *decoded = NULL;
    kelp_added_item item = {
        .id = token->id, .strips_after = token->strips_after, .order = added->count};
    KELP_ASSERT(token->text.length > 0);
    KELP_TRY(kelp_grow(added->allocator, (void **)&added->items, &added->capacity, added->count + 1,
                       sizeof *added->items));
    KELP_TRY(kelp_chars_decode(added->allocator, token->text, &decoded, &item.count));
    kelp_status *status =
        kelp_alloc(added->allocator, item.count * sizeof *item.chars, (void **)&item.chars);
    if (status == NULL) {
        memcpy(item.chars, decoded, item.count * sizeof *item.chars);
        added->items[added->count++] = item;
    }
    kelp_free(added->allocator, decoded, token->text.length * sizeof *decoded);
    return status;
}

static int compare(const kelp_added_item *a, const kelp_added_item *b) {
    for (size_t i = 0; i < a->count && i < b->count; i++)
        if (a->chars[i].c != b->chars[i].c)
            return a->chars[i].c < b->chars[i].c ? -1 : 1;
    return (a->count > b->count) - (a->count < b->count);
}

static int compare_for_sort(const void *left, const void *right) {
    const kelp_added_item *a = left, *b = right;
    int order = compare(a, b);
    return order != 0 ? order : (a->order > b->order) - (a->order < b->order);
}

void kelp_added_sort(kelp_added *added) {
    size_t kept = 0;
    if (added->count > 1)
        qsort(added->items, added->count, sizeof *added->items, compare_for_sort);
    for (size_t i = 0; i < added->count; i++) {
        if (i + 1 < added->count && compare(&added->items[i], &added->items[i + 1]) == 0)
            item_deinit(added, &added->items[i]);
        else
            added->items[kept++] = added->items[i];
    }
    added->count = kept;
}

/* Returns the first item in [low, high) whose character `depth` is at least `c`. These items are
 * longer than `depth` and agree before it. */
static size_t lower_bound(const kelp_added *a, size_t low, size_t high, size_t depth, uint64_t c) {
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (a->items[middle].chars[depth].c < c)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

bool kelp_added_at(const kelp_added *added, const kelp_char *chars, size_t count, size_t at,
                   kelp_added_span *out) {
    const kelp_added *a = added;
    size_t low = 0, high = a->count;
    bool found = false;
    for (size_t depth = 0; at + depth < count; depth++) {
        uint64_t c = chars[at + depth].c;
        if (low < high && a->items[low].count == depth)
            low++; /* the token that ends here */
        low = lower_bound(a, low, high, depth, c);
        high = lower_bound(a, low, high, depth, c + 1);
        if (low == high)
            break;
        if (a->items[low].count == depth + 1) {
            *out =
                (kelp_added_span){at, at + depth + 1, a->items[low].id, a->items[low].strips_after};
            found = true;
        }
    }
    return found;
}

bool kelp_added_next(const kelp_added *added, const kelp_char *chars, size_t count, size_t at,
                     kelp_added_span *out) {
    for (; added->count > 0 && at < count; at++)
        if (kelp_added_at(added, chars, count, at, out))
            return true;
    return false;
}

bool kelp_added_find(const kelp_added_item *item, const kelp_char *chars, size_t at, size_t end,
                     kelp_added_span *out) {
    for (; at + item->count <= end; at++) {
        size_t same = 0;
        while (same < item->count && chars[at + same].c == item->chars[same].c)
            same++;
        if (same == item->count) {
            *out = (kelp_added_span){at, at + same, item->id, false};
            return true;
        }
    }
    return false;
}
