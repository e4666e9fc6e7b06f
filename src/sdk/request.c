/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Requests: their properties, and the accounting of responses, which ensures that each request is
 * sent exactly one final response and is released exactly once.
 */
#include "sdk/sdk.h"

#include <stdlib.h>

/* ---- the pool ---- */

static kelp_backend_request *take(kelp_backend_instance *instance) {
    pthread_mutex_lock(&instance->lock);
    kelp_backend_request *request = instance->free;
    if (request != NULL)
        instance->free = request->next;
    pthread_mutex_unlock(&instance->lock);
    if (request != NULL)
        return request;
    request = calloc(1, sizeof *request);
    if (request != NULL)
        kelp_arena_init(&request->arena, kelp_allocator_system(), 0);
    return request;
}

void kelp_sdk_request_free(kelp_backend_request *request) {
    kelp_arena_deinit(&request->arena);
    free(request);
}

/* The first input is sufficient: all inputs have the same batch dimension. */
int64_t kelp_sdk_request_batch(const kelp_backend_model *model, TRITONBACKEND_Request *raw) {
    TRITONBACKEND_Input *input = NULL;
    const int64_t *shape = NULL;
    uint32_t rank = 0;
    if (model->max_batch < 1)
        return 1;
    if (!sdk_ok(TRITONBACKEND_RequestInputByIndex(raw, 0, &input)) ||
        !sdk_ok(TRITONBACKEND_InputProperties(input, NULL, NULL, &shape, &rank, NULL, NULL)))
        return 1;
    return rank > 0 ? shape[0] : 1;
}

kelp_backend_request *kelp_sdk_request_open(kelp_backend_instance *instance,
                                            TRITONBACKEND_Request *raw, uint64_t start_ns) {
    kelp_backend_request *request = take(instance);
    if (request == NULL)
        return NULL;
    request->raw = raw;
    request->instance = instance;
    request->pending = (kelp_backend_response){.request = request};
    request->own_factory = NULL;
    request->batch = kelp_sdk_request_batch(instance->model, raw);
    request->kept = false;
    request->reported = false;
    request->start_ns = request->begin_ns = start_ns;
    atomic_init(&request->holds, 2);
    atomic_init(&request->senders, 1);
    atomic_init(&request->responses, 0);
    atomic_init(&request->final, false);
    atomic_init(&request->failed, false);
    atomic_init(&request->starved, false);
    return request;
}

/* Maximum arena size of pooled requests, except for one request. */
enum { KEPT_BYTES = 65536 };

/* Returns a request to the pool, unless its arena is too large. */
static bool return_to_pool(kelp_backend_instance *instance, kelp_backend_request *request) {
    KELP_ASSERT(request->raw == NULL && request->pending.raw == NULL);
    pthread_mutex_lock(&instance->lock);
    bool keeps = instance->free == NULL || request->arena.total_bytes <= KEPT_BYTES;
    if (keeps) {
        request->next = instance->free;
        instance->free = request;
    }
    pthread_mutex_unlock(&instance->lock);
    return keeps;
}

void kelp_sdk_request_drop(kelp_backend_request *request) {
    unsigned holds = atomic_fetch_sub_explicit(&request->holds, 1, memory_order_acq_rel);
    KELP_ASSERT(holds >= 1 && holds <= 2);
    if (holds != 1)
        return;
    KELP_ASSERT(atomic_load(&request->final) && atomic_load(&request->senders) == 0);
    kelp_backend_instance *instance = request->instance;
    kelp_arena_clear(&request->arena);
    while (!return_to_pool(instance, request)) {
        kelp_arena_deinit(&request->arena);
        kelp_arena_init(&request->arena, kelp_allocator_system(), 0);
    }
}

/* ---- responses ---- */

bool kelp_sdk_request_claim(kelp_backend_request *request, bool final) {
    if (final ? atomic_exchange(&request->final, true) : atomic_load(&request->final))
        return false;
    atomic_fetch_add_explicit(&request->responses, 1, memory_order_relaxed);
    return true;
}

static void send_final_flag(TRITONBACKEND_Request *raw, TRITONBACKEND_ResponseFactory *factory) {
    TRITONBACKEND_ResponseFactory *made = NULL;
    kelp_status *status = NULL;
    if (factory == NULL)
        status = sdk_status(TRITONBACKEND_ResponseFactoryNew(&made, raw));
    if (status == NULL)
        status = sdk_status(TRITONBACKEND_ResponseFactorySendFlags(
            factory != NULL ? factory : made, TRITONSERVER_RESPONSE_COMPLETE_FINAL));
    if (made != NULL)
        TRITONSERVER_ErrorDelete(TRITONBACKEND_ResponseFactoryDelete(made));
    KELP_BACKEND_LOG_STATUS("cannot end a request", status);
}

void kelp_sdk_request_close(kelp_backend_request *request, TRITONBACKEND_Request *raw,
                            TRITONBACKEND_ResponseFactory *factory) {
    const kelp_backend_model *model = request->instance->model;
    bool responded = atomic_load(&request->responses) > 0 || model->is_decoupled;
    if (!kelp_sdk_request_claim(request, true))
        return;
    if (!responded)
        atomic_store(&request->failed, true);
    if (raw != NULL)
        kelp_sdk_request_report(request);
    if (responded) {
        send_final_flag(raw, factory);
        return;
    }
    TRITONBACKEND_Response *response = NULL;
    TRITONSERVER_Error *error = raw != NULL
                                    ? TRITONBACKEND_ResponseNew(&response, raw)
                                    : TRITONBACKEND_ResponseNewFromFactory(&response, factory);
    kelp_status *status = sdk_status(error);
    if (status == NULL) {
        error = kelp_backend_error(
            atomic_load(&request->starved)
                ? KELP_ERROR(KELP_RESOURCE_EXHAUSTED,
                             "out of memory for the response of model '%s'", model->name)
                : KELP_ERROR(KELP_INTERNAL,
                             "backend '%s' sent no response to a request for model '%s'",
                             model->host->definition->name, model->name));
        status = sdk_status(
            TRITONBACKEND_ResponseSend(response, TRITONSERVER_RESPONSE_COMPLETE_FINAL, error));
        TRITONSERVER_ErrorDelete(error);
    }
    KELP_BACKEND_LOG_STATUS("cannot end a request", status);
}

void kelp_backend_keep(kelp_backend_request *request) {
    request->kept = true;
}

void kelp_backend_fail(kelp_backend_request *request, kelp_status *take_status) {
    kelp_backend_response *response = NULL;
    if (atomic_load(&request->final)) {
        KELP_BACKEND_LOG_STATUS("a request failed after its final response", take_status);
        return;
    }
    kelp_status *status = kelp_backend_respond(request, &response);
    if (status == NULL)
        status = kelp_backend_send(response, KELP_BACKEND_FINAL, take_status);
    else
        KELP_BACKEND_LOG_STATUS("a request failed", take_status);
    KELP_BACKEND_LOG_STATUS("cannot respond to a request", status);
}

void kelp_sdk_request_report(kelp_backend_request *request) {
    if (request->reported || request->raw == NULL)
        return;
    request->reported = true;
    kelp_backend_instance *instance = request->instance;
    bool in_execution = !request->kept;
    uint64_t end_ns =
        in_execution && instance->report_ns != 0 ? instance->report_ns : kelp_backend_now_ns();
    uint64_t begin_ns = request->begin_ns, finish_ns = end_ns;
    /* Only the execution's thread uses the instance's times; a kept request may be on another one.
     */
    if (in_execution) {
        begin_ns = instance->begin_ns ? instance->begin_ns : begin_ns;
        finish_ns = instance->end_ns ? instance->end_ns : finish_ns;
    }
    TRITONSERVER_ErrorDelete(TRITONBACKEND_ModelInstanceReportStatistics(
        instance->raw, request->raw, !atomic_load(&request->failed), request->start_ns, begin_ns,
        finish_ns, end_ns));
}

void kelp_backend_release(kelp_backend_request *request) {
    TRITONBACKEND_Request *raw = request->raw;
    if (raw == NULL) {
        kelp_backend_log(TRITONSERVER_LOG_ERROR, __FILE__, __LINE__,
                         "a request was released twice");
        return;
    }
    bool alone = atomic_load(&request->senders) == 1;
    if (request->pending.raw != NULL) {
        bool final = atomic_load(&request->final);
        if (final) /* another response was final: this one is not needed */
            kelp_backend_response_destroy(&request->pending);
        else
            KELP_BACKEND_LOG_STATUS(
                "cannot send a response",
                kelp_backend_send(&request->pending, alone ? KELP_BACKEND_FINAL : 0, NULL));
    }
    if (alone) /* no factory can be created after this */
        kelp_sdk_request_close(request, raw, request->own_factory);
    kelp_sdk_request_report(request);
    if (request->own_factory != NULL)
        TRITONSERVER_ErrorDelete(TRITONBACKEND_ResponseFactoryDelete(request->own_factory));
    request->own_factory = NULL;
    request->raw = NULL;
    if (atomic_fetch_sub_explicit(&request->senders, 1, memory_order_acq_rel) == 1) {
        /* The factories were destroyed in the meantime: the request ends itself. */
        kelp_sdk_request_close(request, raw, NULL);
        kelp_sdk_request_drop(request);
    }
    KELP_BACKEND_LOG_STATUS(
        "cannot release a request",
        sdk_status(TRITONBACKEND_RequestRelease(raw, TRITONSERVER_REQUEST_RELEASE_ALL)));
}

bool kelp_sdk_request_complete(kelp_backend_request *request, const kelp_status *status) {
    bool reported = false;
    KELP_ASSERT(atomic_load(&request->holds) > 0); /* that of the execution */
    if (!request->kept && request->raw != NULL) {
        if (status != NULL && !atomic_load(&request->final)) {
            kelp_backend_fail(request, kelp_status_clone(status));
            reported = true;
        }
        kelp_backend_release(request);
    }
    kelp_sdk_request_drop(request);
    return reported;
}

/* ---- properties ---- */

TRITONBACKEND_Request *kelp_backend_request_raw(const kelp_backend_request *request) {
    return request->raw;
}

kelp_backend_instance *kelp_backend_request_instance(const kelp_backend_request *request) {
    return request->instance;
}

const char *kelp_backend_request_id(const kelp_backend_request *request) {
    const char *id = NULL;
    TRITONSERVER_ErrorDelete(TRITONBACKEND_RequestId(request->raw, &id));
    return id != NULL ? id : "";
}

uint64_t kelp_backend_request_sequence(const kelp_backend_request *request) {
    uint64_t id = 0;
    return sdk_ok(TRITONBACKEND_RequestCorrelationId(request->raw, &id)) ? id : 0;
}

const char *kelp_backend_request_sequence_text(const kelp_backend_request *request) {
    const char *id = NULL;
    return sdk_ok(TRITONBACKEND_RequestCorrelationIdString(request->raw, &id)) && id != NULL ? id
                                                                                             : "";
}

static uint32_t flags_of(const kelp_backend_request *request) {
    uint32_t flags = 0;
    TRITONSERVER_ErrorDelete(TRITONBACKEND_RequestFlags(request->raw, &flags));
    return flags;
}

bool kelp_backend_request_is_start(const kelp_backend_request *request) {
    return flags_of(request) & TRITONSERVER_REQUEST_FLAG_SEQUENCE_START;
}

bool kelp_backend_request_is_end(const kelp_backend_request *request) {
    return flags_of(request) & TRITONSERVER_REQUEST_FLAG_SEQUENCE_END;
}

uint64_t kelp_backend_request_timeout_us(const kelp_backend_request *request) {
    uint64_t timeout_us = 0;
    TRITONSERVER_ErrorDelete(
        TRITONBACKEND_InferenceRequestTimeoutMicroseconds(request->raw, &timeout_us));
    return timeout_us;
}

bool kelp_backend_request_is_cancelled(const kelp_backend_request *request) {
    bool cancelled = false;
    TRITONSERVER_ErrorDelete(TRITONBACKEND_RequestIsCancelled(request->raw, &cancelled));
    return cancelled;
}

int64_t kelp_backend_request_batch(const kelp_backend_request *request) {
    return request->batch;
}

size_t kelp_backend_request_output_count(const kelp_backend_request *request) {
    uint32_t count = 0;
    TRITONSERVER_ErrorDelete(TRITONBACKEND_RequestOutputCount(request->raw, &count));
    return count;
}

const char *kelp_backend_request_output_name(const kelp_backend_request *request, size_t index) {
    const char *name = NULL;
    if (index >= UINT32_MAX)
        return NULL;
    TRITONSERVER_ErrorDelete(TRITONBACKEND_RequestOutputName(request->raw, (uint32_t)index, &name));
    return name;
}

bool kelp_backend_request_wants(const kelp_backend_request *request, const char *output_name) {
    size_t count = kelp_backend_request_output_count(request);
    for (size_t i = 0; i < count; i++) {
        const char *name = kelp_backend_request_output_name(request, i);
        if (name != NULL && strcmp(name, output_name) == 0)
            return true;
    }
    return false;
}

void *kelp_backend_request_alloc(kelp_backend_request *request, size_t size_bytes) {
    return kelp_arena_alloc(&request->arena, size_bytes, KELP_TENSOR_ALIGNMENT);
}

/* ---- parameters ---- */

bool kelp_backend_request_parameter(const kelp_backend_request *request, size_t index,
                                    kelp_backend_parameter *out) {
    uint32_t count = 0;
    const void *value = NULL;
    kelp_backend_parameter parameter = {0};
    TRITONSERVER_ErrorDelete(TRITONBACKEND_RequestParameterCount(request->raw, &count));
    if (index >= count)
        return false;
    if (!sdk_ok(TRITONBACKEND_RequestParameter(request->raw, (uint32_t)index, &parameter.name,
                                               &parameter.type, &value)))
        return false;
    switch (parameter.type) {
    case TRITONSERVER_PARAMETER_STRING:
        parameter.text = value;
        break;
    case TRITONSERVER_PARAMETER_INT:
        parameter.i64 = *(const int64_t *)value;
        break;
    case TRITONSERVER_PARAMETER_BOOL:
        parameter.boolean = *(const bool *)value;
        break;
    case TRITONSERVER_PARAMETER_DOUBLE:
        parameter.f64 = *(const double *)value;
        break;
    case TRITONSERVER_PARAMETER_BYTES:
        break;
    }
    *out = parameter;
    return true;
}

/* Finds a parameter and sets `*out_found`. Fails with INVALID_ARGUMENT if it has neither type. */
static kelp_status *find_parameter(const kelp_backend_request *request, const char *name,
                                   TRITONSERVER_ParameterType type,
                                   TRITONSERVER_ParameterType other, bool *out_found,
                                   kelp_backend_parameter *out) {
    *out_found = false;
    for (size_t i = 0; kelp_backend_request_parameter(request, i, out); i++) {
        if (strcmp(out->name, name) != 0)
            continue;
        if (out->type != type && out->type != other)
            return KELP_ERROR(KELP_INVALID_ARGUMENT, "parameter '%s': expected %s, found %s", name,
                              TRITONSERVER_ParameterTypeString(type),
                              TRITONSERVER_ParameterTypeString(out->type));
        *out_found = true;
        return NULL;
    }
    return NULL;
}

kelp_status *kelp_backend_request_text(const kelp_backend_request *request, const char *name,
                                       const char *fallback, const char **out) {
    kelp_backend_parameter found;
    bool is_set;
    KELP_TRY(find_parameter(request, name, TRITONSERVER_PARAMETER_STRING,
                            TRITONSERVER_PARAMETER_STRING, &is_set, &found));
    *out = is_set ? found.text : fallback;
    return NULL;
}

kelp_status *kelp_backend_request_i64(const kelp_backend_request *request, const char *name,
                                      int64_t fallback, int64_t *out) {
    kelp_backend_parameter found;
    bool is_set;
    KELP_TRY(find_parameter(request, name, TRITONSERVER_PARAMETER_INT, TRITONSERVER_PARAMETER_INT,
                            &is_set, &found));
    *out = is_set ? found.i64 : fallback;
    return NULL;
}

kelp_status *kelp_backend_request_f64(const kelp_backend_request *request, const char *name,
                                      double fallback, double *out) {
    kelp_backend_parameter found;
    bool is_set;
    KELP_TRY(find_parameter(request, name, TRITONSERVER_PARAMETER_DOUBLE,
                            TRITONSERVER_PARAMETER_INT, &is_set, &found));
    *out = !is_set                                    ? fallback
           : found.type == TRITONSERVER_PARAMETER_INT ? (double)found.i64
                                                      : found.f64;
    return NULL;
}

kelp_status *kelp_backend_request_bool(const kelp_backend_request *request, const char *name,
                                       bool fallback, bool *out) {
    kelp_backend_parameter found;
    bool is_set;
    KELP_TRY(find_parameter(request, name, TRITONSERVER_PARAMETER_BOOL, TRITONSERVER_PARAMETER_BOOL,
                            &is_set, &found));
    *out = is_set ? found.boolean : fallback;
    return NULL;
}
