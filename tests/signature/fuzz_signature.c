/* SPDX-License-Identifier: Apache-2.0 */
/* Parses arbitrary text as a signature: succeeds or returns an error. */
#include "signature/signature.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    char *text = malloc(size + 1);
    kelp_arena arena;
    kelp_signature signature;
    if (text == NULL)
        return 0;
    memcpy(text, data, size);
    text[size] = '\0';
    kelp_arena_init(&arena, kelp_allocator_system(), 0);
    kelp_status_free(kelp_signature_parse(&arena, text, &signature));
    kelp_arena_deinit(&arena);
    free(text);
    return 0;
}
