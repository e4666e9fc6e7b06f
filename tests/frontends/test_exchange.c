/* SPDX-License-Identifier: Apache-2.0 */
/* The transport with a small protocol that is independent of inference. */
#include "base/clock.h"
#include "frontends/http/exchange.h"
#include "frontends/http/server.h"

#include <arpa/inet.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <cmocka.h>

#define MAX_BODY_BYTES 100
#define ALIGNED_OFFSET 5
#define PARTS 4
#define SECOND_NS UINT64_C(1000000000)

/* ---- the protocol ---- */

typedef struct echo_exchange {
    kelp_http_exchange base; /* first */
    bool held;               /* held by /hold until it is cancelled */
    int parts;               /* sent by /parts */
} echo_exchange;

typedef struct echo_handler {
    kelp_http_handler base; /* first */
    atomic_int created, destroyed, cleared, cancelled;
    atomic_bool handler_destroyed;
} echo_handler;

static echo_handler echo;
static atomic_uint allocations;

static void on_init(kelp_http_exchange *exchange) {
    (void)exchange;
    echo.created++;
}

static void on_deinit(kelp_http_exchange *exchange) {
    (void)exchange;
    echo.destroyed++;
}

static void on_clear(kelp_http_exchange *exchange) {
    ((echo_exchange *)exchange)->held = false;
    ((echo_exchange *)exchange)->parts = 0;
    echo.cleared++;
}

static void on_head(kelp_http_handler *handler, const kelp_http_request *request,
                    kelp_http_body_rules *inout_rules) {
    assert_ptr_equal(handler, &echo.base);
    assert_true(request->path.length > 0);
    inout_rules->max_bytes = MAX_BODY_BYTES;
    inout_rules->aligned_offset = ALIGNED_OFFSET;
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
    assert_false(kelp_http_exchange_on_thread(exchange));
    kelp_http_exchange_post(exchange, fill_and_send);
    kelp_http_exchange_release(exchange);
    return NULL;
}

/* Sends parts of a text and a piece, an empty part, and the last part. */
static void send_next(kelp_http_exchange *exchange) {
    echo_exchange *x = (echo_exchange *)exchange;
    assert_int_equal(exchange->text.length, 0);
    if (x->parts++ == PARTS) {
        kelp_buf_append_cstr(&exchange->text, "end");
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

static void on_sent(kelp_http_exchange *exchange) {
    if (((echo_exchange *)exchange)->parts % 3 == 0) /* later */
        kelp_http_exchange_post(exchange, send_next);
    else
        send_next(exchange);
}

static void on_request(kelp_http_exchange *exchange) {
    kelp_str path = exchange->request->path;
    const char *body = kelp_http_body_data(&exchange->body);
    if (exchange->body.length > ALIGNED_OFFSET)
        assert_int_equal((uintptr_t)(body + ALIGNED_OFFSET) % KELP_HTTP_BODY_ALIGNMENT, 0);
    if (kelp_str_is(path, "/hold")) {
        ((echo_exchange *)exchange)->held = true;
    } else if (kelp_str_is(path, "/parts")) {
        kelp_http_exchange_respond(exchange, KELP_HTTP_OK);
        send_next(exchange);
    } else if (kelp_str_is(path, "/blocking")) {
        assert_null(kelp_http_exchange_run_blocking(exchange, fill, kelp_http_exchange_send));
    } else if (kelp_str_is(path, "/thread")) {
        pthread_t id;
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
    if (!x->held)
        return;
    x->held = false;
    echo.cancelled++;
    kelp_http_exchange_post(exchange, fill_and_send);
}

static void on_destroy(kelp_http_handler *handler) {
    assert_ptr_equal(handler, &echo.base);
    echo.handler_destroyed = true;
}

/* ---- server and client ---- */

static void *count_realloc(void *userp, void *pointer, size_t old_bytes, size_t new_bytes,
                           size_t alignment) {
    if (new_bytes > 0)
        allocations++;
    kelp_allocator system = kelp_allocator_system();
    (void)userp;
    return system.realloc(system.userp, pointer, old_bytes, new_bytes, alignment);
}

static uint64_t body_timeout_ns; /* of the next server; 0: the default */

static kelp_http_server *start(const char *address) {
    echo = (echo_handler){.base = {.exchange_bytes = sizeof(echo_exchange),
                                   .init = on_init,
                                   .deinit = on_deinit,
                                   .clear = on_clear,
                                   .on_head = on_head,
                                   .on_request = on_request,
                                   .on_error = on_error,
                                   .on_sent = on_sent,
                                   .on_cancel = on_cancel,
                                   .destroy = on_destroy}};
    kelp_http_endpoint endpoint = {.address = address};
    kelp_http_server_options options = {.endpoints = &endpoint,
                                        .endpoint_count = 1,
                                        .threads = 2,
                                        .body_timeout_ns = body_timeout_ns,
                                        .allocator = {.realloc = count_realloc}};
    kelp_http_handler *handler = &echo.base;
    kelp_http_server *server;
    assert_null(kelp_http_server_create(&handler, 1, &options, &server));
    assert_null(kelp_http_server_start(server));
    return server;
}

static void stop(kelp_http_server *server) {
    assert_null(kelp_http_server_stop(server, 10 * SECOND_NS));
    kelp_http_server_destroy(server);
    assert_true(echo.handler_destroyed);
    assert_int_equal(echo.created, echo.destroyed);
}

static int dial(const kelp_http_server *server) {
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_port = htons(kelp_http_server_port(server, 0)),
                                  .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    struct timeval patience = {.tv_sec = 60};
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
    assert_int_equal(connect(fd, (struct sockaddr *)&address, sizeof(address)), 0);
    return fd;
}

static void send_text(int fd, const char *text) {
    assert_int_equal(send(fd, text, strlen(text), MSG_NOSIGNAL), (ssize_t)strlen(text));
}

/* Expects a response that ends in `tail`, after a head that contains `head`. */
static void expect(int fd, const char *head, const char *tail) {
    static char text[4096];
    size_t length = 0;
    while (length < strlen(tail) || memcmp(text + length - strlen(tail), tail, strlen(tail)) != 0) {
        ssize_t n = recv(fd, text + length, sizeof(text) - 1 - length, 0);
        if (n <= 0)
            fail_msg("the response ended after '%.*s'", (int)length, text);
        length += (size_t)n;
    }
    text[length] = 0;
    if (!strstr(text, head))
        fail_msg("'%s' is not in '%s'", head, text);
}

static void wait_for(atomic_int *value, int expected) {
    uint64_t deadline = kelp_now_ns() + 60 * SECOND_NS;
    while (atomic_load(value) != expected && kelp_now_ns() < deadline)
        usleep(1000);
    assert_int_equal(atomic_load(value), expected);
}

#define POST(path, body, length) \
    "POST " path " HTTP/1.1\r\nHost: h\r\nContent-Length: " length "\r\n\r\n" body

/* ---- tests ---- */

static void text_and_pieces_are_sent_in_order(void **state) {
    (void)state;
    kelp_http_server *server = start("127.0.0.1");
    int fd = dial(server);
    send_text(fd, POST("/", "0123456789", "10"));
    expect(fd, "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 15\r\n",
           "\r\n\r\necho:0123456789");
    close(fd);
    stop(server);
}

static void other_threads_may_respond(void **state) {
    (void)state;
    kelp_http_server *server = start("127.0.0.1");
    int fd = dial(server);
    for (int i = 0; i < 20; i++) {
        send_text(fd, POST("/thread", "abc", "3") POST("/blocking", "def", "3"));
        expect(fd, "200 OK", "echo:def");
    }
    close(fd);
    stop(server);
}

static void a_response_in_parts_is_chunked(void **state) {
    (void)state;
    kelp_http_server *server = start("127.0.0.1");
    int fd = dial(server);
    for (int i = 0; i < 3; i++) { /* the connection stays open */
        send_text(fd, POST("/parts", "ab", "2"));
        expect(fd, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n",
               "\r\n\r\n4\r\n1:ab\r\n4\r\n3:ab\r\n4\r\n4:ab\r\n3\r\nend\r\n0\r\n\r\n");
    }
    close(fd);
    fd = dial(server);
    send_text(fd, "GET /parts HTTP/1.0\r\n\r\n");
    expect(fd, "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n", "1:3:4:end");
    char byte;
    assert_int_equal(recv(fd, &byte, 1, 0), 0);
    close(fd);
    stop(server);
}

static void the_handler_words_the_errors_of_the_transport(void **state) {
    (void)state;
    kelp_http_server *server = start("127.0.0.1");
    int fd = dial(server);
    send_text(fd, "GARBAGE\r\n\r\n");
    expect(fd, "HTTP/1.1 400 Bad Request", "HTTP/1.1'");
    close(fd);
    fd = dial(server);
    send_text(fd, "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 101\r\n\r\n");
    expect(fd, "HTTP/1.1 413 Content Too Large", "limit of 100 bytes (Content-Length 101)");
    close(fd);
    stop(server);
}

static void a_disconnect_cancels_the_exchange(void **state) {
    (void)state;
    kelp_http_server *server = start("127.0.0.1");
    int fd = dial(server);
    send_text(fd, POST("/hold", "abc", "3"));
    usleep(20000);
    close(fd);
    wait_for(&echo.cancelled, 1);
    wait_for(&echo.cleared, 1);
    stop(server);
}

static void a_slow_body_is_rejected_at_its_deadline(void **state) {
    (void)state;
    body_timeout_ns = SECOND_NS / 5;
    kelp_http_server *server = start("127.0.0.1");
    body_timeout_ns = 0;
    int fd = dial(server);
    send_text(fd, "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 100\r\n\r\n");
    for (int i = 0; i < 5; i++) { /* each byte is progress, but not enough */
        send_text(fd, "x");
        usleep(100000);
    }
    expect(fd, "408 Request Timeout", "the request did not arrive in time");
    close(fd);
    stop(server);
}

static void stopping_cancels_exchanges_after_the_timeout(void **state) {
    (void)state;
    kelp_http_server *server = start("127.0.0.1");
    int fd = dial(server), idle = dial(server);
    send_text(fd, POST("/hold", "abc", "3"));
    send_text(idle, POST("/", "abc", "3"));
    expect(idle, "200 OK", "echo:abc");
    usleep(20000);
    assert_null(kelp_http_server_stop(server, SECOND_NS / 20));
    assert_int_equal(echo.cancelled, 1);
    stop(server);
    close(fd);
    close(idle);
}

static void a_warm_connection_does_not_allocate(void **state) {
    (void)state;
    kelp_http_server *server = start("127.0.0.1");
    int fd = dial(server);
    unsigned before = 0;
    for (int i = 0; i < 200; i++) {
        if (i == 100)
            before = allocations;
        send_text(fd, POST("/", "0123456789", "10"));
        expect(fd, "200 OK", "echo:0123456789");
    }
    assert_int_equal(allocations, before);
    assert_int_equal(echo.created, 1);
    close(fd);
    stop(server);
}

static void an_address_in_use_is_reported_and_the_handler_destroyed(void **state) {
    (void)state;
    kelp_http_server *server = start("127.0.0.1"), *second = NULL;
    kelp_http_endpoint endpoint = {.address = "127.0.0.1",
                                   .port = kelp_http_server_port(server, 0)};
    kelp_http_server_options options = {.endpoints = &endpoint, .endpoint_count = 1};
    kelp_http_handler *handler = &echo.base;
    kelp_status *status = kelp_http_server_create(&handler, 1, &options, &second);
    assert_int_equal(kelp_status_code(status), KELP_UNAVAILABLE);
    kelp_status_free(status);
    assert_true(echo.handler_destroyed);
    echo.handler_destroyed = false;
    stop(server);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(text_and_pieces_are_sent_in_order),
        cmocka_unit_test(other_threads_may_respond),
        cmocka_unit_test(a_slow_body_is_rejected_at_its_deadline),
        cmocka_unit_test(a_response_in_parts_is_chunked),
        cmocka_unit_test(the_handler_words_the_errors_of_the_transport),
        cmocka_unit_test(a_disconnect_cancels_the_exchange),
        cmocka_unit_test(stopping_cancels_exchanges_after_the_timeout),
        cmocka_unit_test(a_warm_connection_does_not_allocate),
        cmocka_unit_test(an_address_in_use_is_reported_and_the_handler_destroyed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
