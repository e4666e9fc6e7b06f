/* SPDX-License-Identifier: Apache-2.0 */
/* Writes the frames of an nghttp2 session to a socket, for the gRPC benchmarks. */
#ifndef KELP_BENCH_HTTP2_H_
#define KELP_BENCH_HTTP2_H_

#include <nghttp2/nghttp2.h>
#include <stdbool.h>
#include <sys/uio.h>

enum { HTTP2_FRAME_BYTES = 1 << 16, HTTP2_SEGMENTS = 512, HTTP2_WINDOW_BYTES = 1 << 24 };

/* A session with its socket; the user data of the session. */
typedef struct http2_peer {
    nghttp2_session *session;
    int fd;
    int at, count; /* segments that are not written */
    size_t frame_bytes;
    struct iovec segments[HTTP2_SEGMENTS];
    char frames[HTTP2_FRAME_BYTES]; /* all but the bytes of messages */
} http2_peer;

/* A message that is sent without a copy; the source of a data provider. */
typedef struct http2_message {
    const char *bytes;
    size_t length, at;
} http2_message;

/* Implements nghttp2_send_data_callback for sources that are an http2_message. */
int http2_send_data(nghttp2_session *session, nghttp2_frame *frame, const uint8_t *head,
                    size_t length, nghttp2_data_source *source, void *userp);
/* Submits the settings: large windows. Returns false if it fails. */
bool http2_start(http2_peer *peer);
/* Writes pending frames. Returns 1 if all are written, 0 if the socket is full, -1 for an error. */
int http2_flush(http2_peer *peer);

#endif
