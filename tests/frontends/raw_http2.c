/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "frontends/raw_http2.h"

#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

void raw_send(raw *r, const void *data, size_t length) {
    const char *bytes = data;
    while (length > 0 && !r->failed) {
        ssize_t n = send(r->fd, bytes, length, MSG_NOSIGNAL);
        if (n < 0 && errno == EINTR)
            continue;
        r->failed = n <= 0;
        bytes += n;
        length -= (size_t)n;
    }
}

void raw_frame(raw *r, int type, int flags, uint32_t id, const void *payload, size_t length) {
    uint8_t head[9] = {(uint8_t)(length >> 16), (uint8_t)(length >> 8), (uint8_t)length,
                       (uint8_t)type,           (uint8_t)flags,         (uint8_t)(id >> 24),
                       (uint8_t)(id >> 16),     (uint8_t)(id >> 8),     (uint8_t)id};
    raw_send(r, head, sizeof head);
    raw_send(r, payload, length);
}

void raw_open(raw *r, uint16_t port) {
    static const char preface[] = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
    struct sockaddr_in address = {
        .sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    memset(r, 0, sizeof *r);
    r->fd = socket(AF_INET, SOCK_STREAM, 0);
    assert_int_equal(connect(r->fd, (struct sockaddr *)&address, sizeof address), 0);
    raw_send(r, preface, sizeof preface - 1);
    raw_frame(r, NGHTTP2_SETTINGS, 0, 0, NULL, 0);
}

const uint8_t get_root[] = {0x82, 0x86, 0x84, 0x01, 1, 'h'};
const uint8_t get_hold[] = {0x82, 0x86, 0x01, 1, 'h', 0x04, 5, '/', 'h', 'o', 'l', 'd'};

void raw_get(raw *r, uint32_t id, bool hold) {
    raw_frame(r, NGHTTP2_HEADERS, NGHTTP2_FLAG_END_HEADERS | NGHTTP2_FLAG_END_STREAM, id,
              hold ? get_hold : get_root, hold ? sizeof get_hold : sizeof get_root);
}

void raw_reset(raw *r, uint32_t id) {
    static const uint8_t cancel[4] = {0, 0, 0, NGHTTP2_CANCEL};
    raw_frame(r, NGHTTP2_RST_STREAM, 0, id, cancel, sizeof cancel);
}

bool raw_read(raw *r, int timeout_ms, raw_received *out) {
    for (;;) {
        const uint8_t *head = r->data + r->at;
        size_t left = r->length - r->at, size = 0;
        if (left >= RAW_HEAD_BYTES)
            size = (size_t)head[0] << 16 | (size_t)head[1] << 8 | head[2];
        if (left >= RAW_HEAD_BYTES + size) {
            *out = (raw_received){.type = head[3], .flags = head[4], .length = size};
            out->id = (uint32_t)head[5] << 24 | (uint32_t)head[6] << 16 | (uint32_t)head[7] << 8 |
                      head[8];
            memcpy(out->payload, head + RAW_HEAD_BYTES,
                   size < sizeof out->payload ? size : sizeof out->payload);
            r->at += RAW_HEAD_BYTES + size;
            return true;
        }
        memmove(r->data, head, left);
        r->length = left;
        r->at = 0;
        struct pollfd poll_fd = {.fd = r->fd, .events = POLLIN};
        if (poll(&poll_fd, 1, timeout_ms) != 1)
            return false;
        ssize_t n = recv(r->fd, r->data + left, sizeof r->data - left, 0);
        if (n <= 0) {
            r->at_end = true;
            return false;
        }
        r->length += (size_t)n;
    }
}

int raw_goaway(raw *r) {
    raw_received frame;
    int error = -1;
    while (raw_read(r, 60000, &frame))
        if (frame.type == NGHTTP2_GOAWAY)
            error = frame.payload[7];
    assert_true(r->at_end);
    close(r->fd);
    return error;
}
