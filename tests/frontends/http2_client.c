/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "frontends/http2_client.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

/* ---- callbacks ---- */

static http2_reply *reply_of(nghttp2_session *session, int32_t id) {
    return nghttp2_session_get_stream_user_data(session, id);
}

static int on_header(nghttp2_session *session, const nghttp2_frame *frame, const uint8_t *name,
                     size_t name_bytes, const uint8_t *value, size_t value_bytes, uint8_t flags,
                     void *userp) {
    (void)flags;
    (void)userp;
    http2_reply *reply = reply_of(session, frame->hd.stream_id);
    if (reply == NULL)
        return 0;
    if (name_bytes == 7 && memcmp(name, ":status", 7) == 0) {
        reply->status = atoi((const char *)value);
        return 0;
    }
    char *text = reply->head;
    if (reply->length > 0 || frame->headers.cat == NGHTTP2_HCAT_HEADERS)
        text = reply->trailers;
    size_t at = strlen(text);
    snprintf(text + at, sizeof reply->head - at, "%.*s: %.*s\n", (int)name_bytes,
             (const char *)name, (int)value_bytes, (const char *)value);
    return 0;
}

static int on_data(nghttp2_session *session, uint8_t flags, int32_t id, const uint8_t *data,
                   size_t length, void *userp) {
    (void)flags;
    const http2_client *client = userp;
    http2_reply *reply = reply_of(session, id);
    if (reply != NULL) {
        if (reply->length + length >= reply->capacity) {
            reply->capacity = 2 * (reply->length + length) + 1;
            reply->data = realloc(reply->data, reply->capacity);
        }
        memcpy(reply->data + reply->length, data, length);
        reply->length += length;
        reply->data[reply->length] = 0;
    }
    if (!client->keeps_window)
        assert_int_equal(nghttp2_session_consume(session, id, length), 0);
    return 0;
}

static int on_frame(nghttp2_session *session, const nghttp2_frame *frame, void *userp) {
    http2_client *client = userp;
    http2_reply *reply = reply_of(session, frame->hd.stream_id);
    if (frame->hd.type == NGHTTP2_GOAWAY) {
        client->goaway = true;
        client->goaway_error = frame->goaway.error_code;
    }
    if (reply != NULL && (frame->hd.type == NGHTTP2_DATA || frame->hd.type == NGHTTP2_HEADERS) &&
        (frame->hd.flags & NGHTTP2_FLAG_END_STREAM))
        reply->ended = true;
    return 0;
}

static int on_close(nghttp2_session *session, int32_t id, uint32_t error, void *userp) {
    (void)userp;
    http2_reply *reply = reply_of(session, id);
    if (reply != NULL) {
        reply->closed = true;
        reply->error = error;
    }
    return 0;
}

static ssize_t on_read(nghttp2_session *session, int32_t id, uint8_t *buffer, size_t length,
                       uint32_t *flags, nghttp2_data_source *source, void *userp) {
    (void)session;
    (void)id;
    (void)userp;
    http2_reply *reply = source->ptr;
    size_t n = reply->body_bytes - reply->body_sent;
    if (n > length)
        n = length;
    if (n > 0)
        memcpy(buffer, reply->body + reply->body_sent, n);
    reply->body_sent += n;
    if (reply->body_sent == reply->body_bytes && reply->body_ended)
        *flags |= NGHTTP2_DATA_FLAG_EOF;
    else if (n == 0)
        return NGHTTP2_ERR_DEFERRED;
    return (ssize_t)n;
}

/* ---- the connection ---- */

void http2_client_open(http2_client *client, int take_fd) {
    memset(client, 0, sizeof *client);
    client->fd = take_fd;
    struct timeval patience = {.tv_sec = 60};
    setsockopt(client->fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    nghttp2_session_callbacks *callbacks;
    nghttp2_option *option;
    assert_int_equal(nghttp2_session_callbacks_new(&callbacks), 0);
    assert_int_equal(nghttp2_option_new(&option), 0);
    nghttp2_option_set_no_auto_window_update(option, 1);
    nghttp2_session_callbacks_set_on_header_callback(callbacks, on_header);
    nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks, on_data);
    nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks, on_frame);
    nghttp2_session_callbacks_set_on_stream_close_callback(callbacks, on_close);
    assert_int_equal(nghttp2_session_client_new2(&client->session, callbacks, client, option), 0);
    assert_int_equal(nghttp2_submit_settings(client->session, NGHTTP2_FLAG_NONE, NULL, 0), 0);
    nghttp2_session_callbacks_del(callbacks);
    nghttp2_option_del(option);
}

void http2_client_connect(http2_client *client, uint16_t port) {
    struct sockaddr_in address = {
        .sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = socket(AF_INET, SOCK_STREAM, 0), on = 1;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on); /* for WINDOW_UPDATE */
    assert_int_equal(connect(fd, (struct sockaddr *)&address, sizeof address), 0);
    http2_client_open(client, fd);
}

void http2_client_close(http2_client *client) {
    nghttp2_session_del(client->session);
    for (size_t i = 0; i < HTTP2_CLIENT_REPLIES; i++)
        free(client->replies[i].data);
    close(client->fd);
}

void http2_client_flush(http2_client *client) {
    for (;;) {
        const uint8_t *data;
        ssize_t n = nghttp2_session_mem_send(client->session, &data);
        assert_true(n >= 0);
        if (n == 0)
            return;
        while (n > 0) {
            ssize_t sent = send(client->fd, data, (size_t)n, MSG_NOSIGNAL);
            if (sent < 0 && (errno == EPIPE || errno == ECONNRESET))
                return;
            assert_true(sent > 0);
            data += sent;
            n -= sent;
        }
    }
}

bool http2_client_step(http2_client *client) {
    static uint8_t data[1 << 18];
    http2_client_flush(client);
    ssize_t n = recv(client->fd, data, sizeof data, 0);
    if (n < 0 && errno == EAGAIN)
        fail_msg("the server sent nothing for a minute");
    if (n <= 0) {
        client->at_end = true;
        return false;
    }
    assert_int_equal(nghttp2_session_mem_recv(client->session, data, (size_t)n), n);
    http2_client_flush(client);
    return true;
}

/* ---- requests ---- */

static http2_reply *new_reply(http2_client *client) {
    for (size_t i = 0; i < HTTP2_CLIENT_REPLIES; i++) {
        http2_reply *reply = &client->replies[i];
        if (reply->id != 0 && !reply->closed)
            continue;
        free(reply->data);
        memset(reply, 0, sizeof *reply);
        return reply;
    }
    fail_msg("too many requests");
    return NULL;
}

static nghttp2_nv nv_of(const char *name, const char *value) {
    return (nghttp2_nv){(uint8_t *)(uintptr_t)name, (uint8_t *)(uintptr_t)value, strlen(name),
                        strlen(value), NGHTTP2_NV_FLAG_NONE};
}

http2_reply *http2_client_request(http2_client *client, const char *method, const char *path,
                                  const char *body, size_t body_bytes) {
    http2_reply *reply = new_reply(client);
    char length[24];
    nghttp2_nv nvs[] = {nv_of(":method", method), nv_of(":path", path), nv_of(":scheme", "http"),
                        nv_of(":authority", "localhost"), nv_of("content-length", length)};
    bool later = body == NULL && body_bytes == SIZE_MAX;
    snprintf(length, sizeof length, "%zu", body_bytes);
    nvs[4].valuelen = strlen(length);
    reply->body = body;
    reply->body_bytes = later ? 0 : body_bytes;
    reply->body_ended = !later;
    nghttp2_data_provider provider = {.source.ptr = reply, .read_callback = on_read};
    bool has_body = later || body_bytes > 0;
    reply->id = nghttp2_submit_request(client->session, NULL, nvs, has_body && !later ? 5 : 4,
                                       has_body ? &provider : NULL, reply);
    assert_true(reply->id > 0);
    return reply;
}

http2_reply *http2_client_call(http2_client *client, const char *path, const char *coding,
                               const void *bytes, size_t length) {
    http2_reply *reply = new_reply(client);
    nghttp2_nv nvs[] = {nv_of(":method", "POST"),
                        nv_of(":path", path),
                        nv_of(":scheme", "http"),
                        nv_of(":authority", "localhost"),
                        nv_of("content-type", "application/grpc"),
                        nv_of("te", "trailers"),
                        nv_of("grpc-encoding", coding != NULL ? coding : "identity")};
    reply->body = bytes;
    reply->body_bytes = length;
    reply->body_ended = true;
    nghttp2_data_provider provider = {.source.ptr = reply, .read_callback = on_read};
    reply->id = nghttp2_submit_request(client->session, NULL, nvs, sizeof nvs / sizeof *nvs,
                                       &provider, reply);
    assert_true(reply->id > 0);
    return reply;
}

void http2_client_send_body(http2_client *client, http2_reply *reply, const char *body,
                            size_t length, bool last) {
    assert_int_equal(reply->body_sent, reply->body_bytes);
    reply->body = body;
    reply->body_bytes = length;
    reply->body_sent = 0;
    reply->body_ended = last;
    http2_client_flush(client);
    (void)nghttp2_session_resume_data(client->session, reply->id); /* if it waits */
    http2_client_flush(client);
    while (!last && reply->body_sent < length && !reply->closed && http2_client_step(client)) {
    }
}

void http2_client_wait(http2_client *client, http2_reply *reply) {
    while (!reply->closed && http2_client_step(client)) {
    }
}

void http2_client_expect(http2_client *client, http2_reply *reply, int status, const char *body) {
    http2_client_wait(client, reply);
    if (!reply->ended || reply->status != status ||
        strcmp(reply->data != NULL ? reply->data : "", body) != 0)
        fail_msg("status %d, '%.200s', error %u; expected %d, '%s'", reply->status,
                 reply->data != NULL ? reply->data : "", reply->error, status, body);
}
