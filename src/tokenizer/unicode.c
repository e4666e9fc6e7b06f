/* SPDX-License-Identifier: Apache-2.0 */
#include "tokenizer/unicode.h"

#include "base/alloc.h"
#include "base/assert.h"
#include "base/checked.h"

#define CODE_POINTS 0x110000u

enum { L = KELP_CHAR_LETTER, N = KELP_CHAR_NUMBER, Z = KELP_CHAR_SPACE };

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

kelp_char_class kelp_char_class_of(uint32_t c) {
    size_t low = 0, high = KELP_COUNT(class_ranges);
    if (c >= '\t' && c <= '\r')
        return KELP_CHAR_SPACE;
    if (c >= CODE_POINTS) /* only invalid UTF-8 contains them; as in onnxruntime-extensions */
        return KELP_CHAR_LETTER;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (c > class_ranges[middle].last)
            low = middle + 1;
        else
            high = middle;
    }
    if (low < KELP_COUNT(class_ranges) && c >= class_ranges[low].first)
        return (kelp_char_class)class_ranges[low].class;
    return KELP_CHAR_OTHER;
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
