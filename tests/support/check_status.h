/* SPDX-License-Identifier: Apache-2.0 */
/* Checks of a status: success, or the expected message. Include cmocka's headers first. */
#ifndef KELP_TESTS_CHECK_STATUS_H_
#define KELP_TESTS_CHECK_STATUS_H_

#include <kelp/status.h>

#include <string.h>

/* Fails the test with the complete message unless the status is NULL. */
static inline void check_ok(kelp_status *status) {
    if (status == NULL)
        return;
    char text[2048];
    kelp_status_format(status, text, sizeof text);
    kelp_status_free(status);
    fail_msg("%s", text);
}

/* Asserts the code, and that the message or those of its causes contain `part`. Frees the
 * status. */
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
