/* SPDX-License-Identifier: Apache-2.0 */
/* The I/O of an HTTP/2 connection: reads into nghttp2, writes its frames, timeouts, closing. */
#include "frontends/h2/connection.h"

#include "base/alloc.h"
#include "base/assert.h"
#include "base/checked.h"
#include "frontends/h2/internal.h"
#include "frontends/http/socket.h"

#include <errno.h>

#define READS_PER_EVENT 16
/* Limits of the requests that are processed, or cancelled, before other connections are next. */
#define REQUESTS_PER_EVENT 16
/* The first reads are small, because they may contain hundreds of requests. */
#define MIN_READ_BYTES KELP_HTTP_FIRST_READ_BYTES
#define MAX_IOV 256
#define FLUSH_MAX_BYTES ((uint64_t)8 * 1024 * 1024)
#define LINGER_NS (2 * KELP_HTTP_SECOND_NS)
#define CHECKS_PER_TIMEOUT 4 /* of the streams */
/* A connection without streams returns memory after this time without a byte. */
#define RELAX_NS KELP_HTTP_SECOND_NS
#define STOP_CHECK_NS (KELP_HTTP_SECOND_NS / 4) /* between checks while the server stops */

static void flush(kelp_http2_connection *c);
static void set_timer(kelp_http2_connection *c);

/* ---- closing ---- */

static void connection_free(kelp_http2_connection *c) {
    kelp_allocator allocator = c->base.thread->allocator;
    KELP_ASSERT(c->closed && c->depth == 0 && !c->streams && c->timer.heap_index == 0);
    nghttp2_session_del(c->session);
    kelp_http2_output_deinit(&c->output);
    kelp_free(allocator, c, sizeof *c);
}

static void enter(kelp_http2_connection *c) {
    c->depth++;
}

/* Sends what was submitted since enter(), sets the timer, and frees a closed connection without
 * streams. */
static void leave(kelp_http2_connection *c) {
    KELP_ASSERT(c->depth > 0);
    if (c->depth == 1)
        while (c->flush_needed && !c->closed)
            flush(c);
    if (c->depth == 1 && !c->closed)
        set_timer(c);
    if (--c->depth == 0 && c->closed && c->streams == NULL) {
        kelp_event_loop_timer_cancel(c->base.thread->loop, &c->timer);
        connection_free(c);
    }
}

/* Empties an output without writing it. */
static void drop_output(kelp_http2_output *output) {
    for (size_t i = output->at; i < output->count; i++)
        if (output->segments[i].stream != NULL)
            output->segments[i].stream->queued--;
    kelp_http2_output_clear(output);
}

/* Ends a stream of a connection that is closing. */
static void abandon_stream(kelp_http2_stream *s) {
    kelp_http_exchange *exchange = s->exchange;
    if (exchange != NULL && s->finished) { /* the response is complete, but not written */
        s->exchange = NULL;
        exchange->stream = NULL;
        kelp_http_exchange_release(exchange);
    }
    if (s->closed)
        kelp_http2_stream_recycle(s);
    else
        kelp_http2_stream_on_close(s);
}

/* Sets the timer to the next round. Returns false if memory is exhausted. */
static bool continue_later(kelp_http2_connection *c) {
    kelp_status *status = kelp_event_loop_timer_set(c->base.thread->loop, &c->timer, 0);
    bool set = status == NULL;
    kelp_status_free(status);
    return set;
}

/* Ends streams of a closed connection: those without an exchange, and some of the others. The timer
 * continues in the next round, so that other connections do not wait. */
static void abandon_streams(kelp_http2_connection *c) {
    unsigned ended = 0;
    for (kelp_http2_stream *s = c->streams, *next; s != NULL; s = next) {
        next = s->next;
        if (s->exchange != NULL && ended == REQUESTS_PER_EVENT)
            continue;
        ended += s->exchange != NULL;
        abandon_stream(s);
    }
    bool later = c->streams != NULL && !c->base.thread->stopping && continue_later(c);
    while (!later && c->streams != NULL)
        abandon_stream(c->streams);
}

/* Closes the connection, between enter() and leave(). Not called by callbacks of nghttp2. */
static void connection_close(kelp_http2_connection *c) {
    if (c->closed)
        return;
    kelp_event_loop *loop = c->base.thread->loop;
    KELP_ASSERT(c->depth > 0 && !c->generating);
    c->closed = true;
    kelp_event_loop_timer_cancel(loop, &c->timer);
    kelp_event_loop_defer_cancel(loop, &c->flush_task);
    kelp_http_socket_close(&c->base);
    drop_output(&c->shared->output);
    drop_output(&c->output);
    abandon_streams(c);
    kelp_http_connection_leave(&c->base);
}

static void set_events(kelp_http2_connection *c, uint32_t events) {
    if (c->closed)
        return;
    kelp_status *status = kelp_http_socket_watch(&c->base, events);
    if (status == NULL)
        return;
    kelp_status_free(status);
    connection_close(c);
}

/* Shuts down the sending side, and waits for the client: closing with unread bytes would reset the
 * connection, and the client could lose the last frames. */
static void linger(kelp_http2_connection *c) {
    if (c->lingering)
        return;
    c->lingering = true;
    kelp_http_socket_shutdown(&c->base);
    while (c->streams != NULL)
        abandon_stream(c->streams);
    kelp_status *status = kelp_event_loop_timer_set(
        c->base.thread->loop, &c->timer, kelp_event_loop_now_ns(c->base.thread->loop) + LINGER_NS);
    if (status != NULL) {
        kelp_status_free(status);
        connection_close(c);
    }
    set_events(c, KELP_LOOP_READ);
}

/* ---- writing ---- */

/* Writes the output, and processes the parts that are written. Returns true if the output is empty
 * and the connection is open. */
static bool write_output(kelp_http2_connection *c, kelp_http2_output *output) {
    struct iovec iov[MAX_IOV];
    while (!kelp_http2_output_empty(output)) {
        size_t count = kelp_http2_output_gather(output, iov, MAX_IOV);
        if (count > 0) {
            ssize_t n = kelp_http_socket_write(&c->base, iov, count);
            if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
                return false;
            if (n < 0) {
                connection_close(c);
                return false;
            }
            c->write_ns = kelp_event_loop_now_ns(c->base.thread->loop);
            kelp_http2_output_advance(output, (size_t)n);
        }
        const kelp_http2_segment *segment;
        while ((segment = kelp_http2_output_next(output)) != NULL)
            if (segment->ends_part)
                kelp_http2_stream_on_written(segment->stream);
    }
    kelp_http2_output_clear(output);
    return true;
}

/* Appends the frames of nghttp2 to the shared output, up to a limit. */
static void generate(kelp_http2_connection *c) {
    kelp_http2_output *output = &c->shared->output;
    KELP_ASSERT(output->count == 0);
    c->generating = true;
    c->paused = false;
    kelp_http2_memory_begin_send(&c->shared->memory);
    while (!c->paused && !c->failed) {
        const uint8_t *data;
        ssize_t n = nghttp2_session_mem_send(c->session, &data);
        if (n < 0 || (n > 0 && !kelp_http2_output_copy(output, data, (size_t)n)))
            c->failed = true;
        if (n <= 0)
            break;
    }
    c->generating = false;
}

/* Sends frames until there are none, or the socket is full. */
static void send_frames(kelp_http2_connection *c) {
    kelp_http2_output *shared = &c->shared->output;
    uint64_t sent_bytes = 0;
    while (sent_bytes < FLUSH_MAX_BYTES) {
        if (!kelp_http2_output_empty(&c->output)) {
            if (!write_output(c, &c->output))
                return;
            kelp_http2_output_deinit(&c->output); /* idle connections keep little memory */
        }
        generate(c);
        if (c->failed || kelp_http2_output_empty(shared))
            return;
        sent_bytes += shared->unsent_bytes;
        if (!write_output(c, shared) && !c->closed) {
            kelp_http2_output rest = *shared;
            *shared = c->output;
            c->output = rest;
            return;
        }
        if (c->closed || c->failed)
            return;
    }
    c->paused = true; /* other connections are next */
}

static void flush(kelp_http2_connection *c) {
    c->flush_needed = false;
    if (!c->failed)
        send_frames(c);
    if (c->failed)
        connection_close(c);
    if (c->closed || c->lingering)
        return;
    bool empty = kelp_http2_output_empty(&c->output);
    bool expelled = c->expelled && c->violated; /* the GOAWAY was sent */
    bool over = !nghttp2_session_want_read(c->session) && !nghttp2_session_want_write(c->session);
    if (empty && (expelled || over)) {
        if (c->violated)
            linger(c);
        else
            connection_close(c);
        return;
    }
    set_events(c, empty && !c->paused ? KELP_LOOP_READ : KELP_LOOP_READ | KELP_LOOP_WRITE);
}

static void on_flush(kelp_event_loop_deferred *task) {
    kelp_http2_connection *c =
        (kelp_http2_connection *)((char *)task - offsetof(kelp_http2_connection, flush_task));
    enter(c);
    leave(c);
}

void kelp_http2_connection_wake(kelp_http2_connection *c) {
    if (c->closed)
        return;
    c->flush_needed = true;
    if (c->depth > 0) /* leave() flushes */
        return;
    c->flush_task.fn = on_flush;
    kelp_event_loop_defer(c->base.thread->loop, &c->flush_task);
}

/* ---- timeouts ---- */

/* Returns the time without a byte from the client after which an idle connection ends. */
static uint64_t idle_timeout_ns(const kelp_http2_connection *c) {
    const kelp_http_server_options *options = c->base.thread->options;
    return c->greeted ? options->idle_timeout_ns : options->header_timeout_ns;
}

/* Sets the time of the next check: soon if there are streams, else the idle timeout; sooner if the
 * server stops, or if keepalive requires it. */
static void set_timer(kelp_http2_connection *c) {
    kelp_event_loop *loop = c->base.thread->loop;
    uint64_t timeout_ns = idle_timeout_ns(c);
    bool has_streams = c->stream_count > 0;
    uint64_t due_ns = c->active_ns + timeout_ns;
    if (has_streams) {
        uint64_t now_ns = kelp_event_loop_now_ns(loop);
        due_ns = now_ns + timeout_ns / CHECKS_PER_TIMEOUT;
        if (c->base.thread->stopping)
            due_ns = KELP_MIN(due_ns, now_ns + STOP_CHECK_NS);
    }
    if (!has_streams && !c->relaxed)
        due_ns = KELP_MIN(due_ns, c->active_ns + RELAX_NS);
    if (c->keepalive.policy != NULL)
        due_ns =
            KELP_MIN(due_ns, kelp_http2_keepalive_due_ns(&c->keepalive, c->active_ns, has_streams));
    if (c->closed || c->lingering || (c->timer.heap_index != 0 && c->timer.deadline_ns <= due_ns))
        return;
    kelp_status *status = kelp_event_loop_timer_set(loop, &c->timer, due_ns);
    if (status != NULL) { /* slow clients require a timer */
        kelp_status_free(status);
        connection_close(c);
    }
}

/* Resets the streams that wait for the client for too long: for the rest of a body, or for credit.
 */
static void reset_stalled_streams(kelp_http2_connection *c, uint64_t now_ns) {
    uint64_t timeout_ns = c->base.thread->options->idle_timeout_ns;
    uint64_t stop_ns = kelp_http_thread_stop_deadline_ns(c->base.thread, 0);
    for (kelp_http2_stream *s = c->streams; s != NULL; s = s->next) {
        bool collects = !s->received && !s->streamed && !s->started;
        if (collects && !s->closed && now_ns >= stop_ns) {
            kelp_http2_stream_reject(s, KELP_HTTP_SERVICE_UNAVAILABLE, KELP_HTTP_STOP_TEXT);
            continue;
        }
        bool slow = collects && now_ns >= kelp_http2_stream_body_deadline(s);
        bool stalls = (s->responding || collects) && now_ns >= s->progress_ns + timeout_ns;
        if (s->closed || (!slow && !stalls))
            continue;
        if (nghttp2_submit_rst_stream(c->session, NGHTTP2_FLAG_NONE, s->id, NGHTTP2_CANCEL) != 0)
            c->failed = true;
        c->flush_needed = true;
    }
}

static void end_session(kelp_http2_connection *c) {
    if (c->draining)
        return;
    c->draining = true;
    c->flush_needed = true;
    int32_t last = nghttp2_session_get_last_proc_stream_id(c->session);
    if (nghttp2_submit_goaway(c->session, NGHTTP2_FLAG_NONE, last, NGHTTP2_NO_ERROR, NULL, 0) != 0)
        c->failed = true;
}

/* Announces that the connection ends. Streams that the client has opened by then are processed. */
static void notify_end(kelp_http2_connection *c) {
    if (c->notified)
        return;
    c->notified = true;
    c->flush_needed = true;
    if (nghttp2_submit_shutdown_notice(c->session) != 0)
        c->failed = true;
}

static void check_keepalive(kelp_http2_connection *c, uint64_t now_ns) {
    bool waits = false;
    while (!c->closed && !waits) {
        switch (
            kelp_http2_keepalive_check(&c->keepalive, now_ns, c->active_ns, c->stream_count > 0)) {
        case KELP_HTTP2_KEEPALIVE_WAIT:
            waits = true;
            break;
        case KELP_HTTP2_KEEPALIVE_PING:
            c->flush_needed = true;
            if (nghttp2_submit_ping(c->session, NGHTTP2_FLAG_NONE, NULL) != 0)
                c->failed = true;
            break;
        case KELP_HTTP2_KEEPALIVE_NOTIFY:
            notify_end(c);
            break;
        case KELP_HTTP2_KEEPALIVE_END:
            end_session(c);
            break;
        case KELP_HTTP2_KEEPALIVE_CLOSE:
            connection_close(c);
            break;
        }
    }
}

/* Returns memory of a connection that has been idle for a time. */
static void relax(kelp_http2_connection *c, uint64_t now_ns) {
    if (c->relaxed || c->stream_count > 0 || now_ns < c->active_ns + RELAX_NS)
        return;
    kelp_http2_memory_relax(&c->shared->memory, c->table);
    c->relaxed = true;
}

static void on_timer(kelp_event_loop_timer *timer) {
    kelp_http2_connection *c = timer->userp;
    uint64_t now_ns = kelp_event_loop_now_ns(c->base.thread->loop);
    uint64_t timeout_ns = idle_timeout_ns(c);
    enter(c);
    if (c->closed) {
        abandon_streams(c);
        leave(c);
        return;
    }
    relax(c, now_ns);
    if (c->keepalive.policy != NULL && !c->lingering)
        check_keepalive(c, now_ns);
    if (c->closed || c->lingering ||
        (!kelp_http2_output_empty(&c->output) && now_ns >= c->write_ns + timeout_ns)) {
        connection_close(c);
    } else if (c->stream_count > 0) {
        reset_stalled_streams(c, now_ns);
    } else if (now_ns >= c->active_ns + timeout_ns) {
        end_session(c);
        c->active_ns = now_ns;
    }
    leave(c);
}

/* ---- reading ---- */

static void on_bytes(kelp_http2_connection *c, const char *data, size_t length) {
    c->active_ns = kelp_event_loop_now_ns(c->base.thread->loop);
    c->relaxed = false;
    if (c->lingering || c->failed)
        return;
    ssize_t n = nghttp2_session_mem_recv(c->session, (const uint8_t *)data, length);
    if (n < 0 || (size_t)n != length)
        c->failed = true;
    c->flush_needed = true;
}

/* Chooses the size of the next read: large for long messages, but not for many requests. */
static void adapt_read(kelp_http2_connection *c, bool full, uint32_t requests) {
    if (requests >= REQUESTS_PER_EVENT)
        c->read_bytes = MIN_READ_BYTES;
    else if (full && requests < REQUESTS_PER_EVENT / 4)
        c->read_bytes = KELP_MIN(4 * c->read_bytes, KELP_HTTP_SCRATCH_BYTES);
}

/* Reads once. Returns false if there is no more to read, or if other connections are next. */
static bool read_once(kelp_http2_connection *c) {
    char *scratch = c->base.thread->scratch;
    uint32_t begun = c->begun;
    struct iovec space = {scratch, c->read_bytes};
    ssize_t n = kelp_http_socket_read(&c->base, &space, 1);
    if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
        return false;
    if (n <= 0) {
        connection_close(c);
        return false;
    }
    on_bytes(c, scratch, (size_t)n);
    /* After a short read, the socket is usually empty; otherwise another event follows. */
    bool full = (size_t)n == space.iov_len;
    adapt_read(c, full, c->begun - begun);
    return !c->failed && full && c->begun < REQUESTS_PER_EVENT;
}

static void on_io(kelp_event_loop_io *io, uint32_t events) {
    kelp_http2_connection *c = io->userp;
    enter(c);
    c->begun = 0;
    if (events & KELP_LOOP_WRITE) {
        kelp_http_socket_flush(&c->base);
        c->flush_needed = true;
    }
    if (events & KELP_LOOP_READ) {
        for (int i = 0; i < READS_PER_EVENT && !c->closed; i++)
            if (!read_once(c))
                break;
    } else if (events & KELP_LOOP_HANGUP) {
        connection_close(c);
    }
    leave(c);
}

/* ---- operations ---- */

static void connection_start(kelp_http_connection *base, kelp_str received) {
    kelp_http2_connection *c = (kelp_http2_connection *)base;
    enter(c);
    on_bytes(c, received.data, received.length);
    c->write_ns = c->active_ns;
    if (base->thread->stopping)
        base->ops->drain(base, false);
    leave(c);
}

/* Returns true if the client sent something in the last second. */
static bool is_recent(const kelp_http2_connection *c) {
    return c->active_ns + KELP_HTTP_SECOND_NS > kelp_event_loop_now_ns(c->base.thread->loop);
}

/* Tells the handlers of streamed bodies that the server stops. */
static void drain_streams(kelp_http2_connection *c) {
    for (kelp_http2_stream *s = c->streams, *next; s != NULL; s = next) {
        next = s->next;
        if (s->streamed && !s->received && s->exchange != NULL && s->handler->on_drain != NULL)
            s->handler->on_drain(s->exchange);
    }
}

static void connection_drain(kelp_http_connection *base, bool now) {
    kelp_http2_connection *c = (kelp_http2_connection *)base;
    enter(c);
    if (!c->lingering)
        (void)read_once(c); /* requests may have arrived since the last event */
    if (!c->closed && !c->lingering)
        notify_end(c);
    if (!c->closed && !c->lingering && (now || !is_recent(c)))
        end_session(c);
    if (!c->closed && !c->lingering)
        drain_streams(c);
    leave(c);
}

static void connection_abort(kelp_http_connection *base) {
    kelp_http2_connection *c = (kelp_http2_connection *)base;
    enter(c);
    connection_close(c);
    leave(c);
}

/* ---- creation ---- */

kelp_status *kelp_http2_thread_create(kelp_allocator allocator, kelp_http2_thread **out) {
    kelp_http2_thread *shared;
    KELP_TRY(KELP_NEW(allocator, kelp_http2_thread, &shared));
    shared->allocator = allocator;
    kelp_http2_memory_init(&shared->memory, allocator);
    kelp_http2_output_init(&shared->output, allocator);
    kelp_status *status = kelp_http2_callbacks_create(&shared->callbacks);
    if (status == NULL)
        status = kelp_http2_option_create(&shared->option);
    if (status != NULL)
        kelp_http2_thread_destroy(shared);
    else
        *out = shared;
    return status;
}

void kelp_http2_thread_trim(kelp_http2_thread *shared) {
    KELP_ASSERT(shared->output.count == 0);
    while (shared->streams != NULL) {
        kelp_http2_stream *s = shared->streams;
        shared->streams = s->next;
        kelp_http2_stream_destroy(s, shared->allocator);
    }
    shared->stream_count = 0;
    kelp_http2_output_deinit(&shared->output);
    kelp_http2_memory_trim(&shared->memory);
}

void kelp_http2_thread_destroy(kelp_http2_thread *shared) {
    if (shared == NULL)
        return;
    kelp_http2_thread_trim(shared);
    nghttp2_session_callbacks_del(shared->callbacks);
    nghttp2_option_del(shared->option);
    kelp_http2_memory_deinit(&shared->memory);
    kelp_free(shared->allocator, shared, sizeof *shared);
}

kelp_status *kelp_http2_connection_create(kelp_http_thread *thread, int take_fd,
                                          kelp_http_connection **out) {
    static const kelp_http_connection_ops ops = {connection_start, connection_drain,
                                                 connection_abort};
    kelp_http2_connection *c;
    KELP_TRY(KELP_NEW(thread->allocator, kelp_http2_connection, &c));
    c->base.ops = &ops;
    c->base.thread = thread;
    c->base.io = (kelp_event_loop_io){.fd = take_fd, .fn = on_io, .userp = c};
    c->timer.fn = on_timer;
    c->timer.userp = c;
    c->shared = thread->http2;
    c->read_bytes = MIN_READ_BYTES;
    kelp_http2_output_init(&c->output, thread->allocator);
    kelp_status *status = kelp_http2_session_create(c);
    if (status != NULL) {
        nghttp2_session_del(c->session);
        kelp_free(thread->allocator, c, sizeof *c);
        return status;
    }
    *out = &c->base;
    return NULL;
}
