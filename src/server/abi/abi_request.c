/* SPDX-License-Identifier: Apache-2.0 */
/* The C API for clients: inference requests. */
#include "server/core/error.h"
#include "server/server.h"

static kelp_request *of(TRITONSERVER_InferenceRequest *handle) {
    return (kelp_request *)handle;
}

TRITONSERVER_Error *
TRITONSERVER_InferenceRequestNew(TRITONSERVER_InferenceRequest **inference_request,
                                 TRITONSERVER_Server *server, const char *model_name,
                                 const int64_t model_version) {
    if (inference_request == NULL || server == NULL || model_name == NULL)
        return kelp_null_error(__func__, inference_request == NULL ? "inference_request"
                                         : server == NULL          ? "server"
                                                                   : "model_name");
    return kelp_to_error(kelp_server_create_request(
        (kelp_server *)server, model_name, model_version, (kelp_request **)inference_request));
}

TRITONSERVER_Error *
TRITONSERVER_InferenceRequestDelete(TRITONSERVER_InferenceRequest *inference_request) {
    return inference_request != NULL ? kelp_to_error(kelp_request_delete(of(inference_request)))
                                     : NULL;
}

TRITONSERVER_Error *TRITONSERVER_ServerInferAsync(TRITONSERVER_Server *server,
                                                  TRITONSERVER_InferenceRequest *inference_request,
                                                  TRITONSERVER_InferenceTrace *trace) {
    if (server == NULL || inference_request == NULL)
        return kelp_null_error(__func__, server != NULL ? "inference_request" : "server");
    return kelp_to_error(kelp_request_submit(&((kelp_server *)server)->host.base,
                                             of(inference_request), (kelp_trace *)trace));
}

TRITONSERVER_Error *
TRITONSERVER_InferenceRequestId(TRITONSERVER_InferenceRequest *inference_request, const char **id) {
    if (inference_request == NULL || id == NULL)
        return kelp_null_error(__func__, inference_request != NULL ? "id" : "inference_request");
    *id = kelp_text_get(&of(inference_request)->id);
    return NULL;
}

TRITONSERVER_Error *
TRITONSERVER_InferenceRequestSetId(TRITONSERVER_InferenceRequest *inference_request,
                                   const char *id) {
    if (inference_request == NULL || id == NULL)
        return kelp_null_error(__func__, inference_request != NULL ? "id" : "inference_request");
    return kelp_to_error(kelp_request_set_id(of(inference_request), id));
}

TRITONSERVER_Error *
TRITONSERVER_InferenceRequestFlags(TRITONSERVER_InferenceRequest *inference_request,
                                   uint32_t *flags) {
    if (inference_request == NULL || flags == NULL)
        return kelp_null_error(__func__, inference_request != NULL ? "flags" : "inference_request");
    *flags = of(inference_request)->flags;
    return NULL;
}

TRITONSERVER_Error *
TRITONSERVER_InferenceRequestSetFlags(TRITONSERVER_InferenceRequest *inference_request,
                                      uint32_t flags) {
    if (inference_request == NULL)
        return kelp_null_error(__func__, "inference_request");
    of(inference_request)->flags = flags;
    return NULL;
}

/* ---- the sequence of a request ---- */

TRITONSERVER_Error *
TRITONSERVER_InferenceRequestCorrelationId(TRITONSERVER_InferenceRequest *inference_request,
                                           uint64_t *correlation_id) {
    if (inference_request == NULL || correlation_id == NULL)
        return kelp_null_error(__func__,
                               inference_request != NULL ? "correlation_id" : "inference_request");
    const kelp_request *request = of(inference_request);
    if (request->correlation_is_string)
        return kelp_to_error(KELP_ERROR(KELP_INVALID_ARGUMENT,
                                        KELP_REQUEST_TAG "correlation ID in request is not an "
                                                         "unsigned int",
                                        kelp_request_tag(request)));
    *correlation_id = request->correlation_id;
    return NULL;
}

TRITONSERVER_Error *
TRITONSERVER_InferenceRequestCorrelationIdString(TRITONSERVER_InferenceRequest *inference_request,
                                                 const char **correlation_id) {
    if (inference_request == NULL || correlation_id == NULL)
        return kelp_null_error(__func__,
                               inference_request != NULL ? "correlation_id" : "inference_request");
    const kelp_request *request = of(inference_request);
    if (!request->correlation_is_string)
        return kelp_to_error(KELP_ERROR(
            KELP_INVALID_ARGUMENT, KELP_REQUEST_TAG "correlation ID in request is not a string",
            kelp_request_tag(request)));
    *correlation_id = kelp_text_get(&request->correlation_string);
    return NULL;
}

TRITONSERVER_Error *
TRITONSERVER_InferenceRequestSetCorrelationId(TRITONSERVER_InferenceRequest *inference_request,
                                              uint64_t correlation_id) {
    if (inference_request == NULL)
        return kelp_null_error(__func__, "inference_request");
    kelp_request *request = of(inference_request);
    request->correlation_id = correlation_id;
    request->correlation_is_string = false;
    return NULL;
}

TRITONSERVER_Error *TRITONSERVER_InferenceRequestSetCorrelationIdString(
    TRITONSERVER_InferenceRequest *inference_request, const char *correlation_id) {
    if (inference_request == NULL || correlation_id == NULL)
        return kelp_null_error(__func__,
                               inference_request != NULL ? "correlation_id" : "inference_request");
    return kelp_to_error(
        kelp_request_set_correlation_string(of(inference_request), correlation_id));
}

/* ---- cancellation: thread-safe ---- */

TRITONSERVER_Error *
TRITONSERVER_InferenceRequestCancel(TRITONSERVER_InferenceRequest *inference_request) {
    if (inference_request == NULL)
        return kelp_null_error(__func__, "inference_request");
    return kelp_to_error(kelp_request_cancel(of(inference_request)));
}

TRITONSERVER_Error *
TRITONSERVER_InferenceRequestIsCancelled(TRITONSERVER_InferenceRequest *inference_request,
                                         bool *is_cancelled) {
    if (inference_request == NULL || is_cancelled == NULL)
        return kelp_null_error(__func__,
                               inference_request != NULL ? "is_cancelled" : "inference_request");
    return kelp_to_error(kelp_request_is_cancelled(of(inference_request), is_cancelled));
}

/* ---- priority and timeout ---- */

TRITONSERVER_Error *
TRITONSERVER_InferenceRequestPriority(TRITONSERVER_InferenceRequest *inference_request,
                                      uint32_t *priority) {
    if (inference_request == NULL || priority == NULL)
        return kelp_null_error(__func__,
                               inference_request != NULL ? "priority" : "inference_request");
    *priority = (uint32_t)of(inference_request)->priority;
    return NULL;
}

TRITONSERVER_Error *
TRITONSERVER_InferenceRequestPriorityUInt64(TRITONSERVER_InferenceRequest *inference_request,
                                            uint64_t *priority) {
    if (inference_request == NULL || priority == NULL)
        return kelp_null_error(__func__,
                               inference_request != NULL ? "priority" : "inference_request");
    *priority = of(inference_request)->priority;
    return NULL;
}

TRITONSERVER_Error *
TRITONSERVER_InferenceRequestSetPriority(TRITONSERVER_InferenceRequest *inference_request,
                                         uint32_t priority) {
    return TRITONSERVER_InferenceRequestSetPriorityUInt64(inference_request, priority);
}

TRITONSERVER_Error *
TRITONSERVER_InferenceRequestSetPriorityUInt64(TRITONSERVER_InferenceRequest *inference_request,
                                               uint64_t priority) {
    if (inference_request == NULL)
        return kelp_null_error(__func__, "inference_request");
    kelp_request *request = of(inference_request);
    const kelp_config_dynamic_batching *batching = &request->model->config->dynamic_batching;
    /* The steps of an ensemble have levels of their own. */
    bool ensemble = request->model->config->scheduling == KELP_SCHEDULING_ENSEMBLE;
    bool has_level = priority >= 1 && (ensemble || priority <= batching->priority_levels);
    request->priority = has_level ? priority : batching->default_priority_level;
    return NULL;
}

TRITONSERVER_Error *
TRITONSERVER_InferenceRequestTimeoutMicroseconds(TRITONSERVER_InferenceRequest *inference_request,
                                                 uint64_t *timeout_us) {
    if (inference_request == NULL || timeout_us == NULL)
        return kelp_null_error(__func__,
                               inference_request != NULL ? "timeout_us" : "inference_request");
    *timeout_us = of(inference_request)->timeout_us;
    return NULL;
}

TRITONSERVER_Error *TRITONSERVER_InferenceRequestSetTimeoutMicroseconds(
    TRITONSERVER_InferenceRequest *inference_request, uint64_t timeout_us) {
    if (inference_request == NULL)
        return kelp_null_error(__func__, "inference_request");
    of(inference_request)->timeout_us = timeout_us;
    return NULL;
}

/* ---- callbacks ---- */

TRITONSERVER_Error *TRITONSERVER_InferenceRequestSetReleaseCallback(
    TRITONSERVER_InferenceRequest *inference_request,
    TRITONSERVER_InferenceRequestReleaseFn_t request_release_fn, void *request_release_userp) {
    if (inference_request == NULL)
        return kelp_null_error(__func__, "inference_request");
    of(inference_request)->release_fn = request_release_fn;
    of(inference_request)->release_userp = request_release_userp;
    return NULL;
}

TRITONSERVER_Error *TRITONSERVER_InferenceRequestSetResponseCallback(
    TRITONSERVER_InferenceRequest *inference_request,
    TRITONSERVER_ResponseAllocator *response_allocator, void *response_allocator_userp,
    TRITONSERVER_InferenceResponseCompleteFn_t response_fn, void *response_userp) {
    if (inference_request == NULL)
        return kelp_null_error(__func__, "inference_request");
    kelp_request *request = of(inference_request);
    request->allocator = (kelp_response_allocator *)response_allocator;
    request->allocator_userp = response_allocator_userp;
    request->response_fn = response_fn;
    request->response_userp = response_userp;
    return NULL;
}

/* ---- parameters ---- */

static TRITONSERVER_Error *add_param(const char *function, TRITONSERVER_InferenceRequest *handle,
                                     const char *key, TRITONSERVER_ParameterType type,
                                     kelp_param **out) {
    if (handle == NULL || key == NULL)
        return kelp_null_error(function, handle != NULL ? "key" : "request");
    return kelp_to_error(
        kelp_params_add(of(handle)->home->allocator, &of(handle)->params, key, type, out));
}

TRITONSERVER_Error *
TRITONSERVER_InferenceRequestSetStringParameter(TRITONSERVER_InferenceRequest *request,
                                                const char *key, const char *value) {
    if (request == NULL || key == NULL || value == NULL)
        return kelp_null_error(__func__, request == NULL ? "request"
                                         : key == NULL   ? "key"
                                                         : "value");
    return kelp_to_error(
        kelp_params_add_string(of(request)->home->allocator, &of(request)->params, key, value));
}

TRITONSERVER_Error *
TRITONSERVER_InferenceRequestSetIntParameter(TRITONSERVER_InferenceRequest *request,
                                             const char *key, const int64_t value) {
    kelp_param *param = NULL;
    TRITONSERVER_Error *error =
        add_param(__func__, request, key, TRITONSERVER_PARAMETER_INT, &param);
    if (error == NULL)
        param->i64 = value;
    return error;
}

TRITONSERVER_Error *
TRITONSERVER_InferenceRequestSetBoolParameter(TRITONSERVER_InferenceRequest *request,
                                              const char *key, const bool value) {
    kelp_param *param = NULL;
    TRITONSERVER_Error *error =
        add_param(__func__, request, key, TRITONSERVER_PARAMETER_BOOL, &param);
    if (error == NULL)
        param->boolean = value;
    return error;
}

TRITONSERVER_Error *
TRITONSERVER_InferenceRequestSetDoubleParameter(TRITONSERVER_InferenceRequest *request,
                                                const char *key, const double value) {
    kelp_param *param = NULL;
    TRITONSERVER_Error *error =
        add_param(__func__, request, key, TRITONSERVER_PARAMETER_DOUBLE, &param);
    if (error == NULL)
        param->f64 = value;
    return error;
}
