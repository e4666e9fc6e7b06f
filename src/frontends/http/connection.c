/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A connection: reads, feeds the parser, hands complete requests to the routes one at a time, and
 * writes replies in order. All on one loop's thread.
 *
 * While a request is in work the connection keeps reading, into `pending`, up to a limit: that is
 * how pipelined requests wait, and how a client that leaves is noticed.
 */
#include "frontends/http/connection.h"

#include "base/alloc.h"
#include "base/checked.h"
#include "base/clock.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#define PENDING_MAX_BYTES ((size_t)64 * 1024)
#define PENDING_KEEP_BYTES ((size_t)4096)
#define DIRECT_MIN_BYTES ((size_t)4096) /* of body, for which bypassing the scratch buffer pays */
#define READS_A_WAKE 64
#define LINGER_NS UINT64_C(2000000000)
#define IOV_MAX_PIECES 64

static void run(kelp_http_connection *c);

/* ---- life ---- */

static void connection_free(kelp_http_connection *c) {
    kelp_http_thread *thread = c->thread;
    kelp_http1_parser_deinit(&c->parser);
    kelp_buf_deinit(&c->pending);
    kelp_buf_deinit(&c->out);
    kelp_free(thread->server->allocator, c, sizeof(*c));
}

kelp_status *kelp_http_connection_create(kelp_http_thread *thread, int take_fd,
                                         kelp_http_connection **out) {
    kelp_allocator allocator = thread->server->allocator;
    kelp_http_connection *c;
    kelp_status *status = KELP_NEW(allocator, kelp_http_connection, &c);
    if (status) {
        close(take_fd);
        return status;
    }
    c->thread = thread;
    c->io.fd = take_fd;
    c->deadline_ns = UINT64_MAX;
    c->adopt.fn = kelp_http_connection_adopt;
    kelp_http1_parser_init(&c->parser, allocator, NULL);
    kelp_buf_init(&c->pending, allocator);
    kelp_buf_init(&c->out, allocator);
    *out = c;
    return NULL;
}

static void enter(kelp_http_connection *c) {
    c->depth++;
}

/* The connection may be gone afterwards. */
static void leave(kelp_http_connection *c) {
    if (--c->depth == 0 && c->closed)
        connection_free(c);
}

/* Needs an enter around it, or must be the last thing done with the connection. */
void kelp_http_connection_close(kelp_http_connection *c) {
    if (c->closed)
        return;
    kelp_http_thread *thread = c->thread;
    c->closed = true;
    kelp_loop_timer_cancel(thread->loop, &c->timer);
    if (c->registered)
        kelp_loop_remove(thread->loop, &c->io);
    close(c->io.fd);
    if (c->previous)
        c->previous->next = c->next;
    else if (thread->connections == c)
        thread->connections = c->next;
    if (c->next)
        c->next->previous = c->previous;
    c->previous = c->next = NULL;
    if (c->call) {
        kelp_http_call *call = c->call;
        bool done = c->replying;
        c->call = NULL;
        call->connection = NULL;
        if (done)
            kelp_http_call_unref(call);
        else
            kelp_v2_infer_cancel(call);
    }
    atomic_fetch_sub(&thread->server->connection_count, 1);
    if (c->depth == 0)
        connection_free(c);
    kelp_http_thread_connection_gone(thread);
}

/* ---- time ---- */

static void on_timer(kelp_loop_timer *timer);

/* Ends the connection through the events that follow, so that callers deep inside keep their
 * footing. */
static void give_up(kelp_http_connection *c, kelp_status *take_status) {
    kelp_status_free(take_status);
    shutdown(c->io.fd, SHUT_RDWR);
}

static void set_deadline(kelp_http_connection *c, uint64_t after_ns) {
    kelp_loop *loop = c->thread->loop;
    c->deadline_ns = after_ns ? kelp_loop_now_ns(loop) + after_ns : UINT64_MAX;
    if (c->closed || !after_ns)
        return;
    /* A timer that fires too early looks again; only an earlier deadline needs it set anew. */
    if (c->timer.heap_index != 0 && c->timer.deadline_ns <= c->deadline_ns)
        return;
    c->timer.fn = on_timer;
    c->timer.userp = c;
    kelp_status *status = kelp_loop_timer_set(loop, &c->timer, c->deadline_ns);
    if (status) /* without memory for a timer there is no protection against slow clients */
        give_up(c, status);
}

static void set_events(kelp_http_connection *c, uint32_t events) {
    if (c->closed || c->io.events == events)
        return;
    kelp_status *status = kelp_loop_modify(c->thread->loop, &c->io, events);
    if (status)
        give_up(c, status);
}

/* What the connection has to be woken for. */
static void update_events(kelp_http_connection *c) {
    uint32_t events = 0;
    bool full = c->call && c->pending.length - c->pending_at >= PENDING_MAX_BYTES;
    if (!c->peer_closed && !full)
        events |= KELP_LOOP_READ;
    if (c->replying)
        events |= KELP_LOOP_WRITE;
    set_events(c, events);
}

/* ---- replies ---- */

static void linger(kelp_http_connection *c) {
    c->lingering = true;
    shutdown(c->io.fd, SHUT_WR);
    set_deadline(c, LINGER_NS);
    if (c->peer_closed)
        kelp_http_connection_close(c);
    else
        set_events(c, KELP_LOOP_READ);
}

/* The reply is written; what is next? */
static void reply_done(kelp_http_connection *c) {
    const kelp_http_server_options *options = &c->thread->server->options;
    bool broken = c->parser.stage == KELP_HTTP1_STAGE_FAILED;
    kelp_http_call_unref(c->call);
    c->call = NULL;
    c->replying = false;
    kelp_buf_clear(&c->out);
    bool unread = c->pending.length > c->pending_at;
    kelp_http1_parser_clear(&c->parser);
    c->reading_head = false;
    if (!c->keep_alive) {
        /* Closing with unread bytes would reset the connection, and the client might lose the
         * reply. */
        if (broken || unread)
            linger(c);
        else
            kelp_http_connection_close(c);
        return;
    }
    set_deadline(c, options->idle_timeout_ns);
    update_events(c);
}

static size_t gather(const kelp_http_connection *c, struct iovec *iov) {
    const kelp_http_call *call = c->call;
    uint64_t skip = c->sent_bytes;
    size_t n = 0;
    size_t piece_count = c->bodyless ? 0 : call->piece_count;
    for (size_t i = 0; i < piece_count + 2 && n < IOV_MAX_PIECES; i++) {
        kelp_http_piece piece = {c->out.data, c->out.length};
        if (i == 1)
            piece = (kelp_http_piece){call->text.data, c->bodyless ? 0 : call->text.length};
        else if (i > 1)
            piece = call->pieces[i - 2];
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

static void write_reply(kelp_http_connection *c) {
    struct iovec iov[IOV_MAX_PIECES];
    while (c->sent_bytes < c->reply_bytes) {
        struct msghdr message = {.msg_iov = iov, .msg_iovlen = gather(c, iov)};
        ssize_t n = sendmsg(c->io.fd, &message, MSG_NOSIGNAL);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) {
            update_events(c);
            return;
        }
        if (n < 0) {
            kelp_http_connection_close(c);
            return;
        }
        c->sent_bytes += (uint64_t)n;
        if (c->sent_bytes < c->reply_bytes)
            set_deadline(c, c->thread->server->options.idle_timeout_ns);
    }
    reply_done(c);
}

static void write_head(kelp_http_connection *c) {
    const kelp_http_call *call = c->call;
    uint64_t length = call->content_type ? call->text.length : 0;
    for (size_t i = 0; i < call->piece_count; i++)
        length += call->pieces[i].length;
    kelp_buf *out = &c->out;
    kelp_buf_clear(out);
    kelp_http1_put_status(out, call->status);
    if (call->content_type)
        kelp_http1_put_header(out, "Content-Type", call->content_type);
    if (call->has_header_length)
        kelp_http1_put_header_u64(out, "Inference-Header-Content-Length", call->header_length);
    if (call->coding != KELP_HTTP_IDENTITY)
        kelp_http1_put_header(out, "Content-Encoding", kelp_http_coding_name(call->coding));
    if (call->allow)
        kelp_http1_put_header(out, "Allow", call->allow);
    if (call->tell_codings)
        kelp_http1_put_header(out, "Accept-Encoding", "gzip, deflate");
    kelp_http1_end_head(out, c->parser.request.minor, c->keep_alive, length);
    c->reply_bytes = out->length + (c->bodyless ? 0 : length);
    c->sent_bytes = 0;
}

void kelp_http_connection_reply(kelp_http_connection *c) {
    enter(c);
    if (c->thread->stopping)
        c->keep_alive = false;
    c->replying = true;
    write_head(c);
    if (c->out.failed) {
        kelp_http_connection_close(c);
    } else {
        set_deadline(c, c->thread->server->options.idle_timeout_ns);
        write_reply(c);
        if (!c->closed && !c->call) /* requests may have been waiting meanwhile */
            run(c);
    }
    leave(c);
}

/* ---- requests ---- */

static bool begin_call(kelp_http_connection *c) {
    kelp_http_call *call;
    kelp_status *status = kelp_http_call_acquire(c->thread, &call);
    if (status) {
        kelp_status_free(status);
        kelp_http_connection_close(c);
        return false;
    }
    call->connection = c;
    call->head = &c->parser.request;
    c->call = call;
    c->bodyless = kelp_str_is(c->parser.request.method, "HEAD");
    set_deadline(c, 0);
    return true;
}

static void start_request(kelp_http_connection *c) {
    if (!begin_call(c))
        return;
    kelp_http_call *call = c->call;
    c->keep_alive = c->parser.request.keep_alive;
    /* The body goes with the call, which outlives the connection; its old memory is used for the
     * next. */
    kelp_http1_body body = call->body;
    call->body = c->parser.body;
    c->parser.body = body;
    kelp_http_route(call);
    /* The call may be answered and gone here. */
}

/* Answers what could not be parsed, and closes. */
static void refuse(kelp_http_connection *c) {
    int code = c->parser.error_code;
    const char *text = c->parser.error_text;
    char message[256];
    if (code == 413) {
        snprintf(message, sizeof(message),
                 "the request body is larger than the limit of %llu bytes (Content-Length %llu)",
                 (unsigned long long)c->parser.body_limit_bytes,
                 (unsigned long long)c->parser.request.content_length);
        if (c->parser.request.chunked)
            snprintf(message, sizeof(message),
                     "the chunked request body is larger than the limit of %llu bytes",
                     (unsigned long long)c->parser.body_limit_bytes);
        text = message;
    }
    if (!begin_call(c))
        return;
    c->keep_alive = false;
    c->parser.stage = KELP_HTTP1_STAGE_FAILED;
    kelp_http_reply_error_text(c->call, code, kelp_str_from(text));
    kelp_http_call_finish(c->call);
}

/* Limits and placement of the body, now that the headers are known. */
static void on_head(kelp_http_connection *c) {
    const kelp_http_server_options *options = &c->thread->server->options;
    kelp_http1_parser *parser = &c->parser;
    const kelp_http1_request *request = &parser->request;
    parser->body_limit_bytes = options->max_input_size_bytes;
    const kelp_str *header = kelp_http1_find(request, "inference-header-content-length");
    const kelp_str *coding = kelp_http1_find(request, "content-encoding");
    uint64_t json_length;
    if (header && !coding && kelp_parse_u64(*header, &json_length) && json_length > 0) {
        if (json_length > options->max_input_size_bytes) {
            parser->error_code = 413;
            parser->error_text = "";
            parser->stage = KELP_HTTP1_STAGE_FAILED;
            return;
        }
        parser->body_limit_bytes = options->max_body_size_bytes;
        parser->align_offset = (size_t)(json_length % 64); /* the first tensor is aligned */
    }
    if (request->expect_continue && (request->chunked || request->content_length > 0) &&
        (request->chunked || request->content_length <= parser->body_limit_bytes)) {
        static const char go_on[] = "HTTP/1.1 100 Continue\r\n\r\n";
        /* No reply is under way, so the socket has room for these few bytes. */
        if (send(c->io.fd, go_on, sizeof(go_on) - 1, MSG_NOSIGNAL) != (ssize_t)sizeof(go_on) - 1)
            kelp_http_connection_close(c);
    }
}

static void note_progress(kelp_http_connection *c) {
    const kelp_http_server_options *options = &c->thread->server->options;
    if (kelp_http1_parser_idle(&c->parser))
        return;
    if (c->parser.stage != KELP_HTTP1_STAGE_HEAD) {
        c->reading_head = false;
        set_deadline(c, options->idle_timeout_ns);
    } else if (!c->reading_head) { /* one deadline for the whole head, however slowly it trickles */
        c->reading_head = true;
        set_deadline(c, options->header_timeout_ns);
    }
}

static void handle_event(kelp_http_connection *c, kelp_http1_event event) {
    if (event == KELP_HTTP1_COMPLETE)
        start_request(c);
    else if (event == KELP_HTTP1_FAILED)
        refuse(c);
}

/* Feeds bytes until a request is complete; returns how many were used. */
static size_t feed(kelp_http_connection *c, const char *data, size_t length) {
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

/* Works through what was read ahead. */
static void run(kelp_http_connection *c) {
    if (c->running) /* a reply inside the loop below: it goes on by itself */
        return;
    c->running = true;
    while (!c->closed && !c->lingering && !c->call && c->pending_at < c->pending.length) {
        size_t used = feed(c, c->pending.data + c->pending_at, c->pending.length - c->pending_at);
        c->pending_at += used;
    }
    c->running = false;
    if (c->closed)
        return;
    if (c->lingering || c->pending_at == c->pending.length) {
        if (c->pending.capacity > PENDING_KEEP_BYTES) /* an idle connection should cost little */
            kelp_buf_deinit(&c->pending);
        kelp_buf_clear(&c->pending);
        c->pending_at = 0;
    }
    if (!c->call && c->peer_closed)
        kelp_http_connection_close(c); /* nothing more will come */
    else
        update_events(c);
}

/* ---- events ---- */

static void keep(kelp_http_connection *c, const char *data, size_t length) {
    if (c->pending_at) {
        memmove(c->pending.data, c->pending.data + c->pending_at,
                c->pending.length - c->pending_at);
        c->pending.length -= c->pending_at;
        c->pending_at = 0;
    }
    kelp_buf_append(&c->pending, data, length);
    if (c->pending.failed)
        kelp_http_connection_close(c);
}

static void on_bytes(kelp_http_connection *c, const char *data, size_t length) {
    if (c->lingering || length == 0)
        return;
    size_t used = 0;
    if (!c->call && c->pending_at == c->pending.length)
        used = feed(c, data, length);
    if (c->closed || used == length)
        return;
    keep(c, data + used, length - used);
    if (!c->closed)
        run(c);
}

static void on_end(kelp_http_connection *c) {
    c->peer_closed = true;
    if (!c->call || c->lingering) {
        kelp_http_connection_close(c);
        return;
    }
    /* It may only have shut its sending side, so a reply that comes is still tried. */
    if (!c->replying)
        kelp_v2_infer_cancel(c->call);
    update_events(c);
}

/* One read; false when there is nothing more to read. */
static bool read_once(kelp_http_connection *c) {
    size_t room = 0;
    char *space = c->call || c->lingering ? NULL : kelp_http1_body_space(&c->parser, &room);
    size_t limit = KELP_HTTP_SCRATCH_BYTES;
    if (c->call)
        limit -= KELP_MIN(limit, c->pending.length - c->pending_at);
    if (limit == 0)
        return false;
    bool direct = space && room >= DIRECT_MIN_BYTES;
    struct iovec iov[2] = {{space, room}, {c->thread->scratch, limit}};
    ssize_t n = direct ? readv(c->io.fd, iov, 2) : read(c->io.fd, c->thread->scratch, limit);
    if (n < 0 && errno == EINTR)
        return true;
    if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
        return false;
    if (n <= 0) {
        if (n < 0)
            kelp_http_connection_close(c);
        else
            on_end(c);
        return false;
    }
    size_t got = (size_t)n;
    size_t into_body = direct ? KELP_MIN(got, room) : 0;
    if (into_body) {
        note_progress(c);
        handle_event(c, kelp_http1_body_commit(&c->parser, into_body));
    }
    if (!c->closed)
        on_bytes(c, c->thread->scratch, got - into_body);
    /* A short read emptied the socket; level-triggered events call again if not. */
    return !c->closed && got == (direct ? room : 0) + limit;
}

static void on_io(kelp_loop_io *io, uint32_t events) {
    kelp_http_connection *c = io->userp;
    enter(c);
    if ((events & KELP_LOOP_WRITE) && c->replying) {
        write_reply(c);
        if (!c->closed && !c->call)
            run(c);
    }
    if (!c->closed && (events & KELP_LOOP_READ) && !c->peer_closed) {
        for (int i = 0; i < READS_A_WAKE && !c->closed && !c->peer_closed; i++)
            if (!read_once(c))
                break;
        if (!c->closed)
            update_events(c);
    } else if (!c->closed && (events & KELP_LOOP_HANGUP)) {
        kelp_http_connection_close(c); /* reset, or shut on both sides */
    }
    leave(c);
}

static void on_timer(kelp_loop_timer *timer) {
    kelp_http_connection *c = timer->userp;
    uint64_t now = kelp_loop_now_ns(c->thread->loop);
    enter(c);
    if (c->deadline_ns == UINT64_MAX) {
        /* a request is in work; set_deadline arms the timer again */
    } else if (now < c->deadline_ns) {
        set_deadline(c, c->deadline_ns - now);
    } else if (c->call || c->lingering || kelp_http1_parser_idle(&c->parser)) {
        kelp_http_connection_close(c);
    } else {
        c->parser.error_code = 408;
        c->parser.error_text = "the request did not arrive in time";
        refuse(c);
    }
    leave(c);
}

void kelp_http_connection_adopt(kelp_loop_task *task) {
    kelp_http_connection *c = (kelp_http_connection *)task;
    kelp_http_thread *thread = c->thread;
    int on = 1;
    setsockopt(c->io.fd, IPPROTO_TCP, TCP_NODELAY, &on,
               sizeof(on)); /* fails on unix sockets; fine */
    c->io.fn = on_io;
    c->io.userp = c;
    c->next = thread->connections;
    if (c->next)
        c->next->previous = c;
    thread->connections = c;
    enter(c);
    kelp_status *status =
        thread->stopping ? NULL : kelp_loop_add(thread->loop, &c->io, KELP_LOOP_READ);
    c->registered = !status && !thread->stopping;
    kelp_status_free(status);
    if (!c->registered)
        kelp_http_connection_close(c);
    else
        set_deadline(c, thread->server->options.idle_timeout_ns);
    leave(c);
}

void kelp_http_connection_drain(kelp_http_connection *c) {
    c->keep_alive = false;
    if (!c->call && kelp_http1_parser_idle(&c->parser))
        kelp_http_connection_close(c);
}

void kelp_http_connection_abort(kelp_http_connection *c) {
    kelp_http_connection_close(c);
}
