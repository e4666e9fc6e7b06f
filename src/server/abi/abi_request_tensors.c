/* SPDX-License-Identifier: Apache-2.0 */
/* The C API for clients: inputs and requested outputs of a request. */
#include "server/core/error.h"
#include "server/request/request.h"

static TRITONSERVER_Error *check(const char *function, TRITONSERVER_InferenceRequest *handle,
                                 const char *name) {
    if (handle == NULL || name == NULL)
        return kelp_null_error(function, handle != NULL ? "name" : "inference_request");
    return NULL;
}

TRITONSERVER_Error *
TRITONSERVER_InferenceRequestAddInput(TRITONSERVER_InferenceRequest *inference_request,
                                      const char *name, const TRITONSERVER_DataType datatype,
                                      const int64_t *shape, uint64_t dim_count) {
    TRITONSERVER_Error *error = check(__func__, inference_request, name);
    if (error != NULL)
        return error;
    if (shape == NULL && dim_count)
        return kelp_null_error(__func__, "shape");
    return kelp_to_error(kelp_request_add_input((kelp_request *)inference_request, name, datatype,
                                                shape, dim_count, NULL));
}

TRITONSERVER_Error *
TRITONSERVER_InferenceRequestAddRawInput(TRITONSERVER_InferenceRequest *inference_request,
                                         const char *name) {
    TRITONSERVER_Error *error = check(__func__, inference_request, name);
    if (error != NULL)
        return error;
    return kelp_to_error(kelp_request_add_raw_input((kelp_request *)inference_request, name));
}

TRITONSERVER_Error *
TRITONSERVER_InferenceRequestRemoveInput(TRITONSERVER_InferenceRequest *inference_request,
                                         const char *name) {
    TRITONSERVER_Error *error = check(__func__, inference_request, name);
    if (error != NULL)
        return error;
    return kelp_to_error(kelp_request_remove_input((kelp_request *)inference_request, name));
}

TRITONSERVER_Error *
TRITONSERVER_InferenceRequestRemoveAllInputs(TRITONSERVER_InferenceRequest *inference_request) {
    if (inference_request == NULL)
        return kelp_null_error(__func__, "inference_request");
    kelp_request_remove_inputs((kelp_request *)inference_request);
    return NULL;
}

static TRITONSERVER_Error *append(const char *function, TRITONSERVER_InferenceRequest *handle,
                                  const char *name, const void *base, const char *policy,
                                  const kelp_buffer_attributes *attributes) {
    TRITONSERVER_Error *error = check(function, handle, name);
    if (error != NULL)
        return error;
    if (base == NULL && attributes->size_bytes)
        return kelp_null_error(function, "base");
    kelp_input *input = NULL;
    kelp_status *status = kelp_request_get_input((kelp_request *)handle, name, &input);
    if (status == NULL)
        status = kelp_request_append((kelp_request *)handle, input, policy, base, attributes);
    return kelp_to_error(status);
}

TRITONSERVER_Error *TRITONSERVER_InferenceRequestAppendInputData(
    TRITONSERVER_InferenceRequest *inference_request, const char *name, const void *base,
    size_t byte_size, TRITONSERVER_MemoryType memory_type, int64_t memory_type_id) {
    kelp_buffer_attributes attributes = {
        .size_bytes = byte_size, .memory_type = memory_type, .memory_type_id = memory_type_id};
    return append(__func__, inference_request, name, base, NULL, &attributes);
}

TRITONSERVER_Error *TRITONSERVER_InferenceRequestAppendInputDataWithHostPolicy(
    TRITONSERVER_InferenceRequest *inference_request, const char *name, const void *base,
    size_t byte_size, TRITONSERVER_MemoryType memory_type, int64_t memory_type_id,
    const char *host_policy_name) {
    if (host_policy_name == NULL)
        return kelp_null_error(__func__, "host_policy_name");
    kelp_buffer_attributes attributes = {
        .size_bytes = byte_size, .memory_type = memory_type, .memory_type_id = memory_type_id};
    return append(__func__, inference_request, name, base, host_policy_name, &attributes);
}

TRITONSERVER_Error *TRITONSERVER_InferenceRequestAppendInputDataWithBufferAttributes(
    TRITONSERVER_InferenceRequest *inference_request, const char *name, const void *base,
    TRITONSERVER_BufferAttributes *buffer_attributes) {
    if (buffer_attributes == NULL)
        return kelp_null_error(__func__, "buffer_attributes");
    return append(__func__, inference_request, name, base, NULL,
                  (const kelp_buffer_attributes *)buffer_attributes);
}

TRITONSERVER_Error *
TRITONSERVER_InferenceRequestRemoveAllInputData(TRITONSERVER_InferenceRequest *inference_request,
                                                const char *name) {
    TRITONSERVER_Error *error = check(__func__, inference_request, name);
    if (error != NULL)
        return error;
    kelp_input *input = NULL;
    kelp_status *status = kelp_request_get_input((kelp_request *)inference_request, name, &input);
    if (status == NULL)
        kelp_input_clear_data(input);
    return kelp_to_error(status);
}

TRITONSERVER_Error *
TRITONSERVER_InferenceRequestAddRequestedOutput(TRITONSERVER_InferenceRequest *inference_request,
                                                const char *name) {
    TRITONSERVER_Error *error = check(__func__, inference_request, name);
    if (error != NULL)
        return error;
    return kelp_to_error(kelp_request_add_output((kelp_request *)inference_request, name));
}

TRITONSERVER_Error *
TRITONSERVER_InferenceRequestRemoveRequestedOutput(TRITONSERVER_InferenceRequest *inference_request,
                                                   const char *name) {
    TRITONSERVER_Error *error = check(__func__, inference_request, name);
    if (error != NULL)
        return error;
    kelp_request_remove_output((kelp_request *)inference_request, name);
    return NULL;
}

TRITONSERVER_Error *TRITONSERVER_InferenceRequestRemoveAllRequestedOutputs(
    TRITONSERVER_InferenceRequest *inference_request) {
    if (inference_request == NULL)
        return kelp_null_error(__func__, "inference_request");
    ((kelp_request *)inference_request)->output_count = 0;
    return NULL;
}
