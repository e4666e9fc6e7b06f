/* SPDX-License-Identifier: Apache-2.0 */
/* The string map. */
#include "base/map.h"

#include "support/failing_allocator.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>

static char key_text[2000][8];
static int values[2000];

static int make_keys(void **state) {
    (void)state;
    for (int i = 0; i < 2000; i++)
        (void)snprintf(key_text[i], sizeof(key_text[i]), "k%d", i);
    return 0;
}

static kelp_str key(int i) {
    return kelp_str_from(key_text[i]);
}

static void put_find_remove(void **state) {
    (void)state;
    test_failing memory;
    kelp_map map;
    test_failing_init(&memory, 0);
    kelp_map_init(&map, test_failing_allocator(&memory));
    assert_false(kelp_map_find(&map, key(0), NULL));
    assert_null(kelp_map_remove(&map, key(0)));
    assert_null(kelp_map_next(&map, NULL));
    for (int i = 0; i < 2000; i++)
        assert_null(kelp_map_put(&map, key(i), &values[i]));
    assert_int_equal(map.count, 2000);
    for (int i = 0; i < 2000; i += 2)
        assert_ptr_equal(kelp_map_remove(&map, key(i)), &values[i]);
    for (int i = 0; i < 2000; i++)
        assert_ptr_equal(kelp_map_get(&map, key(i)), i % 2 ? &values[i] : NULL);
    /* Replacing changes neither the count nor the order. */
    assert_null(kelp_map_put(&map, key(1), &values[0]));
    assert_int_equal(map.count, 1000);
    int expected = 1;
    for (kelp_map_entry *e = NULL; (e = kelp_map_next(&map, e));) {
        assert_true(kelp_str_equal(e->key, key(expected)));
        expected += 2;
    }
    assert_int_equal(expected, 2001);
    kelp_map_deinit(&map);
    test_failing_check(&memory);
    test_failing_deinit(&memory);
}

static void churn_does_not_grow(void **state) {
    (void)state;
    test_failing memory;
    kelp_map map;
    test_failing_init(&memory, 0);
    kelp_map_init(&map, test_failing_allocator(&memory));
    for (int round = 0; round < 50; round++) {
        for (int i = 0; i < 2000; i++) {
            assert_null(kelp_map_put(&map, key(i), &values[i]));
            if (i >= 5)
                assert_ptr_equal(kelp_map_remove(&map, key(i - 5)), &values[i - 5]);
        }
        for (int i = 1995; i < 2000; i++)
            assert_ptr_equal(kelp_map_remove(&map, key(i)), &values[i]);
    }
    assert_int_equal(map.count, 0);
    assert_true(memory.peak_bytes < 4096);
    kelp_map_deinit(&map);
    test_failing_check(&memory);
    test_failing_deinit(&memory);
}

static void removal_while_walking(void **state) {
    (void)state;
    kelp_map map;
    kelp_map_init(&map, kelp_allocator_system());
    for (int i = 0; i < 100; i++)
        assert_null(kelp_map_put(&map, key(i), &values[i]));
    for (kelp_map_entry *e = NULL; (e = kelp_map_next(&map, e));)
        assert_non_null(kelp_map_remove(&map, e->key));
    assert_int_equal(map.count, 0);
    kelp_map_deinit(&map);
}

static void failed_put_changes_nothing(void **state) {
    (void)state;
    int failures = 0;
    for (uint64_t n = 1; n <= 8; n++) {
        test_failing memory;
        kelp_map map;
        test_failing_init(&memory, n);
        kelp_map_init(&map, test_failing_allocator(&memory));
        for (int i = 0; i < 100; i++) {
            kelp_status *status = kelp_map_put(&map, key(i), &values[i]);
            if (status) {
                failures++;
                assert_int_equal(kelp_status_code(status), KELP_RESOURCE_EXHAUSTED);
                assert_int_equal(map.count, i);
                assert_false(kelp_map_find(&map, key(i), NULL));
                kelp_status_free(status);
                assert_null(kelp_map_put(&map, key(i), &values[i]));
            }
        }
        for (int i = 0; i < 100; i++)
            assert_ptr_equal(kelp_map_get(&map, key(i)), &values[i]);
        kelp_map_deinit(&map);
        test_failing_check(&memory);
        test_failing_deinit(&memory);
    }
    assert_int_equal(failures, 8);
}

static void keys_are_bytes(void **state) {
    (void)state;
    kelp_map map;
    kelp_map_init(&map, kelp_allocator_system());
    assert_null(kelp_map_put(&map, (kelp_str){NULL, 0}, &values[0]));
    assert_null(kelp_map_put(&map, (kelp_str){"a\0b", 3}, &values[1]));
    assert_null(kelp_map_put(&map, KELP_STR("a"), &values[2]));
    assert_ptr_equal(kelp_map_get(&map, KELP_STR("")), &values[0]);
    assert_ptr_equal(kelp_map_get(&map, (kelp_str){"a\0b", 3}), &values[1]);
    assert_ptr_equal(kelp_map_get(&map, KELP_STR("a")), &values[2]);
    kelp_map_deinit(&map);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(put_find_remove),       cmocka_unit_test(churn_does_not_grow),
        cmocka_unit_test(removal_while_walking), cmocka_unit_test(failed_put_changes_nothing),
        cmocka_unit_test(keys_are_bytes),
    };
    return cmocka_run_group_tests(tests, make_keys, NULL);
}
