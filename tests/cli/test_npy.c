/* SPDX-License-Identifier: Apache-2.0 */
/* .npy files: what NumPy writes is read, what Kelp writes reads back, and each malformed file is
 * refused in words. */
#include "base/checked.h"
#include "cli/npy.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include <cmocka.h>

/* A file of format `major`.0 with this header and data. */
static size_t make_file(unsigned major, const char *header, const void *data, size_t bytes,
                        unsigned char *out) {
    size_t length = strlen(header), before = major == 1 ? 10 : 12;
    memcpy(out, "\x93NUMPY", 6);
    out[6] = (unsigned char)major;
    out[7] = 0;
    for (size_t i = 8; i < before; i++)
        out[i] = (unsigned char)(length >> (8 * (i - 8)));
    memcpy(out + before, header, length);
    if (bytes)
        memcpy(out + before + length, data, bytes);
    return before + length + bytes;
}

static void read_ok(unsigned major, const char *header, const void *data, size_t bytes,
                    kelp_array *out) {
    unsigned char file[1024];
    size_t size = make_file(major, header, data, bytes, file);
    kelp_status *status = kelp_npy_parse("x.npy", file, size, out);
    if (status)
        fail_msg("%s", kelp_status_message(status));
}

static void refuse(const char *header, size_t bytes, kelp_code code, const char *part) {
    unsigned char file[2048];
    unsigned char data[512] = {0};
    size_t size = make_file(1, header, data, bytes, file);
    kelp_array array;
    kelp_status *status = kelp_npy_parse("x.npy", file, size, &array);
    if (!status)
        fail_msg("accepted: %s", header);
    assert_int_equal(kelp_status_code(status), code);
    if (!strstr(kelp_status_message(status), part) ||
        !strstr(kelp_status_message(status), "'x.npy'"))
        fail_msg("'%s' lacks '%s'", kelp_status_message(status), part);
    assert_null(array.data);
    kelp_status_free(status);
}

static void numbers_in_every_format(void **state) {
    (void)state;
    const float values[6] = {1, 2, 3, 4, 5, 6};
    for (unsigned major = 1; major <= 3; major++) {
        kelp_array array;
        read_ok(major, "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }   \n", values,
                sizeof values, &array);
        assert_int_equal(array.tensor.dtype, KELP_F32);
        assert_int_equal(array.tensor.rank, 2);
        assert_int_equal(array.tensor.shape[0], 2);
        assert_int_equal(array.tensor.shape[1], 3);
        assert_memory_equal(array.data, values, sizeof values);
        kelp_array_deinit(&array);
    }
}

static void types(void **state) {
    (void)state;
    static const struct {
        const char *descr;
        kelp_dtype dtype;
        size_t bytes;
    } rows[] = {
        {"|b1", KELP_BOOL, 1},   {"|i1", KELP_I8, 1},  {"|u1", KELP_U8, 1},  {"<i2", KELP_I16, 2},
        {"<u2", KELP_U16, 2},    {"<i4", KELP_I32, 4}, {"<u4", KELP_U32, 4}, {"<i8", KELP_I64, 8},
        {"<u8", KELP_U64, 8},    {"<f2", KELP_F16, 2}, {"<f8", KELP_F64, 8}, {"<c8", KELP_C64, 8},
        {"<c16", KELP_C128, 16},
    };
    const unsigned char zeros[16] = {0};
    for (size_t i = 0; i < KELP_COUNT(rows); i++) {
        char header[128];
        snprintf(header, sizeof header, "{'descr': '%s', 'fortran_order': False, 'shape': (1,), }",
                 rows[i].descr);
        kelp_array array;
        read_ok(1, header, zeros, rows[i].bytes, &array);
        assert_int_equal(array.tensor.dtype, rows[i].dtype);
        kelp_array_deinit(&array);
    }
}

static void fortran_order_is_transposed(void **state) {
    (void)state;
    /* [[1,2,3],[4,5,6]] by columns. */
    const int32_t columns[6] = {1, 4, 2, 5, 3, 6}, rows[6] = {1, 2, 3, 4, 5, 6};
    kelp_array array;
    read_ok(1, "{'descr': '<i4', 'fortran_order': True, 'shape': (2, 3), }", columns,
            sizeof columns, &array);
    assert_memory_equal(array.data, rows, sizeof rows);
    kelp_array_deinit(&array);
}

static void scalars_and_empty_arrays(void **state) {
    (void)state;
    const int64_t seven = 7;
    kelp_array array;
    read_ok(1, "{'descr': '<i8', 'fortran_order': False, 'shape': (), }", &seven, sizeof seven,
            &array);
    assert_int_equal(array.tensor.rank, 0);
    assert_int_equal(*(int64_t *)array.data, 7);
    kelp_array_deinit(&array);
    read_ok(1, "{'descr': '<f4', 'fortran_order': False, 'shape': (3, 0), }", NULL, 0, &array);
    assert_int_equal(kelp_tensor_elements(&array.tensor), 0);
    assert_int_equal(array.tensor.shape[0], 3);
    kelp_array_deinit(&array);
}

static void assert_text(const kelp_array *array, size_t i, const char *expected) {
    kelp_string s = ((const kelp_string *)array->data)[i];
    assert_int_equal(s.length, strlen(expected));
    assert_memory_equal(s.data, expected, s.length);
}

static void strings(void **state) {
    (void)state;
    kelp_array array;
    read_ok(1, "{'descr': '|S3', 'fortran_order': False, 'shape': (3,), }", "abcx\0\0\0\0\0", 9,
            &array);
    assert_text(&array, 0, "abc");
    assert_text(&array, 1, "x");
    assert_text(&array, 2, "");
    kelp_array_deinit(&array);
    const uint32_t points[4] = {0xe9, 0x1f600, 'z', 0};
    read_ok(1, "{'descr': '<U2', 'fortran_order': False, 'shape': (2,), }", points, sizeof points,
            &array);
    assert_text(&array, 0, "\xc3\xa9\xf0\x9f\x98\x80");
    assert_text(&array, 1, "z");
    kelp_array_deinit(&array);
}

/* Single bytes have no order; '=' is the order of the machine, and 'a' an old name of 'S'. */
static void orders_of_bytes(void **state) {
    (void)state;
    kelp_array array;
    read_ok(1, "{'descr': '>i1', 'fortran_order': False, 'shape': (2L,)}\0\0", "\xfe\x01", 2,
            &array);
    assert_int_equal(array.tensor.dtype, KELP_I8);
    assert_int_equal(((const int8_t *)array.data)[0], -2);
    kelp_array_deinit(&array);
    read_ok(1, "{'descr': '=i2', 'fortran_order': False, 'shape': (1,)}", "\x02\x01", 2, &array);
    assert_int_equal(*(const int16_t *)array.data, 0x102);
    kelp_array_deinit(&array);
    read_ok(1, "{'descr': '>S2', 'fortran_order': True, 'shape': (2, 2)}", "a\0bbc\0dd", 8, &array);
    assert_text(&array, 0, "a");
    assert_text(&array, 1, "c");
    assert_text(&array, 2, "bb");
    assert_text(&array, 3, "dd");
    kelp_array_deinit(&array);
    read_ok(1, "{'descr': 'a2', 'fortran_order': False, 'shape': ()}", "xy", 2, &array);
    assert_text(&array, 0, "xy");
    kelp_array_deinit(&array);
}

/* Text that is not valid UTF-8 is written as bytes. */
static void only_valid_utf8_is_written_as_unicode(void **state) {
    static const struct {
        const char *text, *descr;
    } rows[] = {
        {"\xf4\x8f\xbf\xbf", "<U1"}, /* U+10FFFF */
        {"\xed\x9f\xbfz", "<U2"},    /* U+D7FF */
        {"\xee\x80\x80", "<U1"},     /* U+E000 */
        {"\xf4\x90\x80\x80", "|S4"}, /* U+110000 */
        {"\xed\xa0\x80", "|S3"},     /* a surrogate */
        {"\xed\xbf\xbf", "|S3"},     /* a surrogate */
        {"\xc1\xbf", "|S2"},         /* more bytes than needed */
        {"\xe0\x9f\xbf", "|S3"},     /* more bytes than needed */
        {"\xc3(", "|S2"},            /* no second byte */
        {"\xe2\x82", "|S2"},         /* no third byte */
        {"\x80", "|S1"},             /* no first byte */
        {"\xf8\x88\x80\x80", "|S4"}, /* no first byte */
    };
    (void)state;
    for (size_t i = 0; i < KELP_COUNT(rows); i++) {
        kelp_string text = {rows[i].text, strlen(rows[i].text)};
        kelp_tensor tensor;
        kelp_array array;
        kelp_buf file;
        assert_null(kelp_tensor_init(&tensor, KELP_STRING, 0, NULL, &text));
        kelp_buf_init(&file, kelp_allocator_system());
        assert_null(kelp_npy_write("out", &tensor, &file));
        if (strstr(file.data + 10, rows[i].descr) == NULL)
            fail_msg("row %zu: expected %s, found %.30s", i, rows[i].descr, file.data + 10);
        assert_null(kelp_npy_parse("out.npy", file.data, file.length, &array));
        assert_text(&array, 0, rows[i].text);
        kelp_array_deinit(&array);
        kelp_buf_deinit(&file);
    }
}

static void what_is_written_reads_back(void **state) {
    (void)state;
    kelp_string words[4] = {
        {"kelp", 4}, {"", 0}, {"\xc3\xa9t\xc3\xa9", 5}, {"\xf0\x9f\x98\x80", 4}};
    const int64_t shape[2] = {2, 2};
    kelp_tensor tensor;
    assert_null(kelp_tensor_init(&tensor, KELP_STRING, 2, shape, words));
    for (int pass = 0; pass < 2; pass++) {
        kelp_buf file;
        kelp_buf_init(&file, kelp_allocator_system());
        assert_null(kelp_npy_write("out", &tensor, &file));
        kelp_array array;
        kelp_status *status = kelp_npy_parse("out.npy", file.data, file.length, &array);
        if (status)
            fail_msg("%s", kelp_status_message(status));
        assert_int_equal(array.tensor.rank, 2);
        for (size_t i = 0; i < 4; i++) {
            kelp_string s = ((const kelp_string *)array.data)[i];
            assert_int_equal(s.length, words[i].length);
            assert_memory_equal(s.data, words[i].data, s.length);
        }
        kelp_array_deinit(&array);
        kelp_buf_deinit(&file);
        words[0] = (kelp_string){"\xff\xfe", 2}; /* no UTF-8: written as bytes */
    }
    uint16_t brain[1] = {0};
    assert_null(kelp_tensor_init(&tensor, KELP_BF16, 0, NULL, brain));
    kelp_buf file;
    kelp_buf_init(&file, kelp_allocator_system());
    kelp_status *status = kelp_npy_write("out", &tensor, &file);
    assert_int_equal(kelp_status_code(status), KELP_UNIMPLEMENTED);
    assert_non_null(strstr(kelp_status_message(status), "bfloat16"));
    kelp_status_free(status);
    kelp_buf_deinit(&file);
}

static void headers_of_written_files_are_aligned(void **state) {
    (void)state;
    static const float zeros[128];
    for (int32_t rank = 0; rank < 7; rank++) {
        const int64_t shape[7] = {2, 2, 2, 2, 2, 2, 2};
        kelp_tensor tensor;
        assert_null(kelp_tensor_init(&tensor, KELP_F32, rank, shape, (void *)(uintptr_t)zeros));
        kelp_buf file;
        kelp_buf_init(&file, kelp_allocator_system());
        assert_null(kelp_npy_write("out", &tensor, &file));
        assert_int_equal((file.length - kelp_tensor_bytes(&tensor)) % 64, 0);
        kelp_array array;
        assert_null(kelp_npy_parse("out.npy", file.data, file.length, &array));
        assert_int_equal(array.tensor.rank, rank);
        kelp_array_deinit(&array);
        kelp_buf_deinit(&file);
    }
}

/* A header of more than 255 bytes. */
static void long_headers_are_written(void **state) {
    (void)state;
    kelp_tensor tensor = {.dtype = KELP_F32, .rank = KELP_MAX_RANK};
    kelp_buf file;
    for (int32_t i = 1; i < KELP_MAX_RANK; i++)
        tensor.shape[i] = 100000000000;
    kelp_buf_init(&file, kelp_allocator_system());
    assert_null(kelp_npy_write("out", &tensor, &file));
    assert_int_equal(file.length, 320);
    assert_int_equal((unsigned char)file.data[8] | (unsigned char)file.data[9] << 8, 310);
    kelp_buf_deinit(&file);
}

#define HEAD(descr, shape) "{'descr': " descr ", 'fortran_order': False, 'shape': " shape ", }"

static void malformed_files_are_refused(void **state) {
    (void)state;
    refuse(HEAD("'<f4'", "(2,)"), 7, KELP_INVALID_ARGUMENT,
           "expected 8 bytes of data after the header, found 7");
    refuse(HEAD("'<f4'", "(2,)"), 9, KELP_INVALID_ARGUMENT, "found 9");
    refuse(HEAD("'<f4'", "(-2,)"), 0, KELP_INVALID_ARGUMENT, "'shape'");
    refuse(HEAD("'<f4'", "(4611686018427387904, 16)"), 0, KELP_INVALID_ARGUMENT, "too large");
    refuse(HEAD("'<f4'", "(99999999999999999999,)"), 0, KELP_INVALID_ARGUMENT, "'shape'");
    refuse(HEAD("'<f4'", "(1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1)"), 4, KELP_INVALID_ARGUMENT,
           "16 dimensions");
    refuse(HEAD("'<f4'", "(2 3)"), 24, KELP_INVALID_ARGUMENT, "expected ',' or ')'");
    refuse(HEAD("'>U1'", "(1,)"), 4, KELP_UNIMPLEMENTED, "is big-endian (dtype '>U1')");
    refuse(HEAD("'<f4'", "2"), 8, KELP_INVALID_ARGUMENT, "tuple");
    refuse(HEAD("'|O'", "(2,)"), 8, KELP_UNIMPLEMENTED, "pickled");
    refuse(HEAD("'|V2'", "(2,)"), 4, KELP_UNIMPLEMENTED, "bfloat16");
    refuse(HEAD("'>f4'", "(2,)"), 8, KELP_UNIMPLEMENTED, "'<f4'");
    refuse(HEAD("'<f16'", "(1,)"), 16, KELP_UNIMPLEMENTED, "'<f16'");
    refuse(HEAD("'<M8[ns]'", "(1,)"), 8, KELP_UNIMPLEMENTED, "M8");
    refuse(HEAD("[('a', '<f4')]", "(1,)"), 4, KELP_UNIMPLEMENTED, "structured");
    refuse(HEAD("'|S'", "(1,)"), 1, KELP_INVALID_ARGUMENT, "length");
    refuse(HEAD("'|S0'", "(4611686018427387904,)"), 0, KELP_INVALID_ARGUMENT, "length 0");
    refuse("{'descr': '<f4', 'shape': (2,), }", 8, KELP_INVALID_ARGUMENT, "missing");
    refuse("{'descr': '<f4', 'fortran_order': Maybe, 'shape': (2,), }", 8, KELP_INVALID_ARGUMENT,
           "fortran_order");
    refuse("{'descr': '<f4', 'colour': 1}", 8, KELP_INVALID_ARGUMENT, "unknown field");
    refuse("{'descr': '<f4', 'fortran_order': False, 'shape': (2,", 0, KELP_INVALID_ARGUMENT,
           "'shape'");
    refuse("{'descr': '<f4", 0, KELP_INVALID_ARGUMENT, "descr");
    refuse("[]", 0, KELP_INVALID_ARGUMENT, "'{'");
    refuse("", 0, KELP_INVALID_ARGUMENT, "'{'");
    refuse(HEAD("'<f4'", "(0,)") "x", 0, KELP_INVALID_ARGUMENT, "after '}'");
}

static void truncated_at_every_byte(void **state) {
    (void)state;
    unsigned char file[256];
    const float values[2] = {1, 2};
    size_t size = make_file(2, HEAD("'<f4'", "(2,)"), values, sizeof values, file);
    for (size_t length = 0; length < size; length++) {
        kelp_array array;
        kelp_status *status = kelp_npy_parse("x.npy", file, length, &array);
        assert_non_null(status);
        kelp_status_free(status);
    }
    file[6] = 4;
    kelp_array array;
    kelp_status *status = kelp_npy_parse("x.npy", file, size, &array);
    assert_int_equal(kelp_status_code(status), KELP_UNIMPLEMENTED);
    kelp_status_free(status);
}

static void a_string_that_is_no_unicode(void **state) {
    (void)state;
    static const uint32_t points[] = {0xd800, 0x110000};
    for (size_t i = 0; i < KELP_COUNT(points); i++) {
        unsigned char file[256];
        size_t size = make_file(1, HEAD("'<U1'", "(1,)"), &points[i], 4, file);
        kelp_array array;
        kelp_status *status = kelp_npy_parse("x.npy", file, size, &array);
        assert_int_equal(kelp_status_code(status), KELP_INVALID_ARGUMENT);
        assert_null(array.data);
        kelp_status_free(status);
    }
}

static void a_file_that_is_not_there(void **state) {
    (void)state;
    kelp_array array;
    kelp_status *status = kelp_npy_load("/no/such.npy", &array);
    assert_int_equal(kelp_status_code(status), KELP_NOT_FOUND);
    kelp_status_free(status);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(numbers_in_every_format),
        cmocka_unit_test(types),
        cmocka_unit_test(fortran_order_is_transposed),
        cmocka_unit_test(scalars_and_empty_arrays),
        cmocka_unit_test(strings),
        cmocka_unit_test(orders_of_bytes),
        cmocka_unit_test(only_valid_utf8_is_written_as_unicode),
        cmocka_unit_test(what_is_written_reads_back),
        cmocka_unit_test(headers_of_written_files_are_aligned),
        cmocka_unit_test(long_headers_are_written),
        cmocka_unit_test(malformed_files_are_refused),
        cmocka_unit_test(truncated_at_every_byte),
        cmocka_unit_test(a_string_that_is_no_unicode),
        cmocka_unit_test(a_file_that_is_not_there),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
