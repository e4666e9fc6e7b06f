/* SPDX-License-Identifier: Apache-2.0 */
/*
 * HTTP/2 connections (RFC 9113), on nghttp2. Each stream has its own exchange; the exchanges of a
 * connection are processed at the same time. A connection writes once per wake-up, and does not
 * copy large pieces of responses.
 */
#ifndef KELP_FRONTENDS_H2_CONNECTION_H_
#define KELP_FRONTENDS_H2_CONNECTION_H_

#include "frontends/http/thread.h"

/* The bytes that a client sends first. */
#define KELP_HTTP2_PREFACE KELP_STR("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")

/* Creates what the HTTP/2 connections of a thread share. */
kelp_status *kelp_http2_thread_create(kelp_allocator allocator,
                                      kelp_http2_thread **out) KELP_MUST_USE;
/* Frees the memory that is kept for further streams and sessions. */
void kelp_http2_thread_trim(kelp_http2_thread *shared);
/* Frees it, after the last connection. NULL is ignored. */
void kelp_http2_thread_destroy(kelp_http2_thread *shared);

/* Creates an HTTP/2 connection on a socket. Takes the socket if it succeeds. Called on the thread.
 */
kelp_status *kelp_http2_connection_create(kelp_http_thread *thread, int take_fd,
                                          kelp_http_connection **out) KELP_MUST_USE;

#endif
