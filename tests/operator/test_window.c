/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of output sizes and padding of convolution and pooling windows. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "operator/window.h"

typedef struct window_case {
    kelp_window_axis axis;
    kelp_auto_pad pad;
    bool ceil_mode;
    int64_t size, before, after; /* size -1: none */
} window_case;

static void output_sizes_follow_the_specification(void **state) {
    (void)state;
    static const window_case cases[] = {
        {{5, 3, 1, 1, 0, 0}, KELP_AUTO_PAD_NOTSET, false, 3, 0, 0},
        {{5, 3, 1, 1, 1, 1}, KELP_AUTO_PAD_NOTSET, false, 5, 1, 1},
        {{5, 3, 2, 1, 1, 1}, KELP_AUTO_PAD_NOTSET, false, 3, 1, 1},
        {{7, 3, 1, 2, 0, 0}, KELP_AUTO_PAD_NOTSET, false, 3, 0, 0},
        {{7, 3, 2, 1, -1, -2}, KELP_AUTO_PAD_NOTSET, false, 1, -1, -2},
        {{5, 3, 1, 1, 4, 4}, KELP_AUTO_PAD_VALID, false, 3, 0, 0},
        {{5, 3, 2, 1, 0, 0}, KELP_AUTO_PAD_SAME_UPPER, false, 3, 1, 1},
        {{6, 3, 2, 1, 0, 0}, KELP_AUTO_PAD_SAME_UPPER, false, 3, 0, 1},
        {{6, 3, 2, 1, 0, 0}, KELP_AUTO_PAD_SAME_LOWER, false, 3, 1, 0},
        {{6, 1, 4, 1, 9, 9}, KELP_AUTO_PAD_SAME_UPPER, false, 2, 0, 0},
        /* rounded up, unless the last window starts after the input */
        {{6, 3, 2, 1, 0, 0}, KELP_AUTO_PAD_NOTSET, true, 3, 0, 0},
        {{7, 3, 2, 1, 0, 0}, KELP_AUTO_PAD_NOTSET, true, 3, 0, 0},
        {{4, 1, 3, 1, 0, 2}, KELP_AUTO_PAD_NOTSET, true, 2, 0, 2},
        {{2, 3, 2, 1, 1, 1}, KELP_AUTO_PAD_NOTSET, true, 2, 1, 1},
        {{2, 1, 2, 1, 0, 1}, KELP_AUTO_PAD_NOTSET, true, 1, 0, 1},
        /* no result */
        {{2, 3, 1, 1, 0, 0}, KELP_AUTO_PAD_NOTSET, false, -1, 0, 0},
        {{-1, 3, 1, 1, 0, 0}, KELP_AUTO_PAD_NOTSET, false, -1, 0, 0},
        {{5, 0, 1, 1, 0, 0}, KELP_AUTO_PAD_NOTSET, false, -1, 0, 0},
        {{5, 3, 0, 1, 0, 0}, KELP_AUTO_PAD_SAME_UPPER, false, -1, 0, 0},
        {{5, 3, 1, 0, 0, 0}, KELP_AUTO_PAD_NOTSET, false, -1, 0, 0},
        {{5, 3, 1, INT64_MAX, 0, 0}, KELP_AUTO_PAD_NOTSET, false, -1, 0, 0},
        {{5, 3, 1, INT64_MAX, 0, 0}, KELP_AUTO_PAD_SAME_UPPER, false, -1, 0, 0},
        {{5, 3, 1, 1, INT64_MAX, 1}, KELP_AUTO_PAD_NOTSET, false, -1, 0, 0},
        {{5, 3, 1, 1, INT64_MIN, INT64_MIN}, KELP_AUTO_PAD_NOTSET, true, -1, 0, 0},
        {{INT64_MAX, 1, 1, 1, 0, 0}, KELP_AUTO_PAD_NOTSET, true, INT64_MAX, 0, 0},
        {{INT64_MAX, 1, INT64_MAX, 1, 0, 0}, KELP_AUTO_PAD_NOTSET, true, 1, 0, 0}};
    for (size_t i = 0; i < KELP_COUNT(cases); i++) {
        kelp_window_axis axis = cases[i].axis;
        int64_t size = -1;
        if (!kelp_window_output(&axis, cases[i].pad, cases[i].ceil_mode, &size))
            size = -1;
        if (size != cases[i].size)
            fail_msg("case %zu: expected size %lld, found %lld", i, (long long)cases[i].size,
                     (long long)size);
        if (size >= 0 && (axis.before != cases[i].before || axis.after != cases[i].after))
            fail_msg("case %zu: expected padding %lld and %lld, found %lld and %lld", i,
                     (long long)cases[i].before, (long long)cases[i].after, (long long)axis.before,
                     (long long)axis.after);
    }
}

/* Compares all small windows with a count of their positions. */
static void sizes_count_the_windows_that_fit(void **state) {
    (void)state;
    for (int64_t code = 0; code < 6 * 3 * 3 * 3 * 3 * 2; code++) {
        int64_t rest = code;
        kelp_window_axis axis = {1 + rest % 6, 0, 0, 1, 0, 0};
        axis.kernel = 1 + (rest /= 6) % 3;
        axis.stride = 1 + (rest /= 3) % 3;
        axis.before = (rest /= 3) % 3;
        axis.after = (rest /= 3) % 3;
        axis.dilation = 1 + (rest / 3) % 2;
        int64_t span = (axis.kernel - 1) * axis.dilation + 1, expected = 0, size = 0;
        for (int64_t at = 0; at + span <= axis.in + axis.before + axis.after; at += axis.stride)
            expected++;
        bool fits = kelp_window_output(&axis, KELP_AUTO_PAD_NOTSET, false, &size);
        assert_int_equal(fits, expected > 0);
        if (fits)
            assert_int_equal(size, expected);
    }
}

static void padding_that_rounds_up_gives_the_size_of_ceil_mode(void **state) {
    (void)state;
    for (int64_t in = 3; in < 20; in++)
        for (int64_t stride = 1; stride < 4; stride++) {
            kelp_window_axis axis = {in, 3, stride, 1, 0, 0};
            int64_t rounded, more, size;
            assert_true(kelp_window_output(&axis, KELP_AUTO_PAD_NOTSET, true, &rounded));
            assert_true(kelp_window_round_up(&axis, &more));
            axis.after += more;
            assert_true(kelp_window_output(&axis, KELP_AUTO_PAD_NOTSET, false, &size));
            assert_int_equal(size, rounded);
        }
}

static void transposed_sizes_follow_the_specification(void **state) {
    (void)state;
    static const struct {
        window_case c;
        kelp_window_transposed transposed;
    } cases[] = {
        {{{3, 3, 2, 1, 0, 0}, KELP_AUTO_PAD_NOTSET, false, 7, 0, 0}, {0, -1}},
        {{{3, 3, 2, 1, 1, 1}, KELP_AUTO_PAD_NOTSET, false, 5, 1, 1}, {0, -1}},
        {{{3, 3, 2, 1, 1, 1}, KELP_AUTO_PAD_NOTSET, false, 6, 1, 1}, {1, -1}},
        {{{3, 3, 2, 1, 1, 1}, KELP_AUTO_PAD_VALID, false, 7, 0, 0}, {0, -1}},
        {{{3, 3, 2, 1, 0, 0}, KELP_AUTO_PAD_SAME_UPPER, false, 6, 0, 1}, {0, -1}},
        {{{3, 3, 2, 1, 0, 0}, KELP_AUTO_PAD_SAME_LOWER, false, 6, 1, 0}, {0, -1}},
        {{{3, 3, 2, 1, 0, 0}, KELP_AUTO_PAD_NOTSET, false, 9, 0, -2}, {0, 9}},
        {{{1, 1, 1, 1, 1, 0}, KELP_AUTO_PAD_NOTSET, false, -1, 0, 0}, {0, -1}},
        {{{0, 3, 1, 1, 0, 0}, KELP_AUTO_PAD_NOTSET, false, -1, 0, 0}, {0, -1}},
        {{{INT64_MAX, 3, 2, 1, 0, 0}, KELP_AUTO_PAD_SAME_UPPER, false, -1, 0, 0}, {0, -1}}};
    for (size_t i = 0; i < KELP_COUNT(cases); i++) {
        kelp_window_axis axis = cases[i].c.axis;
        int64_t size = -1;
        if (!kelp_window_transposed_output(&axis, cases[i].c.pad, cases[i].transposed, &size))
            size = -1;
        if (size != cases[i].c.size ||
            (size >= 0 && (axis.before != cases[i].c.before || axis.after != cases[i].c.after)))
            fail_msg("case %zu: found size %lld, padding %lld and %lld", i, (long long)size,
                     (long long)axis.before, (long long)axis.after);
    }
}

static void auto_pad_is_parsed(void **state) {
    (void)state;
    assert_int_equal(kelp_auto_pad_parse("VALID"), KELP_AUTO_PAD_VALID);
    assert_int_equal(kelp_auto_pad_parse("SAME_UPPER"), KELP_AUTO_PAD_SAME_UPPER);
    assert_int_equal(kelp_auto_pad_parse("SAME_LOWER"), KELP_AUTO_PAD_SAME_LOWER);
    assert_int_equal(kelp_auto_pad_parse("NOTSET"), KELP_AUTO_PAD_NOTSET);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(output_sizes_follow_the_specification),
        cmocka_unit_test(sizes_count_the_windows_that_fit),
        cmocka_unit_test(padding_that_rounds_up_gives_the_size_of_ceil_mode),
        cmocka_unit_test(transposed_sizes_follow_the_specification),
        cmocka_unit_test(auto_pad_is_parsed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
