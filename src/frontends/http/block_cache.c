/* SPDX-License-Identifier: Apache-2.0 */
#include "frontends/http/block_cache.h"

#include "base/alloc.h"
#include "base/assert.h"
#include "base/checked.h"

#include <string.h>
#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#else
#define ASAN_POISON_MEMORY_REGION(data, size_bytes) ((void)(data), (void)(size_bytes))
#define ASAN_UNPOISON_MEMORY_REGION(data, size_bytes) ((void)(data), (void)(size_bytes))
#endif

#define ALIGNMENT KELP_TENSOR_ALIGNMENT /* of all blocks of the cache */
#define STEPS 4u                        /* sizes per power of two */

/* Returns the size class of a block, and the size of its blocks in *out_bytes: the multiples of a
 * quarter of a power of two. KELP_BLOCK_CACHE_CLASSES: the cache keeps no such blocks. */
static size_t class_of(size_t size_bytes, size_t alignment, size_t *out_bytes) {
    *out_bytes = size_bytes;
    if (size_bytes < KELP_BLOCK_CACHE_MIN_BYTES || size_bytes > KELP_BLOCK_CACHE_MAX_BYTES ||
        alignment > ALIGNMENT)
        return KELP_BLOCK_CACHE_CLASSES;
    unsigned power = 63u - (unsigned)__builtin_clzll((unsigned long long)size_bytes);
    size_t step = ((size_t)1 << power) / STEPS;
    size_t steps = (size_bytes + step - 1) / step; /* 4 to 8 */
    *out_bytes = steps * step;
    unsigned first =
        63u - (unsigned)__builtin_clzll((unsigned long long)KELP_BLOCK_CACHE_MIN_BYTES);
    return (power - first) * STEPS + (steps - STEPS);
}

void kelp_block_cache_init(kelp_block_cache *cache, kelp_allocator underlying,
                           size_t max_kept_bytes) {
    *cache = (kelp_block_cache){.underlying = underlying, .max_kept_bytes = max_kept_bytes};
    pthread_mutex_init(&cache->mutex, NULL);
}

void kelp_block_cache_deinit(kelp_block_cache *cache) {
    kelp_block_cache_trim(cache, true);
    KELP_ASSERT(cache->kept_bytes == 0);
    pthread_mutex_destroy(&cache->mutex);
}

/* Returns an unused block of a class, or NULL. */
static void *take(kelp_block_cache *cache, size_t index, size_t size_bytes) {
    kelp_block_class *class = &cache->classes[index];
    pthread_mutex_lock(&cache->mutex);
    kelp_unused_block *block = class->first;
    if (block != NULL) {
        ASAN_UNPOISON_MEMORY_REGION(block, size_bytes);
        class->first = block->next;
        class->count--;
        class->spare_count = KELP_MIN(class->spare_count, class->count);
        cache->kept_bytes -= size_bytes;
    }
    pthread_mutex_unlock(&cache->mutex);
    return block;
}

/* Keeps a block. Returns false if the cache is full. */
static bool keep(kelp_block_cache *cache, size_t index, void *pointer, size_t size_bytes) {
    kelp_block_class *class = &cache->classes[index];
    kelp_unused_block *block = pointer;
    pthread_mutex_lock(&cache->mutex);
    bool fits = size_bytes <= cache->max_kept_bytes &&
                cache->kept_bytes <= cache->max_kept_bytes - size_bytes;
    if (fits) {
        block->next = class->first;
        class->first = block;
        class->count++;
        cache->kept_bytes += size_bytes;
        ASAN_POISON_MEMORY_REGION(block, size_bytes);
    }
    pthread_mutex_unlock(&cache->mutex);
    return fits;
}

static void *allocate(kelp_block_cache *cache, size_t size_bytes, size_t alignment) {
    size_t block_bytes, index = class_of(size_bytes, alignment, &block_bytes);
    if (index < KELP_BLOCK_CACHE_CLASSES) {
        void *block = take(cache, index, block_bytes);
        if (block != NULL)
            return block;
        alignment = ALIGNMENT;
    }
    return cache->underlying.realloc(cache->underlying.userp, NULL, 0, block_bytes, alignment);
}

static void release(kelp_block_cache *cache, void *pointer, size_t size_bytes, size_t alignment) {
    size_t block_bytes, index = class_of(size_bytes, alignment, &block_bytes);
    bool cached = index < KELP_BLOCK_CACHE_CLASSES;
    if (!cached || !keep(cache, index, pointer, block_bytes))
        (void)cache->underlying.realloc(cache->underlying.userp, pointer, block_bytes, 0,
                                        cached ? ALIGNMENT : alignment);
    if (size_bytes >= KELP_BLOCK_CACHE_MIN_BYTES && cache->freed_large != NULL)
        cache->freed_large(cache->freed_large_userp);
}

static void *cache_realloc(void *userp, void *pointer, size_t old_size_bytes, size_t new_size_bytes,
                           size_t alignment) {
    kelp_block_cache *cache = userp;
    kelp_allocator underlying = cache->underlying;
    size_t old_bytes, new_bytes;
    size_t old_class = class_of(old_size_bytes, alignment, &old_bytes);
    size_t new_class = class_of(new_size_bytes, alignment, &new_bytes);
    if (old_class == KELP_BLOCK_CACHE_CLASSES && new_class == KELP_BLOCK_CACHE_CLASSES &&
        new_size_bytes > 0)
        return underlying.realloc(underlying.userp, pointer, old_size_bytes, new_size_bytes,
                                  alignment);
    if (pointer != NULL && old_class == new_class && old_bytes == new_bytes)
        return pointer;
    void *fresh = NULL;
    if (new_size_bytes > 0) {
        fresh = allocate(cache, new_size_bytes, alignment);
        if (fresh == NULL)
            return NULL;
        if (pointer != NULL)
            memcpy(fresh, pointer, KELP_MIN(old_size_bytes, new_size_bytes));
    }
    if (pointer != NULL)
        release(cache, pointer, old_size_bytes, alignment);
    return fresh;
}

kelp_allocator kelp_block_cache_allocator(kelp_block_cache *cache) {
    return (kelp_allocator){.realloc = cache_realloc, .userp = cache};
}

/* Removes blocks of a class, and returns them as a list. */
static kelp_unused_block *remove_blocks(kelp_block_cache *cache, size_t index, size_t size_bytes,
                                        bool all) {
    kelp_block_class *class = &cache->classes[index];
    kelp_unused_block *list = NULL;
    pthread_mutex_lock(&cache->mutex);
    for (size_t left = all ? class->count : class->spare_count; left > 0; left--) {
        kelp_unused_block *block = class->first;
        ASAN_UNPOISON_MEMORY_REGION(block, size_bytes);
        class->first = block->next;
        class->count--;
        cache->kept_bytes -= size_bytes;
        block->next = list;
        list = block;
    }
    class->spare_count = class->count;
    pthread_mutex_unlock(&cache->mutex);
    return list;
}

void kelp_block_cache_trim(kelp_block_cache *cache, bool all) {
    for (size_t i = 0; i < KELP_BLOCK_CACHE_CLASSES; i++) {
        size_t power_bytes = KELP_BLOCK_CACHE_MIN_BYTES << (i / STEPS);
        size_t size_bytes = power_bytes + i % STEPS * (power_bytes / STEPS);
        kelp_unused_block *block = remove_blocks(cache, i, size_bytes, all);
        while (block != NULL) {
            kelp_unused_block *next = block->next;
            (void)cache->underlying.realloc(cache->underlying.userp, block, size_bytes, 0,
                                            ALIGNMENT);
            block = next;
        }
    }
}
