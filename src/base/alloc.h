/* SPDX-License-Identifier: Apache-2.0 */
/* Typed helpers over kelp_allocator. Every block is freed with the size and alignment it was
 * allocated with. */
#ifndef KELP_BASE_ALLOC_H_
#define KELP_BASE_ALLOC_H_

#include <kelp/allocator.h>

#define KELP_DEFAULT_ALIGNMENT 16u
#define KELP_TENSOR_ALIGNMENT 64u

/* These functions fail with RESOURCE_EXHAUSTED if memory is exhausted or the size overflows.
 * kelp_alloc_zero zeroes the memory. A size of 0 gives NULL without a failure. The alignment is
 * KELP_DEFAULT_ALIGNMENT unless specified. */
kelp_status *kelp_alloc(kelp_allocator allocator, size_t size_bytes, void **out) KELP_MUST_USE;
kelp_status *kelp_alloc_zero(kelp_allocator allocator, size_t count, size_t element_bytes,
                             void **out) KELP_MUST_USE;
kelp_status *kelp_alloc_aligned(kelp_allocator allocator, size_t size_bytes, size_t alignment,
                                void **out) KELP_MUST_USE;
void kelp_free(kelp_allocator allocator, void *pointer, size_t size_bytes);
void kelp_free_aligned(kelp_allocator allocator, void *pointer, size_t size_bytes,
                       size_t alignment);

/* Grows the array `*inout_items` (capacity `*inout_capacity` items) to at least `needed` items, at
 * least doubling it. */
kelp_status *kelp_grow(kelp_allocator allocator, void **inout_items, size_t *inout_capacity,
                       size_t needed, size_t item_bytes) KELP_MUST_USE;

/* These functions copy a string and terminate it. Free with kelp_free(allocator, s, strlen(s) + 1)
 * or kelp_free_string. */
kelp_status *kelp_strdup(kelp_allocator allocator, const char *text, char **out) KELP_MUST_USE;
void kelp_free_string(kelp_allocator allocator, char *text);

/* Allocates and zeroes one `type`. */
#define KELP_NEW(allocator, type, out) kelp_alloc_zero((allocator), 1, sizeof(type), (void **)(out))

#endif
