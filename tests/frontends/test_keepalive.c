/* SPDX-License-Identifier: Apache-2.0 */
/* Keepalive of HTTP/2: PINGs of the server, too many PINGs of a client, the age of connections; and
 * clients with incomplete requests when the server stops. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/clock.h"
#include "frontends/echo_server.h"
#include "frontends/http2_client.h"
#include "frontends/raw_http2.h"

#include <arpa/inet.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define SECOND_NS UINT64_C(1000000000)
#define MS_NS UINT64_C(1000000)
#define TOO_MANY "too_many_pings"
#define NO_LAST_ID 0x7fffffff

static raw connection;

/* Starts a server with a policy, or without one, and connects. */
static kelp_http_server *start(const kelp_http_keepalive *policy) {
    echo_init(true, 1000);
    echo.base.keepalive = policy;
    kelp_http_server *server = echo_start(NULL, (kelp_http_server_options){0});
    raw_open(&connection, kelp_http_server_port(server, 0));
    return server;
}

static void send_ping(uint8_t flags) {
    static const uint8_t zeros[8];
    raw_frame(&connection, NGHTTP2_PING, flags, 0, zeros, sizeof zeros);
}

/* Reads frames until one has the type, which is not an acknowledgement. Returns false at the end of
 * the connection, or of the time. */
static bool read_type(int type, int timeout_ms, raw_received *out) {
    while (raw_read(&connection, timeout_ms, out))
        if (out->type == type && (type != NGHTTP2_PING || (out->flags & NGHTTP2_FLAG_ACK) == 0))
            return true;
    return false;
}

static uint32_t last_id_of(const raw_received *goaway) {
    const uint8_t *p = goaway->payload;
    return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

/* ---- PINGs of the server ---- */

static void a_client_that_does_not_respond_is_disconnected(void **state) {
    (void)state;
    kelp_http_keepalive policy = kelp_http_keepalive_default();
    policy.time_ns = 50 * MS_NS;
    policy.timeout_ns = 100 * MS_NS;
    kelp_http_server *server = start(&policy);
    raw_get(&connection, 1, true);
    raw_received frame;
    assert_true(read_type(NGHTTP2_PING, 60000, &frame));
    assert_int_equal(frame.length, 8);
    assert_false(read_type(NGHTTP2_PING, 60000, &frame));
    assert_true(connection.at_end);
    echo_wait(&echo.cancelled, 1);
    close(connection.fd);
    echo_stop(server);
}

static void a_client_that_responds_stays_connected(void **state) {
    (void)state;
    kelp_http_keepalive policy = kelp_http_keepalive_default();
    policy.time_ns = 20 * MS_NS;
    policy.timeout_ns = 20 * SECOND_NS;
    policy.max_pings_without_data = 0;
    kelp_http_server *server = start(&policy);
    raw_get(&connection, 1, true);
    raw_received frame;
    for (int i = 0; i < 10; i++) {
        assert_true(read_type(NGHTTP2_PING, 60000, &frame));
        send_ping(NGHTTP2_FLAG_ACK);
    }
    raw_get(&connection, 3, false);
    assert_true(read_type(NGHTTP2_HEADERS, 60000, &frame));
    close(connection.fd);
    echo_wait(&echo.cancelled, 1);
    echo_stop(server);
}

static void pings_without_data_are_limited(void **state) {
    (void)state;
    kelp_http_keepalive policy = kelp_http_keepalive_default();
    policy.time_ns = 20 * MS_NS;
    policy.timeout_ns = 20 * SECOND_NS;
    kelp_http_server *server = start(&policy);
    raw_get(&connection, 1, true);
    raw_received frame;
    for (uint32_t round = 0; round < 2; round++) {
        for (int i = 0; i < 2; i++) {
            assert_true(read_type(NGHTTP2_PING, 60000, &frame));
            send_ping(NGHTTP2_FLAG_ACK);
        }
        assert_false(read_type(NGHTTP2_PING, 300, &frame));
        assert_false(connection.at_end);
        raw_get(&connection, 2 * round + 3, false); /* the response is data */
        assert_true(read_type(NGHTTP2_HEADERS, 60000, &frame));
    }
    close(connection.fd);
    echo_wait(&echo.cancelled, 1);
    echo_stop(server);
}

static void connections_without_requests_need_permission(void **state) {
    (void)state;
    for (int permitted = 0; permitted < 2; permitted++) {
        kelp_http_keepalive policy = kelp_http_keepalive_default();
        policy.time_ns = 50 * MS_NS;
        policy.without_requests = permitted != 0;
        kelp_http_server *server = start(&policy);
        raw_get(&connection, 1, false);
        raw_received frame;
        assert_true(read_type(NGHTTP2_HEADERS, 60000, &frame));
        assert_int_equal(read_type(NGHTTP2_PING, permitted ? 60000 : 300, &frame), permitted);
        close(connection.fd);
        echo_stop(server);
    }
}

/* ---- PINGs of clients ---- */

static void too_many_pings_end_the_connection(void **state) {
    (void)state;
    const kelp_http_keepalive policy = kelp_http_keepalive_default();
    kelp_http_server *server = start(&policy);
    raw_get(&connection, 1, true);
    for (uint32_t i = 0; i < 10; i++) { /* a response permits three */
        raw_received frame;
        for (int k = 0; k < 3; k++)
            send_ping(0);
        raw_get(&connection, 2 * i + 3, false);
        assert_true(read_type(NGHTTP2_HEADERS, 60000, &frame));
    }
    for (int k = 0; k < 4; k++)
        send_ping(0);
    raw_received frame;
    assert_true(read_type(NGHTTP2_GOAWAY, 60000, &frame));
    assert_int_equal(frame.payload[7], NGHTTP2_ENHANCE_YOUR_CALM);
    assert_int_equal(frame.length, 8 + strlen(TOO_MANY));
    assert_memory_equal(frame.payload + 8, TOO_MANY, strlen(TOO_MANY));
    echo_wait(&echo.cancelled, 1);
    (void)raw_goaway(&connection);
    echo_stop(server);
}

static void pings_are_not_counted_without_a_policy_or_at_long_intervals(void **state) {
    (void)state;
    kelp_http_keepalive seldom = kelp_http_keepalive_default();
    kelp_http_keepalive any = kelp_http_keepalive_default();
    seldom.min_ping_interval_ns = 0;
    any.max_ping_strikes = 0;
    const kelp_http_keepalive *policies[] = {NULL, &seldom, &any};
    for (size_t i = 0; i < sizeof policies / sizeof *policies; i++) {
        kelp_http_server *server = start(policies[i]);
        raw_get(&connection, 1, true);
        for (int k = 0; k < 10; k++) {
            send_ping(0);
            usleep(1000);
        }
        raw_get(&connection, 3, false);
        raw_received frame;
        assert_true(read_type(NGHTTP2_HEADERS, 60000, &frame));
        close(connection.fd);
        echo_wait(&echo.cancelled, 1);
        echo_stop(server);
    }
}

static void pings_without_requests_are_counted_by_hours(void **state) {
    (void)state;
    kelp_http_keepalive policy = kelp_http_keepalive_default();
    policy.min_ping_interval_ns = 0;
    kelp_http_server *server = start(&policy);
    raw_get(&connection, 1, false);
    raw_received frame;
    assert_true(read_type(NGHTTP2_HEADERS, 60000, &frame));
    assert_true(read_type(NGHTTP2_DATA, 60000, &frame));
    for (int k = 0; k < 4; k++) {
        send_ping(0);
        usleep(1000);
    }
    assert_int_equal(raw_goaway(&connection), NGHTTP2_ENHANCE_YOUR_CALM);
    echo_stop(server);
}

/* ---- the age ---- */

static void an_old_connection_ends_when_its_requests_do(void **state) {
    (void)state;
    kelp_http_keepalive policy = kelp_http_keepalive_default();
    policy.max_age_ns = 100 * MS_NS;
    kelp_http_server *server = start(&policy);
    uint64_t begin_ns = kelp_now_ns();
    raw_get(&connection, 1, true);
    raw_received frame;
    assert_true(read_type(NGHTTP2_GOAWAY, 60000, &frame));
    assert_true(kelp_now_ns() - begin_ns >= 90 * MS_NS);
    assert_int_equal(last_id_of(&frame), NO_LAST_ID);
    assert_int_equal(frame.payload[7], NGHTTP2_NO_ERROR);
    raw_get(&connection, 3, false); /* the client does not know yet */
    assert_true(read_type(NGHTTP2_HEADERS, 60000, &frame));
    assert_true(read_type(NGHTTP2_GOAWAY, 60000, &frame));
    assert_int_equal(last_id_of(&frame), 3);
    assert_int_equal(echo.cancelled, 0);
    raw_reset(&connection, 1);
    assert_false(read_type(NGHTTP2_GOAWAY, 60000, &frame));
    assert_true(connection.at_end);
    close(connection.fd);
    echo_stop(server);
}

static void requests_of_an_old_connection_have_a_grace_time(void **state) {
    (void)state;
    kelp_http_keepalive policy = kelp_http_keepalive_default();
    policy.max_age_ns = 50 * MS_NS;
    policy.max_age_grace_ns = 100 * MS_NS;
    kelp_http_server *server = start(&policy);
    raw_get(&connection, 1, true);
    assert_int_equal(raw_goaway(&connection), NGHTTP2_NO_ERROR);
    echo_wait(&echo.cancelled, 1);
    echo_stop(server);
}

/* ---- stopping ---- */

typedef struct stopper {
    kelp_http_server *server;
    uint64_t duration_ns;
} stopper;

static void *stop_server(void *userp) {
    stopper *s = userp;
    uint64_t begin_ns = kelp_now_ns();
    assert_null(kelp_http_server_stop(s->server, 60 * SECOND_NS));
    s->duration_ns = kelp_now_ns() - begin_ns;
    return NULL;
}

static void incomplete_requests_have_a_second_when_the_server_stops(void **state) {
    (void)state;
    static http2_client client;
    static const char head[] = "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 9\r\n\r\nhalf";
    for (int http2 = 0; http2 < 2; http2++) {
        echo_init(http2 != 0, 1000);
        stopper s = {.server = echo_start(NULL, (kelp_http_server_options){0})};
        uint16_t port = kelp_http_server_port(s.server, 0);
        pthread_t id;
        char text[1024] = "";
        struct sockaddr_in address = {.sin_family = AF_INET,
                                      .sin_port = htons(port),
                                      .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
        int fd = -1;
        http2_reply *reply = NULL;
        if (http2) {
            http2_client_connect(&client, port);
            reply = http2_client_request(&client, "POST", "/", NULL, SIZE_MAX);
            http2_client_send_body(&client, reply, "half", 4, false);
        } else {
            fd = socket(AF_INET, SOCK_STREAM, 0);
            assert_int_equal(connect(fd, (struct sockaddr *)&address, sizeof address), 0);
            assert_int_equal(send(fd, head, sizeof head - 1, MSG_NOSIGNAL), sizeof head - 1);
        }
        usleep(50000);
        assert_int_equal(pthread_create(&id, NULL, stop_server, &s), 0);
        if (http2) {
            http2_client_wait(&client, reply);
            assert_int_equal(reply->status, 503);
            assert_non_null(strstr(reply->data, "the server is stopping"));
            http2_client_close(&client);
        } else {
            size_t length = 0;
            for (ssize_t n; (n = recv(fd, text + length, sizeof text - 1 - length, 0)) > 0;)
                length += (size_t)n;
            assert_non_null(strstr(text, "HTTP/1.1 503 "));
            assert_non_null(strstr(text, "the server is stopping"));
            close(fd);
        }
        pthread_join(id, NULL);
        assert_in_range(s.duration_ns, 900 * MS_NS, 10 * SECOND_NS);
        echo_stop(s.server);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_client_that_does_not_respond_is_disconnected),
        cmocka_unit_test(a_client_that_responds_stays_connected),
        cmocka_unit_test(pings_without_data_are_limited),
        cmocka_unit_test(connections_without_requests_need_permission),
        cmocka_unit_test(too_many_pings_end_the_connection),
        cmocka_unit_test(pings_are_not_counted_without_a_policy_or_at_long_intervals),
        cmocka_unit_test(pings_without_requests_are_counted_by_hours),
        cmocka_unit_test(an_old_connection_ends_when_its_requests_do),
        cmocka_unit_test(requests_of_an_old_connection_have_a_grace_time),
        cmocka_unit_test(incomplete_requests_have_a_second_when_the_server_stops),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
