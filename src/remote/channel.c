/* SPDX-License-Identifier: Apache-2.0 */
/* Bytes over a Unix socket: complete, within a timeout, and until the run is cancelled. */
#include "remote/channel.h"

#include "base/checked.h"
#include "base/clock.h"
#include "base/fs.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <unistd.h>

#define HEAD_BYTES 16u
#define FAILURE_BYTES 4096u
#define SPANS_AT_ONCE 64
/* How often a wait looks whether it was cancelled. */
#define LOOK_MS 50

/* ---- sockets ---- */
static kelp_status *socket_at(const char *path, struct sockaddr_un *out_address, int *out_fd) {
    *out_address = (struct sockaddr_un){.sun_family = AF_UNIX};
    if (path == NULL || strlen(path) >= sizeof out_address->sun_path || *path == '\0')
        return KELP_ERROR(KELP_INVALID_ARGUMENT,
                          "'%s' cannot be a socket: expected a path of 1 to %zu bytes",
                          path != NULL ? path : "", sizeof out_address->sun_path - 1);
    memcpy(out_address->sun_path, path, strlen(path));
    *out_fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (*out_fd < 0)
        return KELP_ERROR(KELP_RESOURCE_EXHAUSTED, "cannot make a socket: %s", strerror(errno));
    return NULL;
}

kelp_status *kelp_channel_connect(const char *path, int *out_fd) {
    struct sockaddr_un address;
    KELP_TRY(socket_at(path, &address, out_fd));
    if (connect(*out_fd, (struct sockaddr *)&address, sizeof address) == 0)
        return NULL;
    kelp_status *status =
        KELP_ERROR(KELP_UNAVAILABLE, "no worker answers at '%s': %s", path, strerror(errno));
    close(*out_fd);
    *out_fd = -1;
    return status;
}

kelp_status *kelp_channel_listen(const char *path, int *out_fd) {
    struct sockaddr_un address;
    KELP_TRY(socket_at(path, &address, out_fd));
    kelp_fs_remove_stale_socket(path);
    if (bind(*out_fd, (struct sockaddr *)&address, sizeof address) == 0 &&
        listen(*out_fd, SOMAXCONN) == 0)
        return NULL;
    kelp_status *status =
        KELP_ERROR(KELP_UNAVAILABLE, "cannot listen at '%s': %s", path, strerror(errno));
    close(*out_fd);
    *out_fd = -1;
    return status;
}

/* ---- bytes ---- */
static kelp_status *wait_for(const kelp_channel *channel, short events, uint64_t deadline_ns) {
    struct pollfd poller = {.fd = channel->fd, .events = events};
    for (;;) {
        int ready = poll(&poller, 1, LOOK_MS);
        if (ready > 0)
            return NULL;
        if (ready < 0 && errno != EINTR)
            return KELP_ERROR(KELP_INTERNAL, "cannot wait for a socket: %s", strerror(errno));
        if (channel->env != NULL && kelp_op_env_cancelled(channel->env))
            return KELP_ERROR(KELP_CANCELLED, "the run was cancelled");
        if (channel->stopped != NULL && atomic_load(channel->stopped))
            return KELP_ERROR(KELP_CANCELLED, "the worker was stopped");
        if (deadline_ns != 0 && kelp_now_ns() > deadline_ns)
            return KELP_ERROR(KELP_DEADLINE_EXCEEDED, "the other end took longer than %llu ms",
                              (unsigned long long)(channel->timeout_ns / 1000000));
    }
}

static uint64_t deadline_of(const kelp_channel *channel) {
    return channel->timeout_ns != 0 ? kelp_now_ns() + channel->timeout_ns : 0;
}

kelp_status *kelp_channel_read(const kelp_channel *channel, void *data, size_t size_bytes,
                               bool *out_ended) {
    uint64_t deadline_ns = deadline_of(channel);
    if (out_ended != NULL)
        *out_ended = false;
    for (size_t have = 0; have < size_bytes;) {
        ssize_t got = recv(channel->fd, (char *)data + have, size_bytes - have, MSG_DONTWAIT);
        if (got > 0) {
            have += (size_t)got;
            continue;
        }
        if (got < 0 && (errno == EAGAIN || errno == EINTR)) {
            KELP_TRY(wait_for(channel, POLLIN, deadline_ns));
            continue;
        }
        if (have == 0 && out_ended != NULL) {
            *out_ended = true;
            return NULL;
        }
        return KELP_ERROR(KELP_UNAVAILABLE, "the other end went away: %s",
                          got == 0 ? "it closed the connection" : strerror(errno));
    }
    return NULL;
}

/* Sends from `*inout_at` of the first span on, and moves on. */
static kelp_status *send_some(const kelp_channel *channel, struct iovec *parts, size_t *inout_first,
                              size_t count, uint64_t deadline_ns) {
    struct msghdr message = {.msg_iov = parts + *inout_first, .msg_iovlen = count - *inout_first};
    ssize_t sent = sendmsg(channel->fd, &message, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (sent < 0 && (errno == EAGAIN || errno == EINTR))
        return wait_for(channel, POLLOUT, deadline_ns);
    if (sent < 0)
        return KELP_ERROR(KELP_UNAVAILABLE, "the other end went away: %s", strerror(errno));
    for (size_t left = (size_t)sent; *inout_first < count;) {
        struct iovec *part = &parts[*inout_first];
        size_t taken = KELP_MIN(left, part->iov_len);
        part->iov_base = (char *)part->iov_base + taken;
        part->iov_len -= taken;
        left -= taken;
        if (part->iov_len > 0)
            break;
        (*inout_first)++;
    }
    return NULL;
}

static kelp_status *send_spans(const kelp_channel *channel, const kelp_span *spans, size_t count) {
    uint64_t deadline_ns = deadline_of(channel);
    struct iovec parts[SPANS_AT_ONCE];
    while (count > 0) {
        size_t batch = KELP_MIN(count, (size_t)SPANS_AT_ONCE), first = 0;
        for (size_t i = 0; i < batch; i++)
            parts[i] = (struct iovec){(void *)(uintptr_t)spans[i].data, spans[i].size_bytes};
        while (first < batch)
            KELP_TRY(send_some(channel, parts, &first, batch, deadline_ns));
        spans += batch;
        count -= batch;
    }
    return NULL;
}

/* ---- frames ---- */
kelp_status *kelp_frame_send(const kelp_channel *channel, kelp_frame_kind kind,
                             const kelp_span *spans, size_t count) {
    char head[HEAD_BYTES] = "KRPC";
    uint32_t number = (uint32_t)kind;
    uint64_t length = 0;
    for (size_t i = 0; i < count; i++)
        length += spans[i].size_bytes;
    memcpy(head + 4, &number, 4);
    memcpy(head + 8, &length, 8);
    KELP_TRY(send_spans(channel, &(kelp_span){head, sizeof head}, 1));
    return send_spans(channel, spans, count);
}

kelp_status *kelp_frame_send_failure(const kelp_channel *channel, const kelp_status *failure) {
    char text[FAILURE_BYTES];
    uint32_t code = (uint32_t)kelp_status_code(failure);
    memcpy(text, &code, 4);
    size_t length = kelp_status_format(failure, text + 4, sizeof text - 4);
    kelp_span span = {text, 4 + KELP_MIN(length, sizeof text - 5)};
    return kelp_frame_send(channel, KELP_FRAME_FAILED, &span, 1);
}

kelp_status *kelp_frame_read_head(const kelp_channel *channel, kelp_frame_kind *out_kind,
                                  uint64_t *out_length, bool *out_ended) {
    char head[HEAD_BYTES];
    uint32_t kind = 0;
    KELP_TRY(kelp_channel_read(channel, head, sizeof head, out_ended));
    if (out_ended != NULL && *out_ended)
        return NULL;
    memcpy(&kind, head + 4, 4);
    memcpy(out_length, head + 8, 8);
    if (memcmp(head, "KRPC", 4) != 0 || kind < KELP_FRAME_LOAD || kind > KELP_FRAME_FAILED)
        return KELP_ERROR(KELP_INVALID_ARGUMENT,
                          "the other end does not speak Kelp's frames (kind %u)", kind);
    *out_kind = (kelp_frame_kind)kind;
    return NULL;
}

kelp_status *kelp_frame_read_failure(const kelp_channel *channel, uint64_t length) {
    char text[FAILURE_BYTES + 1];
    uint32_t code = 0;
    if (length < 4 || length > FAILURE_BYTES)
        return KELP_ERROR(KELP_INVALID_ARGUMENT, "the other end's failure has %llu bytes",
                          (unsigned long long)length);
    KELP_TRY(kelp_channel_read(channel, text, (size_t)length, NULL));
    text[length] = '\0';
    memcpy(&code, text, 4);
    if (code == KELP_OK || code > KELP_UNAUTHENTICATED)
        code = KELP_UNKNOWN;
    return KELP_ERROR((kelp_code)code, "%s", text + 4);
}

kelp_status *kelp_frame_receive(const kelp_channel *channel, uint64_t length,
                                kelp_receiver *receiver) {
    size_t wanted = 0;
    kelp_receiver_next(receiver);
    for (void *at = NULL; (at = kelp_receiver_want(receiver, &wanted)) != NULL;) {
        if (wanted > length)
            return KELP_ERROR(KELP_INVALID_ARGUMENT, "an envelope is longer than its frame");
        KELP_TRY(kelp_channel_read(channel, at, wanted, NULL));
        KELP_TRY(kelp_receiver_got(receiver, wanted));
        length -= wanted;
    }
    if (length != 0)
        return KELP_ERROR(KELP_INVALID_ARGUMENT, "a frame has %llu bytes after its envelope",
                          (unsigned long long)length);
    return NULL;
}
