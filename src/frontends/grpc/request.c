/* SPDX-License-Identifier: Apache-2.0 */
/* The memory of requests and replies, which an exchange keeps. */
#include "base/alloc.h"
#include "base/assert.h"
#include "frontends/grpc/exchange.h"
#include "frontends/http/thread.h"
#include "frontends/common/status.h"

/* The maximum number of unused requests that an exchange keeps. */
#define MAX_UNUSED 64

void kelp_grpc_reply_init(kelp_grpc_reply *reply, kelp_allocator allocator) {
    *reply = (kelp_grpc_reply){0};
    kelp_arena_init(&reply->arena, allocator, 0);
    kelp_grpc_message_init(&reply->message, allocator);
}

void kelp_grpc_reply_deinit(kelp_grpc_reply *reply) {
    kelp_grpc_reply_clear(reply);
    kelp_arena_deinit(&reply->arena);
    kelp_grpc_message_deinit(&reply->message);
}

/* Empties an arena. Frees its memory if it has more than an exchange should keep. */
static void trim_arena(kelp_arena *arena) {
    if (arena->total_bytes > KELP_HTTP_KEEP_BYTES) {
        kelp_allocator allocator = arena->allocator;
        kelp_arena_deinit(arena);
        kelp_arena_init(arena, allocator, 0);
    } else {
        kelp_arena_clear(arena);
    }
}

void kelp_grpc_reply_clear(kelp_grpc_reply *reply) {
    if (reply->response != NULL)
        kelp_status_free(kelp_v2_status(TRITONSERVER_InferenceResponseDelete(reply->response)));
    kelp_status_free(reply->failure);
    reply->response = NULL;
    reply->failure = NULL;
    reply->request = NULL;
    reply->next = NULL;
    reply->final = false;
    reply->queued_bytes = 0;
    trim_arena(&reply->arena);
    kelp_grpc_message_clear(&reply->message);
}

kelp_status *kelp_grpc_request_acquire(kelp_grpc_exchange *exchange, kelp_grpc_request **out) {
    kelp_grpc_request *request = exchange->unused;
    if (request != NULL) {
        exchange->unused = request->next;
        exchange->unused_count--;
        request->next = NULL;
        *out = request;
        return NULL;
    }
    kelp_allocator allocator = exchange->base.allocator;
    KELP_TRY(KELP_NEW(allocator, kelp_grpc_request, &request));
    request->exchange = exchange;
    kelp_http_body_init(&request->body, allocator);
    request->body.budget = exchange->base.thread->budget;
    kelp_http_body_init(&request->decompressed, allocator);
    request->decompressed.budget = exchange->base.thread->budget;
    kelp_arena_init(&request->arena, allocator, 0);
    kelp_arena_init(&request->outputs, allocator, 0);
    kelp_grpc_reply_init(&request->final_reply, allocator);
    *out = request;
    return NULL;
}

/* Deletes the server's request, and empties the rest. */
static void clear(kelp_grpc_request *request) {
    KELP_ASSERT(!request->referenced && request->first_reply == NULL);
    kelp_trace_stamp(request->trace, "GRPC_SEND_END");
    kelp_trace_record_release(request->trace);
    request->trace = NULL;
    kelp_grpc_reply_clear(&request->final_reply);
    if (request->inference != NULL)
        kelp_status_free(kelp_v2_status(TRITONSERVER_InferenceRequestDelete(request->inference)));
    request->inference = NULL;
    kelp_http_body_clear(&request->body, KELP_HTTP_KEEP_BYTES);
    kelp_http_body_clear(&request->decompressed, KELP_HTTP_KEEP_BYTES);
    kelp_shm_release_uses(&request->decoded.regions);
    trim_arena(&request->arena);
    trim_arena(&request->outputs);
    request->decoded = (kelp_grpc_infer_request){0};
    request->decoupled = request->answered = request->complete = false;
    request->released = request->final_handled = request->waits_for_release = false;
    atomic_store_explicit(&request->lost, false, memory_order_relaxed);
}

void kelp_grpc_request_recycle(kelp_grpc_request *request) {
    kelp_grpc_exchange *exchange = request->exchange;
    clear(request);
    if (exchange->unused_count == MAX_UNUSED) {
        kelp_grpc_request_destroy(request);
        return;
    }
    request->previous = NULL;
    request->next = exchange->unused;
    exchange->unused = request;
    exchange->unused_count++;
}

void kelp_grpc_request_destroy(kelp_grpc_request *request) {
    kelp_allocator allocator = request->exchange->base.allocator;
    clear(request);
    kelp_http_body_deinit(&request->body);
    kelp_http_body_deinit(&request->decompressed);
    kelp_arena_deinit(&request->arena);
    kelp_arena_deinit(&request->outputs);
    kelp_grpc_reply_deinit(&request->final_reply);
    kelp_free(allocator, request, sizeof *request);
}
