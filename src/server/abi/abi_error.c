/* SPDX-License-Identifier: Apache-2.0 */
/* The C API: errors, and the versions of the four interfaces. */
#include "base/triton/convert.h"
#include "server/core/error.h"

#include <triton/core/tritonbackend.h>
#include <triton/core/tritoncache.h>
#include <triton/core/tritonrepoagent.h>

TRITONSERVER_Error *TRITONSERVER_ErrorNew(TRITONSERVER_Error_Code code, const char *msg) {
    return (TRITONSERVER_Error *)kelp_status_new(kelp_code_from_triton(code), "", 0, "%s",
                                                 msg != NULL ? msg : "");
}

void TRITONSERVER_ErrorDelete(TRITONSERVER_Error *error) {
    kelp_error_discard(error);
}

TRITONSERVER_Error_Code TRITONSERVER_ErrorCode(TRITONSERVER_Error *error) {
    return kelp_code_to_triton(kelp_status_code(kelp_from_error(error)));
}

const char *TRITONSERVER_ErrorCodeString(TRITONSERVER_Error *error) {
    switch (TRITONSERVER_ErrorCode(error)) {
    case TRITONSERVER_ERROR_UNKNOWN:
        return "Unknown";
    case TRITONSERVER_ERROR_INTERNAL:
        return "Internal";
    case TRITONSERVER_ERROR_NOT_FOUND:
        return "Not found";
    case TRITONSERVER_ERROR_INVALID_ARG:
        return "Invalid argument";
    case TRITONSERVER_ERROR_UNAVAILABLE:
        return "Unavailable";
    case TRITONSERVER_ERROR_UNSUPPORTED:
        return "Unsupported";
    case TRITONSERVER_ERROR_ALREADY_EXISTS:
        return "Already exists";
    case TRITONSERVER_ERROR_CANCELLED:
        return "Cancelled";
    }
    return "<invalid code>";
}

const char *TRITONSERVER_ErrorMessage(TRITONSERVER_Error *error) {
    return kelp_status_message(kelp_from_error(error));
}

/* ---- versions of the four interfaces ---- */

static TRITONSERVER_Error *version(const char *function, uint32_t *major, uint32_t *minor,
                                   uint32_t major_value, uint32_t minor_value) {
    if (major == NULL || minor == NULL)
        return kelp_null_error(function, major != NULL ? "minor" : "major");
    *major = major_value;
    *minor = minor_value;
    return NULL;
}

TRITONSERVER_Error *TRITONSERVER_ApiVersion(uint32_t *major, uint32_t *minor) {
    return version(__func__, major, minor, TRITONSERVER_API_VERSION_MAJOR,
                   TRITONSERVER_API_VERSION_MINOR);
}

TRITONSERVER_Error *TRITONBACKEND_ApiVersion(uint32_t *major, uint32_t *minor) {
    return version(__func__, major, minor, TRITONBACKEND_API_VERSION_MAJOR,
                   TRITONBACKEND_API_VERSION_MINOR);
}

TRITONSERVER_Error *TRITONREPOAGENT_ApiVersion(uint32_t *major, uint32_t *minor) {
    return version(__func__, major, minor, TRITONREPOAGENT_API_VERSION_MAJOR,
                   TRITONREPOAGENT_API_VERSION_MINOR);
}

TRITONSERVER_Error *TRITONCACHE_ApiVersion(uint32_t *major, uint32_t *minor) {
    return version(__func__, major, minor, TRITONCACHE_API_VERSION_MAJOR,
                   TRITONCACHE_API_VERSION_MINOR);
}
