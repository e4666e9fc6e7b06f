/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Incoming messages. The memory of a message grows with its bytes, because its announced length
 * costs the client nothing. The first tensor in raw_input_contents is aligned.
 *
 * While a call cannot process messages, its bytes are held, and the client gets no credit for more.
 * The held bytes are at most the window that the transport grants to a stream.
 */
#include "base/assert.h"
#include "base/checked.h"
#include "frontends/grpc/exchange.h"
#include "frontends/http/thread.h"

/* A message gets memory for all of its bytes after so many have arrived. */
#define FIRST_BYTES ((size_t)256 * 1024)
/* Before that, it gets at most so many times the memory of the bytes that have arrived. */
#define GROWTH 8

kelp_str kelp_grpc_message_of(const kelp_grpc_request *request) {
    if (request->decompressed.length > 0)
        return (kelp_str){kelp_http_body_data(&request->decompressed),
                          request->decompressed.length};
    const char *data = kelp_http_body_data(&request->body);
    return (kelp_str){data != NULL ? data : "", request->body.length};
}

/* ---- slow messages ---- */

/* Returns the time at which the message must be complete: the limits are those of bodies. */
static uint64_t message_deadline_ns(const kelp_grpc_exchange *exchange) {
    const kelp_http_thread *thread = exchange->base.thread;
    uint64_t bytes = exchange->incoming != NULL ? exchange->incoming->body.length : 0;
    uint64_t end_ns = exchange->message_ns + thread->options->body_timeout_ns +
                      bytes / KELP_HTTP_BODY_BYTES_PER_S * KELP_HTTP_SECOND_NS;
    return KELP_MIN(end_ns, kelp_http_thread_stop_deadline_ns(thread, exchange->message_ns));
}

static void on_slow_message(kelp_event_loop_timer *timer) {
    kelp_grpc_exchange *exchange = timer->userp;
    kelp_event_loop *loop = exchange->base.thread->loop;
    uint64_t deadline_ns = message_deadline_ns(exchange);
    kelp_status *status = NULL;
    if (kelp_event_loop_now_ns(loop) < deadline_ns)
        status = kelp_event_loop_timer_set(loop, timer, deadline_ns);
    else if (exchange->base.thread->stopping)
        status = KELP_ERROR(KELP_UNAVAILABLE, KELP_HTTP_STOP_TEXT);
    else
        status = KELP_ERROR(KELP_DEADLINE_EXCEEDED, "the message arrives too slowly");
    if (status != NULL)
        kelp_grpc_finish(exchange, status);
}

kelp_status *kelp_grpc_expect_message(kelp_grpc_exchange *exchange) {
    kelp_event_loop *loop = exchange->base.thread->loop;
    exchange->message_timer.fn = on_slow_message;
    exchange->message_timer.userp = exchange;
    exchange->message_ns = kelp_event_loop_now_ns(loop);
    return kelp_event_loop_timer_set(loop, &exchange->message_timer, message_deadline_ns(exchange));
}

void kelp_grpc_on_drain(kelp_http_exchange *base) {
    kelp_grpc_exchange *exchange = (kelp_grpc_exchange *)base;
    kelp_status *status = NULL;
    if (exchange->finishing)
        return;
    if (exchange->message_timer.heap_index != 0)
        status = kelp_event_loop_timer_set(base->thread->loop, &exchange->message_timer,
                                           message_deadline_ns(exchange));
    else if (exchange->method->client_streams && !exchange->method->infers)
        status = KELP_ERROR(KELP_UNAVAILABLE, "the server is stopping");
    if (status != NULL)
        kelp_grpc_finish(exchange, status);
}

/* ---- complete messages ---- */

void kelp_grpc_deliver(kelp_grpc_exchange *exchange, kelp_grpc_request *request,
                       kelp_status *take_failure) {
    if (take_failure != NULL) {
        kelp_grpc_request_recycle(request);
        kelp_grpc_finish(exchange, take_failure);
        return;
    }
    exchange->has_message = true;
    if (!exchange->method->infers) {
        if (exchange->handled != NULL)
            kelp_grpc_request_recycle(exchange->handled);
        exchange->handled = request;
    }
    exchange->method->on_message(exchange, request);
}

/* Passes the complete message to the method, after its decompression. */
static void complete(kelp_grpc_exchange *exchange) {
    kelp_grpc_request *request = exchange->incoming;
    kelp_status *status = NULL;
    exchange->incoming = NULL;
    kelp_event_loop_timer_cancel(exchange->base.thread->loop, &exchange->message_timer);
    bool compressed = exchange->prefix[0] != 0;
    exchange->prefix_length = 0;
    if (exchange->has_message && !exchange->method->client_streams)
        status = KELP_ERROR(KELP_INTERNAL, "expected one message for '%s', found more",
                            exchange->method->path);
    if (status == NULL && compressed)
        kelp_grpc_unpack(exchange, request);
    else
        kelp_grpc_deliver(exchange, request, status);
}

/* ---- bytes ---- */

/* Checks a complete prefix, and begins the message. */
static kelp_status *begin(kelp_grpc_exchange *exchange) {
    const unsigned char *p = exchange->prefix;
    size_t length = (size_t)p[1] << 24 | (size_t)p[2] << 16 | (size_t)p[3] << 8 | p[4];
    uint64_t limit = kelp_grpc_service_of(exchange)->max_message_bytes;
    if (p[0] > 1)
        return KELP_ERROR(KELP_INTERNAL, "invalid message prefix: expected 0 or 1, found %u", p[0]);
    if (length > limit)
        return KELP_ERROR(KELP_RESOURCE_EXHAUSTED,
                          "Received message larger than max (%zu vs. %llu)", length,
                          (unsigned long long)limit);
    KELP_TRY(kelp_grpc_request_acquire(exchange, &exchange->incoming));
    exchange->incoming->start_ns = kelp_event_loop_now_ns(exchange->base.thread->loop);
    exchange->message_length = length;
    return NULL;
}

/* Places the message so that its first tensor is aligned. */
static void align(kelp_http_body *body, kelp_str first) {
    size_t offset = kelp_grpc_find_tensor(first.data, first.length);
    body->skew =
        (KELP_HTTP_BODY_ALIGNMENT - offset % KELP_HTTP_BODY_ALIGNMENT) % KELP_HTTP_BODY_ALIGNMENT;
}

/* Reserves memory for a message that is about to have `length` bytes. */
static bool reserve(kelp_http_body *body, size_t length, size_t message_length) {
    size_t needed = length;
    if (body->skew + length <= body->capacity)
        return true;
    if (length >= FIRST_BYTES)
        needed = message_length;
    else if (body->length > 0)
        needed = KELP_MIN(KELP_MAX(length, body->length * GROWTH), message_length);
    return kelp_http_body_reserve(body, needed);
}

/* Appends bytes to the message, at most up to its end. Returns the number of bytes. */
static kelp_status *append(kelp_grpc_exchange *exchange, kelp_str bytes, size_t *out_used) {
    kelp_http_body *body = &exchange->incoming->body;
    size_t n = KELP_MIN(bytes.length, exchange->message_length - body->length);
    *out_used = n;
    if (n == 0)
        return NULL;
    if (body->length == 0)
        align(body, (kelp_str){bytes.data, n});
    if (!reserve(body, body->length + n, exchange->message_length))
        return KELP_ERROR(KELP_RESOURCE_EXHAUSTED, "out of memory for a message of %zu bytes",
                          exchange->message_length);
    memcpy(kelp_http_body_data(body) + body->length, bytes.data, n);
    body->length += n;
    return NULL;
}

/* Returns true if the call can process another message. */
static bool accepts(kelp_grpc_exchange *exchange) {
    if (exchange->unpacking != NULL)
        return false;
    if (!exchange->method->client_streams)
        return true;
    return exchange->method->infers ? kelp_grpc_can_infer(exchange) : !exchange->sending;
}

/* Processes bytes until the call accepts no more messages. Returns the number of bytes. */
static size_t feed(kelp_grpc_exchange *exchange, kelp_str bytes) {
    size_t at = 0, used;
    kelp_status *status = NULL;
    while (at < bytes.length && status == NULL && !exchange->finishing) {
        if (exchange->prefix_length < KELP_GRPC_PREFIX_BYTES) {
            if (exchange->prefix_length == 0 && !accepts(exchange))
                return at;
            exchange->prefix[exchange->prefix_length++] = (unsigned char)bytes.data[at++];
            if (exchange->prefix_length < KELP_GRPC_PREFIX_BYTES)
                continue;
            status = begin(exchange);
        }
        if (status == NULL)
            status = append(exchange, (kelp_str){bytes.data + at, bytes.length - at}, &used);
        if (status != NULL)
            break;
        at += used;
        if (exchange->incoming->body.length == exchange->message_length)
            complete(exchange);
    }
    if (status == NULL && exchange->prefix_length > 0 && !exchange->finishing &&
        exchange->message_timer.heap_index == 0)
        status = kelp_grpc_expect_message(exchange);
    if (status != NULL)
        kelp_grpc_finish(exchange, status);
    return exchange->finishing ? bytes.length : at;
}

void kelp_grpc_end_stream(kelp_grpc_exchange *exchange) {
    if (!exchange->ended || exchange->held.length > 0 || exchange->finishing || exchange->sending ||
        exchange->unpacking != NULL)
        return;
    if (exchange->prefix_length > 0)
        kelp_grpc_finish(exchange,
                         KELP_ERROR(KELP_INTERNAL, "the call ended in the middle of a message"));
    else if (!exchange->has_message && !exchange->method->client_streams)
        kelp_grpc_finish(exchange,
                         KELP_ERROR(KELP_INTERNAL, "expected one message for '%s', found none",
                                    exchange->method->path));
    else if (exchange->method->infers)
        kelp_grpc_write(exchange);
    else if (exchange->method->client_streams)
        kelp_grpc_finish(exchange, NULL);
}

/* Processes bytes. Returns the number of bytes. */
static size_t process(kelp_grpc_exchange *exchange, kelp_str bytes) {
    exchange->feeding = true;
    size_t used = feed(exchange, bytes);
    exchange->feeding = false;
    if (exchange->method->infers)
        kelp_grpc_write(exchange);
    return used;
}

/* Returns the bytes that wait. */
static kelp_str held_bytes(const kelp_grpc_exchange *exchange) {
    return (kelp_str){exchange->held.data + exchange->held_at,
                      exchange->held.length - exchange->held_at};
}

static void hold(kelp_grpc_exchange *exchange, kelp_str bytes) {
    kelp_buf_append(&exchange->held, bytes.data, bytes.length);
    if (exchange->held.failed)
        kelp_grpc_finish(exchange, kelp_status_oom());
}

void kelp_grpc_on_body(kelp_http_exchange *base, kelp_str bytes, bool last) {
    kelp_grpc_exchange *exchange = (kelp_grpc_exchange *)base;
    size_t used = bytes.length;
    exchange->ended = exchange->ended || last;
    kelp_http_exchange_retain(base); /* the call may end */
    if (exchange->finishing) {
        kelp_http_exchange_consume(base, bytes.length);
    } else if (exchange->held.length > 0) {
        hold(exchange, bytes);
    } else {
        used = process(exchange, bytes);
        if (used < bytes.length)
            hold(exchange, (kelp_str){bytes.data + used, bytes.length - used});
        kelp_http_exchange_consume(base, used);
    }
    kelp_grpc_end_stream(exchange);
    kelp_http_exchange_release(base);
}

void kelp_grpc_resume(kelp_grpc_exchange *exchange) {
    if (exchange->held.length == 0 || exchange->feeding || exchange->finishing ||
        !accepts(exchange))
        return;
    size_t used = process(exchange, held_bytes(exchange));
    exchange->held_at += used;
    if (exchange->held_at == exchange->held.length) {
        kelp_buf_clear(&exchange->held);
        exchange->held_at = 0;
    } else if (exchange->held_at > exchange->held.length / 2) { /* at most one move per byte */
        kelp_str rest = held_bytes(exchange);
        memmove(exchange->held.data, rest.data, rest.length);
        exchange->held.length = rest.length;
        exchange->held_at = 0;
    }
    kelp_http_exchange_consume(&exchange->base, used);
    kelp_grpc_end_stream(exchange);
}
