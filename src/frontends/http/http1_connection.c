/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An HTTP/1.1 connection: reads, feeds the parser, passes complete requests to the handler one at a
 * time, and writes responses in order.
 *
 * While a request is being processed, the connection continues to read into `pending`, up to a
 * limit. This buffers pipelined requests, and detects that the client has disconnected.
 */
#include "frontends/http/http1_connection.h"

#include "base/alloc.h"
#include "base/assert.h"
#include "base/checked.h"
#include "frontends/http/client.h"
#include "frontends/http/http1.h"
#include "frontends/http/socket.h"

#include <errno.h>
#include <stdio.h>
#include <sys/socket.h>

#define PENDING_MAX_BYTES ((size_t)64 * 1024)
#define PENDING_KEEP_BYTES ((size_t)4096)
#define DIRECT_MIN_BYTES ((size_t)4096) /* of body, to bypass the scratch buffer */
#define READS_PER_EVENT 64
#define LINGER_NS UINT64_C(2000000000)
/* An idle connection frees memory this time after its last response. */
#define RELAX_NS KELP_HTTP_SECOND_NS
#define MAX_MESSAGE 256
#define MAX_IOV 64

/* A connection. */
typedef struct kelp_http1_connection {
    kelp_http_connection base; /* first */
    kelp_http_stream stream;   /* of the exchange */
    kelp_event_loop_timer timer;
    kelp_http1_parser parser;
    kelp_buf pending; /* bytes read after the current request */
    size_t pending_at;
    kelp_http_handler *handler;   /* of the current request, after its head */
    kelp_http_exchange *exchange; /* the current request, or NULL */
    /* A part consists of `head`, the exchange's text and pieces, and `tail`. */
    kelp_buf head;
    kelp_str tail;
    uint64_t sent_bytes; /* of the part */
    uint64_t part_bytes;
    uint64_t deadline_ns; /* UINT64_MAX: none. If the timer fires earlier, it is set again */
    uint64_t head_start_ns;
    uint64_t body_start_ns; /* end of the head */
    uint32_t depth;         /* of enter(); the object is freed on the outermost leave() */
    bool running;           /* inside the loop over pending requests */
    bool reading_head;
    bool responding; /* a part of the response is being sent */
    bool last_part;  /* it is the last one, or the whole response */
    bool head_sent;  /* earlier parts were sent */
    bool chunked;    /* the parts are chunks */
    bool in_on_sent; /* during the call of handler->on_sent */
    bool bodyless;   /* the response to HEAD */
    bool keep_alive;
    bool peer_closed; /* the peer has shut down its sending side */
    bool lingering; /* the connection has shut down its sending side, and discards received bytes */
    bool closed;
} kelp_http1_connection;

static void run(kelp_http1_connection *c);

/* ---- closing ---- */

static void connection_free(kelp_http1_connection *c) {
    kelp_allocator allocator = c->base.thread->allocator;
    KELP_ASSERT(c->closed && c->depth == 0 && !c->exchange);
    kelp_http1_parser_deinit(&c->parser);
    kelp_buf_deinit(&c->pending);
    kelp_buf_deinit(&c->head);
    kelp_free(allocator, c, sizeof *c);
}

static void enter(kelp_http1_connection *c) {
    c->depth++;
}

/* Frees a closed connection. */
static void leave(kelp_http1_connection *c) {
    KELP_ASSERT(c->depth > 0);
    if (--c->depth == 0 && c->closed)
        connection_free(c);
}

/* Closes the connection. The call must be between enter() and leave(), or be the last use. */
static void connection_close(kelp_http1_connection *c) {
    if (c->closed)
        return;
    kelp_event_loop *loop = c->base.thread->loop;
    c->closed = true;
    kelp_event_loop_timer_cancel(loop, &c->timer);
    kelp_http_socket_close(&c->base);
    kelp_http_exchange *exchange = c->exchange;
    if (exchange != NULL) {
        c->exchange = NULL;
        exchange->stream = NULL;
        if (c->responding && c->last_part)
            kelp_http_exchange_release(exchange);
        else
            exchange->handler->on_cancel(exchange);
    }
    kelp_http_connection_leave(&c->base);
    if (c->depth == 0)
        connection_free(c);
}

/* ---- events and deadlines ---- */

static void on_timer(kelp_event_loop_timer *timer);

/* Makes later events close the connection, so that callers need not handle a closed connection. */
static void give_up(kelp_http1_connection *c, kelp_status *take_status) {
    kelp_status_free(take_status);
    shutdown(c->base.io.fd, SHUT_RDWR);
}

/* Makes the timer fire at a time, or earlier. A timer that fires too early is set again. */
static void set_timer(kelp_http1_connection *c, uint64_t due_ns) {
    if (c->timer.heap_index != 0 && c->timer.deadline_ns <= due_ns)
        return;
    c->timer.fn = on_timer;
    c->timer.userp = c;
    kelp_status *status = kelp_event_loop_timer_set(c->base.thread->loop, &c->timer, due_ns);
    if (status != NULL) /* slow clients require a timer */
        give_up(c, status);
}

static void set_deadline(kelp_http1_connection *c, uint64_t after_ns) {
    kelp_event_loop *loop = c->base.thread->loop;
    c->deadline_ns = after_ns ? kelp_event_loop_now_ns(loop) + after_ns : UINT64_MAX;
    if (!c->closed && after_ns)
        set_timer(c, c->deadline_ns);
}

static void set_events(kelp_http1_connection *c, uint32_t events) {
    if (c->closed)
        return;
    kelp_status *status = kelp_http_socket_watch(&c->base, events);
    if (status != NULL)
        give_up(c, status);
}

/* Polls for the events that the connection waits for. */
static void update_events(kelp_http1_connection *c) {
    uint32_t events = 0;
    bool full = c->exchange != NULL && c->pending.length - c->pending_at >= PENDING_MAX_BYTES;
    if (!c->peer_closed && !full)
        events |= KELP_LOOP_READ;
    if (c->responding)
        events |= KELP_LOOP_WRITE;
    set_events(c, events);
}

/* ---- responses ---- */

static void linger(kelp_http1_connection *c) {
    KELP_ASSERT(!c->exchange && !c->closed);
    c->lingering = true;
    kelp_http_socket_shutdown(&c->base);
    set_deadline(c, LINGER_NS);
    if (c->peer_closed)
        connection_close(c);
    else
        set_events(c, KELP_LOOP_READ);
}

/* Prepares for the next request, or closes the connection. */
static void response_done(kelp_http1_connection *c) {
    const kelp_http_server_options *options = c->base.thread->options;
    KELP_ASSERT(c->responding && c->sent_bytes == c->part_bytes);
    bool broken = c->parser.stage == KELP_HTTP1_STAGE_FAILED;
    kelp_http_exchange_end_entry(c->exchange);
    kelp_http_exchange_release(c->exchange);
    c->exchange = NULL;
    c->responding = c->head_sent = c->chunked = false;
    c->tail = (kelp_str){0};
    kelp_buf_clear(&c->head);
    bool unread = c->pending.length > c->pending_at;
    kelp_http1_parser_clear(&c->parser);
    c->handler = NULL;
    c->reading_head = false;
    if (!c->keep_alive) {
        /* Closing with unread bytes would reset the connection, and the client could lose the
         * response. */
        if (broken || unread)
            linger(c);
        else
            connection_close(c);
        return;
    }
    set_deadline(c, options->idle_timeout_ns);
    set_timer(c, kelp_event_loop_now_ns(c->base.thread->loop) + RELAX_NS);
    update_events(c);
}

/* Collects the bytes of the part that are not sent yet; returns the number of iov elements. */
static size_t gather(const kelp_http1_connection *c, struct iovec *iov) {
    const kelp_http_exchange *exchange = c->exchange;
    uint64_t skip = c->sent_bytes;
    size_t n = 0;
    size_t piece_count = c->bodyless ? 0 : exchange->piece_count;
    size_t count = piece_count + (c->tail.length ? 3 : 2);
    for (size_t i = 0; i < count && n < MAX_IOV; i++) {
        kelp_http_piece piece = {c->head.data, c->head.length};
        if (i == 1)
            piece = (kelp_http_piece){exchange->text.data, c->bodyless ? 0 : exchange->text.length};
        else if (i == piece_count + 2)
            piece = (kelp_http_piece){c->tail.data, c->tail.length};
        else if (i > 1)
            piece = exchange->pieces[i - 2];
        if (skip >= piece.length) {
            skip -= piece.length;
            continue;
        }
        iov[n].iov_base = (void *)((uintptr_t)piece.data + (uintptr_t)skip);
        iov[n].iov_len = piece.length - (size_t)skip;
        skip = 0;
        n++;
    }
    return n;
}

/* Writes the part. Returns true if all of it is written and the connection is open. */
static bool write_part(kelp_http1_connection *c) {
    struct iovec iov[MAX_IOV];
    while (c->sent_bytes < c->part_bytes) {
        ssize_t n = kelp_http_socket_write(&c->base, iov, gather(c, iov));
        if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) {
            update_events(c);
            return false;
        }
        if (n < 0) {
            connection_close(c);
            return false;
        }
        c->sent_bytes += (uint64_t)n;
        KELP_ASSERT(c->sent_bytes <= c->part_bytes);
        if (c->sent_bytes < c->part_bytes)
            set_deadline(c, c->base.thread->options->idle_timeout_ns);
    }
    return true;
}

/* Sends parts until the response is complete, the socket's buffer is full, or the handler has not
 * sent the next part. */
static void send_parts(kelp_http1_connection *c) {
    while (c->responding && write_part(c)) {
        if (c->last_part) {
            response_done(c);
            return;
        }
        kelp_http_exchange *exchange = c->exchange;
        kelp_buf_clear(&exchange->text);
        exchange->piece_count = 0;
        c->responding = false;
        set_deadline(c, 0);
        c->in_on_sent = true;
        exchange->handler->on_sent(exchange); /* may send the next part */
        c->in_on_sent = false;
        if (c->closed)
            return;
    }
    if (!c->closed)
        update_events(c);
}

/* Frames a part as a chunk. An empty part is no chunk, because an empty chunk ends the response. */
static void frame_chunk(kelp_http1_connection *c, uint64_t length) {
    c->tail = (kelp_str){0};
    if (!c->chunked || c->bodyless)
        return;
    if (length)
        kelp_http1_put_chunk_size(&c->head, length);
    if (c->last_part)
        c->tail = length ? KELP_HTTP1_CHUNK_END_AND_LAST : KELP_HTTP1_LAST_CHUNK;
    else if (length)
        c->tail = KELP_HTTP1_CHUNK_END;
}

static void write_head(kelp_http1_connection *c) {
    const kelp_http_exchange *exchange = c->exchange;
    uint64_t length = kelp_http_exchange_content_length(exchange);
    int minor = c->parser.framing.minor;
    kelp_buf *head = &c->head;
    kelp_buf_clear(head);
    if (!c->head_sent) {
        kelp_http1_put_status(head, exchange->status);
        for (size_t i = 0; i < exchange->header_count; i++)
            kelp_http1_put_header(head, exchange->headers[i].name, exchange->headers[i].value);
        c->chunked = !c->last_part && minor > 0;
        if (c->last_part) {
            kelp_http1_end_head(head, minor, c->keep_alive, length);
        } else {
            kelp_http1_end_head_chunked(head, minor, c->keep_alive);
            c->keep_alive = c->keep_alive && c->chunked;
        }
    }
    frame_chunk(c, length);
    c->part_bytes = head->length + c->tail.length + (c->bodyless ? 0 : length);
    c->sent_bytes = 0;
    c->head_sent = true;
}

static void on_send(kelp_http_stream *stream, bool last) {
    kelp_http1_connection *c =
        (kelp_http1_connection *)((char *)stream - offsetof(kelp_http1_connection, stream));
    KELP_ASSERT(c->exchange && !c->responding && !c->closed);
    enter(c);
    if (c->base.thread->stopping)
        c->keep_alive = false;
    c->responding = true;
    c->last_part = last;
    write_head(c);
    if (c->head.failed) {
        connection_close(c);
    } else if (!c->in_on_sent) { /* otherwise send_parts continues */
        set_deadline(c, c->base.thread->options->idle_timeout_ns);
        send_parts(c);
        if (!c->closed && c->exchange == NULL) /* pipelined requests may be waiting */
            run(c);
    }
    leave(c);
}

/* ---- requests ---- */

/* Creates the exchange of a request, which was admitted or is rejected. */
static bool begin_exchange(kelp_http1_connection *c, bool admitted) {
    KELP_ASSERT(!c->exchange && !c->responding);
    kelp_http_exchange *exchange;
    kelp_http_thread *thread = c->base.thread;
    if (c->handler == NULL) /* the head is invalid */
        c->handler = thread->handlers[thread->handler_count - 1];
    kelp_status *status = kelp_http_exchange_acquire(thread, c->handler, &exchange);
    if (status != NULL) {
        kelp_status_free(status);
        if (admitted)
            kelp_http_client_end_request(c->base.client);
        connection_close(c);
        return false;
    }
    exchange->client = admitted ? c->base.client : NULL;
    exchange->stream = &c->stream;
    exchange->request = &c->parser.request;
    if (admitted)
        exchange->start_ns = c->head_start_ns;
    c->exchange = exchange;
    c->bodyless = kelp_str_is(c->parser.request.method, "HEAD");
    kelp_http_exchange_begin_entry(exchange, &c->base.peer);
    set_deadline(c, 0);
    return true;
}

static void start_request(kelp_http1_connection *c) {
    kelp_http_status error_status = KELP_HTTP_OK;
    const char *error_text;
    bool admitted = kelp_http_connection_admit(&c->base, &error_status, &error_text);
    if (!begin_exchange(c, admitted))
        return;
    kelp_http_exchange *exchange = c->exchange;
    c->keep_alive = c->parser.framing.keep_alive;
    if (!admitted) {
        exchange->handler->on_error(exchange, error_status, error_text);
        kelp_http_exchange_send(exchange);
        return;
    }
    /* The exchange takes the body, because it may outlive the connection. Its previous buffer will
     * receive the next body. */
    kelp_http_body body = exchange->body;
    exchange->body = c->parser.body;
    c->parser.body = body;
    exchange->handler->on_request(exchange);
    /* Here, the exchange may already be recycled. */
}

/* Responds to an invalid request, and closes the connection after that. */
static void reject(kelp_http1_connection *c) {
    const kelp_http1_parser *parser = &c->parser;
    const char *text = parser->error_text;
    char message[MAX_MESSAGE];
    if (parser->error_status == KELP_HTTP_CONTENT_TOO_LARGE && parser->framing.chunked) {
        snprintf(message, sizeof message,
                 "the chunked request body is larger than the limit of %llu bytes",
                 (unsigned long long)parser->body_limit_bytes);
        text = message;
    } else if (parser->error_status == KELP_HTTP_CONTENT_TOO_LARGE) {
        snprintf(message, sizeof message,
                 "the request body is larger than the limit of %llu bytes (Content-Length %llu)",
                 (unsigned long long)parser->body_limit_bytes,
                 (unsigned long long)parser->framing.content_length);
        text = message;
    }
    if (!begin_exchange(c, false))
        return;
    c->keep_alive = false;
    c->parser.stage = KELP_HTTP1_STAGE_FAILED;
    c->exchange->handler->on_error(c->exchange, parser->error_status, text);
    kelp_http_exchange_send(c->exchange);
}

/* Sets limit and alignment of the body after the head has arrived. */
static void on_head(kelp_http1_connection *c) {
    kelp_http1_parser *parser = &c->parser;
    const kelp_http1_framing *framing = &parser->framing;
    c->body_start_ns = kelp_event_loop_now_ns(c->base.thread->loop);
    if (!c->reading_head) /* it arrived at once */
        c->head_start_ns = c->body_start_ns;
    parser->request.version = 10 + (unsigned)framing->minor;
    parser->request.services = c->base.services;
    kelp_http_handler *handler = kelp_http_thread_handler(c->base.thread, &parser->request);
    c->handler = handler;
    kelp_http_body_rules rules = {.max_bytes = parser->body_limit_bytes};
    handler->on_head(handler, &parser->request, &rules);
    parser->body_limit_bytes = rules.max_bytes;
    parser->align_offset = rules.aligned_offset % KELP_HTTP_BODY_ALIGNMENT;
    if (framing->expect_continue && (framing->chunked || framing->content_length > 0) &&
        (framing->chunked || framing->content_length <= parser->body_limit_bytes)) {
        static char text[] = "HTTP/1.1 100 Continue\r\n\r\n";
        struct iovec iov = {text, sizeof text - 1};
        /* No response is being sent, so that the socket's buffer has space for these few bytes. */
        if (kelp_http_socket_write(&c->base, &iov, 1) != (ssize_t)sizeof text - 1)
            connection_close(c);
    }
}

/* Sets the deadline for the next bytes of a request, at most `after_ns` from now. */
static void set_arrival_deadline(kelp_http1_connection *c, uint64_t after_ns) {
    uint64_t now_ns = kelp_event_loop_now_ns(c->base.thread->loop);
    uint64_t end_ns = now_ns + after_ns;
    if (c->parser.stage != KELP_HTTP1_STAGE_HEAD) {
        uint64_t seconds = c->parser.body.length / KELP_HTTP_BODY_BYTES_PER_S;
        end_ns = KELP_MIN(end_ns, c->body_start_ns + c->base.thread->options->body_timeout_ns +
                                      seconds * KELP_HTTP_SECOND_NS);
    }
    end_ns = KELP_MIN(end_ns, kelp_http_thread_stop_deadline_ns(c->base.thread, 0));
    set_deadline(c, end_ns > now_ns ? end_ns - now_ns : 1);
}

static void note_progress(kelp_http1_connection *c) {
    const kelp_http_server_options *options = c->base.thread->options;
    if (kelp_http1_parser_idle(&c->parser))
        return;
    if (c->parser.stage != KELP_HTTP1_STAGE_HEAD) {
        c->reading_head = false;
        set_arrival_deadline(c, options->idle_timeout_ns);
    } else if (!c->reading_head) { /* one deadline for the complete head */
        c->reading_head = true;
        c->head_start_ns = kelp_event_loop_now_ns(c->base.thread->loop);
        set_arrival_deadline(c, options->header_timeout_ns);
    }
}

static void handle_event(kelp_http1_connection *c, kelp_http1_event event) {
    if (event == KELP_HTTP1_COMPLETE)
        start_request(c);
    else if (event == KELP_HTTP1_FAILED)
        reject(c);
}

/* Feeds bytes until a request is complete. Returns the number of consumed bytes. */
static size_t feed(kelp_http1_connection *c, const char *data, size_t length) {
    size_t used = 0;
    for (;;) {
        size_t n = 0;
        kelp_http1_event event = kelp_http1_feed(&c->parser, data + used, length - used, &n);
        used += n;
        if (event == KELP_HTTP1_HEAD) {
            on_head(c);
            if (c->closed)
                return used;
            continue;
        }
        if (event == KELP_HTTP1_MORE)
            note_progress(c);
        else
            handle_event(c, event);
        return used;
    }
}

/* Processes pending bytes. */
static void run(kelp_http1_connection *c) {
    if (c->running) /* called from inside the following loop, which continues by itself */
        return;
    c->running = true;
    while (!c->closed && !c->lingering && c->exchange == NULL &&
           c->pending_at < c->pending.length) {
        size_t used = feed(c, c->pending.data + c->pending_at, c->pending.length - c->pending_at);
        c->pending_at += used;
    }
    c->running = false;
    if (c->closed)
        return;
    if (c->lingering || c->pending_at == c->pending.length) {
        if (c->pending.capacity > PENDING_KEEP_BYTES) /* idle connections keep little memory */
            kelp_buf_deinit(&c->pending);
        kelp_buf_clear(&c->pending);
        c->pending_at = 0;
    }
    if (c->exchange == NULL && c->peer_closed)
        connection_close(c); /* no further request can arrive */
    else
        update_events(c);
}

/* ---- events ---- */

static void keep(kelp_http1_connection *c, const char *data, size_t length) {
    if (c->pending_at) {
        memmove(c->pending.data, c->pending.data + c->pending_at,
                c->pending.length - c->pending_at);
        c->pending.length -= c->pending_at;
        c->pending_at = 0;
    }
    kelp_buf_append(&c->pending, data, length);
    if (c->pending.failed)
        connection_close(c);
}

static void on_bytes(kelp_http1_connection *c, const char *data, size_t length) {
    if (c->lingering || length == 0)
        return;
    size_t used = 0;
    if (c->exchange == NULL && c->pending_at == c->pending.length)
        used = feed(c, data, length);
    if (c->closed || used == length)
        return;
    keep(c, data + used, length - used);
    if (!c->closed)
        run(c);
}

static void on_end(kelp_http1_connection *c) {
    c->peer_closed = true;
    if (c->exchange == NULL || c->lingering) {
        connection_close(c);
        return;
    }
    /* The response is still sent, because the peer may have shut down its sending side only. */
    if (!c->responding)
        c->exchange->handler->on_cancel(c->exchange);
    update_events(c);
}

/* Reads once. Returns false if there is no more to read. */
static bool read_once(kelp_http1_connection *c) {
    size_t space_bytes = 0;
    char *space = c->exchange != NULL || c->lingering
                      ? NULL
                      : kelp_http1_body_space(&c->parser, &space_bytes);
    size_t limit = KELP_HTTP_SCRATCH_BYTES;
    if (c->exchange != NULL)
        limit -= KELP_MIN(limit, c->pending.length - c->pending_at);
    if (limit == 0)
        return false;
    bool direct = space != NULL && space_bytes >= DIRECT_MIN_BYTES;
    struct iovec iov[2] = {{space, space_bytes}, {c->base.thread->scratch, limit}};
    ssize_t n = kelp_http_socket_read(&c->base, direct ? iov : iov + 1, direct ? 2 : 1);
    if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
        return false;
    if (n <= 0) {
        if (n < 0)
            connection_close(c);
        else
            on_end(c);
        return false;
    }
    size_t got = (size_t)n;
    size_t into_body = direct ? KELP_MIN(got, space_bytes) : 0;
    if (into_body) {
        note_progress(c);
        handle_event(c, kelp_http1_body_commit(&c->parser, into_body));
    }
    if (!c->closed)
        on_bytes(c, c->base.thread->scratch, got - into_body);
    /* After a short read, the socket is usually empty; otherwise another event follows. */
    return !c->closed && got == (direct ? space_bytes : 0) + limit;
}

static void on_io(kelp_event_loop_io *io, uint32_t events) {
    kelp_http1_connection *c = io->userp;
    enter(c);
    if (events & KELP_LOOP_WRITE)
        kelp_http_socket_flush(&c->base);
    if ((events & KELP_LOOP_WRITE) && c->responding) {
        send_parts(c);
        if (!c->closed && c->exchange == NULL)
            run(c);
    }
    if (!c->closed && (events & KELP_LOOP_READ) && !c->peer_closed) {
        for (int i = 0; i < READS_PER_EVENT && !c->closed && !c->peer_closed; i++)
            if (!read_once(c))
                break;
    } else if (!c->closed && (events & KELP_LOOP_HANGUP)) {
        connection_close(c); /* reset, or shut down in both directions */
    }
    if (!c->closed)
        update_events(c);
    leave(c);
}

/* Frees the buffers of a connection that has been idle for a time. Returns the time of the next
 * check. */
static uint64_t relax(kelp_http1_connection *c, uint64_t now_ns) {
    uint64_t idle_ns = c->deadline_ns - c->base.thread->options->idle_timeout_ns;
    bool idle = c->exchange == NULL && !c->lingering && c->pending.length == 0 &&
                kelp_http1_parser_idle(&c->parser);
    if (!idle)
        return c->deadline_ns;
    if (now_ns < idle_ns + RELAX_NS)
        return KELP_MIN(c->deadline_ns, idle_ns + RELAX_NS);
    kelp_http1_parser_deinit(&c->parser);
    kelp_buf_deinit(&c->pending);
    kelp_buf_deinit(&c->head);
    return c->deadline_ns;
}

static void on_timer(kelp_event_loop_timer *timer) {
    kelp_http1_connection *c = timer->userp;
    uint64_t now = kelp_event_loop_now_ns(c->base.thread->loop);
    enter(c);
    if (c->deadline_ns == UINT64_MAX) {
        /* A request is being processed; set_deadline sets the timer again. */
    } else if (now < c->deadline_ns) {
        set_timer(c, relax(c, now));
    } else if (c->exchange != NULL || c->lingering || kelp_http1_parser_idle(&c->parser)) {
        connection_close(c);
    } else {
        bool stops = now >= kelp_http_thread_stop_deadline_ns(c->base.thread, 0);
        c->parser.error_status = stops ? KELP_HTTP_SERVICE_UNAVAILABLE : KELP_HTTP_REQUEST_TIMEOUT;
        c->parser.error_text = stops ? KELP_HTTP_STOP_TEXT : "the request did not arrive in time";
        reject(c);
    }
    leave(c);
}

/* ---- operations ---- */

static void connection_start(kelp_http_connection *base, kelp_str received) {
    kelp_http1_connection *c = (kelp_http1_connection *)base;
    enter(c);
    set_deadline(c, base->thread->options->idle_timeout_ns);
    on_bytes(c, received.data, received.length);
    if (!c->closed)
        update_events(c);
    leave(c);
}

/* Returns true if the client connected, or sent or received something, in the last second. */
static bool is_recent(const kelp_http1_connection *c) {
    const kelp_http_thread *thread = c->base.thread;
    return c->deadline_ns + KELP_HTTP_SECOND_NS >
           kelp_event_loop_now_ns(thread->loop) + thread->options->idle_timeout_ns;
}

static void connection_drain(kelp_http_connection *base, bool now) {
    kelp_http1_connection *c = (kelp_http1_connection *)base;
    enter(c);
    c->keep_alive = false;
    if (c->exchange == NULL && !c->lingering && kelp_http1_parser_idle(&c->parser)) {
        (void)read_once(c); /* a request may have arrived since the last event */
        if (!c->closed && c->exchange == NULL && kelp_http1_parser_idle(&c->parser) &&
            (now || !is_recent(c)))
            connection_close(c);
        else if (!c->closed)
            update_events(c);
    } else if (c->exchange == NULL && !c->lingering) {
        set_arrival_deadline(c, KELP_HTTP_STOP_REQUEST_NS);
    }
    leave(c);
}

static void connection_abort(kelp_http_connection *base) {
    connection_close((kelp_http1_connection *)base);
}

kelp_status *kelp_http1_connection_create(kelp_http_thread *thread, int take_fd,
                                          kelp_http_connection **out) {
    static const kelp_http_connection_ops ops = {connection_start, connection_drain,
                                                 connection_abort};
    kelp_allocator allocator = thread->allocator;
    kelp_http1_connection *c;
    KELP_TRY(KELP_NEW(allocator, kelp_http1_connection, &c));
    c->base.ops = &ops;
    c->base.thread = thread;
    c->base.io = (kelp_event_loop_io){.fd = take_fd, .fn = on_io, .userp = c};
    c->stream.send = on_send;
    c->deadline_ns = UINT64_MAX;
    kelp_http1_parser_init(&c->parser, allocator, NULL);
    c->parser.body.budget = thread->budget;
    kelp_buf_init(&c->pending, allocator);
    kelp_buf_init(&c->head, allocator);
    *out = &c->base;
    return NULL;
}
