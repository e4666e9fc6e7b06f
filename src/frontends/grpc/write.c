/* SPDX-License-Identifier: Apache-2.0 */
/* Encodes replies as messages, and sends them in batches. */
#include "base/checked.h"
#include "base/wire/protobuf_write.h"
#include "frontends/common/log.h"
#include "frontends/grpc/exchange.h"
#include "frontends/common/status.h"
#include "frontends/grpc/codec/infer_response.h"

#define MAX_BATCH_REPLIES 64
#define MAX_BATCH_BYTES ((uint64_t)1 << 20)
#define MAX_ERROR_BYTES 1024

enum { STREAM_ERROR = 1, STREAM_RESPONSE };
enum { RESPONSE_ID = 3 };

static kelp_status *encode_response(kelp_grpc_exchange *exchange, kelp_grpc_reply *reply) {
    kelp_grpc_request *request = reply->request;
    kelp_grpc_response_options options = {.core = kelp_grpc_service_of(exchange)->core,
                                          .request = &request->decoded,
                                          .streamed = exchange->method->client_streams,
                                          .final = reply->final};
    kelp_grpc_message_begin(&reply->message);
    kelp_trace_stamp(request->trace, "GRPC_SEND_START");
    if (reply->failure != NULL)
        return kelp_status_clone(reply->failure);
    if (reply->response != NULL) {
        KELP_TRY(kelp_shm_check_uses(request->decoded.regions));
        KELP_TRY(kelp_grpc_put_response(&reply->message, &reply->arena, &options, reply->response));
        if (reply->final)
            kelp_shm_release_uses(&request->decoded.regions);
        return NULL;
    }
    if (atomic_load(&request->lost))
        return KELP_ERROR(KELP_UNAVAILABLE, "out of memory for a response of model '%s'",
                          request->decoded.model);
    if (!request->decoupled)
        return KELP_ERROR(KELP_INTERNAL, "model '%s' sent no response", request->decoded.model);
    kelp_grpc_put_empty_response(&reply->message, &options);
    return kelp_buf_status(&reply->message.text);
}

/* Adds the version of the model to the access log. */
static kelp_status *note_version(kelp_grpc_exchange *exchange, const kelp_grpc_reply *reply) {
    kelp_request_entry *entry = &exchange->base.entry;
    const char *model;
    if (entry->log == NULL || entry->version >= 0 || reply->response == NULL)
        return NULL;
    return kelp_v2_status(
        TRITONSERVER_InferenceResponseModel(reply->response, &model, &entry->version));
}

/* Replaces the message of a stream by the failure of its request. */
static void encode_failure(kelp_grpc_reply *reply, kelp_status *take_failure) {
    char text[MAX_ERROR_BYTES];
    kelp_buf *out = &reply->message.text;
    const char *id = reply->request->decoded.id;
    size_t length = kelp_status_format(take_failure, text, sizeof text);
    kelp_log_failure("gRPC", take_failure);
    kelp_status_free(take_failure);
    kelp_grpc_message_begin(&reply->message);
    kelp_protobuf_put_str(out, STREAM_ERROR, (kelp_str){text, KELP_MIN(length, sizeof(text) - 1)});
    size_t start = out->length;
    if (id != NULL && *id != '\0')
        kelp_protobuf_put_text(out, RESPONSE_ID, id);
    kelp_protobuf_wrap(out, STREAM_RESPONSE, start);
}

/* Encodes a reply as a message. A failure of the call is returned. */
static kelp_status *encode_reply(kelp_grpc_exchange *exchange, kelp_grpc_reply *reply) {
    kelp_status *status = encode_response(exchange, reply);
    if (status == NULL)
        status = note_version(exchange, reply);
    bool failed = status != NULL;
    if (failed)
        kelp_grpc_trace_failure(reply->request, status);
    if (failed &&
        (!exchange->method->client_streams || (exchange->fails_stream && reply->failure == NULL)))
        return status;
    if (failed)
        encode_failure(reply, status);
    else if (exchange->method->client_streams)
        kelp_grpc_message_wrap(&reply->message, STREAM_RESPONSE);
    reply->request->answered = true;
    KELP_TRY(kelp_grpc_message_end(&reply->message, exchange->response_coding));
    return kelp_grpc_message_add(&reply->message, &exchange->base);
}

/* Returns true if a reply is not sent: it is only a flag, or a further response of a model that is
 * not decoupled, whose clients expect one. */
static bool is_silent(const kelp_grpc_reply *reply) {
    const kelp_grpc_request *request = reply->request;
    if (!request->decoupled && request->answered)
        return true;
    if (reply->response != NULL || reply->failure != NULL || atomic_load(&request->lost))
        return false;
    return request->decoupled && !request->decoded.sends_empty_final;
}

/* Encodes the next replies. Returns the number of messages. */
static size_t encode_batch(kelp_grpc_exchange *exchange) {
    size_t count = 0;
    while (exchange->writable != NULL && count < MAX_BATCH_REPLIES && !exchange->finishing &&
           kelp_http_exchange_content_length(&exchange->base) < MAX_BATCH_BYTES) {
        kelp_grpc_reply *reply = exchange->writable;
        exchange->writable = reply->next;
        if (is_silent(reply)) {
            kelp_grpc_free_reply(reply);
            continue;
        }
        size_t piece_count = exchange->base.piece_count;
        kelp_status *status = encode_reply(exchange, reply);
        reply->next = exchange->written;
        exchange->written = reply;
        if (status != NULL) { /* the earlier messages are sent */
            exchange->base.piece_count = piece_count;
            kelp_grpc_finish(exchange, status);
        }
        count++;
    }
    return count;
}

/* Returns true if all messages of the client were complete and are answered. */
static bool is_over(const kelp_grpc_exchange *exchange) {
    if (exchange->writable != NULL || exchange->ordered != NULL)
        return false;
    if (!exchange->method->client_streams)
        return exchange->has_message;
    return exchange->ended && exchange->open_count == 0 && exchange->held.length == 0 &&
           exchange->prefix_length == 0 && exchange->unpacking == NULL;
}

void kelp_grpc_write(kelp_grpc_exchange *exchange) {
    if (exchange->sending || exchange->finishing || exchange->feeding)
        return;
    kelp_grpc_start(exchange);
    size_t count = encode_batch(exchange);
    if (exchange->finishing) /* kelp_grpc_finish has sent the status */
        return;
    if (is_over(exchange)) {
        kelp_grpc_finish(exchange, NULL);
    } else if (count > 0) {
        exchange->sending = exchange->has_sent = true;
        kelp_http_exchange_send_part(&exchange->base);
    }
}
