/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The HTTP/1.1 front-end of a TRITONSERVER_Server. It uses the public API of the server only.
 *
 * create, start, stop, destroy, in this order. One event loop a thread; the first one accepts and
 * hands connections out in turn.
 */
#ifndef KELP_FRONTENDS_HTTP_SERVER_H_
#define KELP_FRONTENDS_HTTP_SERVER_H_

#include "base/log.h"

#include <kelp/allocator.h>
#include <triton/core/tritonserver.h>

typedef struct kelp_http_server kelp_http_server;

/* Zero takes the default in every member. Strings are borrowed for the call to create. */
typedef struct kelp_http_server_options {
    const char *address;           /* "0.0.0.0"; a name, an IPv4 or IPv6 address, or "unix:/path" */
    uint16_t port;                 /* 0 picks a free one */
    uint32_t threads;              /* CPUs, at most 8 */
    uint32_t max_connections;      /* 16384; more are refused by closing them */
    uint64_t max_input_size_bytes; /* 64 MiB: JSON, raw and unpacked bodies; see docs/http.md */
    uint64_t max_body_size_bytes;  /* 4 GiB: bodies with binary tensors */
    uint64_t idle_timeout_ns; /* 75 s without a request, or without progress in a body or a reply */
    uint64_t
        header_timeout_ns; /* 20 s from the first byte of a request to the end of its headers */
    bool reuse_port;       /* let several processes share the port */
    kelp_logger logger;
    kelp_allocator allocator; /* the system's when .realloc is NULL */
} kelp_http_server_options;

/* Binds and listens, so that a port in use is reported here. `core` is borrowed until destroy.
 * Connections wait until start. */
kelp_status *kelp_http_server_create(TRITONSERVER_Server *core,
                                     const kelp_http_server_options *options,
                                     kelp_http_server **out) KELP_MUST_USE;
/* Starts the threads. */
kelp_status *kelp_http_server_start(kelp_http_server *server) KELP_MUST_USE;
/* The port that is listened on; 0 for a unix socket. */
uint16_t kelp_http_server_port(const kelp_http_server *server);
/* Accepts no more, closes idle connections at once, gives requests in flight `timeout_ns` to
 * finish, then cancels them and closes. Blocks; any thread but the server's own; once. UNAVAILABLE
 * names how many requests the models would not give up: what those requests use is then left in
 * memory on purpose, also by destroy. */
kelp_status *kelp_http_server_stop(kelp_http_server *server, uint64_t timeout_ns) KELP_MUST_USE;
/* NULL is fine. Stops first, without waiting, when that has not been done. */
void kelp_http_server_destroy(kelp_http_server *server);

#endif
