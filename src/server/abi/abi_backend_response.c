/* SPDX-License-Identifier: Apache-2.0 */
/* The C API for backends: responses, outputs and response factories. */
#include "base/assert.h"
#include "server/core/error.h"
#include "server/request/response.h"

#include <stdlib.h>
#include <triton/core/tritonbackend.h>

/* ---- factories ---- */
/* A TRITONBACKEND_ResponseFactory is a counted reference to the submission's factory. After the
 * submission is over, a backend may still create one: it tells whether the request was cancelled,
 * but sends nothing. */

/* Returns the factory of the latest submission of a request. */
static TRITONSERVER_Error *factory_of(TRITONBACKEND_Request *handle, kelp_factory **out) {
    *out = ((const kelp_request *)handle)->factory;
    if (*out == NULL)
        return kelp_to_error(KELP_ERROR(KELP_INTERNAL, "the request was not submitted"));
    return NULL;
}

/* Returns an error if the factory was deleted. */
static TRITONSERVER_Error *check_factory(const char *function,
                                         TRITONBACKEND_ResponseFactory *factory) {
    if (factory == NULL)
        return kelp_null_error(function, "factory");
    const kelp_factory *submission = (const kelp_factory *)factory;
    if (atomic_load(&submission->open) == 0 && atomic_load(&submission->late) == 0)
        return kelp_to_error(KELP_ERROR(KELP_INTERNAL, "the response factory was deleted before"));
    return NULL;
}

TRITONSERVER_Error *TRITONBACKEND_ResponseFactoryNew(TRITONBACKEND_ResponseFactory **factory,
                                                     TRITONBACKEND_Request *request) {
    if (factory == NULL || request == NULL)
        return kelp_null_error(__func__, factory != NULL ? "request" : "factory");
    kelp_factory *submission = NULL;
    TRITONSERVER_Error *error = factory_of(request, &submission);
    if (error != NULL)
        return error;
    kelp_factory_retain(submission);
    if (!kelp_factory_open(submission))
        atomic_fetch_add(&submission->late, 1);
    *factory = (TRITONBACKEND_ResponseFactory *)submission;
    return NULL;
}

TRITONSERVER_Error *TRITONBACKEND_ResponseFactoryDelete(TRITONBACKEND_ResponseFactory *factory) {
    TRITONSERVER_Error *error = factory != NULL ? check_factory(__func__, factory) : NULL;
    if (factory == NULL || error != NULL)
        return error;
    kelp_factory *submission = (kelp_factory *)factory;
    /* While a factory holds the submission open, none is late. */
    if (atomic_load(&submission->open) > 0)
        kelp_factory_close(submission);
    else
        atomic_fetch_sub(&submission->late, 1);
    kelp_factory_release(submission);
    return NULL;
}

TRITONSERVER_Error *TRITONBACKEND_ResponseFactorySendFlags(TRITONBACKEND_ResponseFactory *factory,
                                                           const uint32_t send_flags) {
    TRITONSERVER_Error *error = check_factory(__func__, factory);
    return error != NULL
               ? error
               : kelp_to_error(kelp_factory_send_flags((kelp_factory *)factory, send_flags));
}

TRITONSERVER_Error *TRITONBACKEND_ResponseFactoryIsCancelled(TRITONBACKEND_ResponseFactory *factory,
                                                             bool *is_cancelled) {
    if (factory == NULL || is_cancelled == NULL)
        return kelp_null_error(__func__, factory != NULL ? "is_cancelled" : "factory");
    *is_cancelled = atomic_load(&((kelp_factory *)factory)->cancelled);
    return NULL;
}

/* ---- responses ---- */

TRITONSERVER_Error *TRITONBACKEND_ResponseNew(TRITONBACKEND_Response **response,
                                              TRITONBACKEND_Request *request) {
    if (response == NULL || request == NULL)
        return kelp_null_error(__func__, response != NULL ? "request" : "response");
    kelp_factory *factory = NULL;
    TRITONSERVER_Error *error = factory_of(request, &factory);
    return error != NULL ? error
                         : kelp_to_error(kelp_response_create(factory, (kelp_response **)response));
}

TRITONSERVER_Error *TRITONBACKEND_ResponseNewFromFactory(TRITONBACKEND_Response **response,
                                                         TRITONBACKEND_ResponseFactory *factory) {
    if (response == NULL || factory == NULL)
        return kelp_null_error(__func__, response != NULL ? "factory" : "response");
    TRITONSERVER_Error *error = check_factory(__func__, factory);
    if (error != NULL)
        return error;
    return kelp_to_error(kelp_response_create((kelp_factory *)factory, (kelp_response **)response));
}

/* Returns an error if the response was sent, and therefore belongs to the client, or was deleted.
 */
static TRITONSERVER_Error *check_unsent(TRITONBACKEND_Response *handle) {
    const kelp_response *response = (const kelp_response *)handle;
    if (response->factory != NULL && !response->sent)
        return NULL;
    return kelp_to_error(KELP_ERROR(
        KELP_INTERNAL, "the response does not belong to the backend: it was sent before"));
}

TRITONSERVER_Error *TRITONBACKEND_ResponseDelete(TRITONBACKEND_Response *response) {
    TRITONSERVER_Error *error = response != NULL ? check_unsent(response) : NULL;
    if (response != NULL && error == NULL)
        kelp_response_delete((kelp_response *)response);
    return error;
}

static TRITONSERVER_Error *add_param(const char *function, TRITONBACKEND_Response *response,
                                     const char *name, TRITONSERVER_ParameterType type,
                                     kelp_param **out) {
    if (response == NULL || name == NULL)
        return kelp_null_error(function, response != NULL ? "name" : "response");
    TRITONSERVER_Error *error = check_unsent(response);
    if (error != NULL)
        return error;
    return kelp_to_error(kelp_params_add(((kelp_response *)response)->home->allocator,
                                         &((kelp_response *)response)->params, name, type, out));
}

TRITONSERVER_Error *TRITONBACKEND_ResponseSetStringParameter(TRITONBACKEND_Response *response,
                                                             const char *name, const char *value) {
    if (response == NULL || name == NULL || value == NULL)
        return kelp_null_error(__func__, response == NULL ? "response"
                                         : name == NULL   ? "name"
                                                          : "value");
    TRITONSERVER_Error *error = check_unsent(response);
    kelp_response *r = (kelp_response *)response;
    return error != NULL
               ? error
               : kelp_to_error(kelp_params_add_string(r->home->allocator, &r->params, name, value));
}

TRITONSERVER_Error *TRITONBACKEND_ResponseSetIntParameter(TRITONBACKEND_Response *response,
                                                          const char *name, const int64_t value) {
    kelp_param *param = NULL;
    TRITONSERVER_Error *error =
        add_param(__func__, response, name, TRITONSERVER_PARAMETER_INT, &param);
    if (error == NULL)
        param->i64 = value;
    return error;
}

TRITONSERVER_Error *TRITONBACKEND_ResponseSetBoolParameter(TRITONBACKEND_Response *response,
                                                           const char *name, const bool value) {
    kelp_param *param = NULL;
    TRITONSERVER_Error *error =
        add_param(__func__, response, name, TRITONSERVER_PARAMETER_BOOL, &param);
    if (error == NULL)
        param->boolean = value;
    return error;
}

TRITONSERVER_Error *TRITONBACKEND_ResponseSetDoubleParameter(TRITONBACKEND_Response *response,
                                                             const char *name, const double value) {
    kelp_param *param = NULL;
    TRITONSERVER_Error *error =
        add_param(__func__, response, name, TRITONSERVER_PARAMETER_DOUBLE, &param);
    if (error == NULL)
        param->f64 = value;
    return error;
}

TRITONSERVER_Error *TRITONBACKEND_ResponseOutput(TRITONBACKEND_Response *response,
                                                 TRITONBACKEND_Output **output, const char *name,
                                                 const TRITONSERVER_DataType datatype,
                                                 const int64_t *shape, const uint32_t dims_count) {
    if (response == NULL || output == NULL || name == NULL || (shape == NULL && dims_count))
        return kelp_null_error(__func__, response == NULL ? "response"
                                         : output == NULL ? "output"
                                         : name == NULL   ? "name"
                                                          : "shape");
    TRITONSERVER_Error *error = check_unsent(response);
    if (error != NULL)
        return error;
    return kelp_to_error(kelp_response_add_output((kelp_response *)response, name, datatype, shape,
                                                  dims_count, (kelp_output **)output));
}

TRITONSERVER_Error *TRITONBACKEND_ResponseSend(TRITONBACKEND_Response *response,
                                               const uint32_t send_flags,
                                               TRITONSERVER_Error *error) {
    TRITONSERVER_Error *rejection =
        response != NULL ? check_unsent(response) : kelp_null_error(__func__, "response");
    if (rejection != NULL)
        return rejection;
    return kelp_to_error(
        kelp_response_send((kelp_response *)response, send_flags, kelp_from_error(error)));
}

/* ---- outputs ---- */

TRITONSERVER_Error *TRITONBACKEND_OutputBuffer(TRITONBACKEND_Output *output, void **buffer,
                                               const uint64_t buffer_byte_size,
                                               TRITONSERVER_MemoryType *memory_type,
                                               int64_t *memory_type_id) {
    if (output == NULL || buffer == NULL || memory_type == NULL || memory_type_id == NULL)
        return kelp_null_error(__func__, output != NULL ? NULL : "output");
    kelp_output *out = (kelp_output *)output;
    KELP_ASSERT(out->response != NULL);
    TRITONSERVER_Error *error = check_unsent((TRITONBACKEND_Response *)out->response);
    if (error != NULL)
        return error;
    kelp_status *status =
        kelp_output_allocate(out, buffer_byte_size, *memory_type, *memory_type_id, buffer);
    if (status == NULL) {
        *memory_type = out->attributes.memory_type;
        *memory_type_id = out->attributes.memory_type_id;
    }
    return kelp_to_error(status);
}

TRITONSERVER_Error *
TRITONBACKEND_OutputBufferAttributes(TRITONBACKEND_Output *output,
                                     TRITONSERVER_BufferAttributes **buffer_attributes) {
    if (output == NULL || buffer_attributes == NULL)
        return kelp_null_error(__func__, output != NULL ? "buffer_attributes" : "output");
    *buffer_attributes = (TRITONSERVER_BufferAttributes *)&((kelp_output *)output)->attributes;
    return NULL;
}

static void describe(const kelp_output *output, TRITONSERVER_DataType *datatype,
                     const int64_t **shape, uint64_t *dim_count) {
    *datatype = output->datatype;
    *shape = output->shape;
    *dim_count = output->rank;
}

TRITONSERVER_Error *TRITONBACKEND_InferenceResponseOutputByName(TRITONBACKEND_Response *response,
                                                                const char *name,
                                                                TRITONSERVER_DataType *datatype,
                                                                const int64_t **shape,
                                                                uint64_t *dim_count) {
    if (response == NULL || name == NULL || datatype == NULL || shape == NULL || dim_count == NULL)
        return kelp_null_error(__func__, response == NULL ? "response"
                                         : name == NULL   ? "name"
                                                          : NULL);
    const kelp_response *r = (const kelp_response *)response;
    for (size_t i = 0; i < r->output_count; i++) {
        if (strcmp(kelp_text_get(&r->outputs[i]->name), name) == 0) {
            describe(r->outputs[i], datatype, shape, dim_count);
            return NULL;
        }
    }
    return kelp_to_error(KELP_ERROR(KELP_NOT_FOUND, "output name %s not found", name));
}

TRITONSERVER_Error *TRITONBACKEND_InferenceResponseOutput(TRITONBACKEND_Response *response,
                                                          const uint32_t index, const char **name,
                                                          TRITONSERVER_DataType *datatype,
                                                          const int64_t **shape,
                                                          uint64_t *dim_count) {
    if (response == NULL || name == NULL || datatype == NULL || shape == NULL || dim_count == NULL)
        return kelp_null_error(__func__, response != NULL ? NULL : "response");
    const kelp_response *r = (const kelp_response *)response;
    if (index >= r->output_count)
        return kelp_to_error(KELP_ERROR(KELP_INVALID_ARGUMENT,
                                        "out of bounds index %u: response has %zu outputs", index,
                                        r->output_count));
    KELP_ASSERT(r->outputs[index]->response == r);
    *name = kelp_text_get(&r->outputs[index]->name);
    describe(r->outputs[index], datatype, shape, dim_count);
    return NULL;
}

/* ---- memory ---- */

TRITONSERVER_Error *TRITONBACKEND_MemoryManagerAllocate(TRITONBACKEND_MemoryManager *manager,
                                                        void **buffer,
                                                        const TRITONSERVER_MemoryType memory_type,
                                                        const int64_t memory_type_id,
                                                        const uint64_t byte_size) {
    (void)manager;
    (void)memory_type_id;
    if (buffer == NULL)
        return kelp_null_error(__func__, "buffer");
    if (memory_type != TRITONSERVER_MEMORY_CPU)
        return kelp_to_error(KELP_ERROR(
            KELP_UNIMPLEMENTED, "memory of type %s is not available: this server has no GPU",
            TRITONSERVER_MemoryTypeString(memory_type)));
    /* From the heap of the C library, because MemoryManagerFree gets no size. */
    *buffer = malloc(byte_size ? byte_size : 1);
    return *buffer != NULL
               ? NULL
               : kelp_to_error(KELP_ERROR(KELP_UNAVAILABLE,
                                          "failed to allocate %llu bytes of system memory",
                                          (unsigned long long)byte_size));
}

TRITONSERVER_Error *TRITONBACKEND_MemoryManagerFree(TRITONBACKEND_MemoryManager *manager,
                                                    void *buffer,
                                                    const TRITONSERVER_MemoryType memory_type,
                                                    const int64_t memory_type_id) {
    (void)manager;
    (void)memory_type_id;
    if (memory_type != TRITONSERVER_MEMORY_CPU)
        return kelp_to_error(KELP_ERROR(
            KELP_UNIMPLEMENTED, "memory of type %s is not available: this server has no GPU",
            TRITONSERVER_MemoryTypeString(memory_type)));
    free(buffer);
    return NULL;
}
