/* SPDX-License-Identifier: Apache-2.0 */
#include "tokenizer/bytes.h"

/* Other bytes have the characters from 0x100 on, in order. */
static bool is_printable(uint32_t byte) {
    return (byte > 0x20 && byte < 0x7F) || (byte > 0xA0 && byte != 0xAD);
}

uint32_t kelp_byte_char(uint8_t byte) {
    uint32_t index = 0;
    if (is_printable(byte))
        return byte;
    for (uint32_t b = 0; b < byte; b++)
        index += !is_printable(b);
    return 0x100 + index;
}

int kelp_byte_of_char(uint32_t c) {
    if (c < 0x100)
        return is_printable(c) ? (int)c : -1;
    for (int b = 0; b < 0x100; b++)
        if (kelp_byte_char((uint8_t)b) == c)
            return b;
    return -1;
}
