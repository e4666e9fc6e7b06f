/* SPDX-License-Identifier: Apache-2.0 */
/* Tensor data between JSON text and bytes. */
#include "frontends/tensor/tensor.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static kelp_status *read_text(kelp_arena *arena, TRITONSERVER_DataType type, uint64_t count,
                              const char *text, kelp_v2_data *data, size_t *position) {
    *position = 0;
    return kelp_v2_read_data(arena, "x", type, count, "[n]", text, strlen(text), position, data);
}

/* Reads `count` elements and writes them again as `expected`. */
static void round_trip(TRITONSERVER_DataType type, uint64_t count, const char *text,
                       const char *expected) {
    kelp_arena arena;
    kelp_arena_init(&arena, kelp_allocator_system(), 0);
    kelp_v2_data data;
    size_t position;
    kelp_status *status = read_text(&arena, type, count, text, &data, &position);
    if (status)
        fail_msg("%s: %s", text, kelp_status_message(status));
    assert_int_equal(position, strlen(text));
    kelp_buf out;
    kelp_buf_init(&out, kelp_allocator_system());
    assert_null(kelp_v2_write_data(&out, "y", type, data.bytes, data.size_bytes, false));
    assert_string_equal(kelp_buf_cstr(&out), expected);
    kelp_buf_deinit(&out);
    kelp_arena_deinit(&arena);
}

static void rejected(TRITONSERVER_DataType type, uint64_t count, const char *text,
                     const char *words) {
    kelp_arena arena;
    kelp_arena_init(&arena, kelp_allocator_system(), 0);
    kelp_v2_data data;
    size_t position;
    kelp_status *status = read_text(&arena, type, count, text, &data, &position);
    if (!status)
        fail_msg("%s was taken", text);
    assert_int_equal(kelp_status_code(status), KELP_INVALID_ARGUMENT);
    if (!strstr(kelp_status_message(status), words) || !strstr(kelp_status_message(status), "'x'"))
        fail_msg("%s: '%s' does not say '%s'", text, kelp_status_message(status), words);
    kelp_status_free(status);
    kelp_arena_deinit(&arena);
}

static void values_survive_a_round_trip(void **state) {
    (void)state;
    round_trip(TRITONSERVER_TYPE_BOOL, 4, "[true, false,1,0]", "[true,false,true,false]");
    round_trip(TRITONSERVER_TYPE_INT8, 3, "[-128,0,127]", "[-128,0,127]");
    round_trip(TRITONSERVER_TYPE_UINT8, 2, "[0,255]", "[0,255]");
    round_trip(TRITONSERVER_TYPE_INT16, 2, "[-32768,32767]", "[-32768,32767]");
    round_trip(TRITONSERVER_TYPE_UINT16, 2, "[0,65535]", "[0,65535]");
    round_trip(TRITONSERVER_TYPE_INT32, 2, "[-2147483648,2147483647]", "[-2147483648,2147483647]");
    round_trip(TRITONSERVER_TYPE_UINT32, 1, "[4294967295]", "[4294967295]");
    round_trip(TRITONSERVER_TYPE_INT64, 2, "[-9223372036854775808,9223372036854775807]",
               "[-9223372036854775808,9223372036854775807]");
    round_trip(TRITONSERVER_TYPE_UINT64, 1, "[18446744073709551615]", "[18446744073709551615]");
    round_trip(TRITONSERVER_TYPE_FP32, 5, "[0.1,1,-2.5e-3,NaN,-Infinity]",
               "[0.1,1.0,-0.0025,NaN,-Infinity]");
    round_trip(TRITONSERVER_TYPE_FP64, 4, "[0.1,12345678901234567890,1E+300,Infinity]",
               "[0.1,1.2345678901234567e+19,1e+300,Infinity]");
    round_trip(TRITONSERVER_TYPE_FP16, 3, "[0.5,65504,-0.1]", "[0.5,65504.0,-0.099975586]");
    round_trip(TRITONSERVER_TYPE_BF16, 2, "[1.5,-2]", "[1.5,-2.0]");
    round_trip(TRITONSERVER_TYPE_BYTES, 3, "[\"\",\"a\\\"b\",\"\\u00e9\"]",
               "[\"\",\"a\\\"b\",\"\xc3\xa9\"]");
    round_trip(TRITONSERVER_TYPE_INT32, 0, "[]", "[]");
    round_trip(TRITONSERVER_TYPE_INT32, 0, "[[],[]]", "[]");
    round_trip(TRITONSERVER_TYPE_INT32, 4, " [ [1, 2] ,\n[3,4 ]]", "[1,2,3,4]");
}

static void invalid_data_is_rejected(void **state) {
    (void)state;
    rejected(TRITONSERVER_TYPE_INT8, 1, "[128]", "does not fit");
    rejected(TRITONSERVER_TYPE_UINT8, 1, "[-1]", "does not fit");
    rejected(TRITONSERVER_TYPE_INT64, 1, "[9223372036854775808]", "does not fit");
    rejected(TRITONSERVER_TYPE_UINT64, 1, "[18446744073709551616]", "does not fit");
    rejected(TRITONSERVER_TYPE_INT32, 1, "[1.0]", "not an integer");
    rejected(TRITONSERVER_TYPE_INT32, 1, "[1e3]", "not an integer");
    rejected(TRITONSERVER_TYPE_FP32, 1, "[01]", "leading zero");
    rejected(TRITONSERVER_TYPE_FP32, 1, "[1.]", "after the point");
    rejected(TRITONSERVER_TYPE_FP32, 1, "[1e]", "not a number");
    rejected(TRITONSERVER_TYPE_FP32, 1, "[+1]", "not a number");
    rejected(TRITONSERVER_TYPE_FP32, 1, "[nan]", "not a number");
    rejected(TRITONSERVER_TYPE_FP32, 1, "[\"1\"]", "not a number");
    rejected(TRITONSERVER_TYPE_FP32, 2, "[1 2]", "expected ','");
    rejected(TRITONSERVER_TYPE_FP32, 2, "[1,]", "not a number");
    rejected(TRITONSERVER_TYPE_FP32, 1, "1", "not an array");
    rejected(TRITONSERVER_TYPE_FP32, 1, "[1", "not closed");
    rejected(TRITONSERVER_TYPE_FP32, 1, "", "not closed");
    rejected(TRITONSERVER_TYPE_FP32, 3, "[1,2]", "expected 3 data elements for shape [n], found 2");
    rejected(TRITONSERVER_TYPE_FP32, 1, "[1,2]", "expected 1 data elements for shape [n], found 2");
    rejected(TRITONSERVER_TYPE_FP64, UINT64_MAX / 8, "[1]", "found 1");
    rejected(TRITONSERVER_TYPE_BYTES, 1, "[1]", "not a string");
    rejected(TRITONSERVER_TYPE_BYTES, 1, "[\"a]", "unterminated string");
    rejected(TRITONSERVER_TYPE_BYTES, 1, "[\"a\\", "unterminated string");
    char deep[300];
    memset(deep, '[', 150);
    memset(deep + 150, ']', 150);
    deep[299] = 0;
    rejected(TRITONSERVER_TYPE_FP32, 1, deep, "100 deep");
    rejected(TRITONSERVER_TYPE_BOOL, 1, "[\"false\"]", "non-boolean as boolean");
    rejected(TRITONSERVER_TYPE_BOOL, 1, "[123]", "non-boolean as boolean");
}

static void invalid_strings_of_a_model_are_rejected(void **state) {
    (void)state;
    kelp_buf out;
    kelp_buf_init(&out, kelp_allocator_system());
    kelp_status *status =
        kelp_v2_write_data(&out, "y", TRITONSERVER_TYPE_BYTES, "\5\0\0\0ab", 6, false);
    assert_int_equal(kelp_status_code(status), KELP_INTERNAL);
    kelp_status_free(status);
    status = kelp_v2_write_data(&out, "y", TRITONSERVER_TYPE_BYTES, "\0\0", 2, false);
    assert_int_equal(kelp_status_code(status), KELP_INTERNAL);
    kelp_status_free(status);
    kelp_buf_deinit(&out);
}

static void text_that_is_not_utf8_is_rejected_or_replaced(void **state) {
    static const char bytes[] = "\2\0\0\0ab\3\0\0\0a\xfa\x03";
    (void)state;
    kelp_buf out;
    kelp_buf_init(&out, kelp_allocator_system());
    kelp_status *status = kelp_v2_write_data(&out, "y", TRITONSERVER_TYPE_BYTES, bytes, 13, false);
    assert_int_equal(kelp_status_code(status), KELP_INVALID_ARGUMENT);
    assert_non_null(strstr(kelp_status_message(status), "output 'y': element 1 is not UTF-8"));
    kelp_status_free(status);
    kelp_buf_clear(&out);
    assert_null(kelp_v2_write_data(&out, "y", TRITONSERVER_TYPE_BYTES, bytes, 13, true));
    assert_string_equal(kelp_buf_cstr(&out), "[\"ab\",\"a\xEF\xBF\xBD\\u0003\"]");
    kelp_buf_deinit(&out);
}

static void element_counts_are_checked(void **state) {
    (void)state;
    uint64_t count;
    assert_true(kelp_v2_element_count((int64_t[]){2, 3, 4}, 3, &count));
    assert_int_equal(count, 24);
    assert_true(kelp_v2_element_count(NULL, 0, &count));
    assert_int_equal(count, 1);
    assert_true(kelp_v2_element_count((int64_t[]){2, 0}, 2, &count));
    assert_int_equal(count, 0);
    assert_false(kelp_v2_element_count((int64_t[]){2, -1}, 2, &count));
    assert_false(kelp_v2_element_count((int64_t[]){INT64_MAX, 3}, 2, &count));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values_survive_a_round_trip),
        cmocka_unit_test(invalid_data_is_rejected),
        cmocka_unit_test(invalid_strings_of_a_model_are_rejected),
        cmocka_unit_test(text_that_is_not_utf8_is_rejected_or_replaced),
        cmocka_unit_test(element_counts_are_checked),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
