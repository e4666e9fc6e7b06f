/* SPDX-License-Identifier: Apache-2.0 */
/* The alphabet of byte-level BPE: each byte is a printable character. Source: GPT-2. */
#ifndef KELP_TOKENIZER_BYTES_H_
#define KELP_TOKENIZER_BYTES_H_

#include "tokenizer/unicode.h"

/* Returns the character of a byte: below 0x144. */
uint32_t kelp_byte_char(uint8_t byte);
/* Returns the byte of a character, or -1. */
int kelp_byte_of_char(uint32_t c);

#endif
