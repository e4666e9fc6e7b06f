/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/clock.h"
#include "frontends/echo_server.h"

#include <pthread.h>
#include <unistd.h>

#define ALIGNED_OFFSET 5
#define PARTS 4

/* ---- the protocol ---- */

typedef struct echo_exchange {
    kelp_http_exchange base; /* first */
    bool held;               /* by /hold, until it is cancelled */
    int parts;               /* sent by /parts */
    bool streams;            /* /stream, or /swallow */
    bool sending;            /* a part of /stream */
    bool ended;              /* the body of /stream */
    bool waits;              /* a thread or a posted task continues the response */
    bool cancelled;
    size_t received;  /* by /stream and /swallow */
    kelp_buf pending; /* received while a part was sent */
} echo_exchange;

echo_state echo;

static void on_init(kelp_http_exchange *exchange) {
    kelp_buf_init(&((echo_exchange *)exchange)->pending, exchange->allocator);
    echo.created++;
}

static void on_deinit(kelp_http_exchange *exchange) {
    kelp_buf_deinit(&((echo_exchange *)exchange)->pending);
    echo.destroyed++;
}

static void on_clear(kelp_http_exchange *exchange) {
    echo_exchange *x = (echo_exchange *)exchange;
    kelp_buf_clear(&x->pending);
    x->held = x->streams = x->sending = x->ended = x->waits = x->cancelled = false;
    x->parts = 0;
    x->received = 0;
    echo.cleared++;
}

static bool is_streamed(const kelp_http_request *request) {
    return kelp_str_is(request->path, "/stream") || kelp_str_is(request->path, "/swallow");
}

static void on_head(kelp_http_handler *handler, const kelp_http_request *request,
                    kelp_http_body_rules *inout_rules) {
    assert_ptr_equal(handler, &echo.base);
    assert_true(request->path.length > 0);
    assert_int_equal(request->version == 20, echo.http2);
    assert_int_equal(request->services, ECHO_SERVICES);
    inout_rules->max_bytes = echo.max_body_bytes;
    inout_rules->aligned_offset = kelp_str_is(request->path, "/first") ? 0 : ALIGNED_OFFSET;
    inout_rules->streamed = is_streamed(request);
}

static void fill(kelp_http_exchange *exchange) {
    kelp_http_exchange_respond(exchange, KELP_HTTP_OK);
    kelp_http_exchange_add_header(exchange, KELP_STR("Content-Type"), KELP_STR("text/plain"));
    kelp_buf_append_cstr(&exchange->text, "echo:");
    const char *body = kelp_http_body_data(&exchange->body);
    assert_null(kelp_http_exchange_add_piece(exchange, body, exchange->body.length));
}

static void fill_and_send(kelp_http_exchange *exchange) {
    assert_true(kelp_http_exchange_on_thread(exchange));
    fill(exchange);
    kelp_http_exchange_send(exchange);
}

static void *post_from_thread(void *userp) {
    kelp_http_exchange *exchange = userp;
    kelp_http_exchange_post(exchange, fill_and_send);
    kelp_http_exchange_release(exchange);
    return NULL;
}

/* Sends parts of a text and a piece, an empty part, and the last part. */
static void send_next(kelp_http_exchange *exchange) {
    echo_exchange *x = (echo_exchange *)exchange;
    x->waits = false;
    if (x->cancelled) {
        kelp_http_exchange_send(exchange);
        return;
    }
    assert_int_equal(exchange->text.length, 0);
    if (x->parts++ == PARTS) {
        kelp_buf_append_cstr(&exchange->text, "end");
        kelp_http_exchange_add_trailer(exchange, KELP_STR("Parts"), KELP_STR("4"));
        kelp_http_exchange_send(exchange);
        return;
    }
    if (x->parts != PARTS / 2) {
        kelp_buf_printf(&exchange->text, "%d:", x->parts);
        const char *body = kelp_http_body_data(&exchange->body);
        assert_null(kelp_http_exchange_add_piece(exchange, body, exchange->body.length));
    }
    kelp_http_exchange_send_part(exchange);
}

/* Sends back what has arrived, or ends the response. */
static void send_stream(kelp_http_exchange *exchange) {
    echo_exchange *x = (echo_exchange *)exchange;
    if (x->sending || (x->pending.length == 0 && !x->ended))
        return;
    kelp_buf_append(&exchange->text, x->pending.data, x->pending.length);
    kelp_http_exchange_consume(exchange, x->pending.length);
    kelp_buf_clear(&x->pending);
    x->sending = true;
    if (!x->ended) {
        kelp_http_exchange_send_part(exchange);
        return;
    }
    kelp_http_exchange_add_trailer(exchange, KELP_STR("Done"), KELP_STR("yes"));
    kelp_http_exchange_send(exchange);
}

static void on_sent(kelp_http_exchange *exchange) {
    echo_exchange *x = (echo_exchange *)exchange;
    if (x->streams) {
        x->sending = false;
        send_stream(exchange);
    } else if (x->parts % 3 == 0) { /* later */
        x->waits = true;
        kelp_http_exchange_post(exchange, send_next);
    } else {
        send_next(exchange);
    }
}

static void on_body(kelp_http_exchange *exchange, kelp_str bytes, bool last) {
    echo_exchange *x = (echo_exchange *)exchange;
    assert_true(x->streams && !x->ended);
    x->ended = last;
    x->received += bytes.length;
    echo.received += bytes.length;
    if (x->held) { /* /swallow */
        if (!echo.swallow)
            kelp_http_exchange_consume(exchange, bytes.length);
        return;
    }
    kelp_buf_append(&x->pending, bytes.data, bytes.length);
    send_stream(exchange);
}

static void on_request(kelp_http_exchange *exchange) {
    echo_exchange *x = (echo_exchange *)exchange;
    kelp_str path = exchange->request->path;
    const char *body = kelp_http_body_data(&exchange->body);
    echo.requests++;
    if (exchange->body.length > ALIGNED_OFFSET)
        assert_int_equal((uintptr_t)(body + ALIGNED_OFFSET) % KELP_HTTP_BODY_ALIGNMENT, 0);
    if (is_streamed(exchange->request)) {
        x->streams = true;
        x->held = kelp_str_is(path, "/swallow");
        kelp_http_exchange_respond(exchange, KELP_HTTP_OK);
    } else if (kelp_str_is(path, "/hold")) {
        x->held = true;
    } else if (kelp_str_is(path, "/parts")) {
        kelp_http_exchange_respond(exchange, KELP_HTTP_OK);
        send_next(exchange);
    } else if (kelp_str_is(path, "/refuse")) {
        kelp_http_exchange_respond(exchange, KELP_HTTP_OK);
        kelp_http_exchange_add_trailer(exchange, KELP_STR("grpc-status"), KELP_STR("12"));
        kelp_http_exchange_send(exchange);
    } else if (kelp_str_is(path, "/head")) {
        fill(exchange);
        kelp_buf_clear(&exchange->text);
        for (size_t i = 0; i < exchange->request->header_count; i++)
            kelp_buf_printf(&exchange->text, "%.*s=%.*s;",
                            KELP_STR_ARG(exchange->request->headers[i].name),
                            KELP_STR_ARG(exchange->request->headers[i].value));
        kelp_buf_printf(&exchange->text, "%.*s?%.*s", KELP_STR_ARG(path),
                        KELP_STR_ARG(exchange->request->query));
        kelp_http_exchange_send(exchange);
    } else if (kelp_str_is(path, "/blocking")) {
        x->waits = true;
        assert_null(kelp_http_exchange_run_blocking(exchange, fill, kelp_http_exchange_send));
    } else if (kelp_str_is(path, "/thread")) {
        pthread_t id;
        x->waits = true;
        kelp_http_exchange_retain(exchange);
        assert_int_equal(pthread_create(&id, NULL, post_from_thread, exchange), 0);
        pthread_detach(id);
    } else {
        fill_and_send(exchange);
    }
}

static void on_error(kelp_http_exchange *exchange, kelp_http_status status, const char *text) {
    kelp_http_exchange_respond(exchange, status);
    kelp_buf_printf(&exchange->text, "error %d: %s", (int)status, text);
}

static void on_cancel(kelp_http_exchange *exchange) {
    echo_exchange *x = (echo_exchange *)exchange;
    if (!echo.http2 && !x->held) /* the client may only have shut down its sending side */
        return;
    echo.cancelled++;
    x->cancelled = true;
    if (x->held && !x->streams) /* later */
        kelp_http_exchange_post(exchange, fill_and_send);
    else if (!x->waits)
        kelp_http_exchange_send(exchange);
    x->held = false;
}

static void on_destroy(kelp_http_handler *handler) {
    assert_ptr_equal(handler, &echo.base);
    echo.handler_destroyed = true;
}

/* ---- the server ---- */

static void *count_realloc(void *userp, void *pointer, size_t old_bytes, size_t new_bytes,
                           size_t alignment) {
    if (new_bytes > 0)
        echo.allocations++;
    kelp_allocator system = kelp_allocator_system();
    (void)userp;
    return system.realloc(system.userp, pointer, old_bytes, new_bytes, alignment);
}

void echo_init(bool http2, uint64_t max_body_bytes) {
    memset(&echo, 0, sizeof echo);
    echo.http2 = http2;
    echo.max_body_bytes = max_body_bytes;
    echo.base = (kelp_http_handler){.exchange_bytes = sizeof(echo_exchange),
                                    .init = on_init,
                                    .deinit = on_deinit,
                                    .clear = on_clear,
                                    .on_head = on_head,
                                    .on_request = on_request,
                                    .on_body = on_body,
                                    .on_error = on_error,
                                    .on_sent = on_sent,
                                    .on_cancel = on_cancel,
                                    .destroy = on_destroy};
}

kelp_http_server *echo_start(const char *address, kelp_http_server_options options) {
    kelp_http_endpoint endpoint = {.address = address != NULL ? address : "127.0.0.1",
                                   .services = ECHO_SERVICES};
    options.endpoints = &endpoint;
    options.endpoint_count = 1;
    options.threads = 2;
    options.allocator.realloc = count_realloc;
    kelp_http_handler *handler = &echo.base;
    kelp_http_server *server;
    assert_null(kelp_http_server_create(&handler, 1, &options, &server));
    assert_null(kelp_http_server_start(server));
    return server;
}

void echo_stop(kelp_http_server *server) {
    assert_null(kelp_http_server_stop(server, 10 * ECHO_SECOND_NS));
    kelp_http_server_destroy(server);
    assert_true(echo.handler_destroyed);
    assert_int_equal(echo.created, echo.destroyed);
}

void echo_wait(atomic_int *value, int expected) {
    uint64_t deadline = kelp_now_ns() + 60 * ECHO_SECOND_NS;
    while (atomic_load(value) != expected && kelp_now_ns() < deadline)
        usleep(1000);
    assert_int_equal(atomic_load(value), expected);
}
