/* SPDX-License-Identifier: Apache-2.0 */
/* Statuses: what a reader of a failure sees, and that memory is kept straight. */
#include <kelp/status.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

static kelp_status *refuse(int width) {
    return KELP_ERROR(KELP_INVALID_ARGUMENT, "width is wrong: expected 3, found %d", width);
}

static kelp_status *load(int width) {
    KELP_TRY(width == 3 ? NULL : refuse(width));
    return NULL;
}

static void reads_back(void **state) {
    (void)state;
    kelp_status *status = refuse(4);
    assert_int_equal(kelp_status_code(status), KELP_INVALID_ARGUMENT);
    assert_string_equal(kelp_status_message(status), "width is wrong: expected 3, found 4");
    assert_non_null(strstr(kelp_status_file(status), "test_status.c"));
    assert_true(kelp_status_line(status) > 0);
    assert_null(kelp_status_cause(status));
    kelp_status_free(status);
}

static void null_is_success(void **state) {
    (void)state;
    char text[8] = "before";
    assert_int_equal(kelp_status_code(NULL), KELP_OK);
    assert_string_equal(kelp_status_message(NULL), "");
    assert_string_equal(kelp_status_file(NULL), "");
    assert_int_equal(kelp_status_line(NULL), 0);
    assert_null(kelp_status_cause(NULL));
    assert_null(kelp_status_clone(NULL));
    assert_null(KELP_ANNOTATE(NULL, "never seen"));
    assert_int_equal(kelp_status_format(NULL, text, sizeof(text)), 0);
    assert_string_equal(text, "");
    kelp_status_free(NULL);
    assert_null(load(3));
}

static void annotation_keeps_code_and_cause(void **state) {
    (void)state;
    char text[128];
    kelp_status *status = KELP_ANNOTATE(load(5), "cannot load model '%s'", "m");
    assert_int_equal(kelp_status_code(status), KELP_INVALID_ARGUMENT);
    assert_string_equal(kelp_status_message(status), "cannot load model 'm'");
    assert_string_equal(kelp_status_message(kelp_status_cause(status)),
                        "width is wrong: expected 3, found 5");
    const char *all = "cannot load model 'm': width is wrong: expected 3, found 5";
    assert_int_equal(kelp_status_format(status, text, sizeof(text)), strlen(all));
    assert_string_equal(text, all);
    /* Too small a buffer is filled and terminated, and the whole length told. */
    memset(text, 'x', sizeof(text));
    assert_int_equal(kelp_status_format(status, text, 7), strlen(all));
    assert_string_equal(text, "cannot");
    assert_int_equal(kelp_status_format(status, NULL, 0), strlen(all));
    kelp_status_free(status);
}

static void clone_outlives_the_original(void **state) {
    (void)state;
    char text[128];
    kelp_status *status = KELP_ANNOTATE(refuse(9), "above");
    status = KELP_ANNOTATE(status, "top");
    kelp_status *copy = kelp_status_clone(status);
    int line = kelp_status_line(status);
    kelp_status_free(status);
    kelp_status_format(copy, text, sizeof(text));
    assert_string_equal(text, "top: above: width is wrong: expected 3, found 9");
    assert_int_equal(kelp_status_line(copy), line);
    kelp_status_free(copy);
}

static void out_of_memory_is_static(void **state) {
    (void)state;
    char text[64];
    kelp_status *oom = kelp_status_oom();
    assert_int_equal(kelp_status_code(oom), KELP_RESOURCE_EXHAUSTED);
    kelp_status_free(oom);
    kelp_status_free(oom);
    assert_string_equal(kelp_status_message(kelp_status_oom()), "out of memory");
    kelp_status *above = KELP_ANNOTATE(kelp_status_oom(), "cannot grow");
    kelp_status *copy = kelp_status_clone(above);
    kelp_status_free(above);
    kelp_status_format(copy, text, sizeof(text));
    assert_string_equal(text, "cannot grow: out of memory");
    kelp_status_free(copy);
}

static void long_messages_are_whole(void **state) {
    (void)state;
    char text[5001];
    memset(text, 'a', 5000);
    text[5000] = '\0';
    kelp_status *status = KELP_ERROR(KELP_INTERNAL, "%s!", text);
    assert_int_equal(strlen(kelp_status_message(status)), 5001);
    assert_int_equal(kelp_status_message(status)[5000], '!');
    kelp_status_free(status);
}

static void codes_have_names(void **state) {
    (void)state;
    assert_string_equal(kelp_code_name(KELP_OK), "OK");
    assert_string_equal(kelp_code_name(KELP_UNIMPLEMENTED), "UNIMPLEMENTED");
    assert_string_equal(kelp_code_name(KELP_UNAUTHENTICATED), "UNAUTHENTICATED");
    assert_string_equal(kelp_code_name((kelp_code)17), "UNKNOWN");
    assert_string_equal(kelp_code_name((kelp_code)-1), "UNKNOWN");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_back),
        cmocka_unit_test(null_is_success),
        cmocka_unit_test(annotation_keeps_code_and_cause),
        cmocka_unit_test(clone_outlives_the_original),
        cmocka_unit_test(out_of_memory_is_static),
        cmocka_unit_test(long_messages_are_whole),
        cmocka_unit_test(codes_have_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
