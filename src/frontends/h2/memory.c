/* SPDX-License-Identifier: Apache-2.0 */
#include "frontends/h2/memory.h"

#include "base/alloc.h"
#include "base/assert.h"
#include "base/checked.h"

#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define KEPT_MAX_BYTES ((size_t)1024 * 1024)
#define SMALLEST_BYTES ((size_t)32)
#define CLASS_STEPS 4
/* The sizes of frame buffers: the payload of a frame, its head, and padding. */
#define FRAME_MIN_BYTES ((size_t)16384)
#define FRAME_MAX_BYTES (FRAME_MIN_BYTES + 64)
#define PAGE_BYTES ((size_t)4096)
#define PAGES_PER_BLOCK ((size_t)64)

/* The header of a block; the memory that nghttp2 uses follows. */
struct kelp_http2_block {
    size_t size_bytes; /* with the header */
    kelp_http2_block *next;
};

/* Pages for the tables of streams. */
struct kelp_http2_pages {
    kelp_http2_pages *next;
    char *base; /* PAGES_PER_BLOCK pages */
    size_t used_count;
    bool used[PAGES_PER_BLOCK];
};

/* Returns the size class for `size_bytes` without the header, and the bytes of its blocks in
 * *out_bytes: powers of two from SMALLEST_BYTES, each with CLASS_STEPS - 1 sizes up to the next
 * one. KELP_HTTP2_SIZE_CLASSES: none. */
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

/* ---- pages ---- */

static bool is_zero(const void *page) {
    const char *bytes = page;
    return bytes[0] == 0 && memcmp(bytes, bytes + 1, PAGE_BYTES - 1) == 0;
}

static kelp_http2_pages *add_pages(kelp_http2_memory *memory) {
    kelp_http2_pages *pages;
    kelp_status *status = KELP_NEW(memory->allocator, kelp_http2_pages, &pages);
    if (status != NULL) {
        kelp_status_free(status);
        return NULL;
    }
    status = kelp_alloc_aligned(memory->allocator, PAGES_PER_BLOCK * PAGE_BYTES, PAGE_BYTES,
                                (void **)&pages->base);
    if (status != NULL) {
        kelp_status_free(status);
        kelp_free(memory->allocator, pages, sizeof *pages);
        return NULL;
    }
    memset(pages->base, 0, PAGES_PER_BLOCK * PAGE_BYTES);
    if (memory->relaxes)
        (void)madvise(pages->base, PAGES_PER_BLOCK * PAGE_BYTES, MADV_DONTNEED);
    pages->next = memory->pages;
    memory->pages = pages;
    return pages;
}

/* Returns a page of zeros; NULL if the system has no memory. */
static void *take_page(kelp_http2_memory *memory) {
    kelp_http2_pages *pages = memory->pages;
    while (pages != NULL && pages->used_count == PAGES_PER_BLOCK)
        pages = pages->next;
    if (pages == NULL && (pages = add_pages(memory)) == NULL)
        return NULL;
    size_t i = 0;
    while (pages->used[i])
        i++;
    pages->used[i] = true;
    pages->used_count++;
    char *page = pages->base + i * PAGE_BYTES;
    if (!is_zero(page)) /* otherwise it may be without memory */
        memset(page, 0, PAGE_BYTES);
    return page;
}

/* Finds the block of a page, and the page in it; NULL for other memory. */
static kelp_http2_pages *find_page(const kelp_http2_memory *memory, const void *pointer,
                                   size_t *out_index) {
    if ((uintptr_t)pointer % PAGE_BYTES != 0)
        return NULL;
    for (kelp_http2_pages *pages = memory->pages; pages != NULL; pages = pages->next) {
        uintptr_t offset = (uintptr_t)pointer - (uintptr_t)pages->base;
        if (offset < PAGES_PER_BLOCK * PAGE_BYTES) {
            *out_index = offset / PAGE_BYTES;
            return pages;
        }
    }
    return NULL;
}

/* Frees the blocks without used pages, except `kept` (may be NULL). */
static void free_unused(kelp_http2_memory *memory, const kelp_http2_pages *kept) {
    kelp_http2_pages **link = &memory->pages;
    while (*link != NULL) {
        kelp_http2_pages *pages = *link;
        if (pages->used_count > 0 || pages == kept) {
            link = &pages->next;
            continue;
        }
        *link = pages->next;
        kelp_free_aligned(memory->allocator, pages->base, PAGES_PER_BLOCK * PAGE_BYTES, PAGE_BYTES);
        kelp_free(memory->allocator, pages, sizeof *pages);
    }
}

/* Takes a page back. Returns false for other memory. */
static bool give_page(kelp_http2_memory *memory, void *pointer) {
    size_t index;
    kelp_http2_pages *pages = find_page(memory, pointer, &index);
    if (pages == NULL)
        return false;
    KELP_ASSERT(pages->used[index]);
    pages->used[index] = false;
    if (--pages->used_count > 0)
        return true;
    /* One unused block is kept without memory: to create one takes as long as dozens of requests.
     */
    bool empty =
        memory->relaxes && madvise(pages->base, PAGES_PER_BLOCK * PAGE_BYTES, MADV_DONTNEED) == 0;
    free_unused(memory, empty ? pages : NULL);
    return true;
}

void kelp_http2_memory_relax(kelp_http2_memory *memory, void *table) {
    size_t index;
    kelp_http2_pages *pages = find_page(memory, table, &index);
    if (memory->relaxes && pages != NULL && pages->used[index] && is_zero(table))
        (void)madvise(table, PAGE_BYTES, MADV_DONTNEED);
}

/* ---- blocks ---- */

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
    size_t index = class_of(size_bytes, &needed);
    if (!kelp_size_add(needed, sizeof(kelp_http2_block), &needed))
        return NULL;
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
    if (block == memory->frame || give_page(memory, pointer))
        return;
    size_t index = class_of(block->size_bytes - sizeof(kelp_http2_block), &size_bytes);
    if (index == KELP_HTTP2_SIZE_CLASSES ||
        memory->kept_bytes + block->size_bytes > KEPT_MAX_BYTES) {
        kelp_free(memory->allocator, block, block->size_bytes);
        return;
    }
    KELP_ASSERT(size_bytes + sizeof(kelp_http2_block) == block->size_bytes);
    block->next = memory->free[index];
    memory->free[index] = block;
    memory->kept_bytes += block->size_bytes;
}

static void *allocate_zero(size_t count, size_t size_bytes, void *userp) {
    size_t total;
    if (!kelp_size_mul(count, size_bytes, &total))
        return NULL;
    kelp_http2_memory *memory = userp;
    if (memory->creates_session && total == PAGE_BYTES && count > 1 && memory->table == NULL)
        return memory->table = take_page(memory);
    void *pointer = allocate(total, userp);
    if (pointer != NULL)
        memset(pointer, 0, total);
    return pointer;
}

static void *reallocate(void *pointer, size_t size_bytes, void *userp) {
    kelp_http2_memory *memory = userp;
    size_t index, old_bytes = PAGE_BYTES;
    if (pointer == NULL)
        return allocate(size_bytes, userp);
    if (find_page(memory, pointer, &index) == NULL)
        old_bytes = ((kelp_http2_block *)pointer - 1)->size_bytes - sizeof(kelp_http2_block);
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
    *memory = (kelp_http2_memory){.allocator = allocator,
                                  .relaxes = sysconf(_SC_PAGESIZE) == (long)PAGE_BYTES};
    memory->functions = (nghttp2_mem){.mem_user_data = memory,
                                      .malloc = allocate,
                                      .free = release,
                                      .calloc = allocate_zero,
                                      .realloc = reallocate};
}

void kelp_http2_memory_begin_session(kelp_http2_memory *memory) {
    memory->creates_session = true;
    memory->table = NULL;
}

void *kelp_http2_memory_end_session(kelp_http2_memory *memory) {
    memory->creates_session = false;
    return memory->table;
}

void kelp_http2_memory_begin_send(kelp_http2_memory *memory) {
    (void)memory;
#ifndef NDEBUG
    if (memory->frame != NULL)
        memset(memory->frame + 1, 0xa5, memory->frame->size_bytes - sizeof(kelp_http2_block));
#endif
}

void kelp_http2_memory_trim(kelp_http2_memory *memory) {
    for (size_t i = 0; i < KELP_HTTP2_SIZE_CLASSES; i++) {
        while (memory->free[i] != NULL) {
            kelp_http2_block *block = memory->free[i];
            memory->free[i] = block->next;
            kelp_free(memory->allocator, block, block->size_bytes);
        }
    }
    memory->kept_bytes = 0;
    free_unused(memory, NULL);
}

void kelp_http2_memory_deinit(kelp_http2_memory *memory) {
    for (kelp_http2_pages *pages = memory->pages; pages != NULL; pages = pages->next)
        pages->used_count = 0;
    if (memory->frame != NULL)
        kelp_free(memory->allocator, memory->frame, memory->frame->size_bytes);
    kelp_http2_memory_trim(memory);
}
