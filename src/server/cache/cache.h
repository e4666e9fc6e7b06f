/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Response caches. A cache is a shared library with the entry points of tritoncache.h, or the one
 * built in ("local", local.c); both are the same function pointers from here on. What is stored in
 * it, and how a request is known again, is in cached.h.
 *
 * Threads: any, several at once; a cache locks itself.
 */
#ifndef KELP_SERVER_CACHE_CACHE_H_
#define KELP_SERVER_CACHE_CACHE_H_

#include "base/dl.h"
#include "server/core/values.h"
#include "server/core/options.h"

#include <triton/core/tritoncache.h>

/* ---- entries: a row of buffers; what TRITONCACHE_CacheEntry points at ---- */

typedef struct kelp_cache_buffer {
    void *base;
    kelp_buffer_attributes attributes;
} kelp_cache_buffer;

typedef struct kelp_cache_entry {
    kelp_cache_buffer *buffers;
    size_t count;
    size_t capacity;
} kelp_cache_entry;

void kelp_cache_entry_init(kelp_cache_entry *entry);
void kelp_cache_entry_deinit(kelp_cache_entry *entry);
kelp_status *kelp_cache_entry_add(kelp_cache_entry *entry, void *base,
                                  const kelp_buffer_attributes *attributes) KELP_MUST_USE;

/* What TRITONCACHE_Allocator points at: the server's half of TRITONCACHE_Copy. */
typedef struct kelp_cache_copier kelp_cache_copier;
struct kelp_cache_copier {
    kelp_status *(*copy)(kelp_cache_copier *self, kelp_cache_entry *entry);
};

/* ---- caches ---- */

typedef struct kelp_cache_functions {
    TRITONSERVER_Error *(*initialize)(TRITONCACHE_Cache **cache, const char *config);
    TRITONSERVER_Error *(*finalize)(TRITONCACHE_Cache *cache);
    TRITONSERVER_Error *(*lookup)(TRITONCACHE_Cache *cache, const char *key,
                                  TRITONCACHE_CacheEntry *entry, TRITONCACHE_Allocator *allocator);
    TRITONSERVER_Error *(*insert)(TRITONCACHE_Cache *cache, const char *key,
                                  TRITONCACHE_CacheEntry *entry, TRITONCACHE_Allocator *allocator);
} kelp_cache_functions;

extern const kelp_cache_functions kelp_cache_local;

typedef struct kelp_cache {
    kelp_dl dl;
    kelp_cache_functions fn;
    TRITONCACHE_Cache *handle;
} kelp_cache;

/* The cache that the options ask for, or NULL when they ask for none. A library
 * DIRECTORY/NAME/libtritoncache_NAME.so goes before the built-in cache of that name. */
kelp_status *kelp_cache_open(const kelp_server_options *options, kelp_cache **out) KELP_MUST_USE;
/* Nobody uses it any more. NULL is fine. */
void kelp_cache_close(kelp_cache *cache);

#endif
