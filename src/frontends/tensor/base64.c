/* SPDX-License-Identifier: Apache-2.0 */
#include "frontends/tensor/base64.h"

#include "base/assert.h"

/* Values of characters in the alphabet. */
enum { FIRST_LOWER = 26, FIRST_DIGIT = 52, PLUS = 62, SLASH = 63 };

#define BITS_PER_CHARACTER 6u
#define BITS_PER_BYTE 8u

static int base64_value(char c) {
    if (c >= 'A' && c <= 'Z')
        return c - 'A';
    if (c >= 'a' && c <= 'z')
        return c - 'a' + FIRST_LOWER;
    if (c >= '0' && c <= '9')
        return c - '0' + FIRST_DIGIT;
    return c == '+' ? PLUS : c == '/' ? SLASH : -1;
}

static bool ends_line(char c) {
    return c == '\n' || c == '\r';
}

bool kelp_v2_base64_decode(kelp_str in, char *out, size_t *out_length) {
    while (in.length && (in.data[in.length - 1] == '=' || ends_line(in.data[in.length - 1])))
        in.length--;
    uint32_t bits = 0;
    unsigned have = 0;
    size_t n = 0;
    for (size_t i = 0; i < in.length; i++) {
        int value = base64_value(in.data[i]);
        if (value < 0) {
            if (!ends_line(in.data[i]))
                return false;
            continue;
        }
        bits = bits << BITS_PER_CHARACTER | (uint32_t)value;
        have += BITS_PER_CHARACTER;
        if (have >= BITS_PER_BYTE) {
            have -= BITS_PER_BYTE;
            out[n++] = (char)(unsigned char)(bits >> have);
            bits &= (1u << have) - 1u;
        }
    }
    KELP_ASSERT(n <= in.length);
    *out_length = n;
    return have < BITS_PER_CHARACTER && bits == 0;
}
