/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Inference. A request is decoded and submitted. The response is sent after the callback for the
 * model's final response. Callbacks run on threads of models, which post to the event-loop thread,
 * or on the event-loop thread inside TRITONSERVER_ServerInferAsync.
 */
#include "base/assert.h"
#include "frontends/v2/exchange.h"

static kelp_status *encode(kelp_v2_exchange *exchange) {
    if (exchange->response == NULL)
        return KELP_ERROR(KELP_INTERNAL, "model '%s' sent no response", exchange->model);
    if (exchange->several_responses)
        return KELP_ERROR(KELP_UNIMPLEMENTED,
                          "model '%s' is decoupled and sent several responses: this endpoint "
                          "supports one response per request",
                          exchange->model);
    KELP_TRY(kelp_v2_encode_response(exchange));
    return kelp_http_exchange_compress(&exchange->base, exchange->response_coding);
}

static void complete(kelp_http_exchange *base) {
    kelp_v2_exchange *exchange = (kelp_v2_exchange *)base;
    KELP_ASSERT(exchange->in_flight && !exchange->submitting);
    exchange->in_flight = false;
    if (base->stream != NULL) { /* the connection is open */
        kelp_status *status = encode(exchange);
        if (status != NULL)
            kelp_v2_respond_failure(exchange, status);
    }
    kelp_v2_send(exchange);
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
    if (flags & TRITONSERVER_REQUEST_RELEASE_ALL)
        kelp_http_exchange_release(&exchange->base);
}

static kelp_status *decode(kelp_v2_exchange *exchange) {
    kelp_str body;
    KELP_TRY(kelp_http_exchange_body(&exchange->base,
                                     kelp_v2_service_of(exchange)->max_input_size_bytes, &body));
    const kelp_str *value =
        kelp_http_find(exchange->base.request, "inference-header-content-length");
    uint64_t json_length = body.length;
    if (value != NULL && !kelp_parse_u64(*value, &json_length))
        return KELP_ERROR(
            KELP_INVALID_ARGUMENT,
            "invalid Inference-Header-Content-Length: expected a number of bytes, found '%.*s'",
            KELP_STR_ARG(*value));
    if (json_length > body.length)
        return KELP_ERROR(
            KELP_INVALID_ARGUMENT,
            "invalid Inference-Header-Content-Length: expected at most %zu, the length of the "
            "body, found %llu",
            body.length, (unsigned long long)json_length);
    if (value != NULL && json_length == 0)
        return kelp_v2_decode_raw(exchange, body);
    kelp_str json = {body.data, (size_t)json_length};
    kelp_str binary = {body.data + json.length, body.length - json.length};
    return kelp_v2_decode_request(exchange, json, binary);
}

static kelp_status *submit(kelp_v2_exchange *exchange) {
    KELP_ASSERT(!exchange->request && !exchange->response && exchange->model);
    const kelp_v2_service *service = kelp_v2_service_of(exchange);
    const kelp_str *accepted = kelp_http_find(exchange->base.request, "accept-encoding");
    if (accepted != NULL)
        exchange->response_coding = kelp_http_coding_accepted(*accepted);
    KELP_TRY(kelp_v2_status(TRITONSERVER_InferenceRequestNew(&exchange->request, service->core,
                                                             exchange->model, exchange->version)));
    KELP_TRY(decode(exchange));
    KELP_TRY(kelp_v2_status(
        TRITONSERVER_InferenceRequestSetReleaseCallback(exchange->request, on_release, exchange)));
    KELP_TRY(kelp_v2_status(TRITONSERVER_InferenceRequestSetResponseCallback(
        exchange->request, service->response_allocator, exchange, on_response, exchange)));
    kelp_http_exchange_retain(&exchange->base);
    exchange->submitting = true;
    exchange->in_flight = true;
    TRITONSERVER_Error *error =
        TRITONSERVER_ServerInferAsync(service->core, exchange->request, NULL);
    exchange->submitting = false;
    if (error != NULL) { /* no callback is called: drop the reference of on_release here */
        exchange->in_flight = false;
        kelp_http_exchange_release(&exchange->base);
    }
    return kelp_v2_status(error);
}

void kelp_v2_infer(kelp_v2_exchange *exchange) {
    kelp_status *status = submit(exchange);
    if (status != NULL)
        kelp_v2_fail(exchange, status);
    else if (exchange->done_inline)
        complete(&exchange->base);
}

void kelp_v2_infer_cancel(kelp_v2_exchange *exchange) {
    if (exchange->in_flight) /* errors are ignored: the model may have just finished */
        kelp_status_free(kelp_v2_status(TRITONSERVER_InferenceRequestCancel(exchange->request)));
}
