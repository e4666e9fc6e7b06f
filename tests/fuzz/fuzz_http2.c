/* SPDX-License-Identifier: Apache-2.0 */
/* Fuzzes HTTP/2 connections: sends the input after the preface to a server whose handler echoes,
 * streams, holds and rejects requests. Whatever arrives, the connection ends and all requests with
 * it. */
#include "base/assert.h"
#include "base/clock.h"
#include "frontends/http/exchange.h"
#include "frontends/http/server.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

typedef struct fuzz_exchange {
    kelp_http_exchange base; /* first */
    bool streams, held, sending, ended;
    size_t unconsumed;
} fuzz_exchange;

static kelp_http_server *server;
static char path[64];   /* of its socket */
static atomic_int live; /* exchanges that are not cleared */

static void on_init(kelp_http_exchange *exchange) {
    (void)exchange;
}

static void on_clear(kelp_http_exchange *exchange) {
    fuzz_exchange *x = (fuzz_exchange *)exchange;
    x->streams = x->held = x->sending = x->ended = false;
    x->unconsumed = 0;
    live--;
}

static void on_head(kelp_http_handler *handler, const kelp_http_request *request,
                    kelp_http_body_rules *inout_rules) {
    (void)handler;
    inout_rules->max_bytes = 10000;
    inout_rules->aligned_offset = request->path.length;
    inout_rules->streamed = request->version == 20 && kelp_str_is(request->path, "/s");
}

static void send_part(fuzz_exchange *x) {
    if (x->sending || x->held)
        return;
    x->sending = true;
    kelp_buf_append_cstr(&x->base.text, "part");
    if (!x->ended) {
        kelp_http_exchange_send_part(&x->base);
        return;
    }
    kelp_http_exchange_add_trailer(&x->base, KELP_STR("T"), KELP_STR("v"));
    kelp_http_exchange_send(&x->base);
}

static void on_request(kelp_http_exchange *exchange) {
    fuzz_exchange *x = (fuzz_exchange *)exchange;
    const kelp_http_request *request = exchange->request;
    live++;
    kelp_http_exchange_respond(exchange, KELP_HTTP_OK);
    if (kelp_str_is(request->path, "/h")) {
        x->held = true;
    } else if (kelp_str_is(request->path, "/s")) {
        x->streams = true;
    } else {
        for (size_t i = 0; i < request->header_count; i++)
            kelp_buf_append_str(&exchange->text, request->headers[i].value);
        kelp_status_free(kelp_http_exchange_add_piece(
            exchange, kelp_http_body_data(&exchange->body), exchange->body.length));
        kelp_http_exchange_send(exchange);
    }
}

static void on_body(kelp_http_exchange *exchange, kelp_str bytes, bool last) {
    fuzz_exchange *x = (fuzz_exchange *)exchange;
    KELP_ASSERT(x->streams && !x->ended);
    x->ended = last;
    x->unconsumed += bytes.length;
    if (x->unconsumed % 2 == 0) { /* sometimes later */
        kelp_http_exchange_consume(exchange, x->unconsumed);
        x->unconsumed = 0;
    }
    send_part(x);
}

static void on_sent(kelp_http_exchange *exchange) {
    fuzz_exchange *x = (fuzz_exchange *)exchange;
    x->sending = false;
    if (x->ended)
        send_part(x);
}

static void on_error(kelp_http_exchange *exchange, kelp_http_status status, const char *text) {
    live++;
    kelp_http_exchange_respond(exchange, status);
    kelp_buf_append_cstr(&exchange->text, text);
}

static void on_cancel(kelp_http_exchange *exchange) {
    kelp_http_exchange_send(exchange);
}

static void on_destroy(kelp_http_handler *handler) {
    (void)handler;
}

static void stop(void) {
    kelp_http_server_destroy(server);
}

static void start(void) {
    static kelp_http_handler handler = {.exchange_bytes = sizeof(fuzz_exchange),
                                        .init = on_init,
                                        .deinit = on_init,
                                        .clear = on_clear,
                                        .on_head = on_head,
                                        .on_request = on_request,
                                        .on_body = on_body,
                                        .on_error = on_error,
                                        .on_sent = on_sent,
                                        .on_cancel = on_cancel,
                                        .destroy = on_destroy};
    char text[sizeof path + 8];
    snprintf(path, sizeof path, P_tmpdir "/kelp-fuzz-http2-%d", (int)getpid());
    snprintf(text, sizeof text, "unix:%s", path);
    kelp_http_endpoint endpoint = {.address = text};
    kelp_http_server_options options = {.endpoints = &endpoint, .endpoint_count = 1, .threads = 1};
    kelp_http_handler *handlers = &handler;
    kelp_status *status = kelp_http_server_create(&handlers, 1, &options, &server);
    if (status == NULL)
        status = kelp_http_server_start(server);
    if (status != NULL)
        abort();
    atexit(stop); /* removes the socket */
}

static void send_all(int fd, const void *data, size_t length) {
    const char *bytes = data;
    while (length > 0) {
        ssize_t n = send(fd, bytes, length, MSG_NOSIGNAL);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return; /* the server has closed the connection */
        bytes += n;
        length -= (size_t)n;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t length);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t length) {
    static const char preface[] = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\4\0\0\0\0";
    static char received[65536];
    if (server == NULL)
        start();
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    memcpy(address.sun_path, path, sizeof path);
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    if (connect(fd, (struct sockaddr *)&address, sizeof address) != 0)
        abort();
    send_all(fd, preface, sizeof preface); /* with the last byte of the SETTINGS frame */
    send_all(fd, data, length);
    shutdown(fd, SHUT_WR);
    while (recv(fd, received, sizeof received, 0) > 0) {
    }
    close(fd);
    uint64_t deadline = kelp_now_ns() + UINT64_C(10000000000);
    while (live > 0 && kelp_now_ns() < deadline)
        usleep(10);
    KELP_ASSERT(live == 0);
    return 0;
}
