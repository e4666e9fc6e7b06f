/* SPDX-License-Identifier: Apache-2.0 */
/* The C API for caches: entries and copies. Triton's library exports two of these functions without
 * declaring them. */
#include "base/alloc.h"
#include "base/assert.h"
#include "server/cache/cache.h"
#include "server/core/error.h"
#include "server/core/heap.h"

#define EXPORT __attribute__((visibility("default")))

EXPORT TRITONSERVER_Error *TRITONCACHE_CacheEntryNew(TRITONCACHE_CacheEntry **entry);
EXPORT TRITONSERVER_Error *TRITONCACHE_CacheEntryDelete(TRITONCACHE_CacheEntry *entry);

static kelp_cache_entry *of(TRITONCACHE_CacheEntry *entry) {
    return (kelp_cache_entry *)entry;
}

TRITONSERVER_Error *TRITONCACHE_CacheEntryNew(TRITONCACHE_CacheEntry **entry) {
    if (entry == NULL)
        return kelp_null_error(__func__, "entry");
    kelp_status *status =
        KELP_NEW(kelp_process_allocator(), kelp_cache_entry, (kelp_cache_entry **)entry);
    if (status == NULL)
        kelp_cache_entry_init(of(*entry), kelp_process_allocator());
    return kelp_to_error(status);
}

TRITONSERVER_Error *TRITONCACHE_CacheEntryDelete(TRITONCACHE_CacheEntry *entry) {
    if (entry != NULL) {
        kelp_cache_entry_deinit(of(entry));
        kelp_free(kelp_process_allocator(), entry, sizeof(kelp_cache_entry));
    }
    return NULL;
}

TRITONSERVER_Error *TRITONCACHE_CacheEntryBufferCount(TRITONCACHE_CacheEntry *entry,
                                                      size_t *count) {
    if (entry == NULL || count == NULL)
        return kelp_null_error(__func__, entry != NULL ? "count" : "entry");
    *count = of(entry)->count;
    return NULL;
}

static kelp_status *check_memory(const kelp_buffer_attributes *attributes) {
    if (attributes->memory_type == TRITONSERVER_MEMORY_GPU)
        return KELP_ERROR(KELP_INVALID_ARGUMENT,
                          "a cache entry's buffer is in GPU memory: expected CPU memory");
    return NULL;
}

TRITONSERVER_Error *
TRITONCACHE_CacheEntryAddBuffer(TRITONCACHE_CacheEntry *entry, void *base,
                                TRITONSERVER_BufferAttributes *buffer_attributes) {
    const kelp_buffer_attributes *attributes = (const kelp_buffer_attributes *)buffer_attributes;
    if (entry == NULL || base == NULL || attributes == NULL)
        return kelp_null_error(__func__, entry == NULL  ? "entry"
                                         : base == NULL ? "base"
                                                        : "buffer_attributes");
    if (attributes->size_bytes == 0)
        return kelp_to_error(KELP_ERROR(KELP_INVALID_ARGUMENT, "a cache entry's buffer is empty"));
    kelp_status *status = check_memory(attributes);
    return kelp_to_error(status != NULL ? status
                                        : kelp_cache_entry_add(of(entry), base, attributes));
}

static kelp_status *buffer_at(kelp_cache_entry *entry, size_t index, kelp_cache_buffer **out) {
    if (index >= entry->count)
        return KELP_ERROR(KELP_INVALID_ARGUMENT,
                          "out of bounds index %zu: the cache entry has %zu buffers", index,
                          entry->count);
    KELP_ASSERT(entry->count <= entry->capacity);
    *out = &entry->buffers[index];
    return NULL;
}

TRITONSERVER_Error *
TRITONCACHE_CacheEntryGetBuffer(TRITONCACHE_CacheEntry *entry, size_t index, void **base,
                                TRITONSERVER_BufferAttributes *buffer_attributes) {
    if (entry == NULL || base == NULL || buffer_attributes == NULL)
        return kelp_null_error(__func__, entry == NULL  ? "entry"
                                         : base == NULL ? "base"
                                                        : "buffer_attributes");
    kelp_cache_buffer *buffer = NULL;
    kelp_status *status = buffer_at(of(entry), index, &buffer);
    if (status != NULL)
        return kelp_to_error(status);
    *base = buffer->base;
    *(kelp_buffer_attributes *)buffer_attributes = buffer->attributes;
    return NULL;
}

TRITONSERVER_Error *
TRITONCACHE_CacheEntrySetBuffer(TRITONCACHE_CacheEntry *entry, size_t index, void *new_base,
                                TRITONSERVER_BufferAttributes *buffer_attributes) {
    if (entry == NULL || new_base == NULL)
        return kelp_null_error(__func__, entry != NULL ? "new_base" : "entry");
    const kelp_buffer_attributes *attributes = (const kelp_buffer_attributes *)buffer_attributes;
    kelp_cache_buffer *buffer = NULL;
    kelp_status *status = buffer_at(of(entry), index, &buffer);
    if (status == NULL && attributes != NULL)
        status = check_memory(attributes);
    if (status != NULL)
        return kelp_to_error(status);
    buffer->base = new_base;
    if (attributes != NULL)
        buffer->attributes = *attributes;
    return NULL;
}

TRITONSERVER_Error *TRITONCACHE_Copy(TRITONCACHE_Allocator *allocator,
                                     TRITONCACHE_CacheEntry *entry) {
    if (allocator == NULL || entry == NULL)
        return kelp_null_error(__func__, allocator != NULL ? "entry" : "allocator");
    kelp_cache_copier *copier = (kelp_cache_copier *)allocator;
    KELP_ASSERT(copier->copy != NULL);
    return kelp_to_error(copier->copy(copier, of(entry)));
}
