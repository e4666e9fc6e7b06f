/* SPDX-License-Identifier: Apache-2.0 */
/* A string that keeps its memory when it changes, so that a pooled object can set it without an
 * allocation. The owner passes the same allocator to all functions. */
#ifndef KELP_SERVER_CORE_TEXT_H_
#define KELP_SERVER_CORE_TEXT_H_

#include "base/alloc.h"
#include "base/assert.h"

#include <string.h>

/* A string; zero-initialized it is empty. */
typedef struct kelp_text {
    char *data; /* NULL until it is set the first time */
    size_t capacity;
} kelp_text;

static inline const char *kelp_text_get(const kelp_text *text) {
    return text->data != NULL ? text->data : "";
}

static inline void kelp_text_clear(kelp_text *text) {
    if (text->data != NULL)
        text->data[0] = '\0';
}

KELP_MUST_USE static inline kelp_status *kelp_text_set(kelp_allocator allocator, kelp_text *text,
                                                       const char *value) {
    size_t size_bytes = strlen(value) + 1;
    if (size_bytes == 1) {
        kelp_text_clear(text);
        return NULL;
    }
    if (size_bytes > text->capacity)
        KELP_TRY(kelp_grow(allocator, (void **)&text->data, &text->capacity, size_bytes, 1));
    KELP_ASSERT(text->capacity >= size_bytes);
    memcpy(text->data, value, size_bytes);
    return NULL;
}

static inline void kelp_text_deinit(kelp_allocator allocator, kelp_text *text) {
    kelp_free(allocator, text->data, text->capacity);
    *text = (kelp_text){0};
}

#endif
