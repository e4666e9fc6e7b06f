/* SPDX-License-Identifier: Apache-2.0 */
#include "frontends/http/server.h"

#include "base/alloc.h"
#include "base/assert.h"
#include "base/checked.h"
#include "base/clock.h"
#include "base/sync/thread.h"
#include "frontends/h2/connection.h"
#include "frontends/http/block_cache.h"
#include "frontends/http/client.h"
#include "frontends/http/exchange.h"
#include "frontends/server/listener.h"
#include "frontends/http/thread.h"
#include "frontends/server/detect.h"

#include <unistd.h>

#define DEFAULT_MAX_THREADS 8
#define DEFAULT_IDLE_TIMEOUT_NS (75 * KELP_HTTP_SECOND_NS)
#define DEFAULT_HEADER_TIMEOUT_NS (20 * KELP_HTTP_SECOND_NS)
#define DEFAULT_TLS_RELOAD_NS (10 * KELP_HTTP_SECOND_NS)
#define DEFAULT_BODY_TIMEOUT_NS (60 * KELP_HTTP_SECOND_NS)
#define RELEASE_GRACE_NS (KELP_HTTP_SECOND_NS / 10) /* for models to release their requests */

/* A listener with the services of its endpoint. */
typedef struct server_listener {
    kelp_http_listener base;
    kelp_http_server *server;
    uint32_t services;
    kelp_tls_context *tls; /* or NULL */
} server_listener;

/* A server. */
struct kelp_http_server {
    kelp_allocator allocator;     /* of the server itself */
    kelp_block_cache block_cache; /* options.allocator, of all else */
    kelp_http_handler *handlers[KELP_HTTP_MAX_HANDLERS];
    size_t handler_count;
    kelp_http_server_options options;
    server_listener listeners[KELP_HTTP_MAX_ENDPOINTS];
    size_t listener_count;
    kelp_event_loop_task stop_task;
    uint32_t next_thread; /* for the next connection; used by the accepting thread only */
    uint32_t thread_count;
    kelp_http_thread *threads; /* the first one accepts */
    atomic_uint connection_count;
    kelp_http_clients *clients;
    kelp_http_budget budget; /* of the bodies */
    uint64_t drain_timeout_ns;
    kelp_event_loop_timer reload_timer; /* of the first thread */
    bool has_tls;
    bool stopped;
    bool leaked; /* models still hold requests, whose memory must not be freed */
};

uint16_t kelp_http_server_port(const kelp_http_server *server, size_t endpoint) {
    KELP_ASSERT(endpoint < server->listener_count);
    return server->listeners[endpoint].base.port;
}

uint64_t kelp_http_server_last_request_ns(const kelp_http_server *server) {
    uint64_t last_ns = 0;
    for (uint32_t i = 0; i < server->thread_count; i++) {
        uint64_t time_ns =
            atomic_load_explicit(&server->threads[i].last_request_ns, memory_order_relaxed);
        last_ns = KELP_MAX(last_ns, time_ns);
    }
    return last_ns;
}

/* ---- connections ---- */

/* Creates the connection of a socket, which it takes also on failure. */
static kelp_status *connect_client(server_listener *listener, int take_fd,
                                   const struct sockaddr *address, kelp_http_connection **out) {
    kelp_http_server *server = listener->server;
    kelp_http_thread *thread = &server->threads[server->next_thread];
    kelp_http_client *client;
    kelp_status *status = kelp_http_client_connect(server->clients, address, &client);
    if (status != NULL) {
        close(take_fd);
        return status;
    }
    server->next_thread = (server->next_thread + 1) % server->thread_count;
    status = kelp_http_detect_create(thread, take_fd, out);
    if (status != NULL) {
        kelp_http_client_disconnect(client);
        return status;
    }
    (*out)->client = client;
    (*out)->peer = kelp_http_peer_of(address);
    (*out)->services = listener->services;
    (*out)->tls_context = listener->tls;
    return NULL;
}

static void on_accept(void *userp, int take_fd, const struct sockaddr *client) {
    server_listener *listener = userp;
    kelp_http_server *server = listener->server;
    unsigned before = atomic_fetch_add(&server->connection_count, 1);
    if (before >= server->options.max_connections) {
        atomic_fetch_sub(&server->connection_count, 1);
        close(take_fd);
        return;
    }
    kelp_http_connection *connection;
    kelp_status *status = connect_client(listener, take_fd, client, &connection);
    if (status != NULL)
        atomic_fetch_sub(&server->connection_count, 1);
    else
        kelp_http_connection_join(connection);
    kelp_status_free(status);
}

/* ---- creation ---- */

static void fill_defaults(kelp_http_server_options *options) {
    if (!options->threads)
        options->threads = (uint32_t)KELP_MIN(KELP_MAX(kelp_cpu_count(), 1), DEFAULT_MAX_THREADS);
    if (!options->max_connections)
        options->max_connections = KELP_HTTP_MAX_CONNECTIONS;
    if (!options->max_client_connections)
        options->max_client_connections =
            kelp_http_share(options->max_connections, KELP_HTTP_MAX_CLIENT_SHARE);
    if (!options->max_requests)
        options->max_requests = KELP_HTTP_MAX_REQUESTS;
    if (!options->max_client_requests)
        options->max_client_requests =
            kelp_http_share(options->max_requests, KELP_HTTP_MAX_CLIENT_SHARE);
    if (!options->max_body_bytes)
        options->max_body_bytes =
            (uint64_t)sysconf(_SC_PHYS_PAGES) / 2 * (uint64_t)sysconf(_SC_PAGESIZE);
    if (!options->idle_timeout_ns)
        options->idle_timeout_ns = DEFAULT_IDLE_TIMEOUT_NS;
    if (!options->header_timeout_ns)
        options->header_timeout_ns = DEFAULT_HEADER_TIMEOUT_NS;
    if (!options->tls_reload_ns)
        options->tls_reload_ns = DEFAULT_TLS_RELOAD_NS;
    if (!options->body_timeout_ns)
        options->body_timeout_ns = DEFAULT_BODY_TIMEOUT_NS;
    if (options->allocator.realloc == NULL)
        options->allocator = kelp_allocator_system();
}

/* Loads the certificates of an endpoint. */
static kelp_status *open_tls(kelp_http_server *server, server_listener *listener,
                             const kelp_tls_options *options) {
    for (uint32_t i = 0; !server->has_tls && i < server->thread_count; i++)
        KELP_TRY(kelp_http_thread_enable_tls(&server->threads[i]));
    server->has_tls = true;
    return kelp_tls_context_create(options, server->options.allocator, &server->options.logger,
                                   &listener->tls);
}

static kelp_status *server_init(kelp_http_server *server, const kelp_http_endpoint *endpoints) {
    const kelp_http_server_options *options = &server->options;
    kelp_http_client_limits limits = {.connections = options->max_client_connections,
                                      .requests = options->max_client_requests};
    server->budget.limit_bytes = (size_t)KELP_MIN(options->max_body_bytes, SIZE_MAX);
    KELP_TRY(kelp_http_clients_create(options->allocator, &limits, &server->clients));
    KELP_TRY(kelp_alloc_zero(options->allocator, options->threads, sizeof(kelp_http_thread),
                             (void **)&server->threads));
    while (server->thread_count < options->threads) {
        kelp_http_thread *thread = &server->threads[server->thread_count++];
        KELP_TRY(kelp_http_thread_init(thread, server->handlers, server->handler_count, options,
                                       &server->connection_count));
        thread->budget = &server->budget;
        KELP_TRY(kelp_http2_thread_create(options->allocator, &thread->http2));
    }
    while (server->listener_count < options->endpoint_count) {
        const kelp_http_endpoint *endpoint = &endpoints[server->listener_count];
        server_listener *listener = &server->listeners[server->listener_count++];
        listener->server = server;
        listener->services = endpoint->services;
        if (endpoint->tls != NULL)
            KELP_TRY(open_tls(server, listener, endpoint->tls));
        KELP_TRY(kelp_http_listener_open_endpoint(&listener->base, options->allocator,
                                                  &options->logger, endpoint));
        KELP_TRY(kelp_http_listener_set_mode(&listener->base, endpoint->socket_mode));
    }
    return NULL;
}

static void destroy_handlers(kelp_http_handler *const *handlers, size_t count) {
    for (size_t i = 0; i < count; i++)
        handlers[i]->destroy(handlers[i]);
}

kelp_status *kelp_http_server_create(kelp_http_handler *const *take_handlers, size_t handler_count,
                                     const kelp_http_server_options *options,
                                     kelp_http_server **out) {
    kelp_http_server_options filled = *options;
    KELP_ASSERT(handler_count > 0 && handler_count <= KELP_HTTP_MAX_HANDLERS);
    KELP_ASSERT(options->endpoint_count > 0 && options->endpoint_count <= KELP_HTTP_MAX_ENDPOINTS);
    fill_defaults(&filled);
    *out = NULL;
    kelp_http_server *server;
    kelp_status *status = KELP_NEW(filled.allocator, kelp_http_server, &server);
    if (status != NULL) {
        destroy_handlers(take_handlers, handler_count);
        return status;
    }
    server->allocator = filled.allocator;
    for (size_t i = 0; i < handler_count; i++) {
        server->handlers[i] = take_handlers[i];
        server->handlers[i]->index = i;
    }
    server->handler_count = handler_count;
    server->options = filled;
    server->options.endpoints = NULL; /* borrowed for this call only */
    kelp_block_cache_init(&server->block_cache, filled.allocator,
                          (size_t)KELP_MIN(filled.max_kept_bytes, SIZE_MAX));
    server->block_cache.freed_large = filled.freed_much;
    server->block_cache.freed_large_userp = filled.freed_much_userp;
    server->options.allocator = kelp_block_cache_allocator(&server->block_cache);
    server->stopped = true;
    status = server_init(server, filled.endpoints);
    if (status != NULL) {
        kelp_http_server_destroy(server);
        return status;
    }
    *out = server;
    return NULL;
}

/* ---- certificates ---- */

static void on_reload(kelp_event_loop_timer *timer);

static kelp_status *set_reload_timer(kelp_http_server *server) {
    kelp_event_loop *loop = server->threads[0].loop;
    server->reload_timer.fn = on_reload;
    server->reload_timer.userp = server;
    return kelp_event_loop_timer_set(loop, &server->reload_timer,
                                     kelp_event_loop_now_ns(loop) + server->options.tls_reload_ns);
}

static void on_reload(kelp_event_loop_timer *timer) {
    kelp_http_server *server = timer->userp;
    for (size_t i = 0; i < server->listener_count; i++)
        if (server->listeners[i].tls != NULL)
            kelp_tls_context_reload(server->listeners[i].tls);
    kelp_status_free(set_reload_timer(server)); /* has capacity, because the timer has just fired */
}

/* ---- starting ---- */

kelp_status *kelp_http_server_start(kelp_http_server *server) {
    if (server->has_tls)
        KELP_TRY(set_reload_timer(server));
    for (size_t i = 0; i < server->listener_count; i++) {
        server_listener *listener = &server->listeners[i];
        KELP_TRY(kelp_http_listener_start(&listener->base, server->threads[0].loop, on_accept,
                                          listener));
    }
    server->stopped = false;
    /* The accepting thread starts last, because it passes connections to the other threads. */
    for (uint32_t i = server->thread_count; i-- > 0;)
        KELP_TRY(kelp_http_thread_start(&server->threads[i], i));
    return NULL;
}

/* ---- signs of life ---- */

static void on_probe(kelp_event_loop_task *task) {
    kelp_http_thread *thread =
        (kelp_http_thread *)((char *)task - offsetof(kelp_http_thread, probe_task));
    atomic_store(&thread->probed, false);
}

bool kelp_http_server_probe(kelp_http_server *server) {
    bool alive = true;
    for (uint32_t i = 0; i < server->thread_count; i++) {
        kelp_http_thread *thread = &server->threads[i];
        if (atomic_exchange(&thread->probed, true)) { /* the previous probe still waits */
            alive = false;
            continue;
        }
        thread->probe_task.fn = on_probe;
        kelp_event_loop_post(thread->loop, &thread->probe_task);
    }
    return alive;
}

/* ---- memory ---- */

static void on_trim(kelp_event_loop_task *task) {
    kelp_http_thread *thread =
        (kelp_http_thread *)((char *)task - offsetof(kelp_http_thread, trim_task));
    atomic_store(&thread->trims, false);
    kelp_http_thread_trim(thread);
    kelp_http2_thread_trim(thread->http2);
}

void kelp_http_server_trim(kelp_http_server *server, bool all) {
    kelp_block_cache_trim(&server->block_cache, all);
    for (uint32_t i = 0; all && i < server->thread_count; i++) {
        kelp_http_thread *thread = &server->threads[i];
        if (atomic_exchange(&thread->trims, true)) /* posted before */
            continue;
        thread->trim_task.fn = on_trim;
        kelp_event_loop_post(thread->loop, &thread->trim_task);
    }
}

/* ---- stopping ---- */

static void drain_threads(kelp_http_server *server) {
    for (uint32_t i = 0; i < server->thread_count; i++)
        if (server->threads[i].started)
            kelp_http_thread_drain(&server->threads[i], server->drain_timeout_ns);
}

/* Stops accepting, on the accepting thread. In the queues of the other threads, the connections
 * that it has passed to them precede the drain. */
static void on_stop(kelp_event_loop_task *task) {
    kelp_http_server *server =
        (kelp_http_server *)((char *)task - offsetof(kelp_http_server, stop_task));
    for (size_t i = 0; i < server->listener_count; i++)
        kelp_http_listener_stop(&server->listeners[i].base);
    drain_threads(server);
}

kelp_status *kelp_http_server_stop(kelp_http_server *server, uint64_t timeout_ns) {
    if (server->stopped)
        return NULL;
    server->stopped = true;
    server->drain_timeout_ns = timeout_ns;
    server->stop_task.fn = on_stop;
    if (server->threads[0].started)
        kelp_event_loop_post(server->threads[0].loop, &server->stop_task);
    else /* kelp_http_server_start failed */
        drain_threads(server);
    for (uint32_t i = 0; i < server->thread_count; i++) {
        kelp_http_thread *thread = &server->threads[i];
        if (thread->started)
            pthread_join(thread->id, NULL);
        thread->started = false;
    }
    /* The responses are sent, but models may release the requests slightly later. */
    uint64_t deadline = kelp_now_ns() + RELEASE_GRACE_NS;
    size_t left = 0;
    for (uint32_t i = 0; i < server->thread_count; i++)
        left += kelp_http_thread_wait(&server->threads[i], deadline);
    if (!left)
        return NULL;
    server->leaked = true;
    return KELP_ERROR(KELP_UNAVAILABLE,
                      "models still hold %zu HTTP requests after the server stopped", left);
}

void kelp_http_server_destroy(kelp_http_server *server) {
    if (server == NULL)
        return;
    kelp_status *status = kelp_http_server_stop(server, 0);
    if (status != NULL) {
        KELP_LOGF(&server->options.logger, KELP_LOG_WARNING, "%s", kelp_status_message(status));
        kelp_status_free(status);
    }
    for (size_t i = 0; i < server->listener_count; i++) {
        kelp_http_listener_close(&server->listeners[i].base);
        kelp_tls_context_destroy(server->listeners[i].tls);
    }
    if (server->leaked) /* callbacks of the models may still use the memory */
        return;
    for (uint32_t i = 0; i < server->thread_count; i++) {
        kelp_http2_thread_destroy(server->threads[i].http2);
        kelp_http_thread_deinit(&server->threads[i]);
    }
    kelp_free(server->options.allocator, server->threads,
              server->options.threads * sizeof *server->threads);
    kelp_http_clients_destroy(server->clients);
    destroy_handlers(server->handlers, server->handler_count);
    kelp_block_cache_deinit(&server->block_cache);
    kelp_free(server->allocator, server, sizeof *server);
}
