/* SPDX-License-Identifier: Apache-2.0 */
#include "frontends/h2/memory.h"

#include "base/alloc.h"
#include "base/assert.h"
#include "base/checked.h"

#include <string.h>

#define KEPT_MAX_BYTES ((size_t)1024 * 1024)
#define SMALLEST_BYTES ((size_t)64)
#define CLASS_STEPS 4
/* The sizes of frame buffers: the payload of a frame, its head, and padding. */
#define FRAME_MIN_BYTES ((size_t)16384)
#define FRAME_MAX_BYTES (FRAME_MIN_BYTES + 64)

/* The header of a block; the memory that nghttp2 uses follows. */
struct kelp_http2_block {
    size_t size_bytes; /* with the header */
    kelp_http2_block *next;
};

/* Returns the size class for blocks of at least `size_bytes`, and their size in *out_bytes: powers
 * of two from SMALLEST_BYTES, each with CLASS_STEPS - 1 sizes up to the next one.
 * KELP_HTTP2_SIZE_CLASSES: none. */
static size_t class_of(size_t size_bytes, size_t *out_bytes) {
    size_t power = SMALLEST_BYTES, index = 0;
    while (index < KELP_HTTP2_SIZE_CLASSES && size_bytes > 2 * power - power / CLASS_STEPS) {
        power *= 2;
        index += CLASS_STEPS;
    }
    if (index >= KELP_HTTP2_SIZE_CLASSES) {
        *out_bytes = size_bytes;
        return KELP_HTTP2_SIZE_CLASSES;
    }
    size_t step = power / CLASS_STEPS;
    size_t steps = size_bytes > power ? (size_bytes - power + step - 1) / step : 0;
    *out_bytes = power + steps * step;
    return index + steps;
}

/* Returns the frame buffer. */
static void *share_frame(kelp_http2_memory *memory) {
    if (memory->frame == NULL) {
        size_t size_bytes = FRAME_MAX_BYTES + sizeof(kelp_http2_block);
        kelp_status *status = kelp_alloc(memory->allocator, size_bytes, (void **)&memory->frame);
        if (status != NULL) {
            kelp_status_free(status);
            return NULL;
        }
        memory->frame->size_bytes = size_bytes;
    }
    return memory->frame + 1;
}

static void *allocate(size_t size_bytes, void *userp) {
    kelp_http2_memory *memory = userp;
    size_t needed;
    if (memory->creates_session && size_bytes >= FRAME_MIN_BYTES && size_bytes <= FRAME_MAX_BYTES)
        return share_frame(memory);
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
    if (block == memory->frame)
        return;
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

void kelp_http2_memory_create_session(kelp_http2_memory *memory, bool creates) {
    memory->creates_session = creates;
}

void kelp_http2_memory_begin_send(kelp_http2_memory *memory) {
    (void)memory;
#ifndef NDEBUG
    if (memory->frame != NULL)
        memset(memory->frame + 1, 0xa5, memory->frame->size_bytes - sizeof(kelp_http2_block));
#endif
}

void kelp_http2_memory_deinit(kelp_http2_memory *memory) {
    if (memory->frame != NULL)
        kelp_free(memory->allocator, memory->frame, memory->frame->size_bytes);
    for (size_t i = 0; i < KELP_HTTP2_SIZE_CLASSES; i++) {
        kelp_http2_block *block = memory->free[i];
        while (block != NULL) {
            kelp_http2_block *next = block->next;
            kelp_free(memory->allocator, block, block->size_bytes);
            block = next;
        }
    }
}
