/* SPDX-License-Identifier: Apache-2.0 */
#include "frontends/http/socket.h"

#include "frontends/tls/stream.h"

#include <errno.h>
#include <sys/socket.h>
#include <unistd.h>

ssize_t kelp_http_socket_read(kelp_http_connection *c, const struct iovec *iov, size_t count) {
    if (c->tls != NULL)
        return kelp_tls_stream_read(c->tls, iov, count);
    ssize_t n;
    do
        n = count == 1 ? read(c->io.fd, iov->iov_base, iov->iov_len)
                       : readv(c->io.fd, iov, (int)count);
    while (n < 0 && errno == EINTR);
    return n;
}

ssize_t kelp_http_socket_write(kelp_http_connection *c, struct iovec *iov, size_t count) {
    if (c->tls != NULL)
        return kelp_tls_stream_write(c->tls, iov, count);
    struct msghdr message = {.msg_iov = iov, .msg_iovlen = count};
    ssize_t n;
    do
        n = sendmsg(c->io.fd, &message, MSG_NOSIGNAL);
    while (n < 0 && errno == EINTR);
    return n;
}

/* Repeats a read for which the loop has no event. */
static void on_again(kelp_event_loop_timer *timer) {
    kelp_http_connection *c = timer->userp;
    c->io.fn(&c->io, KELP_LOOP_READ);
}

kelp_status *kelp_http_socket_watch(kelp_http_connection *c, uint32_t events) {
    kelp_event_loop *loop = c->thread->loop;
    if (c->tls == NULL)
        return kelp_event_loop_modify(loop, &c->io, events);
    if (kelp_tls_stream_has_output(c->tls))
        events |= KELP_LOOP_WRITE;
    if (!(events & KELP_LOOP_READ)) {
        kelp_event_loop_timer_cancel(loop, &c->again);
    } else if (kelp_tls_stream_has_input(c->tls)) {
        c->again.fn = on_again;
        c->again.userp = c;
        KELP_TRY(kelp_event_loop_timer_set(loop, &c->again, 0)); /* in the next round */
    }
    return kelp_event_loop_modify(loop, &c->io, events);
}

void kelp_http_socket_flush(kelp_http_connection *c) {
    if (c->tls != NULL)
        kelp_tls_stream_flush(c->tls);
}

void kelp_http_socket_shutdown(kelp_http_connection *c) {
    if (c->tls != NULL)
        kelp_tls_stream_shutdown(c->tls);
    shutdown(c->io.fd, SHUT_WR);
}

void kelp_http_socket_close(kelp_http_connection *c) {
    kelp_event_loop *loop = c->thread->loop;
    kelp_event_loop_timer_cancel(loop, &c->again);
    kelp_event_loop_remove(loop, &c->io);
    if (c->tls != NULL) {
        kelp_tls_stream_shutdown(c->tls);
        kelp_tls_stream_destroy(c->tls);
        c->tls = NULL;
    }
    close(c->io.fd);
}
