/* SPDX-License-Identifier: Apache-2.0 */
/* See mutate_plan.h. */
#include "mutate_plan.h"

#include "cpu/image/image.h"

#include <string.h>

static const uint64_t strange[] = {0,         1,          7,          255,       65536,
                                   INT32_MAX, 1ull << 31, UINT32_MAX, INT64_MAX, 1ull << 63,
                                   64,        UINT64_MAX, 1ull << 40, 4096};

/* xorshift64* */
static uint64_t next(uint64_t *state) {
    *state ^= *state >> 12;
    *state ^= *state << 25;
    *state ^= *state >> 27;
    return *state * 0x2545F4914F6CDD1Dull;
}

static size_t below(uint64_t *state, size_t bound) {
    return bound > 0 ? (size_t)(next(state) % bound) : 0;
}

/* Selects the position of the next change; small sections, on which the others depend, are
 * preferred. */
static void choose(uint64_t *state, const char *plan, size_t size, size_t *out_begin,
                   size_t *out_length) {
    kelp_cpu_image_section entry;
    size_t at = below(state, KELP_SECTION_COUNT + 2);
    *out_begin = 0;
    *out_length = sizeof(kelp_cpu_image_head) + KELP_SECTION_COUNT * sizeof entry;
    if (at >= KELP_SECTION_COUNT)
        at = KELP_SECTION_GRAPH;
    if (below(state, 10) == 0 || size < *out_length) {
        *out_length = size < *out_length ? size : *out_length;
        return;
    }
    memcpy(&entry, plan + sizeof(kelp_cpu_image_head) + at * sizeof entry, sizeof entry);
    if (entry.length == 0 || entry.offset > size || entry.length > size - entry.offset)
        return;
    *out_begin = (size_t)entry.offset;
    *out_length = (size_t)entry.length;
}

static void change(uint64_t *state, char *at, size_t length) {
    uint64_t number = strange[below(state, sizeof strange / sizeof strange[0])];
    size_t way = below(state, 10), wide = way == 7 ? 8 : 4, some = 1 + below(state, 8);
    size_t place = below(state, length), other = below(state, length);
    if (length == 0)
        return;
    if (way < 4) {
        at[place] = (char)(at[place] ^ 1 << below(state, 8));
    } else if (way < 6) {
        at[place] = (char)next(state);
    } else if (way < 8) {
        if (place + wide <= length)
            memcpy(at + place / wide * wide, &number, wide);
    } else if (place + some <= length && other + some <= length) {
        memmove(at + place, at + other, some); /* a field replaced by another one */
    }
}

size_t mutate_plan(uint64_t seed, char *plan, size_t size_bytes) {
    uint64_t state = seed * 0x9E3779B97F4A7C15ull + 1;
    size_t changes = 1 + below(&state, 4);
    for (size_t i = 0; i < changes; i++) {
        size_t begin, length;
        choose(&state, plan, size_bytes, &begin, &length);
        change(&state, plan + begin, length);
    }
    if (below(&state, 20) == 0)
        size_bytes = below(&state, size_bytes);
    if (below(&state, 8) != 0)
        kelp_cpu_image_seal(plan, size_bytes);
    return size_bytes;
}
