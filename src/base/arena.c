/* SPDX-License-Identifier: Apache-2.0 */
/* Implements the arena. Chunks form a list; `current` is the one in use, those after it are empty.
 */
#include "base/arena.h"

#include "base/alloc.h"
#include "base/assert.h"
#include "base/checked.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

struct kelp_arena_chunk {
    kelp_arena_chunk *next;
    size_t capacity_bytes; /* size of the memory after this header */
    size_t used_bytes;
};

#define DEFAULT_CHUNK_BYTES 4096u

static unsigned char *chunk_data(kelp_arena_chunk *chunk) {
    return (unsigned char *)(chunk + 1);
}

void kelp_arena_init(kelp_arena *arena, kelp_allocator allocator, size_t chunk_bytes) {
    *arena = (kelp_arena){.allocator = allocator,
                          .chunk_bytes = chunk_bytes ? chunk_bytes : DEFAULT_CHUNK_BYTES};
}

void kelp_arena_deinit(kelp_arena *arena) {
    kelp_arena_chunk *chunk = arena->first;
    while (chunk != NULL) {
        kelp_arena_chunk *next = chunk->next;
        kelp_free(arena->allocator, chunk, sizeof *chunk + chunk->capacity_bytes);
        chunk = next;
    }
    arena->first = NULL;
    arena->current = NULL;
    arena->used_bytes = 0;
    arena->total_bytes = 0;
}

void kelp_arena_clear(kelp_arena *arena) {
    for (kelp_arena_chunk *chunk = arena->first; chunk != NULL; chunk = chunk->next)
        chunk->used_bytes = 0;
    arena->current = arena->first;
    arena->used_bytes = 0;
}

kelp_arena_mark kelp_arena_get_mark(const kelp_arena *arena) {
    const kelp_arena_chunk *chunk = arena->current;
    return (kelp_arena_mark){arena->current, chunk != NULL ? chunk->used_bytes : 0,
                             arena->used_bytes};
}

void kelp_arena_go_back(kelp_arena *arena, kelp_arena_mark mark) {
    KELP_ASSERT(mark.used_bytes <= arena->used_bytes);
    if (mark.chunk == NULL) { /* it was empty */
        kelp_arena_clear(arena);
        return;
    }
    for (kelp_arena_chunk *chunk = mark.chunk; chunk != arena->current; chunk = chunk->next)
        chunk->next->used_bytes = 0;
    KELP_ASSERT(mark.chunk_used_bytes <= mark.chunk->used_bytes);
    arena->current = mark.chunk;
    mark.chunk->used_bytes = mark.chunk_used_bytes;
    arena->used_bytes = mark.used_bytes;
}

/* Allocates from one chunk; returns NULL if it is too full. */
static void *chunk_alloc(kelp_arena_chunk *chunk, size_t size_bytes, size_t alignment) {
    uintptr_t base = (uintptr_t)chunk_data(chunk);
    size_t start;
    size_t end;
    if (!kelp_size_align(base + chunk->used_bytes, alignment, &start))
        return NULL;
    start -= base;
    if (!kelp_size_add(start, size_bytes, &end) || end > chunk->capacity_bytes)
        return NULL;
    chunk->used_bytes = end;
    return chunk_data(chunk) + start;
}

/* Adds a chunk of at least `need` bytes after `current`. */
static kelp_arena_chunk *chunk_add(kelp_arena *arena, size_t need) {
    size_t block;
    size_t total;
    size_t capacity = KELP_MAX(need, arena->chunk_bytes);
    if (arena->limit_bytes) {
        /* the last chunk below the limit may be small */
        size_t available =
            arena->limit_bytes > arena->total_bytes ? arena->limit_bytes - arena->total_bytes : 0;
        if (available < sizeof(kelp_arena_chunk) || available - sizeof(kelp_arena_chunk) < need)
            return NULL;
        capacity = KELP_MIN(capacity, available - sizeof(kelp_arena_chunk));
    }
    if (!kelp_size_add(sizeof(kelp_arena_chunk), capacity, &block) ||
        !kelp_size_add(arena->total_bytes, block, &total))
        return NULL;
    kelp_arena_chunk *chunk =
        arena->allocator.realloc(arena->allocator.userp, NULL, 0, block, KELP_DEFAULT_ALIGNMENT);
    if (chunk == NULL)
        return NULL;
    chunk->capacity_bytes = capacity;
    chunk->used_bytes = 0;
    kelp_arena_chunk **link = arena->current != NULL ? &arena->current->next : &arena->first;
    chunk->next = *link;
    *link = chunk;
    arena->total_bytes = total;
    return chunk;
}

/* Moves on to the chunk after `current`, which is empty. Replaces one that is too small by a
 * larger one, so that an arena whose use varies between clears does not accumulate chunks. */
static kelp_arena_chunk *chunk_next(kelp_arena *arena, size_t size_bytes, size_t alignment) {
    kelp_arena_chunk **link = arena->current != NULL ? &arena->current->next : &arena->first;
    kelp_arena_chunk *next = *link;
    size_t need;
    if (!kelp_size_add(size_bytes, alignment - 1, &need))
        return NULL;
    if (next != NULL && need <= next->capacity_bytes)
        return next;
    if (next != NULL) {
        *link = next->next;
        arena->total_bytes -= sizeof *next + next->capacity_bytes;
        kelp_free(arena->allocator, next, sizeof *next + next->capacity_bytes);
    }
    return chunk_add(arena, need);
}

void *kelp_arena_alloc(kelp_arena *arena, size_t size_bytes, size_t alignment) {
    KELP_ASSERT(kelp_is_power_of_two(alignment));
    /* at least one byte, so that every pointer is unique */
    size_t wanted = size_bytes ? size_bytes : 1;
    void *block = arena->current != NULL ? chunk_alloc(arena->current, wanted, alignment) : NULL;
    if (block == NULL) {
        kelp_arena_chunk *chunk = chunk_next(arena, wanted, alignment);
        if (chunk == NULL)
            return NULL;
        arena->current = chunk;
        block = chunk_alloc(chunk, wanted, alignment);
        KELP_ASSERT(block != NULL); /* the chunk was chosen for this size */
    }
    arena->used_bytes += wanted;
    return block;
}

void *kelp_arena_array(kelp_arena *arena, size_t count, size_t element_bytes) {
    size_t size_bytes;
    if (!kelp_size_mul(count, element_bytes, &size_bytes))
        return NULL;
    void *block = kelp_arena_alloc(arena, size_bytes, KELP_DEFAULT_ALIGNMENT);
    if (block != NULL)
        memset(block, 0, size_bytes);
    return block;
}

char *kelp_arena_strndup(kelp_arena *arena, const char *text, size_t length) {
    size_t size_bytes;
    if (!kelp_size_add(length, 1, &size_bytes))
        return NULL;
    char *copy = kelp_arena_alloc(arena, size_bytes, 1);
    if (copy == NULL)
        return NULL;
    if (length)
        memcpy(copy, text, length);
    copy[length] = '\0';
    return copy;
}

char *kelp_arena_printf(kelp_arena *arena, const char *format, ...) {
    va_list args;
    va_start(args, format);
    int length = vsnprintf(NULL, 0, format, args);
    va_end(args);
    if (length < 0)
        return NULL;
    char *text = kelp_arena_alloc(arena, (size_t)length + 1, 1);
    if (text == NULL)
        return NULL;
    va_start(args, format);
    (void)vsnprintf(text, (size_t)length + 1, format, args);
    va_end(args);
    return text;
}

static void *arena_realloc(void *userp, void *pointer, size_t old_size_bytes, size_t new_size_bytes,
                           size_t alignment) {
    if (new_size_bytes == 0)
        return NULL;
    if (pointer != NULL && new_size_bytes <= old_size_bytes)
        return pointer;
    void *fresh = kelp_arena_alloc(userp, new_size_bytes, alignment);
    if (fresh != NULL && pointer != NULL)
        memcpy(fresh, pointer, old_size_bytes);
    return fresh;
}

kelp_allocator kelp_arena_allocator(kelp_arena *arena) {
    return (kelp_allocator){.realloc = arena_realloc, .userp = arena};
}
