/* SPDX-License-Identifier: Apache-2.0 */
/* Requests of HTTP/2 streams. */
#include "base/alloc.h"
#include "base/assert.h"
#include "base/checked.h"
#include "frontends/h2/internal.h"
#include "frontends/http/client.h"

#include <stdio.h>

#define KEEP_STREAMS 256
#define KEEP_HEADERS 32
#define KEEP_BODY_BYTES ((size_t)64 * 1024)
#define MAX_HEADERS 128
#define MAX_HEAD_BYTES ((size_t)64 * 1024)
#define HEADER_OVERHEAD_BYTES 32 /* RFC 9113, 6.5.2 */
#define MAX_BODY_BYTES ((uint64_t)64 * 1024 * 1024)
#define BODY_STEP_BYTES ((size_t)1024 * 1024)
#define MAX_MESSAGE 256

/* ---- creation ---- */

kelp_http2_stream *kelp_http2_stream_acquire(kelp_http2_connection *c, int32_t id) {
    kelp_http2_thread *shared = c->shared;
    kelp_http2_stream *s = shared->streams;
    if (s != NULL) {
        shared->streams = s->next;
        shared->stream_count--;
    } else {
        kelp_status *status = KELP_NEW(shared->allocator, kelp_http2_stream, &s);
        if (status != NULL) {
            kelp_status_free(status);
            return NULL;
        }
        kelp_http_body_init(&s->body, shared->allocator);
        s->body.budget = c->base.thread->budget;
        s->base.send = kelp_http2_stream_send;
        s->base.consume = kelp_http2_stream_consume;
    }
    s->connection = c;
    s->id = id;
    s->start_ns = s->progress_ns = kelp_event_loop_now_ns(c->base.thread->loop);
    s->previous = NULL;
    s->next = c->streams;
    if (s->next != NULL)
        s->next->previous = s;
    c->streams = s;
    c->stream_count++;
    return s;
}

void kelp_http2_stream_destroy(kelp_http2_stream *s, kelp_allocator allocator) {
    kelp_http_body_deinit(&s->body);
    kelp_free(allocator, s->headers, s->header_capacity * sizeof *s->headers);
    kelp_free(allocator, s->texts, s->text_capacity * sizeof *s->texts);
    kelp_free(allocator, s, sizeof *s);
}

/* Frees the text of the head. */
static void release_head(kelp_http2_stream *s) {
    for (size_t i = 0; i < s->text_count; i++)
        nghttp2_rcbuf_decref(s->texts[i]);
    s->text_count = 0;
    s->request = (kelp_http_request){0};
}

void kelp_http2_stream_recycle(kelp_http2_stream *s) {
    kelp_http2_connection *c = s->connection;
    kelp_http2_thread *shared = c->shared;
    if (!s->closed || s->exchange != NULL || s->queued > 0)
        return;
    if (s->previous != NULL)
        s->previous->next = s->next;
    else
        c->streams = s->next;
    if (s->next != NULL)
        s->next->previous = s->previous;
    c->stream_count--;
    release_head(s);
    if (shared->stream_count >= KEEP_STREAMS || s->header_capacity > KEEP_HEADERS) {
        kelp_http2_stream_destroy(s, shared->allocator);
        return;
    }
    kelp_http_body_clear(&s->body, KEEP_BODY_BYTES);
    *s = (kelp_http2_stream){.base = s->base,
                             .next = shared->streams,
                             .headers = s->headers,
                             .header_capacity = s->header_capacity,
                             .texts = s->texts,
                             .text_capacity = s->text_capacity,
                             .body = s->body};
    shared->streams = s;
    shared->stream_count++;
}

/* ---- the head ---- */

static void fail(kelp_http2_stream *s, kelp_http_status status, const char *text) {
    if (s->error_status != 0)
        return;
    s->error_status = status;
    s->error_text = text;
}

/* Retains a text until the head is released. */
static bool keep_text(kelp_http2_stream *s, nghttp2_rcbuf *text) {
    kelp_status *status = kelp_grow(s->connection->shared->allocator, (void **)&s->texts,
                                    &s->text_capacity, s->text_count + 1, sizeof(*s->texts));
    if (status != NULL) {
        kelp_status_free(status);
        fail(s, KELP_HTTP_SERVICE_UNAVAILABLE, "out of memory");
        return false;
    }
    nghttp2_rcbuf_incref(text);
    s->texts[s->text_count++] = text;
    return true;
}

static kelp_str str_of(nghttp2_rcbuf *text) {
    nghttp2_vec bytes = nghttp2_rcbuf_get_buf(text);
    return (kelp_str){(const char *)bytes.base, bytes.len};
}

static void set_path(kelp_http_request *request, kelp_str target) {
    const char *question = memchr(target.data, '?', target.length);
    request->path = target;
    if (question == NULL)
        return;
    request->path.length = (size_t)(question - target.data);
    request->query = (kelp_str){question + 1, target.length - request->path.length - 1};
}

static void append_header(kelp_http2_stream *s, kelp_str name, kelp_str value) {
    kelp_http_request *request = &s->request;
    kelp_status *status =
        kelp_grow(s->connection->shared->allocator, (void **)&s->headers, &s->header_capacity,
                  request->header_count + 1, sizeof(*s->headers));
    if (status != NULL) {
        kelp_status_free(status);
        fail(s, KELP_HTTP_SERVICE_UNAVAILABLE, "out of memory");
        return;
    }
    s->headers[request->header_count++] = (kelp_http_header){name, value};
    request->headers = s->headers;
}

/* Reads the headers that concern the body. nghttp2 has checked their syntax, and that names have no
 * capital letters. */
static void read_framing(kelp_http2_stream *s, kelp_str name, kelp_str value) {
    if (kelp_str_equal(name, KELP_STR("content-length")))
        s->has_content_length = kelp_parse_u64(value, &s->content_length);
    else if (kelp_str_equal(name, KELP_STR("expect")))
        s->expects_continue = kelp_http_has_token(value, "100-continue");
}

void kelp_http2_stream_add_header(kelp_http2_stream *s, nghttp2_rcbuf *name, nghttp2_rcbuf *value) {
    kelp_str n = str_of(name), v = str_of(value);
    s->head_bytes += n.length + v.length + HEADER_OVERHEAD_BYTES;
    if (s->head_bytes > MAX_HEAD_BYTES)
        fail(s, KELP_HTTP_HEADERS_TOO_LARGE, "the request head is too large");
    else if (s->request.header_count >= MAX_HEADERS)
        fail(s, KELP_HTTP_HEADERS_TOO_LARGE, "the request has too many headers");
    if (s->error_status != 0 || !keep_text(s, value))
        return;
    if (n.length == 0 || n.data[0] != ':') {
        if (keep_text(s, name))
            append_header(s, n, v);
        read_framing(s, n, v);
    } else if (kelp_str_is(n, ":method")) {
        s->request.method = v;
    } else if (kelp_str_is(n, ":path")) {
        set_path(&s->request, v);
    } else if (kelp_str_is(n, ":authority")) {
        append_header(s, KELP_STR("host"), v);
    }
}

/* ---- exchanges ---- */

/* Creates the exchange of a request, which was admitted or is rejected. */
static bool begin_exchange(kelp_http2_stream *s, bool admitted) {
    KELP_ASSERT(!s->exchange && !s->started);
    kelp_http2_connection *c = s->connection;
    kelp_http_thread *thread = c->base.thread;
    if (s->handler == NULL) /* the head is invalid */
        s->handler = thread->handlers[thread->handler_count - 1];
    kelp_http_exchange *exchange;
    kelp_status *status = kelp_http_exchange_acquire(thread, s->handler, &exchange);
    s->started = true;
    if (status != NULL) {
        kelp_status_free(status);
        if (admitted)
            kelp_http_client_end_request(c->base.client);
        if (nghttp2_submit_rst_stream(c->session, NGHTTP2_FLAG_NONE, s->id,
                                      NGHTTP2_INTERNAL_ERROR) != 0)
            c->failed = true;
        return false;
    }
    c->begun++;
    exchange->client = admitted ? c->base.client : NULL;
    exchange->stream = &s->base;
    exchange->request = &s->request;
    exchange->start_ns = s->start_ns;
    s->exchange = exchange;
    s->bodyless = kelp_str_is(s->request.method, "HEAD");
    kelp_http_exchange_begin_entry(exchange, &c->base.peer);
    return true;
}

/* Responds to an invalid request. */
static void reject(kelp_http2_stream *s) {
    char message[MAX_MESSAGE];
    const char *text = s->error_text;
    if (s->started)
        return;
    if (s->error_status == KELP_HTTP_CONTENT_TOO_LARGE) {
        snprintf(message, sizeof message, "the request body is larger than the limit of %llu bytes",
                 (unsigned long long)s->max_body_bytes);
        text = message;
    }
    kelp_http_body_clear(&s->body, KEEP_BODY_BYTES);
    if (!begin_exchange(s, false))
        return;
    s->exchange->handler->on_error(s->exchange, s->error_status, text);
    kelp_http_exchange_send(s->exchange);
}

void kelp_http2_stream_reject(kelp_http2_stream *s, kelp_http_status status, const char *text) {
    fail(s, status, text);
    reject(s);
}

static void start_request(kelp_http2_stream *s) {
    kelp_http_status error_status = KELP_HTTP_OK;
    const char *error_text;
    if (!kelp_http_connection_admit(&s->connection->base, &error_status, &error_text)) {
        fail(s, error_status, error_text);
        reject(s);
        return;
    }
    if (!begin_exchange(s, true))
        return;
    kelp_http_exchange *exchange = s->exchange;
    /* The exchange takes the body, because it may outlive the stream. */
    kelp_http_body body = exchange->body;
    exchange->body = s->body;
    s->body = body;
    exchange->handler->on_request(exchange);
    release_head(s); /* the stream exists until nghttp2 has returned */
}

static void send_continue(kelp_http2_stream *s) {
    static uint8_t name[] = ":status", value[] = "100";
    kelp_http2_connection *c = s->connection;
    nghttp2_nv nv = {name, value, sizeof name - 1, sizeof value - 1, NGHTTP2_NV_FLAG_NONE};
    if (nghttp2_submit_headers(c->session, NGHTTP2_FLAG_NONE, s->id, NULL, &nv, 1, NULL) < 0)
        c->failed = true;
}

void kelp_http2_stream_on_head(kelp_http2_stream *s) {
    kelp_http_thread *thread = s->connection->base.thread;
    kelp_http_request *request = &s->request;
    request->version = 20;
    request->services = s->connection->base.services;
    if (s->error_status == 0 && request->path.length == 0)
        fail(s, KELP_HTTP_BAD_REQUEST, "the request has no path");
    if (s->error_status != 0) {
        reject(s);
        return;
    }
    s->handler = kelp_http_thread_handler(thread, request);
    if (s->handler->keepalive != NULL && s->connection->keepalive.policy == NULL)
        kelp_http2_keepalive_start(&s->connection->keepalive, s->handler->keepalive, s->start_ns);
    kelp_http_body_rules rules = {.max_bytes = MAX_BODY_BYTES};
    s->handler->on_head(s->handler, request, &rules);
    s->max_body_bytes = rules.max_bytes;
    s->streamed = rules.streamed;
    s->body.skew = (KELP_HTTP_BODY_ALIGNMENT - rules.aligned_offset % KELP_HTTP_BODY_ALIGNMENT) %
                   KELP_HTTP_BODY_ALIGNMENT;
    if (s->has_content_length && s->content_length > s->max_body_bytes)
        fail(s, KELP_HTTP_CONTENT_TOO_LARGE, NULL);
    if (s->error_status != 0) {
        reject(s);
        return;
    }
    if (s->expects_continue)
        send_continue(s);
    if (s->streamed)
        start_request(s);
}

/* ---- the body ---- */

uint64_t kelp_http2_stream_body_deadline(const kelp_http2_stream *s) {
    const kelp_http_server_options *options = s->connection->base.thread->options;
    uint64_t seconds = s->body.length / KELP_HTTP_BODY_BYTES_PER_S;
    return s->start_ns + options->body_timeout_ns + seconds * KELP_HTTP_SECOND_NS;
}

/* Returns true if the handler still wants bytes of a streamed body. */
static bool wants_body(const kelp_http2_stream *s) {
    return s->exchange != NULL && !(s->responding && s->last_part);
}

/* Reserves memory for more bytes of the body. A client must send a part of a body before it gets
 * memory for all of it, since the announced size costs the client nothing. */
static bool reserve_body(kelp_http2_stream *s, size_t length) {
    kelp_http_body *body = &s->body;
    size_t needed, with_skew; /* the recycled memory may be smaller than the skew */
    if (!kelp_size_add(body->length, length, &needed) ||
        !kelp_size_add(needed, body->skew, &with_skew))
        return false;
    if (with_skew <= body->capacity)
        return true;
    if (s->has_content_length && body->length >= KEEP_BODY_BYTES / 2)
        needed = KELP_MAX(needed, (size_t)s->content_length);
    else if (body->length > 0)
        needed = KELP_MAX(needed, body->length + KELP_MIN(KELP_MAX(body->length, KEEP_BODY_BYTES),
                                                          64 * BODY_STEP_BYTES));
    return kelp_http_body_reserve(body, needed);
}

static void collect(kelp_http2_stream *s, const char *data, size_t length) {
    if (s->started) /* it was rejected */
        return;
    if (length > s->max_body_bytes || s->body.length > s->max_body_bytes - length)
        fail(s, KELP_HTTP_CONTENT_TOO_LARGE, NULL);
    else if (!reserve_body(s, length))
        fail(s, KELP_HTTP_SERVICE_UNAVAILABLE, "out of memory for the request body");
    if (s->error_status != 0) {
        reject(s);
        return;
    }
    KELP_ASSERT(s->body.skew + s->body.length + length <= s->body.capacity);
    memcpy(s->body.base + s->body.skew + s->body.length, data, length);
    s->body.length += length;
}

void kelp_http2_stream_on_data(kelp_http2_stream *s, const char *data, size_t length) {
    kelp_http2_connection *c = s->connection;
    s->progress_ns = kelp_event_loop_now_ns(c->base.thread->loop);
    if (s->streamed && wants_body(s)) {
        s->unconsumed_bytes += length;
        s->exchange->entry.received_bytes += length;
        s->exchange->handler->on_body(s->exchange, (kelp_str){data, length}, false);
        return;
    }
    if (!s->streamed)
        collect(s, data, length);
    if (nghttp2_session_consume(c->session, s->id, length) != 0)
        c->failed = true;
}

void kelp_http2_stream_on_end(kelp_http2_stream *s) {
    s->received = true;
    if (!s->started)
        start_request(s);
    else if (s->streamed && wants_body(s))
        s->exchange->handler->on_body(s->exchange, (kelp_str){0}, true);
}

/* ---- the end ---- */

void kelp_http2_stream_on_close(kelp_http2_stream *s) {
    kelp_http2_connection *c = s->connection;
    KELP_ASSERT(!s->closed);
    s->closed = true;
    if (s->unconsumed_bytes > 0 && !c->closed &&
        nghttp2_session_consume_connection(c->session, s->unconsumed_bytes) != 0)
        c->failed = true;
    s->unconsumed_bytes = 0;
    kelp_http_exchange *exchange = s->exchange;
    if (exchange != NULL && !s->finished) {
        kelp_http2_output *output = c->generating ? &c->shared->output : &c->output;
        if (s->queued > 0 && !kelp_http2_output_detach(output, s))
            c->failed = true;
        s->exchange = NULL;
        exchange->stream = NULL;
        if (s->responding && s->last_part)
            kelp_http_exchange_release(exchange);
        else
            exchange->handler->on_cancel(exchange);
    }
    kelp_http2_stream_recycle(s);
}
