/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A server with a small protocol that is independent of inference, for tests of the transports.
 * Include cmocka's headers first. Paths:
 *
 *   /          "echo:" and the body, as do /blocking, /thread (later), and /head (headers)
 *   /hold      no response before the request is cancelled
 *   /parts     a response in parts, with a trailer
 *   /stream    the body, in parts, as it arrives (HTTP/2)
 *   /swallow   no response; gives credit for the body unless echo.swallow (HTTP/2)
 *   /refuse    a response before the end of the body
 */
#ifndef KELP_TESTS_ECHO_SERVER_H_
#define KELP_TESTS_ECHO_SERVER_H_

#include "frontends/http/exchange.h"
#include "frontends/http/server.h"

#define ECHO_SERVICES 7
#define ECHO_SECOND_NS UINT64_C(1000000000)

/* What the server counts, and what tests select after echo_init. */
typedef struct echo_state {
    kelp_http_handler base; /* first */
    atomic_int created, destroyed, cleared, cancelled, requests;
    atomic_size_t received;
    atomic_uint allocations;
    atomic_bool handler_destroyed;
    atomic_bool swallow; /* /swallow gives no credit */
    bool http2;          /* the version of HTTP that is expected */
    uint64_t max_body_bytes;
} echo_state;

extern echo_state echo;

/* Resets the state. */
void echo_init(bool http2, uint64_t max_body_bytes);
/* Starts a server with two threads, after echo_init. `address` NULL: the loopback interface. */
kelp_http_server *echo_start(const char *address, kelp_http_server_options options);
/* Stops and frees the server, which has no requests. */
void echo_stop(kelp_http_server *server);
/* Waits until a counter has a value. */
void echo_wait(atomic_int *value, int expected);

#endif
