/* SPDX-License-Identifier: Apache-2.0 */
/* The failing allocator. Each block has a header before it. Growth always moves a block, to
 * detect stale pointers. */
#include "support/failing_allocator.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "support/check_status.h"

#define MAGIC UINT64_C(0x6B656C70626C6F63)

typedef struct header {
    uint64_t magic;
    size_t size_bytes;
    size_t alignment;
    void *start; /* the pointer from the heap */
} header;

static header *header_of(void *pointer) {
    return (header *)((char *)pointer - sizeof(header));
}

static void *block_new(size_t size_bytes, size_t alignment) {
    size_t boundary = alignment < 16 ? 16 : alignment;
    size_t offset = (sizeof(header) + boundary - 1) / boundary * boundary;
    void *start = NULL;
    if (size_bytes > SIZE_MAX - offset ||
        posix_memalign(&start, boundary, offset + size_bytes) != 0)
        return NULL;
    char *pointer = (char *)start + offset;
    *header_of(pointer) = (header){MAGIC, size_bytes, alignment, start};
    memset(pointer, 0xA5, size_bytes); /* so that no code relies on zeroed memory */
    return pointer;
}

static void block_free(test_failing *failing, void *pointer) {
    header *head = header_of(pointer);
    failing->live_blocks--;
    failing->live_bytes -= head->size_bytes;
    void *start = head->start;
    head->magic = 0;
    free(start);
}

static void mistake(test_failing *failing, const char *words) {
    if (!failing->mistake)
        failing->mistake = words;
}

static bool must_fail(test_failing *failing) {
    failing->calls++;
    bool fails = failing->fail_at && (failing->calls == failing->fail_at ||
                                      (failing->fail_from && failing->calls > failing->fail_at));
    failing->failed = failing->failed || fails;
    return fails;
}

static void *failing_realloc_locked(test_failing *failing, void *pointer, size_t old_size_bytes,
                                    size_t new_size_bytes, size_t alignment) {
    if (alignment == 0 || (alignment & (alignment - 1)))
        mistake(failing, "an alignment is not a power of two");
    if (!pointer && old_size_bytes != 0)
        mistake(failing, "a new block was requested with an old size");
    if (pointer) {
        const header *head = header_of(pointer);
        if (head->magic != MAGIC) {
            mistake(failing,
                    "a block was handed back that is not live, or its front was overwritten");
            return NULL;
        }
        if (head->size_bytes != old_size_bytes)
            mistake(failing, "a block was handed back with another size than it has");
        if (head->alignment != alignment)
            mistake(failing, "a block was handed back with another alignment than it has");
    }
    if (new_size_bytes == 0) {
        if (pointer)
            block_free(failing, pointer);
        return NULL;
    }
    void *fresh = must_fail(failing) ? NULL : block_new(new_size_bytes, alignment);
    if (!fresh)
        return NULL;
    failing->live_blocks++;
    failing->live_bytes += new_size_bytes;
    if (pointer) {
        size_t kept = header_of(pointer)->size_bytes;
        memcpy(fresh, pointer, kept < new_size_bytes ? kept : new_size_bytes);
        block_free(failing, pointer);
    }
    if (failing->live_bytes > failing->peak_bytes)
        failing->peak_bytes = failing->live_bytes;
    return fresh;
}

static void *failing_realloc(void *userp, void *pointer, size_t old_size_bytes,
                             size_t new_size_bytes, size_t alignment) {
    test_failing *failing = userp;
    pthread_mutex_lock(&failing->lock);
    void *result =
        failing_realloc_locked(failing, pointer, old_size_bytes, new_size_bytes, alignment);
    pthread_mutex_unlock(&failing->lock);
    return result;
}

void test_failing_init(test_failing *failing, uint64_t fail_at) {
    *failing = (test_failing){.fail_at = fail_at};
    pthread_mutex_init(&failing->lock, NULL);
}

void test_failing_deinit(test_failing *failing) {
    pthread_mutex_destroy(&failing->lock);
}

kelp_allocator test_failing_allocator(test_failing *failing) {
    return (kelp_allocator){.realloc = failing_realloc, .userp = failing};
}

void test_failing_check(test_failing *failing) {
    if (failing->mistake)
        fail_msg("%s", failing->mistake);
    if (failing->live_blocks)
        fail_msg("%zu blocks (%zu bytes) were not freed", failing->live_blocks,
                 failing->live_bytes);
}

bool test_failing_ended(test_failing *failing, kelp_status *status) {
    test_failing_check(failing);
    bool failed = failing->failed;
    test_failing_deinit(failing);
    if (!failed)
        check_ok(status);
    return !failed;
}
