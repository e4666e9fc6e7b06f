/* SPDX-License-Identifier: Apache-2.0 */
/* Listening sockets that a service manager passes to the process: systemd's socket activation, as
 * in sd_listen_fds(3). */
#ifndef KELP_CLI_SERVE_ACTIVATION_H_
#define KELP_CLI_SERVE_ACTIVATION_H_

#include "frontends/http/server.h"

/* An address of a Unix socket, as "unix:PATH". */
#define KELP_SERVE_ADDRESS_BYTES 128

/* The maximum number of sockets, which leaves endpoints for gRPC and metrics. */
#define KELP_SERVE_MAX_SOCKETS (KELP_HTTP_MAX_ENDPOINTS - 2)

/* A socket that was passed. */
typedef struct kelp_serve_socket {
    const char *service; /* "http", "grpc" or "metrics" */
    int fd;
    char address[KELP_SERVE_ADDRESS_BYTES];
    uint16_t port; /* 0 for a Unix socket */
} kelp_serve_socket;

/* The sockets that were passed. Zeroed: none. */
typedef struct kelp_serve_sockets {
    kelp_serve_socket items[KELP_SERVE_MAX_SOCKETS];
    size_t count;
} kelp_serve_sockets;

/* Takes the sockets that LISTEN_PID, LISTEN_FDS and LISTEN_FDNAMES describe. LISTEN_FDNAMES names
 * the service of each: http, grpc or metrics. A single socket with another name, or without one, is
 * that of HTTP. There are none if the variables are absent or are those of another process.
 * Fails with INVALID_ARGUMENT if a variable is malformed, a name is unknown, or a descriptor is
 * not a listening stream socket. The sockets stay open until the process ends, because the service
 * manager keeps them open too. */
kelp_status *kelp_serve_sockets_take(kelp_serve_sockets *out) KELP_MUST_USE;
/* Returns the number of sockets of a service. */
size_t kelp_serve_sockets_count(const kelp_serve_sockets *sockets, const char *service);

#endif
