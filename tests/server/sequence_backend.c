/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A backend for models that batch sequences. OUT is INT32 with the sum of IN within the sequence
 * (the state SUM_IN, SUM_OUT), the values of the controls START, READY, END and CORRID (-1: the
 * model has none), the position in the batch, and the size of the batch. If IN is negative, the
 * request fails after it has written the state, without storing it. In an iterative model, the
 * request is rescheduled until the sum, which then counts executions, is IN.
 */
#include <triton/core/tritonbackend.h>

#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>

#define EXPORT __attribute__((visibility("default")))

enum { SUM, AT_START, AT_READY, AT_END, CORRID, POSITION, COUNT, VALUES };

/* Read by the test: null requests that the backend has seen. */
EXPORT atomic_int sequence_nulls;

static TRITONSERVER_Error *read_input(TRITONBACKEND_Request *request, const char *name,
                                      int32_t *out, bool *out_found) {
    TRITONBACKEND_Input *input = NULL;
    const void *buffer = NULL;
    uint64_t size_bytes = 0;
    uint32_t buffers = 0;
    TRITONSERVER_MemoryType type = TRITONSERVER_MEMORY_CPU;
    int64_t id = 0;
    TRITONSERVER_Error *error = TRITONBACKEND_RequestInput(request, name, &input);
    *out_found = error == NULL;
    if (error != NULL) {
        TRITONSERVER_ErrorDelete(error);
        *out = -1;
        return NULL;
    }
    error = TRITONBACKEND_InputProperties(input, NULL, NULL, NULL, NULL, &size_bytes, &buffers);
    if (error == NULL)
        error = TRITONBACKEND_InputBuffer(input, 0, &buffer, &size_bytes, &type, &id);
    if (error == NULL)
        memcpy(out, buffer, sizeof *out);
    return error;
}

/* Writes the new sum; the state stays as it was if `store` is false. */
static TRITONSERVER_Error *write_state(TRITONBACKEND_Request *request, int32_t sum, bool store) {
    static const int64_t shape[] = {1, 1};
    TRITONBACKEND_State *state = NULL;
    void *buffer = NULL;
    TRITONSERVER_MemoryType type = TRITONSERVER_MEMORY_CPU;
    int64_t id = 0;
    TRITONSERVER_Error *error =
        TRITONBACKEND_StateNew(&state, request, "SUM_OUT", TRITONSERVER_TYPE_INT32, shape, 2);
    if (error == NULL)
        error = TRITONBACKEND_StateBuffer(state, &buffer, sizeof sum, &type, &id);
    if (error != NULL)
        return error;
    memcpy(buffer, &sum, sizeof sum);
    return store ? TRITONBACKEND_StateUpdate(state) : NULL;
}

/* Responds with the values, or without outputs to a null request. */
static TRITONSERVER_Error *respond(TRITONBACKEND_Request *request, const int32_t *values,
                                   TRITONSERVER_Error *failure) {
    static const int64_t shape[] = {1, VALUES};
    TRITONBACKEND_Response *response = NULL;
    TRITONBACKEND_Output *output = NULL;
    void *buffer = NULL;
    TRITONSERVER_MemoryType type = TRITONSERVER_MEMORY_CPU;
    int64_t id = 0;
    uint32_t outputs = 0;
    TRITONSERVER_Error *error = TRITONBACKEND_ResponseNew(&response, request);
    if (error == NULL)
        error = TRITONBACKEND_RequestOutputCount(request, &outputs);
    if (error == NULL && outputs > 0 && failure == NULL)
        error = TRITONBACKEND_ResponseOutput(response, &output, "OUT", TRITONSERVER_TYPE_INT32,
                                             shape, 2);
    if (error == NULL && outputs > 0 && failure == NULL)
        error = TRITONBACKEND_OutputBuffer(output, &buffer, VALUES * sizeof *values, &type, &id);
    if (error != NULL)
        return error;
    if (buffer != NULL)
        memcpy(buffer, values, VALUES * sizeof *values);
    return TRITONBACKEND_ResponseSend(response, TRITONSERVER_RESPONSE_COMPLETE_FINAL, failure);
}

static TRITONSERVER_Error *run(TRITONBACKEND_ModelInstance *instance,
                               TRITONBACKEND_Request *request, uint32_t position, uint32_t count,
                               bool *out_again) {
    static const char *const names[] = {"SUM_IN", "START", "READY", "END", "CORRID"};
    int32_t values[VALUES] = {0}, in = 0;
    bool found[VALUES] = {false}, has_in = false;
    TRITONSERVER_Error *error = read_input(request, "IN", &in, &has_in), *failure = NULL;
    for (int i = 0; i < POSITION && error == NULL; i++)
        error = read_input(request, names[i], &values[i], &found[i]);
    if (error != NULL)
        return error;
    bool is_null = found[AT_READY] && values[AT_READY] == 0;
    sequence_nulls += is_null;
    values[SUM] = (found[SUM] ? values[SUM] : 0) + (found[CORRID] || is_null ? in : 1);
    values[POSITION] = (int32_t)position;
    values[COUNT] = (int32_t)count;
    if (found[SUM])
        error = write_state(request, values[SUM], in >= 0);
    *out_again = !found[CORRID] && values[SUM] < in;
    if (error != NULL || *out_again)
        return error;
    if (in < 0)
        failure = TRITONSERVER_ErrorNew(TRITONSERVER_ERROR_INTERNAL, "IN is negative");
    error = TRITONBACKEND_ModelInstanceReportStatistics(instance, request, in >= 0, 1, 2, 3, 4);
    if (error == NULL)
        error = respond(request, values, failure);
    TRITONSERVER_ErrorDelete(failure);
    return error;
}

EXPORT TRITONSERVER_Error *TRITONBACKEND_ModelInstanceExecute(TRITONBACKEND_ModelInstance *instance,
                                                              TRITONBACKEND_Request **requests,
                                                              const uint32_t request_count) {
    for (uint32_t i = 0; i < request_count; i++) {
        bool again = false;
        TRITONSERVER_Error *error = run(instance, requests[i], i, request_count, &again);
        if (error == NULL)
            error = TRITONBACKEND_RequestRelease(requests[i],
                                                 again ? TRITONSERVER_REQUEST_RELEASE_RESCHEDULE
                                                       : TRITONSERVER_REQUEST_RELEASE_ALL);
        if (error != NULL)
            return error;
    }
    return TRITONBACKEND_ModelInstanceReportBatchStatistics(instance, request_count, 1, 2, 3, 4);
}
