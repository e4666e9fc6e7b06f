/* SPDX-License-Identifier: Apache-2.0 */
/* Addresses of workers, and sockets of both transports. */
#ifndef KELP_REMOTE_ENDPOINT_H_
#define KELP_REMOTE_ENDPOINT_H_

#include "remote/channel.h"

/* A parsed address. */
typedef struct kelp_endpoint {
    bool is_tcp;
    char name[256]; /* Unix: path. TCP: host name or address, without brackets */
    char port[6];   /* TCP: number */
} kelp_endpoint;

/* The size of the text of an address, with its NUL. */
#define KELP_ENDPOINT_TEXT_BYTES 272

/* Parses an address (kelp/remote.h). Fails with INVALID_ARGUMENT. */
kelp_status *kelp_endpoint_parse(const char *address, kelp_endpoint *out) KELP_MUST_USE;
/* Connects within `timeout_ns`. A cancellation of `env` (may be NULL) ends the wait. Fails with
 * UNAVAILABLE if nobody accepts the connection. */
kelp_status *kelp_endpoint_connect(const kelp_endpoint *endpoint, uint64_t timeout_ns,
                                   const kelp_op_env *env, int *out_fd) KELP_MUST_USE;
/* Listens. Removes the Unix socket of a process that was killed. Sets `*inout_endpoint` to the
 * address in use, and `*out_public` if other machines can connect. */
kelp_status *kelp_endpoint_listen(kelp_endpoint *inout_endpoint, int *out_fd,
                                  bool *out_public) KELP_MUST_USE;
/* Sets the options of a connected socket: no delay of small segments, and probes that detect a
 * peer that disappeared. */
void kelp_endpoint_tune(const kelp_endpoint *endpoint, int fd);
/* Writes the address as text, and returns it. */
const char *kelp_endpoint_format(const kelp_endpoint *endpoint,
                                 char text[KELP_ENDPOINT_TEXT_BYTES]);

#endif
