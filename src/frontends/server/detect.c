/* SPDX-License-Identifier: Apache-2.0 */
/* A new connection: reads until it knows the version of HTTP, after the handshake of TLS if the
 * endpoint has TLS, and passes the socket to a connection of this version. */
#include "frontends/server/detect.h"

#include "base/alloc.h"
#include "base/assert.h"
#include "frontends/h2/connection.h"
#include "frontends/http/http1_connection.h"
#include "frontends/http/socket.h"
#include "frontends/tls/stream.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#define PREFACE_BYTES 24
#define TLS_HANDSHAKE 0x16 /* the first byte of TLS */
#define DISCARD_NS KELP_HTTP_SECOND_NS

/* A connection whose version is not known. */
typedef struct detect_connection {
    kelp_http_connection base; /* first */
    kelp_event_loop_timer timer;
    uint64_t accepted_ns;
    char first[PREFACE_BYTES]; /* the first bytes, a part of the preface of HTTP/2 */
    size_t first_bytes;
    bool handshaking;
    bool discarding; /* the client was rejected; received bytes are discarded */
} detect_connection;

/* ---- the end ---- */

static void detect_free(detect_connection *c) {
    kelp_event_loop_timer_cancel(c->base.thread->loop, &c->timer);
    kelp_event_loop_timer_cancel(c->base.thread->loop, &c->base.again);
    kelp_free(c->base.thread->allocator, c, sizeof *c);
}

static void detect_close(detect_connection *c) {
    kelp_http_socket_close(&c->base);
    kelp_http_connection_leave(&c->base);
    detect_free(c);
}

static void on_timer(kelp_event_loop_timer *timer) {
    detect_close(timer->userp);
}

/* Closes the connection unless its version is known in time. */
static bool set_timer(detect_connection *c, uint64_t after_ns) {
    kelp_event_loop *loop = c->base.thread->loop;
    c->timer.fn = on_timer;
    c->timer.userp = c;
    kelp_status *status =
        kelp_event_loop_timer_set(loop, &c->timer, kelp_event_loop_now_ns(loop) + after_ns);
    kelp_status_free(status);
    return status == NULL;
}

/* Logs why a connection is closed, at most once a second. */
static void log_rejection(const detect_connection *c, const char *why, const char *detail) {
    static atomic_uint_fast64_t next_ns;
    uint64_t now_ns = kelp_event_loop_now_ns(c->base.thread->loop);
    uint64_t due_ns = atomic_load(&next_ns);
    if (now_ns >= due_ns &&
        atomic_compare_exchange_strong(&next_ns, &due_ns, now_ns + KELP_HTTP_SECOND_NS))
        KELP_LOGF(&c->base.thread->options->logger, KELP_LOG_WARNING,
                  "rejected an HTTP connection: %s%s%s", why, *detail != 0 ? ": " : "", detail);
}

/* ---- TLS ---- */

/* Shuts down the sending side, and waits a second for the client: closing with unread bytes would
 * reset the connection, and the client could lose the reason. */
static void discard(detect_connection *c) {
    c->discarding = true;
    c->handshaking = false;
    shutdown(c->base.io.fd, SHUT_WR);
    if (!set_timer(c, DISCARD_NS))
        detect_close(c);
}

/* Responds to a request without TLS at an endpoint with TLS. */
static void reject_plain(detect_connection *c) {
    static char text[] = "HTTP/1.1 400 Bad Request\r\nContent-Type: application/json\r\n"
                         "Content-Length: 36\r\nConnection: close\r\n\r\n"
                         "{\"error\":\"this address needs https\"}";
    struct iovec iov = {text, sizeof text - 1};
    log_rejection(c, "the client does not use TLS", "");
    (void)kelp_http_socket_write(&c->base, &iov, 1);
    discard(c);
}

/* Continues the handshake. Returns true when it is done; otherwise `c` may be freed. */
static bool shake_hands(detect_connection *c) {
    const char *reason;
    kelp_tls_handshake result = kelp_tls_stream_handshake(c->base.tls, &reason);
    bool done = result == KELP_TLS_HANDSHAKE_DONE;
    if (done && set_timer(c, c->base.thread->options->idle_timeout_ns)) {
        c->handshaking = false;
        return true;
    }
    if (result == KELP_TLS_HANDSHAKE_FAILED) {
        log_rejection(c, "the TLS handshake failed", reason);
        discard(c);
        return false;
    }
    bool again = result == KELP_TLS_HANDSHAKE_AGAIN;
    kelp_status *status = again ? kelp_http_socket_watch(&c->base, KELP_LOOP_READ) : NULL;
    if (!again || status != NULL)
        detect_close(c);
    kelp_status_free(status);
    return false;
}

static bool read_once(detect_connection *c);

static void start_tls(detect_connection *c, kelp_str received) {
    kelp_http_thread *thread = c->base.thread;
    kelp_status *status = kelp_tls_stream_create(c->base.tls_context, thread->tls, c->base.io.fd,
                                                 received, &c->base.tls);
    if (status != NULL || !set_timer(c, thread->options->header_timeout_ns)) {
        kelp_status_free(status);
        detect_close(c);
        return;
    }
    c->handshaking = true;
    (void)read_once(c);
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

/* Keeps a part of the preface of HTTP/2. */
static void wait_for_more(detect_connection *c, kelp_str received) {
    uint64_t timeout_ns = c->base.thread->options->header_timeout_ns;
    bool is_timed = c->first_bytes > 0 || c->base.tls != NULL || set_timer(c, timeout_ns);
    memcpy(c->first, received.data, received.length);
    c->first_bytes = received.length;
    kelp_status *status = is_timed ? kelp_http_socket_watch(&c->base, KELP_LOOP_READ) : NULL;
    if (!is_timed || status != NULL)
        detect_close(c);
    kelp_status_free(status);
}

/* Processes the first bytes of the connection, in the thread's scratch memory. */
static void decide(detect_connection *c, kelp_str received) {
    kelp_str preface = KELP_HTTP2_PREFACE;
    size_t compared = received.length < preface.length ? received.length : preface.length;
    bool is_tls = c->base.tls == NULL && received.data[0] == TLS_HANDSHAKE;
    KELP_ASSERT(preface.length == sizeof c->first);
    if (is_tls && c->base.tls_context == NULL) {
        log_rejection(c, "the client uses TLS, which is not configured for this address", "");
        detect_close(c);
    } else if (is_tls) {
        start_tls(c, received);
    } else if (c->base.tls_context != NULL && c->base.tls == NULL) {
        reject_plain(c);
    } else if (memcmp(received.data, preface.data, compared) != 0) {
        become(c, false, received);
    } else if (compared == preface.length) {
        become(c, true, received);
    } else {
        wait_for_more(c, received);
    }
}

/* Reads once from a rejected client. Returns false if nothing has arrived. */
static bool discard_once(detect_connection *c) {
    ssize_t n = read(c->base.io.fd, c->base.thread->scratch, KELP_HTTP_SCRATCH_BYTES);
    if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
        return false;
    if (n <= 0)
        detect_close(c);
    return true;
}

/* Reads once. `c` may be freed afterwards. Returns false if nothing has arrived. */
static bool read_once(detect_connection *c) {
    char *scratch = c->base.thread->scratch;
    if (c->discarding)
        return discard_once(c);
    if (c->handshaking && !shake_hands(c))
        return true;
    memcpy(scratch, c->first, c->first_bytes);
    struct iovec space = {scratch + c->first_bytes, KELP_HTTP_FIRST_READ_BYTES - c->first_bytes};
    ssize_t n = kelp_http_socket_read(&c->base, &space, 1);
    if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) {
        kelp_status *status = kelp_http_socket_watch(&c->base, KELP_LOOP_READ);
        kelp_status_free(status);
        if (status != NULL)
            detect_close(c);
        return status != NULL;
    }
    if (n <= 0)
        detect_close(c);
    else
        decide(c, (kelp_str){scratch, c->first_bytes + (size_t)n});
    return true;
}

static void on_io(kelp_event_loop_io *io, uint32_t events) {
    detect_connection *c = io->userp;
    if (events & KELP_LOOP_WRITE)
        kelp_http_socket_flush(&c->base);
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
    kelp_status *status =
        thread->stopping ? NULL : kelp_event_loop_add(thread->loop, &base->io, KELP_LOOP_READ);
    if (thread->stopping || status != NULL || !set_timer(c, thread->options->idle_timeout_ns))
        detect_close(c);
    kelp_status_free(status);
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
