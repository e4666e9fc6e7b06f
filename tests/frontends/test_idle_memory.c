/* SPDX-License-Identifier: Apache-2.0 */
/* The memory of idle connections, which had a request before. TLS: tests/e2e/test_tls.py. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "frontends/echo_server.h"
#include "frontends/raw_http2.h"

#include <arpa/inet.h>
#include <malloc.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#define CONNECTIONS 1000
#define WARM_CONNECTIONS 100
#define BODY_BYTES ((size_t)200000)
#define HTTP1_MAX_BYTES 1024
#define HTTP2_MAX_BYTES 8192

static int fds[CONNECTIONS + WARM_CONNECTIONS];

static int dial(uint16_t port) {
    struct sockaddr_in address = {
        .sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = socket(AF_INET, SOCK_STREAM, 0), on = 1;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    assert_int_equal(connect(fd, (struct sockaddr *)&address, sizeof address), 0);
    return fd;
}

static void send_all(int fd, const void *data, size_t length) {
    const char *bytes = data;
    while (length > 0) {
        ssize_t n = send(fd, bytes, length, MSG_NOSIGNAL);
        assert_true(n > 0);
        bytes += n;
        length -= (size_t)n;
    }
}

/* Reads until the bytes end in `tail`. */
static void read_to(int fd, const void *tail, size_t length) {
    static char data[1 << 16];
    size_t have = 0;
    while (have < length || memcmp(data + have - length, tail, length) != 0) {
        size_t kept = have < length ? have : length;
        memmove(data, data + have - kept, kept);
        ssize_t n = recv(fd, data + kept, sizeof data - kept, 0);
        assert_true(n > 0);
        have = kept + (size_t)n;
    }
}

/* ---- requests ---- */

static void get(int fd) {
    static const char text[] = "GET / HTTP/1.1\r\nHost: localhost\r\nUser-Agent: test/1.0\r\n\r\n";
    send_all(fd, text, sizeof text - 1);
    read_to(fd, "echo:", 5);
}

static void post(int fd) {
    static const char text[] =
        "POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 200000\r\n\r\n";
    static char body[BODY_BYTES];
    memset(body, 'x', sizeof body);
    body[sizeof body - 1] = 'y';
    send_all(fd, text, sizeof text - 1);
    send_all(fd, body, sizeof body);
    read_to(fd, "xy", 2);
}

static uint8_t head[1024]; /* HEADERS of a call of gRPC */
static size_t head_bytes;

static nghttp2_nv nv_of(const char *name, const char *value) {
    return (nghttp2_nv){(uint8_t *)(uintptr_t)name, (uint8_t *)(uintptr_t)value, strlen(name),
                        strlen(value), NGHTTP2_NV_FLAG_NONE};
}

/* Encodes the head that gRPC's Python library sends first. */
static void encode_head(void) {
    nghttp2_hd_deflater *deflater;
    nghttp2_nv nvs[] = {nv_of(":scheme", "http"),
                        nv_of(":method", "POST"),
                        nv_of(":authority", "localhost:8001"),
                        nv_of(":path", "/inference.GRPCInferenceService/ModelInfer"),
                        nv_of("te", "trailers"),
                        nv_of("content-type", "application/grpc"),
                        nv_of("user-agent", "grpc-python/1.62.0 grpc-c/39.0.0 (linux; chttp2)"),
                        nv_of("grpc-accept-encoding", "identity, deflate, gzip"),
                        nv_of("grpc-timeout", "59S")};
    assert_int_equal(nghttp2_hd_deflate_new(&deflater, 4096), 0);
    ssize_t n = nghttp2_hd_deflate_hd(deflater, head, sizeof head, nvs, sizeof nvs / sizeof *nvs);
    assert_true(n > 0);
    head_bytes = (size_t)n;
    nghttp2_hd_deflate_del(deflater);
}

static void send_frame(int fd, int type, int flags, uint32_t id, const void *payload,
                       size_t length) {
    const uint8_t start[RAW_HEAD_BYTES] = {
        (uint8_t)(length >> 16), (uint8_t)(length >> 8), (uint8_t)length,
        (uint8_t)type,           (uint8_t)flags,         (uint8_t)(id >> 24),
        (uint8_t)(id >> 16),     (uint8_t)(id >> 8),     (uint8_t)id};
    send_all(fd, start, sizeof start);
    send_all(fd, payload, length);
}

static void call(int fd) {
    static const char preface[] = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
    static const uint8_t body[1000];
    send_all(fd, preface, sizeof preface - 1);
    send_frame(fd, NGHTTP2_SETTINGS, 0, 0, NULL, 0);
    send_frame(fd, NGHTTP2_SETTINGS, NGHTTP2_FLAG_ACK, 0, NULL, 0);
    send_frame(fd, NGHTTP2_HEADERS, NGHTTP2_FLAG_END_HEADERS, 1, head, head_bytes);
    send_frame(fd, NGHTTP2_DATA, NGHTTP2_FLAG_END_STREAM, 1, body, sizeof body);
    read_to(fd, body, sizeof body);
}

/* ---- the measurement ---- */

/* Bytes of the heap, and of all memory. */
typedef struct usage {
    size_t heap, resident;
} usage;

static usage measure_usage(void) {
    size_t pages = 0;
    usleep(2500000); /* idle connections return memory after a second */
    FILE *file = fopen("/proc/self/statm", "r");
    assert_non_null(file);
    assert_int_equal(fscanf(file, "%*s %zu", &pages), 1);
    fclose(file);
    struct mallinfo2 info = mallinfo2();
    return (usage){.heap = info.uordblks + info.hblkhd,
                   .resident = pages * (size_t)sysconf(_SC_PAGESIZE)};
}

static size_t per_connection(size_t before, size_t after) {
    return after > before ? (after - before) / CONNECTIONS : 0;
}

/* Returns the memory of an idle connection after a request. */
static usage measure(bool http2, void (*exchange)(int fd)) {
    echo_init(http2, BODY_BYTES);
    kelp_http_server *server = echo_start(NULL, (kelp_http_server_options){0});
    uint16_t port = kelp_http_server_port(server, 0);
    usage before = {0};
    for (size_t i = 0; i < CONNECTIONS + WARM_CONNECTIONS; i++) {
        if (i == WARM_CONNECTIONS)
            before = measure_usage();
        fds[i] = dial(port);
        exchange(fds[i]);
    }
    usage after = measure_usage();
    for (size_t i = 0; i < CONNECTIONS + WARM_CONNECTIONS; i++)
        close(fds[i]);
    echo_stop(server);
    return (usage){.heap = per_connection(before.heap, after.heap),
                   .resident = per_connection(before.resident, after.resident)};
}

static void allow_files(void) {
    struct rlimit limit;
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
    limit.rlim_cur = limit.rlim_max;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
    if (limit.rlim_cur < 3 * CONNECTIONS)
        skip();
}

static void idle_connections_use_little_memory(void **state) {
    (void)state;
    static const struct {
        const char *name;
        bool http2;
        void (*exchange)(int fd);
        size_t max_bytes;
    } cases[] = {{"HTTP/1.1, GET", false, get, HTTP1_MAX_BYTES},
                 {"HTTP/1.1, POST", false, post, HTTP1_MAX_BYTES},
                 {"HTTP/2", true, call, HTTP2_MAX_BYTES}};
    allow_files();
    encode_head();
    int over = 0;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        usage used = measure(cases[i].http2, cases[i].exchange);
        print_message("%s: %zu bytes of the heap, %zu resident\n", cases[i].name, used.heap,
                      used.resident);
        /* HTTP/1.1 frees blocks of the heap, which remain resident between others; HTTP/2 returns
         * pages of blocks that it does not free */
        over += (cases[i].http2 ? used.resident : used.heap) > cases[i].max_bytes;
    }
    assert_int_equal(over, 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(idle_connections_use_little_memory)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
