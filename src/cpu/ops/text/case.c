/* SPDX-License-Identifier: Apache-2.0 */
/* Upper and lower case of UTF-8 text. */
#include "base/assert.h"
#include "base/text/utf8.h"
#include "cpu/ops/text/text.h"
#include "tokenizer/unicode.h"

static uint32_t lower(uint32_t c) {
    return c == 0x130 ? 'i' : kelp_char_lower(c);
}

static size_t change(const char *from, size_t length, char *to, uint32_t (*fn)(uint32_t)) {
    size_t at = 0, out = 0;
    while (at < length) {
        uint32_t c;
        size_t count = kelp_utf8_decode((kelp_str){from + at, length - at}, &c);
        if (count == 0) {
            to[out++] = from[at++];
            continue;
        }
        out += kelp_utf8_encode(fn(c), to + out);
        at += count;
    }
    KELP_ASSERT(out <= 2 * length);
    return out;
}

size_t kelp_text_lower(const char *from, size_t length, char *to) {
    return change(from, length, to, lower);
}

size_t kelp_text_upper(const char *from, size_t length, char *to) {
    return change(from, length, to, kelp_char_upper);
}

bool kelp_text_same(const kelp_string *a, const kelp_string *b) {
    return a->length == b->length && (a->length == 0 || memcmp(a->data, b->data, a->length) == 0);
}
