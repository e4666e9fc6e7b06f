/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Linked into a backend with -Wl,--wrap for each allocation function. A chosen allocation of the
 * backend or the SDK fails; the rest of the process is not affected.
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

/* The number of allocations before the one that fails; negative: all succeed. It is negative after
 * the failure, so that a test can see if there was one. */
__attribute__((visibility("default"))) atomic_long sdk_test_allocations_left = -1;

static int fails(void) {
    long left = atomic_load(&sdk_test_allocations_left);
    while (left >= 0 && !atomic_compare_exchange_weak(&sdk_test_allocations_left, &left, left - 1))
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
