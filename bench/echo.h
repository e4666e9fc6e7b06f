/* SPDX-License-Identifier: Apache-2.0 */
/* Common part of the echo servers: threads with epoll that accept connections in turn. */
#ifndef KELP_BENCH_ECHO_H_
#define KELP_BENCH_ECHO_H_

#include <stdbool.h>

/* Creates the state of a connection. */
typedef void *echo_accept_fn(int fd);
/* Processes that a connection has bytes, or space for bytes. Frees the state when it closes. */
typedef void echo_event_fn(int poller, void *state, bool readable);

/* Polls for bytes, or for space for bytes if `writable`. */
void echo_watch(int poller, int fd, void *state, bool writable);
/* Serves until the process ends on a free port of 127.0.0.1, which it prints; the argument is the
 * number of threads. Returns the exit status after a failure. */
int echo_serve(int argc, char **argv, echo_accept_fn *on_accept, echo_event_fn *on_event);

#endif
