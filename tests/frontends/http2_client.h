/* SPDX-License-Identifier: Apache-2.0 */
/* A blocking HTTP/2 client for tests. Include cmocka's headers first. */
#ifndef KELP_TESTS_HTTP2_CLIENT_H_
#define KELP_TESTS_HTTP2_CLIENT_H_

#include <nghttp2/nghttp2.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A request of the client, and its response. */
typedef struct http2_reply {
    int32_t id;
    const char *body; /* of the request; NULL: the body is sent by http2_client_send_body */
    size_t body_bytes, body_sent;
    bool body_ended;
    int status;
    char head[1024];     /* "name: value\n" for each header but the status */
    char trailers[1024]; /* also those of a response without a body */
    char *data;          /* of the response */
    size_t length, capacity;
    bool ended;     /* END_STREAM was received */
    bool closed;    /* the stream is closed */
    uint32_t error; /* of RST_STREAM */
} http2_reply;

#define HTTP2_CLIENT_REPLIES 512

/* A connection. */
typedef struct http2_client {
    int fd;
    nghttp2_session *session;
    http2_reply replies[HTTP2_CLIENT_REPLIES]; /* reused when the requests are over */
    bool at_end;                               /* the server has closed the connection */
    bool goaway;
    uint32_t goaway_error;
    bool keeps_window; /* gives no credit for data of responses */
} http2_client;

/* Connects to a port of the loopback interface, or takes a connected socket. */
void http2_client_connect(http2_client *client, uint16_t port);
void http2_client_open(http2_client *client, int take_fd);
void http2_client_close(http2_client *client);
/* Sends a request. `body` NULL and body_bytes SIZE_MAX: the body follows. */
http2_reply *http2_client_request(http2_client *client, const char *method, const char *path,
                                  const char *body, size_t body_bytes);
/* Sends a call of gRPC with the bytes of its messages. `coding`: grpc-encoding, or NULL. */
http2_reply *http2_client_call(http2_client *client, const char *path, const char *coding,
                               const void *bytes, size_t length);
/* Sends bytes of a body. Those of the last call must live until the response is complete; earlier
 * ones are sent when the function returns. */
void http2_client_send_body(http2_client *client, http2_reply *reply, const char *body,
                            size_t length, bool last);
/* Sends what was submitted. */
void http2_client_flush(http2_client *client);
/* Sends and receives until a response is complete, or the connection has ended. */
void http2_client_wait(http2_client *client, http2_reply *reply);
/* Sends and receives once. Returns false at the end of the connection. */
bool http2_client_step(http2_client *client);
/* Waits, and checks status and body. */
void http2_client_expect(http2_client *client, http2_reply *reply, int status, const char *body);

#endif
