/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Event-loop threads and the connections they own, independent of the HTTP version. Everything here
 * runs on the loop's thread unless it says otherwise.
 */
#ifndef KELP_FRONTENDS_HTTP_THREAD_H_
#define KELP_FRONTENDS_HTTP_THREAD_H_

#include "frontends/http/exchange.h"
#include "frontends/http/server.h"

#include <pthread.h>

#define KELP_HTTP_SECOND_NS UINT64_C(1000000000)
#define KELP_HTTP_SCRATCH_BYTES ((size_t)64 * 1024)

typedef struct kelp_http_connection kelp_http_connection;

/* What a thread asks of a connection: one table per HTTP version. */
typedef struct kelp_http_connection_ops {
    /* Starts reading; the connection has joined its thread. */
    void (*start)(kelp_http_connection *connection);
    /* The server is stopping: closes the connection as soon as no exchange is open. */
    void (*drain)(kelp_http_connection *connection);
    /* Cancels open exchanges and closes at once. */
    void (*close)(kelp_http_connection *connection);
} kelp_http_connection_ops;

/* The first member of every connection. */
struct kelp_http_connection {
    kelp_event_loop_task join_task; /* first; carries it from the accepting thread to its own */
    kelp_event_loop_io io;
    const kelp_http_connection_ops *ops;
    kelp_http_thread *thread;
    kelp_http_connection *previous;
    kelp_http_connection *next;
};

struct kelp_http_thread {
    kelp_allocator allocator;
    kelp_http_handler *handler;
    const kelp_http_server_options *options;
    atomic_uint *connection_count; /* of the server */
    kelp_event_loop *loop;
    pthread_t id;
    bool started;
    bool stopping;
    kelp_http_connection *connections;
    char *scratch; /* KELP_HTTP_SCRATCH_BYTES, for reads */
    kelp_event_loop_task drain_task;
    kelp_event_loop_timer drain_timer;
    uint64_t drain_timeout_ns;
    uint64_t give_up_ns; /* when stopping: exchanges still open at that time are abandoned */
    /* the pool of exchanges, which other threads return to */
    pthread_mutex_t mutex;
    pthread_cond_t all_recycled;
    kelp_http_exchange *pool;
    size_t pool_count;
    size_t outstanding;
};

/* Initializes the thread without starting it; kelp_http_thread_deinit also after a failure. */
kelp_status *kelp_http_thread_init(kelp_http_thread *thread, kelp_http_handler *handler,
                                   const kelp_http_server_options *options,
                                   atomic_uint *connection_count) KELP_MUST_USE;
void kelp_http_thread_deinit(kelp_http_thread *thread);
kelp_status *kelp_http_thread_start(kelp_http_thread *thread, unsigned index) KELP_MUST_USE;
/* Makes the thread close idle connections, and all others after `timeout_ns`, and then end its
 * loop. Any thread. */
void kelp_http_thread_drain(kelp_http_thread *thread, uint64_t timeout_ns);
/* Waits until all exchanges are recycled, at most until the deadline. Returns how many are not. Any
 * thread; the loop has ended. */
size_t kelp_http_thread_wait(kelp_http_thread *thread, uint64_t deadline_ns);
/* Returns the event-loop thread that the caller is on, or NULL. Any thread. */
kelp_http_thread *kelp_http_current_thread(void);

/* Hands a connection to its thread, which starts it. Any thread. */
void kelp_http_connection_join(kelp_http_connection *connection);
/* Removes a connection that is closing from its thread. Ends the loop if the server is stopping and
 * this was the last one. */
void kelp_http_connection_leave(kelp_http_connection *connection);

#endif
