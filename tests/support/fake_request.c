/* SPDX-License-Identifier: Apache-2.0 */
#include "support/fake_request.h"

#include <stdio.h>
#include <string.h>

static fake_request *of(TRITONSERVER_InferenceRequest *request) {
    return (fake_request *)(void *)request;
}

static void copy(char *out, const char *text) {
    snprintf(out, FAKE_MAX_TEXT, "%s", text);
}

TRITONSERVER_Error *
TRITONSERVER_InferenceRequestSetId(TRITONSERVER_InferenceRequest *inference_request,
                                   const char *id) {
    copy(of(inference_request)->id, id);
    return NULL;
}

TRITONSERVER_Error *
TRITONSERVER_InferenceRequestSetFlags(TRITONSERVER_InferenceRequest *inference_request,
                                      uint32_t flags) {
    of(inference_request)->flags = flags;
    return NULL;
}

TRITONSERVER_Error *
TRITONSERVER_InferenceRequestSetCorrelationId(TRITONSERVER_InferenceRequest *inference_request,
                                              uint64_t correlation_id) {
    of(inference_request)->correlation = correlation_id;
    return NULL;
}

TRITONSERVER_Error *TRITONSERVER_InferenceRequestSetCorrelationIdString(
    TRITONSERVER_InferenceRequest *inference_request, const char *correlation_id) {
    copy(of(inference_request)->correlation_text, correlation_id);
    return NULL;
}

TRITONSERVER_Error *
TRITONSERVER_InferenceRequestSetPriorityUInt64(TRITONSERVER_InferenceRequest *inference_request,
                                               uint64_t priority) {
    of(inference_request)->priority = priority;
    return NULL;
}

TRITONSERVER_Error *TRITONSERVER_InferenceRequestSetTimeoutMicroseconds(
    TRITONSERVER_InferenceRequest *inference_request, uint64_t timeout_us) {
    of(inference_request)->timeout_us = timeout_us;
    return NULL;
}

TRITONSERVER_Error *
TRITONSERVER_InferenceRequestAddInput(TRITONSERVER_InferenceRequest *inference_request,
                                      const char *name, const TRITONSERVER_DataType datatype,
                                      const int64_t *shape, uint64_t dim_count) {
    fake_request *r = of(inference_request);
    if (r->input_count++ >= FAKE_MAX_ITEMS)
        return NULL;
    copy(r->inputs[r->input_count - 1].name, name);
    r->inputs[r->input_count - 1].type = datatype;
    r->inputs[r->input_count - 1].rank = dim_count;
    for (uint64_t i = 0; i < dim_count && i < FAKE_MAX_RANK; i++)
        r->inputs[r->input_count - 1].shape[i] = shape[i];
    return NULL;
}

TRITONSERVER_Error *TRITONSERVER_InferenceRequestAppendInputData(
    TRITONSERVER_InferenceRequest *inference_request, const char *name, const void *base,
    size_t byte_size, TRITONSERVER_MemoryType memory_type, int64_t memory_type_id) {
    fake_request *r = of(inference_request);
    (void)name, (void)memory_type, (void)memory_type_id;
    for (size_t i = 0; i < byte_size; i++)
        r->checksum = r->checksum * 31 + ((const unsigned char *)base)[i];
    if (r->input_count > 0 && r->input_count <= FAKE_MAX_ITEMS) {
        r->inputs[r->input_count - 1].data = base;
        r->inputs[r->input_count - 1].size_bytes = byte_size;
    }
    return NULL;
}

TRITONSERVER_Error *
TRITONSERVER_InferenceRequestAddRequestedOutput(TRITONSERVER_InferenceRequest *inference_request,
                                                const char *name) {
    fake_request *r = of(inference_request);
    if (r->output_count++ < FAKE_MAX_ITEMS)
        copy(r->outputs[r->output_count - 1], name);
    return NULL;
}

static void add_parameter(TRITONSERVER_InferenceRequest *request, const char *key,
                          TRITONSERVER_ParameterType type, const char *text, int64_t i64,
                          double f64) {
    fake_request *r = of(request);
    if (r->parameter_count++ >= FAKE_MAX_ITEMS)
        return;
    copy(r->parameters[r->parameter_count - 1].name, key);
    copy(r->parameters[r->parameter_count - 1].text, text);
    r->parameters[r->parameter_count - 1].type = type;
    r->parameters[r->parameter_count - 1].i64 = i64;
    r->parameters[r->parameter_count - 1].f64 = f64;
}

TRITONSERVER_Error *
TRITONSERVER_InferenceRequestSetStringParameter(TRITONSERVER_InferenceRequest *request,
                                                const char *key, const char *value) {
    add_parameter(request, key, TRITONSERVER_PARAMETER_STRING, value, 0, 0.0);
    return NULL;
}

TRITONSERVER_Error *
TRITONSERVER_InferenceRequestSetIntParameter(TRITONSERVER_InferenceRequest *request,
                                             const char *key, const int64_t value) {
    add_parameter(request, key, TRITONSERVER_PARAMETER_INT, "", value, 0.0);
    return NULL;
}

TRITONSERVER_Error *
TRITONSERVER_InferenceRequestSetBoolParameter(TRITONSERVER_InferenceRequest *request,
                                              const char *key, const bool value) {
    add_parameter(request, key, TRITONSERVER_PARAMETER_BOOL, "", value, 0.0);
    return NULL;
}

TRITONSERVER_Error *
TRITONSERVER_InferenceRequestSetDoubleParameter(TRITONSERVER_InferenceRequest *request,
                                                const char *key, const double value) {
    add_parameter(request, key, TRITONSERVER_PARAMETER_DOUBLE, "", 0, value);
    return NULL;
}
