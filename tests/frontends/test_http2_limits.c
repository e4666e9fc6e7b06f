/* SPDX-License-Identifier: Apache-2.0 */
/* HTTP/2 clients that misuse the protocol, with frames that a client library would not send. After
 * each, another client is served, and memory is released. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/clock.h"
#include "frontends/http/exchange.h"
#include "frontends/http/server.h"
#include "frontends/http2_client.h"
#include "frontends/raw_http2.h"
#include "support/failing_allocator.h"

#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define SECOND_NS UINT64_C(1000000000)

/* ---- the protocol: /hold holds requests until they are cancelled ---- */

static struct {
    kelp_http_handler base; /* first */
    atomic_int requests, errors, cancelled, live;
    atomic_bool keeps; /* cancelled requests remain in flight */
} handler;
static kelp_http_exchange *kept[1000];
static atomic_int kept_count;

static void on_init(kelp_http_exchange *exchange) {
    (void)exchange;
    handler.live++;
}

static void on_deinit(kelp_http_exchange *exchange) {
    (void)exchange;
    handler.live--;
}

static void on_clear(kelp_http_exchange *exchange) {
    (void)exchange;
}

static void on_head(kelp_http_handler *base, const kelp_http_request *request,
                    kelp_http_body_rules *inout_rules) {
    (void)base;
    (void)request;
    inout_rules->max_bytes = (uint64_t)1 << 40;
}

static void on_request(kelp_http_exchange *exchange) {
    handler.requests++;
    if (kelp_str_is(exchange->request->path, "/hold"))
        return;
    kelp_http_exchange_respond(exchange, KELP_HTTP_OK);
    kelp_buf_append_cstr(&exchange->text, "ok");
    kelp_http_exchange_send(exchange);
}

static void on_error(kelp_http_exchange *exchange, kelp_http_status status, const char *text) {
    handler.errors++;
    kelp_http_exchange_respond(exchange, status);
    kelp_buf_append_cstr(&exchange->text, text);
}

static void on_cancel(kelp_http_exchange *exchange) {
    handler.cancelled++;
    if (handler.keeps)
        kept[kept_count++] = exchange;
    else
        kelp_http_exchange_send(exchange);
}

static void on_destroy(kelp_http_handler *base) {
    (void)base;
}

/* ---- server and client ---- */

static kelp_status *create(kelp_http_server_options options, kelp_http_server **out) {
    memset(&handler, 0, sizeof handler);
    kept_count = 0;
    handler.base = (kelp_http_handler){.exchange_bytes = sizeof(kelp_http_exchange),
                                       .init = on_init,
                                       .deinit = on_deinit,
                                       .clear = on_clear,
                                       .on_head = on_head,
                                       .on_request = on_request,
                                       .on_error = on_error,
                                       .on_cancel = on_cancel,
                                       .destroy = on_destroy};
    kelp_http_endpoint endpoint = {.address = "127.0.0.1"};
    options.endpoints = &endpoint;
    options.endpoint_count = 1;
    options.threads = 1;
    kelp_http_handler *base = &handler.base;
    return kelp_http_server_create(&base, 1, &options, out);
}

static kelp_http_server *start(kelp_http_server_options options) {
    kelp_http_server *server;
    assert_null(create(options, &server));
    assert_null(kelp_http_server_start(server));
    return server;
}

static http2_client client;

/* Stops the server after another client was served. */
static void check_and_stop(kelp_http_server *server) {
    http2_client_connect(&client, kelp_http_server_port(server, 0));
    http2_client_expect(&client, http2_client_request(&client, "GET", "/", NULL, 0), 200, "ok");
    http2_client_close(&client);
    assert_null(kelp_http_server_stop(server, SECOND_NS));
    kelp_http_server_destroy(server);
    assert_int_equal(handler.live, 0);
}

/* ---- tests ---- */

static void a_client_that_resets_rapidly_is_disconnected(void **state) {
    (void)state;
    kelp_http_server *server = start((kelp_http_server_options){0});
    raw r;
    raw_open(&r, kelp_http_server_port(server, 0));
    for (uint32_t i = 0; i < 20000 && !r.failed; i++) {
        raw_get(&r, 2 * i + 1, true);
        raw_reset(&r, 2 * i + 1);
    }
    (void)raw_goaway(&r);
    assert_in_range(handler.requests, 1, 2500); /* the burst, and the rate in some seconds */
    check_and_stop(server);
}

/* Streams that the client makes the server reset, here by an increment of 0. */
static void a_client_that_causes_resets_is_disconnected(void **state) {
    (void)state;
    static const uint8_t zero[4];
    kelp_http_server *server = start((kelp_http_server_options){0});
    raw r;
    raw_open(&r, kelp_http_server_port(server, 0));
    for (uint32_t i = 0; i < 20000 && !r.failed; i++) {
        raw_get(&r, 2 * i + 1, true);
        raw_frame(&r, NGHTTP2_WINDOW_UPDATE, 0, 2 * i + 1, zero, sizeof zero);
    }
    (void)raw_goaway(&r);
    assert_in_range(handler.requests, 1, 1500);
    check_and_stop(server);
}

/* Models still process requests that the client has cancelled. */
static void cancelled_requests_count_until_they_end(void **state) {
    (void)state;
    kelp_http_server *server = start((kelp_http_server_options){.max_client_requests = 10});
    handler.keeps = true;
    raw r;
    raw_open(&r, kelp_http_server_port(server, 0));
    for (uint32_t i = 0; i < 100; i++) {
        raw_get(&r, 2 * i + 1, true);
        raw_reset(&r, 2 * i + 1);
    }
    http2_client_connect(&client, kelp_http_server_port(server, 0));
    while (kept_count < 10)
        usleep(1000);
    http2_reply *reply = http2_client_request(&client, "GET", "/", NULL, 0);
    http2_client_expect(&client, reply, 429, "the client has too many requests in flight");
    http2_client_close(&client);
    assert_int_equal(handler.requests, 10);
    handler.keeps = false;
    for (int i = 0; i < 10; i++)
        kelp_http_exchange_post(kept[i], kelp_http_exchange_send);
    close(r.fd);
    usleep(50000);
    check_and_stop(server);
}

static void requests_in_flight_are_limited(void **state) {
    (void)state;
    kelp_http_server *server = start((kelp_http_server_options){.max_requests = 5});
    http2_client_connect(&client, kelp_http_server_port(server, 0));
    for (int i = 0; i < 3; i++) /* 3/4 of the total for a client */
        (void)http2_client_request(&client, "GET", "/hold", NULL, 0);
    http2_client_flush(&client);
    while (handler.requests < 3)
        usleep(1000);
    (void)http2_client_request(&client, "GET", "/hold", NULL, 0);
    http2_reply *reply = http2_client_request(&client, "GET", "/hold", NULL, 0);
    http2_client_expect(&client, reply, 429, "the client has too many requests in flight");
    http2_client_close(&client);
    check_and_stop(server);
}

static void connections_of_a_client_are_limited(void **state) {
    (void)state;
    kelp_http_server *server = start((kelp_http_server_options){.max_client_connections = 2});
    raw first, second, third;
    raw_open(&first, kelp_http_server_port(server, 0));
    raw_open(&second, kelp_http_server_port(server, 0));
    raw_open(&third, kelp_http_server_port(server, 0));
    assert_int_equal(raw_goaway(&third), -1);
    close(first.fd);
    close(second.fd);
    usleep(50000);
    check_and_stop(server);
}

static void bytes_of_bodies_are_limited(void **state) {
    (void)state;
    static char body[300000];
    kelp_http_server *server = start((kelp_http_server_options){.max_body_bytes = 200000});
    http2_client_connect(&client, kelp_http_server_port(server, 0));
    http2_reply *reply = http2_client_request(&client, "POST", "/", body, sizeof body);
    http2_client_expect(&client, reply, 503, "out of memory for the request body");
    reply = http2_client_request(&client, "POST", "/", body, 100000);
    http2_client_expect(&client, reply, 200, "ok");
    http2_client_close(&client);
    check_and_stop(server);
}

static void floods_of_control_frames_end_the_connection(void **state) {
    (void)state;
    static const uint8_t zeros[8];
    static const struct {
        int type;
        size_t length;
        uint32_t id;
    } floods[] = {{NGHTTP2_PING, 8, 0}, {NGHTTP2_SETTINGS, 0, 0}, {NGHTTP2_DATA, 0, 1}};
    for (size_t k = 0; k < sizeof floods / sizeof *floods; k++) {
        kelp_http_server *server = start((kelp_http_server_options){0});
        raw r;
        raw_open(&r, kelp_http_server_port(server, 0));
        raw_frame(&r, NGHTTP2_HEADERS, NGHTTP2_FLAG_END_HEADERS, 1, get_hold, sizeof get_hold);
        for (int i = 0; i < 100000 && !r.failed; i++)
            raw_frame(&r, floods[k].type, 0, floods[k].id, zeros, floods[k].length);
        int error = raw_goaway(&r);
        assert_true(error == NGHTTP2_ENHANCE_YOUR_CALM || r.failed);
        check_and_stop(server);
    }
}

static void a_flood_of_continuations_ends_the_connection(void **state) {
    (void)state;
    static uint8_t header[] = {0x00, 1, 'x', 1, 'y'};
    kelp_http_server *server = start((kelp_http_server_options){0});
    raw r;
    raw_open(&r, kelp_http_server_port(server, 0));
    raw_frame(&r, NGHTTP2_HEADERS, 0, 1, get_root, sizeof get_root);
    for (int i = 0; i < 100000 && !r.failed; i++)
        raw_frame(&r, NGHTTP2_CONTINUATION, 0, 1, header, sizeof header);
    (void)raw_goaway(&r);
    assert_int_equal(handler.requests, 0);
    check_and_stop(server);
}

/* A table entry of 4 kB that each of many headers refers to with a byte. */
static void a_head_that_expands_is_rejected(void **state) {
    (void)state;
    static uint8_t block[16000];
    size_t n = 0;
    kelp_http_server *server = start((kelp_http_server_options){0});
    raw r;
    raw_open(&r, kelp_http_server_port(server, 0));
    memcpy(block, get_root, sizeof get_root);
    n = sizeof get_root;
    static const uint8_t entry[] = {0x40, 1, 'x', 0x7f, 0x81, 0x1e}; /* a value of 4,000 bytes */
    memcpy(block + n, entry, sizeof entry);
    n += sizeof entry;
    memset(block + n, 'v', 4000 - 32);
    n += 127 + 1 + 0x1e * 128;
    memset(block + n, 0xbe, sizeof block - n); /* the entry, again and again */
    for (uint32_t i = 0; i < 20; i++)
        raw_frame(&r, NGHTTP2_HEADERS, NGHTTP2_FLAG_END_HEADERS | NGHTTP2_FLAG_END_STREAM,
                  2 * i + 1, block, sizeof block);
    uint64_t deadline = kelp_now_ns() + 60 * SECOND_NS;
    while (handler.errors < 20 && kelp_now_ns() < deadline)
        usleep(1000);
    assert_int_equal(handler.errors, 20);
    assert_int_equal(handler.requests, 0);
    close(r.fd);
    usleep(20000);
    check_and_stop(server);
}

static void streams_above_the_limit_are_refused(void **state) {
    (void)state;
    kelp_http_server *server = start((kelp_http_server_options){0});
    raw r;
    raw_open(&r, kelp_http_server_port(server, 0));
    for (uint32_t i = 0; i < 5000 && !r.failed; i++)
        raw_get(&r, 2 * i + 1, true);
    while (handler.requests < 256)
        usleep(1000);
    usleep(50000);
    assert_int_equal(handler.requests, 256);
    close(r.fd);
    check_and_stop(server);
}

static void slow_bodies_are_ended(void **state) {
    (void)state;
    kelp_http_server *server = start(
        (kelp_http_server_options){.idle_timeout_ns = SECOND_NS / 2, .body_timeout_ns = SECOND_NS});
    http2_client_connect(&client, kelp_http_server_port(server, 0));
    http2_reply *reply = http2_client_request(&client, "POST", "/", NULL, SIZE_MAX);
    uint64_t begin = kelp_now_ns();
    while (!reply->closed && kelp_now_ns() - begin < 60 * SECOND_NS) {
        http2_client_send_body(&client, reply, "x", 1, false); /* progress, but too little */
        struct pollfd poll_fd = {.fd = client.fd, .events = POLLIN};
        if (poll(&poll_fd, 1, 100) == 1)
            (void)http2_client_step(&client);
    }
    assert_int_equal(reply->error, NGHTTP2_CANCEL);
    assert_true(kelp_now_ns() - begin >= SECOND_NS);
    http2_client_close(&client);
    check_and_stop(server);
}

static void a_client_that_sends_only_the_preface_is_disconnected(void **state) {
    (void)state;
    static const char preface[] = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
    kelp_http_server *server =
        start((kelp_http_server_options){.header_timeout_ns = SECOND_NS / 5});
    for (size_t length = 3; length < sizeof preface; length += 21) {
        struct sockaddr_in address = {.sin_family = AF_INET,
                                      .sin_port = htons(kelp_http_server_port(server, 0)),
                                      .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
        raw r;
        memset(&r, 0, sizeof r);
        r.fd = socket(AF_INET, SOCK_STREAM, 0);
        assert_int_equal(connect(r.fd, (struct sockaddr *)&address, sizeof address), 0);
        raw_send(&r, preface, length);
        (void)raw_goaway(&r);
    }
    check_and_stop(server);
}

/* Each allocation of a short session fails once. Some failures end the connection only. */
static void failed_allocations_are_handled(void **state) {
    (void)state;
    static char body[100000];
    for (uint64_t n = 1;; n++) {
        test_failing memory;
        test_failing_init(&memory, n);
        kelp_http_server *server;
        kelp_status *status = create(
            (kelp_http_server_options){.allocator = test_failing_allocator(&memory)}, &server);
        if (status == NULL && (status = kelp_http_server_start(server)) == NULL) {
            http2_client_connect(&client, kelp_http_server_port(server, 0));
            http2_reply *first = http2_client_request(&client, "POST", "/", body, sizeof body);
            http2_reply *second = http2_client_request(&client, "GET", "/", NULL, 0);
            http2_client_wait(&client, first);
            http2_client_wait(&client, second);
            bool served = first->status == 200 && second->status == 200;
            http2_client_close(&client);
            status = kelp_http_server_stop(server, SECOND_NS);
            kelp_http_server_destroy(server);
            assert_true(served || memory.failed);
        } else if (server != NULL) {
            kelp_http_server_destroy(server);
        }
        kelp_status_free(status);
        test_failing_check(&memory);
        bool failed = memory.failed;
        test_failing_deinit(&memory);
        if (!failed)
            break;
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_client_that_resets_rapidly_is_disconnected),
        cmocka_unit_test(a_client_that_causes_resets_is_disconnected),
        cmocka_unit_test(cancelled_requests_count_until_they_end),
        cmocka_unit_test(requests_in_flight_are_limited),
        cmocka_unit_test(connections_of_a_client_are_limited),
        cmocka_unit_test(bytes_of_bodies_are_limited),
        cmocka_unit_test(floods_of_control_frames_end_the_connection),
        cmocka_unit_test(a_flood_of_continuations_ends_the_connection),
        cmocka_unit_test(a_head_that_expands_is_rejected),
        cmocka_unit_test(streams_above_the_limit_are_refused),
        cmocka_unit_test(slow_bodies_are_ended),
        cmocka_unit_test(a_client_that_sends_only_the_preface_is_disconnected),
        cmocka_unit_test(failed_allocations_are_handled),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
