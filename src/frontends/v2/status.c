/* SPDX-License-Identifier: Apache-2.0 */
#include "frontends/v2/status.h"

#include "base/checked.h"

kelp_status *kelp_v2_status(TRITONSERVER_Error *take_error) {
    if (take_error == NULL)
        return NULL;
    static const kelp_code codes[] = {
        [TRITONSERVER_ERROR_UNKNOWN] = KELP_UNKNOWN,
        [TRITONSERVER_ERROR_INTERNAL] = KELP_INTERNAL,
        [TRITONSERVER_ERROR_NOT_FOUND] = KELP_NOT_FOUND,
        [TRITONSERVER_ERROR_INVALID_ARG] = KELP_INVALID_ARGUMENT,
        [TRITONSERVER_ERROR_UNAVAILABLE] = KELP_UNAVAILABLE,
        [TRITONSERVER_ERROR_UNSUPPORTED] = KELP_UNIMPLEMENTED,
        [TRITONSERVER_ERROR_ALREADY_EXISTS] = KELP_ALREADY_EXISTS,
        [TRITONSERVER_ERROR_CANCELLED] = KELP_CANCELLED,
    };
    size_t code = (size_t)TRITONSERVER_ErrorCode(take_error);
    kelp_status *status = KELP_ERROR(code < KELP_COUNT(codes) ? codes[code] : KELP_UNKNOWN, "%s",
                                     TRITONSERVER_ErrorMessage(take_error));
    TRITONSERVER_ErrorDelete(take_error);
    return status;
}

kelp_http_status kelp_v2_http_status(const kelp_status *status) {
    switch (kelp_status_code(status)) {
    case KELP_OK:
        return KELP_HTTP_OK;
    case KELP_INTERNAL:
        return KELP_HTTP_INTERNAL_SERVER_ERROR;
    case KELP_NOT_FOUND:
        return KELP_HTTP_NOT_FOUND;
    case KELP_UNAVAILABLE:
    case KELP_RESOURCE_EXHAUSTED:
        return KELP_HTTP_SERVICE_UNAVAILABLE;
    case KELP_UNIMPLEMENTED:
        return KELP_HTTP_NOT_IMPLEMENTED;
    case KELP_ALREADY_EXISTS:
        return KELP_HTTP_CONFLICT;
    case KELP_CANCELLED:
        return KELP_HTTP_CLIENT_CLOSED_REQUEST;
    case KELP_OUT_OF_RANGE:
        return KELP_HTTP_CONTENT_TOO_LARGE;
    default:
        return KELP_HTTP_BAD_REQUEST;
    }
}
