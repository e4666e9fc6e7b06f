/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of the connection between a client and a worker: frames, failures, addresses, tokens. */
#include "remote/channel.h"
#include "remote/endpoint.h"
#include "remote/token.h"

#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "support/check_status.h"

static kelp_channel near, far;

static int open_pair(void **state) {
    int fds[2];
    (void)state;
    if (socketpair(AF_UNIX, SOCK_STREAM, 0, fds) != 0)
        return -1;
    near = (kelp_channel){.fd = fds[0]};
    far = (kelp_channel){.fd = fds[1]};
    return 0;
}

static int close_pair(void **state) {
    (void)state;
    if (near.fd >= 0)
        close(near.fd);
    close(far.fd);
    return 0;
}

static void close_near(void) {
    close(near.fd);
    near.fd = -1;
}

/* ---- frames ---- */
#define SPANS 200
#define SPAN_BYTES 3001

typedef struct sender {
    kelp_span spans[SPANS];
    kelp_status *status;
} sender;

static void *send_all(void *userp) {
    sender *s = userp;
    s->status = kelp_frame_send(&near, KELP_FRAME_RUN, s->spans, SPANS);
    return NULL;
}

/* More spans than one system call takes, more bytes than the socket holds, and empty spans. */
static void large_frames_arrive_complete(void **state) {
    (void)state;
    static char bytes[SPANS * SPAN_BYTES], found[SPANS * SPAN_BYTES];
    static sender s;
    pthread_t thread;
    kelp_frame_kind kind = KELP_FRAME_LOAD;
    uint64_t length = 0;
    bool ended = true;
    size_t used = 0;
    for (size_t i = 0; i < sizeof bytes; i++)
        bytes[i] = (char)(i * 31 + i / 251);
    for (size_t i = 0; i < SPANS; i++) {
        s.spans[i] = (kelp_span){bytes + used, i % 5 == 0 ? 0 : SPAN_BYTES};
        used += s.spans[i].size_bytes;
    }
    assert_int_equal(pthread_create(&thread, NULL, send_all, &s), 0);
    check_ok(kelp_frame_read_head(&far, &kind, &length, &ended));
    assert_false(ended);
    assert_int_equal(kind, KELP_FRAME_RUN);
    assert_int_equal(length, used);
    check_ok(kelp_channel_read(&far, found, used, NULL));
    pthread_join(thread, NULL);
    check_ok(s.status);
    assert_memory_equal(found, bytes, used);
    close_near(); /* nothing follows */
    check_ok(kelp_frame_read_head(&far, &kind, &length, &ended));
    assert_true(ended);
}

static void every_kind_of_frame_is_recognized(void **state) {
    (void)state;
    for (kelp_frame_kind k = KELP_FRAME_LOAD; k <= KELP_FRAME_TOKEN; k++) {
        kelp_frame_kind kind = 0;
        uint64_t length = 9;
        check_ok(kelp_frame_send(&near, k, NULL, 0));
        check_ok(kelp_frame_read_head(&far, &kind, &length, NULL));
        assert_int_equal(kind, k);
        assert_int_equal(length, 0);
    }
}

static void invalid_heads_are_rejected(void **state) {
    (void)state;
    static const struct {
        char magic[5];
        uint32_t kind;
    } rows[] = {{"KRPC", 0}, {"KRPC", 7}, {"KRPC", UINT32_MAX}, {"KRPD", 1}, {"HTTP", 1}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char head[16] = {0};
        kelp_frame_kind kind;
        uint64_t length;
        memcpy(head, rows[i].magic, 4);
        memcpy(head + 4, &rows[i].kind, 4);
        assert_int_equal(write(near.fd, head, sizeof head), sizeof head);
        expect_failure(kelp_frame_read_head(&far, &kind, &length, NULL), KELP_INVALID_ARGUMENT,
                       "the peer sent an invalid frame");
    }
}

static void a_connection_that_is_closed_is_lost(void **state) {
    (void)state;
    char bytes[8];
    bool ended = true;
    kelp_frame_kind kind;
    uint64_t length;
    assert_int_equal(write(near.fd, "KRPC", 4), 4);
    close_near();
    expect_failure(kelp_frame_read_head(&far, &kind, &length, &ended), KELP_UNAVAILABLE,
                   "the connection was lost: the peer closed it");
    assert_false(ended); /* in the middle of a frame */
    expect_failure(kelp_channel_read(&far, bytes, 8, NULL), KELP_UNAVAILABLE,
                   "the connection was lost: the peer closed it");
    expect_failure(kelp_frame_send(&far, KELP_FRAME_LOADED, NULL, 0), KELP_UNAVAILABLE,
                   "the connection was lost: ");
}

static void waits_end(void **state) {
    (void)state;
    char byte;
    atomic_bool stopped = false;
    far.timeout_ns = 1000000;
    expect_failure(kelp_channel_read(&far, &byte, 1, NULL), KELP_DEADLINE_EXCEEDED,
                   "the peer did not respond within 1 ms");
    far.timeout_ns = 0;
    far.stopped = &stopped;
    assert_int_equal(write(near.fd, "a", 1), 1);
    check_ok(kelp_channel_read(&far, &byte, 1, NULL));
    assert_int_equal(byte, 'a');
    atomic_store(&stopped, true);
    expect_failure(kelp_channel_read(&far, &byte, 1, NULL), KELP_CANCELLED,
                   "the worker was stopped");
}

/* ---- failures ---- */
static void send_failure_bytes(uint32_t code, const char *text) {
    assert_int_equal(write(near.fd, &code, 4), 4);
    assert_int_equal(write(near.fd, text, strlen(text)), strlen(text));
}

static void failures_keep_their_code_and_message(void **state) {
    (void)state;
    kelp_frame_kind kind;
    uint64_t length = 0;
    kelp_status *failure = NULL;
    char text[6000];
    kelp_status *sent = KELP_ERROR(KELP_NOT_FOUND, "there is no %s", "needle");
    check_ok(kelp_frame_send_failure(&near, sent));
    kelp_status_free(sent);
    check_ok(kelp_frame_read_head(&far, &kind, &length, NULL));
    assert_int_equal(kind, KELP_FRAME_FAILED);
    check_ok(kelp_frame_read_failure(&far, length, &failure));
    expect_failure(failure, KELP_NOT_FOUND, "there is no needle");
    /* a long message is cut */
    memset(text, 'a', sizeof text - 1);
    text[sizeof text - 1] = '\0';
    sent = KELP_ERROR(KELP_INTERNAL, "begin %s", text);
    check_ok(kelp_frame_send_failure(&near, sent));
    kelp_status_free(sent);
    check_ok(kelp_frame_read_head(&far, &kind, &length, NULL));
    assert_true(length <= 4096);
    check_ok(kelp_frame_read_failure(&far, length, &failure));
    expect_failure(failure, KELP_INTERNAL, "begin aaaa");
    /* codes of a peer */
    static const struct {
        uint32_t sent;
        kelp_code found;
    } codes[] = {{KELP_OK, KELP_UNKNOWN},
                 {KELP_CANCELLED, KELP_CANCELLED},
                 {KELP_UNAUTHENTICATED, KELP_UNAUTHENTICATED},
                 {KELP_UNAUTHENTICATED + 1, KELP_UNKNOWN},
                 {UINT32_MAX, KELP_UNKNOWN}};
    for (size_t i = 0; i < sizeof codes / sizeof *codes; i++) {
        send_failure_bytes(codes[i].sent, "why");
        check_ok(kelp_frame_read_failure(&far, 7, &failure));
        expect_failure(failure, codes[i].found, "why");
    }
    send_failure_bytes(KELP_INTERNAL, "");
    check_ok(kelp_frame_read_failure(&far, 4, &failure));
    assert_int_equal(kelp_status_code(failure), KELP_INTERNAL);
    kelp_status_free(failure);
    expect_failure(kelp_frame_read_failure(&far, 3, &failure), KELP_INVALID_ARGUMENT,
                   "an invalid failure of 3 bytes: expected 4 to 4096");
    expect_failure(kelp_frame_read_failure(&far, 4097, &failure), KELP_INVALID_ARGUMENT,
                   "an invalid failure of 4097 bytes: expected 4 to 4096");
    assert_null(failure);
}

/* ---- addresses ---- */
static void addresses_are_parsed_and_written(void **state) {
    (void)state;
    static const struct {
        const char *address, *name, *port, *text;
    } rows[] = {{"host:9000", "host", "9000", "host:9000"},
                {":9000", "127.0.0.1", "9000", "127.0.0.1:9000"},
                {"host:0", "host", "0", "host:0"},
                {"host:00080", "host", "80", "host:80"},
                {"host:65535", "host", "65535", "host:65535"},
                {"[::1]:9000", "::1", "9000", "[::1]:9000"},
                {"[h]:1", "h", "1", "h:1"},
                {"/run/worker", "/run/worker", NULL, "/run/worker"},
                {"./a:b", "./a:b", NULL, "./a:b"},
                {"unix:worker", "worker", NULL, "unix:worker"},
                {"unix:/worker", "/worker", NULL, "/worker"}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        kelp_endpoint endpoint, again;
        char text[KELP_ENDPOINT_TEXT_BYTES];
        check_ok(kelp_endpoint_parse(rows[i].address, &endpoint));
        assert_string_equal(endpoint.name, rows[i].name);
        assert_int_equal(endpoint.is_tcp, rows[i].port != NULL);
        assert_string_equal(endpoint.port, rows[i].port != NULL ? rows[i].port : "");
        assert_string_equal(kelp_endpoint_format(&endpoint, text), rows[i].text);
        check_ok(kelp_endpoint_parse(text, &again));
        assert_memory_equal(&endpoint, &again, sizeof again);
    }
    static const char *const wrong[] = {"host:100000", "host:65536", "a:b:2", "[]:2", "host:1x"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        kelp_endpoint endpoint;
        expect_failure(kelp_endpoint_parse(wrong[i], &endpoint), KELP_INVALID_ARGUMENT, "no valid");
    }
}

static void connections_of_both_transports_carry_bytes(void **state) {
    (void)state;
    char folder[] = "/tmp/kelp-channel-XXXXXX", path[64];
    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/socket", folder);
    const char *const addresses[2] = {path, "127.0.0.1:0"};
    for (int i = 0; i < 2; i++) {
        kelp_endpoint endpoint;
        kelp_channel a = {.fd = -1};
        int listener = -1;
        bool is_public = true;
        char byte = 0;
        check_ok(kelp_endpoint_parse(addresses[i], &endpoint));
        check_ok(kelp_endpoint_listen(&endpoint, &listener, &is_public));
        assert_false(is_public);
        check_ok(kelp_endpoint_connect(&endpoint, (uint64_t)5 * 1000000000, NULL, &a.fd));
        kelp_channel b = {.fd = accept(listener, NULL, NULL)};
        assert_true(b.fd >= 0);
        kelp_endpoint_tune(&endpoint, b.fd);
        check_ok(kelp_channel_wait(&a, POLLOUT, 0));
        assert_int_equal(write(a.fd, "x", 1), 1);
        check_ok(kelp_channel_read(&b, &byte, 1, NULL));
        assert_int_equal(byte, 'x');
        close(a.fd);
        close(b.fd);
        close(listener);
        if (i == 0)
            unlink(path);
        expect_failure(kelp_endpoint_connect(&endpoint, (uint64_t)5 * 1000000000, NULL, &a.fd),
                       KELP_UNAVAILABLE, "cannot connect to a worker at '");
        assert_int_equal(a.fd, -1);
    }
    rmdir(folder);
}

/* ---- tokens ---- */
static kelp_token read_token(const char *path, const char *text, size_t length) {
    kelp_token token;
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(text, 1, length, file), length);
    fclose(file);
    check_ok(kelp_token_read(path, &token));
    return token;
}

static void tokens_are_read_without_white_space_at_the_end(void **state) {
    (void)state;
    char path[] = "/tmp/kelp-token-XXXXXX", longest[4096 + 8];
    close(mkstemp(path));
    kelp_token none, token = read_token(path, " a token \t\r\n\n", 13);
    assert_int_equal(token.length, 8);
    assert_memory_equal(token.bytes, " a token", 8);
    for (size_t i = 8; i < KELP_TOKEN_BYTES; i++)
        assert_int_equal(token.bytes[i], 0);
    memset(longest, 'a', sizeof longest);
    token = read_token(path, longest, 4096);
    assert_int_equal(token.length, 4096);
    memset(longest + 4096, '\n', 8);
    token = read_token(path, longest, sizeof longest);
    assert_int_equal(token.length, 4096);
    longest[4096] = 'a';
    FILE *file = fopen(path, "wb");
    assert_int_equal(fwrite(longest, 1, 4097, file), 4097);
    fclose(file);
    expect_failure(kelp_token_read(path, &token), KELP_INVALID_ARGUMENT,
                   "expected 1 to 4096 bytes, found 4097");
    unlink(path);
    expect_failure(kelp_token_read(path, &token), KELP_NOT_FOUND, path);
    check_ok(kelp_token_read(NULL, &none));
    assert_int_equal(none.length, 0);
}

static void tokens_are_equal_if_all_bytes_are(void **state) {
    (void)state;
    kelp_token a = {3, "abc"}, b = {3, "abc"};
    assert_true(kelp_token_equals(&a, &b));
    b.bytes[2] = 'd';
    assert_false(kelp_token_equals(&a, &b));
    b = (kelp_token){3, "dbc"};
    assert_false(kelp_token_equals(&a, &b));
    b = (kelp_token){4, "abcd"};
    assert_false(kelp_token_equals(&a, &b));
    b = (kelp_token){4, "abc"}; /* a NUL at the end */
    assert_false(kelp_token_equals(&a, &b));
    memset(a.bytes, 'a', sizeof a.bytes);
    b = a;
    assert_true(kelp_token_equals(&a, &b));
    b.bytes[KELP_TOKEN_BYTES - 1] = 'b';
    assert_false(kelp_token_equals(&a, &b));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(large_frames_arrive_complete, open_pair, close_pair),
        cmocka_unit_test_setup_teardown(every_kind_of_frame_is_recognized, open_pair, close_pair),
        cmocka_unit_test_setup_teardown(invalid_heads_are_rejected, open_pair, close_pair),
        cmocka_unit_test_setup_teardown(a_connection_that_is_closed_is_lost, open_pair, close_pair),
        cmocka_unit_test_setup_teardown(waits_end, open_pair, close_pair),
        cmocka_unit_test_setup_teardown(failures_keep_their_code_and_message, open_pair,
                                        close_pair),
        cmocka_unit_test(addresses_are_parsed_and_written),
        cmocka_unit_test(connections_of_both_transports_carry_bytes),
        cmocka_unit_test(tokens_are_read_without_white_space_at_the_end),
        cmocka_unit_test(tokens_are_equal_if_all_bytes_are),
    };
    return cmocka_run_group_tests_name("channel", tests, NULL, NULL);
}
