/* SPDX-License-Identifier: Apache-2.0 */
/* Decompression of messages. Large ones are decompressed on a separate thread, because they may
 * become 1,000 times as large. The bytes after such a message are held until it is delivered. A
 * unary inference of a model whose queue is full is rejected before that. */
#include "base/assert.h"
#include "base/checked.h"
#include "frontends/common/status.h"
#include "frontends/grpc/exchange.h"
#include "frontends/http/thread.h"

#include <kelp/server.h>

#include <stddef.h>

#define LARGE_PACKED_BYTES ((size_t)2048)
/* The part of a message that contains the name of the model. */
#define PEEK_BYTES ((size_t)1024)

static kelp_status *unpack(const kelp_grpc_exchange *exchange, kelp_grpc_request *request) {
    uint64_t limit = kelp_grpc_service_of(exchange)->max_message_bytes;
    kelp_status *status =
        kelp_http_decode(exchange->request_coding, kelp_http_body_data(&request->body),
                         request->body.length, limit, &request->decompressed);
    if (kelp_status_code(status) != KELP_OUT_OF_RANGE)
        return status;
    kelp_status_free(status);
    return KELP_ERROR(KELP_RESOURCE_EXHAUSTED,
                      "the decompressed message is larger than the limit of %llu bytes",
                      (unsigned long long)limit);
}

static void run_unpack(kelp_work *work) {
    kelp_grpc_exchange *exchange =
        (kelp_grpc_exchange *)((char *)work - offsetof(kelp_grpc_exchange, work));
    exchange->work_status = unpack(exchange, exchange->unpacking);
    pthread_mutex_lock(&exchange->mutex);
    exchange->unpacked = true;
    kelp_grpc_post_pump(exchange);
    pthread_mutex_unlock(&exchange->mutex);
}

/* Returns UNAVAILABLE if the queue of the model is full. */
static kelp_status *check_queue(TRITONSERVER_Server *core, const char *model, int64_t version) {
    TRITONSERVER_InferenceRequest *request;
    KELP_TRY(kelp_v2_status(TRITONSERVER_InferenceRequestNew(&request, core, model, version)));
    kelp_status *status = kelp_v2_status(KELP_InferenceRequestCheckQueue(request));
    kelp_status_free(kelp_v2_status(TRITONSERVER_InferenceRequestDelete(request)));
    return status;
}

/* Checks the queue of the model that the beginning of a message names. */
static kelp_status *check_model(kelp_grpc_exchange *exchange, kelp_grpc_request *request,
                                kelp_str first) {
    kelp_grpc_infer_request *decoded = &request->decoded;
    decoded->id = "";
    KELP_TRY(kelp_grpc_peek_model(&request->arena, first, &decoded->model, &decoded->version));
    if (decoded->model == NULL)
        return NULL;
    kelp_status *status =
        check_queue(kelp_grpc_service_of(exchange)->core, decoded->model, decoded->version);
    if (status != NULL) {
        kelp_grpc_begin_request(exchange, request);
        kelp_grpc_trace_failure(request, status);
    }
    return status;
}

/* Decompresses the beginning of the message, and checks the queue of its model. */
static kelp_status *peek(kelp_grpc_exchange *exchange, kelp_grpc_request *request) {
    kelp_http_body *first = &request->decompressed;
    KELP_ASSERT(first->length == 0);
    /* the message is cut, so that the result is an error */
    kelp_status_free(kelp_http_decode(exchange->request_coding, kelp_http_body_data(&request->body),
                                      KELP_MIN(request->body.length, PEEK_BYTES), PEEK_BYTES,
                                      first));
    const char *data = kelp_http_body_data(first);
    kelp_status *status = NULL;
    if (data != NULL)
        status = check_model(exchange, request, (kelp_str){data, first->length});
    first->length = 0;
    return status;
}

void kelp_grpc_unpack(kelp_grpc_exchange *exchange, kelp_grpc_request *request) {
    KELP_ASSERT(exchange->unpacking == NULL && !exchange->blocking);
    if (exchange->request_coding == KELP_HTTP_IDENTITY) {
        kelp_grpc_deliver(exchange, request,
                          KELP_ERROR(KELP_INTERNAL,
                                     "a message is compressed, but the call has no grpc-encoding"));
        return;
    }
    if (request->body.length < LARGE_PACKED_BYTES) {
        kelp_grpc_deliver(exchange, request, unpack(exchange, request));
        return;
    }
    kelp_status *status = NULL;
    if (exchange->method->infers && !exchange->method->client_streams)
        status = peek(exchange, request);
    if (status != NULL) {
        kelp_grpc_deliver(exchange, request, status);
        return;
    }
    exchange->unpacking = request;
    exchange->work.run = run_unpack;
    kelp_http_exchange_retain(&exchange->base);
    status = kelp_workers_submit(kelp_grpc_service_of(exchange)->unpackers, &exchange->work);
    if (status == NULL)
        return;
    exchange->unpacking = NULL;
    kelp_grpc_deliver(exchange, request, status);
    kelp_http_exchange_release(&exchange->base);
}

void kelp_grpc_finish_unpack(kelp_grpc_exchange *exchange, bool cancelled) {
    kelp_grpc_request *request = exchange->unpacking;
    kelp_status *status = exchange->work_status;
    KELP_ASSERT(request != NULL);
    exchange->unpacking = NULL;
    exchange->work_status = NULL;
    if (cancelled || exchange->finishing) {
        kelp_status_free(status);
        kelp_grpc_request_recycle(request);
    } else {
        exchange->feeding = true;
        kelp_grpc_deliver(exchange, request, status);
        exchange->feeding = false;
    }
    kelp_http_exchange_release(&exchange->base); /* not the last one; see kelp_grpc_pump */
}
