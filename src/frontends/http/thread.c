/* SPDX-License-Identifier: Apache-2.0 */
#include "frontends/http/thread.h"

#include "base/alloc.h"
#include "base/assert.h"
#include "base/checked.h"
#include "base/clock.h"
#include "base/sync/thread.h"
#include "frontends/http/client.h"
#include "frontends/tls/stream.h"

#include <errno.h>
#include <stdio.h>

#define CANCEL_GRACE_NS (2 * KELP_HTTP_SECOND_NS) /* for models to detect the cancellation */
/* For clients of connections that are in use to send the next request. */
#define CLOSE_GRACE_NS (KELP_HTTP_SECOND_NS / 10)
/* The grace times are at most this part of the time limit. */
#define GRACE_PART 8
/* The memory of so many connections is much, even if they were idle. */
#define CLOSED_PER_NOTE 64
#define DRAIN_POLL_NS \
    (KELP_HTTP_SECOND_NS / 100) /* while models hold exchanges of closed connections */

static _Thread_local kelp_http_thread *current_thread;

kelp_http_thread *kelp_http_current_thread(void) {
    return current_thread;
}

/* ---- creation ---- */

kelp_status *kelp_http_thread_init(kelp_http_thread *thread, kelp_http_handler *const *handlers,
                                   size_t handler_count, const kelp_http_server_options *options,
                                   atomic_uint *connection_count) {
    thread->allocator = options->allocator;
    thread->handlers = handlers;
    thread->handler_count = handler_count;
    thread->options = options;
    thread->connection_count = connection_count;
    pthread_mutex_init(&thread->mutex, NULL);
    pthread_condattr_t attributes;
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&thread->all_recycled, &attributes);
    pthread_mutex_init(&thread->helpers.mutex, NULL);
    pthread_cond_init(&thread->helpers.changed, &attributes);
    pthread_condattr_destroy(&attributes);
    KELP_TRY(kelp_alloc(thread->allocator, KELP_HTTP_SCRATCH_BYTES, (void **)&thread->scratch));
    return kelp_event_loop_create(thread->allocator, &thread->loop);
}

kelp_status *kelp_http_thread_enable_tls(kelp_http_thread *thread) {
    KELP_TRY(KELP_NEW(thread->allocator, kelp_tls_buffers, &thread->tls));
    return kelp_tls_buffers_init(thread->tls, thread->allocator);
}

/* Ends the threads for work that blocks; they have none. */
static void stop_helpers(kelp_http_helpers *helpers) {
    pthread_mutex_lock(&helpers->mutex);
    KELP_ASSERT(helpers->first == NULL);
    helpers->stopping = true;
    pthread_cond_broadcast(&helpers->changed);
    while (helpers->thread_count > 0)
        pthread_cond_wait(&helpers->changed, &helpers->mutex);
    pthread_mutex_unlock(&helpers->mutex);
    pthread_cond_destroy(&helpers->changed);
    pthread_mutex_destroy(&helpers->mutex);
}

void kelp_http_thread_deinit(kelp_http_thread *thread) {
    stop_helpers(&thread->helpers);
    kelp_event_loop_destroy(thread->loop);
    if (thread->data != NULL)
        thread->data->destroy(thread->data);
    if (thread->tls != NULL) {
        kelp_tls_buffers_deinit(thread->tls);
        kelp_free(thread->allocator, thread->tls, sizeof *thread->tls);
    }
    kelp_free(thread->allocator, thread->scratch, KELP_HTTP_SCRATCH_BYTES);
    kelp_http_thread_trim(thread);
    pthread_cond_destroy(&thread->all_recycled);
    pthread_mutex_destroy(&thread->mutex);
}

void kelp_http_thread_trim(kelp_http_thread *thread) {
    for (size_t i = 0; i < thread->handler_count; i++) {
        pthread_mutex_lock(&thread->mutex);
        kelp_http_exchange *exchange = thread->pools[i].first;
        thread->pools[i] = (kelp_http_exchange_pool){0};
        pthread_mutex_unlock(&thread->mutex);
        while (exchange != NULL) {
            kelp_http_exchange *next = exchange->next;
            kelp_http_exchange_destroy(exchange);
            exchange = next;
        }
    }
}

static void *thread_main(void *userp) {
    kelp_http_thread *thread = userp;
    current_thread = thread;
    kelp_thread_prefer_latency();
    kelp_thread_wait_precisely(); /* for queue delays */
    kelp_status *status = kelp_event_loop_run(thread->loop);
    if (status != NULL) {
        KELP_LOGF(&thread->options->logger, KELP_LOG_ERROR, "an HTTP thread failed: %s",
                  kelp_status_message(status));
        kelp_status_free(status);
    }
    current_thread = NULL;
    return NULL;
}

kelp_status *kelp_http_thread_start(kelp_http_thread *thread, unsigned index) {
    char name[16];
    snprintf(name, sizeof name, "kelp-http-%u", index % 1000);
    KELP_TRY(kelp_thread_start(&thread->id, name, thread_main, thread));
    thread->started = true;
    return NULL;
}

/* ---- stopping ---- */

static void on_drain_timer(kelp_event_loop_timer *timer);

static void set_drain_timer(kelp_http_thread *thread, uint64_t deadline_ns) {
    thread->drain_timer.fn = on_drain_timer;
    thread->drain_timer.userp = thread;
    kelp_status *status =
        kelp_event_loop_timer_set(thread->loop, &thread->drain_timer, deadline_ns);
    if (status != NULL) {
        kelp_status_free(status);
        kelp_event_loop_stop(thread->loop);
    }
}

/* Ends the loop of a stopping thread without connections. If models still hold exchanges, their
 * callbacks post to this loop; it then continues until they have done so or the time has expired.
 */
static void stop_if_empty(kelp_http_thread *thread) {
    KELP_ASSERT(thread == current_thread);
    if (!thread->stopping || thread->connections != NULL)
        return;
    pthread_mutex_lock(&thread->mutex);
    size_t left = thread->outstanding;
    pthread_mutex_unlock(&thread->mutex);
    uint64_t now = kelp_now_ns();
    if (left == 0 || now >= thread->give_up_ns)
        kelp_event_loop_stop(thread->loop);
    else
        set_drain_timer(thread, now + DRAIN_POLL_NS);
}

/* Asks all connections to close. */
static void drain_connections(kelp_http_thread *thread) {
    kelp_http_connection *connection = thread->connections;
    while (connection != NULL) {
        kelp_http_connection *next = connection->next;
        connection->ops->drain(connection, thread->closes_idle);
        connection = next;
    }
}

static void on_drain_timer(kelp_event_loop_timer *timer) {
    kelp_http_thread *thread = timer->userp;
    if (!thread->closes_idle) {
        thread->closes_idle = true;
        drain_connections(thread);
        if (thread->connections != NULL)
            set_drain_timer(thread, thread->cancel_ns);
        else
            stop_if_empty(thread);
        return;
    }
    if (thread->connections != NULL)
        KELP_LOGF(&thread->options->logger, KELP_LOG_WARNING,
                  "closing HTTP connections whose requests did not finish in time");
    while (thread->connections != NULL)
        thread->connections->ops->close(thread->connections);
    stop_if_empty(thread);
}

static void on_drain(kelp_event_loop_task *task) {
    kelp_http_thread *thread =
        (kelp_http_thread *)((char *)task - offsetof(kelp_http_thread, drain_task));
    uint64_t now_ns = kelp_now_ns(), part_ns = thread->drain_timeout_ns / GRACE_PART;
    if (__builtin_add_overflow(now_ns, thread->drain_timeout_ns, &thread->give_up_ns))
        thread->give_up_ns = UINT64_MAX;
    thread->cancel_ns = thread->give_up_ns - KELP_MIN(part_ns, CANCEL_GRACE_NS);
    thread->stopping = true;
    thread->stop_ns = now_ns;
    drain_connections(thread);
    stop_if_empty(thread);
    if (thread->connections != NULL)
        set_drain_timer(thread, now_ns + KELP_MIN(part_ns, CLOSE_GRACE_NS));
}

void kelp_http_thread_drain(kelp_http_thread *thread, uint64_t timeout_ns) {
    thread->drain_timeout_ns = timeout_ns;
    thread->drain_task.fn = on_drain;
    kelp_event_loop_post(thread->loop, &thread->drain_task);
}

size_t kelp_http_thread_wait(kelp_http_thread *thread, uint64_t deadline_ns) {
    struct timespec deadline = {(time_t)(deadline_ns / KELP_HTTP_SECOND_NS),
                                (long)(deadline_ns % KELP_HTTP_SECOND_NS)};
    pthread_mutex_lock(&thread->mutex);
    while (thread->outstanding)
        if (pthread_cond_timedwait(&thread->all_recycled, &thread->mutex, &deadline) == ETIMEDOUT)
            break;
    size_t left = thread->outstanding;
    pthread_mutex_unlock(&thread->mutex);
    return left;
}

/* ---- connections ---- */

kelp_http_handler *kelp_http_thread_handler(const kelp_http_thread *thread,
                                            const kelp_http_request *request) {
    size_t last = thread->handler_count - 1;
    for (size_t i = 0; i < last; i++)
        if (thread->handlers[i]->accepts(thread->handlers[i], request))
            return thread->handlers[i];
    return thread->handlers[last];
}

static void on_join(kelp_event_loop_task *task) {
    kelp_http_connection *connection = (kelp_http_connection *)task;
    kelp_http_thread *thread = connection->thread;
    KELP_ASSERT(thread == current_thread && !connection->next && !connection->previous);
    connection->next = thread->connections;
    if (connection->next != NULL)
        connection->next->previous = connection;
    thread->connections = connection;
    connection->ops->start(connection, (kelp_str){0});
}

void kelp_http_connection_join(kelp_http_connection *connection) {
    connection->join_task.fn = on_join;
    if (connection->thread == current_thread)
        on_join(&connection->join_task);
    else
        kelp_event_loop_post(connection->thread->loop, &connection->join_task);
}

kelp_status *kelp_http_connection_replace(kelp_http_connection *old,
                                          kelp_http_connection *connection) {
    kelp_http_thread *thread = old->thread;
    KELP_ASSERT(thread == current_thread && connection->thread == thread);
    connection->client = old->client;
    connection->services = old->services;
    connection->peer = old->peer;
    connection->tls = old->tls;
    connection->previous = old->previous;
    connection->next = old->next;
    if (old->previous != NULL)
        old->previous->next = connection;
    else
        thread->connections = connection;
    if (old->next != NULL)
        old->next->previous = connection;
    old->previous = old->next = NULL;
    return kelp_event_loop_replace(thread->loop, &old->io, &connection->io, KELP_LOOP_READ);
}

bool kelp_http_connection_admit(kelp_http_connection *connection, kelp_http_status *out_status,
                                const char **out_text) {
    kelp_http_thread *thread = connection->thread;
    const kelp_http_server_options *options = thread->options;
    size_t limit = ((size_t)options->max_requests + options->threads - 1) / options->threads;
    if (atomic_load_explicit(&thread->outstanding, memory_order_relaxed) >= limit) {
        *out_status = KELP_HTTP_SERVICE_UNAVAILABLE;
        *out_text = "the server has too many requests in flight";
        return false;
    }
    if (!kelp_http_client_begin_request(connection->client)) {
        *out_status = KELP_HTTP_TOO_MANY_REQUESTS;
        *out_text = "the client has too many requests in flight";
        return false;
    }
    return true;
}

void kelp_http_connection_leave(kelp_http_connection *connection) {
    kelp_http_thread *thread = connection->thread;
    KELP_ASSERT(thread == current_thread && *thread->connection_count > 0);
    if (connection->previous != NULL)
        connection->previous->next = connection->next;
    else if (thread->connections == connection)
        thread->connections = connection->next;
    if (connection->next != NULL)
        connection->next->previous = connection->previous;
    connection->previous = connection->next = NULL;
    atomic_fetch_sub(thread->connection_count, 1);
    const kelp_http_server_options *options = thread->options;
    if (++thread->closed_count % CLOSED_PER_NOTE == 0 && options->freed_much != NULL)
        options->freed_much(options->freed_much_userp);
    kelp_http_client_disconnect(connection->client);
    stop_if_empty(thread);
}
