/* SPDX-License-Identifier: Apache-2.0 */
/* Responses, and the factories that create responses after the request was released. */
#include "sdk/sdk.h"

#include "base/triton/convert.h"

#include <stddef.h>
#include <stdlib.h>

/* ---- creation ---- */

static kelp_status *already_final(const kelp_backend_request *request) {
    return KELP_ERROR(KELP_FAILED_PRECONDITION,
                      "the final response to a request for model '%s' was already sent",
                      request->instance->model->name);
}

kelp_status *kelp_backend_respond(kelp_backend_request *request, kelp_backend_response **out) {
    kelp_backend_response *response = &request->pending;
    if (response->raw == NULL) {
        if (atomic_load(&request->final))
            return already_final(request);
        if (request->instance->model->is_decoupled) {
            response->start_ns = kelp_backend_now_ns();
            response->output_ns = 0;
            if (request->own_factory == NULL)
                KELP_TRY(sdk_status(
                    TRITONBACKEND_ResponseFactoryNew(&request->own_factory, request->raw)));
        }
        kelp_status *status = sdk_status(TRITONBACKEND_ResponseNew(&response->raw, request->raw));
        if (status != NULL)
            atomic_store(&request->starved, true);
        KELP_TRY(status);
    }
    *out = response;
    return NULL;
}

TRITONBACKEND_Response *kelp_backend_response_raw(const kelp_backend_response *response) {
    return response->raw;
}

/* ---- outputs ---- */

/* Memory of an output whose client provides none: it only measures. */
typedef struct kelp_sdk_discarded {
    struct kelp_sdk_discarded *next;
    _Alignas(max_align_t) unsigned char data[];
} kelp_sdk_discarded;

static kelp_status *new_discarded(kelp_backend_response *response, size_t size_bytes, void **out) {
    kelp_sdk_discarded *memory = NULL;
    if (size_bytes < SIZE_MAX - sizeof *memory)
        memory = malloc(sizeof *memory + size_bytes);
    if (memory == NULL)
        return kelp_status_oom();
    memory->next = response->discarded;
    response->discarded = memory;
    *out = memory->data;
    return NULL;
}

static void free_discarded(kelp_backend_response *response) {
    while (response->discarded != NULL) {
        kelp_sdk_discarded *memory = response->discarded;
        response->discarded = memory->next;
        free(memory);
    }
}

/* Adds an output of `size_bytes` bytes, and gets its memory, which may be of another kind than the
 * one that `inout_memory` asks for. */
static kelp_status *add_output_in(kelp_backend_response *response, const char *name,
                                  kelp_dtype dtype, int32_t rank, const int64_t *shape,
                                  size_t size_bytes, kelp_backend_memory *inout_memory,
                                  void **out_data) {
    TRITONBACKEND_Output *output = NULL;
    void *data = NULL;
    if (kelp_dtype_to_triton(dtype) == TRITONSERVER_TYPE_INVALID)
        return KELP_ERROR(KELP_INVALID_ARGUMENT, "output '%s': Triton has no type '%s'", name,
                          kelp_dtype_name(dtype));
    KELP_TRY(sdk_status(TRITONBACKEND_ResponseOutput(
        response->raw, &output, name, kelp_dtype_to_triton(dtype), shape, (uint32_t)rank)));
    KELP_TRY(sdk_status(TRITONBACKEND_OutputBuffer(output, &data, size_bytes, &inout_memory->type,
                                                   &inout_memory->id)));
    if (data == NULL && size_bytes > 0) {
        KELP_TRY(new_discarded(response, size_bytes, &data));
        *inout_memory = KELP_BACKEND_HOST_MEMORY;
    }
    if (response->start_ns != 0 && response->output_ns == 0)
        response->output_ns = kelp_backend_now_ns();
    *out_data = data;
    return NULL;
}

/* Adds an output of `size_bytes` bytes in host memory. */
static kelp_status *add_output(kelp_backend_response *response, const char *name, kelp_dtype dtype,
                               int32_t rank, const int64_t *shape, size_t size_bytes,
                               void **out_data) {
    kelp_backend_memory memory = KELP_BACKEND_HOST_MEMORY;
    void *data = NULL;
    KELP_TRY(add_output_in(response, name, dtype, rank, shape, size_bytes, &memory, &data));
    if (memory.type == TRITONSERVER_MEMORY_GPU)
        return kelp_sdk_not_on_host("output", name, memory.id);
    *out_data = data;
    return NULL;
}

kelp_status *kelp_backend_output_bytes(kelp_backend_response *response, const char *name,
                                       kelp_dtype dtype, int32_t rank, const int64_t *shape,
                                       size_t size_bytes, void **out_data) {
    kelp_tensor tensor;
    kelp_status *status = kelp_tensor_init(&tensor, dtype, rank, shape, NULL);
    if (status != NULL)
        return KELP_ANNOTATE(status, "output '%s'", name);
    if (dtype != KELP_STRING && size_bytes != kelp_tensor_bytes(&tensor))
        return KELP_ERROR(
            KELP_INVALID_ARGUMENT,
            "output '%s' has the wrong size for its shape: expected %zu bytes, found %zu", name,
            kelp_tensor_bytes(&tensor), size_bytes);
    return add_output(response, name, dtype, rank, tensor.shape, size_bytes, out_data);
}

kelp_status *kelp_backend_output_data(kelp_backend_response *response, const char *name,
                                      kelp_dtype dtype, int32_t rank, const int64_t *shape,
                                      void **out_data) {
    kelp_tensor tensor;
    if (dtype == KELP_STRING)
        return KELP_ERROR(KELP_INVALID_ARGUMENT,
                          "output '%s' has type BYTES: use kelp_backend_put_tensor, since the size "
                          "depends on the strings",
                          name);
    kelp_status *status = kelp_tensor_init(&tensor, dtype, rank, shape, NULL);
    if (status != NULL)
        return KELP_ANNOTATE(status, "output '%s'", name);
    return add_output(response, name, dtype, rank, tensor.shape, kelp_tensor_bytes(&tensor),
                      out_data);
}

kelp_status *kelp_backend_output_in(kelp_backend_response *response, const char *name,
                                    kelp_backend_memory preferred, kelp_tensor *inout_tensor) {
    kelp_backend_memory memory = preferred;
    if (inout_tensor->dtype == KELP_STRING)
        return KELP_ERROR(KELP_INVALID_ARGUMENT,
                          "output '%s' has type BYTES: use kelp_backend_put_tensor, since the size "
                          "depends on the strings",
                          name);
    KELP_TRY(add_output_in(response, name, inout_tensor->dtype, inout_tensor->rank,
                           inout_tensor->shape, kelp_tensor_bytes(inout_tensor), &memory,
                           &inout_tensor->data));
    inout_tensor->device = kelp_sdk_device_of(memory);
    return NULL;
}

kelp_status *kelp_backend_output_tensor(kelp_backend_response *response, const char *name,
                                        kelp_tensor *inout_tensor) {
    kelp_tensor tensor = *inout_tensor;
    KELP_TRY(kelp_backend_output_in(response, name, KELP_BACKEND_HOST_MEMORY, &tensor));
    if (tensor.device.device_type == kDLCUDA)
        return kelp_sdk_not_on_host("output", name, tensor.device.device_id);
    inout_tensor->data = tensor.data;
    inout_tensor->device = (DLDevice){kDLCPU, 0};
    return NULL;
}

kelp_status *kelp_backend_put_tensor(kelp_backend_response *response, const char *name,
                                     const kelp_tensor *tensor) {
    size_t size_bytes;
    void *data = NULL;
    kelp_status *status = kelp_sdk_wire_bytes(tensor, &size_bytes);
    if (status != NULL)
        return KELP_ANNOTATE(status, "output '%s'", name);
    KELP_TRY(
        add_output(response, name, tensor->dtype, tensor->rank, tensor->shape, size_bytes, &data));
    kelp_sdk_wire_write(tensor, data);
    return NULL;
}

kelp_status *kelp_backend_put(kelp_backend_response *response, const char *name, kelp_dtype dtype,
                              int32_t rank, const int64_t *shape, const void *data) {
    kelp_tensor tensor;
    kelp_status *status = kelp_tensor_init(&tensor, dtype, rank, shape, (void *)(uintptr_t)data);
    if (status != NULL)
        return KELP_ANNOTATE(status, "output '%s'", name);
    return kelp_backend_put_tensor(response, name, &tensor);
}

kelp_status *kelp_backend_put_dltensor(kelp_backend_response *response, const char *name,
                                       const DLTensor *tensor) {
    kelp_tensor view;
    kelp_status *status = kelp_tensor_from_dl(tensor, &view);
    if (status != NULL)
        return KELP_ANNOTATE(status, "output '%s'", name);
    return kelp_backend_put_tensor(response, name, &view);
}

kelp_status *kelp_backend_put_state(kelp_backend_request *request, const char *name,
                                    const kelp_tensor *tensor) {
    TRITONBACKEND_State *state = NULL;
    TRITONSERVER_MemoryType type = TRITONSERVER_MEMORY_CPU;
    int64_t id = 0;
    size_t size_bytes;
    void *data = NULL;
    kelp_status *status = kelp_sdk_wire_bytes(tensor, &size_bytes);
    if (status != NULL)
        return KELP_ANNOTATE(status, "state '%s'", name);
    KELP_TRY(sdk_status(TRITONBACKEND_StateNew(&state, request->raw, name,
                                               kelp_dtype_to_triton(tensor->dtype), tensor->shape,
                                               (uint32_t)tensor->rank)));
    KELP_TRY(sdk_status(TRITONBACKEND_StateBuffer(state, &data, size_bytes, &type, &id)));
    if (type == TRITONSERVER_MEMORY_GPU)
        return kelp_sdk_not_on_host("state", name, id);
    kelp_sdk_wire_write(tensor, data);
    return sdk_status(TRITONBACKEND_StateUpdate(state));
}

/* ---- parameters ---- */

kelp_status *kelp_backend_set_text(kelp_backend_response *response, const char *name,
                                   const char *value) {
    return sdk_status(TRITONBACKEND_ResponseSetStringParameter(response->raw, name, value));
}

kelp_status *kelp_backend_set_i64(kelp_backend_response *response, const char *name,
                                  int64_t value) {
    return sdk_status(TRITONBACKEND_ResponseSetIntParameter(response->raw, name, value));
}

kelp_status *kelp_backend_set_f64(kelp_backend_response *response, const char *name, double value) {
    return sdk_status(TRITONBACKEND_ResponseSetDoubleParameter(response->raw, name, value));
}

kelp_status *kelp_backend_set_bool(kelp_backend_response *response, const char *name, bool value) {
    return sdk_status(TRITONBACKEND_ResponseSetBoolParameter(response->raw, name, value));
}

/* ---- sending ---- */

void kelp_sdk_report_response(kelp_backend_request *request, TRITONBACKEND_ResponseFactory *factory,
                              uint64_t start_ns, uint64_t output_ns, TRITONSERVER_Error *error) {
    TRITONBACKEND_ModelInstanceResponseStatistics *report = NULL;
    if (!sdk_ok(TRITONBACKEND_ModelInstanceResponseStatisticsNew(&report)))
        return;
    (void)(sdk_ok(TRITONBACKEND_ModelInstanceResponseStatisticsSetModelInstance(
               report, request->instance->raw)) &&
           sdk_ok(
               TRITONBACKEND_ModelInstanceResponseStatisticsSetResponseFactory(report, factory)) &&
           sdk_ok(
               TRITONBACKEND_ModelInstanceResponseStatisticsSetResponseStart(report, start_ns)) &&
           sdk_ok(TRITONBACKEND_ModelInstanceResponseStatisticsSetComputeOutputStart(report,
                                                                                     output_ns)) &&
           sdk_ok(TRITONBACKEND_ModelInstanceResponseStatisticsSetResponseEnd(
               report, kelp_backend_now_ns())) &&
           sdk_ok(TRITONBACKEND_ModelInstanceResponseStatisticsSetError(report, error)) &&
           sdk_ok(TRITONBACKEND_ModelInstanceReportResponseStatistics(report)));
    (void)sdk_ok(TRITONBACKEND_ModelInstanceResponseStatisticsDelete(report));
}

static void factory_drop(kelp_backend_factory *factory) {
    if (atomic_fetch_sub_explicit(&factory->refs, 1, memory_order_acq_rel) != 1)
        return;
    kelp_backend_request *request = factory->request;
    TRITONBACKEND_ResponseFactory *raw = factory->raw;
    KELP_ASSERT(atomic_load(&request->senders) > 0);
    free(factory);
    if (atomic_fetch_sub_explicit(&request->senders, 1, memory_order_acq_rel) == 1) {
        kelp_sdk_request_close(request, NULL, raw);
        kelp_sdk_request_drop(request);
    }
    /* Last: this may unload the model, and free the request. */
    (void)sdk_ok(TRITONBACKEND_ResponseFactoryDelete(raw));
}

/* Frees a response after Triton's response was sent or deleted. */
static void response_free(kelp_backend_response *response) {
    kelp_backend_factory *factory = response->factory;
    free_discarded(response);
    response->raw = NULL;
    if (factory == NULL)
        return; /* embedded in its request */
    free(response);
    factory_drop(factory);
}

void kelp_backend_response_destroy(kelp_backend_response *response) {
    if (response == NULL || response->raw == NULL)
        return;
    (void)sdk_ok(TRITONBACKEND_ResponseDelete(response->raw));
    response_free(response);
}

kelp_status *kelp_backend_send(kelp_backend_response *response, uint32_t flags,
                               kelp_status *take_error) {
    kelp_backend_request *request = response->request;
    bool decoupled = request->instance->model->is_decoupled;
    bool final = (flags & KELP_BACKEND_FINAL) || !decoupled;
    if (response->raw == NULL || !kelp_sdk_request_claim(request, final)) {
        kelp_status *status = response->raw != NULL ? already_final(request)
                                                    : KELP_ERROR(KELP_FAILED_PRECONDITION,
                                                                 "the response was sent twice");
        kelp_status_free(take_error);
        kelp_backend_response_destroy(response);
        return status;
    }
    TRITONSERVER_Error *error = kelp_backend_error(take_error);
    if (error != NULL)
        atomic_store(&request->failed, true);
    if (final && response->factory == NULL)
        kelp_sdk_request_report(request);
    TRITONBACKEND_ResponseFactory *factory =
        response->factory != NULL ? response->factory->raw : request->own_factory;
    if (decoupled && factory != NULL)
        kelp_sdk_report_response(request, factory, response->start_ns, response->output_ns, error);
    kelp_status *status = sdk_status(TRITONBACKEND_ResponseSend(
        response->raw, final ? TRITONSERVER_RESPONSE_COMPLETE_FINAL : 0, error));
    TRITONSERVER_ErrorDelete(error);
    response_free(response);
    return status;
}

/* ---- factories ---- */

kelp_status *kelp_backend_factory_create(kelp_backend_request *request,
                                         kelp_backend_factory **out) {
    kelp_backend_factory *factory = calloc(1, sizeof *factory);
    if (factory == NULL)
        return kelp_status_oom();
    kelp_status *status = sdk_status(TRITONBACKEND_ResponseFactoryNew(&factory->raw, request->raw));
    if (status != NULL) {
        free(factory);
        return status;
    }
    factory->request = request;
    atomic_init(&factory->refs, 1);
    atomic_fetch_add(&request->senders, 1);
    *out = factory;
    return NULL;
}

kelp_status *kelp_backend_factory_respond(kelp_backend_factory *factory,
                                          kelp_backend_response **out) {
    if (atomic_load(&factory->request->final))
        return already_final(factory->request);
    kelp_backend_response *response = calloc(1, sizeof *response);
    if (response == NULL)
        return kelp_status_oom();
    kelp_status *status =
        sdk_status(TRITONBACKEND_ResponseNewFromFactory(&response->raw, factory->raw));
    if (status != NULL) {
        free(response);
        return status;
    }
    response->request = factory->request;
    response->factory = factory;
    response->start_ns = kelp_backend_now_ns();
    atomic_fetch_add(&factory->refs, 1);
    *out = response;
    return NULL;
}

bool kelp_backend_factory_is_cancelled(const kelp_backend_factory *factory) {
    bool cancelled = false;
    (void)sdk_ok(TRITONBACKEND_ResponseFactoryIsCancelled(factory->raw, &cancelled));
    return cancelled;
}

kelp_status *kelp_backend_factory_finish(kelp_backend_factory *factory) {
    kelp_backend_request *request = factory->request;
    uint64_t start_ns = kelp_backend_now_ns();
    if (atomic_load(&request->final))
        return already_final(request);
    if (atomic_load(&request->responses) == 0 && !request->instance->model->is_decoupled) {
        kelp_sdk_request_close(request, NULL,
                               factory->raw); /* sends an error: no response was sent */
        return NULL;
    }
    if (!kelp_sdk_request_claim(request, true))
        return already_final(request);
    KELP_TRY(sdk_status(TRITONBACKEND_ResponseFactorySendFlags(
        factory->raw, TRITONSERVER_RESPONSE_COMPLETE_FINAL)));
    kelp_sdk_report_response(request, factory->raw, start_ns, 0, NULL);
    return NULL;
}

void kelp_backend_factory_destroy(kelp_backend_factory *factory) {
    if (factory != NULL)
        factory_drop(factory);
}
