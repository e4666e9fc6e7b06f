/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Load generator: an open loop, in which requests arrive at a fixed rate independently of the
 * responses, or a closed loop.
 *
 *   load [--protocol http|grpc|grpc-stream] [--check FILE]
 *        PORT PATH BODY HEADER_BYTES RATE SECONDS OUTSTANDING
 *
 * Posts the file BODY to 127.0.0.1:PORT/PATH; HEADER_BYTES is the length of its JSON part (0: all
 * of it). With gRPC, BODY is a message, and PATH the method; with grpc-stream, all requests of a
 * connection are messages of one call. One thread, a kept connection for each outstanding request.
 * The latency of a request begins at the time of its arrival, so it includes the wait for one of
 * the OUTSTANDING connections. RATE 0 is a closed loop: a new request follows each response. With
 * --check, the first response is written to FILE, and a response that differs from it has failed.
 * Prints one line:
 *
 *   requests per second that arrived, that were answered in time; failed; p50, p90, p99, maximum in
 *   microseconds; all responses
 *
 * Requests of the first fifth of the time are not counted, except in the last number. Responses are
 * read for one second after the end; a request without a response by then counts with the time that
 * it has waited.
 */
#include "load.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { MAX_OUTSTANDING = 1024 };

static const load_protocol *protocol = &load_http1;
static load_connection connections[MAX_OUTSTANDING];
static unsigned free_list[MAX_OUTSTANDING], free_count, outstanding;
static int poller;
static const char *check_path;
static char *expected; /* the first response */
static size_t expected_bytes, expected_capacity;
static bool recording;
static double *latencies; /* microseconds */
static size_t latency_count, latency_capacity;
static uint64_t begin_ns, counted_ns, end_ns;
static uint64_t answered, failed, responses;

_Noreturn void load_die(const char *what) {
    perror(what);
    exit(1);
}

_Noreturn void load_fail(const char *text) {
    fprintf(stderr, "%s\n", text);
    exit(1);
}

void *load_alloc(size_t size) {
    void *memory = calloc(1, size);
    if (!memory)
        load_die("calloc");
    return memory;
}

static uint64_t now_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static void add_latency(uint64_t arrival_ns, uint64_t done_ns) {
    if (arrival_ns < counted_ns)
        return;
    if (latency_count == latency_capacity) {
        latency_capacity = latency_capacity * 2 + 4096;
        latencies = realloc(latencies, latency_capacity * sizeof *latencies);
        if (!latencies)
            load_die("realloc");
    }
    latencies[latency_count++] = (double)(done_ns - arrival_ns) / 1e3;
}

static void control(load_connection *c, uint32_t events, int operation) {
    struct epoll_event event = {.events = events, .data.ptr = c};
    if (epoll_ctl(poller, operation, c->fd, &event) != 0)
        load_die("epoll_ctl");
}

void load_watch(load_connection *c, bool writable) {
    control(c, EPOLLIN | (writable ? EPOLLOUT : 0u), EPOLL_CTL_MOD);
}

static void connect_to(unsigned index, uint16_t port) {
    const struct sockaddr_in address = {
        .sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int on = 1;
    load_connection *c = &connections[index];
    c->index = index;
    c->fd = socket(AF_INET, SOCK_STREAM, 0);
    if (c->fd < 0 || connect(c->fd, (const struct sockaddr *)&address, sizeof address) != 0)
        load_die("connect");
    setsockopt(c->fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    control(c, EPOLLIN, EPOLL_CTL_ADD);
    protocol->open(c);
    free_list[free_count++] = index;
}

static void begin(uint64_t arrival_ns) {
    load_connection *c = &connections[free_list[--free_count]];
    c->busy = true;
    c->failed = false;
    c->response_bytes = 0;
    c->arrival_ns = arrival_ns;
    protocol->begin(c);
}

static void record(const char *bytes, size_t length) {
    while (expected_capacity < expected_bytes + length) {
        expected_capacity = expected_capacity * 2 + 4096;
        expected = realloc(expected, expected_capacity);
        if (!expected)
            load_die("realloc");
    }
    memcpy(expected + expected_bytes, bytes, length);
    expected_bytes += length;
}

void load_receive(load_connection *c, const char *bytes, size_t length) {
    size_t at = c->response_bytes;
    c->response_bytes += length;
    if (recording)
        record(bytes, length);
    else if (check_path != NULL &&
             (c->response_bytes > expected_bytes || memcmp(expected + at, bytes, length) != 0))
        c->failed = true;
}

void load_finish(load_connection *c) {
    uint64_t done_ns = now_ns();
    c->busy = false;
    free_list[free_count++] = c->index;
    if (recording)
        return;
    if (check_path != NULL && c->response_bytes != expected_bytes)
        c->failed = true;
    responses++;
    add_latency(c->arrival_ns, done_ns);
    if (c->failed)
        failed++;
    else if (done_ns >= counted_ns && done_ns < end_ns)
        answered++;
}

static void wait_for_events(uint64_t until_ns) {
    struct epoll_event events[64];
    uint64_t now = now_ns();
    const struct timespec timeout = {.tv_sec = 0,
                                     .tv_nsec = until_ns > now ? (long)(until_ns - now) : 0};
    int count = epoll_pwait2(poller, events, 64, &timeout, NULL);
    for (int i = 0; i < count; i++) {
        if (events[i].events & EPOLLOUT)
            protocol->on_writable(events[i].data.ptr);
        if (events[i].events & (EPOLLIN | EPOLLHUP | EPOLLERR))
            protocol->on_readable(events[i].data.ptr);
    }
}

/* Sends one request, and keeps its response for the comparison. */
static void record_response(void) {
    recording = true;
    begin(now_ns());
    for (uint64_t last_ns = now_ns() + 30000000000u; connections[0].busy;) {
        wait_for_events(now_ns() + 50000000);
        if (now_ns() > last_ns)
            load_fail("the first request got no response");
    }
    recording = false;
    FILE *file = fopen(check_path, "wb");
    if (!file || fwrite(expected, 1, expected_bytes, file) != expected_bytes || fclose(file) != 0)
        load_die(check_path);
    if (connections[0].failed)
        load_fail("the first request failed");
}

/* The backlog of arrivals is a number: the next arrival to be sent, `next`, may be in the past. */
static uint64_t run(double rate) {
    uint64_t next = 0, step_ns = 50000000;
    for (uint64_t now = now_ns(); now < end_ns; now = now_ns()) {
        uint64_t due_ns = now;
        while (free_count > 0) {
            due_ns = rate > 0 ? begin_ns + (uint64_t)((double)next * 1e9 / rate) : now;
            if (due_ns > now)
                break;
            begin(due_ns);
            next++;
        }
        uint64_t until_ns = free_count > 0 && due_ns - now < step_ns ? due_ns : now + step_ns;
        wait_for_events(until_ns < end_ns ? until_ns : end_ns);
    }
    return next;
}

static void drain(uint64_t next, double rate) {
    uint64_t last_ns = end_ns + 1000000000;
    while (free_count < outstanding && now_ns() < last_ns)
        wait_for_events(now_ns() + 50000000);
    uint64_t now = now_ns();
    for (unsigned i = 0; i < outstanding; i++)
        if (connections[i].busy)
            add_latency(connections[i].arrival_ns, now);
    for (; rate > 0; next++) { /* arrivals that no connection took */
        uint64_t arrival_ns = begin_ns + (uint64_t)((double)next * 1e9 / rate);
        if (arrival_ns >= end_ns)
            break;
        add_latency(arrival_ns, now);
    }
}

static int ascending(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double quantile(double q) {
    size_t index = (size_t)(q * (double)latency_count);
    return latency_count ? latencies[index < latency_count ? index : latency_count - 1] : 0;
}

static char *read_file(const char *path, size_t *out_bytes) {
    FILE *file = fopen(path, "rb");
    if (!file || fseek(file, 0, SEEK_END) != 0)
        load_die(path);
    size_t size = (size_t)ftell(file);
    rewind(file);
    char *bytes = load_alloc(size + 1);
    if (fread(bytes, 1, size, file) != size)
        load_die(path);
    fclose(file);
    *out_bytes = size;
    return bytes;
}

/* Returns the index of the first argument that is no option, or 0. */
static int read_options(int argc, char **argv) {
    static const load_protocol *const protocols[] = {&load_http1, &load_grpc, &load_grpc_stream};
    int at = 1;
    for (; at + 1 < argc && strncmp(argv[at], "--", 2) == 0; at += 2) {
        bool known = strcmp(argv[at], "--check") == 0;
        if (known)
            check_path = argv[at + 1];
        for (size_t i = 0; strcmp(argv[at], "--protocol") == 0 && i < 3; i++)
            if (strcmp(argv[at + 1], protocols[i]->name) == 0) {
                protocol = protocols[i];
                known = true;
            }
        if (!known)
            return 0;
    }
    return argc - at == 7 ? at : 0;
}

int main(int argc, char **argv) {
    int first = read_options(argc, argv);
    if (first == 0) {
        fprintf(stderr, "usage: load [--protocol http|grpc|grpc-stream] [--check FILE] "
                        "PORT PATH BODY HEADER_BYTES RATE SECONDS OUTSTANDING\n");
        return 2;
    }
    argv += first;
    uint16_t port = (uint16_t)strtoul(argv[0], NULL, 10);
    double rate = strtod(argv[4], NULL), seconds = strtod(argv[5], NULL);
    outstanding = (unsigned)strtoul(argv[6], NULL, 10);
    if (outstanding < 1 || outstanding > MAX_OUTSTANDING || seconds <= 0)
        return 2;
    size_t body_bytes;
    char *body = read_file(argv[2], &body_bytes);
    protocol->prepare(argv[1], body, body_bytes, strtoul(argv[3], NULL, 10));
    free(body);
    poller = epoll_create1(0);
    connect_to(0, port);
    if (check_path != NULL)
        record_response();
    for (unsigned i = 1; i < outstanding; i++)
        connect_to(i, port);
    begin_ns = now_ns();
    counted_ns = begin_ns + (uint64_t)(seconds * 0.2e9);
    end_ns = begin_ns + (uint64_t)(seconds * 1e9);
    uint64_t next = run(rate);
    drain(next, rate);
    qsort(latencies, latency_count, sizeof *latencies, ascending);
    printf("%.1f %.1f %llu %.0f %.0f %.0f %.0f %llu\n", rate > 0 ? rate : (double)next / seconds,
           (double)answered / (seconds * 0.8), (unsigned long long)failed, quantile(0.5),
           quantile(0.9), quantile(0.99), quantile(1), (unsigned long long)responses);
    return 0;
}
