/* SPDX-License-Identifier: Apache-2.0 */
/* Tensors and tables as people and programs see them. */
#include "base/checked.h"
#include "cli/cli.h"
#include "cli/show.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static void shown(kelp_dtype dtype, int32_t rank, const int64_t *shape, const void *data,
                  const char *expected) {
    kelp_tensor tensor;
    assert_null(kelp_tensor_init(&tensor, dtype, rank, shape, (void *)(uintptr_t)data));
    kelp_buf text;
    kelp_buf_init(&text, kelp_allocator_system());
    kelp_show_tensor("y", &tensor, &text);
    assert_string_equal(kelp_buf_cstr(&text), expected);
    kelp_buf_deinit(&text);
}

static void tables(void **state) {
    (void)state;
    const float numbers[4] = {1, -2.5f, 1e-7f, INFINITY};
    shown(KELP_F32, 2, (int64_t[]){2, 2}, numbers,
          "y  float32 [2,2]\n [[    1  -2.5]\n  [1e-07   inf]]\n");
    shown(KELP_F32, 0, NULL, numbers, "y  float32 []\n 1\n");
    shown(KELP_F32, 1, (int64_t[]){0}, NULL, "y  float32 [0]\n (no elements)\n");
    const int64_t whole[3] = {3, -1, INT64_MIN};
    shown(KELP_I64, 1, (int64_t[]){3}, whole,
          "y  int64 [3]\n [                   3                   -1 -9223372036854775808]\n");
    const uint64_t large[2] = {UINT64_MAX, 1};
    shown(KELP_U64, 2, (int64_t[]){1, 2}, large,
          "y  uint64 [1,2]\n [[18446744073709551615                    1]]\n");
    const uint8_t truth[2] = {1, 0};
    shown(KELP_BOOL, 1, (int64_t[]){2}, truth, "y  bool [2]\n [ true false]\n");
    const kelp_string words[2] = {{"a\"b", 3}, {"", 0}};
    shown(KELP_STRING, 1, (int64_t[]){2}, words, "y  string [2]\n [\"a\\\"b\"     \"\"]\n");
    const uint8_t nibbles[1] = {0x7f};
    shown(KELP_I4, 1, (int64_t[]){2}, nibbles, "y  int4 [2]\n [-1  7]\n");
    shown(KELP_U4, 1, (int64_t[]){2}, nibbles, "y  uint4 [2]\n [15  7]\n");
    shown(KELP_U2, 1, (int64_t[]){4}, nibbles, "y  uint2 [4]\n [3 3 3 1]\n");
    shown(KELP_I2, 1, (int64_t[]){4}, nibbles, "y  int2 [4]\n [-1 -1 -1  1]\n");
    shown(KELP_F8E4M3FN, 1, (int64_t[]){1}, nibbles, "y  float8_e4m3fn [1]\n [0x7f]\n");
    const float pair[2] = {1.5f, -2};
    shown(KELP_C64, 1, (int64_t[]){1}, pair, "y  complex64 [1]\n [1.5-2j]\n");
}

static void lists(void **state) {
    (void)state;
    float numbers[2] = {1, 2};
    kelp_tensor items[2], list = {.dtype = KELP_LIST, .rank = 1, .shape = {2}, .data = items};
    for (int i = 0; i < 2; i++)
        assert_null(kelp_tensor_init(&items[i], KELP_F32, 1, (int64_t[]){1}, &numbers[i]));
    static const char *const expected[] = {
        "m  sequence of 2\nm[0]  float32 [1]\n [1]\nm[1]  float32 [1]\n [2]\n",
        "m  optional\nm[0]  float32 [1]\n [1]\nm[1]  float32 [1]\n [2]\n",
        "m  map\nm.keys  float32 [1]\n [1]\nm.values  float32 [1]\n [2]\n"};
    for (int32_t rank = 1; rank <= 3; rank++) {
        kelp_buf text;
        kelp_buf_init(&text, kelp_allocator_system());
        list.rank = rank;
        kelp_show_tensor("m", &list, &text);
        assert_string_equal(kelp_buf_cstr(&text), expected[rank - 1]);
        kelp_buf_deinit(&text);
    }
    kelp_buf text;
    kelp_buf_init(&text, kelp_allocator_system());
    list.rank = 1;
    list.shape[0] = 0;
    kelp_show_tensor("m", &list, &text);
    assert_string_equal(kelp_buf_cstr(&text), "m  sequence of 0, empty\n");
    kelp_buf_deinit(&text);
}

static void long_tensors_show_their_ends(void **state) {
    (void)state;
    static uint8_t bytes[2000];
    for (size_t i = 0; i < sizeof bytes; i++)
        bytes[i] = (uint8_t)(i % 7);
    shown(KELP_U8, 1, (int64_t[]){2000}, bytes, "y  uint8 [2000]\n [0 1 2 ... 2 3 4]\n");
    shown(KELP_U8, 3, (int64_t[]){10, 2, 100}, bytes,
          "y  uint8 [10,2,100]\n"
          " [[[0 1 2 ... 6 0 1]\n   [2 3 4 ... 1 2 3]]\n"
          "  [[4 5 6 ... 3 4 5]\n   [6 0 1 ... 5 6 0]]\n"
          "  [[1 2 3 ... 0 1 2]\n   [3 4 5 ... 2 3 4]]\n"
          "  ...\n"
          "  [[0 1 2 ... 6 0 1]\n   [2 3 4 ... 1 2 3]]\n"
          "  [[4 5 6 ... 3 4 5]\n   [6 0 1 ... 5 6 0]]\n"
          "  [[1 2 3 ... 0 1 2]\n   [3 4 5 ... 2 3 4]]]\n");
}

static void rows_are_lines(void **state) {
    (void)state;
    kelp_table table;
    kelp_buf text;
    kelp_table_init(&table, 2);
    kelp_buf_init(&text, kelp_allocator_system());
    kelp_table_cell(&table, "%s", "model");
    kelp_table_cell(&table, "%s", "UNAVAILABLE: first\nthen\r\nlast");
    kelp_table_cell(&table, "m");
    kelp_table_cell(&table, "READY");
    kelp_table_plain(&table, "", &text);
    assert_string_equal(kelp_buf_cstr(&text),
                        "model  UNAVAILABLE: first then  last\nm      READY\n");
    kelp_buf_deinit(&text);
}

static void json(void **state) {
    (void)state;
    const float numbers[3] = {0.1f, NAN, 3};
    kelp_tensor tensor;
    assert_null(kelp_tensor_init(&tensor, KELP_F32, 1, (int64_t[]){3}, (void *)(uintptr_t)numbers));
    kelp_buf text;
    kelp_buf_init(&text, kelp_allocator_system());
    kelp_json_writer writer;
    kelp_json_writer_init(&writer, &text);
    kelp_show_json("y", &tensor, &writer);
    assert_string_equal(
        kelp_buf_cstr(&text),
        "{\"name\":\"y\",\"datatype\":\"FP32\",\"shape\":[3],\"data\":[0.100000001,NaN,3]}");
    kelp_buf_deinit(&text);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tables),         cmocka_unit_test(lists),
        cmocka_unit_test(rows_are_lines), cmocka_unit_test(long_tensors_show_their_ends),
        cmocka_unit_test(json),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
