/* SPDX-License-Identifier: Apache-2.0 */
/* See sdk_backend.h. */
#include "sdk_backend.h"

bool fails_with(kelp_status *take_status, kelp_code code, const char *text) {
    char found[1024] = "";
    kelp_status_format(take_status, found, sizeof found);
    bool matches = kelp_status_code(take_status) == code && strstr(found, text);
    if (!matches)
        fprintf(stderr, "expected %s with '%s', found %s: %s\n", kelp_code_name(code), text,
                kelp_code_name(kelp_status_code(take_status)), found);
    kelp_status_free(take_status);
    return matches;
}
