/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An HTTP server (implemented in frontends/server): listens on endpoints, and passes the requests
 * of its connections to handlers. Each thread runs an event loop. The first thread accepts
 * connections and distributes them round-robin.
 *
 * Call create, start, stop and destroy in this order.
 */
#ifndef KELP_FRONTENDS_HTTP_SERVER_H_
#define KELP_FRONTENDS_HTTP_SERVER_H_

#include "base/log.h"
#include "frontends/request_log/log.h"
#include "frontends/tls/context.h"

#include <kelp/allocator.h>

typedef struct kelp_http_handler kelp_http_handler;
typedef struct kelp_http_server kelp_http_server;

#define KELP_HTTP_MAX_ENDPOINTS 8

/* Defaults of the limits. */
#define KELP_HTTP_MAX_CONNECTIONS 16384
#define KELP_HTTP_MAX_REQUESTS 65536
#define KELP_HTTP_MAX_CLIENT_SHARE 75 /* percent */

/* Returns `percent` of a limit, rounded up. */
static inline uint32_t kelp_http_share(uint32_t limit, uint32_t percent) {
    return (uint32_t)(((uint64_t)limit * percent + 99) / 100);
}

/* An address that a server listens on. */
typedef struct kelp_http_endpoint {
    const char *address;  /* "0.0.0.0" if NULL; a name, an IPv4 or IPv6 address, or "unix:/path" */
    uint16_t port;        /* 0 selects a free port */
    unsigned socket_mode; /* permissions of a unix socket; 0: those of the umask */
    bool reuse_port;      /* several processes may share the port */
    int fd; /* a listening socket, used in place of an address and port; 0: none. It is duplicated
               and stays open, so that connections wait in it after the server stops */
    uint32_t services;           /* bits that handlers find in kelp_http_request.services */
    const kelp_tls_options *tls; /* NULL: without TLS; otherwise TLS only */
} kelp_http_endpoint;

/* Options of a server. 0 selects the default of a member. Strings are borrowed until
 * kelp_http_server_create returns. */
typedef struct kelp_http_server_options {
    const kelp_http_endpoint *endpoints;
    size_t endpoint_count;           /* at least 1, at most KELP_HTTP_MAX_ENDPOINTS */
    uint32_t threads;                /* number of CPUs, at most 8 */
    uint32_t max_connections;        /* 16384; further connections are closed at once */
    uint32_t max_client_connections; /* 3/4 of max_connections, from one address */
    uint32_t max_requests; /* 65536 in flight, in equal parts per thread, rounded up; others: 503 */
    uint32_t max_client_requests; /* 3/4 of max_requests, from one address; others get 429 */
    uint64_t max_body_bytes;      /* of all requests; half of the memory; others get 503 */
    uint64_t idle_timeout_ns; /* 75 s without a request, or without progress in body or response */
    uint64_t header_timeout_ns; /* 20 s from the first byte of a request to the end of its head */
    uint64_t tls_reload_ns;     /* 10 s between checks for changed certificates */
    /* 60 s from the head to the end of the body, and a second for each 16 KiB of it */
    uint64_t body_timeout_ns;
    uint64_t max_kept_bytes; /* none; of large buffers, for reuse until kelp_http_server_trim */
    /* Called after the memory of a large request or response, or of many connections was freed or
     * kept, on any thread, often. NULL: not called. */
    void (*freed_much)(void *userp);
    void *freed_much_userp;
    kelp_request_log *request_log; /* a line for each request; borrowed; NULL: none */
    kelp_logger logger;
    kelp_allocator allocator; /* the system's if .realloc is NULL */
} kelp_http_server_options;

/* Creates a server that listens, but does not accept connections before it is started. A request is
 * passed to the first handler that accepts it; the last one must accept every request. At most
 * KELP_HTTP_MAX_HANDLERS. Takes the handlers, also on failure; copies the array. */
kelp_status *kelp_http_server_create(kelp_http_handler *const *take_handlers, size_t handler_count,
                                     const kelp_http_server_options *options,
                                     kelp_http_server **out) KELP_MUST_USE;
/* Starts the threads. */
kelp_status *kelp_http_server_start(kelp_http_server *server) KELP_MUST_USE;
/* Returns the port of an endpoint; 0 for a unix socket. */
uint16_t kelp_http_server_port(const kelp_http_server *server, size_t endpoint);
/* Returns the time (kelp_now_ns) at which the latest request began; 0 if there was none.
 * Thread-safe. */
uint64_t kelp_http_server_last_request_ns(const kelp_http_server *server);
/* Asks all threads for a sign of life, and returns true if all responded to the previous call. The
 * first call returns true. Called on one thread, between start and stop. */
bool kelp_http_server_probe(kelp_http_server *server);
/* Frees the large buffers that were not used since the last call. With `all`, frees all that are
 * unused, and lets the threads free, soon, the memory that they keep for further requests.
 * Thread-safe, before kelp_http_server_stop. */
void kelp_http_server_trim(kelp_http_server *server, bool all);
/* Accepts the pending connections and stops accepting, closes idle connections, and waits for the
 * requests in flight. Connections that were used in the last second may send a last request for
 * 100 ms. After 7/8 of `timeout_ns`, at most 2 s before its end, cancels the remaining requests and
 * closes their connections. Called once, on a thread that is not the server's.
 * Fails with UNAVAILABLE if models do not release their requests. The memory that those requests
 * use is then never freed. */
kelp_status *kelp_http_server_stop(kelp_http_server *server, uint64_t timeout_ns) KELP_MUST_USE;
/* Frees the server. Stops it without waiting if it is not stopped. NULL is ignored. */
void kelp_http_server_destroy(kelp_http_server *server);

#endif
