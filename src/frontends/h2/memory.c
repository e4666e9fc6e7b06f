/* SPDX-License-Identifier: Apache-2.0 */
#include "frontends/h2/memory.h"

#include "base/alloc.h"
#include "base/assert.h"
#include "base/checked.h"

#include <string.h>

#define KEPT_MAX_BYTES ((size_t)1024 * 1024)
#define SMALLEST_BYTES ((size_t)32)

/* The header of a block; the memory that nghttp2 uses follows. */
struct kelp_http2_block {
    size_t size_bytes; /* with the header */
    kelp_http2_block *next;
};

/* Returns the size class for blocks of at least `size_bytes`, and their size in *out_bytes: powers
 * of two from SMALLEST_BYTES, and the means of two of them. KELP_HTTP2_SIZE_CLASSES: none. */
static size_t class_of(size_t size_bytes, size_t *out_bytes) {
    size_t power = SMALLEST_BYTES;
    for (size_t i = 0; i < KELP_HTTP2_SIZE_CLASSES; i += 2, power *= 2) {
        *out_bytes = power;
        if (size_bytes <= power)
            return i;
        *out_bytes = power + power / 2;
        if (size_bytes <= power + power / 2)
            return i + 1;
    }
    *out_bytes = size_bytes;
    return KELP_HTTP2_SIZE_CLASSES;
}

static void *allocate(size_t size_bytes, void *userp) {
    kelp_http2_memory *memory = userp;
    size_t needed;
    if (!kelp_size_add(size_bytes, sizeof(kelp_http2_block), &needed))
        return NULL;
    size_t index = class_of(needed, &needed);
    kelp_http2_block *block = index < KELP_HTTP2_SIZE_CLASSES ? memory->free[index] : NULL;
    if (block != NULL) {
        memory->free[index] = block->next;
        memory->kept_bytes -= block->size_bytes;
        return block + 1;
    }
    kelp_status *status = kelp_alloc(memory->allocator, needed, (void **)&block);
    if (status != NULL) {
        kelp_status_free(status);
        return NULL;
    }
    block->size_bytes = needed;
    return block + 1;
}

static void release(void *pointer, void *userp) {
    kelp_http2_memory *memory = userp;
    if (pointer == NULL)
        return;
    kelp_http2_block *block = (kelp_http2_block *)pointer - 1;
    size_t size_bytes;
    size_t index = class_of(block->size_bytes, &size_bytes);
    if (index == KELP_HTTP2_SIZE_CLASSES ||
        memory->kept_bytes + block->size_bytes > KEPT_MAX_BYTES) {
        kelp_free(memory->allocator, block, block->size_bytes);
        return;
    }
    KELP_ASSERT(size_bytes == block->size_bytes);
    block->next = memory->free[index];
    memory->free[index] = block;
    memory->kept_bytes += block->size_bytes;
}

static void *allocate_zero(size_t count, size_t size_bytes, void *userp) {
    size_t total;
    if (!kelp_size_mul(count, size_bytes, &total))
        return NULL;
    void *pointer = allocate(total, userp);
    if (pointer != NULL)
        memset(pointer, 0, total);
    return pointer;
}

static void *reallocate(void *pointer, size_t size_bytes, void *userp) {
    if (pointer == NULL)
        return allocate(size_bytes, userp);
    size_t old_bytes = ((kelp_http2_block *)pointer - 1)->size_bytes - sizeof(kelp_http2_block);
    if (size_bytes <= old_bytes)
        return pointer;
    void *grown = allocate(size_bytes, userp);
    if (grown != NULL) {
        memcpy(grown, pointer, old_bytes);
        release(pointer, userp);
    }
    return grown;
}

void kelp_http2_memory_init(kelp_http2_memory *memory, kelp_allocator allocator) {
    *memory = (kelp_http2_memory){.allocator = allocator};
    memory->functions = (nghttp2_mem){.mem_user_data = memory,
                                      .malloc = allocate,
                                      .free = release,
                                      .calloc = allocate_zero,
                                      .realloc = reallocate};
}

void kelp_http2_memory_deinit(kelp_http2_memory *memory) {
    for (size_t i = 0; i < KELP_HTTP2_SIZE_CLASSES; i++) {
        kelp_http2_block *block = memory->free[i];
        while (block != NULL) {
            kelp_http2_block *next = block->next;
            kelp_free(memory->allocator, block, block->size_bytes);
            block = next;
        }
    }
}
