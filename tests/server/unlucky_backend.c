/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A backend that allocates memory and then fails at the entry point that its setting "fail_at"
 * names. It counts calls: the server must finalize all objects that it has initialized.
 */
#include <triton/core/tritonbackend.h>

#include <stdlib.h>
#include <string.h>

#define EXPORT __attribute__((visibility("default")))

/* Read by the test: numbers of calls, and allocated memory. */
typedef struct unlucky_counts {
    int initialized, finalized, models, models_gone, instances, instances_gone, executions, held;
} unlucky_counts;
EXPORT unlucky_counts unlucky_seen;

static const char *const points[] = {"initialize",      "attribute", "model", "instance",
                                     "second_instance", "execute",   "ready", "instance_gone",
                                     "model_gone",      "finalize",  NULL};
static char fail_at[64];

static TRITONSERVER_Error *luck(const char *point) {
    if (strcmp(fail_at, point) != 0)
        return NULL;
    return TRITONSERVER_ErrorNew(TRITONSERVER_ERROR_UNAVAILABLE, point);
}

static void read_setting(TRITONBACKEND_Backend *backend) {
    TRITONSERVER_Message *message = NULL;
    const char *base = NULL;
    size_t size = 0;
    fail_at[0] = '\0';
    TRITONSERVER_ErrorDelete(TRITONBACKEND_BackendConfig(backend, &message));
    TRITONSERVER_ErrorDelete(TRITONSERVER_MessageSerializeToJson(message, &base, &size));
    for (int i = 0; points[i]; i++) {
        char part[96] = "\"fail_at\":\"";
        strcat(strcat(part, points[i]), "\"");
        if (memmem(base, size, part, strlen(part)))
            strcpy(fail_at, points[i]);
    }
}

static void *hold(void) {
    unlucky_seen.held++;
    return malloc(100);
}

static void let_go(void *memory) {
    unlucky_seen.held -= memory != NULL;
    free(memory);
}

TRITONSERVER_Error *TRITONBACKEND_Initialize(TRITONBACKEND_Backend *backend) {
    read_setting(backend);
    unlucky_seen.initialized++;
    TRITONSERVER_ErrorDelete(TRITONBACKEND_BackendSetState(backend, hold()));
    return luck("initialize");
}

TRITONSERVER_Error *TRITONBACKEND_Finalize(TRITONBACKEND_Backend *backend) {
    void *state = NULL;
    TRITONSERVER_ErrorDelete(TRITONBACKEND_BackendState(backend, &state));
    let_go(state);
    unlucky_seen.finalized++;
    return luck("finalize");
}

TRITONSERVER_Error *TRITONBACKEND_GetBackendAttribute(TRITONBACKEND_Backend *backend,
                                                      TRITONBACKEND_BackendAttribute *attributes) {
    (void)backend;
    (void)attributes;
    return luck("attribute");
}

TRITONSERVER_Error *TRITONBACKEND_ModelInitialize(TRITONBACKEND_Model *model) {
    unlucky_seen.models++;
    TRITONSERVER_ErrorDelete(TRITONBACKEND_ModelSetState(model, hold()));
    return luck("model");
}

TRITONSERVER_Error *TRITONBACKEND_ModelFinalize(TRITONBACKEND_Model *model) {
    void *state = NULL;
    TRITONSERVER_ErrorDelete(TRITONBACKEND_ModelState(model, &state));
    let_go(state);
    unlucky_seen.models_gone++;
    return luck("model_gone");
}

TRITONSERVER_Error *TRITONBACKEND_ModelInstanceInitialize(TRITONBACKEND_ModelInstance *instance) {
    unlucky_seen.instances++;
    TRITONSERVER_ErrorDelete(TRITONBACKEND_ModelInstanceSetState(instance, hold()));
    TRITONSERVER_Error *error = luck("instance");
    if (!error && unlucky_seen.instances % 2 == 0)
        error = luck("second_instance");
    return error;
}

TRITONSERVER_Error *TRITONBACKEND_ModelInstanceFinalize(TRITONBACKEND_ModelInstance *instance) {
    void *state = NULL;
    TRITONSERVER_ErrorDelete(TRITONBACKEND_ModelInstanceState(instance, &state));
    let_go(state);
    unlucky_seen.instances_gone++;
    return luck("instance_gone");
}

TRITONSERVER_Error *TRITONBACKEND_ModelInstanceReady(TRITONBACKEND_ModelInstance *instance) {
    (void)instance;
    return luck("ready");
}

TRITONSERVER_Error *TRITONBACKEND_ModelInstanceExecute(TRITONBACKEND_ModelInstance *instance,
                                                       TRITONBACKEND_Request **requests,
                                                       const uint32_t request_count) {
    (void)instance;
    unlucky_seen.executions++;
    TRITONSERVER_Error *error = luck("execute");
    for (uint32_t i = 0; i < request_count && !error; i++) {
        TRITONBACKEND_Response *response = NULL;
        TRITONSERVER_ErrorDelete(TRITONBACKEND_ResponseNew(&response, requests[i]));
        TRITONSERVER_ErrorDelete(
            TRITONBACKEND_ResponseSend(response, TRITONSERVER_RESPONSE_COMPLETE_FINAL, NULL));
        TRITONSERVER_ErrorDelete(
            TRITONBACKEND_RequestRelease(requests[i], TRITONSERVER_REQUEST_RELEASE_ALL));
    }
    return error;
}
