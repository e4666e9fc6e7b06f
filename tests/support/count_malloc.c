/* SPDX-License-Identifier: Apache-2.0 */
/* malloc and related functions, counted. */
#include "support/count_malloc.h"

#include <errno.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdlib.h>

#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define SANITIZED 1
#endif
#endif
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED 1
#endif

#if defined(__GLIBC__) && !defined(SANITIZED)
static _Atomic uint64_t allocations;

extern void *__libc_malloc(size_t);
extern void *__libc_calloc(size_t, size_t);
extern void *__libc_realloc(void *, size_t);
extern void *__libc_memalign(size_t, size_t);

static void count(void) {
    atomic_fetch_add_explicit(&allocations, 1, memory_order_relaxed);
}

void *malloc(size_t size) {
    count();
    return __libc_malloc(size);
}

void *calloc(size_t items, size_t size) {
    count();
    return __libc_calloc(items, size);
}

void *realloc(void *old, size_t size) {
    count();
    return __libc_realloc(old, size);
}

void *aligned_alloc(size_t alignment, size_t size) {
    count();
    return __libc_memalign(alignment, size);
}

void *memalign(size_t alignment, size_t size);
void *memalign(size_t alignment, size_t size) {
    count();
    return __libc_memalign(alignment, size);
}

int posix_memalign(void **out, size_t alignment, size_t size) {
    count();
    *out = __libc_memalign(alignment, size);
    return *out == NULL ? ENOMEM : 0;
}

bool test_allocations_counted(void) {
    return true;
}

uint64_t test_allocations(void) {
    return atomic_load_explicit(&allocations, memory_order_relaxed);
}
#else
bool test_allocations_counted(void) {
    return false;
}

uint64_t test_allocations(void) {
    return 0;
}
#endif
