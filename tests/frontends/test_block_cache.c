/* SPDX-License-Identifier: Apache-2.0 */
/* The allocator that keeps large blocks. */
#include "base/alloc.h"
#include "frontends/http/block_cache.h"
#include "support/failing_allocator.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#define LARGE ((size_t)1 << 20)
#define LIMIT ((size_t)8 << 20)

typedef struct fixture {
    test_failing memory;
    kelp_block_cache cache;
    kelp_allocator allocator;
    size_t freed;
} fixture;

static void on_freed(void *userp) {
    ++*(size_t *)userp;
}

static void setup(fixture *f) {
    test_failing_init(&f->memory, 0);
    kelp_block_cache_init(&f->cache, test_failing_allocator(&f->memory), LIMIT);
    f->freed = 0;
    f->cache.freed_large = on_freed;
    f->cache.freed_large_userp = &f->freed;
    f->allocator = kelp_block_cache_allocator(&f->cache);
}

static void teardown(fixture *f) {
    kelp_block_cache_deinit(&f->cache);
    test_failing_check(&f->memory);
    test_failing_deinit(&f->memory);
}

static void *allocate(fixture *f, size_t size_bytes) {
    void *block = NULL;
    assert_null(kelp_alloc(f->allocator, size_bytes, &block));
    memset(block, 1, size_bytes);
    return block;
}

static void blocks_of_similar_sizes_are_reused(void **state) {
    (void)state;
    fixture f;
    setup(&f);
    void *block = allocate(&f, LARGE);
    kelp_free(f.allocator, block, LARGE);
    assert_int_equal(f.freed, 1);
    size_t calls = f.memory.calls;
    assert_ptr_equal(allocate(&f, LARGE - LARGE / 16), block);
    void *other = allocate(&f, LARGE / 2);
    assert_ptr_not_equal(other, block);
    assert_int_equal(f.memory.calls, calls + 1);
    kelp_free(f.allocator, block, LARGE - LARGE / 16);
    kelp_free(f.allocator, other, LARGE / 2);
    teardown(&f);
}

static void every_size_grows_and_shrinks(void **state) {
    (void)state;
    fixture f;
    setup(&f);
    for (size_t alignment = 16; alignment <= 128; alignment *= 2) {
        unsigned char *block = NULL;
        size_t size = 0;
        for (size_t next = 1000; next < 4 * KELP_BLOCK_CACHE_MAX_BYTES; next = next * 3 / 2 + 1) {
            block = f.allocator.realloc(f.allocator.userp, block, size, next, alignment);
            assert_non_null(block);
            assert_int_equal((uintptr_t)block % alignment, 0);
            assert_true(size == 0 || (block[0] == 7 && block[size - 1] == 9));
            block[0] = 7;
            block[next - 1] = 9;
            size = next;
        }
        while (size > 1000) {
            block[size / 3 - 1] = 5;
            block = f.allocator.realloc(f.allocator.userp, block, size, size / 3, alignment);
            assert_non_null(block);
            size /= 3;
            assert_true(block[0] == 7 && block[size - 1] == 5);
        }
        kelp_free_aligned(f.allocator, block, size, alignment);
    }
    assert_true(f.cache.kept_bytes <= LIMIT);
    teardown(&f);
}

static void kept_bytes_are_limited(void **state) {
    (void)state;
    fixture f;
    setup(&f);
    void *blocks[32];
    for (size_t i = 0; i < 32; i++)
        blocks[i] = allocate(&f, LARGE);
    for (size_t i = 0; i < 32; i++)
        kelp_free(f.allocator, blocks[i], LARGE);
    assert_int_equal(f.cache.kept_bytes, LIMIT);
    assert_int_equal(f.freed, 32);
    teardown(&f);
}

static void trim_frees_what_was_not_used(void **state) {
    (void)state;
    fixture f;
    setup(&f);
    void *a = allocate(&f, LARGE), *b = allocate(&f, LARGE);
    kelp_free(f.allocator, a, LARGE);
    kelp_free(f.allocator, b, LARGE);
    kelp_block_cache_trim(&f.cache, false); /* both were used since the start */
    assert_int_equal(f.cache.kept_bytes, 2 * LARGE);
    kelp_free(f.allocator, allocate(&f, LARGE), LARGE);
    kelp_block_cache_trim(&f.cache, false); /* one was used */
    assert_int_equal(f.cache.kept_bytes, LARGE);
    kelp_free(f.allocator, allocate(&f, LARGE), LARGE);
    kelp_block_cache_trim(&f.cache, true);
    assert_int_equal(f.cache.kept_bytes, 0);
    teardown(&f);
}

static void small_blocks_are_passed_on(void **state) {
    (void)state;
    fixture f;
    setup(&f);
    kelp_free(f.allocator, allocate(&f, KELP_BLOCK_CACHE_MIN_BYTES - 1),
              KELP_BLOCK_CACHE_MIN_BYTES - 1);
    assert_int_equal(f.cache.kept_bytes, 0);
    assert_int_equal(f.freed, 0);
    teardown(&f);
}

static void failures_keep_the_block(void **state) {
    (void)state;
    fixture f;
    setup(&f);
    unsigned char *block = allocate(&f, LARGE);
    f.memory.fail_at = f.memory.calls + 1;
    assert_null(f.allocator.realloc(f.allocator.userp, block, LARGE, 2 * LARGE, 16));
    assert_int_equal(block[LARGE - 1], 1);
    kelp_free(f.allocator, block, LARGE);
    teardown(&f);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(blocks_of_similar_sizes_are_reused),
        cmocka_unit_test(every_size_grows_and_shrinks),
        cmocka_unit_test(kept_bytes_are_limited),
        cmocka_unit_test(trim_frees_what_was_not_used),
        cmocka_unit_test(small_blocks_are_passed_on),
        cmocka_unit_test(failures_keep_the_block),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
