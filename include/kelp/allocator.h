/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kelp/allocator.h: memory as a value.
 *
 * An allocator is copied by value into each root object and inherited by everything that object
 * makes. Threads: `realloc` must be callable from any thread at once.
 */
#ifndef KELP_ALLOCATOR_H_
#define KELP_ALLOCATOR_H_

#include <kelp/status.h>

#ifdef __cplusplus
extern "C" {
#endif

/* One function does it all: pointer NULL allocates, new_size_bytes 0 frees (and returns NULL), else
 * the block grows or shrinks and keeps its bytes. `alignment` is a power of two, at least 1, the
 * same for all calls on a block. Returns NULL when there is no memory; the old block is then
 * untouched. `old_size_bytes` is what the block had been asked for. */
typedef void *(*kelp_realloc_fn)(void *userp, void *pointer, size_t old_size_bytes,
                                 size_t new_size_bytes, size_t alignment);

typedef struct kelp_allocator {
    kelp_realloc_fn realloc;
    void *userp;
} kelp_allocator;

/* The C library's heap. */
KELP_API kelp_allocator kelp_allocator_system(void);

#ifdef __cplusplus
}
#endif
#endif
