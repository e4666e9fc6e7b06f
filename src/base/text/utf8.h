/* SPDX-License-Identifier: Apache-2.0 */
/* UTF-8 as in RFC 3629: no overlong forms, no surrogates, at most U+10FFFF. */
#ifndef KELP_BASE_TEXT_UTF8_H_
#define KELP_BASE_TEXT_UTF8_H_

#include "base/str.h"

/* Decodes the character at the start of `text`, whose length is not 0. Returns its size in bytes; 0
 * if it is invalid. */
size_t kelp_utf8_decode(kelp_str text, uint32_t *out);
/* Encodes a value below 0x200000, with up to 4 bytes. Returns the number of bytes. */
size_t kelp_utf8_encode(uint32_t code_point, char *out);
/* Counts the characters. Returns false if the text is invalid. `out_count` may be NULL. */
bool kelp_utf8_count(kelp_str text, size_t *out_count);

#endif
