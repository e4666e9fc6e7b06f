/* SPDX-License-Identifier: Apache-2.0 */
#include "base/text/utf8.h"

#include "base/assert.h"

size_t kelp_utf8_decode(kelp_str text, uint32_t *out) {
    static const uint32_t smallest[] = {0, 0, 0x80, 0x800, 0x10000};
    const uint8_t *from = (const uint8_t *)text.data;
    KELP_ASSERT(text.length > 0);
    uint8_t lead = from[0];
    size_t count = lead < 0x80 ? 1 : lead < 0xC2 ? 0 : lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4;
    if (count == 0 || count > text.length)
        return 0;
    uint32_t c = count == 1 ? lead : lead & (0x7Fu >> count);
    for (size_t i = 1; i < count; i++) {
        if ((from[i] & 0xC0) != 0x80)
            return 0;
        c = c << 6 | (from[i] & 0x3F);
    }
    if (c < smallest[count] || c > 0x10FFFF || (c >= 0xD800 && c <= 0xDFFF) || lead > 0xF4)
        return 0;
    *out = c;
    return count;
}

size_t kelp_utf8_encode(uint32_t code_point, char *out) {
    uint32_t c = code_point;
    KELP_ASSERT(c < 0x200000);
    if (c < 0x80) {
        out[0] = (char)c;
        return 1;
    }
    size_t count = c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
    for (size_t i = count; i-- > 1; c >>= 6)
        out[i] = (char)(0x80 | (c & 0x3F));
    out[0] = (char)((0xF00u >> count & 0xFF) | c);
    return count;
}

bool kelp_utf8_count(kelp_str text, size_t *out_count) {
    size_t count = 0;
    for (size_t at = 0; at < text.length; count++) {
        uint32_t c;
        if ((unsigned char)text.data[at] < 0x80) {
            at++;
            continue;
        }
        size_t size = kelp_utf8_decode((kelp_str){text.data + at, text.length - at}, &c);
        if (size == 0)
            return false;
        at += size;
    }
    if (out_count != NULL)
        *out_count = count;
    return true;
}
