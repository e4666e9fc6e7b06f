/* SPDX-License-Identifier: Apache-2.0 */
/* The keepalive of a connection. It begins with the first request whose handler has a policy. */
#ifndef KELP_FRONTENDS_H2_KEEPALIVE_H_
#define KELP_FRONTENDS_H2_KEEPALIVE_H_

#include "frontends/http/keepalive.h"

/* The stages at the end of the maximum age. */
typedef enum kelp_http2_age {
    KELP_HTTP2_AGE_YOUNG,
    KELP_HTTP2_AGE_NOTIFIED, /* the client knows that a GOAWAY follows */
    KELP_HTTP2_AGE_ENDED     /* no new streams are processed */
} kelp_http2_age;

/* The state of a connection. Zeroed: no keepalive. */
typedef struct kelp_http2_keepalive {
    const kelp_http_keepalive *policy; /* or NULL */
    uint64_t ping_ns;                  /* of the PING without a response; or 0 */
    uint64_t client_ping_ns;           /* of the latest PING of the client; 0: none since data */
    uint64_t age_ns;                   /* the time of the next stage of the age */
    uint64_t close_ns;                 /* the end of the grace time */
    uint32_t pings;                    /* sent since the last data */
    uint32_t strikes;
    kelp_http2_age age;
} kelp_http2_keepalive;

/* What a connection must do. */
typedef enum kelp_http2_keepalive_action {
    KELP_HTTP2_KEEPALIVE_WAIT,
    KELP_HTTP2_KEEPALIVE_PING,
    KELP_HTTP2_KEEPALIVE_NOTIFY, /* the client that the connection ends */
    KELP_HTTP2_KEEPALIVE_END,    /* process no new streams */
    KELP_HTTP2_KEEPALIVE_CLOSE
} kelp_http2_keepalive_action;

/* Begins, at the first request. `policy` is borrowed. */
void kelp_http2_keepalive_start(kelp_http2_keepalive *k, const kelp_http_keepalive *policy,
                                uint64_t now_ns);
/* Returns the time of the next check. `active_ns`: of the last byte from the client. */
uint64_t kelp_http2_keepalive_due_ns(const kelp_http2_keepalive *k, uint64_t active_ns,
                                     bool has_requests);
/* Returns what is due. Call it again until it returns WAIT. */
kelp_http2_keepalive_action kelp_http2_keepalive_check(kelp_http2_keepalive *k, uint64_t now_ns,
                                                       uint64_t active_ns, bool has_requests);
/* Processes a PING of the client. Returns false for the one that exceeds the limit. */
bool kelp_http2_keepalive_on_ping(kelp_http2_keepalive *k, uint64_t now_ns, bool has_requests);
/* Processes that the server has sent HEADERS or DATA, or WINDOW_UPDATE. */
static inline void kelp_http2_keepalive_on_data(kelp_http2_keepalive *k) {
    k->client_ping_ns = 0;
    k->strikes = 0;
    k->pings = 0;
}
static inline void kelp_http2_keepalive_on_credit(kelp_http2_keepalive *k) {
    k->client_ping_ns = 0;
    k->strikes = 0;
}

#endif
