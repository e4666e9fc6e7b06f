/* SPDX-License-Identifier: Apache-2.0 */
#include "frontends/h2/keepalive.h"

#include "base/checked.h"

#define SECOND_NS UINT64_C(1000000000)
/* The minimum time between PINGs of clients without requests, that of TCP keepalive. */
#define IDLE_PING_INTERVAL_NS (7200 * SECOND_NS)
/* Between the notification and the end, for requests that the client has sent by then. */
#define NOTICE_NS SECOND_NS
#define JITTER_PARTS 10

static uint64_t later(uint64_t time_ns, uint64_t duration_ns) {
    uint64_t sum;
    return __builtin_add_overflow(time_ns, duration_ns, &sum) ? UINT64_MAX : sum;
}

/* Returns a duration between 90 % and 110 %, so that the connections of many clients do not end at
 * the same time. */
static uint64_t jittered(uint64_t duration_ns, uint64_t seed) {
    if (duration_ns == KELP_HTTP_NEVER_NS)
        return duration_ns;
    uint64_t part_ns = duration_ns / JITTER_PARTS;
    seed *= UINT64_C(0x9e3779b97f4a7c15); /* the golden ratio; mixes the time and the address */
    seed ^= seed >> 32;
    return later(duration_ns - part_ns, seed % (2 * part_ns + 1));
}

void kelp_http2_keepalive_start(kelp_http2_keepalive *k, const kelp_http_keepalive *policy,
                                uint64_t now_ns) {
    k->policy = policy;
    k->age_ns = later(now_ns, jittered(policy->max_age_ns, now_ns ^ (uint64_t)(uintptr_t)k));
}

/* Returns true if the server may send a PING when the client is silent. */
static bool may_ping(const kelp_http2_keepalive *k, bool has_requests) {
    const kelp_http_keepalive *policy = k->policy;
    return (has_requests || policy->without_requests) &&
           (policy->max_pings_without_data == 0 || k->pings < policy->max_pings_without_data);
}

uint64_t kelp_http2_keepalive_due_ns(const kelp_http2_keepalive *k, uint64_t active_ns,
                                     bool has_requests) {
    uint64_t due_ns = k->age_ns;
    if (k->policy == NULL)
        return KELP_HTTP_NEVER_NS;
    if (k->ping_ns > active_ns)
        due_ns = KELP_MIN(due_ns, later(k->ping_ns, k->policy->timeout_ns));
    else if (may_ping(k, has_requests))
        due_ns = KELP_MIN(due_ns, later(active_ns, k->policy->time_ns));
    return due_ns;
}

/* Returns the next action at the end of the maximum age. */
static kelp_http2_keepalive_action check_age(kelp_http2_keepalive *k, uint64_t now_ns) {
    switch (k->age) {
    case KELP_HTTP2_AGE_YOUNG:
        k->age = KELP_HTTP2_AGE_NOTIFIED;
        k->close_ns = later(now_ns, k->policy->max_age_grace_ns);
        k->age_ns = KELP_MIN(later(now_ns, NOTICE_NS), k->close_ns);
        return KELP_HTTP2_KEEPALIVE_NOTIFY;
    case KELP_HTTP2_AGE_NOTIFIED:
        k->age = KELP_HTTP2_AGE_ENDED;
        k->age_ns = k->close_ns;
        return KELP_HTTP2_KEEPALIVE_END;
    case KELP_HTTP2_AGE_ENDED:
        break;
    }
    return KELP_HTTP2_KEEPALIVE_CLOSE;
}

kelp_http2_keepalive_action kelp_http2_keepalive_check(kelp_http2_keepalive *k, uint64_t now_ns,
                                                       uint64_t active_ns, bool has_requests) {
    if (k->policy == NULL)
        return KELP_HTTP2_KEEPALIVE_WAIT;
    if (now_ns >= k->age_ns)
        return check_age(k, now_ns);
    if (k->ping_ns > active_ns)
        return now_ns >= later(k->ping_ns, k->policy->timeout_ns) ? KELP_HTTP2_KEEPALIVE_CLOSE
                                                                  : KELP_HTTP2_KEEPALIVE_WAIT;
    if (now_ns < later(active_ns, k->policy->time_ns) || !may_ping(k, has_requests))
        return KELP_HTTP2_KEEPALIVE_WAIT;
    k->ping_ns = now_ns;
    k->pings++;
    return KELP_HTTP2_KEEPALIVE_PING;
}

bool kelp_http2_keepalive_on_ping(kelp_http2_keepalive *k, uint64_t now_ns, bool has_requests) {
    const kelp_http_keepalive *policy = k->policy;
    if (policy == NULL || policy->max_ping_strikes == 0)
        return true;
    uint64_t interval_ns = has_requests || policy->without_requests ? policy->min_ping_interval_ns
                                                                    : IDLE_PING_INTERVAL_NS;
    bool early = k->client_ping_ns != 0 && now_ns < later(k->client_ping_ns, interval_ns);
    k->client_ping_ns = now_ns;
    return !early || ++k->strikes != policy->max_ping_strikes + 1;
}
