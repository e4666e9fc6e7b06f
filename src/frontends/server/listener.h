/* SPDX-License-Identifier: Apache-2.0 */
/* A listening socket and its accept loop. */
#ifndef KELP_FRONTENDS_SERVER_LISTENER_H_
#define KELP_FRONTENDS_SERVER_LISTENER_H_

#include "base/log.h"
#include "base/sync/loop.h"
#include "frontends/http/server.h"

#include <sys/socket.h>

typedef struct kelp_http_listener kelp_http_listener;
/* A listening socket. */
struct kelp_http_listener {
    kelp_allocator allocator;
    const kelp_logger *logger;
    int fd; /* -1 when closed */
    uint16_t port;
    bool adopted;          /* another process has the socket too */
    char *unix_path;       /* removed on close */
    kelp_event_loop *loop; /* NULL until started */
    kelp_event_loop_io io;
    kelp_event_loop_timer timer; /* set while file descriptors or memory are exhausted */
    uint64_t failure_count;      /* since the last connection was accepted */
    /* Takes an accepted, non-blocking socket of a client. Called on the loop's thread. */
    void (*on_accept)(void *userp, int take_fd, const struct sockaddr *client);
    void *userp;
};

/* Binds and listens. `address` is a name, an IPv4 or IPv6 address, or "unix:/path"; port 0 selects
 * a free port. `logger` is borrowed. kelp_http_listener_close must be called, also after a failure.
 * Fails with INVALID_ARGUMENT for an unknown address, UNAVAILABLE for an address in use. */
kelp_status *kelp_http_listener_open(kelp_http_listener *listener, kelp_allocator allocator,
                                     const kelp_logger *logger, const char *address, uint16_t port,
                                     bool reuse_port) KELP_MUST_USE;
/* Opens the listener of an endpoint. If the endpoint has a socket, as of a service manager, a
 * duplicate of it is used, and the caller keeps it open. */
kelp_status *kelp_http_listener_open_endpoint(kelp_http_listener *listener,
                                              kelp_allocator allocator, const kelp_logger *logger,
                                              const kelp_http_endpoint *endpoint) KELP_MUST_USE;
/* Sets the permissions of a unix socket; 0 keeps those of the umask. */
kelp_status *kelp_http_listener_set_mode(kelp_http_listener *listener, unsigned mode) KELP_MUST_USE;
/* Starts accepting connections. kelp_http_listener_stop first accepts those that are pending. */
kelp_status *kelp_http_listener_start(kelp_http_listener *listener, kelp_event_loop *loop,
                                      void (*on_accept)(void *userp, int take_fd,
                                                        const struct sockaddr *client),
                                      void *userp) KELP_MUST_USE;
/* Stops accepting and closes the socket. Connections that wait in an adopted socket are left to the
 * next process that accepts from it. Called on the loop's thread while the loop runs. */
void kelp_http_listener_stop(kelp_http_listener *listener);
/* Frees everything, after the loop has ended. */
void kelp_http_listener_close(kelp_http_listener *listener);

#endif
