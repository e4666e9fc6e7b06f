/* SPDX-License-Identifier: Apache-2.0 */
/* Frames of HTTP/2 that a client library would not send. Include cmocka's headers first. */
#ifndef KELP_TESTS_RAW_HTTP2_H_
#define KELP_TESTS_RAW_HTTP2_H_

#include <nghttp2/nghttp2.h>
#include <stdbool.h>

#define RAW_HEAD_BYTES 9

/* A connection. */
typedef struct raw {
    int fd;
    bool failed;       /* the server closed the connection while bytes were sent */
    bool at_end;       /* the server closed the connection while bytes were read */
    size_t at, length; /* of the unread bytes */
    uint8_t data[1 << 18];
} raw;

/* A received frame, with the beginning of its payload. */
typedef struct raw_received {
    int type, flags;
    uint32_t id;
    size_t length;
    uint8_t payload[64];
} raw_received;

/* :method GET, :scheme http, :authority h, :path / or /hold */
extern const uint8_t get_root[6], get_hold[12];

/* Connects to a port of the loopback interface; sends the preface and empty settings. */
void raw_open(raw *r, uint16_t port);
/* Sends bytes. Sets `failed` if the server has closed the connection. */
void raw_send(raw *r, const void *data, size_t length);
void raw_frame(raw *r, int type, int flags, uint32_t id, const void *payload, size_t length);
/* Sends a request for / or /hold. */
void raw_get(raw *r, uint32_t id, bool hold);
void raw_reset(raw *r, uint32_t id);
/* Reads a frame. Returns false at the end, or if nothing arrives for a time. */
bool raw_read(raw *r, int timeout_ms, raw_received *out);
/* Reads to the end of the connection, closes it, and returns the error of the GOAWAY frame; -1
 * without one. */
int raw_goaway(raw *r);

#endif
