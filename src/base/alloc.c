/* SPDX-License-Identifier: Apache-2.0 */
/* Implements the system allocator and typed helpers over any allocator. */
#include "base/alloc.h"

#include "base/assert.h"
#include "base/checked.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

/* Blocks of this size, such as weights and workspaces, use transparent huge pages: 2 MiB pages
 * cost fewer TLB misses than 4 KiB pages, and the first access takes one page fault instead of
 * hundreds. Such blocks are aligned to a huge page, and a remainder that is large enough is
 * extended to one. On kernels without huge pages only the length changes. */
#define LARGE_BYTES ((size_t)1 << 20)
#define LARGE_PAGE ((size_t)2 << 20)
#define REST_BYTES (LARGE_PAGE / 2) /* a remainder of this size is extended to a page */

static bool is_in_huge_pages(size_t size_bytes) {
    return size_bytes >= LARGE_BYTES && size_bytes <= SIZE_MAX - LARGE_PAGE;
}

static size_t filled_up(size_t size_bytes) {
    size_t rest = size_bytes % LARGE_PAGE;
    return rest >= REST_BYTES ? size_bytes + (LARGE_PAGE - rest) : size_bytes;
}

static void advise_huge_pages(void *pointer, size_t size_bytes) {
#ifdef MADV_HUGEPAGE
    (void)madvise(pointer, size_bytes / LARGE_PAGE * LARGE_PAGE, MADV_HUGEPAGE);
#else
    (void)pointer;
    (void)size_bytes;
#endif
}

/* Allocates aligned memory: posix_memalign rejects alignments below that of a pointer, and realloc
 * does not preserve alignment beyond that of malloc. */
static void *system_aligned(void *pointer, size_t old_size_bytes, size_t new_size_bytes,
                            size_t alignment) {
    KELP_ASSERT(kelp_is_power_of_two(alignment));
    void *fresh = NULL;
    bool large = is_in_huge_pages(new_size_bytes);
    size_t length = large ? filled_up(new_size_bytes) : new_size_bytes;
    if (posix_memalign(&fresh, large ? KELP_MAX(alignment, LARGE_PAGE) : alignment, length) != 0)
        return NULL;
    if (large)
        advise_huge_pages(fresh, length);
    if (pointer != NULL) {
        memcpy(fresh, pointer, KELP_MIN(old_size_bytes, new_size_bytes));
        free(pointer);
    }
    return fresh;
}

static void *system_realloc(void *userp, void *pointer, size_t old_size_bytes,
                            size_t new_size_bytes, size_t alignment) {
    (void)userp;
    if (new_size_bytes == 0) {
        free(pointer);
        return NULL;
    }
    if (alignment > _Alignof(max_align_t))
        return system_aligned(pointer, old_size_bytes, new_size_bytes, alignment);
    return realloc(pointer, new_size_bytes);
}

kelp_allocator kelp_allocator_system(void) {
    return (kelp_allocator){.realloc = system_realloc, .userp = NULL};
}

kelp_status *kelp_alloc_aligned(kelp_allocator allocator, size_t size_bytes, size_t alignment,
                                void **out) {
    KELP_ASSERT(kelp_is_power_of_two(alignment));
    *out = NULL;
    if (size_bytes == 0)
        return NULL;
    void *pointer = allocator.realloc(allocator.userp, NULL, 0, size_bytes, alignment);
    if (pointer == NULL)
        return kelp_status_oom();
    *out = pointer;
    return NULL;
}

kelp_status *kelp_alloc(kelp_allocator allocator, size_t size_bytes, void **out) {
    return kelp_alloc_aligned(allocator, size_bytes, KELP_DEFAULT_ALIGNMENT, out);
}

kelp_status *kelp_alloc_zero(kelp_allocator allocator, size_t count, size_t element_bytes,
                             void **out) {
    size_t size_bytes;
    *out = NULL;
    if (!kelp_size_mul(count, element_bytes, &size_bytes))
        return kelp_status_oom();
    KELP_TRY(kelp_alloc(allocator, size_bytes, out));
    if (*out != NULL)
        memset(*out, 0, size_bytes);
    return NULL;
}

void kelp_free_aligned(kelp_allocator allocator, void *pointer, size_t size_bytes,
                       size_t alignment) {
    if (pointer != NULL)
        (void)allocator.realloc(allocator.userp, pointer, size_bytes, 0, alignment);
}

void kelp_free(kelp_allocator allocator, void *pointer, size_t size_bytes) {
    kelp_free_aligned(allocator, pointer, size_bytes, KELP_DEFAULT_ALIGNMENT);
}

kelp_status *kelp_grow(kelp_allocator allocator, void **inout_items, size_t *inout_capacity,
                       size_t needed, size_t item_bytes) {
    KELP_ASSERT(item_bytes > 0 && (*inout_items != NULL || *inout_capacity == 0));
    if (needed <= *inout_capacity)
        return NULL;
    size_t capacity = KELP_MAX(*inout_capacity, (size_t)4);
    while (capacity < needed) {
        if (!kelp_size_mul(capacity, 2, &capacity))
            capacity = needed;
    }
    size_t new_bytes;
    if (!kelp_size_mul(capacity, item_bytes, &new_bytes))
        return kelp_status_oom();
    void *items = allocator.realloc(allocator.userp, *inout_items, *inout_capacity * item_bytes,
                                    new_bytes, KELP_DEFAULT_ALIGNMENT);
    if (items == NULL)
        return kelp_status_oom();
    *inout_items = items;
    *inout_capacity = capacity;
    return NULL;
}

kelp_status *kelp_strdup(kelp_allocator allocator, const char *text, char **out) {
    size_t size_bytes = strlen(text) + 1;
    void *copy = NULL;
    *out = NULL;
    KELP_TRY(kelp_alloc(allocator, size_bytes, &copy));
    memcpy(copy, text, size_bytes);
    *out = copy;
    return NULL;
}

void kelp_free_string(kelp_allocator allocator, char *text) {
    if (text != NULL)
        kelp_free(allocator, text, strlen(text) + 1);
}
