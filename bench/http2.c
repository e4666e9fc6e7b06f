/* SPDX-License-Identifier: Apache-2.0 */
#include "http2.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>

enum { FRAME_HEAD_BYTES = 9 };

/* Appends bytes, which are copied if `copy`. Returns false if there is no space. */
static bool put(http2_peer *peer, const void *bytes, size_t length, bool copy) {
    if (peer->count == HTTP2_SEGMENTS || (copy && length > sizeof peer->frames - peer->frame_bytes))
        return false;
    char *at = (char *)(uintptr_t)bytes;
    if (copy) {
        at = peer->frames + peer->frame_bytes;
        memcpy(at, bytes, length);
        peer->frame_bytes += length;
    }
    struct iovec *last = &peer->segments[peer->count - 1];
    if (peer->count > peer->at && (char *)last->iov_base + last->iov_len == at)
        last->iov_len += length;
    else
        peer->segments[peer->count++] = (struct iovec){at, length};
    return true;
}

int http2_send_data(nghttp2_session *session, nghttp2_frame *frame, const uint8_t *head,
                    size_t length, nghttp2_data_source *source, void *userp) {
    (void)session;
    (void)frame;
    http2_peer *peer = userp;
    http2_message *message = source->ptr;
    if (peer->count + 2 > HTTP2_SEGMENTS || !put(peer, head, FRAME_HEAD_BYTES, true))
        return NGHTTP2_ERR_WOULDBLOCK;
    put(peer, message->bytes + message->at, length, false);
    message->at += length;
    return 0;
}

bool http2_start(http2_peer *peer) {
    const nghttp2_settings_entry settings[] = {
        {NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, HTTP2_WINDOW_BYTES},
        {NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS, 1000}};
    return nghttp2_submit_settings(peer->session, NGHTTP2_FLAG_NONE, settings, 2) == 0 &&
           nghttp2_session_set_local_window_size(peer->session, NGHTTP2_FLAG_NONE, 0,
                                                 HTTP2_WINDOW_BYTES) == 0;
}

/* Collects frames of the session until there are none or the output is full. */
static bool generate(http2_peer *peer) {
    peer->at = peer->count = 0;
    peer->frame_bytes = 0;
    while (peer->count + 2 <= HTTP2_SEGMENTS &&
           peer->frame_bytes <= sizeof peer->frames - (1 << 14) - FRAME_HEAD_BYTES) {
        const uint8_t *bytes;
        ssize_t length = nghttp2_session_mem_send(peer->session, &bytes);
        if (length < 0 || (length > 0 && !put(peer, bytes, (size_t)length, true)))
            return false;
        if (length == 0)
            break;
    }
    return true;
}

int http2_flush(http2_peer *peer) {
    for (;;) {
        if (peer->at == peer->count && !generate(peer))
            return -1;
        if (peer->at == peer->count)
            return 1;
        struct msghdr message = {.msg_iov = peer->segments + peer->at,
                                 .msg_iovlen = (size_t)(peer->count - peer->at)};
        ssize_t sent = sendmsg(peer->fd, &message, MSG_DONTWAIT | MSG_NOSIGNAL);
        if (sent < 0)
            return errno == EAGAIN || errno == EWOULDBLOCK ? 0 : -1;
        for (size_t left = (size_t)sent; left > 0;) {
            struct iovec *segment = &peer->segments[peer->at];
            size_t part = left < segment->iov_len ? left : segment->iov_len;
            segment->iov_base = (char *)segment->iov_base + part;
            segment->iov_len -= part;
            left -= part;
            if (segment->iov_len == 0)
                peer->at++;
        }
    }
}
