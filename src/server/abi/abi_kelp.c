/* SPDX-License-Identifier: Apache-2.0 */
/* The functions that Kelp adds to Triton's C API. */
#include "server/core/error.h"
#include "server/server.h"

#include <kelp/server.h>

TRITONSERVER_Error *KELP_InferenceRequestCheckQueue(TRITONSERVER_InferenceRequest *request) {
    if (request == NULL)
        return kelp_null_error(__func__, "request");
    return kelp_to_error(kelp_request_check_queue((const kelp_request *)request));
}
