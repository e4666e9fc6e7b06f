/* SPDX-License-Identifier: Apache-2.0 */
/* Conversion of failures: errors of the server's API, kelp_status, HTTP status codes. */
#ifndef KELP_FRONTENDS_COMMON_STATUS_H_
#define KELP_FRONTENDS_COMMON_STATUS_H_

#include "frontends/http/message.h"

#include <triton/core/tritonserver.h>

/* Converts an error of the server, which it takes; NULL stays NULL. */
kelp_status *kelp_v2_status(TRITONSERVER_Error *take_error) KELP_MUST_USE;
/* Deletes an error of the server without effect on the caller; NULL is allowed. */
static inline void kelp_v2_ignore(TRITONSERVER_Error *take_error) {
    if (take_error != NULL)
        TRITONSERVER_ErrorDelete(take_error);
}
/* Returns the HTTP status for a failure. OUT_OF_RANGE means that a body exceeds a limit. */
kelp_http_status kelp_v2_http_status(const kelp_status *status);

#endif
