/* SPDX-License-Identifier: Apache-2.0 */
/* The C API for clients: responses. */
#include "base/assert.h"
#include "server/core/error.h"
#include "server/model/model.h"
#include "server/request/response.h"

static kelp_response *of(TRITONSERVER_InferenceResponse *handle) {
    return (kelp_response *)handle;
}

/* Returns an error if the response was deleted. */
static TRITONSERVER_Error *check(TRITONSERVER_InferenceResponse *handle) {
    return of(handle)->factory != NULL
               ? NULL
               : kelp_to_error(KELP_ERROR(KELP_INTERNAL, "the response was deleted before"));
}

TRITONSERVER_Error *
TRITONSERVER_InferenceResponseDelete(TRITONSERVER_InferenceResponse *inference_response) {
    TRITONSERVER_Error *error = inference_response != NULL ? check(inference_response) : NULL;
    if (inference_response != NULL && error == NULL)
        kelp_response_delete(of(inference_response));
    return error;
}

TRITONSERVER_Error *
TRITONSERVER_InferenceResponseError(TRITONSERVER_InferenceResponse *inference_response) {
    if (inference_response == NULL)
        return kelp_null_error(__func__, "inference_response");
    TRITONSERVER_Error *error = check(inference_response);
    if (error != NULL)
        return error;
    return kelp_to_error(kelp_status_clone(of(inference_response)->error));
}

TRITONSERVER_Error *
TRITONSERVER_InferenceResponseModel(TRITONSERVER_InferenceResponse *inference_response,
                                    const char **model_name, int64_t *model_version) {
    if (inference_response == NULL || model_name == NULL || model_version == NULL)
        return kelp_null_error(__func__, inference_response == NULL ? "inference_response"
                                         : model_name == NULL       ? "model_name"
                                                                    : "model_version");
    TRITONSERVER_Error *error = check(inference_response);
    if (error != NULL)
        return error;
    const kelp_model_base *model = of(inference_response)->factory->model;
    KELP_ASSERT(model != NULL); /* the factory holds a reference */
    *model_name = model->name;
    *model_version = model->version;
    return NULL;
}

TRITONSERVER_Error *
TRITONSERVER_InferenceResponseId(TRITONSERVER_InferenceResponse *inference_response,
                                 const char **request_id) {
    if (inference_response == NULL || request_id == NULL)
        return kelp_null_error(__func__,
                               inference_response != NULL ? "request_id" : "inference_response");
    TRITONSERVER_Error *error = check(inference_response);
    if (error != NULL)
        return error;
    *request_id = kelp_text_get(&of(inference_response)->factory->id);
    return NULL;
}

TRITONSERVER_Error *
TRITONSERVER_InferenceResponseParameterCount(TRITONSERVER_InferenceResponse *inference_response,
                                             uint32_t *count) {
    if (inference_response == NULL || count == NULL)
        return kelp_null_error(__func__,
                               inference_response != NULL ? "count" : "inference_response");
    TRITONSERVER_Error *error = check(inference_response);
    if (error != NULL)
        return error;
    *count = (uint32_t)of(inference_response)->params.count;
    return NULL;
}

static TRITONSERVER_Error *out_of_range(const char *what, uint32_t index, size_t count) {
    return kelp_to_error(KELP_ERROR(
        KELP_INVALID_ARGUMENT, "out of bounds index %u: response has %zu %s", index, count, what));
}

TRITONSERVER_Error *
TRITONSERVER_InferenceResponseParameter(TRITONSERVER_InferenceResponse *inference_response,
                                        const uint32_t index, const char **name,
                                        TRITONSERVER_ParameterType *type, const void **vvalue) {
    if (inference_response == NULL || name == NULL || type == NULL || vvalue == NULL)
        return kelp_null_error(__func__, inference_response == NULL ? "inference_response"
                                         : name == NULL             ? "name"
                                         : type == NULL             ? "type"
                                                                    : "vvalue");
    TRITONSERVER_Error *error = check(inference_response);
    if (error != NULL)
        return error;
    const kelp_params *params = &of(inference_response)->params;
    if (index >= params->count)
        return out_of_range("parameters", index, params->count);
    *name = kelp_text_get(&params->items[index].name);
    *type = params->items[index].type;
    *vvalue = kelp_param_value(&params->items[index]);
    return NULL;
}

TRITONSERVER_Error *
TRITONSERVER_InferenceResponseOutputCount(TRITONSERVER_InferenceResponse *inference_response,
                                          uint32_t *count) {
    if (inference_response == NULL || count == NULL)
        return kelp_null_error(__func__,
                               inference_response != NULL ? "count" : "inference_response");
    TRITONSERVER_Error *error = check(inference_response);
    if (error != NULL)
        return error;
    *count = (uint32_t)of(inference_response)->output_count;
    return NULL;
}

TRITONSERVER_Error *TRITONSERVER_InferenceResponseOutput(
    TRITONSERVER_InferenceResponse *inference_response, const uint32_t index, const char **name,
    TRITONSERVER_DataType *datatype, const int64_t **shape, uint64_t *dim_count, const void **base,
    size_t *byte_size, TRITONSERVER_MemoryType *memory_type, int64_t *memory_type_id,
    void **userp) {
    if (inference_response == NULL || name == NULL || datatype == NULL || shape == NULL ||
        dim_count == NULL || base == NULL || byte_size == NULL || memory_type == NULL ||
        memory_type_id == NULL || userp == NULL)
        return kelp_null_error(__func__, inference_response != NULL ? NULL : "inference_response");
    TRITONSERVER_Error *error = check(inference_response);
    if (error != NULL)
        return error;
    const kelp_response *response = of(inference_response);
    if (index >= response->output_count)
        return out_of_range("outputs", index, response->output_count);
    const kelp_output *output = response->outputs[index];
    KELP_ASSERT(output->response == response && output->rank <= KELP_SERVER_MAX_RANK);
    *name = kelp_text_get(&output->name);
    *datatype = output->datatype;
    *shape = output->shape;
    *dim_count = output->rank;
    *base = output->buffer;
    *byte_size = output->attributes.size_bytes;
    *memory_type = output->attributes.memory_type;
    *memory_type_id = output->attributes.memory_type_id;
    *userp = output->buffer_userp;
    return NULL;
}

TRITONSERVER_Error *TRITONSERVER_InferenceResponseOutputClassificationLabel(
    TRITONSERVER_InferenceResponse *inference_response, const uint32_t index,
    const size_t class_index, const char **label) {
    if (inference_response == NULL || label == NULL)
        return kelp_null_error(__func__,
                               inference_response != NULL ? "label" : "inference_response");
    TRITONSERVER_Error *error = check(inference_response);
    if (error != NULL)
        return error;
    const kelp_response *response = of(inference_response);
    if (index >= response->output_count)
        return out_of_range("outputs", index, response->output_count);
    *label = kelp_model_label((const kelp_model *)response->factory->model,
                              kelp_text_get(&response->outputs[index]->name), class_index);
    return NULL;
}
