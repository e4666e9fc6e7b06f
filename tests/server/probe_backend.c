/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A backend that records its calls for a test in the same process. It rejects a version whose
 * directory contains a file "bad". OUTPUT0 has the type, shape and bytes of INPUT0.
 */
#include "server/probe_backend.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))

EXPORT probe_notes probe_seen;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;

static void must(TRITONSERVER_Error *error) {
    if (error) {
        fprintf(stderr, "probe: %s\n", TRITONSERVER_ErrorMessage(error));
        abort();
    }
}

static void note_message(TRITONSERVER_Message *message, char *out, size_t size) {
    const char *base = NULL;
    size_t length = 0;
    must(TRITONSERVER_MessageSerializeToJson(message, &base, &length));
    snprintf(out, size, "%.*s", (int)length, base);
}

TRITONSERVER_Error *TRITONBACKEND_Initialize(TRITONBACKEND_Backend *backend) {
    TRITONSERVER_Message *config = NULL;
    TRITONBACKEND_ArtifactType type;
    const char *location = NULL;
    must(TRITONBACKEND_BackendConfig(backend, &config));
    note_message(config, probe_seen.backend_config, sizeof probe_seen.backend_config);
    must(TRITONBACKEND_BackendArtifacts(backend, &type, &location));
    snprintf(probe_seen.artifacts, sizeof probe_seen.artifacts, "%s", location);
    return NULL;
}

TRITONSERVER_Error *TRITONBACKEND_ModelInitialize(TRITONBACKEND_Model *model) {
    TRITONBACKEND_ArtifactType type;
    const char *location = NULL;
    uint64_t version = 0;
    char path[600];
    must(TRITONBACKEND_ModelRepository(model, &type, &location));
    must(TRITONBACKEND_ModelVersion(model, &version));
    must(TRITONBACKEND_ModelAutoCompleteConfig(model, &probe_seen.auto_complete));
    snprintf(path, sizeof path, "%s/%llu/bad", location, (unsigned long long)version);
    probe_seen.models++;
    if (access(path, F_OK) == 0)
        return TRITONSERVER_ErrorNew(TRITONSERVER_ERROR_INTERNAL, "a bad version");
    return NULL;
}

TRITONSERVER_Error *TRITONBACKEND_ModelFinalize(TRITONBACKEND_Model *model) {
    (void)model;
    pthread_mutex_lock(&lock);
    probe_seen.finalize_thread = pthread_self();
    pthread_mutex_unlock(&lock);
    return NULL;
}

/* Three instances wait for each other, at most 10 s. */
static TRITONSERVER_Error *meet(void) {
    static unsigned here;
    struct timespec until;
    int result = 0;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += 10;
    pthread_mutex_lock(&lock);
    here++;
    pthread_cond_broadcast(&changed);
    while (here < 3 && result == 0)
        result = pthread_cond_timedwait(&changed, &lock, &until);
    pthread_mutex_unlock(&lock);
    return result == 0 ? NULL : TRITONSERVER_ErrorNew(TRITONSERVER_ERROR_INTERNAL, "alone");
}

TRITONSERVER_Error *TRITONBACKEND_ModelInstanceInitialize(TRITONBACKEND_ModelInstance *instance) {
    TRITONSERVER_Message *policy = NULL;
    TRITONBACKEND_Model *model = NULL;
    const char *name = NULL;
    uint64_t version = 0;
    bool passive = false;
    must(TRITONBACKEND_ModelInstanceName(instance, &name));
    must(TRITONBACKEND_ModelInstanceIsPassive(instance, &passive));
    must(TRITONBACKEND_ModelInstanceHostPolicy(instance, &policy));
    pthread_mutex_lock(&lock);
    note_message(policy, probe_seen.host_policy, sizeof probe_seen.host_policy);
    snprintf(probe_seen.instance, sizeof probe_seen.instance, "%s", name);
    probe_seen.initialize_thread = pthread_self();
    probe_seen.instances++;
    probe_seen.passive += passive;
    pthread_mutex_unlock(&lock);
    must(TRITONBACKEND_ModelInstanceModel(instance, &model));
    must(TRITONBACKEND_ModelName(model, &name));
    if (strcmp(name, "together") == 0)
        return meet();
    must(TRITONBACKEND_ModelVersion(model, &version));
    if (strstr(probe_seen.instance, "rejected") ||
        (strstr(probe_seen.instance, "only_first") && version != 1))
        return TRITONSERVER_ErrorNew(TRITONSERVER_ERROR_UNAVAILABLE, "no such instance here");
    return NULL;
}

TRITONSERVER_Error *TRITONBACKEND_ModelInstanceFinalize(TRITONBACKEND_ModelInstance *instance) {
    (void)instance;
    atomic_fetch_add(&probe_seen.ended, 1);
    return NULL;
}

static void note_parameters(TRITONBACKEND_Request *request) {
    char *at = probe_seen.parameters, *end = at + sizeof probe_seen.parameters;
    uint32_t count = 0;
    must(TRITONBACKEND_RequestParameterCount(request, &count));
    *at = '\0';
    for (uint32_t i = 0; i < count; i++) {
        const char *name = NULL;
        TRITONSERVER_ParameterType type;
        const void *value = NULL;
        must(TRITONBACKEND_RequestParameter(request, i, &name, &type, &value));
        size_t room = (size_t)(end - at);
        if (type == TRITONSERVER_PARAMETER_STRING)
            at += snprintf(at, room, "%s=%s;", name, (const char *)value);
        else if (type == TRITONSERVER_PARAMETER_INT)
            at += snprintf(at, room, "%s=%lld;", name, (long long)*(const int64_t *)value);
        else if (type == TRITONSERVER_PARAMETER_BOOL)
            at += snprintf(at, room, "%s=%d;", name, *(const bool *)value);
        else
            at += snprintf(at, room, "%s=%g;", name, *(const double *)value);
    }
}

static void note_outputs(TRITONBACKEND_Request *request) {
    uint32_t count = 0;
    TRITONSERVER_MemoryType type = TRITONSERVER_MEMORY_GPU;
    int64_t id = 5;
    size_t size_bytes = 64;
    must(TRITONBACKEND_RequestOutputCount(request, &count));
    probe_seen.outputs[0] = '\0';
    for (uint32_t i = 0; i < count; i++) {
        const char *name = NULL;
        must(TRITONBACKEND_RequestOutputName(request, i, &name));
        strcat(strcat(probe_seen.outputs, name), ";");
    }
    /* There are no properties without the allocator's query function. */
    TRITONSERVER_Error *error =
        TRITONBACKEND_RequestOutputBufferProperties(request, "OUTPUT0", &size_bytes, &type, &id);
    snprintf(probe_seen.preferred_error, sizeof probe_seen.preferred_error, "%s",
             error != NULL ? TRITONSERVER_ErrorMessage(error) : "");
    TRITONSERVER_ErrorDelete(error);
    probe_seen.preferred = type;
    probe_seen.preferred_id = id;
}

static void note_request(TRITONBACKEND_Request *request) {
    const char *text = NULL;
    probe_seen.request = request;
    must(TRITONBACKEND_RequestId(request, &text));
    snprintf(probe_seen.id, sizeof probe_seen.id, "%s", text);
    must(TRITONBACKEND_RequestCorrelationId(request, &probe_seen.correlation));
    must(TRITONBACKEND_RequestFlags(request, &probe_seen.flags));
    must(TRITONBACKEND_InferenceRequestTimeoutMicroseconds(request, &probe_seen.timeout_us));
    must(TRITONBACKEND_RequestInputCount(request, &probe_seen.inputs));
    note_parameters(request);
    note_outputs(request);
}

static void note_input(TRITONBACKEND_Input *input, TRITONBACKEND_ModelInstance *instance,
                       const int64_t **out_shape, uint32_t *out_rank) {
    const char *policy = strstr(probe_seen.host_policy, "{\"") + 2;
    char name[64] = "";
    const void *buffer = NULL;
    uint64_t size_bytes = 0;
    TRITONSERVER_MemoryType type = TRITONSERVER_MEMORY_CPU;
    int64_t id = 0;
    (void)instance;
    snprintf(name, sizeof name, "%.*s", (int)strcspn(policy, "\""), policy);
    must(TRITONBACKEND_InputPropertiesForHostPolicy(input, name, NULL, &probe_seen.datatype,
                                                    out_shape, out_rank, &probe_seen.size_bytes,
                                                    &probe_seen.buffers));
    probe_seen.rank = *out_rank;
    memcpy(probe_seen.shape, *out_shape, *out_rank * sizeof **out_shape);
    probe_seen.length = 0;
    for (uint32_t i = 0; i < probe_seen.buffers; i++) {
        must(TRITONBACKEND_InputBufferForHostPolicy(input, name, i, &buffer, &size_bytes, &type,
                                                    &id));
        if (probe_seen.length + size_bytes > sizeof probe_seen.data)
            abort();
        memcpy(probe_seen.data + probe_seen.length, buffer, size_bytes);
        probe_seen.length += size_bytes;
    }
    buffer = input;
    must(TRITONBACKEND_InputBuffer(input, probe_seen.buffers, &buffer, &size_bytes, &type, &id));
    if (buffer != NULL || size_bytes != 0 || type != TRITONSERVER_MEMORY_CPU || id != 0)
        abort(); /* past the last buffer is an empty one */
}

/* A model of that name loads itself while it executes. */
static void reload_itself(TRITONBACKEND_ModelInstance *instance) {
    TRITONBACKEND_Model *model = NULL;
    TRITONSERVER_Server *server = NULL;
    const char *name = NULL;
    must(TRITONBACKEND_ModelInstanceModel(instance, &model));
    must(TRITONBACKEND_ModelName(model, &name));
    if (strcmp(name, "itself") != 0)
        return;
    must(TRITONBACKEND_ModelServer(model, &server));
    TRITONSERVER_Error *error = TRITONSERVER_ServerLoadModel(server, name);
    snprintf(probe_seen.reload, sizeof probe_seen.reload, "%s",
             error ? TRITONSERVER_ErrorMessage(error) : "loaded");
    TRITONSERVER_ErrorDelete(error);
}

/* Executions of the instance "held" wait, at most 20 s, until the test releases them. */
static TRITONSERVER_Error *hold(TRITONBACKEND_ModelInstance *instance) {
    const char *name = NULL;
    must(TRITONBACKEND_ModelInstanceName(instance, &name));
    if (strncmp(name, "held", 4) != 0)
        return NULL;
    atomic_fetch_add(&probe_seen.held, 1);
    for (int i = 0; i < 2000 && !atomic_load(&probe_seen.let_go); i++)
        nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
    return atomic_load(&probe_seen.let_go)
               ? NULL
               : TRITONSERVER_ErrorNew(TRITONSERVER_ERROR_INTERNAL, "not released within 20 s");
}

TRITONSERVER_Error *TRITONBACKEND_ModelInstanceExecute(TRITONBACKEND_ModelInstance *instance,
                                                       TRITONBACKEND_Request **requests,
                                                       const uint32_t request_count) {
    TRITONSERVER_Error *error = hold(instance);
    if (error)
        return error;
    probe_seen.execute_thread = pthread_self();
    reload_itself(instance);
    for (uint32_t i = 0; i < request_count; i++) {
        TRITONBACKEND_Input *input = NULL;
        TRITONBACKEND_Response *response = NULL;
        TRITONBACKEND_Output *output = NULL;
        const int64_t *shape = NULL;
        uint32_t rank = 0;
        TRITONSERVER_MemoryType type = TRITONSERVER_MEMORY_CPU;
        int64_t id = 0;
        void *buffer = NULL;
        note_request(requests[i]);
        must(TRITONBACKEND_RequestInput(requests[i], "INPUT0", &input));
        note_input(input, instance, &shape, &rank);
        must(TRITONBACKEND_ResponseNew(&response, requests[i]));
        must(TRITONBACKEND_ResponseOutput(response, &output, "OUTPUT0", probe_seen.datatype, shape,
                                          rank));
        must(TRITONBACKEND_OutputBuffer(output, &buffer, probe_seen.length, &type, &id));
        memcpy(buffer, probe_seen.data, probe_seen.length);
        probe_seen.response = response;
        must(TRITONBACKEND_ResponseSend(response, TRITONSERVER_RESPONSE_COMPLETE_FINAL, NULL));
        must(TRITONBACKEND_RequestRelease(requests[i], TRITONSERVER_REQUEST_RELEASE_ALL));
    }
    return NULL;
}
