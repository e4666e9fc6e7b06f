/* SPDX-License-Identifier: Apache-2.0 */
#include "remote/token.h"

#include "base/fs.h"

#include <string.h>

kelp_status *kelp_token_read(const char *path, kelp_token *out) {
    kelp_buf text;
    *out = (kelp_token){0};
    if (path == NULL)
        return NULL;
    kelp_buf_init(&text, kelp_allocator_system());
    kelp_status *status = kelp_fs_read(path, 2 * (size_t)KELP_TOKEN_BYTES, &text);
    size_t length = status == NULL ? text.length : 0;
    while (length > 0 && strchr(" \t\r\n", text.data[length - 1]) != NULL)
        length--;
    if (status == NULL && (length == 0 || length > KELP_TOKEN_BYTES))
        status = KELP_ERROR(KELP_INVALID_ARGUMENT,
                            "token file '%s' is invalid: expected 1 to %u bytes, found %zu", path,
                            KELP_TOKEN_BYTES, length);
    if (status == NULL) {
        memcpy(out->bytes, text.data, length);
        out->length = length;
    }
    kelp_buf_deinit(&text);
    return status;
}

bool kelp_token_equals(const kelp_token *a, const kelp_token *b) {
    volatile unsigned char difference = a->length != b->length;
    for (size_t i = 0; i < KELP_TOKEN_BYTES; i++)
        difference = (unsigned char)(difference | (a->bytes[i] ^ b->bytes[i]));
    return difference == 0;
}
