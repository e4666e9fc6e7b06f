/* SPDX-License-Identifier: Apache-2.0 */
/* The memory plan: buffers that are live at the same time never overlap, and the total is near the
 * lower bound. */
#include "cpu/exec/schedule.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#define MOST 300

static bool overlap(const kelp_cpu_interval *a, const kelp_cpu_interval *b) {
    bool in_time = a->first <= b->last && b->first <= a->last;
    bool in_space = a->offset < b->offset + b->bytes && b->offset < a->offset + a->bytes;
    return in_time && in_space;
}

static void check(kelp_cpu_interval *intervals, size_t count, size_t total) {
    for (size_t i = 0; i < count; i++) {
        assert_int_equal(intervals[i].offset % 64, 0);
        assert_true(intervals[i].offset + intervals[i].bytes <= total);
        for (size_t k = i + 1; k < count; k++)
            assert_false(overlap(&intervals[i], &intervals[k]));
    }
}

static void chain_needs_two_buffers(void **state) {
    (void)state;
    kelp_cpu_interval chain[10];
    uint32_t order[10], placed[10];
    size_t total = 0, bound = 0;
    for (uint32_t i = 0; i < 10; i++)
        chain[i] = (kelp_cpu_interval){1000, i, i + 1, 0, 0};
    assert_true(kelp_cpu_memory_plan(chain, 10, order, placed, &total, &bound));
    check(chain, 10, total);
    assert_int_equal(total, 2048);
    assert_int_equal(bound, 2048);
}

static void random_lifetimes_never_overlap(void **state) {
    (void)state;
    uint32_t seed = 1;
    for (int round = 0; round < 50; round++) {
        kelp_cpu_interval intervals[MOST];
        uint32_t order[MOST], placed[MOST];
        size_t total = 0, bound = 0;
        for (int i = 0; i < MOST; i++) {
            seed = seed * 1664525u + 1013904223u;
            uint32_t first = seed >> 24;
            seed = seed * 1664525u + 1013904223u;
            intervals[i] =
                (kelp_cpu_interval){(seed >> 12) % 5000 + 1, first, first + (seed >> 8) % 9, 0, 0};
        }
        assert_true(kelp_cpu_memory_plan(intervals, MOST, order, placed, &total, &bound));
        check(intervals, MOST, total);
        assert_true(total >= bound);
        assert_true(total < bound + bound / 4);
    }
}

/* Placing the largest first takes 1.57 times the bound. */
static void wasteful_placement_is_improved(void **state) {
    (void)state;
    kelp_cpu_interval intervals[] = {{576, 4, 5, 0, 0}, {512, 3, 4, 0, 0}, {896, 0, 1, 0, 0},
                                     {576, 2, 3, 0, 0}, {256, 0, 2, 0, 0}, {256, 2, 4, 0, 0},
                                     {768, 5, 6, 0, 0}};
    enum { COUNT = sizeof intervals / sizeof *intervals };
    uint32_t order[COUNT], placed[COUNT];
    size_t total = 0, bound = 0;
    assert_true(kelp_cpu_memory_plan(intervals, COUNT, order, placed, &total, &bound));
    check(intervals, COUNT, total);
    assert_int_equal(total, bound);
}

static void overflowing_sizes_fail(void **state) {
    (void)state;
    kelp_cpu_interval two[2] = {{SIZE_MAX / 2, 0, 1, 0, 0}, {SIZE_MAX / 2, 0, 1, 0, 0}};
    uint32_t order[2], placed[2];
    size_t total, bound;
    assert_false(kelp_cpu_memory_plan(two, 2, order, placed, &total, &bound));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(chain_needs_two_buffers),
        cmocka_unit_test(random_lifetimes_never_overlap),
        cmocka_unit_test(wasteful_placement_is_improved),
        cmocka_unit_test(overflowing_sizes_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
