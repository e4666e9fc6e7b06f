/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An allocator that keeps large blocks for reuse. Memory that is fresh from the system costs a page
 * fault per page, which for a request of 1 MiB is more than all other work. Small blocks, and those
 * above KELP_BLOCK_CACHE_MAX_BYTES, are passed on to the underlying allocator.
 *
 * Functions are thread-safe, except for init and deinit.
 */
#ifndef KELP_FRONTENDS_HTTP_BLOCK_CACHE_H_
#define KELP_FRONTENDS_HTTP_BLOCK_CACHE_H_

#include <kelp/allocator.h>

#include <pthread.h>

#define KELP_BLOCK_CACHE_MIN_BYTES ((size_t)64 * 1024)
#define KELP_BLOCK_CACHE_MAX_BYTES ((size_t)16 * 1024 * 1024)
#define KELP_BLOCK_CACHE_CLASSES 33 /* four per power of two */

/* An unused block, which begins with this header. */
typedef struct kelp_unused_block {
    struct kelp_unused_block *next;
} kelp_unused_block;

/* Unused blocks of one size. */
typedef struct kelp_block_class {
    kelp_unused_block *first;
    size_t count;
    size_t spare_count; /* minimum of `count` since the last kelp_block_cache_trim */
} kelp_block_class;

typedef struct kelp_block_cache {
    kelp_allocator underlying;
    size_t max_kept_bytes; /* of all unused blocks */
    /* Called after a large block was freed or kept; NULL: not called. */
    void (*freed_large)(void *userp);
    void *freed_large_userp;
    pthread_mutex_t mutex; /* guards the following */
    size_t kept_bytes;
    kelp_block_class classes[KELP_BLOCK_CACHE_CLASSES];
} kelp_block_cache;

/* Initializes a cache without blocks; the caller may then set freed_large. */
void kelp_block_cache_init(kelp_block_cache *cache, kelp_allocator underlying,
                           size_t max_kept_bytes);
/* Frees the unused blocks. All others must be freed before. */
void kelp_block_cache_deinit(kelp_block_cache *cache);
/* Returns the allocator, which is valid until the cache is moved or deinitialized. */
kelp_allocator kelp_block_cache_allocator(kelp_block_cache *cache);
/* Frees the blocks that were not used since the last call, or all unused blocks. */
void kelp_block_cache_trim(kelp_block_cache *cache, bool all);

#endif
