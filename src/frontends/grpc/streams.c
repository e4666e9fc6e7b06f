/* SPDX-License-Identifier: Apache-2.0 */
/* The open streams of a server. When it stops, idle streams would delay it until its timeout, so
 * that they are ended. */
#include "base/assert.h"
#include "frontends/grpc/exchange.h"
#include "frontends/http/thread.h"

#define IDLE_NS UINT64_C(1000000000)

void kelp_grpc_stream_open(kelp_grpc_exchange *exchange) {
    kelp_grpc_service *service = kelp_grpc_service_of(exchange);
    KELP_ASSERT(!exchange->listed);
    exchange->used_ns = kelp_event_loop_now_ns(exchange->base.thread->loop);
    exchange->listed = true;
    exchange->previous_stream = NULL;
    pthread_mutex_lock(&service->streams_mutex);
    exchange->next_stream = service->streams;
    if (service->streams != NULL)
        service->streams->previous_stream = exchange;
    service->streams = exchange;
    pthread_mutex_unlock(&service->streams_mutex);
    kelp_grpc_stream_drain(exchange);
}

void kelp_grpc_stream_close(kelp_grpc_exchange *exchange) {
    kelp_grpc_service *service = kelp_grpc_service_of(exchange);
    if (!exchange->listed)
        return;
    exchange->listed = false;
    pthread_mutex_lock(&service->streams_mutex);
    if (exchange->previous_stream != NULL)
        exchange->previous_stream->next_stream = exchange->next_stream;
    else
        service->streams = exchange->next_stream;
    if (exchange->next_stream != NULL)
        exchange->next_stream->previous_stream = exchange->previous_stream;
    pthread_mutex_unlock(&service->streams_mutex);
}

static bool is_idle(const kelp_grpc_exchange *exchange) {
    return exchange->open_count == 0 && exchange->writable == NULL && exchange->ordered == NULL &&
           exchange->incoming == NULL && exchange->unpacking == NULL &&
           exchange->held.length == 0 && !exchange->sending &&
           kelp_event_loop_now_ns(exchange->base.thread->loop) >= exchange->used_ns + IDLE_NS;
}

static void on_timer(kelp_event_loop_timer *timer) {
    kelp_grpc_exchange *exchange = timer->userp;
    if (is_idle(exchange))
        kelp_grpc_finish(exchange, KELP_ERROR(KELP_UNAVAILABLE, "the server is stopping"));
    else
        kelp_grpc_stream_drain(exchange);
}

void kelp_grpc_stream_drain(kelp_grpc_exchange *exchange) {
    kelp_event_loop_timer *timer = &exchange->poll_timer;
    kelp_event_loop *loop = exchange->base.thread->loop;
    if (!exchange->listed || exchange->finishing || timer->heap_index != 0 ||
        !atomic_load_explicit(&kelp_grpc_service_of(exchange)->draining, memory_order_relaxed))
        return;
    timer->fn = on_timer;
    timer->userp = exchange;
    kelp_status *status =
        kelp_event_loop_timer_set(loop, timer, kelp_event_loop_now_ns(loop) + IDLE_NS);
    if (status != NULL)
        kelp_grpc_finish(exchange, status);
}

void kelp_grpc_streams_drain(kelp_grpc_service *service) {
    pthread_mutex_lock(&service->streams_mutex);
    for (kelp_grpc_exchange *e = service->streams; e != NULL; e = e->next_stream) {
        pthread_mutex_lock(&e->mutex);
        kelp_grpc_post_pump(e);
        pthread_mutex_unlock(&e->mutex);
    }
    pthread_mutex_unlock(&service->streams_mutex);
}
