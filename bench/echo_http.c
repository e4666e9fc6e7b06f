/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An HTTP server that does the least work for a request: reads it up to the end that
 * Content-Length gives, and sends its body back. The baseline of bench/protocols.py.
 *
 *   echo_http THREADS
 *
 * Listens on a free port of 127.0.0.1, and prints it. Each thread has its own connections.
 */
#include "echo.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

enum { INITIAL_BYTES = 1 << 14 };

/* A connection with at most one request. */
typedef struct connection {
    int fd;
    char *bytes;
    size_t capacity, length;
    size_t head_bytes, total_bytes; /* of the request, after its head arrived; otherwise 0 */
    char head[128];                 /* of the response */
    struct iovec parts[2];          /* of the response, without the bytes that are sent */
    bool partial;
} connection;

static void reserve(connection *c, size_t bytes) {
    if (bytes <= c->capacity)
        return;
    c->bytes = realloc(c->bytes, bytes);
    if (!c->bytes)
        abort();
    c->capacity = bytes;
}

static void close_connection(connection *c) {
    close(c->fd);
    free(c->bytes);
    free(c);
}

/* Writes the response. Returns false if the connection failed. */
static bool respond(int poller, connection *c) {
    while (c->parts[1].iov_len > 0) {
        int skip = c->parts[0].iov_len == 0;
        ssize_t sent = writev(c->fd, c->parts + skip, 2 - skip);
        if (sent < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) {
            if (!c->partial)
                echo_watch(poller, c->fd, c, true);
            c->partial = true;
            return true;
        }
        if (sent <= 0)
            return false;
        for (int i = 0; i < 2; i++) {
            size_t part = (size_t)sent < c->parts[i].iov_len ? (size_t)sent : c->parts[i].iov_len;
            c->parts[i].iov_base = (char *)c->parts[i].iov_base + part;
            c->parts[i].iov_len -= part;
            sent -= (ssize_t)part;
        }
    }
    if (c->partial)
        echo_watch(poller, c->fd, c, false);
    c->partial = false;
    c->length = c->head_bytes = c->total_bytes = 0;
    return true;
}

/* Finds the end of the request in its head. */
static void parse_head(connection *c) {
    const char *end = memmem(c->bytes, c->length, "\r\n\r\n", 4);
    if (end == NULL)
        return;
    static const char name[] = "\r\nContent-Length: ";
    const char *length = memmem(c->bytes, c->length, name, sizeof name - 1);
    if (length == NULL || length > end)
        abort();
    c->head_bytes = (size_t)(end + 4 - c->bytes);
    c->total_bytes = c->head_bytes + strtoul(length + sizeof name - 1, NULL, 10);
    reserve(c, c->total_bytes);
}

static void on_event(int poller, void *state, bool readable) {
    connection *c = state;
    if (!readable) {
        if (!respond(poller, c))
            close_connection(c);
        return;
    }
    ssize_t count = read(c->fd, c->bytes + c->length, c->capacity - c->length);
    if (count < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
        return;
    if (count <= 0) {
        close_connection(c);
        return;
    }
    c->length += (size_t)count;
    if (c->head_bytes == 0)
        parse_head(c);
    if (c->head_bytes == 0 || c->length < c->total_bytes)
        return;
    size_t body_bytes = c->total_bytes - c->head_bytes;
    int head_bytes = snprintf(c->head, sizeof c->head,
                              "HTTP/1.1 200 OK\r\nContent-Type: application/octet-stream\r\n"
                              "Content-Length: %zu\r\n\r\n",
                              body_bytes);
    c->parts[0] = (struct iovec){c->head, (size_t)head_bytes};
    c->parts[1] = (struct iovec){c->bytes + c->head_bytes, body_bytes};
    if (!respond(poller, c))
        close_connection(c);
}

static void *on_accept(int fd) {
    connection *c = calloc(1, sizeof *c);
    if (!c)
        abort();
    c->fd = fd;
    reserve(c, INITIAL_BYTES);
    return c;
}

int main(int argc, char **argv) {
    return echo_serve(argc, argv, on_accept, on_event);
}
