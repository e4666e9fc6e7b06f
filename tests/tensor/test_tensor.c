/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of element types, shapes, descriptors, and the conversion to and from DLPack. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include <kelp/tensor.h>

static void expect_code(kelp_status *status, kelp_code code) {
    assert_int_equal(kelp_status_code(status), code);
    kelp_status_free(status);
}

static void every_type_has_a_width_and_a_name_that_parses(void **state) {
    (void)state;
    for (int i = 1; i < KELP_DTYPE_COUNT; i++) {
        kelp_dtype dtype = (kelp_dtype)i;
        assert_true(kelp_dtype_bits(dtype) > 0);
        assert_int_equal(kelp_dtype_parse(kelp_dtype_name(dtype)), dtype);
        if (kelp_dtype_triton_name(dtype) != NULL)
            assert_int_equal(kelp_dtype_parse(kelp_dtype_triton_name(dtype)), dtype);
    }
}

static void names_of_triton_and_onnx_are_parsed(void **state) {
    (void)state;
    assert_int_equal(kelp_dtype_parse("FP32"), KELP_F32);
    assert_int_equal(kelp_dtype_parse("TYPE_FP16"), KELP_F16);
    assert_int_equal(kelp_dtype_parse("BYTES"), KELP_STRING);
    assert_int_equal(kelp_dtype_parse("TYPE_STRING"), KELP_STRING);
    assert_int_equal(kelp_dtype_parse("DOUBLE"), KELP_F64);
    assert_int_equal(kelp_dtype_parse("bfloat16"), KELP_BF16);
    assert_int_equal(kelp_dtype_parse("INT4"), KELP_I4);
    assert_int_equal(kelp_dtype_parse("FLOAT99"), KELP_DTYPE_INVALID);
    assert_int_equal(kelp_dtype_parse(""), KELP_DTYPE_INVALID);
    assert_int_equal(kelp_dtype_parse(NULL), KELP_DTYPE_INVALID);
    assert_null(kelp_dtype_triton_name(KELP_C64));
    assert_string_equal(kelp_dtype_name((kelp_dtype)77), "invalid");
    assert_int_equal(kelp_dtype_bits((kelp_dtype)-1), 0);
}

static void sub_byte_elements_are_packed(void **state) {
    (void)state;
    size_t bytes = 0;
    assert_true(kelp_dtype_bytes(KELP_U4, 3, &bytes));
    assert_int_equal(bytes, 2);
    assert_true(kelp_dtype_bytes(KELP_I2, 5, &bytes));
    assert_int_equal(bytes, 2);
    assert_true(kelp_dtype_bytes(KELP_F6E2M3, 3, &bytes));
    assert_int_equal(bytes, 3);
    assert_true(kelp_dtype_bytes(KELP_C128, 2, &bytes));
    assert_int_equal(bytes, 32);
    assert_false(kelp_dtype_bytes(KELP_F64, INT64_MAX, &bytes));
    assert_false(kelp_dtype_bytes(KELP_F32, -1, &bytes));
    assert_false(kelp_dtype_bytes(KELP_DTYPE_INVALID, 1, &bytes));
}

static void elements_are_counted_without_overflow(void **state) {
    (void)state;
    int64_t elements = -1;
    assert_true(kelp_shape_elements(0, NULL, &elements));
    assert_int_equal(elements, 1);
    assert_true(kelp_shape_elements(3, (int64_t[]){2, 3, 4}, &elements));
    assert_int_equal(elements, 24);
    assert_true(kelp_shape_elements(2, (int64_t[]){5, 0}, &elements));
    assert_int_equal(elements, 0);
    assert_false(kelp_shape_elements(2, (int64_t[]){INT64_MAX, 2}, &elements));
    assert_false(kelp_shape_elements(2, (int64_t[]){3, -1}, &elements));
}

static void a_descriptor_is_compact_and_row_major(void **state) {
    (void)state;
    kelp_tensor tensor;
    float data[24];
    assert_null(kelp_tensor_init(&tensor, KELP_F32, 3, (int64_t[]){2, 3, 4}, data));
    assert_int_equal(tensor.strides[0], 12);
    assert_int_equal(tensor.strides[1], 4);
    assert_int_equal(tensor.strides[2], 1);
    assert_int_equal(kelp_tensor_elements(&tensor), 24);
    assert_int_equal(kelp_tensor_bytes(&tensor), 96);
    assert_true(kelp_tensor_is_compact(&tensor));
    tensor.strides[0] = 24;
    assert_false(kelp_tensor_is_compact(&tensor));
    tensor.shape[0] = 1; /* the stride of a dimension of 1 is ignored */
    assert_true(kelp_tensor_is_compact(&tensor));
}

static void invalid_ranks_types_and_shapes_are_rejected(void **state) {
    (void)state;
    kelp_tensor tensor;
    int64_t many[KELP_MAX_RANK + 1];
    for (int i = 0; i <= KELP_MAX_RANK; i++)
        many[i] = 1;
    assert_null(kelp_tensor_init(&tensor, KELP_U8, KELP_MAX_RANK, many, NULL));
    expect_code(kelp_tensor_init(&tensor, KELP_U8, KELP_MAX_RANK + 1, many, NULL),
                KELP_INVALID_ARGUMENT);
    expect_code(kelp_tensor_init(&tensor, KELP_U8, 1, (int64_t[]){-1}, NULL),
                KELP_INVALID_ARGUMENT);
    expect_code(kelp_tensor_init(&tensor, KELP_U8, -1, many, NULL), KELP_INVALID_ARGUMENT);
    expect_code(kelp_tensor_init(&tensor, (kelp_dtype)99, 1, many, NULL), KELP_INVALID_ARGUMENT);
    expect_code(kelp_tensor_init(&tensor, KELP_F64, 2, (int64_t[]){1LL << 40, 1LL << 40}, NULL),
                KELP_INVALID_ARGUMENT);
}

static void types_survive_dlpack(void **state) {
    (void)state;
    for (int i = 1; i < KELP_DTYPE_COUNT; i++) {
        kelp_dtype dtype = (kelp_dtype)i;
        kelp_tensor tensor, back;
        DLTensor dl;
        char data[64];
        assert_null(kelp_tensor_init(&tensor, dtype, 2, (int64_t[]){1, 2}, data));
        kelp_status *status = kelp_tensor_to_dl(&tensor, &dl);
        if (status != NULL) { /* strings, and 6 bits stored in 8 */
            assert_true(dtype == KELP_STRING || dtype == KELP_F6E2M3 || dtype == KELP_F6E3M2);
            expect_code(status, KELP_UNIMPLEMENTED);
            continue;
        }
        assert_ptr_equal(dl.data, data);
        assert_ptr_equal(dl.shape, tensor.shape);
        assert_null(kelp_tensor_from_dl(&dl, &back));
        assert_int_equal(back.dtype, dtype);
        assert_int_equal(back.shape[1], 2);
        assert_ptr_equal(back.data, data);
    }
}

static void strides_and_offsets_come_from_dlpack(void **state) {
    (void)state;
    int64_t shape[2] = {2, 3}, strides[2] = {1, 2};
    int32_t data[8];
    DLTensor dl = {.data = data,
                   .device = {kDLCPU, 0},
                   .ndim = 2,
                   .dtype = {kDLInt, 32, 1},
                   .shape = shape,
                   .strides = strides,
                   .byte_offset = 4};
    kelp_tensor tensor;
    assert_null(kelp_tensor_from_dl(&dl, &tensor));
    assert_int_equal(tensor.dtype, KELP_I32);
    assert_ptr_equal(tensor.data, &data[1]);
    assert_int_equal(tensor.strides[1], 2);
    assert_false(kelp_tensor_is_compact(&tensor));
    dl.strides = NULL;
    assert_null(kelp_tensor_from_dl(&dl, &tensor));
    assert_int_equal(tensor.strides[0], 3);
}

static void unsupported_dlpack_tensors_are_rejected(void **state) {
    (void)state;
    int64_t shape[1] = {-2};
    kelp_tensor tensor;
    DLTensor dl = {.ndim = 1, .dtype = {kDLFloat, 32, 4}, .shape = shape};
    expect_code(kelp_tensor_from_dl(&dl, &tensor), KELP_UNIMPLEMENTED);
    dl.dtype = (DLDataType){kDLFloat, 80, 1};
    expect_code(kelp_tensor_from_dl(&dl, &tensor), KELP_UNIMPLEMENTED);
    dl.dtype = (DLDataType){kDLFloat, 32, 1};
    expect_code(kelp_tensor_from_dl(&dl, &tensor), KELP_INVALID_ARGUMENT);
    dl.ndim = KELP_MAX_RANK + 1;
    expect_code(kelp_tensor_from_dl(&dl, &tensor), KELP_INVALID_ARGUMENT);
}

static void shapes_are_formatted_as_lists(void **state) {
    (void)state;
    char text[32], small[4];
    assert_int_equal(kelp_shape_format(3, (int64_t[]){2, 3, -1}, text, sizeof text), 8);
    assert_string_equal(text, "[2,3,-1]");
    assert_int_equal(kelp_shape_format(0, NULL, text, sizeof text), 2);
    assert_string_equal(text, "[]");
    assert_int_equal(kelp_shape_format(2, (int64_t[]){10, 20}, small, sizeof small), 7);
    assert_string_equal(small, "[10");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_type_has_a_width_and_a_name_that_parses),
        cmocka_unit_test(names_of_triton_and_onnx_are_parsed),
        cmocka_unit_test(sub_byte_elements_are_packed),
        cmocka_unit_test(elements_are_counted_without_overflow),
        cmocka_unit_test(a_descriptor_is_compact_and_row_major),
        cmocka_unit_test(invalid_ranks_types_and_shapes_are_rejected),
        cmocka_unit_test(types_survive_dlpack),
        cmocka_unit_test(strides_and_offsets_come_from_dlpack),
        cmocka_unit_test(unsupported_dlpack_tensors_are_rejected),
        cmocka_unit_test(shapes_are_formatted_as_lists),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
