/* SPDX-License-Identifier: Apache-2.0 */
/* The socket of a connection, with or without TLS. Functions are called on the loop's thread. */
#ifndef KELP_FRONTENDS_HTTP_SOCKET_H_
#define KELP_FRONTENDS_HTTP_SOCKET_H_

#include "frontends/http/thread.h"

#include <sys/types.h>
#include <sys/uio.h>

/* Reads like readv: returns 0 at the end, and -1 with errno EAGAIN if nothing has arrived. */
ssize_t kelp_http_socket_read(kelp_http_connection *c, const struct iovec *iov, size_t count);
/* Writes like writev, without a signal. After EAGAIN, the caller must repeat the call with the same
 * bytes, perhaps followed by others. */
ssize_t kelp_http_socket_write(kelp_http_connection *c, struct iovec *iov, size_t count);
/* Polls for events, bits of KELP_LOOP_*. Must be called after the last read of an event, because
 * TLS may hold bytes for which the loop has no event. */
kelp_status *kelp_http_socket_watch(kelp_http_connection *c, uint32_t events) KELP_MUST_USE;
/* Sends what TLS holds. Called when the socket is writable. */
void kelp_http_socket_flush(kelp_http_connection *c);
/* Tells the client that no more data follows. */
void kelp_http_socket_shutdown(kelp_http_connection *c);
/* Closes the socket, which is registered with the loop or not. */
void kelp_http_socket_close(kelp_http_connection *c);

#endif
