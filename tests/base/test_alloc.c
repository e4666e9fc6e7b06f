/* SPDX-License-Identifier: Apache-2.0 */
/* The system heap and the helpers over any allocator. */
#include "base/alloc.h"
#include "support/failing_allocator.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

static void system_heap_keeps_alignment_and_bytes(void **state) {
    (void)state;
    kelp_allocator heap = kelp_allocator_system();
    for (size_t alignment = 1; alignment <= 4096; alignment *= 2) {
        unsigned char *block = heap.realloc(heap.userp, NULL, 0, 100, alignment);
        assert_non_null(block);
        assert_int_equal((uintptr_t)block % alignment, 0);
        memset(block, 0x5A, 100);
        block = heap.realloc(heap.userp, block, 100, 100000, alignment);
        assert_int_equal((uintptr_t)block % alignment, 0);
        for (int i = 0; i < 100; i++)
            assert_int_equal(block[i], 0x5A);
        block = heap.realloc(heap.userp, block, 100000, 10, alignment);
        assert_int_equal(block[9], 0x5A);
        assert_null(heap.realloc(heap.userp, block, 10, 0, alignment));
    }
    assert_null(heap.realloc(heap.userp, NULL, 0, 0, 16));
}

static void helpers_allocate_and_free(void **state) {
    (void)state;
    test_failing memory;
    test_failing_init(&memory, 0);
    kelp_allocator allocator = test_failing_allocator(&memory);
    void *a;
    void *b;
    void *c;
    uint64_t *d;
    assert_null(kelp_alloc(allocator, 10, &a));
    assert_null(kelp_alloc_zero(allocator, 7, 3, &b));
    assert_null(kelp_alloc_aligned(allocator, 5, 64, &c));
    assert_null(KELP_NEW(allocator, uint64_t, &d));
    assert_int_equal((uintptr_t)a % KELP_DEFAULT_ALIGNMENT, 0);
    assert_int_equal((uintptr_t)c % 64, 0);
    for (int i = 0; i < 21; i++)
        assert_int_equal(((unsigned char *)b)[i], 0);
    assert_int_equal(*d, 0);
    assert_int_equal(memory.live_blocks, 4);
    kelp_free(allocator, a, 10);
    kelp_free(allocator, b, 21);
    kelp_free_aligned(allocator, c, 5, 64);
    kelp_free(allocator, d, sizeof(*d));
    kelp_free(allocator, NULL, 99);
    test_failing_check(&memory);
    test_failing_deinit(&memory);
}

static void nothing_and_too_much(void **state) {
    (void)state;
    kelp_allocator heap = kelp_allocator_system();
    void *pointer = &heap;
    assert_null(kelp_alloc(heap, 0, &pointer));
    assert_null(pointer);
    pointer = &heap;
    assert_null(kelp_alloc_zero(heap, 0, 8, &pointer));
    assert_null(pointer);
    kelp_status *status = kelp_alloc_zero(heap, SIZE_MAX / 2, 3, &pointer);
    assert_int_equal(kelp_status_code(status), KELP_RESOURCE_EXHAUSTED);
    assert_null(pointer);
    size_t capacity = 0;
    status = kelp_grow(heap, &pointer, &capacity, SIZE_MAX / 4, 8);
    assert_int_equal(kelp_status_code(status), KELP_RESOURCE_EXHAUSTED);
    assert_int_equal(capacity, 0);
}

static void grow_keeps_items(void **state) {
    (void)state;
    test_failing memory;
    test_failing_init(&memory, 0);
    kelp_allocator allocator = test_failing_allocator(&memory);
    void *items = NULL;
    size_t capacity = 0;
    for (size_t i = 0; i < 1000; i++) {
        assert_null(kelp_grow(allocator, &items, &capacity, i + 1, sizeof(size_t)));
        assert_true(capacity > i);
        ((size_t *)items)[i] = i;
    }
    for (size_t i = 0; i < 1000; i++)
        assert_int_equal(((size_t *)items)[i], i);
    assert_true(memory.calls < 20); /* it doubles */
    /* When there is no memory, what was there stays. */
    memory.fail_at = memory.calls + 1;
    size_t before = capacity;
    kelp_status *status = kelp_grow(allocator, &items, &capacity, before + 1, sizeof(size_t));
    assert_int_equal(kelp_status_code(status), KELP_RESOURCE_EXHAUSTED);
    assert_int_equal(capacity, before);
    assert_int_equal(((size_t *)items)[999], 999);
    kelp_free(allocator, items, capacity * sizeof(size_t));
    test_failing_check(&memory);
    test_failing_deinit(&memory);
}

static void strings(void **state) {
    (void)state;
    test_failing memory;
    test_failing_init(&memory, 3);
    kelp_allocator allocator = test_failing_allocator(&memory);
    char *text;
    char *empty;
    char *none;
    assert_null(kelp_strdup(allocator, "kelp", &text));
    assert_null(kelp_strdup(allocator, "", &empty));
    assert_int_equal(kelp_status_code(kelp_strdup(allocator, "x", &none)), KELP_RESOURCE_EXHAUSTED);
    assert_null(none);
    assert_string_equal(text, "kelp");
    assert_string_equal(empty, "");
    kelp_free_string(allocator, text);
    kelp_free_string(allocator, empty);
    kelp_free_string(allocator, NULL);
    test_failing_check(&memory);
    test_failing_deinit(&memory);
}

static void the_failing_allocator_sees_mistakes(void **state) {
    (void)state;
    test_failing memory;
    test_failing_init(&memory, 0);
    kelp_allocator allocator = test_failing_allocator(&memory);
    void *pointer;
    assert_null(kelp_alloc(allocator, 10, &pointer));
    kelp_free(allocator, pointer, 11);
    assert_non_null(memory.mistake);
    memory.mistake = NULL;
    assert_null(kelp_alloc(allocator, 10, &pointer));
    kelp_free_aligned(allocator, pointer, 10, 64);
    assert_non_null(memory.mistake);
    test_failing_deinit(&memory);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(system_heap_keeps_alignment_and_bytes),
        cmocka_unit_test(helpers_allocate_and_free),
        cmocka_unit_test(nothing_and_too_much),
        cmocka_unit_test(grow_keeps_items),
        cmocka_unit_test(strings),
        cmocka_unit_test(the_failing_allocator_sees_mistakes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
