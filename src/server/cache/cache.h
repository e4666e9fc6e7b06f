/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Response caches. A cache is a shared library with the entry points of tritoncache.h, or the
 * built-in cache "local" (local.c). Both are used through the same function pointers. responses.c
 * identifies requests and stores responses.
 *
 * Thread-safe, as caches must be.
 */
#ifndef KELP_SERVER_CACHE_CACHE_H_
#define KELP_SERVER_CACHE_CACHE_H_

#include "server/core/options.h"
#include "server/request/response_cache.h"

#include <triton/core/tritoncache.h>

/* ---- entries ---- */

/* A buffer of a cache entry. */
typedef struct kelp_cache_buffer {
    void *base;
    kelp_buffer_attributes attributes;
} kelp_cache_buffer;

/* A list of buffers. TRITONCACHE_CacheEntry is a pointer to it. */
typedef struct kelp_cache_entry {
    kelp_allocator allocator;
    kelp_cache_buffer *buffers;
    size_t count;
    size_t capacity;
} kelp_cache_entry;

void kelp_cache_entry_init(kelp_cache_entry *entry, kelp_allocator allocator);
void kelp_cache_entry_deinit(kelp_cache_entry *entry);
/* Appends a buffer, which is borrowed. */
kelp_status *kelp_cache_entry_add(kelp_cache_entry *entry, void *base,
                                  const kelp_buffer_attributes *attributes) KELP_MUST_USE;

/* The server's part of TRITONCACHE_Copy. TRITONCACHE_Allocator is a pointer to it. */
typedef struct kelp_cache_copier kelp_cache_copier;
struct kelp_cache_copier {
    kelp_status *(*copy)(kelp_cache_copier *self, kelp_cache_entry *entry);
};

/* ---- caches ---- */

/* The entry points of a cache. */
typedef struct kelp_cache_functions {
    TRITONSERVER_Error *(*initialize)(TRITONCACHE_Cache **cache, const char *config);
    TRITONSERVER_Error *(*finalize)(TRITONCACHE_Cache *cache);
    TRITONSERVER_Error *(*lookup)(TRITONCACHE_Cache *cache, const char *key,
                                  TRITONCACHE_CacheEntry *entry, TRITONCACHE_Allocator *allocator);
    TRITONSERVER_Error *(*insert)(TRITONCACHE_Cache *cache, const char *key,
                                  TRITONCACHE_CacheEntry *entry, TRITONCACHE_Allocator *allocator);
} kelp_cache_functions;

/* The built-in cache. It has no `initialize`; its constructor takes an allocator. */
extern const kelp_cache_functions kelp_cache_local;
kelp_status *kelp_cache_local_create(kelp_allocator allocator, const char *config,
                                     TRITONCACHE_Cache **out) KELP_MUST_USE;

/* An open cache. */
typedef struct kelp_cache {
    kelp_response_cache base;
    kelp_allocator allocator;
    kelp_cache_functions fn;
    TRITONCACHE_Cache *handle;
} kelp_cache;

/* Opens the cache that the options configure; *out is NULL if they configure none. A library
 * DIRECTORY/NAME/libtritoncache_NAME.so takes precedence over the built-in cache of that name. */
kelp_status *kelp_cache_open(kelp_allocator allocator, const kelp_server_options *options,
                             kelp_cache **out) KELP_MUST_USE;
/* Closes a cache that is no longer used. NULL is ignored. */
void kelp_cache_close(kelp_cache *cache);

/* ---- responses.c ---- */
extern const kelp_response_cache_ops kelp_cache_ops;

#endif
