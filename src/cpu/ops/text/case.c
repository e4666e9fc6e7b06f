/* SPDX-License-Identifier: Apache-2.0 */
/* Upper and lower case by ranges of Unicode. */
#include "base/assert.h"
#include "base/text/utf8.h"
#include "cpu/ops/text/text.h"

/* Upper-case letters first … last, `step` apart. The lower-case letter is upper + delta. */
static const struct {
    uint32_t first, last;
    int32_t delta;
    uint32_t step;
} ranges[] = {
    {0x41, 0x5A, 32, 1},     {0xC0, 0xD6, 32, 1},     {0xD8, 0xDE, 32, 1},
    {0x100, 0x12E, 1, 2},    {0x132, 0x136, 1, 2},    {0x139, 0x147, 1, 2},
    {0x14A, 0x176, 1, 2},    {0x178, 0x178, -121, 1}, {0x179, 0x17D, 1, 2},
    {0x1CD, 0x1DB, 1, 2},    {0x1DE, 0x1EE, 1, 2},    {0x1F8, 0x21E, 1, 2},
    {0x222, 0x232, 1, 2},    {0x370, 0x372, 1, 2},    {0x386, 0x386, 38, 1},
    {0x388, 0x38A, 37, 1},   {0x38C, 0x38C, 64, 1},   {0x38E, 0x38F, 63, 1},
    {0x391, 0x3A1, 32, 1},   {0x3A3, 0x3AB, 32, 1},   {0x3D8, 0x3EE, 1, 2},
    {0x400, 0x40F, 80, 1},   {0x410, 0x42F, 32, 1},   {0x460, 0x480, 1, 2},
    {0x48A, 0x4BE, 1, 2},    {0x4C0, 0x4C0, 15, 1},   {0x4C1, 0x4CD, 1, 2},
    {0x4D0, 0x52E, 1, 2},    {0x531, 0x556, 48, 1},   {0x1E00, 0x1E94, 1, 2},
    {0x1EA0, 0x1EFE, 1, 2},  {0x1F08, 0x1F0F, -8, 1}, {0x2160, 0x216F, 16, 1},
    {0x24B6, 0x24CF, 26, 1}, {0xFF21, 0xFF3A, 32, 1},
};

static uint32_t lower(uint32_t c) {
    if (c == 0x130)
        return 'i';
    for (size_t i = 0; i < KELP_COUNT(ranges); i++)
        if (c >= ranges[i].first && c <= ranges[i].last &&
            (c - ranges[i].first) % ranges[i].step == 0)
            return (uint32_t)((int32_t)c + ranges[i].delta);
    return c;
}

static uint32_t upper(uint32_t c) {
    if (c == 0x131 || c == 0x17F || c == 0x3C2)
        return c == 0x131 ? 'I' : c == 0x17F ? 'S' : 0x3A3;
    for (size_t i = 0; i < KELP_COUNT(ranges); i++) {
        uint32_t letter = (uint32_t)((int32_t)c - ranges[i].delta);
        if (letter >= ranges[i].first && letter <= ranges[i].last &&
            (letter - ranges[i].first) % ranges[i].step == 0)
            return letter;
    }
    return c == 0xB5 ? 0x39C : c;
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
    return change(from, length, to, upper);
}

bool kelp_text_same(const kelp_string *a, const kelp_string *b) {
    return a->length == b->length && (a->length == 0 || memcmp(a->data, b->data, a->length) == 0);
}
