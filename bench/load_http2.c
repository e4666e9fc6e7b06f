/* SPDX-License-Identifier: Apache-2.0 */
/* gRPC on nghttp2: unary calls, and a stream that all requests of a connection use. */
#include "http2.h"
#include "load.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

enum { READ_BYTES = 1 << 18, PREFIX_BYTES = 5 };

/* The state of a connection. */
typedef struct call {
    http2_peer peer; /* first */
    load_connection *connection;
    http2_message message;
    int32_t stream;         /* of the streaming call; 0: none */
    size_t prefix_at, left; /* of the response's message */
    uint8_t prefix[PREFIX_BYTES];
    bool deferred, partial;
    bool has_status; /* grpc-status 0 arrived */
} call;

static char *request; /* with its prefix */
static size_t request_bytes;
static const char *path;
static nghttp2_session_callbacks *callbacks;
static bool streaming;

/* ---- callbacks of nghttp2 ---- */

static ssize_t on_read(nghttp2_session *session, int32_t id, uint8_t *buffer, size_t length,
                       uint32_t *flags, nghttp2_data_source *source, void *userp) {
    (void)session;
    (void)id;
    (void)buffer;
    call *k = userp;
    const http2_message *message = source->ptr;
    size_t left = message->length - message->at;
    if (left == 0) {
        k->deferred = true;
        return NGHTTP2_ERR_DEFERRED;
    }
    *flags = NGHTTP2_DATA_FLAG_NO_COPY;
    if (left <= length && !streaming)
        *flags |= NGHTTP2_DATA_FLAG_EOF;
    return (ssize_t)(left < length ? left : length);
}

static int on_header(nghttp2_session *session, const nghttp2_frame *frame, const uint8_t *name,
                     size_t name_bytes, const uint8_t *value, size_t value_bytes, uint8_t flags,
                     void *userp) {
    (void)session;
    (void)frame;
    (void)flags;
    call *k = userp;
    bool is_http = name_bytes == 7 && memcmp(name, ":status", 7) == 0;
    bool is_grpc = name_bytes == 11 && memcmp(name, "grpc-status", 11) == 0;
    k->has_status |= is_grpc && value_bytes == 1 && *value == '0';
    if ((is_http && (value_bytes != 3 || memcmp(value, "200", 3) != 0)) ||
        (is_grpc && !k->has_status))
        k->connection->failed = true;
    return 0;
}

static int on_data(nghttp2_session *session, uint8_t flags, int32_t id, const uint8_t *data,
                   size_t length, void *userp) {
    (void)session;
    (void)flags;
    (void)id;
    call *k = userp;
    while (length > 0) {
        if (k->prefix_at < PREFIX_BYTES) {
            k->prefix[k->prefix_at++] = *data++;
            length--;
            if (k->prefix_at == PREFIX_BYTES)
                k->left = (size_t)k->prefix[1] << 24 | (size_t)k->prefix[2] << 16 |
                          (size_t)k->prefix[3] << 8 | k->prefix[4];
            continue;
        }
        size_t part = length < k->left ? length : k->left;
        if (part == 0)
            load_fail("two response messages for one request");
        load_receive(k->connection, (const char *)data, part);
        data += part;
        length -= part;
        k->left -= part;
    }
    return 0;
}

static int on_close(nghttp2_session *session, int32_t id, uint32_t error, void *userp) {
    (void)session;
    (void)id;
    call *k = userp;
    if (streaming)
        load_fail("the server ended a stream");
    if (error != 0 || !k->has_status || k->left > 0 || k->prefix_at < PREFIX_BYTES)
        k->connection->failed = true;
    k->stream = -1;
    return 0;
}

/* ---- the protocol ---- */

static void prepare(const char *url, const char *body, size_t body_bytes, size_t json_bytes) {
    (void)json_bytes;
    path = url;
    request_bytes = PREFIX_BYTES + body_bytes;
    request = load_alloc(request_bytes);
    for (int i = 1; i < PREFIX_BYTES; i++)
        request[i] = (char)(unsigned char)(body_bytes >> (8 * (PREFIX_BYTES - 1 - i)));
    memcpy(request + PREFIX_BYTES, body, body_bytes);
    if (nghttp2_session_callbacks_new(&callbacks) != 0)
        load_fail("out of memory");
    nghttp2_session_callbacks_set_send_data_callback(callbacks, http2_send_data);
    nghttp2_session_callbacks_set_on_header_callback(callbacks, on_header);
    nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks, on_data);
    nghttp2_session_callbacks_set_on_stream_close_callback(callbacks, on_close);
}

static void prepare_stream(const char *url, const char *body, size_t body_bytes,
                           size_t json_bytes) {
    streaming = true;
    prepare(url, body, body_bytes, json_bytes);
}

static void open_connection(load_connection *c) {
    call *k = load_alloc(sizeof *k);
    c->state = k;
    k->connection = c;
    k->peer.fd = c->fd;
    if (nghttp2_session_client_new(&k->peer.session, callbacks, k) != 0 || !http2_start(&k->peer))
        load_fail("cannot create a session");
}

static nghttp2_nv header(const char *name, const char *value) {
    return (nghttp2_nv){(uint8_t *)(uintptr_t)name, (uint8_t *)(uintptr_t)value, strlen(name),
                        strlen(value),
                        NGHTTP2_NV_FLAG_NO_COPY_NAME | NGHTTP2_NV_FLAG_NO_COPY_VALUE};
}

static void flush(load_connection *c) {
    call *k = c->state;
    int result = http2_flush(&k->peer);
    if (result < 0)
        load_die("send");
    if ((result == 0) != k->partial) {
        k->partial = result == 0;
        load_watch(c, k->partial);
    }
}

static void begin(load_connection *c) {
    call *k = c->state;
    k->message = (http2_message){.bytes = request, .length = request_bytes};
    k->prefix_at = k->left = 0;
    if (streaming && k->stream > 0) {
        if (k->deferred && nghttp2_session_resume_data(k->peer.session, k->stream) != 0)
            load_fail("cannot send a message");
        k->deferred = false;
    } else {
        const nghttp2_nv headers[] = {header(":method", "POST"),
                                      header(":scheme", "http"),
                                      header(":path", path),
                                      header(":authority", "localhost"),
                                      header("te", "trailers"),
                                      header("content-type", "application/grpc"),
                                      header("user-agent", "kelp-load")};
        nghttp2_data_provider provider = {.source.ptr = &k->message, .read_callback = on_read};
        k->has_status = false;
        k->stream = nghttp2_submit_request(k->peer.session, NULL, headers,
                                           sizeof headers / sizeof *headers, &provider, NULL);
        if (k->stream < 0)
            load_fail("cannot start a call");
    }
    flush(c);
}

static void receive(load_connection *c) {
    static uint8_t bytes[READ_BYTES];
    call *k = c->state;
    ssize_t count = recv(c->fd, bytes, sizeof bytes, MSG_DONTWAIT);
    if (count < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
        return;
    if (count < 0)
        load_die("recv");
    if (count == 0)
        load_fail("the server closed a connection");
    if (nghttp2_session_mem_recv(k->peer.session, bytes, (size_t)count) != count)
        load_fail("the server violates HTTP/2");
    bool done = streaming ? k->prefix_at == PREFIX_BYTES && k->left == 0 : k->stream < 0;
    if (c->busy && done)
        load_finish(c); /* may begin the next request */
    flush(c);
}

const load_protocol load_grpc = {.name = "grpc",
                                 .prepare = prepare,
                                 .open = open_connection,
                                 .begin = begin,
                                 .on_readable = receive,
                                 .on_writable = flush};
const load_protocol load_grpc_stream = {.name = "grpc-stream",
                                        .prepare = prepare_stream,
                                        .open = open_connection,
                                        .begin = begin,
                                        .on_readable = receive,
                                        .on_writable = flush};
