/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A bump allocator: many small allocations, freed together. kelp_arena_clear keeps the chunks, so
 * that repeating the same allocations makes no heap call. Used by one thread at a time.
 */
#ifndef KELP_BASE_ARENA_H_
#define KELP_BASE_ARENA_H_

#include "base/str.h"

#include <kelp/allocator.h>

typedef struct kelp_arena_chunk kelp_arena_chunk;
typedef struct kelp_arena {
    kelp_allocator allocator;
    kelp_arena_chunk *first;
    kelp_arena_chunk *current;
    size_t chunk_bytes;
    size_t limit_bytes; /* limit of all chunks in bytes; 0: none */
    size_t used_bytes;  /* bytes allocated since the last clear */
    size_t total_bytes; /* bytes of all chunks */
} kelp_arena;

/* Initializes an arena without allocating. `chunk_bytes` 0: 4 KiB. */
void kelp_arena_init(kelp_arena *arena, kelp_allocator allocator, size_t chunk_bytes);
void kelp_arena_deinit(kelp_arena *arena);
/* Frees all allocations, keeps the chunks. */
void kelp_arena_clear(kelp_arena *arena);

/* A position to return to, which frees the allocations made since. Marks nest. */
typedef struct kelp_arena_mark {
    kelp_arena_chunk *chunk;
    size_t chunk_used_bytes, used_bytes;
} kelp_arena_mark;
kelp_arena_mark kelp_arena_get_mark(const kelp_arena *arena);
void kelp_arena_go_back(kelp_arena *arena, kelp_arena_mark mark);

/* Returns NULL if memory is exhausted, the limit is exceeded or the size overflows. Size 0 gives a
 * unique pointer. */
void *kelp_arena_alloc(kelp_arena *arena, size_t size_bytes, size_t alignment);
/* Allocates a zeroed array. */
void *kelp_arena_array(kelp_arena *arena, size_t count, size_t element_bytes);
char *kelp_arena_strndup(kelp_arena *arena, const char *text, size_t length);
char *kelp_arena_printf(kelp_arena *arena, const char *format, ...) KELP_PRINTF(2, 3);

/* Returns an allocator over the arena: freeing has no effect, growing copies. Valid as long as the
 * arena is not moved. */
kelp_allocator kelp_arena_allocator(kelp_arena *arena);

#define KELP_ARENA_NEW(arena, type) ((type *)kelp_arena_array((arena), 1, sizeof(type)))
#define KELP_ARENA_ARRAY(arena, count, type) \
    ((type *)kelp_arena_array((arena), (count), sizeof(type)))

#endif
