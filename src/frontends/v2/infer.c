/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Inference. A request is decoded and submitted. The response is sent after the callback for the
 * model's final response. Callbacks run on threads of models, which post to the event-loop thread,
 * or on the event-loop thread inside TRITONSERVER_ServerInferAsync.
 *
 * Much JSON is decoded and encoded on separate threads, and so are compressed bodies, because the
 * other connections of the event loop would wait: 256 KiB of numbers take about a millisecond.
 */
#include "base/assert.h"
#include "frontends/common/batches.h"
#include "frontends/v2/exchange.h"

#include <kelp/server.h>

/* Compressed bodies from this size on are decoded on a separate thread: they may become 1,000 times
 * as large. */
#define LARGE_CODED_BYTES ((size_t)2048)
/* The maximum number of such threads of a server; further exchanges use the event-loop thread. */
#define MAX_CODEC_THREADS 64u

bool kelp_v2_run_codec(kelp_v2_exchange *exchange, void (*work)(kelp_http_exchange *base),
                       void (*then)(kelp_http_exchange *base)) {
    kelp_v2_service *service = kelp_v2_service_of(exchange);
    kelp_status *status = NULL;
    bool runs = atomic_fetch_add(&service->codec_count, 1) < MAX_CODEC_THREADS;
    if (runs)
        status = kelp_http_exchange_run_blocking(&exchange->base, work, then);
    if (runs && status == NULL)
        return true;
    kelp_status_free(status);
    atomic_fetch_sub(&service->codec_count, 1);
    return false;
}

void kelp_v2_end_codec(kelp_v2_exchange *exchange) {
    atomic_fetch_sub(&kelp_v2_service_of(exchange)->codec_count, 1);
}

/* ---- the response ---- */

/* Returns the error of a request without a response. The server sends one for a model that is not
 * decoupled, unless there is no memory for it. */
static kelp_status *no_response(const kelp_v2_exchange *exchange) {
    uint32_t properties = TRITONSERVER_TXN_DECOUPLED;
    void *unused = NULL;
    KELP_TRY(kelp_v2_status(TRITONSERVER_ServerModelTransactionProperties(
        kelp_v2_service_of(exchange)->core, exchange->model, exchange->version, &properties,
        &unused)));
    return properties & TRITONSERVER_TXN_DECOUPLED
               ? KELP_ERROR(KELP_INTERNAL, "model '%s' sent no response", exchange->model)
               : KELP_ERROR(KELP_RESOURCE_EXHAUSTED, "out of memory for the response of model '%s'",
                            exchange->model);
}

static kelp_status *encode(kelp_v2_exchange *exchange) {
    if (exchange->response == NULL)
        return no_response(exchange);
    if (exchange->several_responses)
        return KELP_ERROR(KELP_UNIMPLEMENTED,
                          "HTTP end point doesn't support models with decoupled transaction "
                          "policy that send several responses: use generate_stream or gRPC for "
                          "model '%s'",
                          exchange->model);
    KELP_TRY(kelp_v2_encode_response(exchange));
    return kelp_http_exchange_compress(&exchange->base, exchange->response_coding);
}

static void respond(kelp_v2_exchange *exchange) {
    kelp_status *status = encode(exchange);
    if (status != NULL)
        kelp_v2_respond_failure(exchange, status);
}

static void encode_on_thread(kelp_http_exchange *base) {
    respond((kelp_v2_exchange *)base);
    kelp_v2_end_codec((kelp_v2_exchange *)base);
}

/* Returns true if a response takes long to encode. */
static bool is_large(const kelp_v2_exchange *exchange) {
    return exchange->outputs.total_bytes >= KELP_V2_LARGE_JSON_BYTES &&
           kelp_v2_encoded_bytes(exchange) >= KELP_V2_LARGE_JSON_BYTES;
}

static void release_and_send(kelp_http_exchange *base) {
    kelp_trace_stamp(((kelp_v2_exchange *)base)->trace, "HTTP_SEND_START");
    kelp_shm_release_uses(&((kelp_v2_exchange *)base)->regions);
    kelp_http_exchange_send(base);
}

/* Ends a use of the regions: by the request, or by its response. Returns true for the last one. */
static bool end_region_use(kelp_v2_exchange *exchange) {
    return atomic_fetch_sub(&exchange->region_users, 1) == 1;
}

/* Sends the response. If the model still uses shared memory, on_release sends it, so that a client
 * with a response can unregister the regions. */
static void send_response(kelp_http_exchange *base) {
    kelp_v2_exchange *exchange = (kelp_v2_exchange *)base;
    if (exchange->regions == NULL || end_region_use(exchange))
        release_and_send(base);
}

static void complete(kelp_http_exchange *base) {
    kelp_v2_exchange *exchange = (kelp_v2_exchange *)base;
    KELP_ASSERT(exchange->in_flight && !exchange->submitting);
    exchange->in_flight = false;
    if (base->stream == NULL) { /* the connection is closed */
        send_response(base);
    } else if (!is_large(exchange) ||
               !kelp_v2_run_codec(exchange, encode_on_thread, send_response)) {
        respond(exchange);
        send_response(base);
    }
}

/* Keeps the first response. On the second one, cancels the request, because an HTTP response
 * contains only one. */
static void take_response(kelp_v2_exchange *exchange, TRITONSERVER_InferenceResponse *response) {
    if (exchange->response == NULL) {
        exchange->response = response;
        return;
    }
    kelp_status_free(kelp_v2_status(TRITONSERVER_InferenceResponseDelete(response)));
    if (!exchange->several_responses)
        kelp_status_free(kelp_v2_status(TRITONSERVER_InferenceRequestCancel(exchange->request)));
    exchange->several_responses = true;
}

/* Receives a response. Called on any thread. */
static void on_response(TRITONSERVER_InferenceResponse *response, const uint32_t flags,
                        void *userp) {
    kelp_v2_exchange *exchange = userp;
    KELP_ASSERT(!exchange->done_inline);
    if (response != NULL)
        take_response(exchange, response);
    if (!(flags & TRITONSERVER_RESPONSE_COMPLETE_FINAL))
        return;
    kelp_trace_stamp(exchange->trace, "INFER_RESPONSE_COMPLETE");
    if (kelp_http_exchange_on_thread(&exchange->base) && exchange->submitting)
        exchange->done_inline = true;
    else
        kelp_http_exchange_post(&exchange->base, complete);
}

/* Drops the exchange's reference. Called on any thread. The request is deleted with the exchange,
 * so that it can be cancelled until then. */
static void on_release(TRITONSERVER_InferenceRequest *request, const uint32_t flags, void *userp) {
    (void)request;
    kelp_v2_exchange *exchange = userp;
    if (flags & TRITONSERVER_REQUEST_RELEASE_ALL) {
        if (exchange->regions != NULL && end_region_use(exchange))
            kelp_http_exchange_post(&exchange->base, release_and_send);
        kelp_http_exchange_release(&exchange->base);
    }
}

/* ---- the request ---- */

/* Finds the length of the JSON; NULL if the body contains only JSON. */
static kelp_status *find_json_length(const kelp_http_request *request, const kelp_str **out) {
    static const kelp_str name = {"inference-header-content-length",
                                  sizeof "inference-header-content-length" - 1};
    *out = NULL;
    for (size_t i = 0; i < request->header_count; i++) {
        if (!kelp_str_equal_nocase(request->headers[i].name, name))
            continue;
        if (*out != NULL)
            return KELP_ERROR(KELP_INVALID_ARGUMENT,
                              "there are two Inference-Header-Content-Length headers");
        *out = &request->headers[i].value;
    }
    return NULL;
}

/* Reads the length of the JSON from the head. */
static kelp_status *read_json_length(kelp_v2_exchange *exchange) {
    const kelp_str *value;
    KELP_TRY(find_json_length(exchange->base.request, &value));
    exchange->has_json_bytes = value != NULL;
    if (value != NULL && !kelp_parse_u64(*value, &exchange->json_bytes))
        return KELP_ERROR(
            KELP_INVALID_ARGUMENT,
            "invalid Inference-Header-Content-Length: expected a number of bytes, found '%.*s'",
            KELP_STR_ARG(*value));
    return NULL;
}

/* Decompresses the body, and finds its parts. */
static kelp_status *split(kelp_v2_exchange *exchange) {
    kelp_str body;
    KELP_TRY(kelp_http_exchange_decode(&exchange->base, exchange->request_coding,
                                       kelp_v2_service_of(exchange)->max_input_size_bytes, &body));
    uint64_t json_length = exchange->has_json_bytes ? exchange->json_bytes : body.length;
    if (json_length > body.length)
        return KELP_ERROR(
            KELP_INVALID_ARGUMENT,
            "invalid Inference-Header-Content-Length: expected at most %zu, the length of the "
            "body, found %llu",
            body.length, (unsigned long long)json_length);
    exchange->is_raw = exchange->has_json_bytes && json_length == 0;
    exchange->json = (kelp_str){body.data, (size_t)json_length};
    exchange->binary = (kelp_str){body.data + json_length, body.length - (size_t)json_length};
    return NULL;
}

static kelp_status *decode(kelp_v2_exchange *exchange) {
    KELP_TRY(split(exchange));
    return exchange->is_raw ? kelp_v2_decode_raw(exchange, exchange->binary)
                            : kelp_v2_decode_request(exchange, exchange->json, exchange->binary);
}

bool kelp_v2_takes_long(const kelp_v2_exchange *exchange) {
    size_t length = exchange->base.body.length;
    if (exchange->request_coding != KELP_HTTP_IDENTITY)
        return length >= LARGE_CODED_BYTES;
    return length >= KELP_V2_LARGE_JSON_BYTES &&
           (!exchange->has_json_bytes || exchange->json_bytes >= KELP_V2_LARGE_JSON_BYTES);
}

/* Reads everything that is valid only while the handler runs. A request to a full queue is not
 * decoded if that takes long. */
static kelp_status *prepare(kelp_v2_exchange *exchange) {
    KELP_ASSERT(!exchange->request && !exchange->response && exchange->model);
    const kelp_v2_service *service = kelp_v2_service_of(exchange);
    const kelp_str *accepted = kelp_http_find(exchange->base.request, "accept-encoding");
    kelp_v2_begin_trace(exchange);
    if (accepted != NULL)
        exchange->response_coding = kelp_http_coding_accepted(*accepted);
    KELP_TRY(kelp_v2_status(TRITONSERVER_InferenceRequestNew(&exchange->request, service->core,
                                                             exchange->model, exchange->version)));
    KELP_TRY(kelp_v2_forward_headers(exchange));
    KELP_TRY(read_json_length(exchange));
    KELP_TRY(kelp_http_exchange_coding(&exchange->base, &exchange->request_coding));
    if (kelp_v2_takes_long(exchange))
        KELP_TRY(kelp_v2_status(KELP_InferenceRequestCheckQueue(exchange->request)));
    return NULL;
}

void kelp_v2_begin_trace(kelp_v2_exchange *exchange) {
    kelp_tracing *tracing = kelp_v2_service_of(exchange)->tracing;
    const kelp_http_request *request = exchange->base.request;
    kelp_trace_origin origin = {.model = exchange->model,
                                .method = request->method,
                                .path = request->path,
                                .route = exchange->route,
                                .http_version = request->version,
                                .start_ns = exchange->base.start_ns};
    kelp_tracing_read_parent(tracing, request, &exchange->arena, &origin.parent);
    exchange->trace = kelp_tracing_sample(tracing, &origin);
    kelp_trace_stamp_at(exchange->trace, "HTTP_RECV_START", exchange->base.start_ns);
    kelp_trace_stamp_at(exchange->trace, "HTTP_RECV_END", exchange->base.received_ns);
}

kelp_status *kelp_v2_submit(kelp_v2_exchange *exchange, TRITONSERVER_ResponseAllocator *allocator,
                            TRITONSERVER_InferenceResponseCompleteFn_t on_each_response) {
    const kelp_v2_service *service = kelp_v2_service_of(exchange);
    kelp_http_thread *thread = exchange->base.thread;
    const char *id = NULL;
    KELP_TRY(kelp_v2_status(TRITONSERVER_InferenceRequestId(exchange->request, &id)));
    kelp_request_entry_set_id(&exchange->base.entry, id);
    KELP_TRY(kelp_v2_status(
        TRITONSERVER_InferenceRequestSetReleaseCallback(exchange->request, on_release, exchange)));
    KELP_TRY(kelp_v2_status(TRITONSERVER_InferenceRequestSetResponseCallback(
        exchange->request, allocator, exchange, on_each_response, exchange)));
    KELP_TRY(kelp_batches_prepare(thread, exchange->request));
    kelp_http_exchange_retain(&exchange->base);
    exchange->submitting = true;
    exchange->in_flight = true;
    atomic_store(&exchange->region_users, 2);
    TRITONSERVER_InferenceTrace *trace = kelp_trace_submit(exchange->trace);
    TRITONSERVER_Error *error =
        TRITONSERVER_ServerInferAsync(service->core, exchange->request, trace);
    exchange->submitting = false;
    if (error != NULL) { /* no callback is called: drop the reference of on_release here */
        kelp_trace_take_back(exchange->trace, trace);
        exchange->in_flight = false;
        kelp_http_exchange_release(&exchange->base);
    } else if (!exchange->done_inline) {
        kelp_batches_wait(thread);
    }
    return kelp_v2_status(error);
}

/* Submits a request, or fails the exchange if the request could not be decoded. */
static void finish(kelp_v2_exchange *exchange, kelp_status *take_status) {
    kelp_status *status = take_status;
    if (status == NULL)
        status =
            kelp_v2_submit(exchange, kelp_v2_service_of(exchange)->response_allocator, on_response);
    if (status != NULL)
        kelp_v2_fail(exchange, status);
    else if (exchange->done_inline)
        complete(&exchange->base);
}

static void decode_on_thread(kelp_http_exchange *base) {
    kelp_v2_exchange *exchange = (kelp_v2_exchange *)base;
    exchange->decode_status = exchange->decoding->decode(exchange);
    kelp_v2_end_codec(exchange);
}

static void finish_decoded(kelp_http_exchange *base) {
    kelp_v2_exchange *exchange = (kelp_v2_exchange *)base;
    kelp_status *status = exchange->decode_status;
    exchange->decode_status = NULL;
    if (base->stream == NULL && status == NULL)
        status = KELP_ERROR(KELP_CANCELLED, "the client has closed the connection");
    exchange->decoding->finish(exchange, status);
}

void kelp_v2_decode_and_finish(kelp_v2_exchange *exchange, const kelp_v2_decoding *decoding) {
    exchange->decoding = decoding;
    if (!kelp_v2_takes_long(exchange) ||
        !kelp_v2_run_codec(exchange, decode_on_thread, finish_decoded))
        decoding->finish(exchange, decoding->decode(exchange));
}

void kelp_v2_infer(kelp_v2_exchange *exchange) {
    static const kelp_v2_decoding decoding = {decode, finish};
    kelp_status *status = prepare(exchange);
    if (status != NULL)
        kelp_v2_fail(exchange, status);
    else
        kelp_v2_decode_and_finish(exchange, &decoding);
}

void kelp_v2_infer_cancel(kelp_v2_exchange *exchange) {
    if (exchange->base.stream == NULL)
        kelp_trace_finish(exchange->trace, KELP_HTTP_CLIENT_CLOSED_REQUEST,
                          "the client closed the connection");
    if (exchange->in_flight) /* errors are ignored: the model may have just finished */
        kelp_status_free(kelp_v2_status(TRITONSERVER_InferenceRequestCancel(exchange->request)));
}
