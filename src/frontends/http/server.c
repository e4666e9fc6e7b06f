/* SPDX-License-Identifier: Apache-2.0 */
/* The server: listening, threads, stopping. */
#include "frontends/http/server.h"

#include "base/alloc.h"
#include "base/checked.h"
#include "base/clock.h"
#include "base/thread.h"
#include "frontends/http/connection.h"

#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#define SECOND_NS UINT64_C(1000000000)
#define ACCEPTS_A_WAKE 64
#define CANCEL_GRACE_NS (2 * SECOND_NS) /* for models to notice that a request is cancelled */

static _Thread_local kelp_http_thread *current_thread;

kelp_http_thread *kelp_http_current_thread(void) {
    return current_thread;
}

uint64_t kelp_http_max_input_size(const kelp_http_server *server) {
    return server->options.max_input_size_bytes;
}

TRITONSERVER_Server *kelp_http_core(const kelp_http_server *server) {
    return server->core;
}

TRITONSERVER_ResponseAllocator *kelp_http_response_allocator(const kelp_http_server *server) {
    return server->response_allocator;
}

uint16_t kelp_http_server_port(const kelp_http_server *server) {
    return server->port;
}

/* ---- outputs ---- */

/* The model writes straight into memory of the call, from where it is sent. A thread of the model;
 * one response at a time. */
static TRITONSERVER_Error *
allocate_output(TRITONSERVER_ResponseAllocator *allocator, const char *tensor_name,
                size_t byte_size, TRITONSERVER_MemoryType memory_type, int64_t memory_type_id,
                void *userp, void **buffer, void **buffer_userp,
                TRITONSERVER_MemoryType *actual_memory_type, int64_t *actual_memory_type_id) {
    (void)allocator, (void)memory_type, (void)memory_type_id;
    kelp_http_call *call = userp;
    *buffer = NULL;
    *buffer_userp = NULL;
    *actual_memory_type = TRITONSERVER_MEMORY_CPU;
    *actual_memory_type_id = 0;
    if (byte_size == 0)
        return NULL;
    *buffer = kelp_arena_alloc(&call->outputs, byte_size, KELP_TENSOR_ALIGNMENT);
    if (*buffer)
        return NULL;
    char text[256];
    snprintf(text, sizeof(text), "no memory for output '%.128s' of %zu bytes", tensor_name,
             byte_size);
    return TRITONSERVER_ErrorNew(TRITONSERVER_ERROR_UNAVAILABLE, text);
}

/* The call frees its outputs together. */
static TRITONSERVER_Error *release_output(TRITONSERVER_ResponseAllocator *allocator, void *buffer,
                                          void *buffer_userp, size_t byte_size,
                                          TRITONSERVER_MemoryType memory_type,
                                          int64_t memory_type_id) {
    (void)allocator, (void)buffer, (void)buffer_userp, (void)byte_size, (void)memory_type,
        (void)memory_type_id;
    return NULL;
}

/* ---- accepting ---- */

static void on_listen_timer(kelp_loop_timer *timer) {
    kelp_http_server *server = timer->userp;
    kelp_http_thread *thread = &server->threads[0];
    if (!thread->stopping && server->listen_fd >= 0)
        kelp_status_free(kelp_loop_modify(thread->loop, &server->listen_io, KELP_LOOP_READ));
}

/* Out of descriptors or memory: the pending connection would wake the loop again at once, so look
 * away for a moment. */
static void pause_accepting(kelp_http_server *server, int error) {
    kelp_http_thread *thread = &server->threads[0];
    KELP_LOGF(&server->options.logger, KELP_LOG_WARNING,
              "cannot accept HTTP connections for a moment: %s", strerror(error));
    server->listen_timer.fn = on_listen_timer;
    server->listen_timer.userp = server;
    kelp_status *status = kelp_loop_timer_set(thread->loop, &server->listen_timer,
                                              kelp_loop_now_ns(thread->loop) + SECOND_NS / 10);
    if (!status)
        status = kelp_loop_modify(thread->loop, &server->listen_io, 0);
    kelp_status_free(status);
}

static void hand_over(kelp_http_server *server, int fd) {
    unsigned before = atomic_fetch_add(&server->connection_count, 1);
    if (before >= server->options.max_connections) {
        atomic_fetch_sub(&server->connection_count, 1);
        close(fd);
        return;
    }
    kelp_http_thread *thread = &server->threads[server->next_thread];
    server->next_thread = (server->next_thread + 1) % server->thread_count;
    kelp_http_connection *connection;
    kelp_status *status = kelp_http_connection_create(thread, fd, &connection);
    if (status) {
        atomic_fetch_sub(&server->connection_count, 1);
        kelp_status_free(status);
    } else if (thread == current_thread) {
        kelp_http_connection_adopt(&connection->adopt);
    } else {
        kelp_loop_post(thread->loop, &connection->adopt);
    }
}

static void on_listen(kelp_loop_io *io, uint32_t events) {
    (void)events;
    kelp_http_server *server = io->userp;
    for (int i = 0; i < ACCEPTS_A_WAKE; i++) {
        int fd = accept4(io->fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
        if (fd >= 0) {
            hand_over(server, fd);
        } else if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) {
            pause_accepting(server, errno);
            return;
        } else if (errno != EINTR && errno != ECONNABORTED) {
            return;
        }
    }
}

/* ---- listening ---- */

static kelp_status *listen_unix(kelp_http_server *server, const char *path) {
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    if (strlen(path) >= sizeof(address.sun_path))
        return KELP_ERROR(KELP_INVALID_ARGUMENT, "unix socket path '%s' is longer than %zu bytes",
                          path, sizeof(address.sun_path) - 1);
    memcpy(address.sun_path, path, strlen(path) + 1);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0 || bind(fd, (struct sockaddr *)&address, sizeof(address)) != 0 ||
        listen(fd, 4096) != 0) {
        int error = errno;
        if (fd >= 0)
            close(fd);
        return KELP_ERROR(KELP_UNAVAILABLE, "cannot listen on unix socket '%s': %s", path,
                          strerror(error));
    }
    server->listen_fd = fd;
    return kelp_strdup(server->allocator, path, &server->unix_path);
}

static int bind_one(const kelp_http_server *server, const struct addrinfo *info) {
    int fd = socket(info->ai_family, info->ai_socktype | SOCK_NONBLOCK | SOCK_CLOEXEC,
                    info->ai_protocol);
    if (fd < 0)
        return -1;
    int on = 1;
    /* Only lets us bind over connections in TIME_WAIT; a listening socket still collides. */
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
    if (server->options.reuse_port)
        setsockopt(fd, SOL_SOCKET, SO_REUSEPORT, &on, sizeof(on));
    if (bind(fd, info->ai_addr, info->ai_addrlen) == 0 && listen(fd, 4096) == 0)
        return fd;
    int error = errno;
    close(fd);
    errno = error;
    return -1;
}

static kelp_status *listen_tcp(kelp_http_server *server, const char *address) {
    char port[8];
    snprintf(port, sizeof(port), "%u", (unsigned)server->options.port);
    struct addrinfo hints = {.ai_flags = AI_PASSIVE | AI_NUMERICSERV,
                             .ai_family = AF_UNSPEC,
                             .ai_socktype = SOCK_STREAM};
    struct addrinfo *list = NULL;
    int failure = getaddrinfo(address, port, &hints, &list);
    if (failure)
        return KELP_ERROR(KELP_INVALID_ARGUMENT, "HTTP address '%s' is not known: %s", address,
                          gai_strerror(failure));
    int error = 0;
    for (const struct addrinfo *info = list; info && server->listen_fd < 0; info = info->ai_next) {
        server->listen_fd = bind_one(server, info);
        if (server->listen_fd < 0)
            error = errno;
    }
    freeaddrinfo(list);
    if (server->listen_fd < 0)
        return KELP_ERROR(KELP_UNAVAILABLE, "cannot listen for HTTP on %s port %u: %s", address,
                          (unsigned)server->options.port, strerror(error));
    struct sockaddr_storage bound;
    socklen_t length = sizeof(bound);
    if (getsockname(server->listen_fd, (struct sockaddr *)&bound, &length) != 0)
        return KELP_ERROR(KELP_INTERNAL, "cannot read back the HTTP port: %s", strerror(errno));
    server->port =
        ntohs(bound.ss_family == AF_INET6 ? ((const struct sockaddr_in6 *)&bound)->sin6_port
                                          : ((const struct sockaddr_in *)&bound)->sin_port);
    return NULL;
}

/* ---- threads ---- */

static kelp_status *thread_init(kelp_http_server *server, kelp_http_thread *thread) {
    thread->server = server;
    pthread_mutex_init(&thread->mutex, NULL);
    pthread_condattr_t attributes;
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&thread->all_back, &attributes);
    pthread_condattr_destroy(&attributes);
    KELP_TRY(kelp_alloc(server->allocator, KELP_HTTP_SCRATCH_BYTES, (void **)&thread->scratch));
    return kelp_loop_create(server->allocator, &thread->loop);
}

static void thread_deinit(kelp_http_thread *thread) {
    kelp_http_server *server = thread->server;
    if (!server)
        return;
    kelp_loop_destroy(thread->loop);
    kelp_free(server->allocator, thread->scratch, KELP_HTTP_SCRATCH_BYTES);
    while (thread->pool) {
        kelp_http_call *call = thread->pool;
        thread->pool = call->next;
        kelp_http_call_destroy(call);
    }
    pthread_cond_destroy(&thread->all_back);
    pthread_mutex_destroy(&thread->mutex);
}

static void *thread_main(void *userp) {
    kelp_http_thread *thread = userp;
    current_thread = thread;
    kelp_status *status = kelp_loop_run(thread->loop);
    if (status) {
        KELP_LOGF(&thread->server->options.logger, KELP_LOG_ERROR, "an HTTP thread ended: %s",
                  kelp_status_message(status));
        kelp_status_free(status);
    }
    current_thread = NULL;
    return NULL;
}

/* ---- stopping ---- */

static void on_drain_timer(kelp_loop_timer *timer);

static void set_drain_timer(kelp_http_thread *thread, uint64_t deadline_ns) {
    thread->drain_timer.fn = on_drain_timer;
    thread->drain_timer.userp = thread;
    kelp_status *status = kelp_loop_timer_set(thread->loop, &thread->drain_timer, deadline_ns);
    if (status) {
        kelp_status_free(status);
        kelp_loop_stop(thread->loop);
    }
}

/* Connections are gone, but models may still hold requests, and their callbacks post to this loop:
 * it runs on until they have, or until the time is up. */
void kelp_http_thread_connection_gone(kelp_http_thread *thread) {
    if (!thread->stopping || thread->connections)
        return;
    pthread_mutex_lock(&thread->mutex);
    size_t left = thread->outstanding;
    pthread_mutex_unlock(&thread->mutex);
    uint64_t now = kelp_now_ns();
    if (left == 0 || now >= thread->give_up_ns)
        kelp_loop_stop(thread->loop);
    else
        set_drain_timer(thread, now + SECOND_NS / 100);
}

static void on_drain_timer(kelp_loop_timer *timer) {
    kelp_http_thread *thread = timer->userp;
    if (thread->connections)
        KELP_LOGF(&thread->server->options.logger, KELP_LOG_WARNING,
                  "closing HTTP connections whose requests did not finish in time");
    while (thread->connections)
        kelp_http_connection_abort(thread->connections);
    kelp_http_thread_connection_gone(thread);
}

static void on_stop(kelp_loop_task *task);

static void post_stop(kelp_http_thread *thread) {
    thread->stop_task.fn = on_stop;
    kelp_loop_post(thread->loop, &thread->stop_task);
}

static void on_stop(kelp_loop_task *task) {
    kelp_http_thread *thread =
        (kelp_http_thread *)((char *)task - offsetof(kelp_http_thread, stop_task));
    kelp_http_server *server = thread->server;
    uint64_t deadline;
    if (__builtin_add_overflow(kelp_now_ns(), server->drain_timeout_ns, &deadline) ||
        __builtin_add_overflow(deadline, CANCEL_GRACE_NS, &thread->give_up_ns))
        deadline = thread->give_up_ns = UINT64_MAX;
    thread->stopping = true;
    if (thread == &server->threads[0]) {
        kelp_loop_timer_cancel(thread->loop, &server->listen_timer);
        kelp_loop_remove(thread->loop, &server->listen_io);
        close(server->listen_fd);
        server->listen_fd = -1;
        /* Only now the others: whatever was handed to them stands before this in their queues. */
        for (uint32_t i = 1; i < server->thread_count; i++)
            post_stop(&server->threads[i]);
    }
    kelp_http_connection *c = thread->connections;
    while (c) {
        kelp_http_connection *next = c->next;
        kelp_http_connection_drain(c);
        c = next;
    }
    kelp_http_thread_connection_gone(thread);
    if (thread->connections)
        set_drain_timer(thread, deadline);
}

/* ---- life ---- */

static void fill_defaults(kelp_http_server_options *options) {
    if (!options->address || !*options->address)
        options->address = "0.0.0.0";
    if (!options->threads)
        options->threads = (uint32_t)KELP_MIN(KELP_MAX(kelp_cpu_count(), 1), 8);
    if (!options->max_connections)
        options->max_connections = 16384;
    if (!options->max_input_size_bytes)
        options->max_input_size_bytes = UINT64_C(64) << 20;
    if (!options->max_body_size_bytes)
        options->max_body_size_bytes = UINT64_C(4) << 30;
    if (options->max_body_size_bytes < options->max_input_size_bytes)
        options->max_body_size_bytes = options->max_input_size_bytes;
    if (!options->idle_timeout_ns)
        options->idle_timeout_ns = 75 * SECOND_NS;
    if (!options->header_timeout_ns)
        options->header_timeout_ns = 20 * SECOND_NS;
    if (!options->allocator.realloc)
        options->allocator = kelp_allocator_system();
}

static kelp_status *server_init(kelp_http_server *server, const char *address) {
    KELP_HTTP_TRY(TRITONSERVER_ResponseAllocatorNew(&server->response_allocator, allocate_output,
                                                    release_output, NULL));
    KELP_TRY(kelp_alloc_zero(server->allocator, server->options.threads, sizeof(kelp_http_thread),
                             (void **)&server->threads));
    for (; server->thread_count < server->options.threads; server->thread_count++) {
        kelp_status *status = thread_init(server, &server->threads[server->thread_count]);
        if (status) {
            server->thread_count++; /* half-built; thread_deinit takes it */
            return status;
        }
    }
    if (strncmp(address, "unix:", 5) == 0)
        return listen_unix(server,
                           address[5] == '/' && address[6] == '/' ? address + 7 : address + 5);
    return listen_tcp(server, address);
}

kelp_status *kelp_http_server_create(TRITONSERVER_Server *core,
                                     const kelp_http_server_options *options,
                                     kelp_http_server **out) {
    kelp_http_server_options filled = options ? *options : (kelp_http_server_options){0};
    fill_defaults(&filled);
    *out = NULL;
    kelp_http_server *server;
    KELP_TRY(KELP_NEW(filled.allocator, kelp_http_server, &server));
    server->allocator = filled.allocator;
    server->options = filled;
    server->options.address = NULL; /* borrowed for this call only */
    server->core = core;
    server->listen_fd = -1;
    server->stopped = true;
    kelp_status *status = server_init(server, filled.address);
    if (status) {
        kelp_http_server_destroy(server);
        return status;
    }
    *out = server;
    return NULL;
}

kelp_status *kelp_http_server_start(kelp_http_server *server) {
    server->listen_io = (kelp_loop_io){.fd = server->listen_fd, .fn = on_listen, .userp = server};
    KELP_TRY(kelp_loop_add(server->threads[0].loop, &server->listen_io, KELP_LOOP_READ));
    server->stopped = false;
    /* The accepting thread last, so that all others are there to be handed connections. */
    for (uint32_t i = server->thread_count; i-- > 0;) {
        char name[16];
        snprintf(name, sizeof(name), "kelp-http-%u", (unsigned)(i % 1000));
        KELP_TRY(kelp_thread_start(&server->threads[i].id, name, thread_main, &server->threads[i]));
        server->threads[i].started = true;
    }
    return NULL;
}

/* Waits until every call of the thread is back, at most until the deadline; returns how many are
 * not. */
static size_t wait_for_calls(kelp_http_thread *thread, uint64_t deadline_ns) {
    struct timespec deadline = {(time_t)(deadline_ns / SECOND_NS), (long)(deadline_ns % SECOND_NS)};
    pthread_mutex_lock(&thread->mutex);
    while (thread->outstanding)
        if (pthread_cond_timedwait(&thread->all_back, &thread->mutex, &deadline) == ETIMEDOUT)
            break;
    size_t left = thread->outstanding;
    pthread_mutex_unlock(&thread->mutex);
    return left;
}

kelp_status *kelp_http_server_stop(kelp_http_server *server, uint64_t timeout_ns) {
    if (server->stopped)
        return NULL;
    server->stopped = true;
    server->drain_timeout_ns = timeout_ns;
    if (server->threads[0].started)
        post_stop(&server->threads[0]);
    else /* the start failed half-way, and nobody accepts */
        for (uint32_t i = 1; i < server->thread_count; i++)
            if (server->threads[i].started)
                post_stop(&server->threads[i]);
    size_t left = 0;
    for (uint32_t i = 0; i < server->thread_count; i++) {
        kelp_http_thread *thread = &server->threads[i];
        if (!thread->started)
            continue;
        pthread_join(thread->id, NULL);
        thread->started = false;
    }
    /* Replies are out, but models may hold requests a moment longer. */
    uint64_t deadline = kelp_now_ns() + SECOND_NS / 10;
    for (uint32_t i = 0; i < server->thread_count; i++)
        left += wait_for_calls(&server->threads[i], deadline);
    if (!left)
        return NULL;
    server->leaked = true;
    return KELP_ERROR(KELP_UNAVAILABLE,
                      "%zu HTTP requests were still held by models when the server stopped", left);
}

void kelp_http_server_destroy(kelp_http_server *server) {
    if (!server)
        return;
    kelp_status *status = kelp_http_server_stop(server, 0);
    if (status) {
        KELP_LOGF(&server->options.logger, KELP_LOG_WARNING, "%s", kelp_status_message(status));
        kelp_status_free(status);
    }
    if (server->listen_fd >= 0)
        close(server->listen_fd);
    if (server->unix_path) {
        unlink(server->unix_path);
        kelp_free_string(server->allocator, server->unix_path);
    }
    if (server->leaked) /* callbacks of those models may still come, and find all of it in place */
        return;
    for (uint32_t i = 0; i < server->thread_count; i++)
        thread_deinit(&server->threads[i]);
    kelp_free(server->allocator, server->threads,
              server->options.threads * sizeof(kelp_http_thread));
    if (server->response_allocator)
        kelp_status_free(
            kelp_http_status_of(TRITONSERVER_ResponseAllocatorDelete(server->response_allocator)));
    kelp_free(server->allocator, server, sizeof(*server));
}
