/* SPDX-License-Identifier: Apache-2.0 */
/* Shared libraries: one built for this test, with a dependency. */
#include "base/dl.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

static void own_and_inherited_symbols(void **state) {
    (void)state;
    kelp_dl dl;
    assert_null(kelp_dl_open(TEST_DL_LIBRARY, &dl));
    int (*own)(void);
    *(void **)&own = kelp_dl_own_symbol(&dl, "test_dl_own");
    assert_non_null(own);
    assert_int_equal(own(), 8);
    /* The dependency's symbol can be reached, but it is not the library's own. */
    assert_non_null(kelp_dl_symbol(&dl, "test_dl_inherited"));
    assert_null(kelp_dl_own_symbol(&dl, "test_dl_inherited"));
    assert_null(kelp_dl_own_symbol(&dl, "malloc"));
    assert_null(kelp_dl_symbol(&dl, "test_dl_absent"));
    assert_null(kelp_dl_own_symbol(&dl, "test_dl_absent"));
    kelp_dl_close(&dl);
    assert_null(kelp_dl_symbol(&dl, "test_dl_own"));
    kelp_dl_close(&dl);
}

static void failure_carries_the_loaders_words(void **state) {
    (void)state;
    kelp_dl dl;
    kelp_status *status = kelp_dl_open("/no/such/library.so", &dl);
    assert_int_equal(kelp_status_code(status), KELP_NOT_FOUND);
    assert_non_null(strstr(kelp_status_message(status), "'/no/such/library.so': "));
    assert_null(dl.handle);
    kelp_status_free(status);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(own_and_inherited_symbols),
        cmocka_unit_test(failure_carries_the_loaders_words),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
