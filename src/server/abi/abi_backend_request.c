/* SPDX-License-Identifier: Apache-2.0 */
/* The C API for backends: requests and their inputs. */
#include "base/assert.h"
#include "server/core/error.h"
#include "server/request/response.h"

#include <triton/core/tritonbackend.h>

static kelp_request *of(TRITONBACKEND_Request *handle) {
    return (kelp_request *)handle;
}

/* ---- inputs ---- */

TRITONSERVER_Error *TRITONBACKEND_InputProperties(TRITONBACKEND_Input *input, const char **name,
                                                  TRITONSERVER_DataType *datatype,
                                                  const int64_t **shape, uint32_t *dims_count,
                                                  uint64_t *byte_size, uint32_t *buffer_count) {
    return TRITONBACKEND_InputPropertiesForHostPolicy(input, NULL, name, datatype, shape,
                                                      dims_count, byte_size, buffer_count);
}

TRITONSERVER_Error *
TRITONBACKEND_InputPropertiesForHostPolicy(TRITONBACKEND_Input *input, const char *host_policy_name,
                                           const char **name, TRITONSERVER_DataType *datatype,
                                           const int64_t **shape, uint32_t *dims_count,
                                           uint64_t *byte_size, uint32_t *buffer_count) {
    if (input == NULL)
        return kelp_null_error(__func__, "input");
    const kelp_input *in = (const kelp_input *)input;
    const kelp_data *data = kelp_input_data(in, host_policy_name);
    if (name != NULL)
        *name = kelp_text_get(&in->name);
    if (datatype != NULL)
        *datatype = in->datatype;
    if (shape != NULL)
        *shape = in->shape;
    if (dims_count != NULL)
        *dims_count = in->rank;
    if (byte_size != NULL)
        *byte_size = data->size_bytes;
    if (buffer_count != NULL)
        *buffer_count = (uint32_t)data->count;
    return NULL;
}

/* Returns a buffer of an input. An index past the last buffer gives an empty one without an error,
 * because backends ask for buffer 0 of empty tensors. */
static TRITONSERVER_Error *block_at(const char *function, TRITONBACKEND_Input *input,
                                    const char *policy, uint32_t index, kelp_data_block **out) {
    static _Thread_local kelp_data_block empty; /* writable: backends get its attributes */
    if (input == NULL)
        return kelp_null_error(function, "input");
    const kelp_data *data = kelp_input_data((const kelp_input *)input, policy);
    if (index >= data->count) {
        empty = (kelp_data_block){.attributes.memory_type = TRITONSERVER_MEMORY_CPU};
        *out = &empty;
        return NULL;
    }
    *out = &data->blocks[index];
    KELP_ASSERT((*out)->base != NULL && (*out)->attributes.size_bytes > 0);
    return NULL;
}

TRITONSERVER_Error *TRITONBACKEND_InputBuffer(TRITONBACKEND_Input *input, const uint32_t index,
                                              const void **buffer, uint64_t *buffer_byte_size,
                                              TRITONSERVER_MemoryType *memory_type,
                                              int64_t *memory_type_id) {
    return TRITONBACKEND_InputBufferForHostPolicy(input, NULL, index, buffer, buffer_byte_size,
                                                  memory_type, memory_type_id);
}

TRITONSERVER_Error *TRITONBACKEND_InputBufferForHostPolicy(
    TRITONBACKEND_Input *input, const char *host_policy_name, const uint32_t index,
    const void **buffer, uint64_t *buffer_byte_size, TRITONSERVER_MemoryType *memory_type,
    int64_t *memory_type_id) {
    kelp_data_block *block = NULL;
    TRITONSERVER_Error *error = block_at(__func__, input, host_policy_name, index, &block);
    if (error != NULL)
        return error;
    if (buffer == NULL || buffer_byte_size == NULL || memory_type == NULL || memory_type_id == NULL)
        return kelp_null_error(__func__, NULL);
    *buffer = block->base;
    *buffer_byte_size = block->attributes.size_bytes;
    *memory_type = block->attributes.memory_type;
    *memory_type_id = block->attributes.memory_type_id;
    return NULL;
}

TRITONSERVER_Error *
TRITONBACKEND_InputBufferAttributes(TRITONBACKEND_Input *input, const uint32_t index,
                                    const void **buffer,
                                    TRITONSERVER_BufferAttributes **buffer_attributes) {
    kelp_data_block *block = NULL;
    TRITONSERVER_Error *error = block_at(__func__, input, NULL, index, &block);
    if (error != NULL)
        return error;
    if (buffer == NULL || buffer_attributes == NULL)
        return kelp_null_error(__func__, buffer != NULL ? "buffer_attributes" : "buffer");
    *buffer = block->base;
    *buffer_attributes = (TRITONSERVER_BufferAttributes *)&block->attributes;
    return NULL;
}

/* ---- requests ---- */
/* Functions that exist for clients, too, share their implementation. */

TRITONSERVER_Error *TRITONBACKEND_RequestId(TRITONBACKEND_Request *request, const char **id) {
    return TRITONSERVER_InferenceRequestId((TRITONSERVER_InferenceRequest *)request, id);
}

TRITONSERVER_Error *TRITONBACKEND_RequestIsCancelled(TRITONBACKEND_Request *request,
                                                     bool *is_cancelled) {
    return TRITONSERVER_InferenceRequestIsCancelled((TRITONSERVER_InferenceRequest *)request,
                                                    is_cancelled);
}

TRITONSERVER_Error *TRITONBACKEND_RequestCorrelationId(TRITONBACKEND_Request *request,
                                                       uint64_t *id) {
    return TRITONSERVER_InferenceRequestCorrelationId((TRITONSERVER_InferenceRequest *)request, id);
}

TRITONSERVER_Error *TRITONBACKEND_RequestCorrelationIdString(TRITONBACKEND_Request *request,
                                                             const char **id) {
    return TRITONSERVER_InferenceRequestCorrelationIdString(
        (TRITONSERVER_InferenceRequest *)request, id);
}

TRITONSERVER_Error *
TRITONBACKEND_InferenceRequestTimeoutMicroseconds(TRITONBACKEND_Request *request,
                                                  uint64_t *timeout) {
    return TRITONSERVER_InferenceRequestTimeoutMicroseconds(
        (TRITONSERVER_InferenceRequest *)request, timeout);
}

TRITONSERVER_Error *TRITONBACKEND_RequestFlags(TRITONBACKEND_Request *request, uint32_t *flags) {
    return TRITONSERVER_InferenceRequestFlags((TRITONSERVER_InferenceRequest *)request, flags);
}

TRITONSERVER_Error *TRITONBACKEND_RequestParameterCount(TRITONBACKEND_Request *request,
                                                        uint32_t *count) {
    if (request == NULL || count == NULL)
        return kelp_null_error(__func__, request != NULL ? "count" : "request");
    *count = (uint32_t)of(request)->params.count;
    return NULL;
}

static TRITONSERVER_Error *out_of_range(const char *what, uint32_t index, size_t count) {
    return kelp_to_error(KELP_ERROR(
        KELP_INVALID_ARGUMENT, "out of bounds index %u: request has %zu %s", index, count, what));
}

TRITONSERVER_Error *TRITONBACKEND_RequestParameter(TRITONBACKEND_Request *request,
                                                   const uint32_t index, const char **key,
                                                   TRITONSERVER_ParameterType *type,
                                                   const void **vvalue) {
    if (request == NULL || key == NULL || type == NULL || vvalue == NULL)
        return kelp_null_error(__func__, request != NULL ? NULL : "request");
    const kelp_params *params = &of(request)->params;
    if (index >= params->count)
        return out_of_range("parameters", index, params->count);
    KELP_ASSERT(params->count <= params->capacity);
    *key = kelp_text_get(&params->items[index].name);
    *type = params->items[index].type;
    *vvalue = kelp_param_value(&params->items[index]);
    return NULL;
}

TRITONSERVER_Error *TRITONBACKEND_RequestInputCount(TRITONBACKEND_Request *request,
                                                    uint32_t *count) {
    if (request == NULL || count == NULL)
        return kelp_null_error(__func__, request != NULL ? "count" : "request");
    *count = (uint32_t)of(request)->input_count;
    return NULL;
}

TRITONSERVER_Error *TRITONBACKEND_RequestInputName(TRITONBACKEND_Request *request,
                                                   const uint32_t index, const char **input_name) {
    if (request == NULL || input_name == NULL)
        return kelp_null_error(__func__, request != NULL ? "input_name" : "request");
    if (index >= of(request)->input_count)
        return out_of_range("inputs", index, of(request)->input_count);
    *input_name = kelp_text_get(&of(request)->inputs[index]->name);
    return NULL;
}

TRITONSERVER_Error *TRITONBACKEND_RequestInput(TRITONBACKEND_Request *request, const char *name,
                                               TRITONBACKEND_Input **input) {
    if (request == NULL || name == NULL || input == NULL)
        return kelp_null_error(__func__, request == NULL ? "request"
                                         : name == NULL  ? "name"
                                                         : "input");
    kelp_input *found = kelp_request_find_input(of(request), name);
    if (found == NULL)
        return kelp_to_error(KELP_ERROR(KELP_INVALID_ARGUMENT,
                                        KELP_REQUEST_TAG "unknown request input name %s",
                                        kelp_request_tag(of(request)), name));
    *input = (TRITONBACKEND_Input *)found;
    return NULL;
}

TRITONSERVER_Error *TRITONBACKEND_RequestInputByIndex(TRITONBACKEND_Request *request,
                                                      const uint32_t index,
                                                      TRITONBACKEND_Input **input) {
    if (request == NULL || input == NULL)
        return kelp_null_error(__func__, request != NULL ? "input" : "request");
    if (index >= of(request)->input_count)
        return out_of_range("inputs", index, of(request)->input_count);
    KELP_ASSERT(of(request)->input_count <= of(request)->input_spare);
    *input = (TRITONBACKEND_Input *)of(request)->inputs[index];
    return NULL;
}

TRITONSERVER_Error *TRITONBACKEND_RequestOutputCount(TRITONBACKEND_Request *request,
                                                     uint32_t *count) {
    if (request == NULL || count == NULL)
        return kelp_null_error(__func__, request != NULL ? "count" : "request");
    *count = (uint32_t)kelp_request_output_count(of(request));
    return NULL;
}

TRITONSERVER_Error *TRITONBACKEND_RequestOutputName(TRITONBACKEND_Request *request,
                                                    const uint32_t index,
                                                    const char **output_name) {
    if (request == NULL || output_name == NULL)
        return kelp_null_error(__func__, request != NULL ? "output_name" : "request");
    size_t count = kelp_request_output_count(of(request));
    if (index >= count)
        return out_of_range("requested outputs", index, count);
    *output_name = kelp_request_output_name(of(request), index);
    return NULL;
}

TRITONSERVER_Error *
TRITONBACKEND_RequestOutputBufferProperties(TRITONBACKEND_Request *request, const char *name,
                                            size_t *byte_size, TRITONSERVER_MemoryType *memory_type,
                                            int64_t *memory_type_id) {
    if (request == NULL || memory_type == NULL || memory_type_id == NULL)
        return kelp_null_error(__func__, request != NULL ? NULL : "request");
    kelp_request *r = of(request);
    if (r->allocator == NULL || r->allocator->query_fn == NULL)
        return kelp_to_error(KELP_ERROR(KELP_UNAVAILABLE,
                                        KELP_REQUEST_TAG "Output properties are not available: the "
                                                         "response allocator has no query function",
                                        kelp_request_tag(r)));
    return r->allocator->query_fn((TRITONSERVER_ResponseAllocator *)r->allocator,
                                  r->allocator_userp, name, byte_size, memory_type, memory_type_id);
}

TRITONSERVER_Error *TRITONBACKEND_RequestRelease(TRITONBACKEND_Request *request,
                                                 uint32_t release_flags) {
    if (request == NULL)
        return kelp_null_error(__func__, "request");
    return kelp_to_error(kelp_request_release(of(request), release_flags));
}

TRITONSERVER_Error *TRITONBACKEND_RequestTrace(TRITONBACKEND_Request *request,
                                               TRITONSERVER_InferenceTrace **trace) {
    if (request == NULL || trace == NULL)
        return kelp_null_error(__func__, request != NULL ? "trace" : "request");
    *trace = (TRITONSERVER_InferenceTrace *)of(request)->trace;
    return NULL;
}
