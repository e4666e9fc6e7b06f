/* SPDX-License-Identifier: Apache-2.0 */
/* Errors of the C API, and its version. */
#include "server/core/values.h"

#include <triton/core/tritoncache.h>
#include <triton/core/tritonrepoagent.h>

#include <stdatomic.h>
#include <stdio.h>

TRITONSERVER_Error_Code kelp_code_to_triton(kelp_code code) {
    switch (code) {
    case KELP_CANCELLED:
        return TRITONSERVER_ERROR_CANCELLED;
    case KELP_INVALID_ARGUMENT:
    case KELP_FAILED_PRECONDITION:
    case KELP_OUT_OF_RANGE:
        return TRITONSERVER_ERROR_INVALID_ARG;
    case KELP_NOT_FOUND:
        return TRITONSERVER_ERROR_NOT_FOUND;
    case KELP_ALREADY_EXISTS:
        return TRITONSERVER_ERROR_ALREADY_EXISTS;
    case KELP_UNIMPLEMENTED:
        return TRITONSERVER_ERROR_UNSUPPORTED;
    case KELP_DEADLINE_EXCEEDED:
    case KELP_RESOURCE_EXHAUSTED:
    case KELP_ABORTED:
    case KELP_PERMISSION_DENIED:
    case KELP_UNAUTHENTICATED:
    case KELP_UNAVAILABLE:
        return TRITONSERVER_ERROR_UNAVAILABLE;
    case KELP_INTERNAL:
    case KELP_DATA_LOSS:
        return TRITONSERVER_ERROR_INTERNAL;
    case KELP_OK:
    case KELP_UNKNOWN:
        break;
    }
    return TRITONSERVER_ERROR_UNKNOWN;
}

kelp_code kelp_code_from_triton(TRITONSERVER_Error_Code code) {
    switch (code) {
    case TRITONSERVER_ERROR_UNKNOWN:
        break;
    case TRITONSERVER_ERROR_INTERNAL:
        return KELP_INTERNAL;
    case TRITONSERVER_ERROR_NOT_FOUND:
        return KELP_NOT_FOUND;
    case TRITONSERVER_ERROR_INVALID_ARG:
        return KELP_INVALID_ARGUMENT;
    case TRITONSERVER_ERROR_UNAVAILABLE:
        return KELP_UNAVAILABLE;
    case TRITONSERVER_ERROR_UNSUPPORTED:
        return KELP_UNIMPLEMENTED;
    case TRITONSERVER_ERROR_ALREADY_EXISTS:
        return KELP_ALREADY_EXISTS;
    case TRITONSERVER_ERROR_CANCELLED:
        return KELP_CANCELLED;
    }
    return KELP_UNKNOWN;
}

TRITONSERVER_Error *kelp_to_error(kelp_status *take_status) {
    if (!take_status || !kelp_status_cause(take_status))
        return (TRITONSERVER_Error *)take_status;
    kelp_allocator heap = kelp_allocator_system();
    size_t size_bytes = kelp_status_format(take_status, NULL, 0) + 1;
    void *text = NULL;
    kelp_status *flat = kelp_alloc(heap, size_bytes, &text);
    if (!flat) {
        kelp_status_format(take_status, text, size_bytes);
        flat = kelp_status_new(kelp_status_code(take_status), kelp_status_file(take_status),
                               kelp_status_line(take_status), "%s", (const char *)text);
        kelp_free(heap, text, size_bytes);
    }
    kelp_status_free(take_status);
    return (TRITONSERVER_Error *)flat;
}

TRITONSERVER_Error *kelp_abi_null(const char *function, const char *what) {
    return kelp_to_error(
        KELP_ERROR(KELP_INVALID_ARGUMENT, "%s: '%s' must not be NULL", function, what));
}

TRITONSERVER_Error *TRITONSERVER_ErrorNew(TRITONSERVER_Error_Code code, const char *msg) {
    return (TRITONSERVER_Error *)kelp_status_new(kelp_code_from_triton(code), "", 0, "%s",
                                                 msg ? msg : "");
}

/* The errors that were deleted last stay readable: backends in the field look at the code of an
 * error that they have just deleted, or delete it twice. */
void TRITONSERVER_ErrorDelete(TRITONSERVER_Error *error) {
    enum { KEPT = 64 };
    static _Atomic(kelp_status *) kept[KEPT];
    static atomic_uint next;
    kelp_status *status = kelp_from_error(error);
    if (!status)
        return;
    for (unsigned i = 0; i < KEPT; i++)
        if (atomic_load_explicit(&kept[i], memory_order_relaxed) == status)
            return;
    unsigned place = atomic_fetch_add_explicit(&next, 1, memory_order_relaxed) % KEPT;
    kelp_status_free(atomic_exchange_explicit(&kept[place], status, memory_order_acq_rel));
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
    if (!major || !minor)
        return kelp_abi_null(function, major ? "minor" : "major");
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
