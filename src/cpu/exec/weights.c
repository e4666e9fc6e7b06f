/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory of an engine's packed weights: consecutive in large chunks, which the system backs by
 * large pages (base/alloc.c). Pages of the model file that were read for packing are released.
 * Thread-safe.
 */
#include "base/alloc.h"
#include "base/assert.h"
#include "base/checked.h"
#include "cpu/exec/engine.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#define CHUNK_BYTES ((size_t)32 << 20)
#define CHUNK_ALIGNMENT ((size_t)2 << 20)  /* of large pages */
#define SMALLEST ((size_t)16 << 10)        /* smaller blocks are allocated separately, */
#define LARGEST ((size_t)8 << 20)          /* and larger blocks too */
#define CHUNKS_MIN_BYTES ((size_t)1 << 20) /* engines with less have no chunks */
#define RELEASE_BYTES ((size_t)2 << 20)

struct kelp_cpu_weight_chunk {
    struct kelp_cpu_weight_chunk *next;
    char *data;
    size_t used, blocks; /* blocks: number of live ones */
};

static struct kelp_cpu_weight_chunk *chunk_of(const kelp_cpu_engine *engine, const void *pointer) {
    struct kelp_cpu_weight_chunk *chunk = engine->chunks;
    while (chunk != NULL && ((const char *)pointer < chunk->data ||
                             (const char *)pointer >= chunk->data + CHUNK_BYTES))
        chunk = chunk->next;
    return chunk;
}

static struct kelp_cpu_weight_chunk *new_chunk(kelp_cpu_engine *engine) {
    kelp_allocator allocator = engine->allocator;
    struct kelp_cpu_weight_chunk *chunk =
        allocator.realloc(allocator.userp, NULL, 0, sizeof *chunk, KELP_DEFAULT_ALIGNMENT);
    if (chunk == NULL)
        return NULL;
    *chunk = (struct kelp_cpu_weight_chunk){.next = engine->chunks};
    chunk->data = allocator.realloc(allocator.userp, NULL, 0, CHUNK_BYTES, CHUNK_ALIGNMENT);
    if (chunk->data == NULL) {
        kelp_free(allocator, chunk, sizeof *chunk);
        return NULL;
    }
    engine->chunks = chunk;
    return chunk;
}

static void *take_block(kelp_cpu_engine *engine, size_t bytes) {
    KELP_ASSERT_HELD(&engine->weights_lock);
    struct kelp_cpu_weight_chunk *chunk = engine->chunks;
    size_t rounded = (bytes + KELP_TENSOR_ALIGNMENT - 1) / KELP_TENSOR_ALIGNMENT;
    rounded *= KELP_TENSOR_ALIGNMENT;
    if (chunk == NULL || CHUNK_BYTES - chunk->used < rounded)
        chunk = new_chunk(engine);
    if (chunk == NULL)
        return NULL;
    KELP_ASSERT(chunk->used + rounded <= CHUNK_BYTES);
    char *block = chunk->data + chunk->used;
    chunk->used += rounded;
    chunk->blocks++;
    return block;
}

static void drop_block(kelp_cpu_engine *engine, struct kelp_cpu_weight_chunk *chunk) {
    KELP_ASSERT_HELD(&engine->weights_lock);
    KELP_ASSERT(chunk->blocks > 0);
    if (--chunk->blocks > 0)
        return;
    struct kelp_cpu_weight_chunk **link = &engine->chunks;
    while (*link != chunk)
        link = &(*link)->next;
    *link = chunk->next;
    kelp_free_aligned(engine->allocator, chunk->data, CHUNK_BYTES, CHUNK_ALIGNMENT);
    kelp_free(engine->allocator, chunk, sizeof *chunk);
}

static bool wants_chunk(const kelp_cpu_engine *engine, size_t bytes, size_t alignment) {
#if defined(__SANITIZE_ADDRESS__)
    (void)engine;
    (void)bytes;
    (void)alignment;
    return false; /* so that the sanitizer detects accesses after the end of each block */
#else
    return bytes >= SMALLEST && bytes <= LARGEST && alignment <= KELP_TENSOR_ALIGNMENT &&
           atomic_load_explicit(&engine->packed_bytes, memory_order_relaxed) >= CHUNKS_MIN_BYTES;
#endif
}

static void *realloc_locked(kelp_cpu_engine *engine, void *pointer, size_t old_bytes,
                            size_t new_bytes, size_t alignment) {
    KELP_ASSERT_HELD(&engine->weights_lock);
    kelp_allocator inner = engine->allocator;
    struct kelp_cpu_weight_chunk *chunk = pointer != NULL ? chunk_of(engine, pointer) : NULL;
    bool chunked = new_bytes > 0 && wants_chunk(engine, new_bytes, alignment);
    if (chunk == NULL && (pointer != NULL || !chunked))
        return inner.realloc(inner.userp, pointer, old_bytes, new_bytes, alignment);
    void *fresh = NULL;
    if (new_bytes > 0) {
        fresh = chunked ? take_block(engine, new_bytes)
                        : inner.realloc(inner.userp, NULL, 0, new_bytes, alignment);
        if (fresh == NULL)
            return NULL;
        if (pointer != NULL)
            memcpy(fresh, pointer, KELP_MIN(old_bytes, new_bytes));
    }
    if (chunk != NULL)
        drop_block(engine, chunk);
    return fresh;
}

static void *weights_realloc(void *userp, void *pointer, size_t old_bytes, size_t new_bytes,
                             size_t alignment) {
    kelp_cpu_engine *engine = userp;
    (void)pthread_mutex_lock(&engine->weights_lock);
    void *result = realloc_locked(engine, pointer, old_bytes, new_bytes, alignment);
    (void)pthread_mutex_unlock(&engine->weights_lock);
    if (result != NULL || new_bytes == 0) {
        atomic_fetch_add_explicit(&engine->packed_bytes, new_bytes, memory_order_relaxed);
        atomic_fetch_sub_explicit(&engine->packed_bytes, old_bytes, memory_order_relaxed);
    }
    return result;
}

void kelp_cpu_engine_weights_init(kelp_cpu_engine *engine) {
    (void)pthread_mutex_init(&engine->weights_lock, NULL);
    engine->weights = (kelp_allocator){weights_realloc, engine};
}

void kelp_cpu_engine_weights_deinit(kelp_cpu_engine *engine) {
    KELP_ASSERT(engine->chunks == NULL);
    (void)pthread_mutex_destroy(&engine->weights_lock);
}

void kelp_cpu_engine_release_pages(kelp_cpu_engine *engine) {
    size_t packed = atomic_load_explicit(&engine->packed_bytes, memory_order_relaxed);
    size_t before = atomic_load_explicit(&engine->released_at_bytes, memory_order_relaxed);
    if (packed >= before + RELEASE_BYTES &&
        atomic_compare_exchange_strong(&engine->released_at_bytes, &before, packed))
        kelp_graph_release_pages(engine->source);
}
