/* SPDX-License-Identifier: Apache-2.0 */
/* A backend that releases its requests before it sends responses, with an error if the first
 * element of INPUT0 is negative. It does not use the functions that report statistics. */
#include <triton/core/tritonbackend.h>

#define EXPORT __attribute__((visibility("default")))

static TRITONSERVER_Error *respond(TRITONBACKEND_ResponseFactory *factory, bool fails) {
    TRITONBACKEND_Response *response = NULL;
    TRITONSERVER_Error *error = TRITONBACKEND_ResponseNewFromFactory(&response, factory);
    if (error)
        return error;
    TRITONSERVER_Error *reason =
        fails ? TRITONSERVER_ErrorNew(TRITONSERVER_ERROR_INTERNAL, "it went wrong later") : NULL;
    error = TRITONBACKEND_ResponseSend(response, TRITONSERVER_RESPONSE_COMPLETE_FINAL, reason);
    TRITONSERVER_ErrorDelete(reason);
    return error;
}

static TRITONSERVER_Error *run(TRITONBACKEND_Request *request) {
    TRITONBACKEND_ResponseFactory *factory = NULL;
    TRITONBACKEND_Input *input = NULL;
    const void *buffer = NULL;
    uint64_t size_bytes = 0;
    TRITONSERVER_MemoryType type = TRITONSERVER_MEMORY_CPU;
    int64_t id = 0;
    TRITONSERVER_Error *error = TRITONBACKEND_RequestInput(request, "INPUT0", &input);
    if (!error)
        error = TRITONBACKEND_InputBuffer(input, 0, &buffer, &size_bytes, &type, &id);
    if (error)
        return error;
    bool fails = *(const int32_t *)buffer < 0;
    error = TRITONBACKEND_ResponseFactoryNew(&factory, request);
    if (!error)
        error = TRITONBACKEND_RequestRelease(request, TRITONSERVER_REQUEST_RELEASE_ALL);
    if (!error)
        error = respond(factory, fails);
    TRITONSERVER_ErrorDelete(TRITONBACKEND_ResponseFactoryDelete(factory));
    return error;
}

EXPORT TRITONSERVER_Error *TRITONBACKEND_ModelInstanceExecute(TRITONBACKEND_ModelInstance *instance,
                                                              TRITONBACKEND_Request **requests,
                                                              const uint32_t request_count) {
    (void)instance;
    for (uint32_t i = 0; i < request_count; i++) {
        TRITONSERVER_Error *error = run(requests[i]);
        if (error)
            return error;
    }
    return NULL;
}
