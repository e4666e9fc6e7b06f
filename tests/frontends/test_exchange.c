/* SPDX-License-Identifier: Apache-2.0 */
/* The transport with a small protocol that is independent of inference. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/clock.h"
#include "frontends/echo_server.h"

#include <arpa/inet.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <unistd.h>

#define MAX_BODY_BYTES 100
#define SECOND_NS UINT64_C(1000000000)

/* ---- server and client ---- */

static uint64_t body_timeout_ns; /* of the next server; 0: the default */

static kelp_http_server *start(const char *address) {
    echo_init(false, MAX_BODY_BYTES);
    return echo_start(address, (kelp_http_server_options){.body_timeout_ns = body_timeout_ns});
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
    echo_stop(server);
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
    echo_stop(server);
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
    echo_stop(server);
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
    echo_stop(server);
}

static void a_disconnect_cancels_the_exchange(void **state) {
    (void)state;
    kelp_http_server *server = start("127.0.0.1");
    int fd = dial(server);
    send_text(fd, POST("/hold", "abc", "3"));
    usleep(20000);
    close(fd);
    echo_wait(&echo.cancelled, 1);
    echo_wait(&echo.cleared, 1);
    echo_stop(server);
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
    echo_stop(server);
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
    echo_stop(server);
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
            before = echo.allocations;
        send_text(fd, POST("/", "0123456789", "10"));
        expect(fd, "200 OK", "echo:0123456789");
    }
    assert_int_equal(echo.allocations, before);
    assert_int_equal(echo.created, 1);
    close(fd);
    echo_stop(server);
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
    echo_stop(server);
}

static void a_file_at_the_path_of_a_socket_is_reported(void **state) {
    (void)state;
    char address[64];
    snprintf(address, sizeof address, "unix:" P_tmpdir "/kelp-file-%d", (int)getpid());
    FILE *file = fopen(address + strlen("unix:"), "w");
    assert_non_null(file);
    fclose(file);
    echo_init(false, MAX_BODY_BYTES);
    kelp_http_endpoint endpoint = {.address = address};
    kelp_http_server_options options = {.endpoints = &endpoint, .endpoint_count = 1};
    kelp_http_handler *handler = &echo.base;
    kelp_http_server *server;
    kelp_status *status = kelp_http_server_create(&handler, 1, &options, &server);
    assert_int_equal(kelp_status_code(status), KELP_UNAVAILABLE);
    assert_non_null(strstr(kelp_status_message(status), "a file that is not a socket exists"));
    kelp_status_free(status);
    assert_int_equal(unlink(address + strlen("unix:")), 0);
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
        cmocka_unit_test(a_file_at_the_path_of_a_socket_is_reported),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
