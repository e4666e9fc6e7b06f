/* SPDX-License-Identifier: Apache-2.0 */
/* Selection of algorithms of float convolutions: which are applicable and profitable for a shape.
 */
#include "cpu/kernels/conv/conv.h"
#include "cpu/kernels/cpu_features.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

/* Returns a convolution of a square image of `size` with a square kernel, stride 1, and padding
 * that preserves the size. */
static kelp_conv conv_of(int64_t batch, int64_t in, int64_t out, int64_t size, int64_t kernel) {
    kelp_conv conv = {
        .shape = {.window = {.axes = 2, .in_size = 1, .out_size = 1, .kernel_size = 1},
                  .batch = batch,
                  .groups = 1,
                  .in_channels = in,
                  .out_channels = out},
        .threads = 1};
    kelp_conv_select_kernels(&conv);
    kelp_conv_window *w = &conv.shape.window;
    for (int i = 0; i < KELP_WINDOW_AXES; i++) {
        w->in[i] = w->out[i] = i > 0 ? size : 1;
        w->kernel[i] = i > 0 ? kernel : 1;
        w->stride[i] = w->dilation[i] = 1;
        w->before[i] = w->after[i] = i > 0 ? kernel / 2 : 0;
        w->in_size *= w->in[i];
        w->out_size *= w->out[i];
        w->kernel_size *= w->kernel[i];
    }
    return conv;
}

static bool takes(const kelp_conv_algorithm *algorithm, const kelp_conv *conv) {
    return algorithm->is_applicable(conv) &&
           (algorithm->is_profitable == NULL || algorithm->is_profitable(conv));
}

static void large_images_prefer_large_winograd_tiles(void **state) {
    kelp_conv conv = conv_of(1, 64, 64, 56, 3);
    (void)state;
    assert_true(takes(&kelp_conv_winograd_4x4, &conv));
    assert_false(takes(&kelp_conv_winograd_2x2, &conv));
    assert_false(takes(&kelp_conv_winograd_1d, &conv));
    assert_false(takes(&kelp_conv_im2row, &conv));
    assert_true(takes(&kelp_conv_im2col_gemm, &conv));
}

static void few_channels_do_not_use_winograd(void **state) {
    kelp_conv conv = conv_of(1, 3, 64, 56, 3);
    (void)state;
    assert_false(takes(&kelp_conv_winograd_4x4, &conv));
    assert_false(takes(&kelp_conv_winograd_2x2, &conv));
    assert_true(takes(&kelp_conv_direct_gemm, &conv));
}

static void pointwise_kernels_are_not_copied(void **state) {
    kelp_conv conv = conv_of(1, 64, 64, 56, 1);
    (void)state;
    assert_true(takes(&kelp_conv_pointwise, &conv));
    assert_false(takes(&kelp_conv_direct_gemm, &conv));
}

static void few_positions_are_rows(void **state) {
    kelp_conv conv = conv_of(1, 256, 256, 2, 3);
    (void)state;
    assert_true(takes(&kelp_conv_im2row_few, &conv));
    conv = conv_of(1, 256, 256, 5, 3);
    assert_false(takes(&kelp_conv_im2row_few, &conv));
}

static void depthwise_needs_one_input_channel_of_each_group(void **state) {
    kelp_conv conv = conv_of(1, 1, 1, 28, 3);
    (void)state;
    conv.shape.groups = 32;
    assert_true(takes(&kelp_conv_depthwise_padded, &conv));
    assert_true(kelp_conv_depthwise_padded.reserve(&conv));
    assert_true(conv.worker_floats > 28 * 28 && conv.shared_floats == 0);
    conv.shape.in_channels = 2;
    assert_false(takes(&kelp_conv_depthwise_padded, &conv));
}

static void doubles_use_the_reference(void **state) {
    kelp_conv conv = conv_of(1, 64, 64, 56, 3);
    (void)state;
    assert_false(takes(&kelp_conv_reference_f64, &conv));
    conv.is_f64 = true;
    assert_true(takes(&kelp_conv_reference_f64, &conv));
}

static void sizes_that_overflow_are_not_reserved(void **state) {
    kelp_conv conv = conv_of(1, (int64_t)1 << 54, 1, 56, 3);
    (void)state;
    assert_false(takes(&kelp_conv_winograd_4x4, &conv));
    assert_false(kelp_conv_im2col_gemm.reserve(&conv));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(large_images_prefer_large_winograd_tiles),
        cmocka_unit_test(few_channels_do_not_use_winograd),
        cmocka_unit_test(pointwise_kernels_are_not_copied),
        cmocka_unit_test(few_positions_are_rows),
        cmocka_unit_test(depthwise_needs_one_input_channel_of_each_group),
        cmocka_unit_test(doubles_use_the_reference),
        cmocka_unit_test(sizes_that_overflow_are_not_reserved),
    };
    kelp_cpu_isa_limit(KELP_ISA_PORTABLE); /* choices depend on the size of the register tile */
    return cmocka_run_group_tests(tests, NULL, NULL);
}
