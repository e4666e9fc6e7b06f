/* SPDX-License-Identifier: Apache-2.0 */
#include "frontends/v2/service.h"

#include "base/alloc.h"
#include "base/assert.h"
#include "base/text/json.h"
#include "frontends/common/log.h"
#include "frontends/v2/exchange.h"
#include "frontends/v2/openapi.h"

#include <stdio.h>

#define DEFAULT_MAX_INPUT_SIZE_BYTES (UINT64_C(64) << 20)
#define DEFAULT_MAX_BODY_SIZE_BYTES (UINT64_C(4) << 30)

/* ---- outputs ---- */

/* Returns the memory of an output in a shared memory region, NULL in *out if it is in none. */
static TRITONSERVER_Error *find_region(const kelp_v2_exchange *exchange, const char *name,
                                       size_t size_bytes, void **out) {
    const kelp_v2_requested_output *requested = kelp_v2_find_requested(exchange, name);
    *out = NULL;
    if (requested == NULL || requested->region == NULL)
        return NULL;
    if (size_bytes > requested->memory_bytes) {
        char text[256];
        snprintf(text, sizeof text,
                 "shared memory size specified with the request for output '%.96s' (%llu bytes) "
                 "should be at least %zu bytes to hold the results",
                 name, (unsigned long long)requested->memory_bytes, size_bytes);
        return TRITONSERVER_ErrorNew(TRITONSERVER_ERROR_INVALID_ARG, text);
    }
    *out = requested->memory;
    return NULL;
}

/* Allocates an output in a shared memory region, or in the memory of the exchange, from which it is
 * sent. Called on a thread of the model, for one response at a time. */
static TRITONSERVER_Error *
allocate_output(TRITONSERVER_ResponseAllocator *allocator, const char *tensor_name,
                size_t byte_size, TRITONSERVER_MemoryType memory_type, int64_t memory_type_id,
                void *userp, void **buffer, void **buffer_userp,
                TRITONSERVER_MemoryType *actual_memory_type, int64_t *actual_memory_type_id) {
    (void)allocator, (void)memory_type, (void)memory_type_id;
    kelp_v2_exchange *exchange = userp;
    *buffer = NULL;
    *buffer_userp = NULL;
    *actual_memory_type = TRITONSERVER_MEMORY_CPU;
    *actual_memory_type_id = 0;
    if (byte_size == 0)
        return NULL;
    TRITONSERVER_Error *error = find_region(exchange, tensor_name, byte_size, buffer);
    if (error != NULL || *buffer != NULL)
        return error;
    *buffer = kelp_arena_alloc(&exchange->outputs, byte_size, KELP_TENSOR_ALIGNMENT);
    if (*buffer != NULL)
        return NULL;
    char text[256];
    snprintf(text, sizeof text, "out of memory for output '%.128s' of %zu bytes", tensor_name,
             byte_size);
    return TRITONSERVER_ErrorNew(TRITONSERVER_ERROR_UNAVAILABLE, text);
}

/* Does nothing, because the exchange frees all outputs at once. */
static TRITONSERVER_Error *release_output(TRITONSERVER_ResponseAllocator *allocator, void *buffer,
                                          void *buffer_userp, size_t byte_size,
                                          TRITONSERVER_MemoryType memory_type,
                                          int64_t memory_type_id) {
    (void)allocator, (void)buffer, (void)buffer_userp, (void)byte_size, (void)memory_type,
        (void)memory_type_id;
    return NULL;
}

/* Allocates an output of a stream. Called on any thread. */
static TRITONSERVER_Error *
allocate_alone(TRITONSERVER_ResponseAllocator *allocator, const char *tensor_name, size_t byte_size,
               TRITONSERVER_MemoryType memory_type, int64_t memory_type_id, void *userp,
               void **buffer, void **buffer_userp, TRITONSERVER_MemoryType *actual_memory_type,
               int64_t *actual_memory_type_id) {
    (void)allocator, (void)tensor_name, (void)memory_type, (void)memory_type_id;
    kelp_v2_service *service = kelp_v2_service_of(userp);
    *buffer = NULL;
    *buffer_userp = service;
    *actual_memory_type = TRITONSERVER_MEMORY_CPU;
    *actual_memory_type_id = 0;
    kelp_status *status =
        kelp_alloc_aligned(service->allocator, byte_size, KELP_TENSOR_ALIGNMENT, buffer);
    if (status == NULL)
        return NULL;
    kelp_status_free(status);
    return TRITONSERVER_ErrorNew(TRITONSERVER_ERROR_UNAVAILABLE, "out of memory for an output");
}

static TRITONSERVER_Error *release_alone(TRITONSERVER_ResponseAllocator *allocator, void *buffer,
                                         void *buffer_userp, size_t byte_size,
                                         TRITONSERVER_MemoryType memory_type,
                                         int64_t memory_type_id) {
    (void)allocator, (void)memory_type, (void)memory_type_id;
    const kelp_v2_service *service = buffer_userp;
    kelp_free_aligned(service->allocator, buffer, byte_size, KELP_TENSOR_ALIGNMENT);
    return NULL;
}

/* ---- exchanges ---- */

static void on_init(kelp_http_exchange *base) {
    kelp_v2_exchange *exchange = (kelp_v2_exchange *)base;
    exchange->version = -1;
    kelp_arena_init(&exchange->arena, base->allocator, 0);
    kelp_arena_init(&exchange->outputs, base->allocator, 0);
}

static void on_deinit(kelp_http_exchange *base) {
    kelp_v2_exchange *exchange = (kelp_v2_exchange *)base;
    kelp_arena_deinit(&exchange->arena);
    kelp_arena_deinit(&exchange->outputs);
}

static void trim_arena(kelp_arena *arena) {
    if (arena->total_bytes > KELP_HTTP_KEEP_BYTES) {
        kelp_allocator allocator = arena->allocator;
        kelp_arena_deinit(arena);
        kelp_arena_init(arena, allocator, 0);
    } else {
        kelp_arena_clear(arena);
    }
}

static void on_clear(kelp_http_exchange *base) {
    kelp_v2_exchange *exchange = (kelp_v2_exchange *)base;
    if (exchange->response != NULL)
        kelp_status_free(kelp_v2_status(TRITONSERVER_InferenceResponseDelete(exchange->response)));
    KELP_ASSERT(!exchange->in_flight);
    if (exchange->request != NULL)
        kelp_status_free(kelp_v2_status(TRITONSERVER_InferenceRequestDelete(exchange->request)));
    kelp_trace_stamp(exchange->trace, "HTTP_SEND_END");
    kelp_trace_finish(exchange->trace, base->status, NULL);
    kelp_trace_record_release(exchange->trace);
    exchange->trace = NULL;
    kelp_shm_release_uses(&exchange->regions);
    kelp_v2_generation_clear(exchange);
    trim_arena(&exchange->arena);
    trim_arena(&exchange->outputs);
    exchange->in_flight = exchange->submitting = exchange->done_inline = false;
    exchange->several_responses = exchange->binary_default = false;
    exchange->route = NULL;
    exchange->model = NULL;
    exchange->version = -1;
    exchange->request_coding = exchange->response_coding = KELP_HTTP_IDENTITY;
    exchange->has_json_bytes = false;
    exchange->document = NULL;
    exchange->json = exchange->binary = (kelp_str){0};
    exchange->requested = NULL;
    exchange->requested_count = 0;
    exchange->request = NULL;
    exchange->response = NULL;
}

/* ---- requests ---- */

/* Sets the rules of the body. A body with binary tensors may be larger, and the first tensor, after
 * the JSON, is aligned. */
static void on_head(kelp_http_handler *handler, const kelp_http_request *request,
                    kelp_http_body_rules *inout_rules) {
    const kelp_v2_service *service = (const kelp_v2_service *)handler;
    const kelp_str *header = kelp_http_find(request, "inference-header-content-length");
    uint64_t json_length;
    inout_rules->max_bytes = service->max_input_size_bytes;
    if (header != NULL && kelp_parse_u64(*header, &json_length) && json_length > 0 &&
        json_length <= service->max_input_size_bytes &&
        kelp_http_find(request, "content-encoding") == NULL) {
        inout_rules->max_bytes = service->max_body_size_bytes;
        inout_rules->aligned_offset = (size_t)json_length;
    }
}

static void on_request(kelp_http_exchange *base) {
    kelp_log_request("HTTP", base->request);
    kelp_v2_route((kelp_v2_exchange *)base);
}

static void on_error(kelp_http_exchange *base, kelp_http_status status, const char *text) {
    kelp_v2_respond_error((kelp_v2_exchange *)base, status, kelp_str_from(text));
}

static void on_sent(kelp_http_exchange *base) {
    kelp_v2_generation_sent((kelp_v2_exchange *)base);
}

static void on_cancel(kelp_http_exchange *base) {
    kelp_v2_infer_cancel((kelp_v2_exchange *)base);
    if (base->stream == NULL && ((kelp_v2_exchange *)base)->generation != NULL)
        kelp_v2_generation_continue((kelp_v2_exchange *)base);
}

/* ---- the handler ---- */

static void on_destroy(kelp_http_handler *handler) {
    kelp_v2_service *service = (kelp_v2_service *)handler;
    kelp_workers_wait(service->loaders); /* the work uses the service */
    if (service->response_allocator != NULL)
        kelp_status_free(
            kelp_v2_status(TRITONSERVER_ResponseAllocatorDelete(service->response_allocator)));
    if (service->stream_allocator != NULL)
        kelp_status_free(
            kelp_v2_status(TRITONSERVER_ResponseAllocatorDelete(service->stream_allocator)));
    kelp_openapi_destroy(service->openapi);
    kelp_free(service->allocator, service, sizeof *service);
}

/* Describes the endpoints. */
static kelp_status *describe(kelp_v2_service *service, const kelp_v2_options *options) {
    TRITONSERVER_Message *message = NULL;
    const char *text = NULL;
    size_t length = 0;
    kelp_arena arena;
    kelp_json *metadata = NULL;
    KELP_TRY(kelp_v2_status(TRITONSERVER_ServerMetadata(service->core, &message)));
    kelp_arena_init(&arena, service->allocator, 0);
    kelp_status *status =
        kelp_v2_status(TRITONSERVER_MessageSerializeToJson(message, &text, &length));
    if (status == NULL)
        status = kelp_json_parse(&arena, "metadata", text, length, &metadata);
    const kelp_json *version = kelp_json_get(metadata, "version");
    if (status == NULL) {
        const kelp_openapi_options described = {
            .version = version != NULL ? version->string : KELP_STR(""),
            .access = service->access,
            .logging = service->logging != NULL,
            .tracing = service->tracing != NULL,
            .shm = service->shm != NULL,
            .register_shm = service->shm != NULL && kelp_shm_allows_clients(service->shm),
            .load_models = options->load_models,
            .allocator = service->allocator};
        status = kelp_openapi_create(&described, &service->openapi);
    }
    kelp_arena_deinit(&arena);
    kelp_status_free(kelp_v2_status(TRITONSERVER_MessageDelete(message)));
    return status;
}

static kelp_status *create_allocators(kelp_v2_service *service) {
    KELP_TRY(kelp_v2_status(TRITONSERVER_ResponseAllocatorNew(
        &service->response_allocator, allocate_output, release_output, NULL)));
    return kelp_v2_status(TRITONSERVER_ResponseAllocatorNew(&service->stream_allocator,
                                                            allocate_alone, release_alone, NULL));
}

kelp_status *kelp_v2_create(TRITONSERVER_Server *core, const kelp_v2_options *options,
                            kelp_http_handler **out) {
    kelp_allocator allocator =
        options->allocator.realloc != NULL ? options->allocator : kelp_allocator_system();
    kelp_v2_service *service;
    KELP_TRY(KELP_NEW(allocator, kelp_v2_service, &service));
    service->allocator = allocator;
    service->core = core;
    service->shm = options->shm;
    service->logging = options->logging;
    service->tracing = options->tracing;
    service->loaders = options->loaders;
    atomic_init(&service->draining, false);
    service->max_input_size_bytes = options->max_input_size_bytes ? options->max_input_size_bytes
                                                                  : DEFAULT_MAX_INPUT_SIZE_BYTES;
    service->max_body_size_bytes =
        options->max_body_size_bytes ? options->max_body_size_bytes : DEFAULT_MAX_BODY_SIZE_BYTES;
    if (service->max_body_size_bytes < service->max_input_size_bytes)
        service->max_body_size_bytes = service->max_input_size_bytes;
    service->access = options->access;
    service->forward = options->forward;
    service->cors_origins = options->cors_origins;
    service->cors_origin_count = options->cors_origin_count;
    service->handler = (kelp_http_handler){
        .exchange_bytes = sizeof(kelp_v2_exchange),
        .init = on_init,
        .deinit = on_deinit,
        .clear = on_clear,
        .on_head = on_head,
        .on_request = on_request,
        .on_error = on_error,
        .on_sent = on_sent,
        .on_cancel = on_cancel,
        .destroy = on_destroy,
    };
    kelp_status *status = create_allocators(service);
    if (status == NULL)
        status = describe(service, options);
    if (status != NULL) {
        on_destroy(&service->handler);
        return status;
    }
    *out = &service->handler;
    return NULL;
}

void kelp_v2_drain(kelp_http_handler *handler) {
    atomic_store(&((kelp_v2_service *)handler)->draining, true);
}
