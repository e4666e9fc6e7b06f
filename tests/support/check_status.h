/* SPDX-License-Identifier: Apache-2.0 */
/* What tests ask of a status: that it is none, or that it says what it should. Include cmocka's
 * headers first. */
#ifndef KELP_TESTS_CHECK_STATUS_H_
#define KELP_TESTS_CHECK_STATUS_H_

#include <kelp/status.h>

#include <string.h>

/* Fails the running test with the whole message. */
static inline void check_ok(kelp_status *status) {
    if (status == NULL)
        return;
    char text[2048];
    kelp_status_format(status, text, sizeof text);
    kelp_status_free(status);
    fail_msg("%s", text);
}

/* Of this code, with `part` somewhere in the message or its causes. Frees it. */
static inline void expect_failure(kelp_status *status, kelp_code code, const char *part) {
    char text[4096];
    assert_non_null(status);
    kelp_status_format(status, text, sizeof text);
    if (strstr(text, part) == NULL)
        fail_msg("expected '%s' in: %s", part, text);
    assert_int_equal(kelp_status_code(status), code);
    kelp_status_free(status);
}

#endif
