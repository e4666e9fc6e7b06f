/* SPDX-License-Identifier: Apache-2.0 */
/* The HTTP/2 transport with a small protocol that is independent of inference. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/clock.h"
#include "frontends/echo_server.h"
#include "frontends/http2_client.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#define SECOND_NS UINT64_C(1000000000)
#define MAX_BODY_BYTES ((size_t)3 * 1024 * 1024)

/* ---- server and client ---- */

static kelp_http_server *start_with(kelp_http_server_options options) {
    echo_init(true, MAX_BODY_BYTES);
    return echo_start(NULL, options);
}

static kelp_http_server *start(http2_client *client) {
    kelp_http_server *server = start_with((kelp_http_server_options){0});
    http2_client_connect(client, kelp_http_server_port(server, 0));
    return server;
}

static http2_client client;

static http2_reply *post(const char *path, const char *body) {
    return http2_client_request(&client, "POST", path, body, strlen(body));
}

static http2_reply *post_later(const char *path) {
    return http2_client_request(&client, "POST", path, NULL, SIZE_MAX);
}

static char *bytes_of(size_t length) {
    char *bytes = malloc(length + 1);
    for (size_t i = 0; i < length; i++)
        bytes[i] = (char)('a' + i % 23);
    bytes[length] = 0;
    return bytes;
}

/* ---- tests: requests and responses ---- */

static void text_and_pieces_are_sent_in_order(void **state) {
    (void)state;
    kelp_http_server *server = start(&client);
    http2_reply *reply = post("/", "0123456789");
    http2_client_expect(&client, reply, 200, "echo:0123456789");
    assert_string_equal(reply->head, "content-type: text/plain\ncontent-length: 15\n");
    http2_client_expect(&client, http2_client_request(&client, "GET", "/", NULL, 0), 200, "echo:");
    http2_client_close(&client);
    echo_stop(server);
}

static void the_head_has_path_query_and_headers(void **state) {
    (void)state;
    kelp_http_server *server = start(&client);
    http2_reply *reply = http2_client_request(&client, "GET", "/head?a=b&c", NULL, 0);
    http2_client_expect(&client, reply, 200, "host=localhost;/head?a=b&c");
    http2_client_close(&client);
    echo_stop(server);
}

static void a_response_to_head_has_no_body(void **state) {
    (void)state;
    kelp_http_server *server = start(&client);
    http2_reply *reply = http2_client_request(&client, "HEAD", "/", NULL, 0);
    http2_client_expect(&client, reply, 200, "");
    assert_non_null(strstr(reply->head, "content-length: 5\n"));
    reply = http2_client_request(&client, "HEAD", "/parts", NULL, 0);
    http2_client_expect(&client, reply, 200, "");
    http2_client_close(&client);
    echo_stop(server);
}

static void other_threads_may_respond(void **state) {
    (void)state;
    kelp_http_server *server = start(&client);
    http2_reply *replies[200];
    for (int i = 0; i < 200; i++)
        replies[i] = post(i % 2 ? "/thread" : "/blocking", i % 2 ? "abc" : "def");
    for (int i = 0; i < 200; i++)
        http2_client_expect(&client, replies[i], 200, i % 2 ? "echo:abc" : "echo:def");
    http2_client_close(&client);
    echo_stop(server);
}

static void a_response_may_have_parts_and_trailers(void **state) {
    (void)state;
    kelp_http_server *server = start(&client);
    http2_reply *replies[20];
    for (int i = 0; i < 20; i++)
        replies[i] = post("/parts", "ab");
    for (int i = 0; i < 20; i++) {
        http2_client_expect(&client, replies[i], 200, "1:ab3:ab4:abend");
        assert_string_equal(replies[i]->head, "");
        assert_string_equal(replies[i]->trailers, "parts: 4\n");
    }
    http2_client_close(&client);
    echo_stop(server);
}

static void trailers_without_a_body_are_sent_with_the_headers(void **state) {
    (void)state;
    kelp_http_server *server = start(&client);
    http2_reply *reply = post("/refuse", "abc");
    http2_client_expect(&client, reply, 200, "");
    assert_string_equal(reply->head, "grpc-status: 12\n");
    http2_client_close(&client);
    echo_stop(server);
}

static void large_bodies_pass_unchanged(void **state) {
    (void)state;
    kelp_http_server *server = start(&client);
    char *body = bytes_of(MAX_BODY_BYTES);
    http2_reply *replies[8];
    for (int i = 0; i < 8; i++)
        replies[i] =
            http2_client_request(&client, "POST", "/", body, MAX_BODY_BYTES - (size_t)i * 100000);
    for (int i = 0; i < 8; i++) {
        http2_client_wait(&client, replies[i]);
        assert_int_equal(replies[i]->length, 5 + MAX_BODY_BYTES - (size_t)i * 100000);
        assert_memory_equal(replies[i]->data + 5, body, replies[i]->length - 5);
    }
    free(body);
    http2_client_close(&client);
    echo_stop(server);
}

static void a_body_without_an_announced_length_is_collected(void **state) {
    (void)state;
    kelp_http_server *server = start(&client);
    char *body = bytes_of(1000000);
    http2_reply *reply = post_later("/");
    for (size_t at = 0; at < 1000000; at += 100000)
        http2_client_send_body(&client, reply, body + at, 100000, at == 900000);
    http2_client_wait(&client, reply);
    assert_int_equal(reply->length, 1000005);
    assert_memory_equal(reply->data + 5, body, 1000000);
    free(body);
    http2_client_close(&client);
    echo_stop(server);
}

/* The memory of a body is used again for one with another alignment. */
static void bodies_with_other_alignments_follow(void **state) {
    (void)state;
    kelp_http_server *server = start(&client);
    for (int i = 0; i < 4; i++) {
        http2_client_expect(&client, post("/first", "ab"), 200, "echo:ab");
        http2_client_expect(&client, post("/", "0123456789"), 200, "echo:0123456789");
    }
    http2_client_close(&client);
    echo_stop(server);
}

/* ---- tests: streamed bodies ---- */

static void a_streamed_body_is_passed_as_it_arrives(void **state) {
    (void)state;
    kelp_http_server *server = start(&client);
    http2_reply *reply = post_later("/stream");
    char expected[64] = "";
    for (int i = 0; i < 5; i++) {
        http2_client_send_body(&client, reply, "ping ", 5, false);
        strcat(expected, "ping ");
        while (reply->length < strlen(expected))
            assert_true(http2_client_step(&client));
        assert_string_equal(reply->data, expected);
    }
    http2_client_send_body(&client, reply, NULL, 0, true);
    http2_client_expect(&client, reply, 200, expected);
    assert_string_equal(reply->trailers, "done: yes\n");
    http2_client_close(&client);
    echo_stop(server);
}

static void a_streamed_body_may_be_larger_than_the_windows(void **state) {
    (void)state;
    size_t length = (size_t)40 * 1024 * 1024;
    kelp_http_server *server = start(&client);
    char *body = bytes_of(length);
    http2_reply *reply = post_later("/stream");
    http2_client_send_body(&client, reply, body, length, true);
    http2_client_wait(&client, reply);
    assert_int_equal(reply->length, length);
    assert_memory_equal(reply->data, body, length);
    free(body);
    http2_client_close(&client);
    echo_stop(server);
}

/* Without credit, the client sends one window; a second stream still works. The credit of a
 * cancelled stream returns to the connection. */
static void unconsumed_bytes_stop_the_client(void **state) {
    (void)state;
    size_t length = (size_t)8 * 1024 * 1024;
    kelp_http_server *server = start(&client);
    char *body = bytes_of(length);
    echo.swallow = true;
    for (int i = 0; i < 10; i++) {
        http2_reply *reply = post_later("/swallow");
        http2_client_send_body(&client, reply, body, length, true);
        http2_client_expect(&client, post("/", "abc"), 200, "echo:abc");
        size_t window = (size_t)4 * 1024 * 1024;
        while (echo.received < (size_t)(i + 1) * window)
            http2_client_expect(&client, post("/", "abc"), 200, "echo:abc");
        assert_int_equal(echo.received, (size_t)(i + 1) * window);
        assert_int_equal(nghttp2_submit_rst_stream(client.session, 0, reply->id, NGHTTP2_CANCEL),
                         0);
        http2_client_flush(&client);
        echo_wait(&echo.cancelled, i + 1);
    }
    free(body);
    http2_client_close(&client);
    echo_stop(server);
}

/* ---- tests: errors and cancellation ---- */

static void invalid_requests_are_answered(void **state) {
    (void)state;
    kelp_http_server *server = start(&client);
    char *body = bytes_of(MAX_BODY_BYTES + 1);
    http2_reply *reply = http2_client_request(&client, "POST", "/", body, MAX_BODY_BYTES + 1);
    http2_client_expect(&client, reply, 413,
                        "error 413: the request body is larger than the limit of 3145728 bytes");
    reply = post_later("/");
    http2_client_send_body(&client, reply, body, MAX_BODY_BYTES + 1, false);
    http2_client_expect(&client, reply, 413,
                        "error 413: the request body is larger than the limit of 3145728 bytes");
    char *path = bytes_of(70000);
    path[0] = '/';
    path[32000] = 0;
    http2_client_expect(&client, http2_client_request(&client, "GET", path, NULL, 0), 200, "echo:");
    http2_client_expect(&client, post("/", "abc"), 200, "echo:abc");
    free(path);
    free(body);
    http2_client_close(&client);
    echo_stop(server);
}

static void a_reset_stream_cancels_its_exchange_only(void **state) {
    (void)state;
    kelp_http_server *server = start(&client);
    http2_reply *held = post("/hold", "abc"), *other = post("/hold", "def");
    http2_client_expect(&client, post("/", "abc"), 200, "echo:abc");
    assert_int_equal(nghttp2_submit_rst_stream(client.session, 0, held->id, NGHTTP2_CANCEL), 0);
    http2_client_flush(&client);
    echo_wait(&echo.cancelled, 1);
    echo_wait(&echo.cleared, 2);
    assert_false(other->closed);
    http2_client_expect(&client, post("/", "abc"), 200, "echo:abc");
    http2_client_close(&client); /* cancels the other one */
    echo_wait(&echo.cancelled, 2);
    echo_wait(&echo.cleared, 4);
    echo_stop(server);
}

/* More requests than the server processes, or cancels, in a round of its loop: they arrive
 * together, and the connection ends while most of them are held. Some are answered meanwhile, or
 * incomplete.
 */
static void many_requests_arrive_and_end_together(void **state) {
    enum { HELD = 150, OTHERS = 50 };
    static const char *const paths[] = {"/thread", "/blocking", "/parts", "/"};
    (void)state;
    kelp_http_server *server = start(&client);
    http2_reply *replies[200];
    for (int i = 0; i < 200; i++)
        replies[i] = post("/", "abc");
    for (int i = 0; i < 200; i++)
        http2_client_expect(&client, replies[i], 200, "echo:abc");
    for (int i = 0; i < HELD; i++)
        (void)post("/hold", "abc");
    for (int i = 0; i < OTHERS; i++)
        (void)post(paths[i % 4], "abc");
    for (int i = 0; i < OTHERS; i++)
        (void)post_later("/");
    http2_client_flush(&client);
    echo_wait(&echo.requests, 200 + HELD + OTHERS);
    http2_client_close(&client);
    echo_wait(&echo.cleared, 200 + HELD + OTHERS);
    assert_in_range(echo.cancelled, HELD, HELD + OTHERS);
    http2_client_connect(&client, kelp_http_server_port(server, 0));
    http2_client_expect(&client, post("/", "abc"), 200, "echo:abc");
    for (int i = 0; i < HELD; i++)
        (void)post("/hold", "abc");
    http2_client_flush(&client);
    echo_wait(&echo.requests, 201 + 2 * HELD + OTHERS);
    http2_client_close(&client);
    echo_stop(server); /* while the requests end */
}

/* A client that reads nothing, resets streams whose responses are partially written. */
static void a_reset_during_the_response_is_handled(void **state) {
    (void)state;
    kelp_http_server *server = start(&client);
    char *body = bytes_of(MAX_BODY_BYTES);
    nghttp2_settings_entry window = {NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, 1 << 30};
    assert_int_equal(nghttp2_submit_settings(client.session, 0, &window, 1), 0);
    assert_int_equal(nghttp2_session_set_local_window_size(client.session, 0, 0, 1 << 30), 0);
    http2_reply *replies[8];
    for (int i = 0; i < 8; i++)
        replies[i] = http2_client_request(&client, "POST", i % 2 ? "/parts" : "/", body,
                                          MAX_BODY_BYTES - (size_t)i);
    echo_wait(&echo.requests, 0);
    while (echo.requests < 8)
        http2_client_step(&client);
    for (int i = 0; i < 8; i += 3)
        (void)nghttp2_submit_rst_stream(client.session, 0, replies[i]->id, NGHTTP2_CANCEL);
    for (int i = 0; i < 8; i++)
        http2_client_wait(&client, replies[i]);
    for (int i = 1; i < 8; i++)
        if (i % 3 != 0)
            assert_true(replies[i]->ended);
    http2_client_expect(&client, post("/", "abc"), 200, "echo:abc");
    echo_wait(&echo.cleared, 9);
    free(body);
    http2_client_close(&client);
    echo_stop(server);
}

static void responses_wait_for_the_window_of_the_client(void **state) {
    (void)state;
    kelp_http_server *server = start(&client);
    char *body = bytes_of(1000000);
    client.keeps_window = true;
    http2_reply *reply = http2_client_request(&client, "POST", "/", body, 1000000);
    while (reply->length < 65535)
        assert_true(http2_client_step(&client));
    usleep(10000);
    assert_int_equal(reply->length, 65535);
    client.keeps_window = false;
    assert_int_equal(nghttp2_session_consume(client.session, reply->id, 65535), 0);
    http2_client_wait(&client, reply);
    assert_int_equal(reply->length, 1000005);
    free(body);
    http2_client_close(&client);
    echo_stop(server);
}

/* ---- tests: the connection ---- */

static void stopping_ends_connections_with_goaway(void **state) {
    (void)state;
    kelp_http_server *server = start(&client);
    http2_client_expect(&client, post("/", "abc"), 200, "echo:abc");
    (void)post("/hold", "abc");
    http2_client_flush(&client);
    echo_wait(&echo.requests, 2);
    assert_null(kelp_http_server_stop(server, SECOND_NS / 20));
    while (http2_client_step(&client)) {
    }
    assert_true(client.goaway);
    assert_int_equal(client.goaway_error, NGHTTP2_NO_ERROR);
    assert_int_equal(echo.cancelled, 1);
    echo_stop(server);
    http2_client_close(&client);
}

static void an_idle_connection_ends_with_goaway(void **state) {
    (void)state;
    kelp_http_server *server =
        start_with((kelp_http_server_options){.idle_timeout_ns = SECOND_NS / 10});
    http2_client_connect(&client, kelp_http_server_port(server, 0));
    http2_client_expect(&client, post("/", "abc"), 200, "echo:abc");
    while (http2_client_step(&client)) {
    }
    assert_true(client.goaway);
    assert_int_equal(client.goaway_error, NGHTTP2_NO_ERROR);
    http2_client_close(&client);
    echo_stop(server);
}

static void streams_that_stall_are_reset(void **state) {
    (void)state;
    kelp_http_server *server =
        start_with((kelp_http_server_options){.idle_timeout_ns = SECOND_NS / 5});
    http2_client_connect(&client, kelp_http_server_port(server, 0));
    char *body = bytes_of(100000);
    client.keeps_window = true;
    http2_reply *incomplete = post_later("/");
    http2_client_send_body(&client, incomplete, "abc", 3, false);
    http2_reply *unread = http2_client_request(&client, "POST", "/", body, 100000);
    http2_reply *held = post("/hold", ""); /* waits for the server */
    http2_client_wait(&client, incomplete);
    assert_int_equal(incomplete->error, NGHTTP2_CANCEL);
    http2_client_wait(&client, unread);
    assert_int_equal(unread->error, NGHTTP2_CANCEL);
    assert_false(held->closed);
    free(body);
    http2_client_close(&client);
    echo_stop(server);
}

static void a_warm_connection_does_not_allocate(void **state) {
    (void)state;
    kelp_http_server *server = start(&client);
    static const char *const paths[] = {"/", "/parts", "/refuse", "/head"};
    unsigned before = 0;
    for (int i = 0; i < 200; i++) {
        if (i == 100)
            before = echo.allocations;
        http2_reply *replies[32];
        for (int k = 0; k < 32; k++)
            replies[k] = post(paths[k % 4], "0123456789");
        for (int k = 0; k < 32; k++) {
            http2_client_wait(&client, replies[k]);
            assert_true(replies[k]->ended);
        }
    }
    assert_int_equal(echo.allocations, before);
    http2_client_close(&client);
    echo_stop(server);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(text_and_pieces_are_sent_in_order),
        cmocka_unit_test(the_head_has_path_query_and_headers),
        cmocka_unit_test(a_response_to_head_has_no_body),
        cmocka_unit_test(other_threads_may_respond),
        cmocka_unit_test(a_response_may_have_parts_and_trailers),
        cmocka_unit_test(trailers_without_a_body_are_sent_with_the_headers),
        cmocka_unit_test(large_bodies_pass_unchanged),
        cmocka_unit_test(a_body_without_an_announced_length_is_collected),
        cmocka_unit_test(bodies_with_other_alignments_follow),
        cmocka_unit_test(a_streamed_body_is_passed_as_it_arrives),
        cmocka_unit_test(a_streamed_body_may_be_larger_than_the_windows),
        cmocka_unit_test(unconsumed_bytes_stop_the_client),
        cmocka_unit_test(invalid_requests_are_answered),
        cmocka_unit_test(a_reset_stream_cancels_its_exchange_only),
        cmocka_unit_test(many_requests_arrive_and_end_together),
        cmocka_unit_test(a_reset_during_the_response_is_handled),
        cmocka_unit_test(responses_wait_for_the_window_of_the_client),
        cmocka_unit_test(stopping_ends_connections_with_goaway),
        cmocka_unit_test(an_idle_connection_ends_with_goaway),
        cmocka_unit_test(streams_that_stall_are_reset),
        cmocka_unit_test(a_warm_connection_does_not_allocate),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
