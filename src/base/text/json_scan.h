/* SPDX-License-Identifier: Apache-2.0 */
/* Scans the text of strings, eight bytes at a time. */
#ifndef KELP_BASE_TEXT_JSON_SCAN_H_
#define KELP_BASE_TEXT_JSON_SCAN_H_

#include "base/str.h"

#include <stdbool.h>
#include <stdint.h>

#define KELP_JSON_ONES UINT64_C(0x0101010101010101)
#define KELP_JSON_HIGH_BITS (KELP_JSON_ONES * 0x80)

/* Loads 8 bytes, the first one in the lowest byte. */
static inline uint64_t kelp_json_load(const char *at) {
    uint64_t bytes;
    memcpy(&bytes, at, sizeof bytes);
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    bytes = __builtin_bswap64(bytes);
#endif
    return bytes;
}

/* Sets the high bit of the bytes that end a run of plain characters. Bytes after the first one may
 * be wrong. */
static inline uint64_t kelp_json_find_special(uint64_t bytes, bool ascii) {
    uint64_t quote = bytes ^ KELP_JSON_ONES * '"', backslash = bytes ^ KELP_JSON_ONES * '\\';
    uint64_t found = ((bytes - KELP_JSON_ONES * 0x20) & ~bytes) |
                     ((quote - KELP_JSON_ONES) & ~quote) |
                     ((backslash - KELP_JSON_ONES) & ~backslash);
    return (ascii ? found | bytes : found) & KELP_JSON_HIGH_BITS;
}

/* Returns the number of bytes before the first control character, quote or backslash; if `ascii`,
 * or byte above 0x7f. */
static inline size_t kelp_json_plain_length(kelp_str text, bool ascii) {
    size_t at = 0;
    for (; text.length - at >= 8; at += 8) {
        uint64_t found = kelp_json_find_special(kelp_json_load(text.data + at), ascii);
        if (found != 0)
            return at + (size_t)__builtin_ctzll(found) / 8;
    }
    for (; at < text.length; at++) {
        unsigned char c = (unsigned char)text.data[at];
        if (c < 0x20 || c == '"' || c == '\\' || (ascii && c >= 0x80))
            break;
    }
    return at;
}

#endif
