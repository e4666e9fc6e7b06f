/* SPDX-License-Identifier: Apache-2.0 */
/* HTTP/1.1: posts a body with Inference-Header-Content-Length. */
#include "load.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>

enum { READ_BYTES = 1 << 18 };

/* The state of a connection. */
typedef struct exchange {
    size_t sent;       /* bytes of the request */
    size_t head_bytes; /* bytes of the response's head that were read */
    size_t body_left;  /* bytes of the body to be read; valid after the head */
    bool has_head;
    char head[8192];
} exchange;

static char *request;
static size_t request_bytes;

static void prepare(const char *path, const char *body, size_t body_bytes, size_t json_bytes) {
    char head[1024], extension[64] = "";
    if (json_bytes > 0)
        snprintf(extension, sizeof extension, "Inference-Header-Content-Length: %zu\r\n",
                 json_bytes);
    int head_bytes = snprintf(head, sizeof head,
                              "POST %s HTTP/1.1\r\nHost: localhost\r\n%sContent-Length: %zu\r\n"
                              "\r\n",
                              path, extension, body_bytes);
    request_bytes = (size_t)head_bytes + body_bytes;
    request = load_alloc(request_bytes);
    memcpy(request, head, (size_t)head_bytes);
    memcpy(request + head_bytes, body, body_bytes);
}

static void open_connection(load_connection *c) {
    c->state = load_alloc(sizeof(exchange));
}

/* Sends the rest of the request, as far as the socket takes it. */
static void continue_sending(load_connection *c) {
    exchange *e = c->state;
    bool was_partial = e->sent > 0;
    while (e->sent < request_bytes) {
        ssize_t sent =
            send(c->fd, request + e->sent, request_bytes - e->sent, MSG_DONTWAIT | MSG_NOSIGNAL);
        if (sent < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) {
            load_watch(c, true);
            return;
        }
        if (sent < 0)
            load_die("send");
        e->sent += (size_t)sent;
    }
    if (was_partial)
        load_watch(c, false);
}

static void begin(load_connection *c) {
    exchange *e = c->state;
    e->sent = e->head_bytes = e->body_left = 0;
    e->has_head = false;
    continue_sending(c);
}

/* Reads the status and the length of the body from a complete head. */
static void parse_head(load_connection *c, const char *end) {
    exchange *e = c->state;
    const char *length = NULL;
    for (const char *line = e->head; line < end; line = strstr(line, "\r\n") + 2)
        if (strncasecmp(line, "content-length:", 15) == 0)
            length = line + 15;
    if (!length)
        load_fail("a response without Content-Length");
    c->failed = strncmp(e->head, "HTTP/1.1 200", 12) != 0;
    e->body_left = strtoul(length, NULL, 10);
    e->has_head = true;
}

static void receive(load_connection *c) {
    static char bytes[READ_BYTES];
    exchange *e = c->state;
    ssize_t count = recv(c->fd, bytes, sizeof bytes, MSG_DONTWAIT);
    if (count < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
        return;
    if (count < 0)
        load_die("recv");
    if (count == 0 || !c->busy)
        load_fail("the server closed a connection");
    size_t body = (size_t)count;
    if (!e->has_head) {
        size_t room = sizeof e->head - 1 - e->head_bytes, before = e->head_bytes;
        size_t part = body < room ? body : room;
        memcpy(e->head + before, bytes, part);
        e->head_bytes += part;
        e->head[e->head_bytes] = '\0';
        const char *end = strstr(e->head, "\r\n\r\n");
        if (!end)
            return;
        parse_head(c, end);
        body -= (size_t)(end + 4 - e->head) - before;
    }
    if (body > e->body_left)
        load_fail("bytes after a response");
    load_receive(c, bytes + (size_t)count - body, body);
    e->body_left -= body;
    if (e->body_left == 0)
        load_finish(c);
}

const load_protocol load_http1 = {.name = "http",
                                  .prepare = prepare,
                                  .open = open_connection,
                                  .begin = begin,
                                  .on_readable = receive,
                                  .on_writable = continue_sending};
