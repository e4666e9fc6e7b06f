/* SPDX-License-Identifier: Apache-2.0 */
#ifndef KELP_FRONTENDS_HTTP_HTTP1_CONNECTION_H_
#define KELP_FRONTENDS_HTTP_HTTP1_CONNECTION_H_

#include "frontends/http/thread.h"

/* Creates an HTTP/1.1 connection on a socket. Takes the socket if it succeeds. Called on the
 * thread.
 */
kelp_status *kelp_http1_connection_create(kelp_http_thread *thread, int take_fd,
                                          kelp_http_connection **out) KELP_MUST_USE;

#endif
