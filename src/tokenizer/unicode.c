/* SPDX-License-Identifier: Apache-2.0 */
#include "tokenizer/unicode.h"

#include "base/alloc.h"
#include "base/assert.h"
#include "base/checked.h"

enum { L = KELP_CHAR_LETTER, N = KELP_CHAR_NUMBER, Z = KELP_CHAR_SPACE };
enum { U = KELP_CHAR_PART_UPPER, S = KELP_CHAR_PART_LOWER, M = KELP_CHAR_PART_MARK };

typedef struct class_range {
    uint32_t first, last;
    uint8_t class;
} class_range;

/* Upper-case characters first … last, `step` apart; the lower case of c is c + delta. */
typedef struct case_range {
    uint32_t first, last;
    uint8_t step;
    int32_t delta;
} case_range;

#include "tokenizer/unicode_tables.inc"

/* Returns the class of a character in a table, or 0. */
static uint8_t find(const class_range *ranges, size_t count, uint32_t c) {
    size_t low = 0, high = count;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (c > ranges[middle].last)
            low = middle + 1;
        else
            high = middle;
    }
    return low < count && c >= ranges[low].first ? ranges[low].class : 0;
}

kelp_char_class kelp_char_class_of(uint32_t c) {
    if (c >= '\t' && c <= '\r')
        return KELP_CHAR_SPACE;
    /* characters from U+110000 on, which only invalid UTF-8 contains, are in no range */
    return (kelp_char_class)find(class_ranges, KELP_COUNT(class_ranges), c);
}

kelp_char_part kelp_char_part_of(uint32_t c) {
    return (kelp_char_part)find(part_ranges, KELP_COUNT(part_ranges), c);
}

uint32_t kelp_char_lower(uint32_t c) {
    size_t low = 0, high = KELP_COUNT(case_ranges);
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (c > case_ranges[middle].last)
            low = middle + 1;
        else
            high = middle;
    }
    if (low == KELP_COUNT(case_ranges) || c < case_ranges[low].first ||
        (c - case_ranges[low].first) % case_ranges[low].step != 0)
        return c;
    return (uint32_t)((int32_t)c + case_ranges[low].delta);
}

uint32_t kelp_char_upper(uint32_t c) {
    /* small letters that are not the lower case of their capital, or whose capital is another */
    static const uint32_t others[][2] = {
        {0xB5, 0x39C},    {0xDF, 0xDF},     {0x131, 'I'},    {0x17F, 'S'},    {0x1C5, 0x1C4},
        {0x1C8, 0x1C7},   {0x1CB, 0x1CA},   {0x1F2, 0x1F1},  {0x345, 0x399},  {0x3C2, 0x3A3},
        {0x3D0, 0x392},   {0x3D1, 0x398},   {0x3D5, 0x3A6},  {0x3D6, 0x3A0},  {0x3F0, 0x39A},
        {0x3F1, 0x3A1},   {0x3F5, 0x395},   {0x1C80, 0x412}, {0x1C81, 0x414}, {0x1C82, 0x41E},
        {0x1C83, 0x421},  {0x1C84, 0x422},  {0x1C85, 0x422}, {0x1C86, 0x42A}, {0x1C87, 0x462},
        {0x1C88, 0xA64A}, {0x1E9B, 0x1E60}, {0x1FBE, 0x399}};
    for (size_t i = 0; i < KELP_COUNT(others); i++)
        if (others[i][0] == c)
            return others[i][1];
    for (size_t i = 0; i < KELP_COUNT(case_ranges); i++) {
        uint32_t upper = (uint32_t)((int32_t)c - case_ranges[i].delta);
        if (upper >= case_ranges[i].first && upper <= case_ranges[i].last &&
            (upper - case_ranges[i].first) % case_ranges[i].step == 0)
            return upper;
    }
    return c;
}

kelp_char kelp_char_at(kelp_str text, size_t at) {
    const uint8_t *from = (const uint8_t *)text.data + at;
    KELP_ASSERT(at < text.length);
    size_t rest = text.length - at;
    uint8_t lead = *from;
    size_t size = lead < 0x80 ? 1 : (lead & 0xE0) == 0xC0 ? 2 : (lead & 0xF0) == 0xE0 ? 3 : 4;
    uint32_t c = size == 1 ? lead : lead & (0x7Fu >> size);
    for (size_t i = 1; i < size; i++)
        c = c << 6 | (i < rest ? from[i] & 0x3Fu : 0);
    return (kelp_char){c, at, at + KELP_MIN(size, rest)};
}

kelp_status *kelp_chars_decode(kelp_allocator allocator, kelp_str text, kelp_char **out,
                               size_t *out_count) {
    size_t bytes, count = 0;
    *out = NULL;
    *out_count = 0;
    if (!kelp_size_mul(text.length, sizeof **out, &bytes))
        return kelp_status_oom();
    KELP_TRY(kelp_alloc(allocator, bytes, (void **)out));
    for (size_t at = 0; at < text.length; count++) {
        (*out)[count] = kelp_char_at(text, at);
        at = (*out)[count].end;
    }
    *out_count = count;
    return NULL;
}
