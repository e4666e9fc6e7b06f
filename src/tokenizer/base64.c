/* SPDX-License-Identifier: Apache-2.0 */
#include "tokenizer/base64.h"

static int base64_value(char c) {
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    const char *found = c != '\0' ? strchr(digits, c) : NULL;
    return found != NULL ? (int)(found - digits) : -1;
}

bool kelp_base64_read(kelp_str text, char *out, size_t *out_length) {
    size_t padding = 0;
    uint32_t bits = 0;
    while (padding < 2 && padding < text.length && text.data[text.length - 1 - padding] == '=')
        padding++;
    *out_length = 0;
    if (text.length % 4 != 0)
        return false;
    for (size_t i = 0; i < text.length; i++) {
        int value = i < text.length - padding ? base64_value(text.data[i]) : 0;
        if (value < 0)
            return false;
        bits = bits << 6 | (uint32_t)value;
        for (int k = 0; i % 4 == 3 && k < 3; k++)
            out[(*out_length)++] = (char)(bits >> (16 - 8 * k));
    }
    *out_length -= padding;
    return true;
}
