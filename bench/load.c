/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Open-loop load on an HTTP server: requests arrive at a fixed rate, whether or not earlier ones
 * were answered, with at most a number of requests outstanding.
 *
 *   load PORT PATH BODY HEADER_BYTES RATE SECONDS OUTSTANDING
 *
 * Posts the file BODY to 127.0.0.1:PORT/PATH; HEADER_BYTES is the length of its JSON part (0: all
 * of it). One thread, a kept connection for each outstanding request. The latency of a request
 * begins at the time of its arrival, so it includes the wait for one of the OUTSTANDING
 * connections. RATE 0 is a closed loop: a new request follows each response. Prints one line:
 *
 *   requests per second that arrived, that were answered in time; failed; p50, p90, p99, maximum in
 *   microseconds
 *
 * Requests of the first fifth of the time are not counted. Responses are read for one second after
 * the end; a request without a response by then counts with the time that it has waited.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { MAX_OUTSTANDING = 1024, READ_BYTES = 1 << 18 };

typedef struct connection {
    int fd;
    bool busy;
    size_t sent;       /* bytes of the request */
    size_t head_bytes; /* bytes of the response's head that were read */
    size_t body_left;  /* bytes of the body to be read; valid after the head */
    bool has_head, failed;
    uint64_t arrival_ns; /* of its request */
    char head[8192];
} connection;

static connection connections[MAX_OUTSTANDING];
static unsigned free_list[MAX_OUTSTANDING], free_count, outstanding;
static char *request;
static size_t request_bytes;
static int poller;
static double *latencies; /* microseconds */
static size_t latency_count, latency_capacity;
static uint64_t begin_ns, counted_ns, end_ns;
static uint64_t answered, failed;

static uint64_t now_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static void die(const char *what) {
    perror(what);
    exit(1);
}

static void add_latency(uint64_t arrival_ns, uint64_t done_ns) {
    if (arrival_ns < counted_ns)
        return;
    if (latency_count == latency_capacity) {
        latency_capacity = latency_capacity * 2 + 4096;
        latencies = realloc(latencies, latency_capacity * sizeof *latencies);
        if (!latencies)
            die("realloc");
    }
    latencies[latency_count++] = (double)(done_ns - arrival_ns) / 1e3;
}

static void watch(unsigned index, uint32_t events, int operation) {
    struct epoll_event event = {.events = events, .data.u32 = index};
    if (epoll_ctl(poller, operation, connections[index].fd, &event) != 0)
        die("epoll_ctl");
}

static void connect_to(unsigned index, uint16_t port) {
    const struct sockaddr_in address = {
        .sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int on = 1;
    connection *c = &connections[index];
    c->fd = socket(AF_INET, SOCK_STREAM, 0);
    if (c->fd < 0 || connect(c->fd, (const struct sockaddr *)&address, sizeof address) != 0)
        die("connect");
    setsockopt(c->fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    watch(index, EPOLLIN, EPOLL_CTL_ADD);
    free_list[free_count++] = index;
}

/* Sends the rest of the request, as far as the socket takes it. */
static void continue_sending(unsigned index) {
    connection *c = &connections[index];
    bool was_partial = c->sent > 0;
    while (c->sent < request_bytes) {
        ssize_t sent =
            send(c->fd, request + c->sent, request_bytes - c->sent, MSG_DONTWAIT | MSG_NOSIGNAL);
        if (sent < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) {
            watch(index, EPOLLIN | EPOLLOUT, EPOLL_CTL_MOD);
            return;
        }
        if (sent < 0)
            die("send");
        c->sent += (size_t)sent;
    }
    if (was_partial)
        watch(index, EPOLLIN, EPOLL_CTL_MOD);
}

static void begin(uint64_t arrival_ns) {
    unsigned index = free_list[--free_count];
    connection *c = &connections[index];
    c->busy = true;
    c->sent = c->head_bytes = c->body_left = 0;
    c->has_head = c->failed = false;
    c->arrival_ns = arrival_ns;
    continue_sending(index);
}

static void finish(unsigned index) {
    connection *c = &connections[index];
    uint64_t done_ns = now_ns();
    c->busy = false;
    free_list[free_count++] = index;
    add_latency(c->arrival_ns, done_ns);
    if (c->failed)
        failed++;
    else if (done_ns >= counted_ns && done_ns < end_ns)
        answered++;
}

/* Reads the status and the length of the body from a complete head. */
static void parse_head(connection *c, const char *end) {
    const char *length = NULL;
    for (const char *line = c->head; line < end; line = strstr(line, "\r\n") + 2)
        if (strncasecmp(line, "content-length:", 15) == 0)
            length = line + 15;
    if (!length) {
        fprintf(stderr, "a response without Content-Length\n");
        exit(1);
    }
    c->failed = strncmp(c->head, "HTTP/1.1 200", 12) != 0;
    c->body_left = strtoul(length, NULL, 10);
    c->has_head = true;
}

static void receive(unsigned index) {
    static char bytes[READ_BYTES];
    connection *c = &connections[index];
    ssize_t count = recv(c->fd, bytes, sizeof bytes, MSG_DONTWAIT);
    if (count < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
        return;
    if (count <= 0 || !c->busy)
        die("the server closed a connection");
    size_t body = (size_t)count;
    if (!c->has_head) {
        size_t room = sizeof c->head - 1 - c->head_bytes, before = c->head_bytes;
        size_t part = body < room ? body : room;
        memcpy(c->head + before, bytes, part);
        c->head_bytes += part;
        c->head[c->head_bytes] = '\0';
        const char *end = strstr(c->head, "\r\n\r\n");
        if (!end)
            return;
        parse_head(c, end);
        body -= (size_t)(end + 4 - c->head) - before;
    }
    c->body_left -= body < c->body_left ? body : c->body_left;
    if (c->body_left == 0)
        finish(index);
}

static void wait_for_events(uint64_t until_ns) {
    struct epoll_event events[64];
    uint64_t now = now_ns();
    const struct timespec timeout = {.tv_sec = 0,
                                     .tv_nsec = until_ns > now ? (long)(until_ns - now) : 0};
    int count = epoll_pwait2(poller, events, 64, &timeout, NULL);
    for (int i = 0; i < count; i++) {
        if (events[i].events & EPOLLOUT)
            continue_sending(events[i].data.u32);
        if (events[i].events & (EPOLLIN | EPOLLHUP | EPOLLERR))
            receive(events[i].data.u32);
    }
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

static void read_request(const char *path, const char *url, const char *header_bytes) {
    char head[1024], extension[64] = "";
    FILE *file = fopen(path, "rb");
    if (!file || fseek(file, 0, SEEK_END) != 0)
        die(path);
    size_t size = (size_t)ftell(file);
    rewind(file);
    if (strcmp(header_bytes, "0") != 0)
        snprintf(extension, sizeof extension, "Inference-Header-Content-Length: %s\r\n",
                 header_bytes);
    int head_bytes = snprintf(head, sizeof head,
                              "POST %s HTTP/1.1\r\nHost: localhost\r\n%sContent-Length: %zu\r\n"
                              "\r\n",
                              url, extension, size);
    request_bytes = (size_t)head_bytes + size;
    request = malloc(request_bytes);
    if (!request)
        die("malloc");
    memcpy(request, head, (size_t)head_bytes);
    if (fread(request + head_bytes, 1, size, file) != size)
        die(path);
    fclose(file);
}

int main(int argc, char **argv) {
    if (argc != 8) {
        fprintf(stderr, "usage: load PORT PATH BODY HEADER_BYTES RATE SECONDS OUTSTANDING\n");
        return 2;
    }
    double rate = strtod(argv[5], NULL), seconds = strtod(argv[6], NULL);
    outstanding = (unsigned)strtoul(argv[7], NULL, 10);
    if (outstanding < 1 || outstanding > MAX_OUTSTANDING || seconds <= 0)
        return 2;
    read_request(argv[3], argv[2], argv[4]);
    poller = epoll_create1(0);
    for (unsigned i = 0; i < outstanding; i++)
        connect_to(i, (uint16_t)strtoul(argv[1], NULL, 10));
    begin_ns = now_ns();
    counted_ns = begin_ns + (uint64_t)(seconds * 0.2e9);
    end_ns = begin_ns + (uint64_t)(seconds * 1e9);
    uint64_t next = run(rate);
    drain(next, rate);
    qsort(latencies, latency_count, sizeof *latencies, ascending);
    printf("%.1f %.1f %llu %.0f %.0f %.0f %.0f\n", rate > 0 ? rate : (double)next / seconds,
           (double)answered / (seconds * 0.8), (unsigned long long)failed, quantile(0.5),
           quantile(0.9), quantile(0.99), quantile(1));
    return 0;
}
