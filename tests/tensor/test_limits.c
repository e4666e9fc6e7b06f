/* SPDX-License-Identifier: Apache-2.0 */
/* Descriptors at the limits: empty and huge shapes, reused memory, strides, and short buffers. */
#include <kelp/tensor.h>

#include "base/checked.h"
#include "tensor/convert.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

static void assert_rejected(kelp_status *status, const char *part) {
    assert_int_equal(kelp_status_code(status), KELP_INVALID_ARGUMENT);
    if (strstr(kelp_status_message(status), part) == NULL)
        fail_msg("expected '%s' in '%s'", part, kelp_status_message(status));
    kelp_status_free(status);
}

static void sizes_that_fit_the_address_space_are_exact(void **state) {
    (void)state;
    size_t bytes = 1;
    assert_true(kelp_dtype_bytes(KELP_F64, (int64_t)1 << 60, &bytes));
    assert_true(bytes == (size_t)1 << 63);
    assert_true(kelp_dtype_bytes(KELP_F32, 0, &bytes));
    assert_int_equal(bytes, 0);
    assert_false(kelp_dtype_bytes(KELP_F32, -1, &bytes));
    assert_false(kelp_dtype_bytes(KELP_F64, (int64_t)1 << 61, &bytes));
    assert_false(kelp_dtype_bytes(KELP_I4, (int64_t)1 << 62, &bytes));
}

static void a_shape_that_overflows_is_invalid_even_if_it_is_empty(void **state) {
    (void)state;
    const int64_t shape[] = {INT64_MAX, 0, INT64_MAX}, empty[] = {5, 0, 7};
    int64_t elements = -1;
    assert_false(kelp_shape_elements(3, shape, &elements));
    assert_true(kelp_shape_elements(3, empty, &elements));
    assert_int_equal(elements, 0);
}

static void rejections_name_the_shape_or_type(void **state) {
    (void)state;
    kelp_tensor tensor;
    const int64_t shape[] = {2, -3};
    assert_rejected(kelp_tensor_init(&tensor, KELP_F32, 2, shape, NULL),
                    "invalid tensor shape [2,-3]");
    assert_rejected(kelp_tensor_init(&tensor, KELP_DTYPE_INVALID, 1, shape, NULL),
                    "unknown element type 0");
    assert_rejected(kelp_tensor_init(&tensor, KELP_DTYPE_COUNT, 1, shape, NULL),
                    "unknown element type");
}

static void descriptors_overwrite_the_memory_they_are_in(void **state) {
    (void)state;
    kelp_tensor tensor;
    const int64_t shape[] = {2, 3};
    memset(&tensor, 0xa5, sizeof tensor);
    assert_null(kelp_tensor_init(&tensor, KELP_F32, 2, shape, NULL));
    assert_int_equal(tensor.device.device_type, kDLCPU);
    assert_int_equal(tensor.device.device_id, 0);
    assert_int_equal(tensor.flags, 0);
    assert_true(kelp_tensor_is_compact(&tensor));
}

static void an_empty_tensor_is_compact_whatever_its_strides(void **state) {
    (void)state;
    kelp_tensor tensor;
    const int64_t shape[] = {0, 3};
    assert_null(kelp_tensor_init(&tensor, KELP_F32, 2, shape, NULL));
    tensor.strides[0] = 77;
    assert_true(kelp_tensor_is_compact(&tensor));
}

static void device_and_all_strides_come_from_dlpack(void **state) {
    (void)state;
    float data[12];
    int64_t shape[] = {3, 2}, strides[] = {4, 2};
    DLTensor dl = {.data = data,
                   .device = {kDLCUDAHost, 3},
                   .ndim = 2,
                   .dtype = {kDLFloat, 32, 1},
                   .shape = shape,
                   .strides = strides};
    kelp_tensor tensor;
    assert_null(kelp_tensor_from_dl(&dl, &tensor));
    assert_int_equal(tensor.device.device_type, kDLCUDAHost);
    assert_int_equal(tensor.device.device_id, 3);
    assert_int_equal(tensor.strides[0], 4);
    assert_int_equal(tensor.strides[1], 2);
    assert_false(kelp_tensor_is_compact(&tensor));
}

static void a_list_has_the_size_of_a_descriptor(void **state) {
    (void)state;
    assert_int_equal(kelp_dtype_bits(KELP_LIST), 8 * sizeof(kelp_tensor));
    assert_string_equal(kelp_dtype_name(KELP_LIST), "list");
    assert_int_equal(kelp_dtype_bits(KELP_DTYPE_COUNT), 0);
    assert_int_equal(kelp_dtype_bits((kelp_dtype)(KELP_DTYPE_COUNT + 1)), 0);
}

static void shapes_are_cut_to_the_buffer(void **state) {
    (void)state;
    const int64_t shape[] = {12, 345};
    const char *whole = "[12,345]";
    for (size_t capacity = 0; capacity <= strlen(whole) + 1; capacity++) {
        char *buffer = malloc(capacity > 0 ? capacity : 1);
        assert_int_equal(kelp_shape_format(2, shape, buffer, capacity), strlen(whole));
        if (capacity > 0) {
            assert_int_equal(strlen(buffer), capacity - 1);
            assert_memory_equal(buffer, whole, capacity - 1);
        }
        free(buffer);
    }
    char text[32];
    assert_int_equal(kelp_shape_format(-1, NULL, text, sizeof text), strlen("of unknown rank"));
    assert_string_equal(text, "of unknown rank");
}

static void zero_is_zero_in_every_narrow_type(void **state) {
    (void)state;
    static const kelp_dtype types[] = {KELP_F8E4M3FN, KELP_F8E4M3FNUZ, KELP_F8E5M2, KELP_F8E5M2FNUZ,
                                       KELP_F6E2M3,   KELP_F6E3M2,     KELP_F4E2M1};
    for (size_t t = 0; t < KELP_COUNT(types); t++) {
        assert_true(kelp_narrow_to_f32(types[t], 0) == 0);
        assert_int_equal(kelp_f32_to_narrow(types[t], 0.0f, true), 0);
    }
}

/* Code 0 of F8E8M0 is 2^-127, half the smallest normal number of binary32. */
static void small_scales_are_rounded(void **state) {
    (void)state;
    static const struct {
        float value;
        uint8_t nearest, up, down;
    } cases[] = {{0x1p-127f, 0, 0, 0},        {0x1.000004p-127f, 0, 1, 0}, {0x1.8p-127f, 0, 1, 0},
                 {0x1.800004p-127f, 1, 1, 0}, {0x1p-126f, 1, 1, 1},        {0x1.8p-126f, 2, 2, 1},
                 {0x1.7ffffep-126f, 1, 2, 1}, {0x1p-130f, 0, 0, 0}};
    for (size_t i = 0; i < KELP_COUNT(cases); i++) {
        assert_int_equal(kelp_f32_to_e8m0(cases[i].value, true, 'n'), cases[i].nearest);
        assert_int_equal(kelp_f32_to_e8m0(cases[i].value, true, 'u'), cases[i].up);
        assert_int_equal(kelp_f32_to_e8m0(cases[i].value, true, 'd'), cases[i].down);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sizes_that_fit_the_address_space_are_exact),
        cmocka_unit_test(a_shape_that_overflows_is_invalid_even_if_it_is_empty),
        cmocka_unit_test(rejections_name_the_shape_or_type),
        cmocka_unit_test(descriptors_overwrite_the_memory_they_are_in),
        cmocka_unit_test(an_empty_tensor_is_compact_whatever_its_strides),
        cmocka_unit_test(device_and_all_strides_come_from_dlpack),
        cmocka_unit_test(a_list_has_the_size_of_a_descriptor),
        cmocka_unit_test(shapes_are_cut_to_the_buffer),
        cmocka_unit_test(zero_is_zero_in_every_narrow_type),
        cmocka_unit_test(small_scales_are_rounded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
