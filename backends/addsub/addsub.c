/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The backend "addsub": OUTPUT0 = INPUT0 + INPUT1, OUTPUT1 = INPUT0 - INPUT1, for FP32 and INT32
 * tensors of any shape.
 *
 * This is the example to start a backend from: it uses nothing but Triton's headers, loads in any
 * server that speaks them, and shows what each request is owed, which is exactly one response (or
 * an error) and one release. The execute function runs on the thread of its instance; it keeps no
 * state.
 */
#include <triton/core/tritonbackend.h>

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static uint64_t now_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* An input as one piece of memory. `owned` is the copy that was needed when the server has it in
 * several pieces. */
typedef struct input_view {
    TRITONSERVER_DataType datatype;
    const int64_t *shape;
    uint32_t rank;
    uint64_t size_bytes;
    const void *data;
    void *owned;
} input_view;

static TRITONSERVER_Error *gather(TRITONBACKEND_Input *input, uint32_t count, input_view *view) {
    char *target = NULL;
    uint64_t filled = 0;
    if (count > 1) {
        target = view->owned = malloc(view->size_bytes);
        if (!target)
            return TRITONSERVER_ErrorNew(TRITONSERVER_ERROR_UNAVAILABLE, "out of memory");
        view->data = target;
    }
    for (uint32_t i = 0; i < count; i++) {
        const void *piece = NULL;
        uint64_t piece_bytes = 0;
        TRITONSERVER_MemoryType memory_type = TRITONSERVER_MEMORY_CPU;
        int64_t memory_type_id = 0;
        TRITONSERVER_Error *error = TRITONBACKEND_InputBuffer(input, i, &piece, &piece_bytes,
                                                              &memory_type, &memory_type_id);
        if (error)
            return error;
        if (memory_type == TRITONSERVER_MEMORY_GPU)
            return TRITONSERVER_ErrorNew(TRITONSERVER_ERROR_UNSUPPORTED,
                                         "addsub reads inputs from CPU memory only");
        if (target)
            memcpy(target + filled, piece, piece_bytes);
        else
            view->data = piece;
        filled += piece_bytes;
    }
    return NULL;
}

static TRITONSERVER_Error *read_input(TRITONBACKEND_Request *request, const char *name,
                                      input_view *view) {
    TRITONBACKEND_Input *input = NULL;
    uint32_t count = 0;
    TRITONSERVER_Error *error = TRITONBACKEND_RequestInput(request, name, &input);
    if (error)
        return error;
    error = TRITONBACKEND_InputProperties(input, NULL, &view->datatype, &view->shape, &view->rank,
                                          &view->size_bytes, &count);
    return error ? error : gather(input, count, view);
}

static TRITONSERVER_Error *check_pair(const input_view *a, const input_view *b) {
    if (a->datatype != TRITONSERVER_TYPE_FP32 && a->datatype != TRITONSERVER_TYPE_INT32)
        return TRITONSERVER_ErrorNew(TRITONSERVER_ERROR_UNSUPPORTED,
                                     "addsub takes FP32 and INT32 tensors only");
    if (a->datatype != b->datatype || a->size_bytes != b->size_bytes)
        return TRITONSERVER_ErrorNew(TRITONSERVER_ERROR_INVALID_ARG,
                                     "INPUT0 and INPUT1 differ in type or size");
    return NULL;
}

static void compute(const input_view *a, const input_view *b, bool subtract, void *out) {
    uint64_t count = a->size_bytes / 4;
    if (a->datatype == TRITONSERVER_TYPE_FP32) {
        const float *x = a->data, *y = b->data;
        float *z = out;
        for (uint64_t i = 0; i < count; i++)
            z[i] = subtract ? x[i] - y[i] : x[i] + y[i];
    } else {
        const uint32_t *x = a->data, *y = b->data; /* unsigned, so that overflow wraps */
        uint32_t *z = out;
        for (uint64_t i = 0; i < count; i++)
            z[i] = subtract ? x[i] - y[i] : x[i] + y[i];
    }
}

static TRITONSERVER_Error *write_output(TRITONBACKEND_Response *response, const char *name,
                                        const input_view *a, const input_view *b, bool subtract) {
    TRITONBACKEND_Output *output = NULL;
    void *buffer = NULL;
    TRITONSERVER_MemoryType memory_type = TRITONSERVER_MEMORY_CPU;
    int64_t memory_type_id = 0;
    TRITONSERVER_Error *error =
        TRITONBACKEND_ResponseOutput(response, &output, name, a->datatype, a->shape, a->rank);
    if (error)
        return error;
    error =
        TRITONBACKEND_OutputBuffer(output, &buffer, a->size_bytes, &memory_type, &memory_type_id);
    if (error)
        return error;
    if (memory_type == TRITONSERVER_MEMORY_GPU)
        return TRITONSERVER_ErrorNew(TRITONSERVER_ERROR_UNSUPPORTED,
                                     "addsub writes outputs to CPU memory only");
    compute(a, b, subtract, buffer);
    return NULL;
}

/* Fills the outputs that the request asks for. */
static TRITONSERVER_Error *answer(TRITONBACKEND_Request *request, TRITONBACKEND_Response *response,
                                  const input_view *a, const input_view *b) {
    uint32_t count = 0;
    TRITONSERVER_Error *error = TRITONBACKEND_RequestOutputCount(request, &count);
    for (uint32_t i = 0; i < count && !error; i++) {
        const char *name = NULL;
        error = TRITONBACKEND_RequestOutputName(request, i, &name);
        if (!error)
            error = write_output(response, name, a, b, strcmp(name, "OUTPUT1") == 0);
    }
    return error;
}

static void log_error(const char *what, TRITONSERVER_Error *error) {
    if (!error)
        return;
    char text[512];
    snprintf(text, sizeof text, "%s: %s", what, TRITONSERVER_ErrorMessage(error));
    TRITONSERVER_Error *nested =
        TRITONSERVER_LogMessage(TRITONSERVER_LOG_ERROR, __FILE__, __LINE__, text);
    TRITONSERVER_ErrorDelete(nested);
    TRITONSERVER_ErrorDelete(error);
}

/* One request: response, statistics, release. Returns the first extent of its tensors. */
static uint64_t run(TRITONBACKEND_ModelInstance *instance, TRITONBACKEND_Request *request) {
    input_view a = {0}, b = {0};
    TRITONBACKEND_Response *response = NULL;
    uint64_t start_ns = now_ns();
    TRITONSERVER_Error *error = read_input(request, "INPUT0", &a);
    if (!error)
        error = read_input(request, "INPUT1", &b);
    if (!error)
        error = check_pair(&a, &b);
    uint64_t compute_start_ns = now_ns();
    TRITONSERVER_Error *no_response = TRITONBACKEND_ResponseNew(&response, request);
    if (!no_response && !error)
        error = answer(request, response, &a, &b);
    uint64_t compute_end_ns = now_ns();
    bool success = !no_response && !error;
    log_error("cannot make a response", no_response);
    if (response)
        log_error(
            "cannot send a response",
            TRITONBACKEND_ResponseSend(response, TRITONSERVER_RESPONSE_COMPLETE_FINAL, error));
    TRITONSERVER_ErrorDelete(error);
    log_error("cannot report statistics", TRITONBACKEND_ModelInstanceReportStatistics(
                                              instance, request, success, start_ns,
                                              compute_start_ns, compute_end_ns, now_ns()));
    uint64_t extent = a.rank > 0 ? (uint64_t)a.shape[0] : 1;
    free(a.owned);
    free(b.owned);
    log_error("cannot release a request",
              TRITONBACKEND_RequestRelease(request, TRITONSERVER_REQUEST_RELEASE_ALL));
    return extent;
}

TRITONSERVER_Error *TRITONBACKEND_Initialize(TRITONBACKEND_Backend *backend) {
    uint32_t major = 0, minor = 0;
    (void)backend;
    TRITONSERVER_Error *error = TRITONBACKEND_ApiVersion(&major, &minor);
    if (error)
        return error;
    if (major != TRITONBACKEND_API_VERSION_MAJOR || minor < TRITONBACKEND_API_VERSION_MINOR)
        return TRITONSERVER_ErrorNew(TRITONSERVER_ERROR_UNSUPPORTED,
                                     "addsub was built for a newer backend API");
    return NULL;
}

/* The state of a model is whether it batches: then the first extent of each tensor is the batch. */
static char batches;

TRITONSERVER_Error *TRITONBACKEND_ModelInitialize(TRITONBACKEND_Model *model) {
    static const char unbatched[] = "\"max_batch_size\":0";
    TRITONSERVER_Message *config = NULL;
    const char *json = NULL;
    size_t length = 0;
    TRITONSERVER_Error *error = TRITONBACKEND_ModelConfig(model, 1, &config);
    if (error)
        return error;
    error = TRITONSERVER_MessageSerializeToJson(config, &json, &length);
    if (!error)
        error = TRITONBACKEND_ModelSetState(
            model, memmem(json, length, unbatched, sizeof unbatched - 1) ? NULL : &batches);
    log_error("cannot delete a message", TRITONSERVER_MessageDelete(config));
    return error;
}

TRITONSERVER_Error *TRITONBACKEND_ModelInstanceExecute(TRITONBACKEND_ModelInstance *instance,
                                                       TRITONBACKEND_Request **requests,
                                                       const uint32_t request_count) {
    uint64_t start_ns = now_ns();
    uint64_t batch_size = 0;
    TRITONBACKEND_Model *model = NULL;
    void *state = NULL;
    TRITONSERVER_Error *error = TRITONBACKEND_ModelInstanceModel(instance, &model);
    if (!error)
        error = TRITONBACKEND_ModelState(model, &state);
    if (error)
        return error; /* nothing was answered yet: the server answers all */
    for (uint32_t i = 0; i < request_count; i++) {
        uint64_t extent = run(instance, requests[i]);
        batch_size += state ? extent : 1;
    }
    uint64_t end_ns = now_ns();
    log_error("cannot report statistics",
              TRITONBACKEND_ModelInstanceReportBatchStatistics(instance, batch_size, start_ns,
                                                               start_ns, end_ns, end_ns));
    return NULL;
}
