/* SPDX-License-Identifier: Apache-2.0 */
/* A backend that calls a function of the test from its entry points, and between the response to a
 * request, which has no outputs, and the release of the request. */
#include <triton/core/tritonbackend.h>

#include <stddef.h>

#define EXPORT __attribute__((visibility("default")))

/* Receives the name of the entry point, and of the model if there is one. */
EXPORT void (*hook_fn)(const char *entry_point, const char *model);

static TRITONSERVER_Error *call(const char *entry_point, TRITONBACKEND_Model *model) {
    const char *name = NULL;
    TRITONSERVER_Error *error = model != NULL ? TRITONBACKEND_ModelName(model, &name) : NULL;
    if (error == NULL && hook_fn != NULL)
        hook_fn(entry_point, name);
    return error;
}

static TRITONSERVER_Error *call_for_instance(const char *entry_point,
                                             TRITONBACKEND_ModelInstance *instance) {
    TRITONBACKEND_Model *model = NULL;
    TRITONSERVER_Error *error = TRITONBACKEND_ModelInstanceModel(instance, &model);
    return error != NULL ? error : call(entry_point, model);
}

EXPORT TRITONSERVER_Error *TRITONBACKEND_Initialize(TRITONBACKEND_Backend *backend) {
    (void)backend;
    return call("Initialize", NULL);
}

EXPORT TRITONSERVER_Error *TRITONBACKEND_Finalize(TRITONBACKEND_Backend *backend) {
    (void)backend;
    return call("Finalize", NULL);
}

EXPORT TRITONSERVER_Error *TRITONBACKEND_ModelInitialize(TRITONBACKEND_Model *model) {
    return call("ModelInitialize", model);
}

EXPORT TRITONSERVER_Error *TRITONBACKEND_ModelFinalize(TRITONBACKEND_Model *model) {
    return call("ModelFinalize", model);
}

EXPORT TRITONSERVER_Error *
TRITONBACKEND_ModelInstanceInitialize(TRITONBACKEND_ModelInstance *instance) {
    return call_for_instance("ModelInstanceInitialize", instance);
}

EXPORT TRITONSERVER_Error *
TRITONBACKEND_ModelInstanceFinalize(TRITONBACKEND_ModelInstance *instance) {
    return call_for_instance("ModelInstanceFinalize", instance);
}

static TRITONSERVER_Error *respond(TRITONBACKEND_ModelInstance *instance,
                                   TRITONBACKEND_Request *request) {
    TRITONBACKEND_Response *response = NULL;
    TRITONSERVER_Error *error = TRITONBACKEND_ResponseNew(&response, request);
    if (error == NULL)
        error = TRITONBACKEND_ResponseSend(response, TRITONSERVER_RESPONSE_COMPLETE_FINAL, NULL);
    if (error == NULL)
        error = call_for_instance("Responded", instance);
    if (error == NULL)
        error = TRITONBACKEND_RequestRelease(request, TRITONSERVER_REQUEST_RELEASE_ALL);
    return error;
}

EXPORT TRITONSERVER_Error *TRITONBACKEND_ModelInstanceExecute(TRITONBACKEND_ModelInstance *instance,
                                                              TRITONBACKEND_Request **requests,
                                                              const uint32_t request_count) {
    TRITONSERVER_Error *error = call_for_instance("Execute", instance);
    for (uint32_t i = 0; i < request_count && error == NULL; i++)
        error = respond(instance, requests[i]);
    return error;
}
