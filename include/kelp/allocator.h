/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kelp/allocator.h: a memory allocator passed by value.
 *
 * Root objects (runtime, registry, graph, …) copy the allocator that they are created with, and
 * the objects that they create use the same one. It must therefore outlive all of them.
 */
#ifndef KELP_ALLOCATOR_H_
#define KELP_ALLOCATOR_H_

#include <kelp/status.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Callback that allocates, resizes and frees.
 * - `pointer` NULL: allocates `new_size_bytes`.
 * - `new_size_bytes` 0: frees `pointer` and returns NULL.
 * - otherwise: resizes the block and preserves the smaller of both sizes of its contents.
 *
 * `old_size_bytes` is the size that was last requested for the block, 0 if `pointer` is NULL.
 * `alignment` is a power of two, at least 1, and the same in every call for one block. Returns
 * NULL if memory is exhausted; the old block then stays valid. Must be thread-safe. */
typedef void *(*kelp_realloc_fn)(void *userp, void *pointer, size_t old_size_bytes,
                                 size_t new_size_bytes, size_t alignment);

/* An allocator. A zeroed struct is not usable by itself; where an options struct accepts one, it
 * stands for the default. */
typedef struct kelp_allocator {
    kelp_realloc_fn realloc; /* the callback */
    void *userp;             /* passed to the callback */
} kelp_allocator;

/* Returns the allocator of the C library. Thread-safe. */
KELP_API kelp_allocator kelp_allocator_system(void);

#ifdef __cplusplus
}
#endif
#endif
