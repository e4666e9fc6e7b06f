/* SPDX-License-Identifier: Apache-2.0 */
/* A new connection: reads until it knows the version of HTTP, and passes the socket to a connection
 * of this version. */
#include "frontends/http/detect.h"

#include "base/alloc.h"
#include "base/assert.h"
#include "frontends/h2/connection.h"
#include "frontends/http/http1_connection.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#define PREFACE_BYTES 24

/* A connection whose version is not known. */
typedef struct detect_connection {
    kelp_http_connection base; /* first */
    kelp_event_loop_timer timer;
    uint64_t accepted_ns;
    char first[PREFACE_BYTES]; /* the first bytes, a part of the preface of HTTP/2 */
    size_t first_bytes;
    bool registered;
} detect_connection;

/* ---- the end ---- */

static void detect_free(detect_connection *c) {
    kelp_event_loop_timer_cancel(c->base.thread->loop, &c->timer);
    kelp_free(c->base.thread->allocator, c, sizeof *c);
}

static void detect_close(detect_connection *c) {
    if (c->registered)
        kelp_event_loop_remove(c->base.thread->loop, &c->base.io);
    close(c->base.io.fd);
    kelp_http_connection_leave(&c->base);
    detect_free(c);
}

static void on_timer(kelp_event_loop_timer *timer) {
    detect_close(timer->userp);
}

/* Closes the connection unless more bytes arrive in time. */
static bool set_timer(detect_connection *c, uint64_t after_ns) {
    kelp_event_loop *loop = c->base.thread->loop;
    c->timer.fn = on_timer;
    c->timer.userp = c;
    kelp_status *status =
        kelp_event_loop_timer_set(loop, &c->timer, kelp_event_loop_now_ns(loop) + after_ns);
    kelp_status_free(status);
    return status == NULL;
}

/* ---- detection ---- */

/* Passes the socket and the received bytes to a connection of a version. */
static void become(detect_connection *c, bool http2, kelp_str received) {
    kelp_http_connection *connection = NULL;
    kelp_status *status =
        http2 ? kelp_http2_connection_create(c->base.thread, c->base.io.fd, &connection)
              : kelp_http1_connection_create(c->base.thread, c->base.io.fd, &connection);
    if (status != NULL) {
        kelp_status_free(status);
        detect_close(c);
        return;
    }
    status = kelp_http_connection_replace(&c->base, connection);
    detect_free(c);
    if (status == NULL)
        connection->ops->start(connection, received);
    else
        connection->ops->close(connection);
    kelp_status_free(status);
}

/* Processes `length` bytes in the thread's scratch memory, the first ones of the connection. */
static void decide(detect_connection *c, size_t length) {
    const char *data = c->base.thread->scratch;
    kelp_str preface = KELP_HTTP2_PREFACE;
    size_t compared = length < preface.length ? length : preface.length;
    KELP_ASSERT(preface.length == sizeof c->first);
    if (memcmp(data, preface.data, compared) != 0) {
        become(c, false, (kelp_str){data, length});
    } else if (compared == preface.length) {
        become(c, true, (kelp_str){data, length});
    } else if (c->first_bytes == 0 && !set_timer(c, c->base.thread->options->header_timeout_ns)) {
        detect_close(c);
    } else {
        memcpy(c->first, data, length);
        c->first_bytes = length;
    }
}

/* Reads once. `c` may be freed afterwards. Returns false if nothing has arrived. */
static bool read_once(detect_connection *c) {
    char *scratch = c->base.thread->scratch;
    memcpy(scratch, c->first, c->first_bytes);
    ssize_t n =
        read(c->base.io.fd, scratch + c->first_bytes, KELP_HTTP_SCRATCH_BYTES - c->first_bytes);
    if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR))
        return false;
    if (n <= 0)
        detect_close(c);
    else
        decide(c, c->first_bytes + (size_t)n);
    return true;
}

static void on_io(kelp_event_loop_io *io, uint32_t events) {
    detect_connection *c = io->userp;
    if (!read_once(c) && (events & KELP_LOOP_HANGUP))
        detect_close(c);
}

/* ---- operations ---- */

static void detect_start(kelp_http_connection *base, kelp_str received) {
    detect_connection *c = (detect_connection *)base;
    kelp_http_thread *thread = base->thread;
    KELP_ASSERT(thread == kelp_http_current_thread() && received.length == 0);
    int on = 1;
    /* Fails on Unix sockets, which do not have the option. */
    setsockopt(base->io.fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    c->accepted_ns = kelp_event_loop_now_ns(thread->loop);
    if (!thread->stopping) {
        kelp_status *status = kelp_event_loop_add(thread->loop, &base->io, KELP_LOOP_READ);
        c->registered = status == NULL;
        kelp_status_free(status);
    }
    if (!c->registered || !set_timer(c, thread->options->idle_timeout_ns))
        detect_close(c);
}

static void detect_drain(kelp_http_connection *base, bool now) {
    detect_connection *c = (detect_connection *)base;
    bool recent = c->accepted_ns + KELP_HTTP_SECOND_NS > kelp_event_loop_now_ns(base->thread->loop);
    /* a request may have arrived since the last event */
    if (!read_once(c) && (now || !recent))
        detect_close(c);
}

static void detect_abort(kelp_http_connection *base) {
    detect_close((detect_connection *)base);
}

kelp_status *kelp_http_detect_create(kelp_http_thread *thread, int take_fd,
                                     kelp_http_connection **out) {
    static const kelp_http_connection_ops ops = {detect_start, detect_drain, detect_abort};
    detect_connection *c;
    kelp_status *status = KELP_NEW(thread->allocator, detect_connection, &c);
    if (status != NULL) {
        close(take_fd);
        return status;
    }
    c->base.ops = &ops;
    c->base.thread = thread;
    c->base.io = (kelp_event_loop_io){.fd = take_fd, .fn = on_io, .userp = c};
    *out = &c->base;
    return NULL;
}
