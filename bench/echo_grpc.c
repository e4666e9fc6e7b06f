/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A gRPC server on nghttp2 that sends each message back, in unary calls and streams, without
 * decoding it. The baseline of bench/protocols.py.
 *
 *   echo_grpc THREADS
 *
 * Listens on a free port of 127.0.0.1, and prints it. Each thread has its own connections. One
 * message of a stream is processed at a time: a client sends the next after the response.
 */
#include "echo.h"
#include "http2.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { READ_BYTES = 1 << 16, PREFIX_BYTES = 5, KEPT_CALLS = 64 };

/* A call. */
typedef struct call {
    struct call *next; /* unused, or to be freed */
    char *bytes;       /* the message with its prefix */
    size_t capacity, length;
    http2_message message; /* the response */
    bool responded, deferred, ended;
} call;

/* A connection. */
typedef struct connection {
    http2_peer peer; /* first */
    call *closed;    /* calls whose last bytes may not be written */
    bool partial;
} connection;

static nghttp2_session_callbacks *callbacks;
static _Thread_local call *unused;
static _Thread_local unsigned unused_count;

/* ---- calls ---- */

static call *acquire(void) {
    call *k = unused;
    if (k == NULL)
        k = calloc(1, sizeof *k);
    else {
        unused = k->next;
        unused_count--;
    }
    if (k == NULL)
        abort();
    k->length = 0;
    k->message = (http2_message){0};
    k->responded = k->deferred = k->ended = false;
    return k;
}

static void recycle(call *first) {
    while (first != NULL) {
        call *k = first;
        first = k->next;
        if (unused_count < KEPT_CALLS) {
            k->next = unused;
            unused = k;
            unused_count++;
        } else {
            free(k->bytes);
            free(k);
        }
    }
}

/* Appends bytes; reserves memory for the complete message when its prefix has arrived. */
static void append(call *k, const uint8_t *data, size_t length) {
    size_t needed = k->length + length;
    if (k->length >= PREFIX_BYTES) {
        const uint8_t *p = (const uint8_t *)k->bytes;
        size_t message = (size_t)p[1] << 24 | (size_t)p[2] << 16 | (size_t)p[3] << 8 | p[4];
        needed = message + PREFIX_BYTES > needed ? message + PREFIX_BYTES : needed;
    }
    if (needed > k->capacity) {
        k->bytes = realloc(k->bytes, needed);
        if (k->bytes == NULL)
            abort();
        k->capacity = needed;
    }
    memcpy(k->bytes + k->length, data, length);
    k->length += length;
}

static bool is_complete(const call *k) {
    const uint8_t *p = (const uint8_t *)k->bytes;
    return k->length >= PREFIX_BYTES &&
           k->length - PREFIX_BYTES ==
               ((size_t)p[1] << 24 | (size_t)p[2] << 16 | (size_t)p[3] << 8 | p[4]);
}

/* ---- responses ---- */

static nghttp2_nv header(const char *name, const char *value) {
    return (nghttp2_nv){(uint8_t *)(uintptr_t)name, (uint8_t *)(uintptr_t)value, strlen(name),
                        strlen(value),
                        NGHTTP2_NV_FLAG_NO_COPY_NAME | NGHTTP2_NV_FLAG_NO_COPY_VALUE};
}

static ssize_t on_read(nghttp2_session *session, int32_t id, uint8_t *buffer, size_t length,
                       uint32_t *flags, nghttp2_data_source *source, void *userp) {
    (void)buffer;
    (void)userp;
    const http2_message *message = source->ptr;
    call *k = (call *)((char *)source->ptr - offsetof(call, message));
    size_t left = message->length - message->at, part = left < length ? left : length;
    if (left == 0 && !k->ended) {
        k->length = 0;
        k->deferred = true;
        return NGHTTP2_ERR_DEFERRED;
    }
    *flags = NGHTTP2_DATA_FLAG_NO_COPY;
    if (part == left && k->ended) {
        nghttp2_nv status = header("grpc-status", "0");
        *flags |= NGHTTP2_DATA_FLAG_EOF | NGHTTP2_DATA_FLAG_NO_END_STREAM;
        if (nghttp2_submit_trailer(session, id, &status, 1) != 0)
            return NGHTTP2_ERR_CALLBACK_FAILURE;
    }
    return (ssize_t)part;
}

static int respond(nghttp2_session *session, int32_t id, call *k) {
    const nghttp2_nv headers[] = {header(":status", "200"),
                                  header("content-type", "application/grpc")};
    nghttp2_data_provider provider = {.source.ptr = &k->message, .read_callback = on_read};
    k->message = (http2_message){.bytes = k->bytes, .length = k->length};
    bool first = !k->responded;
    k->responded = true;
    if (first)
        return nghttp2_submit_response(session, id, headers, 2, &provider);
    k->deferred = false;
    return nghttp2_session_resume_data(session, id);
}

/* ---- callbacks of nghttp2 ---- */

static int on_begin(nghttp2_session *session, const nghttp2_frame *frame, void *userp) {
    (void)userp;
    return nghttp2_session_set_stream_user_data(session, frame->hd.stream_id, acquire());
}

static int on_data(nghttp2_session *session, uint8_t flags, int32_t id, const uint8_t *data,
                   size_t length, void *userp) {
    (void)flags;
    (void)userp;
    call *k = nghttp2_session_get_stream_user_data(session, id);
    append(k, data, length);
    return is_complete(k) ? respond(session, id, k) : 0;
}

static int on_frame(nghttp2_session *session, const nghttp2_frame *frame, void *userp) {
    (void)userp;
    if (!(frame->hd.flags & NGHTTP2_FLAG_END_STREAM) ||
        (frame->hd.type != NGHTTP2_DATA && frame->hd.type != NGHTTP2_HEADERS))
        return 0;
    call *k = nghttp2_session_get_stream_user_data(session, frame->hd.stream_id);
    k->ended = true;
    return k->deferred ? nghttp2_session_resume_data(session, frame->hd.stream_id) : 0;
}

static int on_close(nghttp2_session *session, int32_t id, uint32_t error, void *userp) {
    (void)error;
    connection *c = userp;
    call *k = nghttp2_session_get_stream_user_data(session, id);
    if (k != NULL) {
        k->next = c->closed;
        c->closed = k;
    }
    return 0;
}

/* ---- connections ---- */

static void close_connection(connection *c) {
    close(c->peer.fd);
    nghttp2_session_del(c->peer.session); /* calls on_close for the open streams */
    recycle(c->closed);
    free(c);
}

static void on_event(int poller, void *state, bool readable) {
    static _Thread_local uint8_t bytes[READ_BYTES];
    connection *c = state;
    if (readable) {
        ssize_t count = read(c->peer.fd, bytes, sizeof bytes);
        if (count < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
            return;
        if (count <= 0 ||
            nghttp2_session_mem_recv(c->peer.session, bytes, (size_t)count) != count) {
            close_connection(c);
            return;
        }
    }
    int result = http2_flush(&c->peer);
    if (result < 0) {
        close_connection(c);
        return;
    }
    if (result > 0) {
        recycle(c->closed);
        c->closed = NULL;
    }
    if ((result == 0) != c->partial)
        echo_watch(poller, c->peer.fd, c, result == 0);
    c->partial = result == 0;
}

static void *on_accept(int fd) {
    connection *c = calloc(1, sizeof *c);
    if (c == NULL)
        abort();
    c->peer.fd = fd;
    if (nghttp2_session_server_new(&c->peer.session, callbacks, c) != 0 || !http2_start(&c->peer))
        abort();
    return c;
}

int main(int argc, char **argv) {
    if (nghttp2_session_callbacks_new(&callbacks) != 0)
        return 1;
    nghttp2_session_callbacks_set_send_data_callback(callbacks, http2_send_data);
    nghttp2_session_callbacks_set_on_begin_headers_callback(callbacks, on_begin);
    nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks, on_data);
    nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks, on_frame);
    nghttp2_session_callbacks_set_on_stream_close_callback(callbacks, on_close);
    return echo_serve(argc, argv, on_accept, on_event);
}
