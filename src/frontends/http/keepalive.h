/* SPDX-License-Identifier: Apache-2.0 */
/* Keepalive of HTTP/2 connections. The members have the meanings of gRPC's channel arguments. */
#ifndef KELP_FRONTENDS_HTTP_KEEPALIVE_H_
#define KELP_FRONTENDS_HTTP_KEEPALIVE_H_

#include <stdbool.h>
#include <stdint.h>

#define KELP_HTTP_NEVER_NS UINT64_MAX

/* What the server does to detect dead clients, and to protect itself from clients that do the same
 * too often. */
typedef struct kelp_http_keepalive {
    uint64_t time_ns;      /* without a byte from the client, before the server sends PING */
    uint64_t timeout_ns;   /* for any byte from the client after that; then the connection ends */
    bool without_requests; /* also while the connection has no request */
    /* PINGs of the server between two HEADERS or DATA frames that it sends; 0: any number */
    uint32_t max_pings_without_data;
    /* between two PINGs of the client without HEADERS, DATA or WINDOW_UPDATE frames of the server
     * between them; a shorter one is a strike. 2 hours if the connection has no request, unless
     * without_requests */
    uint64_t min_ping_interval_ns;
    uint32_t max_ping_strikes; /* one more ends the connection; 0: any number */
    uint64_t max_age_ns;       /* ±10 %; then GOAWAY. KELP_HTTP_NEVER_NS: none, also of the next */
    uint64_t max_age_grace_ns; /* for the requests of such a connection; then it is closed */
} kelp_http_keepalive;

/* Returns the defaults of gRPC and Triton. */
static inline kelp_http_keepalive kelp_http_keepalive_default(void) {
    const uint64_t second_ns = UINT64_C(1000000000);
    return (kelp_http_keepalive){.time_ns = 7200 * second_ns,
                                 .timeout_ns = 20 * second_ns,
                                 .max_pings_without_data = 2,
                                 .min_ping_interval_ns = 300 * second_ns,
                                 .max_ping_strikes = 2,
                                 .max_age_ns = KELP_HTTP_NEVER_NS,
                                 .max_age_grace_ns = KELP_HTTP_NEVER_NS};
}

#endif
