/* SPDX-License-Identifier: Apache-2.0 */
/* The bump allocator. */
#include "base/arena.h"
#include "support/failing_allocator.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

typedef struct fixture {
    test_failing memory;
    kelp_arena arena;
} fixture;

static void setup(fixture *f, size_t chunk_bytes) {
    test_failing_init(&f->memory, 0);
    kelp_arena_init(&f->arena, test_failing_allocator(&f->memory), chunk_bytes);
}

static void teardown(fixture *f) {
    kelp_arena_deinit(&f->arena);
    test_failing_check(&f->memory);
    test_failing_deinit(&f->memory);
}

static void blocks_are_apart_and_aligned(void **state) {
    (void)state;
    fixture f;
    unsigned char *blocks[200];
    setup(&f, 256);
    assert_int_equal(f.memory.calls, 0);
    for (size_t i = 0; i < 200; i++) {
        size_t alignment = (size_t)1 << (i % 9);
        blocks[i] = kelp_arena_alloc(&f.arena, i, alignment);
        assert_non_null(blocks[i]);
        assert_int_equal((uintptr_t)blocks[i] % alignment, 0);
        memset(blocks[i], (int)i, i);
    }
    for (size_t i = 0; i < 200; i++) {
        for (size_t at = 0; at < i; at++)
            assert_int_equal(blocks[i][at], i);
        if (i)
            assert_ptr_not_equal(blocks[i], blocks[i - 1]);
    }
    assert_ptr_not_equal(kelp_arena_alloc(&f.arena, 0, 1), kelp_arena_alloc(&f.arena, 0, 1));
    teardown(&f);
}

static void use_varied(kelp_arena *arena) {
    for (size_t i = 0; i < 60; i++)
        assert_non_null(kelp_arena_alloc(arena, i * 37 % 700 + 1, (size_t)1 << (i % 7)));
}

static void cleared_arena_allocates_nothing(void **state) {
    (void)state;
    fixture f;
    setup(&f, 512);
    use_varied(&f.arena);
    uint64_t calls = f.memory.calls;
    for (int i = 0; i < 5; i++) {
        kelp_arena_clear(&f.arena);
        assert_int_equal(f.arena.used_bytes, 0);
        use_varied(&f.arena);
    }
    assert_int_equal(f.memory.calls, calls);
    teardown(&f);
}

static void varying_use_does_not_pile_up(void **state) {
    (void)state;
    fixture f;
    setup(&f, 64);
    for (size_t size = 1; size <= 20000; size += 100) {
        kelp_arena_clear(&f.arena);
        assert_non_null(kelp_arena_alloc(&f.arena, size, 1));
    }
    assert_true(f.arena.total_bytes < 40000);
    assert_int_equal(f.memory.live_bytes, f.arena.total_bytes);
    teardown(&f);
}

static void limits_and_failures(void **state) {
    (void)state;
    fixture f;
    setup(&f, 0);
    f.arena.limit_bytes = 10000;
    assert_null(kelp_arena_alloc(&f.arena, 10001, 1));
    assert_null(kelp_arena_alloc(&f.arena, SIZE_MAX, 1));
    assert_null(kelp_arena_alloc(&f.arena, SIZE_MAX - 8, 64));
    assert_null(kelp_arena_array(&f.arena, SIZE_MAX / 2, 3));
    assert_non_null(kelp_arena_alloc(&f.arena, 3000, 1));
    assert_non_null(kelp_arena_alloc(&f.arena, 3000, 1));
    assert_null(kelp_arena_alloc(&f.arena, 6000, 1));
    assert_true(f.memory.live_bytes <= 10000);
    f.memory.fail_at = f.memory.calls + 1;
    assert_null(kelp_arena_alloc(&f.arena, 1500, 1));
    assert_non_null(kelp_arena_alloc(&f.arena, 1000, 1));
    teardown(&f);
}

static void text_and_arrays(void **state) {
    (void)state;
    fixture f;
    setup(&f, 64);
    assert_string_equal(kelp_arena_strndup(&f.arena, "abcdef", 3), "abc");
    assert_string_equal(kelp_arena_strndup(&f.arena, NULL, 0), "");
    assert_string_equal(kelp_arena_printf(&f.arena, "%s-%d", "node", 12), "node-12");
    int *numbers = KELP_ARENA_ARRAY(&f.arena, 100, int);
    for (int i = 0; i < 100; i++)
        assert_int_equal(numbers[i], 0);
    teardown(&f);
}

static void as_an_allocator(void **state) {
    (void)state;
    fixture f;
    setup(&f, 64);
    kelp_allocator view = kelp_arena_allocator(&f.arena);
    char *text = view.realloc(view.userp, NULL, 0, 4, 1);
    memcpy(text, "abc", 4);
    text = view.realloc(view.userp, text, 4, 4000, 1);
    assert_string_equal(text, "abc");
    assert_ptr_equal(view.realloc(view.userp, text, 4000, 2, 1), text);
    assert_null(view.realloc(view.userp, text, 2, 0, 1));
    teardown(&f);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(blocks_are_apart_and_aligned),
        cmocka_unit_test(cleared_arena_allocates_nothing),
        cmocka_unit_test(varying_use_does_not_pile_up),
        cmocka_unit_test(limits_and_failures),
        cmocka_unit_test(text_and_arrays),
        cmocka_unit_test(as_an_allocator),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
