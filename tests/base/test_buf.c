/* SPDX-License-Identifier: Apache-2.0 */
/* The growing buffer and its sticky failure. */
#include "base/buf.h"

#include "base/alloc.h"
#include "support/failing_allocator.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

static void appends(void **state) {
    (void)state;
    test_failing memory;
    kelp_buf buf;
    test_failing_init(&memory, 0);
    kelp_buf_init(&buf, test_failing_allocator(&memory));
    assert_string_equal(kelp_buf_cstr(&buf), "");
    kelp_buf_append(&buf, "ab", 2);
    kelp_buf_append_str(&buf, KELP_STR("cd"));
    kelp_buf_append_str(&buf, (kelp_str){NULL, 0});
    kelp_buf_append_cstr(&buf, "ef");
    kelp_buf_append_char(&buf, '|');
    kelp_buf_append_i64(&buf, INT64_MIN);
    kelp_buf_append_char(&buf, '|');
    kelp_buf_append_u64(&buf, UINT64_MAX);
    kelp_buf_append_char(&buf, '|');
    kelp_buf_append_i64(&buf, 0);
    kelp_buf_append_f64(&buf, 0.25);
    kelp_buf_printf(&buf, "|%s%d", "long enough to make the buffer grow once or twice ", 5);
    assert_string_equal(kelp_buf_cstr(&buf),
                        "abcdef|-9223372036854775808|18446744073709551615|00.25|long enough to make"
                        " the buffer grow once or twice 5");
    assert_int_equal(buf.length, strlen(buf.data));
    assert_null(kelp_buf_status(&buf));
    kelp_buf_clear(&buf);
    assert_string_equal(kelp_buf_cstr(&buf), "");
    kelp_buf_deinit(&buf);
    test_failing_check(&memory);
    test_failing_deinit(&memory);
}

static void failure_sticks(void **state) {
    (void)state;
    for (uint64_t n = 1; n <= 3; n++) {
        test_failing memory;
        kelp_buf buf;
        test_failing_init(&memory, n);
        kelp_buf_init(&buf, test_failing_allocator(&memory));
        for (int i = 0; i < 20; i++)
            kelp_buf_printf(&buf, "%d: some text\n", i);
        assert_true(buf.failed);
        assert_null(kelp_buf_cstr(&buf));
        assert_null(kelp_buf_reserve(&buf, 1));
        assert_int_equal(kelp_status_code(kelp_buf_status(&buf)), KELP_RESOURCE_EXHAUSTED);
        kelp_buf_clear(&buf);
        kelp_buf_append_cstr(&buf, "again");
        assert_string_equal(kelp_buf_cstr(&buf), "again");
        kelp_buf_deinit(&buf);
        test_failing_check(&memory);
        test_failing_deinit(&memory);
    }
}

static void limit_is_exact(void **state) {
    (void)state;
    kelp_buf buf;
    kelp_buf_init(&buf, kelp_allocator_system());
    buf.limit_bytes = 64;
    for (int i = 0; i < 64; i++)
        kelp_buf_append_char(&buf, 'x');
    assert_int_equal(strlen(kelp_buf_cstr(&buf)), 64);
    kelp_buf_append_char(&buf, 'x');
    kelp_status *status = kelp_buf_status(&buf);
    assert_int_equal(kelp_status_code(status), KELP_RESOURCE_EXHAUSTED);
    assert_non_null(strstr(kelp_status_message(status), "64"));
    kelp_status_free(status);
    kelp_buf_clear(&buf);
    kelp_buf_printf(&buf, "%65s", "");
    assert_true(buf.failed);
    kelp_buf_clear(&buf);
    assert_null(kelp_buf_reserve(&buf, SIZE_MAX));
    kelp_buf_deinit(&buf);
}

static void reserve_and_take(void **state) {
    (void)state;
    test_failing memory;
    kelp_buf buf;
    size_t length;
    size_t capacity;
    test_failing_init(&memory, 0);
    kelp_allocator allocator = test_failing_allocator(&memory);
    kelp_buf_init(&buf, allocator);
    memcpy(kelp_buf_reserve(&buf, 1000), "hello", 5);
    buf.length += 5;
    char *data = kelp_buf_take(&buf, &length, &capacity);
    assert_int_equal(length, 5);
    assert_true(capacity >= 1000);
    assert_memory_equal(data, "hello", 5);
    kelp_free(allocator, data, capacity);
    kelp_buf_append_cstr(&buf, "fresh");
    assert_string_equal(kelp_buf_cstr(&buf), "fresh");
    kelp_buf_deinit(&buf);
    test_failing_check(&memory);
    test_failing_deinit(&memory);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(appends),
        cmocka_unit_test(failure_sticks),
        cmocka_unit_test(limit_is_exact),
        cmocka_unit_test(reserve_and_take),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
