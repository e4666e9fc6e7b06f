/* SPDX-License-Identifier: Apache-2.0 */
/* The inputs of a model from a command line: values, shapes, files, random numbers, and the message
 * for each wrong word. */
#include "base/checked.h"
#include "cli/inputs.h"
#include "cli/show.h"

#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

#include "support/check_status.h"

/* An input of [-1,3], and one for each other way to declare a shape. */
static const kelp_io_info infos[] = {
    {.name = "x", .dtype = KELP_F32, .rank = 2, .shape = {-1, 3}},
    {.name = "x=y", .dtype = KELP_I64, .rank = 1, .shape = {2}},
    {.name = "any", .dtype = KELP_F64, .rank = -1},
    {.name = "one", .dtype = KELP_BOOL, .rank = 0},
    {.name = "text", .dtype = KELP_STRING, .rank = 3, .shape = {-1, 1, -1}},
    {.name = "empty", .dtype = KELP_I32, .rank = 2, .shape = {-1, 0}},
};

static kelp_status *init(kelp_inputs *out, const kelp_io_info *of, size_t count, const char *value,
                         const char *shape, kelp_input_fill fill) {
    const kelp_image_options image = {0};
    const kelp_arg_list values = {.items = &value, .count = value != NULL},
                        shapes = {.items = &shape, .count = shape != NULL};
    return kelp_inputs_init(out, of, count, &values, &shapes, &image, fill);
}

static void shows(const kelp_inputs *inputs, size_t index, const char *expected) {
    kelp_buf text;
    kelp_buf_init(&text, kelp_allocator_system());
    kelp_show_tensor("", &inputs->arrays[index].tensor, &text);
    assert_string_equal(kelp_buf_cstr(&text), expected);
    kelp_buf_deinit(&text);
}

/* The values of one input, of which the first two are those of one model. */
static void accepted(size_t index, const char *value, const char *shape, const char *expected) {
    kelp_inputs inputs;
    size_t first = index < 2 ? 0 : index, count = index < 2 ? 2 : 1;
    check_ok(init(&inputs, infos + first, count, value, shape, KELP_FILL_ZERO));
    assert_int_equal(inputs.count, count);
    shows(&inputs, index - first, expected);
    kelp_inputs_deinit(&inputs);
}

static void rejected(const char *value, const char *shape, const char *message) {
    kelp_inputs inputs;
    expect_failure(init(&inputs, infos, KELP_COUNT(infos), value, shape, KELP_FILL_ZERO),
                   KELP_INVALID_ARGUMENT, message);
    assert_null(inputs.arrays);
}

static void values_determine_shapes(void **state) {
    (void)state;
    accepted(0, "x=1,2,3,4,5,6", NULL, "  float32 [2,3]\n [[1 2 3]\n  [4 5 6]]\n");
    accepted(0, "x= 1 ,2,3", NULL, "  float32 [1,3]\n [[1 2 3]]\n");
    accepted(0, "x=1,2,3,4,5,6", "x=3x2", "  float32 [3,2]\n [[1 2]\n  [3 4]\n  [5 6]]\n");
    accepted(0, "x=1,2,3,4", "x=2,2", "  float32 [2,2]\n [[1 2]\n  [3 4]]\n");
    accepted(1, "x=y=7,-8", NULL, "  int64 [2]\n [ 7 -8]\n"); /* the longest name */
    accepted(2, "any=1,2,3", NULL, "  float64 [3]\n [1 2 3]\n");
    accepted(2, "any=5", "any=", "  float64 []\n 5\n");
    accepted(3, "one=true", NULL, "  bool []\n true\n");
    accepted(3, "one=0", NULL, "  bool []\n false\n");
    accepted(4, "text=a, b", NULL, "  string [1,1,2]\n [[[ \"a\" \" b\"]]]\n");
    accepted(5, "empty=", NULL, "  int32 [1,0]\n (no elements)\n");
}

static void shapes_that_do_not_match(void **state) {
    (void)state;
    rejected("x=1,2,3,4", NULL,
             "option '--input': input 'x' has shape [-1,3], which does not match 4 values; specify "
             "'--shape x=…'");
    rejected("x=y=1,2,3", NULL, "input 'x=y' has shape [2], which does not match 3 values");
    rejected("empty=1", NULL, "input 'empty' has shape [-1,0], which does not match 1 values");
    rejected("x=1,2,3", "x=2x2", "input 'x': shape [2,2] does not match 3 values");
    rejected(NULL, "x=2xx2",
             "option '--shape': input 'x': expected dimensions such as 1x3x224x224, found '2xx2'");
    rejected(NULL, "x=-1x3", "found '-1x3'");
    rejected(NULL, "x=1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1", "input 'x': expected dimensions");
    rejected(NULL, "x", "option '--shape': expected NAME=…, found 'x'");
    rejected("z=1", NULL,
             "option '--input': the model has no input 'z'; it has 'x', 'x=y', 'any', 'one', "
             "'text', 'empty'");
    rejected(NULL, NULL, "the model does not declare the rank of input 'any': specify '--shape");
}

/* Values at the limits of each type, and those beyond them. */
static void values_fit_the_type(void **state) {
    static const struct {
        kelp_dtype dtype;
        const char *good, *shown, *bad;
    } rows[] = {
        {KELP_I8, "-128", "int8 [1]\n [-128]", "-129"},
        {KELP_I8, "127", "int8 [1]\n [127]", "128"},
        {KELP_U8, "255", "uint8 [1]\n [255]", "256"},
        {KELP_U8, "0", "uint8 [1]\n [0]", "-1"},
        {KELP_I16, "-32768", "int16 [1]\n [-32768]", "-32769"},
        {KELP_I16, "32767", "int16 [1]\n [32767]", "32768"},
        {KELP_U16, "65535", "uint16 [1]\n [65535]", "65536"},
        {KELP_U16, "0", "uint16 [1]\n [0]", "-1"},
        {KELP_I32, "-2147483648", "int32 [1]\n [-2147483648]", "-2147483649"},
        {KELP_U32, "4294967295", "uint32 [1]\n [4294967295]", "4294967296"},
        {KELP_U32, "0", "uint32 [1]\n [0]", "-1"},
        {KELP_I64, "-9223372036854775808", "int64 [1]\n [-9223372036854775808]",
         "9223372036854775808"},
        {KELP_U64, "18446744073709551615", "uint64 [1]\n [18446744073709551615]", "-1"},
        {KELP_U64, "0", "uint64 [1]\n [0]", "18446744073709551616"},
        {KELP_F16, "0.5", "float16 [1]\n [0.5]", "half"},
        {KELP_BF16, "-2", "bfloat16 [1]\n [-2]", ""},
        {KELP_F32, "1e-3", "float32 [1]\n [0.001]", "1e"},
        {KELP_F64, "0.123456789", "float64 [1]\n [0.123456789]", "1x"},
        {KELP_BOOL, "1", "bool [1]\n [true]", "yes"},
        {KELP_BOOL, "false", "bool [1]\n [false]", "2"},
    };
    (void)state;
    for (size_t i = 0; i < KELP_COUNT(rows); i++) {
        const kelp_io_info info = {.name = "v", .dtype = rows[i].dtype, .rank = 1, .shape = {-1}};
        char word[64], expected[128];
        kelp_inputs inputs;
        snprintf(word, sizeof word, "v=%s", rows[i].good);
        snprintf(expected, sizeof expected, "  %s\n", rows[i].shown);
        check_ok(init(&inputs, &info, 1, word, NULL, KELP_FILL_NONE));
        shows(&inputs, 0, expected);
        kelp_inputs_deinit(&inputs);
        snprintf(word, sizeof word, "v=%s,%s", rows[i].good, rows[i].bad);
        snprintf(expected, sizeof expected, "option '--input': input 'v' (%s): invalid value 2: ",
                 kelp_dtype_name(rows[i].dtype));
        expect_failure(init(&inputs, &info, 1, word, NULL, KELP_FILL_NONE), KELP_INVALID_ARGUMENT,
                       expected);
    }
}

static void missing_inputs_are_named(void **state) {
    kelp_inputs inputs;
    const kelp_io_info list = {.name = "l", .dtype = KELP_LIST, .rank = 1};
    (void)state;
    expect_failure(init(&inputs, infos, 1, NULL, NULL, KELP_FILL_NONE), KELP_INVALID_ARGUMENT,
                   "missing input 'x' (float32 [-1,3]): specify '--input x=@file.npy', values or "
                   "'--random'");
    expect_failure(init(&inputs, infos + 2, 1, NULL, NULL, KELP_FILL_NONE), KELP_INVALID_ARGUMENT,
                   "missing input 'any' (float64 of any shape)");
    expect_failure(init(&inputs, &list, 1, NULL, NULL, KELP_FILL_ZERO), KELP_UNIMPLEMENTED,
                   "input 'l' is a sequence: the command line supports tensors only");
    expect_failure(init(&inputs, &list, 1, "l=1", NULL, KELP_FILL_ZERO), KELP_UNIMPLEMENTED,
                   "input 'l' is a sequence");
    const char *twice[2] = {"x=1,2,3", "x=4,5,6"};
    const kelp_arg_list values = {.items = twice, .count = 2};
    expect_failure(kelp_inputs_init(&inputs, infos, 1, &values, NULL, NULL, KELP_FILL_NONE),
                   KELP_INVALID_ARGUMENT, "option '--input': input 'x' is specified twice");
}

/* Random inputs are the same in every run: floats in [0, 1), other elements 0 or 1. */
static void random_inputs(void **state) {
    static const kelp_dtype dtypes[] = {KELP_F32, KELP_F64, KELP_F16,  KELP_BF16,  KELP_I8,
                                        KELP_U8,  KELP_I64, KELP_BOOL, KELP_STRING};
    (void)state;
    for (size_t i = 0; i < KELP_COUNT(dtypes); i++) {
        const kelp_io_info info = {.name = "r", .dtype = dtypes[i], .rank = 2, .shape = {-1, 64}};
        kelp_inputs inputs, again;
        size_t large = 0;
        check_ok(init(&inputs, &info, 1, NULL, NULL, KELP_FILL_RANDOM));
        check_ok(init(&again, &info, 1, NULL, NULL, KELP_FILL_RANDOM));
        const kelp_tensor *tensor = &inputs.arrays[0].tensor;
        assert_int_equal(tensor->shape[0], 1);
        for (size_t at = 0; at < 64; at++) {
            double real = 0;
            int64_t whole = 0;
            if (dtypes[i] == KELP_STRING) {
                kelp_string s = ((const kelp_string *)tensor->data)[at];
                assert_true(s.length == 0 || (s.length == 4 && memcmp(s.data, "kelp", 4) == 0));
                large += s.length == 4;
            } else if (dtypes[i] == KELP_BOOL) {
                large += ((const uint8_t *)tensor->data)[at] == 1;
            } else if (kelp_show_real(tensor, at, &real)) {
                assert_true(real >= 0 && real <= 1);
                large += real >= 0.5;
            } else {
                assert_true(kelp_show_whole(tensor, at, &whole) && (whole == 0 || whole == 1));
                large += whole == 1;
            }
        }
        assert_in_range(large, 16, 48);
        if (dtypes[i] != KELP_STRING)
            assert_memory_equal(tensor->data, again.arrays[0].data, kelp_tensor_bytes(tensor));
        kelp_inputs_deinit(&inputs);
        kelp_inputs_deinit(&again);
    }
}

static void files(void **state) {
    char path[] = "/tmp/kelp-inputs-XXXXXX", word[64];
    const float values[6] = {1, 2, 3, 4, 5, 6};
    kelp_tensor tensor;
    kelp_inputs inputs;
    (void)state;
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    close(fd);
    check_ok(kelp_tensor_init(&tensor, KELP_F32, 2, (int64_t[]){2, 3}, (void *)(uintptr_t)values));
    check_ok(kelp_npy_save(path, "y", &tensor));
    snprintf(word, sizeof word, "x=@%s", path);
    check_ok(init(&inputs, infos, 1, word, NULL, KELP_FILL_NONE));
    shows(&inputs, 0, "  float32 [2,3]\n [[1 2 3]\n  [4 5 6]]\n");
    kelp_inputs_deinit(&inputs);
    check_ok(init(&inputs, infos, 1, word, "x=1x6", KELP_FILL_NONE));
    shows(&inputs, 0, "  float32 [1,6]\n [[1 2 3 4 5 6]]\n");
    kelp_inputs_deinit(&inputs);
    expect_failure(init(&inputs, infos, 1, word, "x=7", KELP_FILL_NONE), KELP_INVALID_ARGUMENT,
                   "' has a different number of elements");
    assert_int_equal(unlink(path), 0);
    expect_failure(init(&inputs, infos, 1, word, NULL, KELP_FILL_NONE), KELP_NOT_FOUND,
                   "cannot read input 'x'");
    snprintf(word, sizeof word, "@%s", path);
    expect_failure(init(&inputs, infos, 1, word, NULL, KELP_FILL_NONE), KELP_NOT_FOUND, path);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values_determine_shapes), cmocka_unit_test(shapes_that_do_not_match),
        cmocka_unit_test(values_fit_the_type),     cmocka_unit_test(missing_inputs_are_named),
        cmocka_unit_test(random_inputs),           cmocka_unit_test(files),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
