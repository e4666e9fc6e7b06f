/* SPDX-License-Identifier: Apache-2.0 */
/* Connections and the threads that own them. Everything here runs on the loop's thread unless it
 * says otherwise. */
#ifndef KELP_FRONTENDS_HTTP_CONNECTION_H_
#define KELP_FRONTENDS_HTTP_CONNECTION_H_

#include "frontends/http/call.h"
#include "frontends/http/server.h"

#include <pthread.h>

#define KELP_HTTP_SCRATCH_BYTES ((size_t)64 * 1024)

struct kelp_http_connection {
    kelp_loop_task adopt; /* first: from the accepting thread to its own */
    kelp_loop_io io;
    kelp_loop_timer timer;
    kelp_http_thread *thread;
    kelp_http_connection *previous;
    kelp_http_connection *next;
    kelp_http1_parser parser;
    kelp_buf pending; /* bytes read ahead of the request in work */
    size_t pending_at;
    kelp_http_call *call; /* the request in work, or NULL */
    kelp_buf out;         /* head of the reply */
    uint64_t sent_bytes;  /* of the reply */
    uint64_t reply_bytes;
    uint64_t deadline_ns; /* UINT64_MAX: none; the timer may fire earlier and then goes on */
    uint32_t depth;       /* of entries: the object is freed when the outermost one leaves */
    bool registered;
    bool running; /* inside the loop over pending requests */
    bool reading_head;
    bool replying;
    bool bodyless; /* a reply to HEAD */
    bool keep_alive;
    bool peer_closed; /* the peer sends no more */
    bool lingering;   /* our side is shut; what still arrives is thrown away */
    bool closed;
};

struct kelp_http_thread {
    kelp_http_server *server;
    kelp_loop *loop;
    pthread_t id;
    bool started;
    bool stopping;
    kelp_http_connection *connections;
    char *scratch;
    kelp_loop_task stop_task;
    kelp_loop_timer drain_timer;
    uint64_t give_up_ns; /* when stopping: what is not back by then stays */
    /* the pool of calls, shared with the threads that run callbacks */
    pthread_mutex_t mutex;
    pthread_cond_t all_back;
    kelp_http_call *pool;
    size_t pool_count;
    size_t outstanding;
};

struct kelp_http_server {
    kelp_allocator allocator;
    kelp_http_server_options options;
    TRITONSERVER_Server *core;
    TRITONSERVER_ResponseAllocator *response_allocator;
    char *unix_path;
    int listen_fd;
    uint16_t port;
    kelp_loop_io listen_io;
    kelp_loop_timer listen_timer; /* armed while out of file descriptors */
    uint32_t next_thread;         /* accepting thread's */
    uint32_t thread_count;
    kelp_http_thread *threads;
    atomic_uint connection_count;
    uint64_t drain_timeout_ns;
    bool stopped;
    bool leaked; /* a model holds requests: nothing that they use may be freed */
};

/* Makes a connection for `fd`, which it takes also on failure. Accepting thread. */
kelp_status *kelp_http_connection_create(kelp_http_thread *thread, int take_fd,
                                         kelp_http_connection **out) KELP_MUST_USE;
/* Registers it with its loop; the adopt task. */
void kelp_http_connection_adopt(kelp_loop_task *task);
void kelp_http_connection_close(kelp_http_connection *connection);
/* Sends the reply of its call. */
void kelp_http_connection_reply(kelp_http_connection *connection);
/* The server is stopping: closes when nothing is going on. */
void kelp_http_connection_drain(kelp_http_connection *connection);
/* Time is up: cancels the call in flight and closes. */
void kelp_http_connection_abort(kelp_http_connection *connection);

/* The thread of the front-end that the caller is on, or NULL. */
kelp_http_thread *kelp_http_current_thread(void);
/* A connection has gone; ends the loop when the server stops and nothing is left to wait for. */
void kelp_http_thread_connection_gone(kelp_http_thread *thread);

#endif
