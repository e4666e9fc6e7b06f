/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ModelInfer and ModelStreamInfer. A request passes through these states:
 *
 * - submitted: in exchange->active, and in exchange->ordered if its model is not decoupled. The
 *   replies of such requests are sent in the order of the requests; those of decoupled models when
 *   they arrive.
 * - final_handled: the final reply arrived on the event-loop thread.
 * - released: the server does not use the request any more. After both, the reference to the
 *   exchange is dropped.
 * - complete: the final reply was written or dropped. After all three, the request is recycled.
 *
 * Replies arrive on threads of models (on_response), which post kelp_grpc_pump, or while the
 * event-loop thread submits. They are written in batches.
 */
#include "base/alloc.h"
#include "base/assert.h"
#include "base/checked.h"
#include "frontends/common/batches.h"
#include "frontends/grpc/exchange.h"
#include "frontends/common/status.h"

#include <kelp/server.h>

/* A stream starts no requests while so many bytes of responses wait. */
#define PAUSE_QUEUED_BYTES ((uint64_t)16 << 20)
#define PAUSE_ACTIVE_BYTES ((uint64_t)64 << 20)
#define LARGE_CONTENTS_BYTES ((size_t)4096)
/* What a queued reply costs besides its outputs. */
#define REPLY_BYTES 1024
#define MAX_UNUSED_REPLIES 64
/* A longer message is truncated in traces. */
#define MAX_TRACED_BYTES 1024

static bool is_stream(const kelp_grpc_exchange *exchange) {
    return exchange->method->client_streams;
}

bool kelp_grpc_can_infer(kelp_grpc_exchange *exchange) {
    pthread_mutex_lock(&exchange->mutex);
    uint64_t queued_bytes = exchange->queued_bytes;
    pthread_mutex_unlock(&exchange->mutex);
    return exchange->active_count < kelp_grpc_service_of(exchange)->max_requests &&
           exchange->active_bytes < PAUSE_ACTIVE_BYTES && queued_bytes < PAUSE_QUEUED_BYTES;
}

/* ---- requests ---- */

static void link_request(kelp_grpc_request *request) {
    kelp_grpc_exchange *exchange = request->exchange;
    request->previous = NULL;
    request->next = exchange->active;
    if (exchange->active != NULL)
        exchange->active->previous = request;
    exchange->active = request;
    exchange->active_count++;
    exchange->active_bytes += request->body.length + request->decompressed.length;
}

/* Recycles a request that is complete and that the server does not use. */
static void recycle_request(kelp_grpc_request *request) {
    kelp_grpc_exchange *exchange = request->exchange;
    KELP_ASSERT(exchange->active_count > 0);
    if (request->previous != NULL)
        request->previous->next = request->next;
    else
        exchange->active = request->next;
    if (request->next != NULL)
        request->next->previous = request->previous;
    exchange->active_count--;
    exchange->active_bytes -= request->body.length + request->decompressed.length;
    kelp_grpc_request_recycle(request);
}

static void complete_request(kelp_grpc_request *request) {
    request->complete = true;
    if (!request->referenced)
        recycle_request(request);
}

static void accept_reply(kelp_grpc_exchange *exchange, kelp_grpc_reply *reply);

/* Drops the reference of a request whose final reply was handled and that was released. */
static void drop_reference(kelp_grpc_request *request) {
    kelp_grpc_exchange *exchange = request->exchange;
    KELP_ASSERT(request->referenced);
    request->referenced = false;
    if (request->waits_for_release) {
        request->waits_for_release = false;
        accept_reply(exchange, &request->final_reply);
        kelp_http_exchange_release(&exchange->base);
        return;
    }
    if (request->complete)
        recycle_request(request);
    kelp_http_exchange_release(&exchange->base); /* not the last one; see kelp_grpc_pump */
}

static void append_ordered(kelp_grpc_request *request) {
    kelp_grpc_exchange *exchange = request->exchange;
    request->next_ordered = NULL;
    if (exchange->ordered == NULL)
        exchange->ordered = request;
    else
        exchange->last_ordered->next_ordered = request;
    exchange->last_ordered = request;
}

/* ---- replies ---- */

void kelp_grpc_free_reply(kelp_grpc_reply *reply) {
    kelp_grpc_request *request = reply->request;
    kelp_grpc_exchange *exchange = request->exchange;
    bool final = reply->final;
    pthread_mutex_lock(&exchange->mutex);
    exchange->queued_bytes -= reply->queued_bytes;
    pthread_mutex_unlock(&exchange->mutex);
    kelp_grpc_reply_clear(reply);
    if (reply != &request->final_reply) {
        pthread_mutex_lock(&exchange->mutex);
        bool keep = exchange->unused_reply_count < MAX_UNUSED_REPLIES;
        if (keep) {
            reply->next = exchange->unused_replies;
            exchange->unused_replies = reply;
            exchange->unused_reply_count++;
        }
        pthread_mutex_unlock(&exchange->mutex);
        if (!keep) {
            kelp_grpc_reply_deinit(reply);
            kelp_free(exchange->base.allocator, reply, sizeof *reply);
        }
    }
    if (final)
        complete_request(request);
}

static void free_replies(kelp_grpc_reply *first) {
    while (first != NULL) {
        kelp_grpc_reply *next = first->next;
        kelp_grpc_free_reply(first);
        first = next;
    }
}

void kelp_grpc_free_written(kelp_grpc_exchange *exchange) {
    kelp_grpc_reply *written = exchange->written;
    exchange->written = NULL;
    free_replies(written);
}

static void append_writable(kelp_grpc_exchange *exchange, kelp_grpc_reply *reply) {
    reply->next = NULL;
    if (exchange->writable == NULL)
        exchange->writable = reply;
    else
        exchange->last_writable->next = reply;
    exchange->last_writable = reply;
}

/* Makes the replies of the requests that are next in the order writable. */
static void release_ordered(kelp_grpc_exchange *exchange) {
    while (exchange->ordered != NULL && exchange->ordered->first_reply != NULL) {
        kelp_grpc_request *request = exchange->ordered;
        bool final = false;
        for (kelp_grpc_reply *reply = request->first_reply, *next; reply != NULL; reply = next) {
            next = reply->next;
            final = final || reply->final;
            append_writable(exchange, reply);
        }
        request->first_reply = request->last_reply = NULL;
        if (!final)
            return;
        exchange->ordered = request->next_ordered;
    }
}

/* Drops the replies that were not encoded. */
static void drop_replies(kelp_grpc_exchange *exchange) {
    kelp_grpc_reply *writable = exchange->writable;
    exchange->writable = exchange->last_writable = NULL;
    free_replies(writable);
    while (exchange->ordered != NULL) {
        kelp_grpc_request *request = exchange->ordered;
        kelp_grpc_reply *first = request->first_reply;
        exchange->ordered = request->next_ordered;
        request->first_reply = request->last_reply = NULL;
        free_replies(first); /* may recycle the request */
    }
}

void kelp_grpc_cancel_requests(kelp_grpc_exchange *exchange) {
    drop_replies(exchange);
    if (exchange->open_count == 0)
        return;
    for (kelp_grpc_request *r = exchange->active; r != NULL; r = r->next) {
        if (exchange->code != KELP_OK)
            kelp_trace_finish(r->trace, exchange->code, kelp_code_name(exchange->code));
        if (r->referenced && !r->final_handled) /* errors: the model may have just finished */
            kelp_status_free(kelp_v2_status(TRITONSERVER_InferenceRequestCancel(r->inference)));
    }
}

/* Passes a reply on to be written, in the order of the requests, or drops it. */
static void accept_reply(kelp_grpc_exchange *exchange, kelp_grpc_reply *reply) {
    kelp_grpc_request *request = reply->request;
    if (exchange->finishing) {
        kelp_grpc_free_reply(reply);
        return;
    }
    if (request->decoupled) {
        append_writable(exchange, reply);
        return;
    }
    reply->next = NULL;
    if (request->first_reply == NULL)
        request->first_reply = reply;
    else
        request->last_reply->next = reply;
    request->last_reply = reply;
}

/* Takes a reply, on the event-loop thread. */
static void take_reply(kelp_grpc_exchange *exchange, kelp_grpc_reply *reply) {
    kelp_grpc_request *request = reply->request;
    if (reply->final) {
        pthread_mutex_lock(&exchange->mutex);
        request->final_handled = true;
        bool released = request->released;
        pthread_mutex_unlock(&exchange->mutex);
        exchange->open_count--;
        if (released) {
            drop_reference(request);
        } else if (request->decoded.regions != NULL) {
            /* A client with the response may unregister the regions. */
            request->waits_for_release = true;
            return;
        }
    }
    accept_reply(exchange, reply);
}

void kelp_grpc_take_arrived(kelp_grpc_exchange *exchange) {
    pthread_mutex_lock(&exchange->mutex);
    kelp_grpc_reply *reply = exchange->arrived;
    kelp_grpc_request *released = exchange->released;
    bool overflow = exchange->queued_bytes > kelp_grpc_service_of(exchange)->max_queued_bytes;
    exchange->arrived = exchange->last_arrived = NULL;
    exchange->released = NULL;
    pthread_mutex_unlock(&exchange->mutex);
    while (reply != NULL) {
        kelp_grpc_reply *next = reply->next;
        take_reply(exchange, reply);
        reply = next;
    }
    while (released != NULL) {
        kelp_grpc_request *next = released->next_released;
        drop_reference(released);
        released = next;
    }
    release_ordered(exchange);
    if (overflow && is_stream(exchange))
        kelp_grpc_finish(
            exchange,
            KELP_ERROR(KELP_RESOURCE_EXHAUSTED,
                       "the client reads too slowly: more than %llu bytes of "
                       "responses are waiting",
                       (unsigned long long)kelp_grpc_service_of(exchange)->max_queued_bytes));
}

/* ---- callbacks of the server, on any thread ---- */

void kelp_grpc_post_pump(kelp_grpc_exchange *exchange) {
    KELP_ASSERT_HELD(&exchange->mutex);
    if (exchange->posted)
        return;
    exchange->posted = true;
    kelp_http_exchange_retain(&exchange->base);
    kelp_http_exchange_post(&exchange->base, kelp_grpc_pump);
}

/* Returns a reply that is not the final one; NULL if memory is exhausted. */
static kelp_grpc_reply *make_reply(kelp_grpc_exchange *exchange) {
    pthread_mutex_lock(&exchange->mutex);
    kelp_grpc_reply *reply = exchange->unused_replies;
    if (reply != NULL) {
        exchange->unused_replies = reply->next;
        exchange->unused_reply_count--;
    }
    pthread_mutex_unlock(&exchange->mutex);
    if (reply != NULL)
        return reply;
    kelp_status *status = KELP_NEW(exchange->base.allocator, kelp_grpc_reply, &reply);
    if (status != NULL) {
        kelp_status_free(status);
        return NULL;
    }
    kelp_grpc_reply_init(reply, exchange->base.allocator);
    return reply;
}

/* Returns the memory that a response uses until it is sent. */
static uint64_t queued_bytes_of(TRITONSERVER_InferenceResponse *response) {
    uint32_t count = 0;
    uint64_t sum = REPLY_BYTES;
    if (response == NULL)
        return sum;
    TRITONSERVER_Error *error = TRITONSERVER_InferenceResponseOutputCount(response, &count);
    for (uint32_t i = 0; error == NULL && i < count; i++) {
        const char *name;
        TRITONSERVER_DataType type;
        const int64_t *shape;
        uint64_t rank;
        const void *bytes;
        size_t size_bytes = 0;
        TRITONSERVER_MemoryType memory_type;
        int64_t memory_id;
        void *userp;
        error =
            TRITONSERVER_InferenceResponseOutput(response, i, &name, &type, &shape, &rank, &bytes,
                                                 &size_bytes, &memory_type, &memory_id, &userp);
        sum += size_bytes;
    }
    if (error != NULL) /* the encoding reports it */
        TRITONSERVER_ErrorDelete(error);
    return sum;
}

/* Receives a response. */
static void on_response(TRITONSERVER_InferenceResponse *response, const uint32_t flags,
                        void *userp) {
    kelp_grpc_request *request = userp;
    kelp_grpc_exchange *exchange = request->exchange;
    bool final = (flags & TRITONSERVER_RESPONSE_COMPLETE_FINAL) != 0;
    if (response == NULL && !final)
        return;
    bool submits = kelp_http_exchange_on_thread(&exchange->base) && exchange->submitting;
    kelp_grpc_reply *reply = final ? &request->final_reply : make_reply(exchange);
    if (reply == NULL) { /* the final reply reports it */
        kelp_status_free(kelp_v2_status(TRITONSERVER_InferenceResponseDelete(response)));
        atomic_store(&request->lost, true);
        return;
    }
    reply->request = request;
    reply->response = response;
    reply->final = final;
    reply->next = NULL;
    reply->queued_bytes = is_stream(exchange) ? queued_bytes_of(response) : 0;
    if (final)
        kelp_trace_stamp(request->trace, "INFER_RESPONSE_COMPLETE");
    pthread_mutex_lock(&exchange->mutex);
    if (exchange->arrived == NULL)
        exchange->arrived = reply;
    else
        exchange->last_arrived->next = reply;
    exchange->last_arrived = reply;
    exchange->queued_bytes += reply->queued_bytes;
    if (!submits)
        kelp_grpc_post_pump(exchange);
    pthread_mutex_unlock(&exchange->mutex);
}

static void on_release(TRITONSERVER_InferenceRequest *inference, const uint32_t flags,
                       void *userp) {
    (void)inference;
    kelp_grpc_request *request = userp;
    kelp_grpc_exchange *exchange = request->exchange;
    if ((flags & TRITONSERVER_REQUEST_RELEASE_ALL) == 0)
        return;
    pthread_mutex_lock(&exchange->mutex);
    request->released = true;
    if (request->final_handled) { /* the pump drops the reference */
        request->next_released = exchange->released;
        exchange->released = request;
        kelp_grpc_post_pump(exchange);
    }
    pthread_mutex_unlock(&exchange->mutex);
}

/* ---- the event-loop thread ---- */

void kelp_grpc_pump(kelp_http_exchange *base) {
    kelp_grpc_exchange *exchange = (kelp_grpc_exchange *)base;
    pthread_mutex_lock(&exchange->mutex);
    exchange->posted = false;
    bool cancelled = exchange->cancelled;
    bool unpacked = exchange->unpacked;
    exchange->unpacked = false;
    pthread_mutex_unlock(&exchange->mutex);
    kelp_grpc_take_arrived(exchange);
    if (unpacked)
        kelp_grpc_finish_unpack(exchange, cancelled);
    if (cancelled) {
        exchange->sending = false; /* on_sent does not follow */
        kelp_grpc_finish(exchange, KELP_ERROR(KELP_CANCELLED, "the client cancelled the call"));
    } else {
        if (unpacked) /* a second message of a unary call is an error */
            kelp_grpc_resume(exchange);
        if (exchange->method->infers)
            kelp_grpc_write(exchange);
        kelp_grpc_resume(exchange);
        if (unpacked)
            kelp_grpc_end_stream(exchange);
        kelp_grpc_stream_drain(exchange);
    }
    kelp_http_exchange_release(base); /* of kelp_grpc_post_pump */
}

/* ---- submitting ---- */

/* Checks that the method supports the model. */
static kelp_status *check_model(const kelp_grpc_exchange *exchange, kelp_grpc_request *request) {
    uint32_t flags = 0;
    void *detail = NULL;
    const kelp_grpc_infer_request *decoded = &request->decoded;
    KELP_TRY(kelp_v2_status(TRITONSERVER_ServerModelTransactionProperties(
        kelp_grpc_service_of(exchange)->core, decoded->model, decoded->version, &flags, &detail)));
    request->decoupled = (flags & TRITONSERVER_TXN_DECOUPLED) != 0;
    if (request->decoupled && !is_stream(exchange))
        return KELP_ERROR(KELP_UNIMPLEMENTED,
                          "ModelInfer RPC doesn't support models with decoupled transaction "
                          "policy: model '%s' needs ModelStreamInfer",
                          decoded->model);
    return NULL;
}

void kelp_grpc_begin_request(kelp_grpc_exchange *exchange, kelp_grpc_request *request) {
    const kelp_trace_origin origin = {.model = request->decoded.model,
                                      .parent = exchange->trace_parent,
                                      .grpc = true,
                                      .method = KELP_STR("POST"),
                                      .path = kelp_str_from(exchange->method->path),
                                      .http_version = 20,
                                      .start_ns = request->start_ns};
    request->trace = kelp_tracing_sample(kelp_grpc_service_of(exchange)->tracing, &origin);
    kelp_trace_stamp_at(request->trace, "GRPC_WAITREAD_START", request->start_ns);
    kelp_trace_stamp_at(request->trace, "GRPC_WAITREAD_END", exchange->used_ns);
    kelp_request_entry_set_model(&exchange->base.entry, request->decoded.model,
                                 request->decoded.version);
    kelp_request_entry_set_id(&exchange->base.entry, request->decoded.id);
}

static kelp_status *prepare(kelp_grpc_exchange *exchange, kelp_grpc_request *request) {
    TRITONSERVER_Server *core = kelp_grpc_service_of(exchange)->core;
    kelp_grpc_infer_request *decoded = &request->decoded;
    kelp_str message = kelp_grpc_message_of(request);
    KELP_TRY(kelp_grpc_scan_request(&request->arena, message, decoded));
    kelp_grpc_begin_request(exchange, request);
    KELP_TRY(check_model(exchange, request));
    KELP_TRY(kelp_v2_status(TRITONSERVER_InferenceRequestNew(&request->inference, core,
                                                             decoded->model, decoded->version)));
    /* Typed contents are converted; a request to a full queue is rejected before that. */
    if (decoded->raw.count == 0 && message.length >= LARGE_CONTENTS_BYTES)
        KELP_TRY(kelp_v2_status(KELP_InferenceRequestCheckQueue(request->inference)));
    KELP_TRY(kelp_grpc_fill_request(&request->arena, kelp_grpc_service_of(exchange)->shm, decoded,
                                    request->inference));
    for (size_t i = 0; i < exchange->forwarded_count; i++)
        KELP_TRY(kelp_v2_status(TRITONSERVER_InferenceRequestSetStringParameter(
            request->inference, exchange->forwarded[i].name, exchange->forwarded[i].value)));
    KELP_TRY(kelp_batches_prepare(exchange->base.thread, request->inference));
    KELP_TRY(kelp_v2_status(
        TRITONSERVER_InferenceRequestSetReleaseCallback(request->inference, on_release, request)));
    return kelp_v2_status(TRITONSERVER_InferenceRequestSetResponseCallback(
        request->inference, kelp_grpc_service_of(exchange)->response_allocator, request,
        on_response, request));
}

/* Submits a request. The reference is held before, because callbacks may come at once. */
static kelp_status *submit(kelp_grpc_exchange *exchange, kelp_grpc_request *request) {
    request->referenced = true;
    exchange->open_count++;
    kelp_http_exchange_retain(&exchange->base);
    exchange->submitting = true;
    const kelp_grpc_service *service = kelp_grpc_service_of(exchange);
    TRITONSERVER_InferenceTrace *trace = kelp_trace_submit(request->trace);
    TRITONSERVER_Error *error =
        TRITONSERVER_ServerInferAsync(service->core, request->inference, trace);
    exchange->submitting = false;
    if (error != NULL) { /* no callback is called */
        kelp_trace_take_back(request->trace, trace);
        request->referenced = false;
        exchange->open_count--;
        kelp_http_exchange_release(&exchange->base);
    }
    return kelp_v2_status(error);
}

void kelp_grpc_trace_failure(const kelp_grpc_request *request, const kelp_status *failure) {
    char text[MAX_TRACED_BYTES];
    (void)kelp_status_format(failure, text, sizeof text);
    kelp_trace_finish(request->trace, kelp_status_code(failure), text);
}

/* Sends the response of a request that was not submitted. */
static void fail_request(kelp_grpc_request *request, kelp_status *take_failure) {
    kelp_grpc_reply *reply = &request->final_reply;
    kelp_grpc_trace_failure(request, take_failure);
    request->decoupled = false; /* the failure has its place in the order of requests */
    reply->request = request;
    reply->final = true;
    reply->failure = take_failure;
    request->first_reply = request->last_reply = reply;
}

void kelp_grpc_infer(kelp_grpc_exchange *exchange, kelp_grpc_request *request) {
    link_request(request);
    exchange->used_ns = kelp_event_loop_now_ns(exchange->base.thread->loop);
    kelp_status *status = prepare(exchange, request);
    if (status == NULL)
        status = submit(exchange, request);
    if (status != NULL)
        fail_request(request, status);
    if (!request->decoupled)
        append_ordered(request);
    kelp_grpc_take_arrived(exchange);
    if (exchange->open_count > 0)
        kelp_batches_wait(exchange->base.thread);
}
