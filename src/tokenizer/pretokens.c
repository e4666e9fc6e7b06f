/* SPDX-License-Identifier: Apache-2.0 */
#include "tokenizer/pretokens.h"

#include "base/assert.h"
#include "base/checked.h"

/* Returns the length of an English contraction, or 0. */
static size_t contraction(const kelp_char *chars, size_t count) {
    static const char *const endings[] = {"s", "t", "re", "ve", "m", "ll", "d"};
    if (chars[0].c != '\'')
        return 0;
    for (size_t i = 0; i < KELP_COUNT(endings); i++) {
        size_t length = strlen(endings[i]), same = 0;
        while (same < length && same + 1 < count && chars[same + 1].c == (uint8_t)endings[i][same])
            same++;
        if (same == length)
            return length + 1;
    }
    return 0;
}

static size_t run(const kelp_char *chars, size_t count, size_t begin, kelp_char_class class) {
    size_t end = begin;
    while (end < count && kelp_char_class_of(chars[end].c) == class)
        end++;
    return end;
}

size_t kelp_pretoken_gpt2(const kelp_char *chars, size_t count) {
    KELP_ASSERT(count > 0);
    size_t length = contraction(chars, count);
    if (length > 0)
        return length;
    size_t space = chars[0].c == ' ' && count > 1 ? 1 : 0;
    kelp_char_class class = kelp_char_class_of(chars[space].c);
    if (class != KELP_CHAR_SPACE)
        return run(chars, count, space, class);
    length = run(chars, count, 0, KELP_CHAR_SPACE);
    /* the last space belongs to the next word */
    return length > 1 && length < count ? length - 1 : length;
}
