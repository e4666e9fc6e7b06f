/* SPDX-License-Identifier: Apache-2.0 */
#include "frontends/grpc/service.h"

#include "base/alloc.h"
#include "base/assert.h"
#include "base/clock.h"
#include "frontends/grpc/exchange.h"
#include "frontends/http/thread.h"
#include "frontends/common/log.h"
#include "frontends/common/services.h"
#include "frontends/common/status.h"

#define DEFAULT_MAX_QUEUED_BYTES (UINT64_C(256) << 20)
#define DEFAULT_MAX_STREAM_REQUESTS 1024
#define UNPACK_THREADS 4
#define KEEP_HELD_BYTES ((size_t)64 * 1024)

#define CONTENT_TYPE "application/grpc"

/* ---- exchanges ---- */

static void on_init(kelp_http_exchange *base) {
    kelp_grpc_exchange *exchange = (kelp_grpc_exchange *)base;
    kelp_buf_init(&exchange->held, base->allocator);
    kelp_buf_init(&exchange->status_text, base->allocator);
    kelp_arena_init(&exchange->metadata, base->allocator, 0);
    pthread_mutex_init(&exchange->mutex, NULL);
}

/* Frees the pooled requests and replies, except for `keep` requests. */
static void free_pools(kelp_grpc_exchange *exchange, size_t keep) {
    while (exchange->unused_count > keep) {
        kelp_grpc_request *request = exchange->unused;
        exchange->unused = request->next;
        exchange->unused_count--;
        kelp_grpc_request_destroy(request);
    }
    while (exchange->unused_replies != NULL) {
        kelp_grpc_reply *reply = exchange->unused_replies;
        exchange->unused_replies = reply->next;
        kelp_grpc_reply_deinit(reply);
        kelp_free(exchange->base.allocator, reply, sizeof *reply);
    }
    exchange->unused_reply_count = 0;
}

static void on_deinit(kelp_http_exchange *base) {
    kelp_grpc_exchange *exchange = (kelp_grpc_exchange *)base;
    free_pools(exchange, 0);
    kelp_buf_deinit(&exchange->held);
    kelp_buf_deinit(&exchange->status_text);
    kelp_arena_deinit(&exchange->metadata);
    pthread_mutex_destroy(&exchange->mutex);
}

/* Recycles all requests, which the server does not use any more. */
static void clear_requests(kelp_grpc_exchange *exchange) {
    kelp_grpc_free_written(exchange);
    KELP_ASSERT(exchange->active == NULL && exchange->arrived == NULL);
    KELP_ASSERT(exchange->writable == NULL && exchange->ordered == NULL);
    if (exchange->incoming != NULL)
        kelp_grpc_request_recycle(exchange->incoming);
    if (exchange->handled != NULL)
        kelp_grpc_request_recycle(exchange->handled);
    exchange->incoming = exchange->handled = NULL;
    free_pools(exchange, 1);
}

static void on_clear(kelp_http_exchange *base) {
    kelp_grpc_exchange *exchange = (kelp_grpc_exchange *)base;
    clear_requests(exchange);
    if (exchange->held.capacity > KEEP_HELD_BYTES)
        kelp_buf_deinit(&exchange->held);
    kelp_buf_clear(&exchange->held);
    kelp_buf_clear(&exchange->status_text);
    kelp_arena_clear(&exchange->metadata);
    exchange->forwarded = NULL;
    exchange->trace_parent = (kelp_trace_context){0};
    exchange->forwarded_count = 0;
    exchange->held_at = exchange->prefix_length = 0;
    exchange->method = NULL;
    exchange->request_coding = exchange->response_coding = KELP_HTTP_IDENTITY;
    exchange->fails_stream = exchange->has_message = exchange->ended = false;
    exchange->started = exchange->sending = exchange->has_sent = false;
    exchange->finishing = exchange->finished = exchange->cancelled = false;
    exchange->watched = 0;
    KELP_ASSERT(!exchange->listed && exchange->unpacking == NULL && !exchange->unpacked);
    KELP_ASSERT(!exchange->blocking && !exchange->posted && exchange->open_count == 0);
}

/* ---- requests ---- */

static bool accepts(const kelp_http_handler *handler, const kelp_http_request *request) {
    (void)handler;
    const kelp_str *type = kelp_http_find(request, "content-type");
    return request->version == 20 && (request->services & KELP_SERVICE_GRPC) != 0 && type != NULL &&
           kelp_str_starts(*type, KELP_STR(CONTENT_TYPE));
}

static void on_head(kelp_http_handler *handler, const kelp_http_request *request,
                    kelp_http_body_rules *inout_rules) {
    (void)handler, (void)request;
    inout_rules->streamed = true;
    inout_rules->max_bytes = UINT64_MAX; /* each message has a limit */
}

static void on_deadline(kelp_event_loop_timer *timer) {
    kelp_grpc_finish(timer->userp, KELP_ERROR(KELP_DEADLINE_EXCEEDED, "Deadline Exceeded"));
}

static kelp_status *check_content_type(const kelp_http_request *request) {
    kelp_str type = *kelp_http_find(request, "content-type");
    kelp_str rest = {type.data + strlen(CONTENT_TYPE), type.length - (strlen(CONTENT_TYPE))};
    if (rest.length == 0 || rest.data[0] == ';' || kelp_str_is(rest, "+proto") ||
        kelp_str_starts(rest, KELP_STR("+proto;")))
        return NULL;
    return KELP_ERROR(KELP_UNIMPLEMENTED,
                      "unsupported content-type '%.*s': expected application/grpc or "
                      "application/grpc+proto",
                      KELP_STR_ARG(type));
}

/* Reads the codings of the call's messages. */
static kelp_status *read_codings(kelp_grpc_exchange *exchange, const kelp_http_request *request) {
    const kelp_str *encoding = kelp_http_find(request, "grpc-encoding");
    const kelp_str *accepted = kelp_http_find(request, "grpc-accept-encoding");
    if (encoding != NULL)
        exchange->request_coding = kelp_http_coding_of(*encoding);
    if (exchange->request_coding == KELP_HTTP_CODING_UNKNOWN)
        return KELP_ERROR(KELP_UNIMPLEMENTED,
                          "unsupported grpc-encoding '%.*s': expected identity, deflate or gzip",
                          KELP_STR_ARG(*encoding));
    if (accepted != NULL && kelp_grpc_service_of(exchange)->compresses)
        exchange->response_coding = kelp_http_coding_accepted(*accepted);
    return NULL;
}

static kelp_status *set_deadline(kelp_grpc_exchange *exchange, const kelp_http_request *request) {
    const kelp_str *timeout = kelp_http_find(request, "grpc-timeout");
    uint64_t timeout_ns;
    if (timeout == NULL)
        return NULL;
    if (!kelp_grpc_parse_timeout(*timeout, &timeout_ns))
        return KELP_ERROR(KELP_INTERNAL,
                          "invalid grpc-timeout '%.*s': expected at most 8 digits and one of "
                          "H, M, S, m, u, n",
                          KELP_STR_ARG(*timeout));
    uint64_t now_ns = kelp_now_ns(), deadline_ns;
    if (__builtin_add_overflow(now_ns, timeout_ns, &deadline_ns))
        return NULL;
    exchange->deadline_timer.fn = on_deadline;
    exchange->deadline_timer.userp = exchange;
    return kelp_event_loop_timer_set(exchange->base.thread->loop, &exchange->deadline_timer,
                                     deadline_ns);
}

/* Copies the metadata that models receive. */
static kelp_status *forward_metadata(kelp_grpc_exchange *exchange,
                                     const kelp_http_request *request) {
    const kelp_forward *forward = kelp_grpc_service_of(exchange)->forward;
    if (forward == NULL || !exchange->method->infers)
        return NULL;
    exchange->forwarded =
        KELP_ARENA_ARRAY(&exchange->metadata, request->header_count, kelp_grpc_metadata);
    if (exchange->forwarded == NULL)
        return kelp_status_oom();
    for (size_t i = 0; i < request->header_count; i++) {
        kelp_grpc_metadata *found = &exchange->forwarded[exchange->forwarded_count];
        KELP_TRY(kelp_forward_header(forward, &exchange->metadata, request->headers[i].name,
                                     request->headers[i].value, &found->name, &found->value));
        exchange->forwarded_count += found->name != NULL ? 1 : 0;
    }
    return NULL;
}

static kelp_status *begin_call(kelp_grpc_exchange *exchange, const kelp_http_request *request) {
    const kelp_str *fails = kelp_http_find(request, "triton_grpc_error");
    exchange->fails_stream = fails != NULL && kelp_str_is(*fails, "true");
    KELP_TRY(check_content_type(request));
    exchange->method = kelp_grpc_find_method(request->path);
    if (exchange->method == NULL || !kelp_str_is(request->method, "POST"))
        return KELP_ERROR(KELP_UNIMPLEMENTED, "unknown method '%.*s'", KELP_STR_ARG(request->path));
    KELP_TRY(kelp_grpc_permit(kelp_grpc_service_of(exchange), request));
    KELP_TRY(read_codings(exchange, request));
    KELP_TRY(forward_metadata(exchange, request));
    if (exchange->method->infers)
        kelp_tracing_read_parent(kelp_grpc_service_of(exchange)->tracing, request,
                                 &exchange->metadata, &exchange->trace_parent);
    if (!exchange->method->client_streams)
        KELP_TRY(kelp_grpc_expect_message(exchange));
    else if (exchange->method->infers)
        kelp_grpc_stream_open(exchange);
    return set_deadline(exchange, request);
}

static void on_request(kelp_http_exchange *base) {
    kelp_grpc_exchange *exchange = (kelp_grpc_exchange *)base;
    kelp_log_request("gRPC", base->request);
    kelp_status *status = begin_call(exchange, base->request);
    if (status != NULL)
        kelp_grpc_finish(exchange, status);
}

/* Returns the code for a failure of the transport. */
static kelp_code code_of(kelp_http_status status) {
    switch (status) {
    case KELP_HTTP_CONTENT_TOO_LARGE:
    case KELP_HTTP_TOO_MANY_REQUESTS:
    case KELP_HTTP_HEADERS_TOO_LARGE:
        return KELP_RESOURCE_EXHAUSTED;
    case KELP_HTTP_REQUEST_TIMEOUT:
    case KELP_HTTP_SERVICE_UNAVAILABLE:
        return KELP_UNAVAILABLE;
    default:
        return KELP_INTERNAL;
    }
}

static void on_error(kelp_http_exchange *base, kelp_http_status status, const char *text) {
    kelp_grpc_fill_error((kelp_grpc_exchange *)base, KELP_ERROR(code_of(status), "%s", text));
}

static void on_sent(kelp_http_exchange *base) {
    kelp_grpc_exchange *exchange = (kelp_grpc_exchange *)base;
    kelp_http_exchange_retain(base); /* the call may end */
    exchange->sending = false;
    kelp_grpc_free_written(exchange);
    if (exchange->finishing) {
        kelp_grpc_send_status(exchange);
    } else {
        if (exchange->method->infers)
            kelp_grpc_write(exchange);
        kelp_grpc_resume(exchange);
        kelp_grpc_end_stream(exchange);
    }
    kelp_http_exchange_release(base);
}

static void on_cancel(kelp_http_exchange *base) {
    kelp_grpc_exchange *exchange = (kelp_grpc_exchange *)base;
    if (exchange->finished || exchange->blocking)
        return;
    pthread_mutex_lock(&exchange->mutex);
    exchange->cancelled = true;
    kelp_grpc_post_pump(exchange);
    pthread_mutex_unlock(&exchange->mutex);
}

/* ---- the handler ---- */

static void on_destroy(kelp_http_handler *handler) {
    kelp_grpc_service *service = (kelp_grpc_service *)handler;
    kelp_workers_wait(service->loaders); /* the work uses the service */
    kelp_workers_destroy(service->unpackers);
    pthread_mutex_destroy(&service->streams_mutex);
    if (service->response_allocator != NULL)
        kelp_status_free(
            kelp_v2_status(TRITONSERVER_ResponseAllocatorDelete(service->response_allocator)));
    kelp_free(service->allocator, service, sizeof *service);
}

static void set_options(kelp_grpc_service *service, const kelp_grpc_options *options) {
    service->access = options->access;
    service->keepalive =
        options->keepalive != NULL ? *options->keepalive : kelp_http_keepalive_default();
    service->max_message_bytes =
        options->max_message_bytes != 0 ? options->max_message_bytes : UINT32_MAX;
    service->max_queued_bytes =
        options->max_queued_bytes != 0 ? options->max_queued_bytes : DEFAULT_MAX_QUEUED_BYTES;
    service->max_requests = options->max_stream_requests != 0 ? options->max_stream_requests
                                                              : DEFAULT_MAX_STREAM_REQUESTS;
    service->compresses = options->compresses;
    service->forward = options->forward;
    service->shm = options->shm;
    service->logging = options->logging;
    service->tracing = options->tracing;
    service->loaders = options->loaders;
}

kelp_status *kelp_grpc_create(TRITONSERVER_Server *core, const kelp_grpc_options *options,
                              kelp_http_handler **out) {
    kelp_allocator allocator =
        options->allocator.realloc != NULL ? options->allocator : kelp_allocator_system();
    kelp_grpc_service *service;
    KELP_TRY(KELP_NEW(allocator, kelp_grpc_service, &service));
    service->allocator = allocator;
    service->core = core;
    atomic_init(&service->draining, false);
    pthread_mutex_init(&service->streams_mutex, NULL);
    set_options(service, options);
    service->handler = (kelp_http_handler){
        .exchange_bytes = sizeof(kelp_grpc_exchange),
        .protocol = "gRPC",
        .keepalive = &service->keepalive,
        .accepts = accepts,
        .init = on_init,
        .deinit = on_deinit,
        .clear = on_clear,
        .on_head = on_head,
        .on_request = on_request,
        .on_body = kelp_grpc_on_body,
        .on_error = on_error,
        .on_sent = on_sent,
        .on_cancel = on_cancel,
        .on_drain = kelp_grpc_on_drain,
        .destroy = on_destroy,
    };
    kelp_status *status = kelp_v2_status(TRITONSERVER_ResponseAllocatorNew(
        &service->response_allocator, kelp_grpc_allocate_output, kelp_grpc_release_output, NULL));
    if (status == NULL)
        status = kelp_workers_create(allocator, UNPACK_THREADS, &service->unpackers);
    if (status != NULL) {
        on_destroy(&service->handler);
        return status;
    }
    *out = &service->handler;
    return NULL;
}

void kelp_grpc_drain(kelp_http_handler *handler) {
    kelp_grpc_service *service = (kelp_grpc_service *)handler;
    atomic_store(&service->draining, true);
    kelp_grpc_streams_drain(service);
}
