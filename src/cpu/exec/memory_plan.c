/* SPDX-License-Identifier: Apache-2.0 */
/* The memory plan: offsets of activations and scratch memory in the workspace. */
#include "base/assert.h"
#include "base/checked.h"
#include "cpu/exec/schedule.h"

#include <stdlib.h>
#include <string.h>

/* The search for a better placement ends within 1/64 of the lower bound. */
#define NEAR_ENOUGH 64
#define ROUNDS_MAX 64
#define PLACEMENT_STEPS ((size_t)2 << 20)

static size_t round_up(size_t bytes) {
    return (bytes + 63) & ~(size_t)63;
}

static int compare_size(const void *a, const void *b, void *userp) {
    const kelp_cpu_interval *intervals = userp;
    const kelp_cpu_interval *x = &intervals[*(const uint32_t *)a],
                            *y = &intervals[*(const uint32_t *)b];
    if (x->bytes != y->bytes)
        return x->bytes < y->bytes ? 1 : -1;
    if (x->first != y->first)
        return x->first < y->first ? -1 : 1;
    return *(const uint32_t *)a < *(const uint32_t *)b ? -1 : 1;
}

static int compare_first(const void *a, const void *b, void *userp) {
    const kelp_cpu_interval *intervals = userp;
    const kelp_cpu_interval *x = &intervals[*(const uint32_t *)a],
                            *y = &intervals[*(const uint32_t *)b];
    return x->first < y->first ? -1 : x->first > y->first;
}

/* Returns the maximum number of live bytes at one step, a lower bound of any placement. */
static size_t lower_bound(const kelp_cpu_interval *intervals, size_t count, uint32_t *order) {
    qsort_r(order, count, sizeof *order, compare_first, (void *)intervals);
    size_t max = 0;
    for (size_t i = 0; i < count; i++) {
        /* a maximum begins where an interval begins */
        uint32_t step = intervals[order[i]].first;
        if (i + 1 < count && intervals[order[i + 1]].first == step)
            continue;
        size_t live = 0;
        for (size_t k = 0; k <= i; k++)
            if (intervals[order[k]].last >= step)
                live += round_up(intervals[order[k]].bytes);
        max = KELP_MAX(max, live);
    }
    return max;
}

/* Returns the lowest offset of `item` that does not overlap those of `placed` (sorted by offset)
 * with an overlapping lifetime. */
static size_t find_gap(const kelp_cpu_interval *intervals, const uint32_t *placed,
                       size_t placed_count, const kelp_cpu_interval *item) {
    size_t need = round_up(item->bytes), end = 0;
    for (size_t i = 0; i < placed_count; i++) {
        const kelp_cpu_interval *other = &intervals[placed[i]];
        if (other->last < item->first || other->first > item->last)
            continue;
        if (other->offset >= end && other->offset - end >= need)
            return end;
        end = KELP_MAX(end, other->offset + round_up(other->bytes));
    }
    return end;
}

/* Places the intervals in the order `order`, each at the lowest offset; returns the total size. */
static size_t place(kelp_cpu_interval *intervals, size_t count, const uint32_t *order,
                    uint32_t *placed) {
    size_t total = 0;
    for (size_t i = 0; i < count; i++) {
        kelp_cpu_interval *item = &intervals[order[i]];
        item->offset = find_gap(intervals, placed, i, item);
        KELP_ASSERT(item->first <= item->last && item->offset % 64 == 0);
        total = KELP_MAX(total, item->offset + round_up(item->bytes));
        size_t at = i;
        for (; at > 0 && intervals[placed[at - 1]].offset > item->offset; at--)
            placed[at] = placed[at - 1];
        placed[at] = order[i];
    }
    return total;
}

/* Moves the interval that reaches the top to the front of the order, so that it is placed first.
 * Returns false if there is no other order. */
static bool move_top_first(const kelp_cpu_interval *intervals, size_t count, size_t total,
                           uint32_t *order) {
    size_t at = 0;
    while (at < count &&
           intervals[order[at]].offset + round_up(intervals[order[at]].bytes) != total)
        at++;
    if (at == count || at == 0)
        return false;
    uint32_t top = order[at];
    memmove(order + 1, order, at * sizeof *order);
    order[0] = top;
    return true;
}

/* Repeats the placement a limited number of times, and keeps the best. */
static size_t improve(kelp_cpu_interval *intervals, size_t count, uint32_t *order, uint32_t *placed,
                      size_t total, size_t bound) {
    size_t best = total;
    size_t rounds = KELP_MIN(PLACEMENT_STEPS / (count * count), (size_t)ROUNDS_MAX);
    for (size_t i = 0; i < count; i++)
        intervals[i].best = intervals[i].offset;
    for (size_t round = 0; round < rounds && best > bound + bound / NEAR_ENOUGH; round++) {
        if (!move_top_first(intervals, count, total, order))
            break;
        total = place(intervals, count, order, placed);
        for (size_t i = 0; total < best && i < count; i++)
            intervals[i].best = intervals[i].offset;
        best = KELP_MIN(best, total);
    }
    for (size_t i = 0; i < count; i++)
        intervals[i].offset = intervals[i].best;
    return best;
}

bool kelp_cpu_memory_plan(kelp_cpu_interval *intervals, size_t count, uint32_t *order,
                          uint32_t *placed, size_t *out_total_bytes,
                          size_t *out_lower_bound_bytes) {
    size_t sum = 0;
    for (size_t i = 0; i < count; i++) {
        order[i] = (uint32_t)i;
        if (!kelp_size_add(sum, round_up(intervals[i].bytes), &sum) ||
            intervals[i].bytes > SIZE_MAX / 4)
            return false;
    }
    size_t bound = lower_bound(intervals, count, order);
    qsort_r(order, count, sizeof *order, compare_size, intervals);
    size_t total = place(intervals, count, order, placed);
    if (total > bound + bound / NEAR_ENOUGH)
        total = improve(intervals, count, order, placed, total, bound);
    KELP_ASSERT(total >= bound && total <= sum);
    *out_total_bytes = total;
    *out_lower_bound_bytes = bound;
    return true;
}
