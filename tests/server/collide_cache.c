/* SPDX-License-Identifier: Apache-2.0 */
/* A cache in which all keys collide: it has one entry, which it returns for every key. A server
 * that compares only hashes would return responses of other requests. */
#include <triton/core/tritoncache.h>

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

struct TRITONCACHE_Cache {
    pthread_mutex_t lock;
    void *data;
    size_t size_bytes;
};

TRITONSERVER_Error *TRITONCACHE_CacheInitialize(TRITONCACHE_Cache **cache, const char *config) {
    if (strstr(config, "reject"))
        return TRITONSERVER_ErrorNew(TRITONSERVER_ERROR_INVALID_ARG, "rejected by the cache");
    *cache = calloc(1, sizeof **cache);
    pthread_mutex_init(&(*cache)->lock, NULL);
    return NULL;
}

TRITONSERVER_Error *TRITONCACHE_CacheFinalize(TRITONCACHE_Cache *cache) {
    pthread_mutex_destroy(&cache->lock);
    free(cache->data);
    free(cache);
    return NULL;
}

TRITONSERVER_Error *TRITONCACHE_CacheLookup(TRITONCACHE_Cache *cache, const char *key,
                                            TRITONCACHE_CacheEntry *entry,
                                            TRITONCACHE_Allocator *allocator) {
    (void)key;
    TRITONSERVER_BufferAttributes *attributes = NULL;
    TRITONSERVER_Error *error = NULL;
    pthread_mutex_lock(&cache->lock);
    if (!cache->data)
        error = TRITONSERVER_ErrorNew(TRITONSERVER_ERROR_NOT_FOUND, "nothing yet");
    if (!error)
        error = TRITONSERVER_BufferAttributesNew(&attributes);
    if (!error)
        error = TRITONSERVER_BufferAttributesSetByteSize(attributes, cache->size_bytes);
    if (!error)
        error = TRITONCACHE_CacheEntryAddBuffer(entry, cache->data, attributes);
    if (!error)
        error = TRITONCACHE_Copy(allocator, entry);
    pthread_mutex_unlock(&cache->lock);
    TRITONSERVER_ErrorDelete(TRITONSERVER_BufferAttributesDelete(attributes));
    return error;
}

TRITONSERVER_Error *TRITONCACHE_CacheInsert(TRITONCACHE_Cache *cache, const char *key,
                                            TRITONCACHE_CacheEntry *entry,
                                            TRITONCACHE_Allocator *allocator) {
    (void)key;
    TRITONSERVER_BufferAttributes *attributes = NULL;
    void *base = NULL;
    size_t count = 0;
    pthread_mutex_lock(&cache->lock);
    free(cache->data);
    cache->data = NULL;
    TRITONSERVER_Error *error = TRITONSERVER_BufferAttributesNew(&attributes);
    if (!error)
        error = TRITONCACHE_CacheEntryBufferCount(entry, &count);
    if (!error)
        error = TRITONCACHE_CacheEntryGetBuffer(entry, count - 1, &base, attributes);
    if (!error)
        error = TRITONSERVER_BufferAttributesByteSize(attributes, &cache->size_bytes);
    if (!error) {
        cache->data = malloc(cache->size_bytes);
        error = TRITONCACHE_CacheEntrySetBuffer(entry, 0, cache->data, NULL);
    }
    if (!error)
        error = TRITONCACHE_Copy(allocator, entry);
    pthread_mutex_unlock(&cache->lock);
    TRITONSERVER_ErrorDelete(TRITONSERVER_BufferAttributesDelete(attributes));
    return error;
}
