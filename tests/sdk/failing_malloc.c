/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Linked into a backend with -Wl,--wrap for each function of the heap: the allocation that a test
 * chooses fails, of the backend's and the kit's, and of nobody else's in the process.
 */
#include <stdatomic.h>
#include <stddef.h>
#include <errno.h>

void *__real_malloc(size_t size);
void *__real_calloc(size_t count, size_t size);
void *__real_realloc(void *pointer, size_t size);
int __real_posix_memalign(void **out, size_t alignment, size_t size);
void *__real_aligned_alloc(size_t alignment, size_t size);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t count, size_t size);
void *__wrap_realloc(void *pointer, size_t size);
int __wrap_posix_memalign(void **out, size_t alignment, size_t size);
void *__wrap_aligned_alloc(size_t alignment, size_t size);

/* How many allocations still succeed; negative: all do. Counted down past the failure, so that a
 * test sees whether there was one. */
__attribute__((visibility("default"))) atomic_long kit_test_allocations_left = -1;

static int fails(void) {
    long left = atomic_load(&kit_test_allocations_left);
    while (left >= 0 && !atomic_compare_exchange_weak(&kit_test_allocations_left, &left, left - 1))
        ;
    return left == 0;
}

void *__wrap_malloc(size_t size) {
    return fails() ? NULL : __real_malloc(size);
}

void *__wrap_calloc(size_t count, size_t size) {
    return fails() ? NULL : __real_calloc(count, size);
}

void *__wrap_realloc(void *pointer, size_t size) {
    return fails() ? NULL : __real_realloc(pointer, size);
}

int __wrap_posix_memalign(void **out, size_t alignment, size_t size) {
    return fails() ? ENOMEM : __real_posix_memalign(out, alignment, size);
}

void *__wrap_aligned_alloc(size_t alignment, size_t size) {
    return fails() ? NULL : __real_aligned_alloc(alignment, size);
}
