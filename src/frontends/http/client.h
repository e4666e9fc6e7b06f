/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The clients of a server by address, with limits on what each of them uses: connections, and
 * requests in flight, which include those that models still process after the client has cancelled
 * them. The addresses of an IPv6 network of 64 bits are one client, and so are all Unix sockets.
 */
#ifndef KELP_FRONTENDS_HTTP_CLIENT_H_
#define KELP_FRONTENDS_HTTP_CLIENT_H_

#include <kelp/allocator.h>
#include <sys/socket.h>

typedef struct kelp_http_client kelp_http_client;
typedef struct kelp_http_clients kelp_http_clients;

/* Limits of a client. */
typedef struct kelp_http_client_limits {
    uint32_t connections;
    uint32_t requests;
} kelp_http_client_limits;

kelp_status *kelp_http_clients_create(kelp_allocator allocator,
                                      const kelp_http_client_limits *limits,
                                      kelp_http_clients **out) KELP_MUST_USE;
/* Frees the table, after all connections and requests. NULL is ignored. */
void kelp_http_clients_destroy(kelp_http_clients *clients);
/* Counts a connection of an address. Fails with RESOURCE_EXHAUSTED if the client has too many. Any
 * thread. */
kelp_status *kelp_http_client_connect(kelp_http_clients *clients, const struct sockaddr *address,
                                      kelp_http_client **out) KELP_MUST_USE;
/* Counts the end of a connection. Any thread. */
void kelp_http_client_disconnect(kelp_http_client *client);
/* Counts a request in flight; returns false if the client has too many. Any thread. */
bool kelp_http_client_begin_request(kelp_http_client *client);
/* Counts the end of a request, perhaps after the last connection. Any thread. */
void kelp_http_client_end_request(kelp_http_client *client);

#endif
