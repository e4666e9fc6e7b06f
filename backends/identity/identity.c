/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The backend "identity": the output OUTPUTx is a copy of the input INPUTx, whatever type and
 * shape. The model parameter "execute_delay_ms" makes each execution wait, as a slow model would.
 * Uses nothing but Triton's headers.
 *
 * A model's state is read from its configuration once, in TRITONBACKEND_ModelInitialize, and never
 * changes.
 */
#include <triton/core/tritonbackend.h>

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

typedef struct model_state {
    unsigned long delay_ms;
    bool batches; /* the first extent of each tensor is the batch */
} model_state;

static uint64_t now_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static void log_error(const char *what, TRITONSERVER_Error *error) {
    if (!error)
        return;
    char text[512];
    snprintf(text, sizeof text, "%s: %s", what, TRITONSERVER_ErrorMessage(error));
    TRITONSERVER_ErrorDelete(
        TRITONSERVER_LogMessage(TRITONSERVER_LOG_ERROR, __FILE__, __LINE__, text));
    TRITONSERVER_ErrorDelete(error);
}

/* The number that follows `key` in a configuration, which the server prints compactly; 0 without.
 */
static unsigned long number_after(const char *json, size_t length, const char *key) {
    size_t key_length = strlen(key);
    unsigned long value = 0;
    for (size_t i = 0; i + key_length < length; i++) {
        if (memcmp(json + i, key, key_length) != 0)
            continue;
        for (i += key_length; i < length && json[i] >= '0' && json[i] <= '9'; i++)
            value = value * 10 + (unsigned long)(json[i] - '0');
        return value;
    }
    return 0;
}

TRITONSERVER_Error *TRITONBACKEND_ModelInitialize(TRITONBACKEND_Model *model) {
    TRITONSERVER_Message *config = NULL;
    const char *json = NULL;
    size_t length = 0;
    TRITONSERVER_Error *error = TRITONBACKEND_ModelConfig(model, 1, &config);
    if (error)
        return error;
    model_state *state = malloc(sizeof *state);
    error = TRITONSERVER_MessageSerializeToJson(config, &json, &length);
    if (!error && !state)
        error = TRITONSERVER_ErrorNew(TRITONSERVER_ERROR_UNAVAILABLE, "out of memory");
    if (!error) {
        state->delay_ms = number_after(json, length, "\"execute_delay_ms\":{\"string_value\":\"");
        state->batches = number_after(json, length, "\"max_batch_size\":") > 0;
        error = TRITONBACKEND_ModelSetState(model, state);
    }
    log_error("cannot delete a message", TRITONSERVER_MessageDelete(config));
    if (error)
        free(state);
    return error;
}

TRITONSERVER_Error *TRITONBACKEND_ModelFinalize(TRITONBACKEND_Model *model) {
    void *state = NULL;
    TRITONSERVER_Error *error = TRITONBACKEND_ModelState(model, &state);
    free(state);
    return error;
}

/* Copies one input into a new output of the response. */
static TRITONSERVER_Error *copy_tensor(TRITONBACKEND_Input *input, const char *output_name,
                                       TRITONBACKEND_Response *response) {
    TRITONSERVER_DataType datatype = TRITONSERVER_TYPE_INVALID;
    const int64_t *shape = NULL;
    uint32_t rank = 0, count = 0;
    uint64_t size_bytes = 0;
    TRITONBACKEND_Output *output = NULL;
    void *buffer = NULL;
    TRITONSERVER_MemoryType memory_type = TRITONSERVER_MEMORY_CPU;
    int64_t memory_type_id = 0;
    TRITONSERVER_Error *error =
        TRITONBACKEND_InputProperties(input, NULL, &datatype, &shape, &rank, &size_bytes, &count);
    if (!error)
        error = TRITONBACKEND_ResponseOutput(response, &output, output_name, datatype, shape, rank);
    if (!error)
        error =
            TRITONBACKEND_OutputBuffer(output, &buffer, size_bytes, &memory_type, &memory_type_id);
    for (uint32_t i = 0; i < count && !error; i++) {
        const void *piece = NULL;
        uint64_t piece_bytes = 0;
        error = TRITONBACKEND_InputBuffer(input, i, &piece, &piece_bytes, &memory_type,
                                          &memory_type_id);
        if (!error && piece_bytes) {
            memcpy(buffer, piece, piece_bytes);
            buffer = (char *)buffer + piece_bytes;
        }
    }
    return error;
}

/* OUTPUT… is the copy of INPUT…: "OUTPUT0" of "INPUT0". */
static TRITONSERVER_Error *answer(TRITONBACKEND_Request *request,
                                  TRITONBACKEND_Response *response) {
    uint32_t count = 0;
    TRITONSERVER_Error *error = TRITONBACKEND_RequestOutputCount(request, &count);
    for (uint32_t i = 0; i < count && !error; i++) {
        const char *output_name = NULL;
        char input_name[256];
        TRITONBACKEND_Input *input = NULL;
        error = TRITONBACKEND_RequestOutputName(request, i, &output_name);
        if (error)
            break;
        if (strncmp(output_name, "OUTPUT", 6) != 0)
            return TRITONSERVER_ErrorNew(TRITONSERVER_ERROR_INVALID_ARG,
                                         "identity expects outputs named OUTPUT...");
        snprintf(input_name, sizeof input_name, "INPUT%s", output_name + 6);
        error = TRITONBACKEND_RequestInput(request, input_name, &input);
        if (!error)
            error = copy_tensor(input, output_name, response);
    }
    return error;
}

/* How much of a batch the request makes up. */
static uint64_t batch_of(TRITONBACKEND_Request *request) {
    TRITONBACKEND_Input *input = NULL;
    const int64_t *shape = NULL;
    uint32_t rank = 0;
    TRITONSERVER_Error *error = TRITONBACKEND_RequestInputByIndex(request, 0, &input);
    if (!error)
        error = TRITONBACKEND_InputProperties(input, NULL, NULL, &shape, &rank, NULL, NULL);
    TRITONSERVER_ErrorDelete(error);
    return rank > 0 ? (uint64_t)shape[0] : 1;
}

static void run(TRITONBACKEND_ModelInstance *instance, TRITONBACKEND_Request *request,
                uint64_t start_ns) {
    TRITONBACKEND_Response *response = NULL;
    uint64_t compute_start_ns = now_ns();
    TRITONSERVER_Error *error = TRITONBACKEND_ResponseNew(&response, request);
    bool success = false;
    if (error) {
        log_error("cannot make a response", error);
    } else {
        error = answer(request, response);
        success = !error;
        log_error(
            "cannot send a response",
            TRITONBACKEND_ResponseSend(response, TRITONSERVER_RESPONSE_COMPLETE_FINAL, error));
        TRITONSERVER_ErrorDelete(error);
    }
    uint64_t end_ns = now_ns();
    log_error("cannot report statistics",
              TRITONBACKEND_ModelInstanceReportStatistics(instance, request, success, start_ns,
                                                          compute_start_ns, end_ns, end_ns));
    log_error("cannot release a request",
              TRITONBACKEND_RequestRelease(request, TRITONSERVER_REQUEST_RELEASE_ALL));
}

TRITONSERVER_Error *TRITONBACKEND_ModelInstanceExecute(TRITONBACKEND_ModelInstance *instance,
                                                       TRITONBACKEND_Request **requests,
                                                       const uint32_t request_count) {
    TRITONBACKEND_Model *model = NULL;
    void *state = NULL;
    uint64_t start_ns = now_ns();
    TRITONSERVER_Error *error = TRITONBACKEND_ModelInstanceModel(instance, &model);
    if (!error)
        error = TRITONBACKEND_ModelState(model, &state);
    if (error)
        return error; /* nothing was answered yet: the server answers all */
    unsigned long delay_ms = ((const model_state *)state)->delay_ms;
    uint64_t batch_size = 0;
    if (delay_ms) {
        struct timespec delay = {.tv_sec = (time_t)(delay_ms / 1000),
                                 .tv_nsec = (long)(delay_ms % 1000) * 1000000};
        nanosleep(&delay, NULL);
    }
    for (uint32_t i = 0; i < request_count; i++) {
        batch_size += ((const model_state *)state)->batches ? batch_of(requests[i]) : 1;
        run(instance, requests[i], start_ns); /* which gives the request back */
    }
    uint64_t end_ns = now_ns();
    log_error("cannot report statistics",
              TRITONBACKEND_ModelInstanceReportBatchStatistics(instance, batch_size, start_ns,
                                                               start_ns, end_ns, end_ns));
    return NULL;
}
