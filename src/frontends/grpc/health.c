/* SPDX-License-Identifier: Apache-2.0 */
/* gRPC's health checking protocol. The name of the service is ignored, as in Triton: every service
 * has the health of the server. Watch polls, because the server does not report changes. */
#include "base/clock.h"
#include "base/wire/protobuf_write.h"
#include "frontends/grpc/exchange.h"
#include "frontends/http/thread.h"
#include "frontends/common/status.h"

#define POLL_NS UINT64_C(1000000000)

enum { STATUS = 1, SERVING = 1, NOT_SERVING };

/* Returns the status; NOT_SERVING if the server fails to report it. */
static int health_of(const kelp_grpc_exchange *exchange) {
    bool ready = false;
    kelp_status_free(kelp_grpc_is_ready(exchange, &ready));
    return ready ? SERVING : NOT_SERVING;
}

void kelp_grpc_health_check(kelp_grpc_exchange *exchange, kelp_grpc_request *request) {
    (void)request;
    kelp_protobuf_put_i64(kelp_grpc_begin(exchange), STATUS, health_of(exchange));
    kelp_grpc_reply_end(exchange);
}

/* Sends the status if it has changed, and sets the timer for the next poll. */
static void poll_health(kelp_event_loop_timer *timer) {
    kelp_grpc_exchange *exchange = timer->userp;
    int health = health_of(exchange);
    if (exchange->finishing)
        return;
    if (health != exchange->watched && !exchange->sending) {
        exchange->watched = health;
        kelp_protobuf_put_i64(kelp_grpc_begin(exchange), STATUS, health);
        kelp_grpc_end(exchange);
        exchange->sending = exchange->has_sent = true;
        kelp_http_exchange_send_part(&exchange->base);
    }
    if (atomic_load(&kelp_grpc_service_of(exchange)->draining)) { /* after NOT_SERVING */
        kelp_grpc_finish(exchange, KELP_ERROR(KELP_UNAVAILABLE, "the server is stopping"));
        return;
    }
    kelp_status *status =
        kelp_event_loop_timer_set(exchange->base.thread->loop, timer, kelp_now_ns() + POLL_NS);
    if (status != NULL)
        kelp_grpc_finish(exchange, status);
}

void kelp_grpc_health_watch(kelp_grpc_exchange *exchange, kelp_grpc_request *request) {
    (void)request;
    exchange->poll_timer.fn = poll_health;
    exchange->poll_timer.userp = exchange;
    poll_health(&exchange->poll_timer);
}
