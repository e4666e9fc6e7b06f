/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Event-loop threads and their connections, independent of the HTTP version. Functions are called
 * on the loop's thread, except where noted.
 */
#ifndef KELP_FRONTENDS_HTTP_THREAD_H_
#define KELP_FRONTENDS_HTTP_THREAD_H_

#include "frontends/http/exchange.h"
#include "frontends/http/server.h"

#include <pthread.h>

#define KELP_HTTP_SECOND_NS UINT64_C(1000000000)
/* Minimum rate of a body, beside body_timeout_ns. */
#define KELP_HTTP_BODY_BYTES_PER_S 16384
/* For a request that is incomplete when the server stops. */
#define KELP_HTTP_STOP_REQUEST_NS KELP_HTTP_SECOND_NS
#define KELP_HTTP_SCRATCH_BYTES ((size_t)64 * 1024)
#define KELP_HTTP_FIRST_READ_BYTES ((size_t)2048) /* of a connection */

typedef struct kelp_http2_thread kelp_http2_thread;
typedef struct kelp_tls_buffers kelp_tls_buffers;
typedef struct kelp_tls_context kelp_tls_context;
typedef struct kelp_tls_stream kelp_tls_stream;
typedef struct kelp_http_connection kelp_http_connection;

/* The functions that a version of HTTP implements for its connections. */
typedef struct kelp_http_connection_ops {
    /* Starts reading; the connection has joined its thread. `received` are the bytes that were read
     * already, valid during the call. */
    void (*start)(kelp_http_connection *connection, kelp_str received);
    /* Closes the connection as soon as it has no open exchange, because the server is stopping. A
     * request that is incomplete has a second to arrive.
     * Processes a request that has arrived. If not `now`, keeps a connection open that was used in
     * the last second: its client may be sending the next request, whose response ends the
     * connection. */
    void (*drain)(kelp_http_connection *connection, bool now);
    /* Cancels open exchanges and closes at once. */
    void (*close)(kelp_http_connection *connection);
} kelp_http_connection_ops;

/* A connection. First member of the type of each HTTP version, which sets `io` completely. */
struct kelp_http_connection {
    kelp_event_loop_task join_task; /* first; posted by the accepting thread */
    kelp_event_loop_io io;
    const kelp_http_connection_ops *ops;
    kelp_http_thread *thread;
    kelp_http_client *client;
    uint32_t services;             /* of the endpoint that accepted it */
    kelp_http_peer peer;           /* the address of the client */
    kelp_tls_context *tls_context; /* of the endpoint; NULL: without TLS */
    kelp_tls_stream *tls;          /* NULL: without TLS, or before its first byte */
    kelp_event_loop_timer again;   /* see kelp_http_socket_watch */
    kelp_http_connection *previous;
    kelp_http_connection *next;
};

/* Unused exchanges of a handler. */
typedef struct kelp_http_exchange_pool {
    kelp_http_exchange *first;
    size_t count;
} kelp_http_exchange_pool;

/* Threads for work that blocks. They end after a time without work, because starting one for each
 * piece of work would cost as much as 30 kB of JSON. */
typedef struct kelp_http_helpers {
    pthread_mutex_t mutex;
    pthread_cond_t changed;    /* there is work, a thread has ended, or all must end */
    kelp_http_exchange *first; /* whose work waits */
    kelp_http_exchange *last;
    size_t waiting_count; /* of exchanges */
    size_t idle_count;    /* of threads */
    size_t thread_count;
    bool stopping;
} kelp_http_helpers;

/* The data of a protocol for a thread: the first member of its type. */
typedef struct kelp_http_thread_data kelp_http_thread_data;
struct kelp_http_thread_data {
    void (*destroy)(kelp_http_thread_data *data);
};

/* A thread with an event loop. */
struct kelp_http_thread {
    kelp_allocator allocator;
    kelp_http_handler *const *handlers; /* of the server; the last one accepts every request */
    size_t handler_count;
    const kelp_http_server_options *options;
    atomic_uint *connection_count; /* of the server */
    kelp_http_budget *budget;      /* of the server */
    kelp_event_loop *loop;
    pthread_t id;
    bool started;
    bool stopping;
    kelp_http_connection *connections;
    kelp_event_loop_task trim_task;
    atomic_bool trims; /* trim_task is posted */
    kelp_event_loop_task probe_task;
    atomic_bool probed;          /* probe_task is posted and has not run */
    uint32_t closed_count;       /* connections that have left */
    char *scratch;               /* KELP_HTTP_SCRATCH_BYTES, for reads */
    kelp_http2_thread *http2;    /* of the server */
    kelp_tls_buffers *tls;       /* NULL: no endpoint has TLS */
    kelp_http_thread_data *data; /* NULL, or owned */
    kelp_event_loop_task drain_task;
    kelp_event_loop_timer drain_timer;
    _Atomic uint64_t last_request_ns; /* the time at which the latest request began */
    uint64_t drain_timeout_ns;
    uint64_t stop_ns;    /* if stopping: the time at which it began */
    bool closes_idle;    /* if stopping: connections without requests are not kept any more */
    uint64_t cancel_ns;  /* if stopping: the time at which open exchanges are cancelled */
    uint64_t give_up_ns; /* if stopping: the time after which open exchanges are abandoned */
    /* the pools of exchanges, by handler->index; other threads may return exchanges */
    pthread_mutex_t mutex;
    pthread_cond_t all_recycled;
    kelp_http_exchange_pool pools[KELP_HTTP_MAX_HANDLERS];
    _Atomic size_t outstanding; /* changed with the mutex */
    kelp_http_helpers helpers;
};

/* Initializes a thread without starting it. kelp_http_thread_deinit must be called, also after a
 * failure. */
kelp_status *kelp_http_thread_init(kelp_http_thread *thread, kelp_http_handler *const *handlers,
                                   size_t handler_count, const kelp_http_server_options *options,
                                   atomic_uint *connection_count) KELP_MUST_USE;
/* Creates the buffers of TLS, once before the thread is started. */
kelp_status *kelp_http_thread_enable_tls(kelp_http_thread *thread) KELP_MUST_USE;
void kelp_http_thread_deinit(kelp_http_thread *thread);
kelp_status *kelp_http_thread_start(kelp_http_thread *thread, unsigned index) KELP_MUST_USE;
/* Makes the thread close idle connections, and others as soon as their requests are over, and then
 * end its loop. Requests are cancelled shortly before `timeout_ns`, and abandoned at this time. Any
 * thread. */
void kelp_http_thread_drain(kelp_http_thread *thread, uint64_t timeout_ns);
/* Frees the pooled exchanges. */
void kelp_http_thread_trim(kelp_http_thread *thread);
/* Waits until all exchanges are recycled, at most until the deadline. Returns the number of those
 * that are not. Any thread, after the loop has ended. */
size_t kelp_http_thread_wait(kelp_http_thread *thread, uint64_t deadline_ns);
/* Returns the calling thread if it is an event-loop thread, or NULL. Any thread. */
kelp_http_thread *kelp_http_current_thread(void);

/* Returns the first handler that accepts the request. */
kelp_http_handler *kelp_http_thread_handler(const kelp_http_thread *thread,
                                            const kelp_http_request *request);

/* Returns the time at which a request (or message) that began at `start_ns` must be complete
 * because the server stops; UINT64_MAX if it does not. */
static inline uint64_t kelp_http_thread_stop_deadline_ns(const kelp_http_thread *thread,
                                                         uint64_t start_ns) {
    if (!thread->stopping)
        return UINT64_MAX;
    return (start_ns > thread->stop_ns ? start_ns : thread->stop_ns) + KELP_HTTP_STOP_REQUEST_NS;
}
#define KELP_HTTP_STOP_TEXT "the server is stopping, and the request was incomplete"

/* Passes a connection to its thread, which starts it. Any thread. */
void kelp_http_connection_join(kelp_http_connection *connection);
/* Replaces a connection by one with the same socket, which then receives its events. The caller
 * frees the old one without closing the socket. Then it starts the new one, or closes it if the
 * function fails. */
kelp_status *kelp_http_connection_replace(kelp_http_connection *old,
                                          kelp_http_connection *connection) KELP_MUST_USE;
/* Counts a request that is about to be processed: the caller sets exchange->client to that of the
 * connection. Returns false, and why, if the server or the client has too many requests in flight.
 */
bool kelp_http_connection_admit(kelp_http_connection *connection, kelp_http_status *out_status,
                                const char **out_text);
/* Removes a connection that is closing from its thread. Ends the loop if the server is stopping and
 * this was the last one. */
void kelp_http_connection_leave(kelp_http_connection *connection);

#endif
